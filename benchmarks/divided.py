"""A training divided among processes of this machine: memory, seconds and bytes sent of each process, beside one process and the formula; and what
the search, evaluation and writing that follow take.

    python -m benchmarks.divided DATA [--processes 1 2 4] [--steps 3] [--set SECTION.OPTION=VALUE]
    python -m benchmarks.divided --entities 1000000 [--processes 1 2 4] ...

For each number, that many processes are started; each reads the data (or its part, where DATA is a folder of ``python -m engine shard``), and trains
the given number of steps after one that warms it up. Then they search all entities, evaluate the test links, and write model and embeddings into a
folder that is deleted again; with ``--training-only`` they do not, which would take hours for millions of entities.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from benchmarks.children import in_a_process
from benchmarks.speed import synthetic_pair
from benchmarks.synthetic import shape_like
from benchmarks.tables import markdown, print_report
from engine.analysis.proxies import ProxyCosines, proxy_tensors
from engine.config import RunConfig
from engine.data import load_task
from engine.errors import TrainingError
from engine.evaluation.metrics import evaluate_links
from engine.model.exchange import fetching
from engine.pipeline import peak_rss_mb, stored_embeddings, stored_parameters, trained_similarity
from engine.runs.tensors import save_tensors
from engine.search import csls_topk
from engine.training.orders import kept_parts
from engine.training.trainer import Trainer
from engine.training.worker import Follower, leading
from engine.util.distributed import joined
from engine.util.memory import MIB

HEADER: Final = (
    "processes",
    "own entities",
    "halo rows",
    "s a step",
    "MiB sent a step",
    "by formula",
    "peak MiB a process",
    "s to search and write",
    "peak MiB of process 0 by then",
    "of the others",
)
PATIENCE: Final = 3600.0


@dataclass(frozen=True)
class Job:
    """What a process is to do."""

    data: Path
    settings: tuple[str, ...]
    steps: int
    processes: int
    port: int
    training_only: bool = False


@dataclass(frozen=True)
class Part:
    """What a process measured."""

    rank: int
    own: int
    halo: int
    fetched: str
    seconds: float
    sent: float
    expected: float
    peak: float
    finish_seconds: float
    finish_peak: float


def work(job: Job, rank: int, answers: multiprocessing.Queue[Part]) -> None:
    """One process of a training."""
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(job.processes),
        LOCAL_WORLD_SIZE=str(job.processes),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(job.port),
    )
    config = RunConfig().with_assignments(job.settings)
    with joined() as ranks:
        trainer = Trainer(load_task(job.data, config.data, config.seed), config, ranks=ranks)
        batch = trainer.pairs[: trainer.batch_size]
        seconds, sent = [], []
        for _ in range(job.steps + 1):
            started, before = time.monotonic(), ranks.sent
            trainer._train_step(batch)
            seconds.append(time.monotonic() - started)
            sent.append(ranks.sent - before)
        shard = trainer.shard
        own, halo, way = (trainer.task.num_entities, 0, "") if shard is None else (len(shard.own), len(shard.halo), fetching(shard.neighbours.again))
        expected, peak = trainer.expected_bytes(len(batch)), peak_rss_mb() or 0.0
        started = time.monotonic()
        if not job.training_only:
            finish(trainer)
        spent = time.monotonic() - started
        median = statistics.median(seconds[1:]), statistics.median(sent[1:])
        answers.put(Part(rank, own, halo, way, *median, expected, peak, spent, peak_rss_mb() or 0.0))


def finish(trainer: Trainer) -> None:
    """What comes after training, with what this process holds."""
    with leading(trainer.ranks) if not trainer.ranks.rank else nullcontext():
        if trainer.ranks.rank:
            follower = Follower(trainer.ranks, Path())  # trains nothing, so keeps no checkpoint
            follower.trainer = trainer
            follower.obey_all(trainer.task)
            return
        task, search, similarity = trainer.task, trainer.config.search, trained_similarity(trainer)
        csls_topk(similarity, search.csls_k, search.top, index=search.index)
        evaluate_links(similarity, task.test_links, search.csls_k, bootstrap=0, index=search.index)
        cosines = kept_parts(trainer.model, ProxyCosines(task.source.num_entities, task.target.num_entities))
        with tempfile.TemporaryDirectory() as folder:
            save_tensors(Path(folder) / "model", stored_parameters(trainer.model, task.num_entities))
            save_tensors(Path(folder) / "embeddings", stored_embeddings(similarity))
            save_tensors(Path(folder) / "proxies", proxy_tensors(cosines))


def measured(data: Path, settings: Sequence[str], steps: int, processes: int, *, training_only: bool = False) -> list[Part]:
    """All processes of a training, by rank.

    Raises:
        TrainingError: one of them ended without an answer.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        job = Job(data, tuple(settings), steps, processes, free.getsockname()[1], training_only)
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[Part] = context.Queue()
    started = [context.Process(target=work, args=(job, rank, answers), daemon=True) for rank in range(processes)]
    for one in started:
        one.start()
    for one in started:
        one.join(PATIENCE)
    if any(one.exitcode for one in started):
        raise TrainingError(f"a process of {processes} failed; what it printed says why.")
    return sorted((answers.get(timeout=10) for _ in started), key=lambda part: part.rank)


def row(parts: Sequence[Part]) -> list[str]:
    def span(values: Sequence[float], digits: int = 0) -> str:
        low, high = (f"{one:,.{digits}f}" for one in (min(values), max(values)))
        return low if low == high else f"{low} to {high}"

    return [
        str(len(parts)),
        span([part.own for part in parts]),
        " ".join(filter(None, [span([part.halo for part in parts]), parts[0].fetched])),
        f"{max(part.seconds for part in parts):.2f}",
        span([part.sent / MIB for part in parts], 1),
        span([part.expected / MIB for part in parts], 1),
        span([part.peak for part in parts]),
        f"{parts[0].finish_seconds:.0f}",
        span([parts[0].finish_peak]),
        span([part.finish_peak for part in parts[1:]]) if parts[1:] else "",
    ]


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.divided", description="A training divided among processes of this machine.")
    parser.add_argument("data", type=Path, nargs="?", help="folder of a data set")
    parser.add_argument("--entities", type=int, help="instead: entities a side of a synthetic pair")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], metavar="P")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--training-only", action="store_true", help="no search, evaluation and writing, which take hours for millions of entities")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.OPTION=VALUE", help="a setting of the training")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)
    if (parsed.data is None) == (parsed.entities is None):
        build_parser().error("give a data set's folder, or --entities")
    with ExitStack() as stack:

        def study() -> str:
            data = parsed.data or stack.enter_context(synthetic_pair(shape_like("dbp-wd", parsed.entities), 0, in_a_process))
            only = parsed.training_only
            rows = [row(measured(data, parsed.set, parsed.steps, number, training_only=only)) for number in parsed.processes]
            return f"{data.resolve().name}, {torch.get_num_threads()} cores shared by all processes.\n\n{markdown(HEADER, rows)}"

        return print_report(study, None)


if __name__ == "__main__":
    sys.exit(main())
