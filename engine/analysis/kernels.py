"""Compiled loops of the analysis."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from engine.util.arrays import FloatArray, IntArray
from engine.util.threads import compiled


@compiled
def fill_divergence(similarity: npt.NDArray[np.float32], first: IntArray, second: IntArray, start: int, stop: int, out: FloatArray) -> None:
    """Jensen-Shannon divergence, in bits, of the softmax of rows first[i] and second[i], for i in start..stop."""
    width = similarity.shape[1]
    p, q = np.empty(width), np.empty(width)
    for pair in range(start, stop):
        log_p, log_q = fill_softmax(similarity[first[pair]], p), fill_softmax(similarity[second[pair]], q)
        total = 0.0
        for i in range(width):
            if p[i] != q[i]:  # where they agree, rounding is all that could be added
                middle = math.log((p[i] + q[i]) / 2)
                total += p[i] * (similarity[first[pair], i] - log_p - middle) + q[i] * (similarity[second[pair], i] - log_q - middle)
        out[pair] = min(max(total / (2 * math.log(2.0)), 0.0), 1.0)


@compiled
def fill_softmax(row: npt.NDArray[np.float32], out: FloatArray) -> float:
    """Write the softmax of a row, and return the logarithm of what its exponentials were divided by."""
    peak = -np.inf
    for value in row:
        peak = max(peak, np.float64(value))
    total = 0.0
    for i in range(len(row)):
        out[i] = math.exp(row[i] - peak)
        total += out[i]
    for i in range(len(row)):
        out[i] /= total
    return peak + math.log(total)
