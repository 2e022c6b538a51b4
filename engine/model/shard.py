"""The part of a stacked graph that one of several processes holds (docs/scaling.md).

A process owns entities: their features, gradient and optimiser state, and all messages to them. Entities of other processes that these messages come
from are its *halo*. Every operation that reads neighbours fetches their rows, and their gradient goes back to the owners in the backward pass
(:mod:`engine.model.exchange`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from engine.config import EncoderConfig
from engine.model.adjacency import to_torch
from engine.model.exchange import Exchange, Neighbours, fetches_in_pieces, reached_by
from engine.model.losses.kernels import LEVELS
from engine.model.partition import Owners, Triples
from engine.util.arrays import IntArray, distinct, places
from engine.util.distributed import Ranks, ring_bytes

SUMS_BYTES = 8 * (3 + 2 * LEVELS + 1)
"""Of a row of the loss: moments, masses and counts of the levels, mass of what is kept; the highest value comes on top."""


@dataclass(frozen=True)
class Shard:
    """What a process holds of a stacked graph of E entities.

    Attributes:
        ranks: the processes.
        owners: (E,) the process of each entity.
        own: (n,) stacked indices of the entities that this process owns, ascending. Their local index is the position here.
        halo: (m,) those that are fetched, by owner, then ascending. Their local indices follow.
        exchange: how halo rows are fetched.
        neighbours: how operations on neighbours go through them.
        device: of the tensors.
    """

    ranks: Ranks
    owners: Owners
    own: IntArray
    halo: IntArray
    exchange: Exchange
    neighbours: Neighbours
    device: torch.device

    @property
    def num_entities(self) -> int:
        """E, of all processes together."""
        return len(self.owners)

    @cached_property
    def own_index(self) -> Tensor:
        """(n,) as a tensor."""
        return to_torch(self.own, self.device)

    @cached_property
    def by_owner(self) -> IntArray:
        """(E,) all entities, those of process 0 first."""
        return np.argsort(self.owners, kind="stable")

    @cached_property
    def sizes(self) -> list[int]:
        """Number of entities of each process."""
        counts: list[int] = np.bincount(self.owners, minlength=self.ranks.size).tolist()
        return counts

    def gathered(self, rows: Tensor) -> Tensor:
        """(n, ...) of the own entities -> (E, ...) of all in process 0, and (0, ...) in the others."""
        leads, nothing = self.ranks.rank == 0, [0] * self.ranks.size
        found = self.ranks.swap(rows.contiguous(), [len(rows), *nothing[1:]], self.sizes if leads else nothing)
        if not leads:
            return found
        everything = torch.empty_like(found)
        everything[to_torch(self.by_owner, rows.device)] = found
        return everything


def make_shard(triples: Triples, owners: Owners, ranks: Ranks, device: torch.device | str = "cpu") -> tuple[Shard, IntArray]:
    """What a process holds, and (t, 3) all triples with an own entity, by local indices.

    Args:
        triples: (T, 3) stacked head, relation, tail, of which those with an own entity are looked at.
        owners: (E,) the process of each entity.
        ranks: the processes, this one among them.
        device: where its tensors are.
    """
    device = torch.device(device)
    held, halo, sent = cut_off(triples, owners, ranks.rank)
    own = np.flatnonzero(owners == ranks.rank)
    place = places(np.concatenate([own, halo]), len(owners))
    local = np.stack([place[held[:, 0]], held[:, 1], place[held[:, 2]]], axis=1)
    exchange = Exchange(
        ranks,
        to_torch(place[sent[:, 1]], device),
        np.bincount(sent[:, 0], minlength=ranks.size).tolist(),
        np.bincount(owners[halo], minlength=ranks.size).tolist(),
    )
    return Shard(ranks, owners, own, halo, exchange, reached_by(exchange, len(own), len(owners)), device), local


def cut_off(triples: Triples, owners: Owners, part: int) -> tuple[Triples, IntArray, IntArray]:
    """Where a part of a graph is cut off from the others.

    Returns:
        (t, 3) the triples with an own entity; (m,) the others' entities among them, by owner, then ascending; (s, 2) the part that fetches and the
        own entity that it fetches, by part, then ascending: the order in which that part has it in its halo.
    """
    size, ends = len(owners), owners[triples[:, [0, 2]]] == part
    held, ends = triples[ends.any(1)], ends[ends.any(1)]
    crossing = ends[:, 0] != ends[:, 1]
    mine = np.where(ends[crossing, 0], held[crossing, 0], held[crossing, 2])
    others = np.where(ends[crossing, 0], held[crossing, 2], held[crossing, 0])
    by_owner = owners[others].astype(np.int64) * size
    sent = distinct(by_owner + mine)
    return held, distinct(by_owner + others) % size, np.stack([sent // size, sent % size], axis=1)


@dataclass(frozen=True)
class ShardSizes:
    """How much a part of a graph is.

    Attributes:
        own, halo: entities.
        sent: rows that others fetch.
        triples: those with an own entity.
    """

    own: int
    halo: int
    sent: int
    triples: int


def shard_sizes(triples: Triples, owners: Owners, part: int) -> ShardSizes:
    """The sizes of a part, without the part itself; arguments as of :func:`make_shard`."""
    held, halo, sent = cut_off(triples, owners, part)
    return ShardSizes(int((owners == part).sum()), len(halo), len(sent), len(held))


def in_pieces(parts: Sequence[ShardSizes]) -> bool:
    """Whether processes with these parts fetch their halo partner by partner."""
    return fetches_in_pieces(max(part.halo for part in parts), sum(part.own for part in parts), len(parts))


def step_bytes(sent: int, halo: int, processes: int, encoder: EncoderConfig, pairs: int, shared: int, *, again: bool = False) -> float:
    """Bytes that a process sends in a step, with the CPU's sparse loss.

    Rows of neighbours go out before the mean of features and before each layer, and the gradient of the halo goes back; the pairs' embeddings go to
    all, and their gradient back; sums of the softmax and the gradient of shared parameters are reduced in a ring.

    Args:
        sent: rows of the process that others fetch, counted once for each that does.
        halo: rows that it fetches.
        processes: how many there are.
        encoder: settings.
        pairs: of a step, each entity in one of them.
        shared: number of parameters that all processes share.
        again: whether the layers' rows of neighbours are fetched again for the backward pass.
    """
    number = 4  # bytes of a float32
    layers = encoder.num_channels * encoder.layers
    rows = ((sent + halo) * (int(encoder.channels != "relation") + layers) + again * sent * layers) * encoder.dim * number
    members = 2 * (2 * pairs / processes * (processes - 1)) * encoder.output_width * number
    sums = 2 * pairs * (SUMS_BYTES + number)
    return rows + members + ring_bytes(sums + shared * number, processes)
