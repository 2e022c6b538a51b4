"""From a data set and a config to a run: found finished, resumed, or trained now, by the variant's or the baseline's way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.config import RunConfig
from engine.data import load_task
from engine.errors import ConfigError, DivergenceError, StoppedError
from engine.names import unknown_attributes
from engine.pipeline.events import NOTE, Listener, Phase, describe_task, note_on, parts_text, unmeasured
from engine.pipeline.finishing import finish_run, write_reviews
from engine.pipeline.identity import device_name, with_absolute_paths
from engine.pipeline.literal import literal_part_or_obstacle
from engine.pipeline.making import Clock, Making, Outcome, add_reviews
from engine.pipeline.structure import NOT_IDENTICAL, Structure, stored_structure, trained_structure
from engine.runs import RunStore, RunWriter
from engine.runs.row_files import RowFiles
from engine.runs.writer import NOTHING_KEPT, clear_finished, note_beginning
from engine.search import StructuralSimilarity, normalise_rows
from engine.training.baselines import BASELINES, Session, require_seed_links
from engine.training.device import bfloat16_pays, choose_device, choose_threads
from engine.training.estimate import Share, check_memory, task_sizes
from engine.training.semi import Round
from engine.training.trainer import Progress, Trainer, split_embeddings
from engine.training.worker import lead, leading
from engine.util.distributed import ALONE, Ranks, local_processes
from engine.util.memory import available_memory
from engine.util.text import count, shorten

CHECKPOINT = "training"


def train_run(
    path: Path | str,
    config: RunConfig,
    store: RunStore,
    *,
    fresh: bool = False,
    reviews: Path | None = None,
    on_event: Listener = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
    ranks: Ranks = ALONE,
) -> Outcome:
    """Train a run, or find it finished.

    A literal run adds names to a semi-supervised run of the same data, settings and seed: that one is trained first if it is not there.

    Args:
        path: the data set's folder.
        config: all settings.
        store: where runs are kept.
        fresh: train again even if the run exists; the earlier one stays, the new one's id gets a number. (A literal run's structure is reused.)
        reviews: reviewers' database, or ``reviews.parquet`` of a run: what they say now of this data is trained on (:mod:`engine.reviews`) and kept
            in the run, whose id differs from others.
        on_event: called with phases, epochs and rounds.
        should_stop: asked after each step; True ends training. What was learned so far becomes a run of its own (status "stopped"), and the
            same call resumes from the same step later.
        ranks: several processes that train together; this one is rank 0, the others are in :func:`engine.training.worker.follow`.

    Raises:
        EngineError: with one sentence for the user; earlier runs stay as they are.
    """
    clock, config = Clock(), with_absolute_paths(config)
    on_event(Phase("read", f"Reading {path}"))
    with leading(ranks):
        with clock.phase("read"):
            task, reviewed = load_task(path, config.data, config.seed), None
            if reviews is not None:
                task, reviewed = add_reviews(task, reviews, on_event)
        making = Making(Path(path), task, config, store, clock, on_event, reviewed, ranks=ranks)
        return train_again(making, making.free_id(), should_stop) if fresh else find_or_train(making, should_stop)


def find_or_train(making: Making, should_stop: Callable[[], bool]) -> Outcome:
    """The finished run, or one that is trained now."""
    if (path := making.store.path_of(making.task.name, making.run_id)).exists():
        clear_finished(path)
        return Outcome(making.store.find(f"{making.task.name}/{making.run_id}"), reused=True)
    return train_again(making, making.run_id, should_stop)


def train_again(making: Making, run_id: str, should_stop: Callable[[], bool]) -> Outcome:
    choose_threads(making.config.training.threads)  # for all that follows: of other threads, sums have other last bits
    if making.config.is_baseline:
        return baseline_run(making, run_id, should_stop)
    train = literal_run if making.config.variant == "literal" else structural_run
    return train(making, run_id, should_stop)


def structural_run(making: Making, run_id: str, should_stop: Callable[[], bool]) -> Outcome:
    """The basic and the semi variant."""
    store, clock = making.store, making.clock
    trainer = prepared_trainer(making, run_id)  # before there is a folder: a training that is refused leaves none behind
    with begun_run(making, run_id) as writer:
        where = f"{device_name(trainer.device)}, {count(trainer.threads, 'thread')}"
        if making.ranks.size > 1:
            where = f"{making.ranks.size} processes, each on {where}"
        most = "" if trainer.start_known else "at most "
        making.on_event(Phase("train", f"Training {run_id} on {where}, {most}{trainer.epochs} epochs"))
        with clock.phase("train"):
            places: dict[str, Any] = {"checkpoints": RunCheckpoints(writer), "rows": RowFiles(writer.path)}
            trained = trainer.train(**places, on_progress=traced(writer, making.on_event), should_stop=should_stop)
        clock.count_in(trained.earlier)
        if not trained.identical:
            making.on_event(Phase(NOTE, f"info: {NOT_IDENTICAL}: {parts_text(trained.parts)}"))
        stopped, epochs, trace = trained.stopped, trained.epochs, trained.trace
        if stopped and not epochs and not trace:
            raise StoppedError("stopped before the first epoch was complete; the same command resumes.")
        structure = trained_structure(trainer, trained)
        del trainer, trained  # the optimiser's state takes as much memory as the features
        if not stopped:
            return Outcome(finish_run(writer, making, structure), reused=False)
    name = making.task.name
    with store.create(name, store.free_id(name, f"{run_id}-e{epochs}")) as writer, discarded_where_diverged(writer):
        for line in trace:
            writer.append_trace(line)
        return Outcome(finish_run(writer, making, structure), reused=False)


def baseline_run(making: Making, run_id: str, should_stop: Callable[[], bool]) -> Outcome:
    """Another method in place of Dual-AMN, on the CPU. One that is stopped continues from its last epoch later."""
    task, config, clock = making.task, making.config, making.clock
    if making.ranks.size > 1:
        raise ConfigError("a baseline runs in one process; start it without torchrun.")
    method = BASELINES.named(config.baseline.method)
    announce(making)
    require_seed_links(task, config)
    warn_of_memory(making)
    with begun_run(making, run_id) as writer:
        threads = torch.get_num_threads()
        making.on_event(Phase("train", f"Running the baseline {method.title} ({run_id}) on cpu, {count(threads, 'thread')}"))
        with clock.phase("train"):
            learned = method.embed(task, Session(config, RunCheckpoints(writer), traced(writer, making.on_event), should_stop))
        clock.count_in(learned.earlier)
        source, target = (normalise_rows(part, in_place=True) for part in split_embeddings(learned.embeddings, task.source.num_entities))
        training = {"status": "finished", "epochs": learned.epochs, "epochs_planned": learned.epochs, "best_epoch": None}
        training |= {"seconds": round(learned.seconds, 3), "device": "cpu", "threads": threads, "precision": "float32", "processes": 1}
        return Outcome(finish_run(writer, making, Structure(None, StructuralSimilarity(source, target), [], training, baseline=method)), reused=False)


def literal_run(making: Making, run_id: str, should_stop: Callable[[], bool]) -> Outcome:
    """Names beside the structure of a finished semi run."""
    task, config = making.task, making.config
    with making.clock.phase("names"):  # first, so that a mistake in them costs no training
        literal = literal_part_or_obstacle(making)
    for finding in literal.findings:
        making.on_event(Phase(NOTE, note_on(finding)))
    semi = replace(config, variant="semi")
    clock = making.clock.since_reading()
    below = find_or_train(replace(making, config=semi, above=config, clock=clock), should_stop)
    making.clock.earlier += clock.earlier
    if below.run.manifest["status"] != "finished":
        return below
    with making.store.create(task.name, run_id) as writer:
        making.on_event(Phase("names", f"Adding names ({literal.names.origin}, {config.literal.encoder}) to {below.run.id}"))
        structure = stored_structure(below.run, task, semi)
        for line in below.run.trace():
            writer.append_trace(line)
        return Outcome(finish_run(writer, making, structure, literal), reused=False)


@contextmanager
def begun_run(making: Making, run_id: str) -> Iterator[RunWriter]:
    """A run to train, with what it takes to resume it."""
    with making.store.create(making.task.name, run_id) as writer, discarded_where_diverged(writer):
        write_reviews(writer, making)  # first, so that an interrupted run can be resumed with these, whatever is decided meanwhile
        # one that is trained again under a number of its own starts from the beginning every time
        if run_id == making.run_id and note_beginning(writer, making.begun):
            making.on_event(Phase(NOTE, f"info: {NOTHING_KEPT}"))
        yield writer


@contextmanager
def discarded_where_diverged(writer: RunWriter) -> Iterator[None]:
    """Remove the run in the making if its training diverged: every step is a function of seed and position, so resuming would end the same way."""
    try:
        yield
    except DivergenceError:
        writer.discard()
        raise


def announce(making: Making) -> None:
    """What the data are, and whether accuracy can be measured."""
    task = making.task
    making.on_event(Phase("index", f"{task.name}: {describe_task(task)}"))
    if not len(task.test_links):
        making.on_event(Phase(NOTE, f"info: {'; '.join(unmeasured(task))}"))
    excluded = making.config.values.excluded
    if making.config.variant != "basic" and excluded and (unknown := unknown_attributes(task.source, task.target, excluded)):
        named = ", ".join(shorten(one, 60) for one in unknown)
        making.on_event(Phase(NOTE, f"warning: values.exclude names what is no attribute of either graph: {named}. Names are case-sensitive."))


def prepared_trainer(making: Making, run_id: str) -> Trainer:
    """A trainer that has all it needs to begin.

    Raises:
        ConfigError, TrainingError: settings or a machine that do not permit it, no seed links and nothing else to start from.
    """
    task = making.task
    announce(making)
    check_machine(making)
    with making.clock.phase("index"):
        lead(task, making.config, making.ranks, run_id)
        trainer = Trainer(task, making.config, ranks=making.ranks, inheritance=making.inheritance)
        trainer.require_start()
    return trainer


def check_machine(making: Making) -> None:
    """Report what this machine will not do well, before the long part begins.

    Raises:
        TrainingError: the training needs more memory than there is.
    """
    config = making.config
    if choose_device(config.training.device).type != "cpu":
        return
    warn_of_memory(making)
    if config.training.precision == "bfloat16" and not bfloat16_pays():
        words = "bfloat16 is not faster than float32 on this CPU; training.precision=auto would use float32."
        making.on_event(Phase(NOTE, f"info: {words}"))


def warn_of_memory(making: Making) -> None:
    """
    Raises:
        TrainingError: the training needs more memory than there is.
    """
    available = available_memory()
    own = None if available is None else available / (local_processes() if making.ranks.size > 1 else 1)
    if warning := check_memory(task_sizes(making.task), making.config, own, Share.of(making.task, making.ranks.size)):
        making.on_event(Phase(NOTE, f"warning: {warning}"))


def traced(writer: RunWriter, on_event: Listener) -> Callable[[Progress | Round], None]:
    """A listener that also writes each epoch and round into the run's trace."""

    def listen(progress: Progress | Round) -> None:
        writer.append_trace(progress.to_dict())
        on_event(progress)

    return listen


class RunCheckpoints:
    """The training loop's checkpoints, kept in the folder of the run in the making."""

    def __init__(self, writer: RunWriter) -> None:
        self.writer = writer

    def save(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        self.writer.save_checkpoint(CHECKPOINT, dict(tensors), dict(state))

    def load(self, earlier: int = 0) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        found = self.writer.load_checkpoint(CHECKPOINT, earlier)
        return None if found is None else (found.tensors, found.state)
