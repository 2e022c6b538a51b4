"""The phases of a training and of what follows it, each timed from outside through the engine's own parts.

What each phase has to compute and to move is counted from the sizes alone (:func:`step_work` and its neighbours): the arithmetic of the method as it
is defined, with every drawn candidate compared, and every large array read or written once. An engine that finds a way round some of it shows more
than a machine could do, which is then what it gained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.machine import Probe, resident_mib
from benchmarks.phases import Stopwatch, Work, record
from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.evaluation.metrics import evaluate_links
from engine.search import csls_topk, normalise_rows
from engine.training.device import choose_device, choose_threads
from engine.training.estimate import check_memory, task_sizes
from engine.training.trainer import Trainer, split_embeddings, task_adjacency
from engine.util.memory import available_memory

FLOAT = 4  # bytes
STEP = ("forward", "loss", "backward", "optimiser")
WARM_UP = 2
TINY = 64  # entities; enough to have the search's kernels compiled


@dataclass(frozen=True)
class Case:
    """What to measure.

    Attributes:
        name: what tables call it.
        folder: the data.
        settings: ``section.option=value``, on top of the defaults.
        steps: training steps to time, after some that warm up.
        queries: the maximum number of source entities searched for, and of test links evaluated; 0: all.
        entities: of a synthetic pair, a side; None for given data.
        seed: of the parameters and of the order of the pairs.
    """

    name: str
    folder: Path
    settings: tuple[str, ...] = ()
    steps: int = 5
    queries: int = 10_000
    entities: int | None = None
    seed: int = 0


def measure(case: Case) -> dict[str, Any]:
    """Go through all phases.

    Raises:
        EngineError: data or settings that cannot be used, or more memory needed than there is.
    """
    config = RunConfig(seed=case.seed).with_assignments(case.settings)
    device, threads = choose_device(config.training.device), choose_threads(config.training.threads)
    watch, probe = Stopwatch(device), Probe(device)
    probe.measure()
    start = resident_mib()
    task = watch.several("read", lambda: load_task(case.folder, config.data, config.seed))
    if device.type == "cpu":
        check_memory(task_sizes(task), config, available_memory())
    adjacency = watch.several("index", lambda: task_adjacency(task, config))
    trainer = watch.several("encoder", lambda: Trainer(task, config, adjacency))
    train(trainer, watch, probe, case.steps)
    sizes = search_and_evaluate(trainer, watch, case)
    probe.measure()
    record_work(watch, trainer, case, sizes)
    conditions = {"settings": list(case.settings), "device": device.type, "threads": threads, "precision": trainer.precision, "queries": case.queries}
    return record(case.name, watch, probe, conditions, start_mib=start, step_seconds=step_seconds(watch), **about(task, case))


def about(task: AlignmentTask, case: Case) -> dict[str, Any]:
    """Sizes, for the JSON lines."""
    graphs = (task.source, task.target)
    return {
        "entities": [graph.num_entities for graph in graphs],
        "triples": [len(graph.triples) for graph in graphs],
        "relations": [graph.num_relations for graph in graphs],
        "seed_links": len(task.train_links),
        "test_links": len(task.test_links),
        "synthetic": case.entities,
    }


def train(trainer: Trainer, watch: Stopwatch, probe: Probe, steps: int) -> None:
    """Steps as the training loop makes them, phase by phase; the ceilings are measured again halfway."""
    size = trainer.batch_size
    order = np.random.default_rng(trainer.config.seed).permutation(len(trainer.pairs))
    for number in range(WARM_UP + steps):
        batch = torch.from_numpy(np.resize(np.roll(order, -number * size), min(size, len(order))))
        train_step(trainer, watch, trainer.pairs[batch], number, counted=number >= WARM_UP)
        if number == WARM_UP + steps // 2:
            probe.measure()


def train_step(trainer: Trainer, watch: Stopwatch, pairs: Tensor, seed: int, *, counted: bool) -> None:
    trainer.optimiser.zero_grad()
    sample = trainer.sampling.draw(pairs, seed)
    embeddings: Tensor = watch.run("forward", lambda: trainer.forward(sample, seed), counted=counted)
    value = watch.run("loss", lambda: trainer.compare(embeddings, sample, seed), counted=counted)
    watch.run("backward", lambda: value.backward(), counted=counted)  # type: ignore[no-untyped-call]
    watch.run("optimiser", lambda: trainer.optimiser.step(), counted=counted)


def step_seconds(watch: Stopwatch) -> float:
    """Of a whole step: the median of the steps' sums."""
    return float(np.median(np.sum([watch.phases[name].samples for name in STEP], axis=0)))


@dataclass(frozen=True)
class Searched:
    """How many entities were searched among how many, and how many test links were evaluated."""

    queries: int
    pool: int
    links: int


def search_and_evaluate(trainer: Trainer, watch: Stopwatch, case: Case) -> Searched:
    """The best matches by CSLS, and ranks of test links, both on the embeddings of the moment."""
    task, config = trainer.task, trainer.config.search
    source, target = split_embeddings(trainer.embed(), task.source.num_entities)
    source, target = normalise_rows(source, in_place=True), normalise_rows(target, in_place=True)
    rows = source[evenly(len(source), case.queries, source.device)] if 0 < case.queries < len(source) else source
    links = task.test_links[: case.queries or None]
    csls_topk(rows[:TINY], target[:TINY], config.csls_k, config.top, index=config.index)
    evaluate_links(source, target, links[:TINY], config.csls_k)
    watch.several("search", lambda: csls_topk(rows, target, config.csls_k, config.top, index=config.index))
    watch.several("evaluation", lambda: evaluate_links(source, target, links, config.csls_k))
    return Searched(len(rows), len(target), len(links))


def evenly(count: int, most: int, device: torch.device) -> Tensor:
    """At most this number of ``count`` rows, spread over all."""
    chosen = min(count, most)
    return torch.arange(chosen, device=device) * count // max(chosen, 1)


# What there is to do


def record_work(watch: Stopwatch, trainer: Trainer, case: Case, searched: Searched) -> None:
    """Give each phase what it has to compute and to move."""
    task, config = trainer.task, trainer.config
    triples = len(task.source.triples) + len(task.target.triples)
    parameters = sum(parameter.numel() for parameter in trainer.model.parameters())
    watch.has_to("read", Work(bytes=folder_bytes(case.folder)))
    watch.has_to("index", Work(bytes=2 * 3 * 8.0 * triples))
    watch.has_to("encoder", Work(bytes=FLOAT * parameters + 2 * 2 * 8.0 * triples))
    batch = min(trainer.batch_size, len(trainer.pairs))
    works = step_work(task.num_entities, sum(trainer.sampling.counts), triples, batch, parameters, config)
    for name, work in works.items():
        watch.has_to(name, work, "float32" if name == "optimiser" else trainer.precision)
    embedding = config.encoder.output_width
    everyone = searched.queries == task.source.num_entities
    note = "" if everyone else f"{searched.queries:,} of {task.source.num_entities:,} source entities among all targets"
    watch.has_to("search", compared(searched.queries, searched.pool, embedding, passes=2), note=note)
    note = "" if searched.links == len(task.test_links) else f"{searched.links:,} of {len(task.test_links):,} test links"
    watch.has_to("evaluation", compared(searched.links, searched.links, embedding, passes=2), note=note)


def step_work(entities: int, sampled: int, triples: int, batch: int, parameters: int, config: RunConfig) -> Mapping[str, Work]:
    """Of a training step by phase.

    Args:
        entities, triples: of both graphs.
        sampled: entities that are computed to the end: the candidates.
        batch: pairs.
        parameters: how many numbers are learned.
    """
    encoder = config.encoder
    channels, wide, block = encoder.num_channels, encoder.output_width, encoder.width
    whole_layers = max(encoder.layers - 1, 0) + sampled / max(entities, 1)  # of the last one only the messages to the candidates
    messages = 2.0 * triples * channels * encoder.dim * min(whole_layers, encoder.layers)  # values that neighbours send
    outputs = float(sampled * wide)
    gates = 2.0 * sampled * channels * block * (block + 2 * encoder.proxies) if encoder.proxy_matching else 0.0
    forward = Work(gates + 8 * messages, FLOAT * (messages + 4 * outputs))  # reflecting a value and adding it takes about 8 operations
    candidates = sampled if config.loss.candidates == "both" else sampled / 2
    return {
        "forward": forward,
        "loss": Work(2 * 2.0 * batch * candidates * wide, FLOAT * 3 * outputs),
        "backward": Work(2 * forward.operations, 2 * forward.bytes),
        "optimiser": Work(6.0 * parameters, FLOAT * 5 * parameters),
    }


def compared(rows: int, columns: int, wide: int, *, passes: int) -> Work:
    """Comparing every row with every column a number of times."""
    return Work(passes * 2.0 * rows * columns * wide, passes * FLOAT * float(rows + columns) * wide)


def folder_bytes(folder: Path) -> float:
    return float(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))


def of_size(case: Case, entities: int, folder: Path) -> Case:
    """The case with a synthetic pair of this size, which lies in a folder."""
    return replace(case, name=f"synthetic {entities:,}", folder=folder, entities=entities)
