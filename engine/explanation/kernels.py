"""Message passing for some rows of the graph, in float64, with replaced inputs.

The encoder's own kernels walk the whole graph. A page explains one pair at a time, and asks what would be if some inputs were others: these loops
take any rows and look replaced inputs up in a small table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from engine.util.arrays import Float32Array, FloatArray, IntArray
from engine.util.threads import compiled


@compiled
def mean_of_rows(offsets: IntArray, columns: npt.NDArray[Any], features: npt.NDArray[Any], start: int, stop: int, out: FloatArray) -> None:
    """out_i = mean of the features of row i's columns; zero for an empty row."""
    for i in range(start, stop):
        out[i] = 0
        for t in range(offsets[i], offsets[i + 1]):
            for k in range(features.shape[1]):
                out[i, k] += features[columns[t], k]
        if offsets[i + 1] > offsets[i]:
            out[i] /= offsets[i + 1] - offsets[i]


@compiled
def messages_of_rows(
    offsets: IntArray,
    senders: npt.NDArray[Any],
    units: npt.NDArray[Any],
    base: Float32Array,
    place: IntArray,
    replaced: FloatArray,
    vectors: FloatArray,
    scores: FloatArray,
    reflect: bool,
    start: int,
    stop: int,
    out: FloatArray,
) -> None:
    """out_i = sum over row i's entries (j, u) of a (x_j - 2 (r_u . x_j) r_u), with a the softmax of the row's scores (paper eq. 2 and 3).

    x_j is ``replaced[place[j]]`` where ``place[j]`` is not negative, else ``base[j]``; base is (E, C, d), replaced (n, C, d), scores (S, C).
    """
    channels, width = base.shape[1], base.shape[2]
    x = np.empty(width)
    for i in range(start, stop):
        first, last = offsets[i], offsets[i + 1]
        for c in range(channels):
            out[i, c] = 0
            highest = -np.inf
            for t in range(first, last):
                highest = max(highest, scores[units[t], c])
            total = 0.0
            for t in range(first, last):
                total += np.exp(scores[units[t], c] - highest)
            for t in range(first, last):
                j, u = senders[t], units[t]
                weight = np.exp(scores[u, c] - highest) / total
                at = place[j]
                along = 0.0
                for k in range(width):
                    x[k] = base[j, c, k] if at < 0 else replaced[at, c, k]
                    along += vectors[u, k] * x[k]
                along *= 2.0 if reflect else 0.0
                for k in range(width):
                    out[i, c, k] += weight * (x[k] - along * vectors[u, k])
