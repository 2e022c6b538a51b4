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


def log_plan(logits: Array, rounds: int) -> Array:
    """(n, m) logarithms of the weights, from logarithms (-inf: no pair), each scaling a log-sum-exp; what has no pair stays as it is."""
    weights = logits.copy()
    for _ in range(rounds):
        for axis in (1, 0):
            peak = weights.max(axis=axis, keepdims=True)
            peak[np.isinf(peak)] = 0.0
            with np.errstate(divide="ignore"):
                sums = peak + np.log(np.exp(weights - peak).sum(axis=axis, keepdims=True))
            weights = weights - np.where(np.isinf(sums), 0.0, sums)
    return weights
