"""CPU kernels of the normalised hard sample mining loss: row statistics, the few candidates that matter, and their gradient.

lambda standard deviations make the softmax over candidates so peaked that a few dozen of them carry nearly all of it. Each row keeps its
hardest candidates, down to the level (a whole number of nats below the hardest) at which what is left out weighs no more than the tail mass
that was granted. The products that the rows are screened by may be rounded (bfloat16): what is kept is scored again from the embeddings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from engine.threads import compiled, kernel

LEVELS = 24  # nats below the hardest candidate that are looked at; exp(-24) of a million candidates is 4e-5 of the hardest one


def widened(value: Any) -> Any:
    """A product as a number: uint16 holds the bits of a bfloat16, which are the upper half of a float32's."""
    raise NotImplementedError("only within compiled kernels")


@overload(widened, inline="always")
def _widened(value):  # type: ignore[no-untyped-def]
    if value == types.uint16:
        return lambda value: np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)
    return lambda value: value


@kernel
def mine_rows(part, bounds, products, anchor_norms, norms, positive, margin, first, second, normalise, scale, tail_mass, statistics, counts):  # type: ignore[no-untyped-def]
    """Statistics of the losses x of each row, and how many of its candidates matter.

    products (n, m): anchor . candidate; x = margin + positive - |anchor - candidate|^2, and 0 where the column is ``first`` or ``second``
    (the pair itself; -1: not among the columns). statistics (n, 5): the mean of x (0 unless ``normalise``), the factor f of
    z = f (x - mean), the highest x, how many nats below it are kept, and the sum of exp(f (x - highest)) over what is left out.
    counts (n,): how many are kept.
    """
    columns = products.shape[1]
    x = np.empty(columns, dtype=norms.dtype)  # stays in the cache for the passes over a row
    for row in range(bounds[part], bounds[part + 1]):
        base = norms.dtype.type(margin + positive[row] - anchor_norms[row])
        total = 0.0
        squares = 0.0
        for block in range(0, columns, 512):  # short float32 sums inside, float64 outside: fast and accurate
            sums = norms.dtype.type(0)
            sums_of_squares = norms.dtype.type(0)
            for c in range(block, min(block + 512, columns)):
                x[c] = base - norms[c] + 2 * widened(products[row, c])
            for c in range(block, min(block + 512, columns)):
                sums += x[c]
                sums_of_squares += x[c] * x[c]
            total += sums
            squares += sums_of_squares
        for c in (first[row], second[row]):
            if c >= 0:
                total -= x[c]
                squares -= np.float64(x[c]) * x[c]
                x[c] = 0
        mean = total / columns
        factor = scale
        if normalise:
            factor = scale / np.sqrt(max(squares / columns - mean * mean, 1e-12))
        highest = x[0]
        for c in range(columns):
            highest = max(highest, x[c])
        masses = np.zeros(LEVELS)
        sizes = np.zeros(LEVELS, dtype=np.int64)
        floor = norms.dtype.type(highest - (LEVELS + 1) / factor)  # rough, so that few elements need the exact depth
        for c in range(columns):
            if x[c] >= floor:
                depth = factor * (highest - x[c])
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
        statistics[row, 0] = mean if normalise else 0.0
        statistics[row, 1] = factor
        statistics[row, 2] = highest
        statistics[row, 3] = level
        statistics[row, 4] = left_out


@kernel
def collect_rows(part, bounds, products, anchor_norms, norms, positive, margin, first, second, statistics, offsets, columns_out):  # type: ignore[no-untyped-def]
    """Write the kept candidates of each row, ascending; the arguments are those of ``mine_rows``."""
    for row in range(bounds[part], bounds[part + 1]):
        factor, highest, level = statistics[row, 1], statistics[row, 2], statistics[row, 3]
        base = norms.dtype.type(margin + positive[row] - anchor_norms[row])
        floor = norms.dtype.type(highest - (level + 1) / factor)
        position, stop = offsets[row], offsets[row + 1]
        for c in range(products.shape[1]):
            x = base - norms[c] + 2 * widened(products[row, c])
            if x >= floor or c == first[row] or c == second[row]:
                if c == first[row] or c == second[row]:
                    x = norms.dtype.type(0)
                if factor * (highest - x) < level and position < stop:
                    columns_out[position] = c
                    position += 1
        for rest in range(position, stop):  # only where rounding tells the two passes apart
            columns_out[rest] = columns_out[offsets[row]]


@compiled
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
def weigh_rows(  # type: ignore[no-untyped-def]
    part,
    bounds,
    offsets,
    columns,
    features,
    norms,
    anchors,
    anchor_norms,
    positive,
    margin,
    first,
    second,
    shift,
    statistics,
    weights,
    totals,
    values,
    out,
):
    """Score each row's kept candidates from the embeddings and weigh them: dL/dx is the softmax weight times the factor; the pair's own is 0.

    weights (t,): dL/dx by entry; totals (n,): a row's sum of them; values (n,): the row's loss; out (n, D): sum of weights_t features_{columns_t}.
    """
    width = features.shape[1]
    for i in range(bounds[part], bounds[part + 1]):
        mean, factor, highest, mass = statistics[i, 0], statistics[i, 1], statistics[i, 2], statistics[i, 4]
        base = features.dtype.type(margin + positive[i] - anchor_norms[i])
        for k in range(width):
            out[i, k] = 0
        total = 0.0
        for t in range(offsets[i], offsets[i + 1]):
            c = columns[t]
            constant = c == first[i] or c == second[i]
            x = features.dtype.type(0)
            if not constant:
                for k in range(width):
                    x += anchors[i, k] * features[c, k]
                x = base - norms[c] + 2 * x
            share = np.exp(factor * (x - highest))
            mass += share
            weights[t] = 0.0 if constant else share
            if not constant:
                total += share
                share = features.dtype.type(share)
                for k in range(width):
                    out[i, k] += share * features[c, k]
        scale = features.dtype.type(factor / mass)
        for t in range(offsets[i], offsets[i + 1]):
            weights[t] *= scale
        for k in range(width):
            out[i, k] *= scale
        totals[i] = total * scale
        values[i] = factor * (highest - mean) + shift + np.log(mass)


@kernel
def push_rows(part, bounds, offsets, rows, weights, anchors, features, out):  # type: ignore[no-untyped-def]
    """out_c += 2 sum over column c's entries of weights_t (anchors_{rows_t} - features_c)."""
    width = features.shape[1]
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
