"""Ranks of known counterparts and what is computed from them, one query at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


def best_ranks(scores: npt.NDArray[np.float64], links: Iterable[tuple[int, int]], tolerance: float) -> dict[int, int]:
    """Row -> rank of its best counterpart; others that score as high (within the tolerance) come before it, other counterparts do not."""
    counterparts: dict[int, set[int]] = {}
    for row, column in links:
        counterparts.setdefault(row, set()).add(column)
    ranks = {}
    for row, true in counterparts.items():
        best = max(scores[row, column] for column in true)
        ranks[row] = 1 + sum(1 for column in range(scores.shape[1]) if column not in true and scores[row, column] >= best - tolerance)
    return ranks


def hits(ranks: Iterable[int], k: int) -> float:
    ranks = list(ranks)
    return sum(1 for rank in ranks if rank <= k) / len(ranks)


def mean_reciprocal_rank(ranks: Iterable[int]) -> float:
    ranks = list(ranks)
    return sum(1 / rank for rank in ranks) / len(ranks)
