"""From a data set and a config to a finished run: read, index, train, search, evaluate, write.

A run's id is a function of what determines its result (data, split, settings, seed, engine version). The same call again therefore finds the
finished run, or goes on with the unfinished one.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import engine
from engine.config import RunConfig
from engine.datasets import AlignmentTask, load_task
from engine.datasets.knowledge_graph import KnowledgeGraph
from engine.errors import TrainingError
from engine.evaluation import Evaluation, evaluate_links
from engine.run_store import FORMAT_VERSION, Run, RunStore, RunWriter
from engine.run_tables import hubness_tensors, parameter_tensors, run_tables
from engine.search import CslsTopK, csls_topk, normalise_rows
from engine.training import EXECUTION_OPTIONS, Progress, Trained, Trainer, split_embeddings

CHECKPOINT = "training"
PACKAGES = ("torch", "numpy", "numba", "pandas", "faiss-cpu", "faiss-gpu", "streamlit")


@dataclass(frozen=True)
class Phase:
    """A part of the work begins; ``detail`` is for people."""

    name: str
    detail: str


Listener = Callable[[Phase | Progress], None]


@dataclass(frozen=True)
class Outcome:
    """A run and how it came about: trained now, or found finished (``reused``)."""

    run: Run
    reused: bool


@dataclass
class Clock:
    """Seconds by phase."""

    started: float = field(default_factory=time.monotonic)
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        before = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + time.monotonic() - before, 3)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


def train_run(
    path: Path | str,
    config: RunConfig,
    store: RunStore,
    *,
    fresh: bool = False,
    on_event: Listener = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Train a run, or find it finished.

    Args:
        path: the data set's folder.
        config: all settings.
        store: where runs are kept.
        fresh: train anew even if the run exists; the earlier one stays, the new one's id gets a number.
        on_event: told of phases and epochs.
        should_stop: asked after each step; True ends training. What was learned so far becomes a run of its own (status "stopped"), and the
            same call goes on from the same step later.

    Raises:
        EngineError: with one sentence for the user; earlier runs stay as they are.
    """
    clock = Clock()
    on_event(Phase("read", f"Reading {path}"))
    with clock.phase("read"):
        task = load_task(path, config.data, config.seed)
    run_id = make_run_id(task, config)
    if fresh:
        run_id = store.free_id(task.name, run_id)
    elif store.path_of(task.name, run_id).exists():
        return Outcome(store.find(f"{task.name}/{run_id}"), reused=True)
    with store.create(task.name, run_id) as writer:
        on_event(Phase("index", f"{task.name}: {describe_task(task)}"))
        with clock.phase("index"):
            trainer = Trainer(task, config)
        on_event(Phase("train", f"Training {run_id} on {device_name(trainer.device)}, {trainer.threads} threads, {trainer.epochs} epochs"))
        with clock.phase("train"):
            trained = trainer.train(checkpoints=RunCheckpoints(writer), on_progress=traced(writer, on_event), should_stop=should_stop)
        if not trained.stopped:
            return Outcome(finish_run(writer, run_id, Path(path), task, config, trainer, trained, clock, on_event), reused=False)
    if not trained.epochs and not trained.trace:
        raise TrainingError("stopped before the first epoch was done; the same command goes on from here.")
    snapshot = store.free_id(task.name, f"{run_id}-e{trained.epochs}")
    with store.create(task.name, snapshot) as writer:
        for line in trained.trace:
            writer.append_trace(line)
        return Outcome(finish_run(writer, snapshot, Path(path), task, config, trainer, trained, clock, on_event), reused=False)


def finish_run(
    writer: RunWriter,
    run_id: str,
    path: Path,
    task: AlignmentTask,
    config: RunConfig,
    trainer: Trainer,
    trained: Trained,
    clock: Clock,
    on_event: Listener,
) -> Run:
    """Search, evaluate and write what was trained."""
    source, target = (normalise_rows(part) for part in split_embeddings(trainer.embed(), task.source.num_entities))
    on_event(Phase("search", f"Looking for the {config.search.top} best matches of {task.num_entities:,} entities"))
    with clock.phase("search"):
        found = csls_topk(source, target, config.search.csls_k, config.search.top, index=config.search.index)
    on_event(Phase("evaluate", f"Evaluating on {len(task.test_links):,} test links"))
    with clock.phase("evaluate"):
        evaluation = evaluate_links(source, target, task.test_links, config.search.csls_k, index=config.search.index)
    on_event(Phase("write", f"Writing {task.name}/{run_id}"))
    with clock.phase("write"):
        write_results(writer, task, trainer, source, target, found, evaluation)
    manifest = describe_run(path, task, config, trainer, trained, evaluation, clock)
    return writer.finish(manifest)


def write_results(
    writer: RunWriter,
    task: AlignmentTask,
    trainer: Trainer,
    source: Tensor,
    target: Tensor,
    found: CslsTopK,
    evaluation: Evaluation,
) -> None:
    """Everything but the manifest."""
    writer.write_tensors("model", parameter_tensors(trainer.model))
    writer.write_tensors("embeddings", {"source": source.cpu(), "target": target.cpu()})
    writer.write_tensors("hubness", hubness_tensors(found, evaluation, task.source.num_entities, task.target.num_entities))
    for name, table in run_tables(task, found).items():
        writer.write_table(name, table)
    if len(task.test_links):
        writer.write_json("metrics", evaluation.to_dict())


def traced(writer: RunWriter, on_event: Listener) -> Callable[[Progress], None]:
    """A listener that also writes each epoch into the run's trace."""

    def listen(progress: Progress) -> None:
        writer.append_trace(progress.to_dict())
        on_event(progress)

    return listen


class RunCheckpoints:
    """The training loop's checkpoints, kept in the folder of the run in the making."""

    def __init__(self, writer: RunWriter) -> None:
        self.writer = writer

    def save(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        self.writer.save_checkpoint(CHECKPOINT, dict(tensors), dict(state))

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        found = self.writer.load_checkpoint(CHECKPOINT)
        return None if found is None else (found.tensors, found.state)


def make_run_id(task: AlignmentTask, config: RunConfig) -> str:
    """For example ``basic-s0-3f9c2a71``: variant, seed, and a hash of data, split, settings and engine version."""
    values = config.to_dict()
    values["training"] = {key: value for key, value in values["training"].items() if key not in EXECUTION_OPTIONS}
    del values["search"]["index"]
    identity = json.dumps([engine.__version__, FORMAT_VERSION, task.fingerprint, task.split, values], sort_keys=True)
    return f"{config.variant}-s{config.seed}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def describe_run(
    path: Path,
    task: AlignmentTask,
    config: RunConfig,
    trainer: Trainer,
    trained: Trained,
    evaluation: Evaluation,
    clock: Clock,
) -> dict[str, Any]:
    """The manifest: all that is needed to tell runs apart and to make this one again."""
    return {
        "variant": config.variant,
        "status": "stopped" if trained.stopped else "finished",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": config.seed,
        "config": config.to_dict(),
        "data": describe_data(path, task),
        "training": {
            "epochs": trained.epochs,
            "epochs_planned": trainer.epochs,
            "best_epoch": trained.best_epoch,
            "steps_per_epoch": trainer.steps_per_epoch,
            "seconds": round(trained.seconds, 3),
        },
        "protocol": evaluation.protocol,
        "seconds": round(clock.seconds, 3),
        "phases": clock.phases,
        "peak_rss_mb": peak_rss_mb(),
        "device": device_name(trainer.device),
        "threads": trainer.threads,
        "versions": versions(),
        "platform": platform.platform(),
        "git_commit": git_commit(),
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
        "findings": [asdict(finding) for finding in task.findings],
    }


def describe_graph(graph: KnowledgeGraph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "entities": graph.num_entities,
        "relations": graph.num_relations,
        "triples": len(graph.triples),
        "attributes": len(graph.attributes),
    }


def describe_task(task: AlignmentTask) -> str:
    """One line for people."""
    graphs = " and ".join(f"{graph.num_entities:,} entities with {len(graph.triples):,} triples" for graph in (task.source, task.target))
    return f"{graphs}; {len(task.train_links):,} seed, {len(task.valid_links):,} validation, {len(task.test_links):,} test links ({task.split})"


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def peak_rss_mb() -> float | None:
    """The most resident memory this process has had, in MiB; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def versions() -> dict[str, str]:
    found = {"engine": engine.__version__, "python": platform.python_version()}
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
