"""The score matrix in tiles, never the whole n x m, and a running top-k of what the tiles hold.

On a CPU a tile of structural scores is a BLAS product into a reused buffer; compiled loops then compare it with each row's and each column's current
k-th best and touch a heap only for the few entries that beat it, so the whole costs little more than the products. The terms of a shifted similarity
are added in these loops, so that no shifted copy of anything is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.search.base import DEFAULT_BUDGET, Divided, TopK
from engine.search.kernels import copy_cells, order_lists, push_columns, push_rows, sort_heaps
from engine.search.similarity import Around, Shifted, Similarity, as_indices, on_similarity
from engine.util.arrays import Float32Array, IntArray
from engine.util.devices import has_kernels
from engine.util.threads import cut, spread

# Similarities whose values lie in memory: pools that are gone through several times, and are small enough.

HELD_BYTES = 2**30
"""Values that are held: those of 16,384 x 16,384 pairs."""
HELD_ROWS = 1024
"""Rows that are computed at a time."""


class HeldSimilarity(Around):
    """A similarity with its n x m values.

    Args:
        base: on the CPU.
        values: (n, m) float32 of ``base`` where they are known already.

    Attributes:
        values: the same, not to be written to; None once they are forgotten.
    """

    def __init__(self, base: Similarity, values: Tensor | None = None) -> None:
        super().__init__(base)
        self.values: Tensor | None = computed(base) if values is None else values

    def forget(self) -> None:
        """Give the memory back: from now on values are computed when they are asked for."""
        self.values = None

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        if self.values is None:
            return super().block(rows, columns, out)
        part = self.values[rows, columns]
        return part.clone() if out is None else out.copy_(part)


def computed(similarity: Similarity) -> Tensor:
    """(n, m) all values."""
    similarity.check()
    values = torch.empty(similarity.shape)
    for rows in cut(len(values), HELD_ROWS):
        similarity.block(rows, slice(0, values.shape[1]), values[rows])
    return values


class RecordingSimilarity(Around):
    """A similarity that keeps what is computed of a pool while all of it is gone through: selecting that pool, once, then costs next to nothing.

    Args:
        base: on the CPU.
        rows: (n',) ascending rows of the pool.
        columns: (m',) ascending columns of the pool.
    """

    def __init__(self, base: Similarity, rows: Tensor, columns: Tensor) -> None:
        super().__init__(base)
        self.rows, self.columns = rows, columns
        self._values = torch.empty(len(rows), len(columns))
        self._known = torch.zeros(len(rows), dtype=torch.int64)  # how many columns of each row, from the left

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        found = super().block(rows, columns, out)
        self._keep(found, rows.indices(self.shape[0])[0], columns.indices(self.shape[1])[0])
        return found

    def _keep(self, scores: Tensor, top: int, left: int) -> None:
        """Copy the pool's part of a block, where it continues what is known of these rows."""
        first, last = (int(edge) for edge in torch.searchsorted(self.rows, torch.tensor([top, top + scores.shape[0]])))
        start, stop = (int(edge) for edge in torch.searchsorted(self.columns, torch.tensor([left, left + scores.shape[1]])))
        if first == last or start == stop or not bool((self._known[first:last] == start).all()):
            return
        own = scores.contiguous().numpy(), as_indices(self.rows[first:last]) - top, as_indices(self.columns[start:stop]) - left
        values = self._values[first:last].numpy()
        spread(lambda low, high: copy_cells(low, high, *own, start, values), last - first, (last - first) * (stop - start))
        self._known[first:last] = stop

    def select(self, rows: Tensor, columns: Tensor) -> Similarity:
        """The pool with its values, if it is that one and all of it has been gone through."""
        chosen = super().select(rows, columns)
        if not (torch.equal(rows, self.rows) and torch.equal(columns, self.columns) and bool((self._known == len(columns)).all())):
            return chosen
        values, self._values = self._values, torch.empty(self._values.shape, device="meta")  # handed over, so that they can be forgotten
        self._known.fill_(len(columns) + 1)
        return HeldSimilarity(chosen, values)


def held(similarity: Similarity, budget: int = HELD_BYTES) -> Similarity:
    """The similarity with its values in memory, where they take at most ``budget`` bytes there; else as it is."""
    return HeldSimilarity(similarity) if not isinstance(similarity, HeldSimilarity) and can_hold(similarity, similarity.shape, budget) else similarity


def recording(similarity: Similarity, rows: Tensor, columns: Tensor, budget: int = HELD_BYTES) -> Similarity:
    """The similarity, listened to for the values of a pool, where these take at most ``budget`` bytes; else as it is."""
    return RecordingSimilarity(similarity, rows, columns) if can_hold(similarity, (len(rows), len(columns)), budget) else similarity


def can_hold(similarity: Similarity, shape: tuple[int, int], budget: int) -> bool:
    """Whether this number of values can be held."""
    at_hand = similarity.device.type == "cpu" and not isinstance(similarity, Divided)
    return at_hand and 0 < np.dtype(np.float32).itemsize * shape[0] * shape[1] <= budget


TILE_ROWS = 1024
"""Rows of a tile on a CPU; more do not make the product faster, but take memory."""


@dataclass(frozen=True)
class Tile:
    """A block of the score matrix: ``scores[i, j] + row_terms[i] + column_terms[j]`` is for source row ``top + i`` and target row ``left + j``."""

    top: int
    left: int
    scores: Tensor  # (height, width)
    row_terms: Tensor  # (height,)
    column_terms: Tensor  # (width,)


@dataclass(frozen=True)
class Terms:
    """What a shifted similarity adds to the one below it: (n,) for each row, (m,) for each column."""

    rows: Tensor  # (n,)
    columns: Tensor  # (m,)

    @classmethod
    def apart(cls, similarity: Similarity) -> tuple[Similarity, Terms]:
        """A similarity to take blocks of, and the terms to be added to them: on a GPU none, there a shifted block is as quick as any."""
        if isinstance(similarity, Shifted) and has_kernels(similarity.device):
            return similarity.base, cls(similarity.row_terms.float().contiguous(), similarity.column_terms.float().contiguous())
        n, m = similarity.shape
        return similarity, cls(torch.zeros(n, device=similarity.device), torch.zeros(m, device=similarity.device))


@on_similarity
def tiles(similarity: Similarity, budget: int = DEFAULT_BUDGET, *, whole_rows: bool = False) -> Iterator[Tile]:
    """All n x m similarities in tiles of at most ``budget`` bytes, rows ascending, then columns.

    ``whole_rows`` makes tiles as wide as the matrix, and flatter where need be. The next tile overwrites the scores of the one before; what a
    :class:`HeldSimilarity` holds is shown as it lies, and not to be written to.
    """
    base, terms = Terms.apart(similarity)
    height, width = tile_size(base, budget, whole_rows)
    held = base.values if isinstance(base, HeldSimilarity) else None
    buffer = torch.empty(0 if held is not None else height * width, device=base.device)
    for rows in cut(base.shape[0], height):
        for columns in cut(base.shape[1], width):
            size = rows.stop - rows.start, columns.stop - columns.start
            scores = base.block(rows, columns, buffer[: size[0] * size[1]].view(size)) if held is None else held[rows, columns]
            yield Tile(rows.start, columns.start, scores, terms.rows[rows], terms.columns[columns])


def tile_size(similarity: Similarity, budget: int, whole_rows: bool = False) -> tuple[int, int]:
    """Height and width of tiles within the budget (a single row may go beyond it where rows are to be whole)."""
    n, m = similarity.shape
    cells = max(budget // torch.float32.itemsize, 1)
    width = m if whole_rows else min(m, max(cells // max(min(n, TILE_ROWS), 1), 1))
    height = min(n, max(cells // max(width, 1), 1), n if similarity.device.type == "cuda" else TILE_ROWS)
    return height, width


class HeapBest:
    """Running top-k on a CPU: a min-heap for each query, of values without the query's own term."""

    def __init__(self, n: int, k: int, device: torch.device | None = None) -> None:
        self.values: Float32Array = np.full((n, k), -np.inf, dtype=np.float32)
        self.indices: IntArray = np.full((n, k), np.iinfo(np.int64).max, dtype=np.int64)
        self.bars: Float32Array = np.full(n, -np.inf, dtype=np.float32)  # every heap's root, side by side: what the loops compare with

    def take_rows(self, tile: Tile) -> None:
        """Every row of the tile is a query."""
        scores, terms, heaps = tile.scores.numpy(), tile.column_terms.numpy(), (self.values, self.indices, self.bars)
        spread(lambda start, stop: push_rows(scores, start, stop, tile.top, tile.left, terms, *heaps), scores.shape[0], scores.size)

    def take_columns(self, tile: Tile) -> None:
        """Every column of the tile is a query."""
        scores, terms, heaps = tile.scores.numpy(), tile.row_terms.numpy(), (self.values, self.indices, self.bars)
        spread(lambda start, stop: push_columns(scores, start, stop, tile.left, tile.top, terms, *heaps), scores.shape[1], scores.size)

    def result(self, terms: Tensor) -> TopK:
        """Sorted, with the (n,) queries' own terms; the heaps are used up."""
        own = terms.numpy()
        spread(lambda start, stop: sort_heaps(start, stop, own, self.values, self.indices), len(own), 32 * self.values.size)
        return TopK(torch.from_numpy(self.values), torch.from_numpy(self.indices))


def best_in_columns(scores: Tensor, k: int) -> TopK:
    """The k best rows for each column of (n, m) float32 scores on the CPU, best first; of equals the lower row."""
    n, m = scores.shape
    best = HeapBest(m, min(k, n))
    best.take_columns(Tile(0, 0, scores.contiguous(), torch.zeros(n), torch.zeros(m)))
    return best.result(torch.zeros(m))


def descending(scores: Tensor, indices: Tensor) -> Tensor:
    """(n, top) positions that sort each row by its scores, the best first; of equals the lower index."""
    if scores.device.type != "cpu":
        by_index = indices.argsort(dim=1)
        return by_index.gather(1, scores.gather(1, by_index).argsort(dim=1, descending=True, stable=True))
    order = torch.empty(scores.shape, dtype=torch.int64)
    arrays = scores.numpy(), indices.numpy(), order.numpy()
    spread(lambda start, stop: order_lists(start, stop, *arrays), len(order), 32 * order.numel())
    return order
