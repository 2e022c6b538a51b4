"""Candidate lists: the pairs that a decoder looks at, a few per entity instead of all n x m.

Each source keeps its K best targets and each target its K best sources by CSLS; the union of these pairs is held once, in compressed rows. Ranking by
CSLS and not by cosine matters: hubs would fill the lists of everyone, and Sinkhorn, whose scaling removes hubs anyway, would miss what stands
behind them. Memory: about 40 bytes a pair, at most K (n + m) pairs, plus one block of scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.datasets.knowledge_graph import IntArray, Side
from engine.errors import ConfigError
from engine.search import DEFAULT_BUDGET, Hubness, SearchIndex, TopK, csls_score, csls_topk
from engine.search.base import check_finite
from engine.search.csls import mean_value
from engine.search.exact import TILE_ROWS, HeapBest, Tile, TorchBest

FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
TOP = 100
"""Candidates kept for each entity where nothing else is asked for."""


class PairSimilarity(Protocol):
    """Similarities of n sources and m targets that can be asked for in parts."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def block(self, rows: slice, columns: slice) -> Tensor:
        """(height, width) float32."""
        ...

    def pairs(self, left: Tensor, right: Tensor) -> Tensor:
        """(P,) float64 similarities of sources ``left`` and targets ``right``."""
        ...


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
        similarity: (P,) float32 cosine, or what stands in its place.
        csls: (P,) float32.
        top: K; a list holds every candidate of rank <= K, and may hold more.
    """

    shape: tuple[int, int]
    sources: IntArray  # (P,)
    targets: IntArray  # (P,)
    similarity: FloatArray  # (P,)
    csls: FloatArray  # (P,)
    top: int

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
        return Lists(row_pointers(self.targets, self.shape[1]), np.argsort(self.targets, kind="stable").astype(np.int64), self.sources)

    def lists(self, side: Side) -> Lists:
        """Candidates of each entity of one graph."""
        return self.by_source if side == "source" else self.by_target

    @property
    def codes(self) -> IntArray:
        """(P,) int64 one number for each pair, ascending."""
        return self.sources * self.shape[1] + self.targets

    def kept(self, mask: BoolArray) -> Candidates:
        """The pairs of a (P,) mask; scores stay as they are."""
        return Candidates(self.shape, self.sources[mask], self.targets[mask], self.similarity[mask], self.csls[mask], self.top)


def row_pointers(rows: IntArray, count: int) -> IntArray:
    """(count + 1,) where each row's pairs begin in arrays sorted by row."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int64)


@torch.no_grad()
def embedding_candidates(
    source: Tensor, target: Tensor, k: int = 10, top: int = TOP, index: str | SearchIndex = "exact", terms: Hubness | None = None
) -> Candidates:
    """Candidates of two pools of embeddings.

    Args:
        source: (n, D) float32 rows of unit length.
        target: (m, D) float32 rows of unit length.
        k: neighbours in CSLS's hubness terms.
        top: K, candidates an entity; clipped to the other pool's size.
        index: name of a registered index, or an instance.
        terms: hubness of these pools where it is known already (``k`` is not used then).

    Raises:
        TrainingError: a value is not finite.
        ConfigError: unknown index, or K below 1.
    """
    check_top(top)
    found = csls_topk(source, target, k, top, index, terms)
    forward, backward = found.source_to_target, found.target_to_source
    pairs, places = merged(forward.indices, backward.indices)
    cosine, csls = (torch.cat([a.flatten(), b.flatten()])[places] for a, b in ((forward.cosine, backward.cosine), (forward.csls, backward.csls)))
    return as_candidates((len(source), len(target)), pairs, cosine, csls, top)


@torch.no_grad()
def similarity_candidates(similarity: PairSimilarity, k: int = 10, top: int = TOP, budget: int = DEFAULT_BUDGET) -> Candidates:
    """Candidates by any similarity: structure, names, or both.

    Args:
        similarity: asked for in blocks, twice (once for the hubness terms), and for the pairs that are kept.
        k: neighbours in CSLS's hubness terms.
        top: K, candidates an entity; clipped to the other pool's size.
        budget: bytes that a block may take.

    Raises:
        TrainingError: a similarity is not finite.
        ConfigError: K below 1.
    """
    check_top(top)
    n, m = similarity.shape
    of_source, of_target = scan(blocks(similarity, budget), (n, m), k)
    terms = Hubness(mean_value(of_source), mean_value(of_target), k)
    best = scan(half_csls(blocks(similarity, budget), terms), (n, m), top)
    pairs, _ = merged(best[0].indices, best[1].indices)
    left, right = pairs[:, 0], pairs[:, 1]
    exact = similarity.pairs(left, right)
    return as_candidates((n, m), pairs, exact.float(), csls_score(exact, terms.source[left], terms.target[right]).float(), top)


def check_top(top: int) -> None:
    if top < 1:
        raise ConfigError(f"the number of candidates an entity must be at least 1; got {top}.")


def blocks(similarity: PairSimilarity, budget: int) -> Iterator[Tile]:
    """All similarities, checked, in tiles of at most ``budget`` bytes."""
    n, m = similarity.shape
    if not n or not m:
        return
    height = min(n, TILE_ROWS)
    width = min(m, max(budget // (4 * height), 1))
    for top in range(0, n, height):
        for left in range(0, m, width):
            scores = similarity.block(slice(top, min(top + height, n)), slice(left, min(left + width, m))).float()
            check_finite(scores, "similarities")
            yield Tile(top, left, scores)


def half_csls(parts: Iterator[Tile], terms: Hubness) -> Iterator[Tile]:
    """The tiles of half the CSLS scores."""
    for tile in parts:
        height, width = tile.scores.shape
        rows, columns = terms.source[tile.top : tile.top + height], terms.target[tile.left : tile.left + width]
        yield Tile(tile.top, tile.left, tile.scores - rows[:, None] / 2 - columns / 2)


def scan(parts: Iterator[Tile], shape: tuple[int, int], k: int) -> tuple[TopK, TopK]:
    """The k best of each row and of each column in one pass."""
    of_source: HeapBest | TorchBest | None = None
    of_target: HeapBest | TorchBest | None = None
    for tile in parts:
        if of_source is None or of_target is None:
            device = tile.scores.device
            best = HeapBest if device.type == "cpu" else TorchBest
            of_source, of_target = best(shape[0], min(k, shape[1]), device), best(shape[1], min(k, shape[0]), device)
        of_source.take_rows(Tile(tile.top, tile.left, tile.scores.contiguous()))
        of_target.take_columns(Tile(tile.top, tile.left, tile.scores.contiguous()))
    if of_source is None or of_target is None:
        return empty_top_k(shape[0]), empty_top_k(shape[1])
    return of_source.result(), of_target.result()


def empty_top_k(count: int) -> TopK:
    return TopK(torch.empty(count, 0), torch.empty(count, 0, dtype=torch.int64))


def merged(of_source: Tensor, of_target: Tensor) -> tuple[Tensor, Tensor]:
    """(P, 2) distinct pairs of both directions' (n, K) and (m, K) lists, by source, then target; and where in the flattened lists each one stands."""
    n, m = len(of_source), len(of_target)
    forward = torch.arange(n)[:, None] * m + of_source.cpu()
    backward = of_target.cpu() * m + torch.arange(m)[:, None]
    codes, places = np.unique(torch.cat([forward.flatten(), backward.flatten()]).numpy(), return_index=True)
    pairs = np.stack([codes // max(m, 1), codes % max(m, 1)], axis=1)
    return torch.from_numpy(pairs).to(of_source.device), torch.from_numpy(places).to(of_source.device)


def as_candidates(shape: tuple[int, int], pairs: Tensor, similarity: Tensor, csls: Tensor, top: int) -> Candidates:
    sources, targets = (np.ascontiguousarray(pairs[:, side].cpu().numpy()) for side in range(2))
    return Candidates(shape, sources, targets, similarity.cpu().numpy(), csls.cpu().numpy(), top)
