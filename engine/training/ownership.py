"""Which of several processes owns which entity, and the triples that it needs for them: from the whole task, or from its part of a shard folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from engine.data import AlignmentTask
from engine.data.shards import AGAIN, ShardFolder, StoredTask
from engine.errors import DataError, TrainingError
from engine.model.partition import Owners, Triples, partition_entities
from engine.model.shard import ShardSizes, shard_sizes
from engine.util.arrays import IntArray, places
from engine.util.distributed import Ranks


def owned_triples(task: AlignmentTask, ranks: Ranks) -> tuple[Owners, Triples]:
    """The process of each entity, and triples among which are all with an entity of this process. All processes call it together.

    Raises:
        DataError: a shard folder's file is missing or damaged.
        TrainingError: the parts of a shard folder cannot be divided among the processes.
    """
    if isinstance(task, StoredTask):
        return stored_triples(task, ranks)
    triples, links = task.stacked_triples(), task.stacked_links(task.train_links)
    return ranks.first(lambda: partition_entities(triples, task.num_entities, links, ranks.size)), triples


def part_sizes(task: AlignmentTask, processes: int) -> list[ShardSizes]:
    """How much each of several processes would hold; nothing is read where a shard folder says so."""
    if isinstance(task, StoredTask) and task.shards.parts == processes:
        return [ShardSizes(**part) for part in task.shards.manifest["parts"]]
    triples = task.stacked_triples()
    owners = partition_entities(triples, task.num_entities, task.stacked_links(task.train_links), processes)
    return [shard_sizes(triples, owners, part) for part in range(processes)]


def stored_triples(task: StoredTask, ranks: Ranks) -> tuple[Owners, Triples]:
    """Of a shard folder: each process takes one part, several, or one of several pieces of a part."""
    shards, parts, size, rank = task.shards, task.shards.parts, ranks.size, ranks.rank
    if parts % size and size % parts:
        fitting = " or ".join(str(number) for number in range(1, parts + 1) if parts % number == 0)
        others = f"start {fitting} or a multiple of {parts} of them, or {AGAIN}"
        raise TrainingError(f"{shards.path} has {parts} parts, which {size} processes cannot share evenly; {others}.")
    each = parts // size
    owners, triples = read_by_all(shards, range(rank * each, (rank + 1) * each) if each else [rank * parts // size], ranks)
    return ((owners // each).astype(np.int32) if each else pieces(task, triples, ranks)), triples


def read_by_all(shards: ShardFolder, wanted: Sequence[int], ranks: Ranks) -> tuple[Owners, IntArray]:
    """The owners and the triples of some parts, of which two may have the same; where one process cannot read its own, all end at once."""
    failure, read = None, []
    try:
        read = [shards.triples(part) for part in wanted]
    except DataError as error:
        failure = error
    failed = ranks.most(0 if failure is None else ranks.rank + 1)
    if failure is not None:
        raise failure
    if failed:
        raise TrainingError(f"process {failed - 1} cannot read its part of {shards.path}; its own message says why.")
    return shards.owners, np.concatenate(read)


def pieces(task: StoredTask, triples: IntArray, ranks: Ranks) -> Owners:
    """The process of each entity where several share each part: the first of them divides it, and all learn of all."""
    owners, links = task.shards.owners, task.stacked_links(task.train_links)
    each = ranks.size // task.shards.parts
    mine, piece = divmod(ranks.rank, each)
    found = torch.zeros(len(owners), dtype=torch.int64)
    if piece == 0:
        own = np.flatnonzero(owners == mine)
        if len(own) < each:
            raise TrainingError(f"{each} processes cannot share the {len(own)} entities of part {mine + 1} of {task.shards.path}; start fewer.")
        place = places(own, len(owners))
        within = (owners[triples[:, [0, 2]]] == mine).all(1)
        together = (owners[links] == mine).all(1)
        local = np.stack([place[triples[within, 0]], triples[within, 1], place[triples[within, 2]]], axis=1)
        divided = partition_entities(local, len(own), place[links[together]], each)
        found[torch.from_numpy(own)] = torch.from_numpy(mine * each + divided.astype(np.int64))
    return ranks.sum(found).numpy().astype(np.int32)
