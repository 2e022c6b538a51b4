"""Similarities whose values lie in memory: pools that are gone through several times, and are small enough."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.search.kernels import copy_cells
from engine.search.similarity import Around, Similarity, as_indices
from engine.util.threads import cut, spread

HELD_BYTES = 512 * 2**20
"""Values that are held: those of 11,585 x 11,585 pairs."""
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
    return similarity.device.type == "cpu" and 0 < np.dtype(np.float32).itemsize * shape[0] * shape[1] <= budget
