"""Candidate lists: the pairs that a decoder looks at, a few per entity instead of all n x m.

Each source keeps its K best targets and each target its K best sources by CSLS; the union of these pairs is held once, in compressed rows. Ranking by
CSLS and not by cosine matters: hubs would fill the lists of everyone, and Sinkhorn, whose scaling removes hubs anyway, would miss the candidates
behind them. Memory: about 40 bytes a pair, at most K (n + m) pairs, plus one block of scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from engine.data.knowledge_graph import Side
from engine.decoding.kernels import group_positions, merge_lists
from engine.errors import ConfigError
from engine.search import TIE_TOLERANCE, CslsTopK, Hubness, SearchIndex, Similarity, csls_topk, pair_csls, tie_tolerance
from engine.util.arrays import IntArray, row_pointers

FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
TOP = 100
"""Candidates kept for each entity of pools that are not too large for it."""
LISTED = 8_000_000
"""Places in the lists of all entities, from which on these get shorter: decoders take some hundred bytes for each."""
LEAST_TOP = 20
"""Candidates kept for each entity in any case."""


PAIRS_AT_ONCE = 2**20
"""Candidate pairs that are computed with in float64 at a time."""


class Lists(NamedTuple):
    """The candidate lists of one graph's entities: ``edges[indptr[i]:indptr[i + 1]]`` are the positions of entity i's pairs.

    Attributes:
        indptr: (entities + 1,) int64.
        edges: (P,) int64 positions in the per-pair arrays.
        others: (P,) int64 the entity at the other end of each pair, by position (not in the order of ``edges``).
    """

    indptr: IntArray
    edges: IntArray
    others: IntArray


@dataclass(frozen=True)
class Candidates:
    """P candidate pairs of n sources and m targets, ordered by source, then target.

    Entities are rows of the pools that the candidates were built from.

    Attributes:
        shape: (n, m).
        sources, targets: (P,) int64.
        similarity: (P,) float32 cosine, or its replacement.
        csls: (P,) float32.
        top: K; a list holds every candidate of rank <= K, and may hold more.
        tolerance: CSLS scores closer than this are equal.
    """

    shape: tuple[int, int]
    sources: IntArray  # (P,)
    targets: IntArray  # (P,)
    similarity: FloatArray  # (P,)
    csls: FloatArray  # (P,)
    top: int
    tolerance: float = TIE_TOLERANCE

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def complete(self) -> bool:
        """Whether every pair is a candidate."""
        return len(self) == self.shape[0] * self.shape[1]

    @cached_property
    def by_source(self) -> Lists:
        return Lists(row_pointers(self.sources, self.shape[0]), np.arange(len(self), dtype=np.int64), self.targets)

    @cached_property
    def by_target(self) -> Lists:
        return Lists(*grouped(self.targets, self.shape[1]), self.sources)

    def lists(self, side: Side) -> Lists:
        """Candidates of each entity of one graph."""
        return self.by_source if side == "source" else self.by_target

    @property
    def codes(self) -> IntArray:
        """(P,) int64 one number for each pair, ascending."""
        return self.sources * self.shape[1] + self.targets

    def positions(self, sources: IntArray, targets: IntArray) -> IntArray:
        """(L,) where pairs are among the candidates, -1 for those that are not."""
        wanted, codes = sources * self.shape[1] + targets, self.codes
        places = np.searchsorted(codes, wanted)
        places[places == len(codes)] = 0
        return np.where(codes[places] == wanted, places, -1) if len(codes) else np.full(len(wanted), -1, dtype=np.int64)

    def among(self, links: IntArray) -> BoolArray:
        """(P,) which pairs are among the (L, 2) links."""
        found, places = np.zeros(len(self), dtype=np.bool_), self.positions(links[:, 0], links[:, 1])
        found[places[places >= 0]] = True
        return found

    def kept(self, mask: BoolArray) -> Candidates:
        """The pairs of a (P,) mask; scores stay as they are."""
        parts = {name: getattr(self, name)[mask] for name in ("sources", "targets", "similarity", "csls")}
        return replace(self, **parts)


def list_length(shape: tuple[int, int], wanted: int | None = None) -> int:
    """K, candidates kept for each entity of two pools: the wanted number, or else what suits their size."""
    return min(max(LISTED // max(sum(shape), 1), LEAST_TOP), TOP) if wanted is None else wanted


def grouped(keys: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """(count + 1,) pointers and (P,) positions: those of key i, ascending, are ``positions[pointers[i]:pointers[i + 1]]``."""
    indptr, positions = row_pointers(keys, count), np.empty(len(keys), dtype=np.int64)
    group_positions(keys, indptr, positions)
    return indptr, positions


@torch.no_grad()
def find_candidates(
    similarity: Similarity,
    k: int = 10,
    top: int | None = None,
    index: str | SearchIndex = "exact",
    terms: Hubness | None = None,
) -> Candidates:
    """Candidates of two pools. A zero row, of which nothing is known, is no candidate and has none.

    Args:
        similarity: (n, m), by structure, names or both.
        k: neighbours in CSLS's hubness terms.
        top: K, candidates an entity; clipped to the other pool's size. None: as many as :func:`list_length` says.
        index: name of a registered index, or an instance.
        terms: hubness of these pools where it is known already (``k`` is not used then).

    Raises:
        TrainingError: a value is not finite.
        ConfigError: unknown index, or one that cannot search this similarity, or K below 1.
    """
    top = list_length(similarity.shape, top)
    if top < 1:
        raise ConfigError(f"the number of candidates per entity must be at least 1; got {top}.")
    return listed_candidates(similarity, csls_topk(similarity, k, top, index, terms), top)


def listed_candidates(similarity: Similarity, found: CslsTopK, top: int) -> Candidates:
    """Candidates from the ``top`` best matches of both directions."""
    forward, backward = found.source_to_target, found.target_to_source
    sources, targets, places = merged(forward.indices.cpu().numpy(), backward.indices.cpu().numpy())
    cosine, csls = (
        np.concatenate([a.cpu().numpy().ravel(), b.cpu().numpy().ravel()])[places]
        for a, b in ((forward.cosine, backward.cosine), (forward.csls, backward.csls))
    )
    candidates = Candidates(similarity.shape, sources, targets, cosine, csls, top, tie_tolerance(similarity))
    zero_source, zero_target = (part.cpu().numpy() for part in similarity.zero_rows())
    if not (zero_source.any() or zero_target.any()):
        return candidates
    return candidates.kept(~zero_source[sources] & ~zero_target[targets])


def with_pairs(candidates: Candidates, codes: IntArray, similarity: Similarity, terms: Hubness) -> Candidates:
    """The candidates, and further pairs with the scores that pairs get everywhere.

    Args:
        candidates: of two pools.
        codes: (Q,) of the further pairs (:attr:`Candidates.codes`), each once; some may be candidates already.
        similarity: (n, m) of the pools.
        terms: hubness of the pools.
    """
    new = codes[~np.isin(codes, candidates.codes)]
    found = pair_csls(similarity, torch.from_numpy(np.stack(np.divmod(new, candidates.shape[1]), axis=1)), terms)
    every = np.concatenate([candidates.codes, new])
    order = np.argsort(every, kind="stable")
    cosine, csls = (
        np.concatenate([known, more.float().cpu().numpy()])[order]
        for known, more in ((candidates.similarity, found.cosine), (candidates.csls, found.csls))
    )
    sources, targets = np.divmod(every[order], candidates.shape[1])
    return Candidates(candidates.shape, sources, targets, cosine, csls, candidates.top, candidates.tolerance)


def merged(of_source: IntArray, of_target: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Distinct pairs of both directions' (n, K) and (m, K') lists: (P,) sources and targets, by source, then target, and the position of each pair in
    the flattened lists, one after the other."""
    n, top = len(of_source), max(of_target.shape[1], 1)
    places = np.argsort(of_source, axis=1)
    ascending = np.take_along_axis(of_source, places, axis=1)
    places += np.arange(n, dtype=np.int64)[:, None] * of_source.shape[1]
    indptr, edges = grouped(of_target.ravel(), n)
    sources, targets, origins = (np.empty(of_source.size + of_target.size, dtype=np.int64) for _ in range(3))
    count = merge_lists(ascending, places, indptr, edges, top, sources, targets, origins)
    for part in (sources, targets, origins):
        part.resize(count, refcheck=False)  # where they lie: three more arrays of this length would be much
    return sources, targets, origins
