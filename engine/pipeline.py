"""From a data set and a config to a finished run: read, index, train, search, evaluate, write.

A run's id is a function of what determines its result (data, split, settings, seed, engine version). The same call again therefore finds the
finished run, or resumes the unfinished one.
"""

from __future__ import annotations

import hashlib
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from engine import __version__
from engine.analysis import TENSORS as PROXY_TENSORS
from engine.analysis import analyse
from engine.analysis.run_tables import APART, START, hubness_tensors, match_table, parameter_tensors, run_tables, start_table
from engine.config import BEFORE, LiteralConfig, RunConfig
from engine.data import AlignmentTask, load_task
from engine.data.knowledge_graph import SIDES, Finding, KnowledgeGraph, Side, empty_attributes
from engine.data.shards import files_folder
from engine.data.splits import OWN_TRAIN_RATIO, WORTH_A_TEST
from engine.decoding import TOP
from engine.errors import ConfigError, DataError, DivergenceError, StoppedError, TrainingError
from engine.evaluation.assessment import Probabilities, decoder_evaluations, match_probabilities, query_rank_table
from engine.evaluation.calibration import Uncalibrated
from engine.evaluation.decoders import DecodingEvaluation
from engine.evaluation.metrics import Evaluation, evaluate_searched, search_pool, with_pool
from engine.evaluation.pairs import alignment_figures
from engine.model.dual_amn import DualAMN
from engine.model.exchange import fetching
from engine.names import (
    AllNames,
    EncodedNames,
    Names,
    ValueEvidence,
    absolute_paths,
    all_names,
    choose_weight,
    content_digest,
    encode_all,
    gather_names,
    get_name_encoder,
    leak_warning,
    left_out_finding,
    may_need_a_rule,
    name_attributes,
    name_tensors,
    require_valid_links,
    unknown_attributes,
    value_evidence,
)
from engine.reviews import ReviewEffect, Snapshot, read_snapshot, with_reviews
from engine.runs import FORMAT_VERSION, Run, RunStore, RunWriter
from engine.runs.row_files import RowFiles
from engine.runs.tensors import InTurn, finite_tensor, has_table
from engine.runs.writer import NOTHING_KEPT, RENAMED, REVIEWS, ResumeRecord, clear_finished, note_beginning
from engine.search import CslsTopK, LiteralSimilarity, Similarity, StructuralSimilarity, csls_topk, normalise_rows
from engine.search.divided import EMBEDDINGS, DividedSimilarity
from engine.training.baselines import BASELINES, MEASURES, Baseline, Session, measured, require_seed_links
from engine.training.device import EXECUTION_OPTIONS, bfloat16_pays, choose_device, choose_threads
from engine.training.estimate import Share, check_memory, task_sizes
from engine.training.inheritance import Inheritance
from engine.training.orders import Embed, FeatureRows, carried_out, kept_parts
from engine.training.schedule import ONE_BATCH, batch_size
from engine.training.semi import Round, Selection
from engine.training.start import why_not_trained
from engine.training.trainer import DIVIDED, Progress, Trained, Trainer, split_embeddings, task_adjacency
from engine.training.worker import dealt, lead, leading
from engine.util.distributed import ALONE, Ranks, local_processes
from engine.util.memory import available_memory, give_back
from engine.util.text import count, duration, shorten
from engine.util.threads import cut

CHECKPOINT = "training"
NOTE = "note"
NOT_IDENTICAL = "resumed, not identical to an unbroken training"
PACKAGES = ("torch", "numpy", "numba", "pandas", "faiss-cpu", "faiss-gpu", "streamlit")


@dataclass(frozen=True)
class Phase:
    """A part of the work begins (or, by the name ``NOTE``, something is to be known of it); ``detail`` is for people."""

    name: str
    detail: str


Listener = Callable[[Phase | Progress | Round], None]


def event_text(event: Phase | Progress | Round) -> str:
    """One line of progress for a terminal."""
    if isinstance(event, Phase):
        return event.detail
    if isinstance(event, Round):
        return round_text(event)
    validation = "".join(f"  validation {name} {value:.3f}" for name, value in (event.validation or {}).items())
    left = "" if event.remaining is None else f"  {duration(event.remaining)} left"
    return f"epoch {event.epoch:>3}/{event.epochs}  loss {event.loss:8.3f}{validation}{left}"


def round_text(event: Round) -> str:
    """What a semi-supervised round begins with, or training before the first (round 0)."""
    if event.parent:
        right = "" if event.right is None else f" ({event.right:,} of {event.known:,} correct where a link is known)"
        return f"start: {count(event.selected, 'training pair')} carried over from {event.parent}{right}"
    if not event.selected and not event.number:
        return "start: the facts of both graphs imply no further pairs; training starts with the seed links"
    if not event.selected:
        return f"round {event.number}/{event.rounds}: no pair is confident enough among {event.pool}; training continues with the seed links"
    truth = "" if event.right is None else f", {event.right:,} of {event.known:,} correct where a link is known"
    if not event.number:
        found = "" if event.right is None else f" ({event.right:,} of {event.known:,} correct where a link is known)"
        return f"start: {count(event.selected, 'pair')} from {event.pool} implied by the facts of both graphs{found}"
    return f"round {event.number}/{event.rounds}: {count(event.selected, 'pair')} from {event.pool} ({event.new:,} new{truth})"


@dataclass(frozen=True)
class Outcome:
    """A run and how it came about: trained now, or found finished (``reused``)."""

    run: Run
    reused: bool


@dataclass
class Clock:
    """Seconds by phase; ``earlier``: those of training that interrupted sessions left behind, which this one did not have to spend again."""

    started: float = field(default_factory=time.monotonic)
    phases: dict[str, float] = field(default_factory=dict)
    earlier: float = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        before = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + time.monotonic() - before, 3)

    @property
    def seconds(self) -> float:
        return self.earlier + time.monotonic() - self.started

    def count_in(self, earlier: float) -> None:
        """Interrupted sessions trained for so long."""
        self.earlier += earlier
        self.phases["train"] = round(self.phases.get("train", 0.0) + earlier, 3)

    def since_reading(self) -> Clock:
        """For another run on the data that has been read: a clock that has seen nothing but that."""
        read = self.phases.get("read", 0.0)
        return Clock(time.monotonic() - read, {"read": read})


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


@dataclass(frozen=True)
class Reviewed:
    """What reviewers said of the data when the run was begun, and what that changed."""

    snapshot: Snapshot
    effect: ReviewEffect


def add_reviews(task: AlignmentTask, path: Path, on_event: Listener) -> tuple[AlignmentTask, Reviewed]:
    """
    Raises:
        ReviewError: no reviews of this data, or such as leave nothing to train on.
    """
    return with_snapshot(task, read_snapshot(path, task.fingerprint), on_event)


def with_snapshot(task: AlignmentTask, snapshot: Snapshot, on_event: Listener) -> tuple[AlignmentTask, Reviewed]:
    """
    Raises:
        ReviewError: reviews of other data, or such as leave nothing to train on.
    """
    changed, effect = with_reviews(task, snapshot)
    for finding in changed.findings[len(task.findings) :]:
        on_event(Phase(NOTE, note_on(finding)))
    return changed, Reviewed(snapshot, effect)


def note_on(finding: Finding) -> str:
    return " ".join([f"{finding.severity}:", finding.message, finding.advice]).rstrip()


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


@dataclass(frozen=True)
class Making:
    """A run in the making: what it is made of, where it goes, who listens; ``above``: settings of the literal run that it is made for;
    ``inheritance``: of an update, what is taken over from the parent."""

    path: Path
    task: AlignmentTask
    config: RunConfig
    store: RunStore
    clock: Clock
    on_event: Listener
    reviewed: Reviewed | None = None
    above: RunConfig | None = None
    ranks: Ranks = ALONE
    inheritance: Inheritance | None = None

    @property
    def run_id(self) -> str:
        return make_run_id(self.task, self.config)

    @property
    def begun(self) -> ResumeRecord:
        asked = self.above or self.config
        record = ResumeRecord(self.path, asked, make_run_id(self.task, asked))
        taken = self.inheritance
        return record if taken is None else replace(record, parent=taken.run.id, mapping=taken.mapping, assigned=taken.assigned)

    def free_id(self) -> str:
        return self.store.free_id(self.task.name, self.run_id)


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
        if not trained.stopped:
            return Outcome(finish_run(writer, making, trained_structure(trainer, trained)), reused=False)
    if not trained.epochs and not trained.trace:
        raise StoppedError("stopped before the first epoch was complete; the same command resumes.")
    name = making.task.name
    with store.create(name, store.free_id(name, f"{run_id}-e{trained.epochs}")) as writer, discarded_where_diverged(writer):
        for line in trained.trace:
            writer.append_trace(line)
        return Outcome(finish_run(writer, making, trained_structure(trainer, trained)), reused=False)


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


@contextmanager
def begun_run(making: Making, run_id: str) -> Iterator[RunWriter]:
    """A run to train, with what it takes to resume it."""
    with making.store.create(making.task.name, run_id) as writer, discarded_where_diverged(writer):
        write_reviews(writer, making)  # first, so that an interrupted run can be resumed with these, whatever is decided meanwhile
        # one that is trained again under a number of its own starts from the beginning every time
        if run_id == making.run_id and note_beginning(writer, making.begun):
            making.on_event(Phase(NOTE, f"info: {NOTHING_KEPT}"))
        yield writer


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
def discarded_where_diverged(writer: RunWriter) -> Iterator[None]:
    """Remove the run in the making if its training diverged: every step is a function of seed and position, so resuming would end the same way."""
    try:
        yield
    except DivergenceError:
        writer.discard()
        raise


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


@dataclass(frozen=True)
class Structure:
    """What training leaves to search with.

    Attributes:
        model: the encoder; None of a baseline. Of several processes, what process 0 holds of it.
        similarity: of the entities' rows of unit length, (E1, D) and (E2, D); where several processes hold them, process 0's side of it.
        selections: of the semi-supervised rounds.
        training: what the manifest says of how it came about.
        start: pairs that training started with besides the seed links.
        baseline: the method, where it is not Dual-AMN.
    """

    model: DualAMN | None
    similarity: StructuralSimilarity | DividedSimilarity
    selections: Sequence[Selection]
    training: Mapping[str, Any]
    start: Selection | None = None
    baseline: Baseline | None = None

    @property
    def at_hand(self) -> StructuralSimilarity:
        """Of a finished run, whose rows are read from its folder."""
        if isinstance(self.similarity, DividedSimilarity):
            raise TypeError("several processes hold this structure")
        return self.similarity

    @property
    def self_trained(self) -> bool:
        """Whether pairs that the training selected, or derived from the facts, were trained on beside the known links."""
        return any(len(one) for one in (*self.selections, *([] if self.start is None else [self.start])))


@dataclass(frozen=True)
class LiteralPart:
    """The names of a literal run, made comparable, and what was noticed about them."""

    names: Names
    source: AllNames
    target: AllNames
    encoded: EncodedNames

    @property
    def several(self) -> bool:
        """Whether some entity has more than one name."""
        return self.source.several or self.target.several

    findings: tuple[Finding, ...]


def literal_part(making: Making) -> LiteralPart:
    """
    Raises:
        ConfigError, DataError: names that cannot be had or compared, or no validation links to choose their weight on.
    """
    task, config = making.task, making.config.literal
    if config.weight is None:
        require_valid_links(task.valid_links)
    own: dict[Side, str | None] = {"source": config.names_source, "target": config.names_target}
    names = gather_names(task, config.names, files_folder(task, making.path), own=own, languages=making.config.data.languages)
    every = [compared_names(task, names, config, side) for side in SIDES]
    encoded = encode_all(get_name_encoder(config.encoder), every[0], every[1])
    return LiteralPart(
        names, every[0], every[1], encoded, (*names.findings, *left_out_finding(*every), *encoded.findings, *leak_warning(task, encoded.similarity))
    )


def literal_part_or_obstacle(making: Making) -> LiteralPart:
    """The same; where no pair could be started from, whatever the names, that is said in place of what the names lack.

    Raises:
        ConfigError, DataError: as :func:`literal_part`.
        TrainingError: there is nothing to start from.
    """
    try:
        return literal_part(making)
    except DataError as error:
        if error.path is None and (obstacle := why_not_trained(making.task, replace(making.config, variant="semi"))):
            raise TrainingError(obstacle) from error
        raise


def compared_names(task: AlignmentTask, names: Names, config: LiteralConfig, side: Side) -> AllNames:
    """All names of a graph's entities where they come from its labels; a file, an attribute or identifiers are used as they are."""
    origin = (config.names_source if side == "source" else config.names_target) or config.names
    graph = task.graph(side)
    return all_names(graph if config.synonyms and origin == "labels" else replace(graph, attributes=empty_attributes()), names.side(side))


def trained_structure(trainer: Trainer, trained: Trained) -> Structure:
    training = {
        "status": "stopped" if trained.stopped else "finished",
        "epochs": trained.epochs,
        "epochs_planned": trainer.epochs,
        "best_epoch": trained.best_epoch,
        "seconds": round(trained.seconds, 3),
        "device": device_name(trainer.device),
        "threads": trainer.threads,
        "precision": trainer.precision,
        "processes": trainer.ranks.size,
        **({"fetched": fetching(trainer.shard.neighbours.again)} if trainer.shard is not None else {}),
        **({"bytes_sent_per_step": round(statistics.mean(trainer.step_bytes))} if trainer.ranks.size > 1 and trainer.step_bytes else {}),
        **({} if trained.identical else {"parts": trained.parts, "resumed": NOT_IDENTICAL}),
    }
    return Structure(trainer.model, trained_similarity(trainer), trained.selections, training, trained.start)


def trained_similarity(trainer: Trainer) -> StructuralSimilarity | DividedSimilarity:
    """The cosines of the final embeddings, which stay where they are."""
    task = trainer.task
    if trainer.shard is not None:
        return kept_parts(trainer.model, Embed(task.source.num_entities, task.target.num_entities))[EMBEDDINGS]
    halves = split_embeddings(trainer.embed(), task.source.num_entities)
    return StructuralSimilarity(*(normalise_rows(part, in_place=True) for part in halves))


def stored_model(run: Run, task: AlignmentTask, config: RunConfig) -> DualAMN:
    """The encoder with the weights of a finished run."""
    model = DualAMN(task_adjacency(task, config), config.encoder)
    model.load_state_dict({name: torch.from_numpy(finite_tensor(run, "model", name)).clone() for name in model.state_dict()})
    return model


def stored_structure(run: Run, task: AlignmentTask, config: RunConfig) -> Structure:
    """The structure of a finished run, from its folder."""
    model = stored_model(run, task, config)
    similarity = StructuralSimilarity(*(torch.from_numpy(finite_tensor(run, "embeddings", side)) for side in SIDES))
    start = stored_start(run)
    return Structure(model, similarity, stored_selections(run), {**run.manifest["training"], "structure_run": run.id}, start)


def stored_selections(run: Run) -> list[Selection]:
    """What each round of a finished run trained on besides the seed links."""
    rounds = run.table("selections").groupby("round", sort=True)
    return [Selection(part[["source", "target"]].to_numpy(dtype="int64"), part["score"].to_numpy(dtype="float32")) for _, part in rounds]


def stored_start(run: Run) -> Selection | None:
    """What the training of a finished run started from besides the seed links; None where it was nothing else."""
    if not has_table(run, START):
        return None
    table = run.table(START)
    return Selection(table[["source", "target"]].to_numpy(dtype="int64"), table["probability"].to_numpy(dtype="float32"))


def finish_run(writer: RunWriter, making: Making, structure: Structure, literal: LiteralPart | None = None) -> Run:
    """Search, evaluate, analyse and write."""
    give_back()
    task, config, clock = making.task, making.config, making.clock
    similarity: Similarity = structure.similarity
    notes: dict[str, Any] = {}
    values: ValueEvidence | None = None
    if literal is not None:
        with clock.phase("names"):
            values = literal_values(making, structure)
            together, notes["literal"] = with_literals(structure.at_hand, literal, values, task, config)
            similarity = together if making.ranks.size == 1 else dealt(making.ranks, together)
    search = config.search
    making.on_event(Phase("search", f"Searching the {search.top} best matches of {task.num_entities:,} entities"))
    with clock.phase("search"):
        everything = with_pool(similarity, task.test_links)
        found = csls_topk(everything, search.csls_k, search.top, index=search.index)
    making.on_event(Phase("evaluate", f"Evaluating on {count(len(task.test_links), 'test link')}"))
    with clock.phase("evaluate"):
        searched = search_pool(everything, task.test_links, search.csls_k, index=search.index, untested=task.untested, top=TOP)
        evaluation, decoders = evaluate_searched(searched), decoder_evaluations(searched, task)
        del everything, searched  # their similarities fill memory
        self_trained = literal is None and structure.self_trained
        probabilities = match_probabilities(similarity, task, search.csls_k, search.index, config.seed, self_trained=self_trained)
    if structure.baseline is not None:
        notes["baseline"] = describe_baseline(structure.baseline, structure, task, evaluation, decoders)
    if isinstance(probabilities.calibration, Uncalibrated) and not only_structure(making, structure):
        making.on_event(Phase(NOTE, f"info: {probabilities.calibration.reason}"))
    making.on_event(Phase("write", f"Writing {task.name}/{writer.run_id}"))
    with clock.phase("write"):
        write_reviews(writer, making)
        write_renamed(writer, making)
        write_structure(writer, task, structure, found, evaluation, config.values.excluded)
        write_assessment(writer, task, evaluation, decoders, probabilities, found)
        if literal is not None:
            writer.write_tensors("names", name_tensors(literal.encoded.similarity))
            tables = zip(SIDES, (literal.source, literal.target), strict=True)
            writer.write_table("names", pd.concat([one.table(side) for side, one in tables], ignore_index=True))
            write_values(writer, values)
    return writer.finish(describe_run(making, structure, evaluation, notes))


def only_structure(making: Making, structure: Structure) -> bool:
    """Whether a finished run is the structure that a literal run goes by, which has probabilities of its own."""
    return making.above is not None and structure.training["status"] == "finished"


def describe_baseline(
    method: Baseline, structure: Structure, task: AlignmentTask, evaluation: Evaluation, decoders: Mapping[str, DecodingEvaluation]
) -> dict[str, Any]:
    """What the manifest says of a baseline: which one, and its Hits@1 as its publication measures it."""
    about: dict[str, Any] = {"method": method.name, "title": method.title, "reference": method.reference}
    if not len(task.test_links):
        return about
    own = evaluation.to_dict() if method.measure == "csls" else decoders[method.measure].to_dict() if method.measure in decoders else None
    found = measured(structure.at_hand.source, structure.at_hand.target, task.test_links) if own is None else own
    sides = ("source_to_target", "target_to_source")
    protocol = f"Hits@1 within the pool of test entities {MEASURES[method.measure]}"
    return {**about, "protocol": protocol, "hits@1": {side: found[side]["hits@1"] for side in sides}}


def literal_values(making: Making, structure: Structure) -> ValueEvidence | None:
    """The attribute values, as far as they count; their attributes are paired by the seed links and the pairs that training added."""
    task, config = making.task, making.config
    if not config.literal.value_weight:
        return None
    added = [part.pairs for part in (structure.start, *structure.selections[-1:]) if part is not None]
    found = value_evidence(task, np.concatenate([task.train_links, *added]), config.values.excluded | name_attributes(config.literal))
    if not len(found.features):
        return None
    for finding in found.leaks:
        making.on_event(Phase(NOTE, note_on(finding)))
    return found


def write_values(writer: RunWriter, values: ValueEvidence | None) -> None:
    """The values' rows and what they are of, where values count."""
    if values is not None:
        writer.write_tensors("values", name_tensors(values.similarity))
        writer.write_table("value_attributes", values.attributes)
        writer.write_table("value_features", values.features)


def with_literals(
    similarity: StructuralSimilarity, literal: LiteralPart, values: ValueEvidence | None, task: AlignmentTask, config: RunConfig
) -> tuple[LiteralSimilarity, dict[str, Any]]:
    """Structure, names and values together, and what the manifest says of it."""
    names, weight = literal.encoded.similarity, config.literal.weight
    note: dict[str, Any] = {"names": literal.names.origin, "encoder": config.literal.encoder, "several_names": literal.several}
    if weight is None:
        choice = choose_weight(similarity, names, task.valid_links, k=config.search.csls_k, train_links=task.train_links, seed=config.seed)
        weight, note["choice"] = choice.weight, choice.to_dict()
    leaks = () if values is None else values.leaks
    note |= {"weight": weight, "findings": [asdict(finding) for finding in (*literal.findings, *leaks)]}
    if values is None:
        return LiteralSimilarity(similarity, names, weight), note
    note["value_weight"] = config.literal.value_weight
    return LiteralSimilarity(similarity, names, weight, values.similarity, config.literal.value_weight), note


def write_reviews(writer: RunWriter, making: Making) -> None:
    """The reviews that the run is trained with, if any: a file that can be trained with again."""
    if making.reviewed is not None:
        writer.write_table(REVIEWS, making.reviewed.snapshot.table())


def write_renamed(writer: RunWriter, making: Making) -> None:
    """Old and new identifiers of entities, of an update with a mapping file."""
    if making.inheritance is not None and len(making.inheritance.renamed):
        writer.write_table(RENAMED, making.inheritance.renamed)


def write_structure(
    writer: RunWriter, task: AlignmentTask, structure: Structure, found: CslsTopK, evaluation: Evaluation, excluded: frozenset[str]
) -> None:
    """Parameters, embeddings, and the tables of data and matches with what they say of relations, proxies and hubs."""
    if structure.model is not None:
        writer.write_tensors("model", stored_parameters(structure.model, task.num_entities))
    writer.write_tensors("embeddings", stored_embeddings(structure.similarity))
    writer.write_tensors("hubness", hubness_tensors(found, evaluation, task.source.num_entities, task.target.num_entities))
    tables = run_tables(task, found, structure.selections)
    analysis = analyse(task, structure.model, evaluation, tables["matches"], excluded)
    for name, table in {**tables, **analysis.tables}.items():
        writer.write_table(name, table)
    if len(task.apart):
        writer.write_table(APART, task.apart)
    if structure.start is not None:
        writer.write_table(START, start_table(structure.start))
    if analysis.tensors:
        writer.write_tensors(PROXY_TENSORS, dict(analysis.tensors))


def stored_parameters(model: DualAMN, num_entities: int) -> Mapping[str, Tensor | InTurn]:
    """The encoder's parameters; entities' features a number of rows at a time, for several processes may hold them."""

    def rows(step: int) -> Iterator[Tensor]:
        return (carried_out(model, FeatureRows(part.start, part.stop)) for part in cut(num_entities, step))

    return {**parameter_tensors(model), DIVIDED: InTurn((num_entities, model.config.dim), rows)}


def stored_embeddings(similarity: StructuralSimilarity | DividedSimilarity) -> Mapping[str, InTurn]:
    """The rows of both graphs, likewise."""
    return {name: InTurn((similarity.shape[side], similarity.width), partial(similarity.rows, side)) for side, name in enumerate(SIDES)}


def write_assessment(
    writer: RunWriter,
    task: AlignmentTask,
    evaluation: Evaluation,
    decoders: Mapping[str, DecodingEvaluation],
    probabilities: Probabilities,
    found: CslsTopK,
) -> None:
    """Metrics of the paper's protocol and of the alignment as pairs, of every decoder with its ranks, and the calibrated probabilities."""
    if len(task.test_links):
        matches = probabilities.table if len(probabilities.table) else best_of(match_table(found))
        aligned = alignment_figures(matches, task, probabilities.threshold)
        writer.write_json("metrics", {**evaluation.to_dict(), "alignment": aligned.to_dict()})
        writer.write_json("decoders", {name: one.to_dict() for name, one in decoders.items()})
    writer.write_table("query_ranks", query_rank_table(decoders))
    writer.write_json("calibration", probabilities.to_dict())
    writer.write_table("probabilities", probabilities.table)


def best_of(matches: pd.DataFrame) -> pd.DataFrame:
    """The first of each entity's matches."""
    return matches[matches["rank"] == 1]


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


class Identified(Protocol):
    """What of a data set makes a run another one: a task, or a summary of it."""

    @property
    def fingerprint(self) -> str: ...

    @property
    def split(self) -> str: ...

    @property
    def own_links(self) -> bool: ...

    @property
    def num_seed_links(self) -> int: ...

    @property
    def several_names(self) -> frozenset[str]: ...


NAMES_RULE: Final = "names rule 2"
"""Of several names the first by language, then by characters. Under the first rule, which had no name, the order of the file decided."""
LATER_OPTIONS: Final[Mapping[tuple[str, str], Any]] = {
    **{("data", name): None for name in ("name_language", "name_language_source", "name_language_target")},
    **{("literal", name): None for name in ("names_source", "names_target")},
    ("semi", "start"): BEFORE["semi"]["start"],
    **{("literal", name): BEFORE["literal"][name] for name in ("synonyms", "value_weight")},
    ("values", "exclude"): None,
}
"""Options that older engines did not have, with what these did: set to that they make no other run."""


def make_run_id(task: Identified, config: RunConfig) -> str:
    """For example ``basic-s0-3f9c2a71``: variant, seed, and a hash of data, split, settings and engine version."""
    values = with_absolute_paths(config).to_dict()
    values["training"] = {key: value for key, value in values["training"].items() if key not in EXECUTION_OPTIONS}
    if batch_size(config, task.num_seed_links) == ONE_BATCH:  # before it depended on anything, it was this
        values["training"]["batch_size"] = ONE_BATCH
    for reading in ("ontology", "links"):  # the fingerprint of the data says which graphs and links it gave
        del values["data"][reading]
    if values["search"]["index"] == "exact":  # what runs that do not name an index were made with
        del values["search"]["index"]
    if task.own_links and config.semi.pool == "auto":  # before own data had a policy of their own, this meant "test" where there were test links
        values["semi"]["pool"] = "auto: all on own data"
    for section in config.unused:
        del values[section]
    for (section, name), before in LATER_OPTIONS.items():
        if section in values and values[section][name] == before:
            del values[section][name]
    if not values.get("values", True):  # a section that older engines did not have
        del values["values"]
    identity = json.dumps([__version__, FORMAT_VERSION, task.fingerprint, task.split, values, names_identity(task, config)], sort_keys=True)
    return f"{config.method}-s{config.seed}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """A literal run's settings with their paths from the root of the disk, links followed: one file is one setting, whatever folder it is named from.

    Raises:
        ConfigError: something in them cannot be a path.
    """
    return config.with_values(absolute_paths(config.literal)) if config.variant == "literal" else config


def names_identity(task: Identified, config: RunConfig) -> str:
    """Content of all that a literal run reads names or vectors from, so that a changed file makes another run; and the version of the rule that
    decides between several names of an entity, where it may have to.
    """
    if config.variant != "literal":
        return ""
    return " ".join(filter(None, [content_digest(config.literal), NAMES_RULE if may_need_a_rule(config.literal, task.several_names) else ""]))


def describe_run(making: Making, structure: Structure, evaluation: Evaluation, notes: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest: all that is needed to distinguish runs and to make this one again."""
    training = dict(structure.training)
    return {
        "variant": making.config.method,
        "status": training.pop("status"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": making.config.seed,
        "config": making.config.to_dict(),
        "data": describe_data(making.path, making.task),
        "device": training["device"],
        "threads": training["threads"],
        "training": {**training, "status": structure.training["status"]},
        "protocol": evaluation.protocol,
        "seconds": round(making.clock.seconds, 3),
        "phases": making.clock.phases,
        "peak_rss_mb": peak_rss_mb(),
        "versions": versions(),
        "platform": platform.platform(),
        "git_commit": git_commit(),
        **({} if making.reviewed is None else {"reviews": making.reviewed.effect.to_dict()}),
        **({} if making.inheritance is None else {"parent": dict(making.inheritance.record)}),
        **notes,
    }


def describe_data(path: Path, task: AlignmentTask) -> dict[str, Any]:
    return {
        "name": task.name,
        "path": str(path),
        "format": task.format,
        "fingerprint": task.fingerprint,
        "split": task.split,
        "source": describe_graph(task.source),
        "target": describe_graph(task.target),
        "links": {
            "train": len(task.train_links),
            "valid": len(task.valid_links),
            "test": len(task.test_links),
            "unsure": len(task.unsure_links),
        },
        "untested": task.untested,
        "own_links": task.own_links,
        "findings": [asdict(finding) for finding in task.findings],
    }


def describe_graph(graph: KnowledgeGraph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "entities": graph.num_entities,
        "relations": graph.num_relations,
        "triples": graph.num_triples,
        "attributes": graph.num_attributes,
    }


def unmeasured(task: AlignmentTask) -> Iterator[str]:
    """The note for a training whose accuracy no link can measure."""
    known = len(task.train_links) + len(task.valid_links)
    links = f"all {count(known, 'known link')} used for training" if known else "no known links"
    yield f"{links}, so accuracy is not measured"
    yield "review a random sample of the matches to estimate it"
    if known >= WORTH_A_TEST:
        yield f"--train-ratio {OWN_TRAIN_RATIO:g} holds out 20% of the links for testing"


def parts_text(parts: Sequence[Mapping[str, Any]]) -> str:
    """On what a training was computed, from which epoch on."""
    words = []
    for part in parts:
        where = [count(int(part["threads"]), "thread"), *([str(part["device"])] if "device" in part else [])]
        where += [f"{part['processes']} processes"] if part.get("processes", 1) > 1 else []
        words.append(f"{', '.join(where)} from epoch {part['from_epoch']}")
    return "; ".join(words)


def computed_otherwise(run: Run, config: RunConfig) -> tuple[str, ...]:
    """Execution settings that were asked for and that a finished run was not computed with: they make no other run, yet other bits."""
    training = run.manifest.get("training", {})
    wanted: dict[str, Any] = {"threads": config.training.threads}
    wanted |= {"precision": config.training.precision} if config.training.precision != "auto" else {}
    if config.training.device != "auto" and "device" in training:
        was = "cpu" if training["device"] == "cpu" else "cuda"
        training, wanted = {**training, "device": was}, {**wanted, "device": config.training.device}
    differing = {key: value for key, value in wanted.items() if value is not None and key in training and training[key] != value}
    return tuple(f"training.{key} was {training[key]} instead of {value}" for key, value in differing.items())


def describe_task(task: AlignmentTask) -> str:
    """One line for people."""
    graphs = " and ".join(
        f"{count(graph.num_entities, 'entity', 'entities')} with {count(graph.num_triples, 'triple')}" for graph in (task.source, task.target)
    )
    return (
        f"{graphs}; {len(task.train_links):,} seed, {len(task.valid_links):,} validation, {count(len(task.test_links), 'test link')} ({task.split})"
    )


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def peak_rss_mb() -> float | None:
    """The most resident memory this process has had, in MiB; None where the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def versions() -> dict[str, str]:
    found = {"engine": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_commit() -> str | None:
    """The commit of the engine's source, with "+" where files were changed since; None outside a checkout."""
    root = Path(__file__).resolve().parent.parent

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None
