"""Exact search: tiles of the score matrix, each looked at once for both directions, never the whole n x m.

On a CPU a tile of structural scores is a BLAS product into a reused buffer; compiled loops then compare it with each row's and each column's current
k-th best and touch a heap only for the few entries that beat it, so the whole costs little more than the products. On CUDA ``torch.topk`` does the
selection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.search.base import DEFAULT_BUDGET, SearchIndex, TopK, check_k, register_index
from engine.search.kernels import FloatArray, IntArray, push_columns, push_rows
from engine.search.similarity import Similarity, on_similarity
from engine.threads import spread

TILE_ROWS = 1024
"""Rows of a tile on a CPU; more do not make the product faster, but take memory."""


@dataclass(frozen=True)
class Tile:
    """A block of the score matrix: ``scores[i, j]`` belongs to source row ``top + i`` and target row ``left + j``."""

    top: int
    left: int
    scores: Tensor  # (height, width)


@on_similarity
def tiles(similarity: Similarity, budget: int = DEFAULT_BUDGET) -> Iterator[Tile]:
    """All n x m similarities in tiles of at most ``budget`` bytes, rows ascending, then columns.

    The next tile overwrites the scores of the one before.
    """
    n, m = similarity.shape
    if not n or not m:
        return
    on_gpu = similarity.device.type == "cuda"
    cells = max(budget // torch.float32.itemsize, 1)
    width = min(m, max(cells // min(n, TILE_ROWS), 1))
    height = min(n, max(cells // width, 1), n if on_gpu else TILE_ROWS)
    buffer = torch.empty(height * width, device=similarity.device)
    for top in range(0, n, height):
        rows = slice(top, min(top + height, n))
        for left in range(0, m, width):
            columns = slice(left, min(left + width, m))
            size = rows.stop - rows.start, columns.stop - columns.start
            yield Tile(top, left, similarity.block(rows, columns, buffer[: size[0] * size[1]].view(size)))


@register_index("exact")
class ExactIndex(SearchIndex):
    """Compares everything with everything, within ``budget`` bytes; for structure 2 n m D floating-point operations."""

    name = "exact"

    def __init__(self, budget: int = DEFAULT_BUDGET) -> None:
        self.budget = budget

    def search(self, similarity: Similarity, k: int) -> TopK:
        """See :meth:`engine.search.base.SearchIndex.search`."""
        return self._scan(similarity, k, both=False)[0]

    def search_both(self, similarity: Similarity, k: int) -> tuple[TopK, TopK]:
        """Both directions from one pass over the tiles."""
        return self._scan(similarity, k, both=True)

    @torch.no_grad()
    def _scan(self, similarity: Similarity, k: int, *, both: bool) -> tuple[TopK, TopK]:
        check_k(k)
        similarity.check()
        n, m = similarity.shape
        best = HeapBest if similarity.device.type == "cpu" else TorchBest
        of_source = best(n, min(k, m), similarity.device)
        of_target = best(m, min(k, n) if both else 0, similarity.device)
        for tile in tiles(similarity, self.budget):
            of_source.take_rows(tile)
            if both:
                of_target.take_columns(tile)
        return of_source.result(), of_target.result()


class HeapBest:
    """Running top-k on a CPU: a min-heap for each query."""

    def __init__(self, n: int, k: int, device: torch.device) -> None:
        self.values: FloatArray = np.full((n, k), -np.inf, dtype=np.float32)
        self.indices: IntArray = np.full((n, k), np.iinfo(np.int64).max, dtype=np.int64)
        self.bars: FloatArray = np.full(n, -np.inf, dtype=np.float32)  # every heap's root, side by side: what the loops compare with

    def take_rows(self, tile: Tile) -> None:
        """Every row of the tile is a query."""
        scores, heaps = tile.scores.numpy(), (self.values, self.indices, self.bars)
        spread(lambda start, stop: push_rows(scores, start, stop, tile.top, tile.left, *heaps), scores.shape[0], scores.size)

    def take_columns(self, tile: Tile) -> None:
        """Every column of the tile is a query."""
        scores, heaps = tile.scores.numpy(), (self.values, self.indices, self.bars)
        spread(lambda start, stop: push_columns(scores, start, stop, tile.left, tile.top, *heaps), scores.shape[1], scores.size)

    def result(self) -> TopK:
        order = np.lexsort((self.indices, -self.values), axis=1)
        best = np.take_along_axis(self.values, order, axis=1), np.take_along_axis(self.indices, order, axis=1)
        return TopK(torch.from_numpy(best[0]), torch.from_numpy(best[1]))


class TorchBest:
    """Running top-k on any device, by ``torch.topk`` of a tile and a merge with what was best so far."""

    def __init__(self, n: int, k: int, device: torch.device) -> None:
        self.values = torch.full((n, k), -torch.inf, device=device)
        self.indices = torch.full((n, k), -1, dtype=torch.int64, device=device)

    def take_rows(self, tile: Tile) -> None:
        """Every row of the tile is a query."""
        self._merge(tile.scores, tile.top, tile.left)

    def take_columns(self, tile: Tile) -> None:
        """Every column of the tile is a query."""
        self._merge(tile.scores.T, tile.left, tile.top)

    def result(self) -> TopK:
        return TopK(self.values, self.indices)

    def _merge(self, scores: Tensor, first: int, offset: int) -> None:
        queries = slice(first, first + len(scores))
        k = self.values.shape[1]
        values, indices = scores.topk(min(k, scores.shape[1]), dim=1)
        values = torch.cat([self.values[queries], values], dim=1)  # (queries, <= 2k)
        indices = torch.cat([self.indices[queries], indices + offset], dim=1)
        self.values[queries], chosen = values.topk(k, dim=1)
        self.indices[queries] = indices.gather(1, chosen)
