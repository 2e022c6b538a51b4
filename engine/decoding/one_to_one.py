"""One-to-one decoders: stable matching and the optimal assignment.

Equal scores are broken by a hash of the pair, not by index: in many data sets counterparts are at about the same place of both files, and an order
by index would turn ties into hits.

Where the known links give entities several counterparts (:mod:`engine.decoding.capacity`), both give an entity as many pairs as its capacity allows;
with a capacity of 1 on both sides nothing is different.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from engine.decoding.assignment import cheapest_matching
from engine.decoding.base import NONE, Decoding, decided, decided_on_several, register_decoder_of_several
from engine.decoding.candidates import Candidates, Lists, grouped
from engine.decoding.capacity import ONE, Capacity
from engine.decoding.kernels import take_greedily, take_with_room
from engine.util.arrays import IntArray, spans

DENSE_CELLS = 1 << 22
"""Pairs up to which a dense matrix is the quicker way."""
SHUFFLE_SEED = 0


@register_decoder_of_several
@dataclass(frozen=True)
class StableDecoder:
    """Stable matching: no two entities prefer each other to what they got (Gale and Shapley, 1962).

    Both sides judge a pair by the same CSLS, so the stable matching is unique up to ties, and taking the best pair whose two entities are still
    free, again and again, finds it: no proposals are needed. An entity whose candidates are all taken gets none.
    """

    name: ClassVar[str] = "stable"
    title: ClassVar[str] = "one-to-one, stable matching over all candidates"
    abstains: ClassVar[bool] = False
    capacity: Capacity = ONE

    @property
    def one_to_one(self) -> bool:
        return self.capacity == ONE

    def decode(self, candidates: Candidates) -> Decoding:
        order = np.argsort(descending_keys(candidates.csls, scrambled(candidates.codes)))
        if not self.one_to_one:
            taken = np.zeros(len(candidates), dtype=np.bool_)
            of_source, of_target = (np.full(count, most, dtype=np.int64) for count, most in zip(candidates.shape, self.capacity, strict=True))
            take_with_room(order, candidates.sources, candidates.targets, of_source, of_target, taken)
            return decided_on_several(self.name, candidates, np.flatnonzero(taken), self.capacity)
        by_source, by_target = (np.full(count, NONE, dtype=np.int64) for count in candidates.shape)
        take_greedily(order, candidates.sources, candidates.targets, by_source, by_target)
        return decided(self.name, candidates, candidates.csls, by_source, by_target)


@register_decoder_of_several
@dataclass(frozen=True)
class AssignmentDecoder:
    """The one-to-one pairs with the largest sum of CSLS, as many of them as there can be.

    Where all pairs are candidates that is the linear assignment problem. On lists (:mod:`engine.decoding.assignment`) each entity of the smaller
    pool has a private stand-in that is worth less than any candidate: one that ends with it gets no counterpart. With capacities, an entity that may
    have several counterparts takes part several times; where both sides may, it is a linear programme, whose best corner is a matching.
    """

    name: ClassVar[str] = "assignment"
    title: ClassVar[str] = "one-to-one, highest total score"
    abstains: ClassVar[bool] = False
    capacity: Capacity = ONE

    @property
    def one_to_one(self) -> bool:
        return self.capacity == ONE

    def decode(self, candidates: Candidates) -> Decoding:
        if not self.one_to_one:
            return decided_on_several(self.name, candidates, best_of_several(candidates, self.capacity), self.capacity)
        by_source, by_target = (np.full(count, NONE, dtype=np.int64) for count in candidates.shape)
        if len(candidates):
            positions = best_assignment(candidates)
            by_source[candidates.sources[positions]] = positions
            by_target[candidates.targets[positions]] = positions
        return decided(self.name, candidates, candidates.csls, by_source, by_target)


def best_assignment(candidates: Candidates) -> IntArray:
    """Positions of the one-to-one pairs with the largest sum of CSLS; there must be candidates."""
    whole = candidates.complete and len(candidates) <= DENSE_CELLS
    return dense_assignment(candidates) if whole else sparse_assignment(candidates)


def best_of_several(candidates: Candidates, capacity: Capacity) -> IntArray:
    """Positions of the pairs with the largest sum of CSLS, counted from below the lowest, with no entity more often than its capacity allows."""
    if not len(candidates):
        return np.empty(0, dtype=np.int64)
    if min(capacity) > 1:
        return best_corner(candidates, capacity)
    several, origins = repeated(candidates, capacity)
    positions: IntArray = origins[best_assignment(several)]
    return positions


def repeated(candidates: Candidates, capacity: Capacity) -> tuple[Candidates, IntArray]:
    """Candidates of which each entity is as many rows as its capacity says, and the position that each pair had."""
    times = capacity.source * capacity.target
    origins = np.tile(np.arange(len(candidates), dtype=np.int64), times)
    copies = np.repeat(np.arange(times, dtype=np.int64), len(candidates))
    sources = candidates.sources[origins] * capacity.source + copies % capacity.source
    targets = candidates.targets[origins] * capacity.target + copies // capacity.source
    order = np.lexsort([targets, sources])
    origins = origins[order]
    shape = candidates.shape[0] * capacity.source, candidates.shape[1] * capacity.target
    similarity, csls = candidates.similarity[origins], candidates.csls[origins]
    return replace(candidates, shape=shape, sources=sources[order], targets=targets[order], similarity=similarity, csls=csls), origins


def best_corner(candidates: Candidates, capacity: Capacity) -> IntArray:
    """The same as a linear programme over the pairs: the corners of what is allowed are whole numbers, since every pair has two ends."""
    from scipy import sparse  # slow to load, and seldom needed
    from scipy.optimize import linprog

    shuffle = np.random.default_rng(SHUFFLE_SEED).permutation(len(candidates))
    worth = candidates.csls[shuffle].astype(np.float64) - float(candidates.csls.min()) + 1
    n, m = candidates.shape
    rows = np.concatenate([candidates.sources[shuffle], n + candidates.targets[shuffle]])
    columns = np.tile(np.arange(len(shuffle)), 2)
    ends = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n + m, len(shuffle)))
    most = np.repeat(capacity, (n, m)).astype(np.float64)
    solved = linprog(-worth, A_ub=ends, b_ub=most, bounds=(0, 1), method="highs-ds")
    taken: IntArray = shuffle[np.flatnonzero(solved.x > 0.5)]
    return taken


def scrambled(codes: IntArray) -> npt.NDArray[np.uint64]:
    """A fixed pseudo-random number for each code (the finaliser of splitmix64: a bijection)."""
    mixed = codes.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def descending_keys(scores: npt.NDArray[np.float32], ties: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Numbers that ascend as the scores descend, and among equal ones as the upper half of ``ties`` ascends: one plain sort instead of two."""
    bits = (scores + np.float32(0)).view(np.uint32)  # -0 becomes 0; for positive values order is that of the bits, for negative ones the reverse
    ascending = np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))
    return (~ascending).astype(np.uint64) << np.uint64(32) | ties >> np.uint64(32)


def dense_assignment(candidates: Candidates) -> IntArray:
    """Positions of the best pairs where every pair is a candidate."""
    from scipy.optimize import linear_sum_assignment  # slow to load, and only for small pools

    n, m = candidates.shape
    shuffle = np.random.default_rng(SHUFFLE_SEED).permutation(m)
    rows, columns = linear_sum_assignment(candidates.csls.reshape(n, m)[:, shuffle], maximize=True)
    positions: IntArray = (rows * m + shuffle[columns]).astype(np.int64)
    return positions


def sparse_assignment(candidates: Candidates) -> IntArray:
    """Positions of the best pairs among the candidates, with stand-ins that make a full matching possible."""
    n, m = candidates.shape
    rows, columns, lists = (candidates.sources, candidates.targets, candidates.by_target)
    if n > m:
        rows, columns, lists = columns, rows, candidates.by_source
    edges = in_random_order(lists)
    indptr, positions = grouped(rows[edges], min(n, m))
    edges = edges[positions]  # by row, and within a row in the same random order of the columns
    costs = float(candidates.csls.max()) - candidates.csls[edges].astype(np.float64)
    chosen = cheapest_matching(indptr, columns[edges], costs, 1.0 + float(costs.max()), max(n, m))
    matched: IntArray = edges[chosen[chosen != NONE]]
    return matched


def in_random_order(lists: Lists) -> IntArray:
    """All edges, list by list, the lists in a random order."""
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(lists.indptr) - 1)
    starts, lengths = lists.indptr[order], np.diff(lists.indptr)[order]
    edges: IntArray = lists.edges[spans(starts, lengths)]
    return edges
