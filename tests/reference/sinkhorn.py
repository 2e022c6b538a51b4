"""Sinkhorn straight from its definition: a dense matrix, in float64, rows scaled, then columns, round by round."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def plan(similarity: Array, temperature: float, rounds: int) -> Array:
    """(n, m) weights; after the last scaling each column sums to 1."""
    weights = np.exp((similarity - similarity.max()) / temperature)
    for _ in range(rounds):
        weights = weights / weights.sum(axis=1, keepdims=True)
        weights = weights / weights.sum(axis=0, keepdims=True)
    return weights
