"""CPU kernels of the normalised hard sample mining loss: row statistics, the few candidates that matter, and their gradient.

lambda standard deviations make the softmax over candidates so peaked that a few dozen of them carry nearly all of it. Each row keeps its
hardest candidates, down to the level (a whole number of nats below the hardest) at which what is left out weighs no more than the tail mass
that was granted.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from engine.encoders.kernels import kernel

LEVELS = 24  # nats below the hardest candidate that are looked at; exp(-24) of a million candidates is 4e-5 of the hardest one


@kernel
def mine_rows(products, anchor_norms, norms, positive, margin, first, second, normalise, scale, shift, tail_mass, statistics, counts):  # type: ignore[no-untyped-def]
    """Turn dot products into losses x, in place, and find each row's candidates that matter.

    products (n, m): anchor . candidate; x = margin + positive - |anchor - candidate|^2, and 0 where the column is ``first`` or ``second``
    (the pair itself; -1: not among the columns). statistics (n, 5): the factor f of z = f (x - mean), the highest x, the sum of
    exp(f (x - highest)), the row's loss, and how many nats below the highest are kept. counts (n,): how many are kept.
    """
    rows, columns = products.shape
    for row in prange(rows):
        base = margin + positive[row] - anchor_norms[row]
        total = 0.0
        squares = 0.0
        for block in range(0, columns, 512):  # short float32 sums inside, float64 outside: fast and accurate
            part = products.dtype.type(0)
            part_squares = products.dtype.type(0)
            for c in range(block, min(block + 512, columns)):
                x = base - norms[c] + 2 * products[row, c]
                products[row, c] = x
                part += x
                part_squares += x * x
            total += part
            squares += part_squares
        for c in (first[row], second[row]):
            if c >= 0:
                total -= products[row, c]
                squares -= np.float64(products[row, c]) * products[row, c]
                products[row, c] = 0
        mean = total / columns
        factor = scale
        if normalise:
            factor = scale / np.sqrt(max(squares / columns - mean * mean, 1e-12))
        highest = products[row, 0]
        for c in range(columns):
            highest = max(highest, products[row, c])
        masses = np.zeros(LEVELS)
        sizes = np.zeros(LEVELS, dtype=np.int64)
        floor = products.dtype.type(highest - (LEVELS + 1) / factor)  # rough, so that few elements need the exact depth
        for c in range(columns):
            if products[row, c] >= floor:
                depth = factor * (highest - products[row, c])
                if depth < LEVELS:
                    masses[int(depth)] += np.exp(-depth)
                    sizes[int(depth)] += 1
        mass = masses.sum()
        level = LEVELS
        left_out = 0.0
        while level > 1 and left_out + masses[level - 1] <= tail_mass * mass:
            level -= 1
            left_out += masses[level]
        counts[row] = sizes[:level].sum()
        centre = mean if normalise else 0.0
        statistics[row, 0] = factor
        statistics[row, 1] = highest
        statistics[row, 2] = mass
        statistics[row, 3] = factor * (highest - centre) + shift + np.log(mass)
        statistics[row, 4] = level


@kernel
def collect_rows(products, first, second, statistics, offsets, first_column, columns_out, weights_out):  # type: ignore[no-untyped-def]
    """Write the kept candidates of each row and dL/dx: the softmax weight times the factor; the pair itself has no gradient."""
    for row in prange(products.shape[0]):
        factor, highest, mass, level = statistics[row, 0], statistics[row, 1], statistics[row, 2], statistics[row, 4]
        floor = products.dtype.type(highest - (level + 1) / factor)
        position, stop = offsets[row], offsets[row + 1]
        for c in range(products.shape[1]):
            if products[row, c] >= floor and position < stop:
                depth = factor * (highest - products[row, c])
                if depth < level:
                    columns_out[position] = c + first_column
                    constant = c == first[row] or c == second[row]
                    weights_out[position] = 0.0 if constant else factor * np.exp(-depth) / mass
                    position += 1
        for rest in range(position, stop):  # only where rounding hid one from the rough floor
            columns_out[rest] = first_column
            weights_out[rest] = 0.0


@njit(cache=True, nogil=True)
def transpose_entries(offsets, columns, weights, num_columns):  # type: ignore[no-untyped-def]
    """Row-wise (offsets, columns, weights) -> column-wise (offsets, rows, weights), rows ascending within a column."""
    starts = np.zeros(num_columns + 1, dtype=np.int64)
    for t in range(len(columns)):
        starts[columns[t] + 1] += 1
    for c in range(num_columns):
        starts[c + 1] += starts[c]
    place = starts[:-1].copy()
    rows = np.empty(len(columns), dtype=np.int32)
    turned = np.empty_like(weights)
    for row in range(len(offsets) - 1):
        for t in range(offsets[row], offsets[row + 1]):
            position = place[columns[t]]
            place[columns[t]] += 1
            rows[position] = row
            turned[position] = weights[t]
    return starts, rows, turned


@kernel
def pull_rows(bounds, offsets, columns, weights, features, totals, out):  # type: ignore[no-untyped-def]
    """out_i = sum of weights_t features_{columns_t} over row i's entries; totals_i = the sum of the weights."""
    width = features.shape[1]
    for part in prange(len(bounds) - 1):
        for i in range(bounds[part], bounds[part + 1]):
            for k in range(width):
                out[i, k] = 0
            total = features.dtype.type(0)
            for t in range(offsets[i], offsets[i + 1]):
                weight, c = weights[t], columns[t]
                total += weight
                for k in range(width):
                    out[i, k] += weight * features[c, k]
            totals[i] = total


@kernel
def push_rows(bounds, offsets, rows, weights, anchors, features, out):  # type: ignore[no-untyped-def]
    """out_c += 2 sum over column c's entries of weights_t (anchors_{rows_t} - features_c)."""
    width = features.shape[1]
    for part in prange(len(bounds) - 1):
        for c in range(bounds[part], bounds[part + 1]):
            total = features.dtype.type(0)
            for t in range(offsets[c], offsets[c + 1]):
                weight, row = 2 * weights[t], rows[t]
                total += weight
                for k in range(width):
                    out[c, k] += weight * anchors[row, k]
            if total != 0:
                for k in range(width):
                    out[c, k] -= total * features[c, k]
