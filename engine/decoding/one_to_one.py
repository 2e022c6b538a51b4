"""One-to-one decoders: stable matching and the optimal assignment.

Equal scores are broken by a hash of the pair, not by index: in many data sets counterparts are at about the same place of both files, and an order
by index would turn ties into hits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from engine.decoding.assignment import cheapest_matching
from engine.decoding.base import NONE, Decoding, decided, register_decoder
from engine.decoding.candidates import Candidates, Lists, grouped
from engine.decoding.kernels import take_greedily
from engine.util.arrays import IntArray, spans

DENSE_CELLS = 1 << 22
"""Pairs up to which a dense matrix is the quicker way."""
SHUFFLE_SEED = 0


@register_decoder
@dataclass(frozen=True)
class StableDecoder:
    """Stable matching: no two entities prefer each other to what they got (Gale and Shapley, 1962).

    Both sides judge a pair by the same CSLS, so the stable matching is unique up to ties, and taking the best pair whose two entities are still
    free, again and again, finds it: no proposals are needed. An entity whose candidates are all taken gets none.
    """

    name: ClassVar[str] = "stable"
    title: ClassVar[str] = "one-to-one, stable matching over all candidates"
    one_to_one: ClassVar[bool] = True
    abstains: ClassVar[bool] = False

    def decode(self, candidates: Candidates) -> Decoding:
        by_source, by_target = (np.full(count, NONE, dtype=np.int64) for count in candidates.shape)
        order = np.argsort(descending_keys(candidates.csls, scrambled(candidates.codes)))
        take_greedily(order, candidates.sources, candidates.targets, by_source, by_target)
        return decided(self.name, candidates, candidates.csls, by_source, by_target)


@register_decoder
@dataclass(frozen=True)
class AssignmentDecoder:
    """The one-to-one pairs with the largest sum of CSLS, as many of them as there can be.

    Where all pairs are candidates that is the linear assignment problem. On lists (:mod:`engine.decoding.assignment`) each entity of the smaller
    pool has a private stand-in that is worth less than any candidate: one that ends with it gets no counterpart.
    """

    name: ClassVar[str] = "assignment"
    title: ClassVar[str] = "one-to-one, highest total score"
    one_to_one: ClassVar[bool] = True
    abstains: ClassVar[bool] = False

    def decode(self, candidates: Candidates) -> Decoding:
        by_source, by_target = (np.full(count, NONE, dtype=np.int64) for count in candidates.shape)
        if len(candidates):
            whole = candidates.complete and len(candidates) <= DENSE_CELLS
            positions = dense_assignment(candidates) if whole else sparse_assignment(candidates)
            by_source[candidates.sources[positions]] = positions
            by_target[candidates.targets[positions]] = positions
        return decided(self.name, candidates, candidates.csls, by_source, by_target)


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
