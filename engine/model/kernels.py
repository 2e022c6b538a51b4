"""Fused CPU kernels: message passing without any (triples x d) array.

Each kernel is a loop over rows, cut into one stretch of about equally many entries per thread; a thread writes only its own rows, and what
several threads add to (the relations' gradient) is kept apart per thread and summed in a fixed order. A result therefore depends on the number
of threads, never on their timing.

x is (E, C, d): C input channels that share the graph and the unit vectors (S, d), each with its own scores (S, C). Where other processes have some of
the E rows, a kernel is called for a block of them at a time: x then holds the rows from ``low`` on. The first block, from 0 on, begins the sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from engine.util.prefetch import AHEAD, prefetch_row
from engine.util.threads import first_from, kernel

Array = npt.NDArray[Any]


def stretches(offsets: npt.NDArray[np.int64], parts: int | None = None) -> npt.NDArray[np.int64]:
    """(parts + 1,) row boundaries that give each part about as many entries (and rows); parts defaults to the number of threads."""
    parts = parts or torch.get_num_threads()
    work = offsets + np.arange(len(offsets))
    bounds = np.searchsorted(work, np.linspace(0, work[-1], parts + 1), side="left")
    bounds[0], bounds[-1] = 0, len(offsets) - 1
    return bounds.astype(np.int64)


@kernel
def aggregate_forward(part, bounds, rows, offsets, senders, units, low, x, vectors, shares, reflect, out, totals):  # type: ignore[no-untyped-def]
    """out_i = sum over the entries of rows_i of a (x_j - 2 (r . x_j) r), a = the entry's share of their sum, which is totals_i.

    shares (S, C) are the units' scores, exponentiated (:func:`engine.model.attention.exponentials`).
    """
    channels, width, last, high = x.shape[1], x.shape[2], len(senders) - 1, low + len(x)
    for i in range(bounds[part], bounds[part + 1]):
        start, stop = offsets[rows[i]], offsets[rows[i] + 1]
        if low == 0:
            for c in range(channels):
                for k in range(width):
                    out[i, c, k] = 0
                total = 0.0
                for t in range(start, stop):
                    total += shares[units[t], c]
                totals[i, c] = total
        start, stop = first_from(senders, start, stop, low), first_from(senders, start, stop, high)
        for t in range(start, stop):
            j, u, soon = senders[t] - low, units[t], min(t + AHEAD, last)
            prefetch_row(x, min(max(senders[soon] - low, 0), len(x) - 1))
            prefetch_row(vectors, units[soon])
            for c in range(channels):
                weight = x.dtype.type(shares[u, c] / totals[i, c])
                if reflect:
                    dot = x.dtype.type(0)
                    for k in range(width):
                        dot += vectors[u, k] * x[j, c, k]
                    dot *= 2 * weight
                    for k in range(width):
                        out[i, c, k] += weight * x[j, c, k] - dot * vectors[u, k]
                else:
                    for k in range(width):
                        out[i, c, k] += weight * x[j, c, k]


@kernel
def aggregate_backward(  # type: ignore[no-untyped-def]
    part, bounds, place, offsets, receivers, units, inverse, x, vectors, shares, totals, grad, pull, reflect, dx, dvectors, dscores
):
    """The same entries seen from the sender j, of which ``offsets`` and x have a block: its receivers, and the unit of each message.

    place (E,) is the row of ``grad`` that is of a receiver, or -1 where no gradient comes from it; grad is (n, C, d), pull (n, C) = grad_i . out_i;
    dvectors (threads, S, d) and dscores (threads, S, C) start at zero; each block adds to them.
    """
    channels, width, last = x.shape[1], x.shape[2], len(receivers) - 1
    own_dvectors = dvectors[part]
    for j in range(bounds[part], bounds[part + 1]):
        for c in range(channels):
            for k in range(width):
                dx[j, c, k] = 0
        for t in range(offsets[j], offsets[j + 1]):
            i, u, soon = place[receivers[t]], inverse[units[t]], min(t + AHEAD, last)
            next_i = place[receivers[soon]]
            if next_i >= 0:
                prefetch_row(grad, next_i)
                prefetch_row(vectors, inverse[units[soon]])
                prefetch_row(own_dvectors, inverse[units[soon]])
            if i < 0:
                continue
            for c in range(channels):
                weight = x.dtype.type(shares[u, c] / totals[i, c])
                both = x.dtype.type(0)
                if reflect:
                    from_grad = x.dtype.type(0)
                    from_x = x.dtype.type(0)
                    for k in range(width):
                        from_grad += vectors[u, k] * grad[i, c, k]
                        from_x += vectors[u, k] * x[j, c, k]
                        both += grad[i, c, k] * x[j, c, k]
                    dscores[part, u, c] += weight * (both - 2 * from_grad * from_x - pull[i, c])
                    from_grad *= 2 * weight
                    from_x *= 2 * weight
                    for k in range(width):
                        dx[j, c, k] += weight * grad[i, c, k] - from_grad * vectors[u, k]
                    for k in range(width):  # by itself: two stores in one loop would not become vector instructions
                        own_dvectors[u, k] -= from_x * grad[i, c, k] + from_grad * x[j, c, k]
                else:
                    for k in range(width):
                        both += grad[i, c, k] * x[j, c, k]
                    for k in range(width):
                        dx[j, c, k] += weight * grad[i, c, k]
                    dscores[part, u, c] += weight * (both - pull[i, c])


@kernel
def mean_rows(part, bounds, offsets, columns, low, features, weights, weigh_row, out):  # type: ignore[no-untyped-def]
    """out_i = sum over i's columns of features_c, each weighed with the row's weight (a mean) or with the column's (its transpose)."""
    width, last, high = features.shape[1], len(columns) - 1, low + len(features)
    for i in range(bounds[part], bounds[part + 1]):
        if low == 0:
            for k in range(width):
                out[i, k] = 0
        for t in range(first_from(columns, offsets[i], offsets[i + 1], low), first_from(columns, offsets[i], offsets[i + 1], high)):
            c = columns[t] - low
            prefetch_row(features, min(max(columns[min(t + AHEAD, last)] - low, 0), len(features) - 1))
            weight = weights[i] if weigh_row else weights[c]
            for k in range(width):
                out[i, k] += weight * features[c, k]


@kernel
def scatter_rows(part, bounds, offsets, columns, features, weights, out):  # type: ignore[no-untyped-def]
    """out[thread, c] += weights_i * features_i for each column c of row i: the transpose of a mean with few, long columns."""
    width = features.shape[1]
    for i in range(bounds[part], bounds[part + 1]):
        for t in range(offsets[i], offsets[i + 1]):
            c = columns[t]
            for k in range(width):
                out[part, c, k] += weights[i] * features[i, k]
