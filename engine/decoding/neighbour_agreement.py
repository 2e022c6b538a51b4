"""How much of two entities' neighbourhoods is aligned to each other: what a probability takes from the graphs.

Two neighbours are aligned to each other if a seed link ties them, or if each is the other's clear best among the same candidates and neither has
a seed link. Links kept for validation or testing play no part. Every neighbour counts once, by whatever relations and in whatever direction it is
reached. Weighing neighbours by how rare they are, or relations by how they go together, as the decoder "propagation" does, made the probabilities of
world and europe no better than this, and the decoder's agreement made those of entities without a counterpart too high.

Cost: a sparse product of one graph's neighbour lists with the alignment, O(T); then O(sum of the degrees of both ends) over the pairs that are asked
about, in parts of at most ``MOST_ENTRIES``, so that hubs that many pairs share take time but no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from engine.decoding.candidates import Candidates
from engine.decoding.graph_evidence import GraphEvidence
from engine.decoding.nearest import MutualDecoder
from engine.util.arrays import IntArray

FloatArray = npt.NDArray[np.float64]
MOST_ENTRIES = 4_000_000
"""Neighbours of pairs that are held at once: about 100 MiB."""


@dataclass(frozen=True)
class Aligned:
    """Of P pairs of entities.

    Attributes:
        count: (P,) neighbours of the target that are aligned to a neighbour of the source.
        share: (P,) twice that, of all neighbours of both ends: 1 where all are aligned to each other, 0 where none are or there are none.
    """

    count: IntArray
    share: FloatArray


def aligned_neighbours(evidence: GraphEvidence, candidates: Candidates, positions: IntArray) -> Aligned:
    """How much of the neighbourhoods of candidate pairs is aligned.

    Args:
        evidence: both graphs and the seed links; its pools must be those of the candidates.
        candidates: all that compete; their mutual best pairs count as aligned.
        positions: (P,) of the pairs in question.
    """
    anchors = evidence.anchors(candidates, mutual_best(candidates))
    shape = len(evidence.source.norms), len(evidence.target.norms)
    alignment = sparse.csr_array((np.ones(len(anchors.sources), dtype=np.float32), (anchors.sources, anchors.targets)), shape=shape)
    expected = (evidence.source.neighbourhoods @ alignment).tocsr()
    expected.data[:] = 1.0  # a target neighbour that two of the source's are aligned to is one neighbour still
    sources, targets = evidence.source_pool[candidates.sources[positions]], evidence.target_pool[candidates.targets[positions]]
    found = np.zeros(len(positions), dtype=np.int64)
    around = np.diff(expected.indptr), np.diff(evidence.target.neighbourhoods.indptr)
    for part in parts(around[0][sources].astype(np.int64) + around[1][targets]):
        common = expected[sources[part]].multiply(evidence.target.neighbourhoods[targets[part]])
        found[part] = np.asarray(common.sum(axis=1)).ravel().round().astype(np.int64)
    size = np.diff(evidence.source.neighbourhoods.indptr)[sources].astype(np.int64) + around[1][targets]
    return Aligned(found, np.minimum(2 * found / np.maximum(size, 1), 1.0))


def mutual_best(candidates: Candidates) -> FloatArray:
    """(P,) 1 for pairs that are each other's best and alone in that, else 0."""
    chosen = MutualDecoder().decode(candidates).pairs()
    mutual = np.zeros(len(candidates))
    mutual[chosen] = 1.0
    return mutual


def parts(sizes: IntArray) -> Iterator[slice]:
    """Slices of consecutive pairs that have at most ``MOST_ENTRIES`` neighbours together, or are a single pair."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + MOST_ENTRIES, "right")), start + 1)
        yield slice(start, stop)
        start = stop
