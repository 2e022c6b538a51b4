"""How long a training will take and how much memory it needs, before it starts.

What a step computes is counted (matrix products, messages gathered from neighbours), and how fast this machine does either is tried out once per
process. Constants cover everything else; they were fitted on runs of the benchmark sets (``python -m benchmarks.estimates``). Finished runs of
the same machine, where there are any, correct the result, so that a machine that is always busy is known to be slow.
"""

from __future__ import annotations

import math
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch

from engine.config import RunConfig
from engine.data import AlignmentTask
from engine.data.shards import StoredTask
from engine.decoding.matchings import proposals_each
from engine.errors import ConfigError, TrainingError
from engine.model.exchange import PIECE_ROWS, fetching
from engine.model.losses.kernels import losses_of
from engine.model.sampling import Sampling
from engine.model.shard import ShardSizes, in_pieces, step_bytes
from engine.runs import RunSummary
from engine.search.tiles import HELD_BYTES
from engine.training.baselines import BASELINES, Effort
from engine.training.device import bfloat16_pays, count_threads, usable_cores
from engine.training.ownership import part_sizes
from engine.training.schedule import batch_size, first_epochs, round_epochs, steps_of
from engine.training.semi import selects_among_all
from engine.training.start import START_DRAWS, START_SHARE, resolve_start
from engine.training.trainer import check_processes
from engine.util.memory import MIB, need_words
from engine.util.text import duration

TRIALS: Final = 40
LEAST_TRIALS: Final = 3
PROBE_SECONDS: Final = 0.5
"""Of processor time for one probe: where one trial takes long (bfloat16 on a CPU without it), few of them suffice."""

# Seconds per unit of work that the probe would need one second for; fitted on quiet runs of the benchmark sets.
PRODUCT_WEIGHTS: Final[Mapping[str, float]] = {"float32": 2.2, "bfloat16": 2.75}
GATHER_WEIGHT, STEP_SECONDS = 12.0, 0.03
SEARCH_WEIGHT, EVALUATE_WEIGHT, SELECT_WEIGHT = 1.8, 3.5, 2.0  # of one product of all rows with all columns
BASELINE_WEIGHT: Final = 1.5
PROPOSAL_SECONDS: Final = 2e-6  # of draws of matchings, on a thread of their own for each chain, with what they are prepared by
COMPILE_SECONDS: Final = 45.0  # the first run on a machine compiles the kernels
SELECTED_SHARE: Final = 0.85  # of a round's pool; of a pool of all entities fewer
SELECTED_OF_ALL: Final = 0.6
STARTED_SHARE: Final = 0.5  # of the pool: pairs that the facts of the graphs imply

NETWORK: Final = 1.25e8
"""Bytes that go from one machine to another in a second: a network of 1 Gbit/s."""

# Memory
PROGRAM_MIB: Final = 620.0
LAYER_MATRICES, SAMPLE_MATRICES, SCRAP_MIB = 2, 5.0, 200.0  # a step: of each layer (E x C d), samples (n x width), what the allocator keeps
PIECES: Final = 4  # of rows of others that a process holds at a time where it fetches them partner by partner
FINAL_MATRICES, TILES_MIB = 2.2, 256.0  # afterwards: (E x width), and blocks of scores
MATRICES_NAMES = 5.0  # (E x width) of names beside a structure that is there
BYTES_A_FACT, BYTES_AN_ENTITY = 300, 500
BYTES_A_STORED_TRIPLE, BYTES_A_STORED_ENTITY = 60, 50  # of a shard folder: of a part's triples, and of all entities

LOW, HIGH = 1 / 1.5, 1.7
"""Where the true time lies in most cases, as shares of the estimate."""

NEAREST_RUNS, LATEST_RUNS = 5, 30
LEAST_SECONDS: Final = 5.0
"""Of training, and of its estimate: shorter runs say nothing of a machine's speed."""
FACTORS: Final = (0.2, 8.0)


@dataclass(frozen=True)
class Sizes:
    """Of a data set: counts of source and target graph, and of links; whether these are a user's own, which decides how rounds select pairs."""

    entities: tuple[int, int]
    triples: tuple[int, int]
    relations: tuple[int, int]
    attributes: tuple[int, int]
    train: int
    valid: int
    test: int
    own_links: bool = False

    @classmethod
    def of_manifest(cls, data: Mapping[str, Any]) -> Sizes:
        """From the part ``data`` of a run's manifest.

        Raises:
            KeyError, TypeError, ValueError: it is not such a part.
        """

        def both(name: str) -> tuple[int, int]:
            return int(data["source"][name]), int(data["target"][name])

        links = data["links"]
        return cls(
            entities=both("entities"),
            triples=both("triples"),
            relations=both("relations"),
            attributes=both("attributes"),
            train=int(links["train"]),
            valid=int(links["valid"]),
            test=int(links["test"]),
            own_links=bool(data.get("own_links")),
        )


@dataclass(frozen=True)
class Machine:
    """What this machine does in a second, with the threads that a training would use.

    Attributes:
        float32, bfloat16: operations of matrix products.
        gather: values of rows gathered by their numbers.
        compiled: whether the kernels are compiled already.
    """

    float32: float
    bfloat16: float
    gather: float
    compiled: bool = True


@dataclass(frozen=True)
class Work:
    """What training has to compute.

    Attributes:
        epochs: of the basic part and of each round.
        products, gathers, steps: operations of matrix products, gathered values and steps of an epoch of each.
        selection: operations of the product that a round selects its pairs from.
        precision: of the products of epochs and of rounds.
        proposals: of each chain, of all draws of matchings together.
    """

    epochs: tuple[int, ...]
    products: tuple[float, ...]
    gathers: tuple[float, ...]
    steps: tuple[int, ...]
    selection: float
    precision: str
    proposals: int = 0

    def _speed(self, machine: Machine) -> float:
        return machine.bfloat16 if self.precision == "bfloat16" else machine.float32

    def epoch_seconds(self, machine: Machine) -> list[float]:
        """Of an epoch of each part."""
        return [
            PRODUCT_WEIGHTS[self.precision] * products / self._speed(machine) + GATHER_WEIGHT * gathers / machine.gather + STEP_SECONDS * steps
            for products, gathers, steps in zip(self.products, self.gathers, self.steps, strict=True)
        ]

    def seconds(self, machine: Machine) -> float:
        """Of all training."""
        rounds = len(self.epochs) - 1
        selecting = rounds * SELECT_WEIGHT * self.selection / self._speed(machine) + PROPOSAL_SECONDS * self.proposals
        return selecting + sum(count * each for count, each in zip(self.epochs, self.epoch_seconds(machine), strict=True))


@dataclass(frozen=True)
class Estimate:
    """What to expect.

    Attributes:
        seconds: of the whole run; ``low`` and ``high`` hold most cases.
        training, after: seconds of the epochs and of what comes behind them (search, evaluation, writing).
        memory: MiB at the peak.
        runs: how many finished runs of this machine corrected it.
        compiling: seconds of ``training`` that go into compiling the kernels, once per machine and version; 0 where that is done.
        epochs, weights: epochs of each part, and how long one of them takes compared with the others.
    """

    seconds: float
    training: float
    after: float
    memory: float
    runs: int
    epochs: tuple[int, ...]
    weights: tuple[float, ...]
    compiling: float = 0.0

    @property
    def low(self) -> float:
        return self.seconds * LOW

    @property
    def high(self) -> float:
        return self.seconds * HIGH

    def remaining(self, epoch: int, epoch_seconds: float | None) -> float:
        """Seconds from the end of an epoch (from 1) to the end of the run, if one like it takes ``epoch_seconds`` without compiling; None: unknown.

        Epochs of later rounds, which train on more pairs, count for more.
        """
        total = sum(count * weight for count, weight in zip(self.epochs, self.weights, strict=True))
        rest, left, current = 0.0, epoch, None
        for count, weight in zip(self.epochs, self.weights, strict=True):
            if current is None and left <= count:
                current = weight
            rest += max(count - left, 0) * weight
            left = max(0, left - count)
        if epoch_seconds is None or not current:
            return (self.training - self.compiling) * rest / total + self.after if total else self.after
        return epoch_seconds * rest / current + self.after


def task_sizes(task: AlignmentTask) -> Sizes:
    """The sizes of a data set that was read."""
    graphs = (task.source, task.target)
    return Sizes(
        entities=(graphs[0].num_entities, graphs[1].num_entities),
        triples=(graphs[0].num_triples, graphs[1].num_triples),
        relations=(graphs[0].num_relations, graphs[1].num_relations),
        attributes=(graphs[0].num_attributes, graphs[1].num_attributes),
        train=len(task.train_links),
        valid=len(task.valid_links),
        test=len(task.test_links),
        own_links=task.own_links,
    )


def estimate_training(
    sizes: Sizes,
    config: RunConfig,
    machine: Machine,
    earlier: Iterable[RunSummary] = (),
    *,
    structure_ready: bool = False,
    precision: str | None = None,
) -> Estimate:
    """What a training will take on a CPU; a GPU is mostly several times faster.

    Args:
        sizes: of the data.
        config: all settings.
        machine: what the probe found (:func:`measured_machine`).
        earlier: finished runs, which correct the estimate where they are of this machine.
        structure_ready: the semi run that a literal one adds names to is there already.
        precision: what a run was trained with, where that is known; else it follows from the settings.
    """
    if config.is_baseline:
        return _baseline_estimate(sizes, config, machine)
    work = count_work(sizes, config, precision)
    factor, runs = correction(work, machine, config.training.threads, earlier)
    compiling = 0.0 if structure_ready or machine.compiled else COMPILE_SECONDS
    training = 0.0 if structure_ready else factor * work.seconds(machine) + compiling
    before, after = _around(sizes, config, machine)
    if config.variant == "literal" and not structure_ready:
        after *= 2  # the semi run that it builds on is searched and written as well
    around = max(1.0, min(factor, 1.4))
    return Estimate(
        seconds=training + around * (before + after),
        training=training,
        after=around * after,
        memory=memory_needed(sizes, config, structure_ready=structure_ready),
        runs=runs,
        compiling=compiling,
        epochs=work.epochs,
        weights=tuple(work.epoch_seconds(machine)),
    )


def _baseline_estimate(sizes: Sizes, config: RunConfig, machine: Machine) -> Estimate:
    """Of a baseline; no earlier runs correct it."""
    effort = baseline_effort(sizes, config)
    training = BASELINE_WEIGHT * effort.epochs * effort.operations / machine.float32
    before, after = _around(sizes, config, machine)
    memory = memory_needed(sizes, config)
    return Estimate(training + before + after, training, after, memory, 0, epochs=(effort.epochs,), weights=(training / effort.epochs,))


def baseline_effort(sizes: Sizes, config: RunConfig) -> Effort:
    """What a baseline computes and holds."""
    return BASELINES.named(config.baseline.method).effort(sum(sizes.entities), sum(sizes.triples), sum(sizes.relations), config)


def embedding_width(sizes: Sizes, config: RunConfig) -> int:
    """Numbers of an entity's embedding."""
    return baseline_effort(sizes, config).width if config.is_baseline else config.encoder.output_width


def count_work(sizes: Sizes, config: RunConfig, precision: str | None = None) -> Work:
    """What the epochs compute, those on the seed links and those of each round."""
    pairs = max(sizes.train, 1)
    rounds = 0 if config.variant == "basic" else config.semi.rounds
    pool = _pool(sizes, config)
    everyone = selects_among_all(config.semi, own=sizes.own_links, test_links=sizes.test)
    more = pairs + round(pool * (SELECTED_OF_ALL if everyone else SELECTED_SHARE))
    starts = config.variant != "basic" and config.semi.start != "seeds"
    begun = pairs + round(pool * STARTED_SHARE) if starts else pairs
    parts = [(first_epochs(config, pairs, begun), begun), *[(round_epochs(config, pairs, begun), more)] * rounds]
    counted = [_epoch(sizes, config, size) for _, size in parts]
    draws: float = rounds if config.semi.selection == "matchings" else 0
    draws += START_DRAWS / START_SHARE if starts and resolve_start(config.semi, sizes.train) == "values" else 0
    return Work(
        epochs=tuple(epochs for epochs, _ in parts),
        products=tuple(products for products, _, _ in counted),
        gathers=tuple(gathers for _, gathers, _ in counted),
        steps=tuple(steps for _, _, steps in counted),
        selection=2.0 * pool * pool * config.encoder.output_width,
        precision=precision or _precision(config),
        proposals=round(draws * pool * proposals_each(pool)),
    )


def _epoch(sizes: Sizes, config: RunConfig, pairs: int) -> tuple[float, float, int]:
    """Operations of matrix products, gathered values and steps of an epoch on a number of pairs."""
    encoder, loss, sampled = config.encoder, config.loss, sampled_entities(sizes, config)
    steps = steps_of(pairs, batch_size(config, sizes.train))
    channels, wide = encoder.num_channels, encoder.width
    candidates = sampled if loss.candidates == "both" else sampled / 2
    passes = 3 if loss.kind == "softmax" or loss.tail_mass == 0 else 1  # backward passes over all candidates as well
    compared = passes * 2 * 2.0 * pairs * candidates * config.encoder.output_width  # anchors of both sides
    gate = steps * sampled * channels * (8.0 * wide**2 + 16.0 * wide * encoder.proxies) if encoder.proxy_matching else 0.0
    gathered = steps * 2.0 * sum(sizes.triples) * channels * encoder.dim * max(encoder.layers, 1)
    return compared + gate, gathered, steps


def sampled_entities(sizes: Sizes, config: RunConfig) -> int:
    """Of both graphs, those that a step computes to the end."""
    return sum(Sampling.of(*sizes.entities, config.loss, batch_size(config, sizes.train)).counts)


def _pool(sizes: Sizes, config: RunConfig) -> int:
    """Entities of a graph that a round selects from."""
    if selects_among_all(config.semi, own=sizes.own_links, test_links=sizes.test):
        return max(min(sizes.entities) - sizes.train, 0)
    return sizes.test


def _precision(config: RunConfig) -> str:
    wanted = config.training.precision
    return ("bfloat16" if bfloat16_pays() else "float32") if wanted == "auto" else wanted


def _around(sizes: Sizes, config: RunConfig, machine: Machine) -> tuple[float, float]:
    """Seconds before the first and behind the last epoch."""
    facts, entities = sum(sizes.triples) + sum(sizes.attributes), sum(sizes.entities)
    before = 2.2 + 2.5e-6 * facts + (0.8 + 7e-5 * entities if config.variant == "literal" else 0.0)
    width = embedding_width(sizes, config)
    search = SEARCH_WEIGHT * 2.0 * sizes.entities[0] * sizes.entities[1] * width / machine.float32
    evaluate = 1.0 + EVALUATE_WEIGHT * 2.0 * sizes.test**2 * width / machine.float32
    return before, search + evaluate + 0.5 + 4e-5 * entities


# What this machine has and does


@cache
def measured_machine(threads: int | None = None) -> Machine:
    """The machine's speed when nothing else runs, tried out for a fraction of a second, once per process.

    Raises:
        ConfigError: more threads than there are cores.
    """
    threads = count_threads(threads)
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(512, 600, generator=generator), torch.randn(600, 1024, generator=generator)
    rounded = left.to(torch.bfloat16), right.to(torch.bfloat16)
    table, rows = torch.randn(40_000, 100, generator=generator), torch.randint(40_000, (10_000,), generator=generator)
    gathered = torch.empty(len(rows), table.shape[1])
    operations = 2.0 * left.numel() * right.shape[1]
    return Machine(
        float32=operations / _quickest(lambda: left @ right, threads),
        bfloat16=operations / _quickest(lambda: rounded[0] @ rounded[1], threads),
        gather=gathered.numel() / _quickest(lambda: torch.index_select(table, 0, rows, out=gathered), threads),
        compiled=kernels_compiled(),
    )


def _quickest(work: Callable[[], object], threads: int) -> float:
    """Seconds on an idle machine: processor time, divided among a number of threads; the least of several trials, for other work only adds.

    However many threads this process uses, they stay as they are: it may be a server, and others' work would change with them.
    """
    times: list[float] = []
    while len(times) < LEAST_TRIALS or (len(times) < TRIALS and sum(times) < PROBE_SECONDS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return max(min(times) / threads, 1e-9)


def kernels_compiled() -> bool:
    """Whether numba has the loss's kernel of this version in its cache, wherever that is: beside the source, in the user's folder, or elsewhere."""
    try:
        return bool(losses_of._cache._cache_file._load_index())  # type: ignore[attr-defined]  # numba has no public way to ask
    except (AttributeError, OSError, RuntimeError):
        folder = getattr(getattr(losses_of, "stats", None), "cache_path", None)
        return folder is not None and next(Path(folder).glob("kernels.losses_of*.nbi"), None) is not None


# Memory


@dataclass(frozen=True)
class Share:
    """What one of several processes has of a training.

    Attributes:
        processes: how many there are.
        own, halo: entities that it owns, and rows of others that it fetches.
        pieces: whether it fetches them partner by partner.
        triples: with its entities, where it reads these alone; None: it reads all data.
    """

    processes: int
    own: float
    halo: float
    pieces: bool = False
    triples: float | None = None

    @classmethod
    def largest(cls, parts: Sequence[ShardSizes], *, stored: bool) -> Share:
        """Of parts that are known; ``stored``: from a shard folder."""
        own, halo, triples = (max(getattr(part, name) for part in parts) for name in ("own", "halo", "triples"))
        return cls(len(parts), own, halo, in_pieces(parts), triples if stored else None)

    @classmethod
    def of(cls, task: AlignmentTask, processes: int) -> Share | None:
        """As far as it is known before anything is divided; None with one process."""
        if processes == 1:
            return None
        if isinstance(task, StoredTask) and task.shards.parts == processes:
            return cls.largest(part_sizes(task, processes), stored=True)
        own, triples = task.num_entities / processes, task.source.num_triples + task.target.num_triples
        return cls(processes, own, FETCHED * own, triples=STORED_TRIPLES * triples / processes if isinstance(task, StoredTask) else None)


def memory_needed(sizes: Sizes, config: RunConfig, *, structure_ready: bool = False, share: Share | None = None) -> float:
    """MiB at the peak; of the process with a share, where there are several."""
    entities = sum(sizes.entities)
    if share is not None:
        return _divided_memory(sizes, config, share)
    matrix = 4.0 * entities * embedding_width(sizes, config)
    pool = 4.0 * sizes.test**2
    after = FINAL_MATRICES * matrix + (pool if pool <= HELD_BYTES else 0.0) + TILES_MIB * MIB
    if config.is_baseline:
        return PROGRAM_MIB + (max(4.0 * baseline_effort(sizes, config).numbers, after) + _data_bytes(sizes)) / MIB
    step, parameters = _step_bytes(sizes, config, entities), _parameter_bytes(sizes, config, entities)
    work = MATRICES_NAMES * matrix if structure_ready else max(step, after) + parameters
    return PROGRAM_MIB + (work + _data_bytes(sizes)) / MIB


def _step_bytes(sizes: Sizes, config: RunConfig, own: float, share: float = 1.0) -> float:
    """Of a step that passes the messages to a number of entities and compares pairs with a share of the candidates."""
    encoder = config.encoder
    layers = LAYER_MATRICES * max(encoder.layers, 1) * 4.0 * own * encoder.num_channels * encoder.dim
    return layers + SAMPLE_MATRICES * 4.0 * share * sampled_entities(sizes, config) * encoder.output_width + SCRAP_MIB * MIB


def _parameter_bytes(sizes: Sizes, config: RunConfig, own: float) -> float:
    """Of the parameters, their gradient and the optimiser's state, with the features of a number of entities."""
    encoder = config.encoder
    return 3 * 4.0 * ((own + 2 * sum(sizes.relations)) * encoder.dim + 2 * encoder.output_width**2)


def _data_bytes(sizes: Sizes) -> float:
    return BYTES_A_FACT * (sum(sizes.triples) + sum(sizes.attributes)) + BYTES_AN_ENTITY * sum(sizes.entities)


SEARCH_PASSES = 2
"""Over the scores, where several processes search; one process needs a single one."""
FETCHED = 0.35
"""Rows of others that a process fetches beside its own, on sparse graphs: before a graph is divided, no more is known."""
STORED_TRIPLES = 1.5
"""Triples with an entity of a part, in equal parts of all."""


@dataclass(frozen=True)
class Division:
    """What to expect of a training that is divided among processes on machines of their own, by the parts that its entities would be in.

    Attributes:
        processes: how many.
        own, halo: entities of the largest part, and rows that it fetches from others.
        fetched: how: all at once, or partner by partner.
        sent: bytes that a process sends in a step, at most.
        memory: MiB of a process at its peak, at most.
        seconds: of the whole run, transfers of ``NETWORK`` bytes a second included.
    """

    processes: int
    own: int
    halo: int
    fetched: str
    sent: float
    memory: float
    seconds: float


def estimate_division(task: AlignmentTask, config: RunConfig, processes: int, alone: Estimate) -> Division:
    """Divide a task as ``torchrun -m engine train`` would, and estimate what comes of it.

    Args:
        task: with its triples, or from a shard folder of as many parts.
        config: all settings.
        processes: at least 2, at most as many as the smaller graph has entities.
        alone: the same training in one process.

    Raises:
        TrainingError: too many processes.
    """
    check_processes(task, processes)
    parts = part_sizes(task, processes)
    largest = Share.largest(parts, stored=isinstance(task, StoredTask))
    sizes, encoder = task_sizes(task), config.encoder
    shared = 2 * task.num_relations * encoder.dim + encoder.output_width * (encoder.width + encoder.proxies + 1)
    pairs = min(len(task.train_links), batch_size(config, len(task.train_links)))
    sent = max(step_bytes(part.sent, part.halo, processes, encoder, pairs, shared, again=largest.pieces) for part in parts)
    share = max(part.triples for part in parts) / max(sum(sizes.triples), 1)
    work = count_work(sizes, config)
    steps = sum(epochs * steps for epochs, steps in zip(work.epochs, work.steps, strict=True))
    return Division(
        processes=processes,
        own=int(largest.own),
        halo=int(largest.halo),
        fetched=fetching(largest.pieces),
        sent=sent,
        memory=_divided_memory(sizes, config, largest),
        seconds=alone.seconds - alone.training * (1 - share) - alone.after * (1 - SEARCH_PASSES / processes) + steps * sent / NETWORK,
    )


def _divided_memory(sizes: Sizes, config: RunConfig, share: Share) -> float:
    """MiB at the peak of one of several processes."""
    encoder = config.encoder
    searched = FINAL_MATRICES * 4.0 * share.own * encoder.output_width + TILES_MIB * MIB
    fetched = PIECES * min(PIECE_ROWS, share.halo) if share.pieces else (encoder.layers + 2) * share.halo
    step = _step_bytes(sizes, config, share.own, 1 / share.processes) + 4.0 * fetched * encoder.num_channels * encoder.dim
    data = _data_bytes(sizes) if share.triples is None else BYTES_A_STORED_TRIPLE * share.triples + BYTES_A_STORED_ENTITY * sum(sizes.entities)
    return PROGRAM_MIB + (max(step, searched) + _parameter_bytes(sizes, config, share.own) + data) / MIB


def check_memory(sizes: Sizes, config: RunConfig, available: float | None, share: Share | None = None) -> str:
    """A warning where memory will be short; "" where it suffices, or is unknown.

    Args:
        sizes: of the data.
        config: all settings.
        available: MiB for this process.
        share: what this one of several processes has of it.

    Raises:
        TrainingError: it needs more than there is; says what would fit.
    """
    needed = memory_needed(sizes, config, share=share)
    if available is None or needed * 1.3 < available or not config.training.check_memory:
        return ""
    fits = 0 if config.is_baseline else largest_dim(sizes, config, available / 1.3, share)
    advice = f"encoder.dim={fits} would fit" if fits else "no encoder.dim is small enough, so use a larger machine or smaller graphs"
    if config.is_baseline:
        advice = "use a smaller baseline.dim or baseline.width"
    requirement = need_words(needed, available)
    if needed > available:
        raise TrainingError(f"this training needs {requirement}; {advice} (training.check_memory=no trains without this check).")
    return f"This training needs {requirement}, which may not be enough; {advice}."


def largest_dim(sizes: Sizes, config: RunConfig, available: float, share: Share | None = None) -> int:
    """The largest ``encoder.dim`` up to the one asked for, in steps of 10 (below 10 of 1), whose training fits; 0 if none does."""
    wanted: int = config.encoder.dim
    dims = [*range(wanted - wanted % 10, 9, -10), *range(min(wanted, 9), 0, -1)]
    return next((dim for dim in dims if memory_needed(sizes, config.with_values({"encoder.dim": dim}), share=share) <= available), 0)


# Correction by earlier runs


def correction(work: Work, machine: Machine, threads: int | None, earlier: Iterable[RunSummary]) -> tuple[float, int]:
    """By what factor this machine's finished runs took longer than estimated, and how many runs say so.

    The median of those nearest in size; the fewer they are, the less of it: one alone may have compiled the kernels or met a busy hour.
    """
    found = []
    own = work.seconds(machine)
    wanted = threads or usable_cores()
    for summary in _of_this_machine(earlier, wanted):
        if (measured := _measured(summary.manifest or {}, machine)) is not None:
            estimated, seconds = measured
            found.append((abs(math.log(estimated / max(own, 1e-9))), seconds / estimated))
    nearest = [ratio for _, ratio in sorted(found)[:NEAREST_RUNS]]
    if not nearest:
        return 1.0, 0
    factor = min(max(statistics.median(nearest), FACTORS[0]), FACTORS[1])
    return float(factor ** (len(nearest) / (len(nearest) + 1))), len(nearest)


def _of_this_machine(earlier: Iterable[RunSummary], threads: int) -> list[RunSummary]:
    """The latest runs that this machine trained on its CPU with this number of threads, as far as manifests show."""
    here = platform.platform()
    fitting = []
    for one in earlier:
        manifest = one.manifest or {}
        same = manifest.get("platform") == here and manifest.get("threads") == threads and manifest.get("device") == "cpu"
        if same and one.state == "finished" and one.variant in ("basic", "semi"):
            fitting.append(one)
    return sorted(fitting, key=lambda one: one.created, reverse=True)[:LATEST_RUNS]


def _measured(manifest: Mapping[str, Any], machine: Machine) -> tuple[float, float] | None:
    """Estimated and true seconds of a run's training; None for one without these figures."""
    try:
        config, training = RunConfig.from_dict(manifest["config"]), manifest["training"]
        seconds, precision = float(training["seconds"]), training.get("precision", "float32")
        estimated = count_work(Sizes.of_manifest(manifest["data"]), config, precision).seconds(machine)
    except (KeyError, TypeError, ValueError, ConfigError):
        return None
    return (estimated, seconds) if estimated >= LEAST_SECONDS and seconds >= LEAST_SECONDS else None


def duration_range(estimate: Estimate) -> str:
    """For people: 'about 12 min 30 s (8 min 20 s to 21 min 15 s)'."""
    compiling = f", {duration(estimate.compiling)} of it for compiling, once on this machine" if estimate.compiling else ""
    return f"about {duration(estimate.seconds)} ({duration(estimate.low)} to {duration(estimate.high)}){compiling}"
