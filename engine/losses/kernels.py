"""CPU kernels of the normalised hard sample mining loss: row statistics, the few candidates that matter, and their gradient.

lambda standard deviations make the softmax over candidates so peaked that a few dozen of them carry nearly all of it. Each row keeps its
hardest candidates, down to the level (a whole number of nats below the hardest) at which what is left out weighs no more than the tail mass
that was granted. The products that the rows are screened by may be rounded (bfloat16): what is kept is scored again from the embeddings.

A function that kernels call may be there several times, compiled on its own and together with its callers, and which of them runs depends on what was
loaded first. So what sums, whose order the compiler may choose, is written into the kernel (``inline``); what is called computes value by value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from engine.threads import compiled, kernel

LEVELS = 24  # nats below the hardest candidate that are looked at; exp(-24) of a million candidates is 4e-5 of the hardest one
BLOCK = 512  # values whose sum is taken in single precision; a fixed length, so that the loop becomes vector instructions
SMALL_BLOCK = 64  # candidates that are passed over together where none of them is kept
LOG2_E = 1.4426950408889634


def widened(value: Any) -> Any:
    """A product as a number: uint16 holds the bits of a bfloat16, which are the upper half of a float32's."""
    raise NotImplementedError("only within compiled kernels")


@overload(widened, inline="always")
def _widened(value):  # type: ignore[no-untyped-def]
    if value == types.uint16:
        return lambda value: np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)
    return lambda value: value


def highest_of(values: Any) -> Any:
    """The largest of an array's values."""
    raise NotImplementedError("only within compiled kernels")


@overload(highest_of)
def _highest_of(values):  # type: ignore[no-untyped-def]
    def by_bits(values):  # type: ignore[no-untyped-def]
        # As integers, a float32's bits are in the order of the values where the sign is 0 and in the opposite one where it is 1. The maximum of
        # integers becomes vector instructions; that of numbers does not, because of what is not a number (which counts as the largest here).
        bits = values.view(np.int32)
        highest = np.int32(-(2**31))
        for c in range(len(bits)):
            highest = max(highest, bits[c] ^ ((bits[c] >> np.int32(31)) & np.int32(0x7FFFFFFF)))
        return np.int32(highest ^ ((highest >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)

    def plain(values):  # type: ignore[no-untyped-def]
        return values.max()

    return by_bits if values.dtype == types.float32 else plain


@njit(inline="always")
def power_of_two(exponent):  # type: ignore[no-untyped-def]
    """2^exponent of a float32 that is at most 0, to 2e-7 of itself, without a call: below -120 it stays at 2^-120."""
    exponent = max(exponent, np.float32(-120))
    whole = np.floor(exponent)
    rest = np.float32(exponent - whole)
    power = np.float32(1.5403530e-4)  # Taylor's series in log(2), its last terms adjusted to the interval
    power = power * rest + np.float32(1.3333558e-3)
    power = power * rest + np.float32(9.6181291e-3)
    power = power * rest + np.float32(5.5504109e-2)
    power = power * rest + np.float32(0.24022651)
    power = power * rest + np.float32(0.69314718)
    power = power * rest + np.float32(1)
    return power * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)


@compiled
def losses_of(products, base, norms, first, second, x):  # type: ignore[no-untyped-def]
    """x = base - norms + 2 products, and 0 at the pair's own columns; nothing may be reassociated, so that two passes over a row see equal bits."""
    for c in range(len(x)):
        x[c] = widened(products[c])
    for c in range(len(x)):
        x[c] = base - norms[c] + 2 * x[c]
    for c in (first, second):
        if c >= 0:
            x[c] = 0


@njit(inline="always")
def sum_above(values, threshold):  # type: ignore[no-untyped-def]
    """The sum of the values above a threshold: float32 within blocks, float64 outside, which is fast and accurate."""
    total = np.float64(0)
    whole = len(values) // BLOCK * BLOCK
    for start in range(0, whole, BLOCK):
        block = values[start : start + BLOCK]
        sums = np.float32(0)
        for c in range(BLOCK):
            sums += block[c] if block[c] > threshold else np.float32(0)
        total += sums
    for c in range(whole, len(values)):
        total += values[c] if values[c] > threshold else np.float32(0)
    return total


@compiled
def count_from(values, threshold):  # type: ignore[no-untyped-def]
    """How many values reach a threshold."""
    count = 0
    for c in range(len(values)):
        count += values[c] >= threshold
    return count


@njit(inline="always")
def spread_of(x):  # type: ignore[no-untyped-def]
    """Sum and sum of squares."""
    total, squares = 0.0, 0.0
    for c in range(len(x)):
        value = np.float64(x[c])
        total += value
        squares += value * value
    return total, squares


@compiled
def weights_below(x, highest, factor, shares):  # type: ignore[no-untyped-def]
    """shares = exp(factor (x - highest)), float32."""
    bits = x.dtype.type(factor * LOG2_E)
    for c in range(len(x)):
        shares[c] = power_of_two(np.float32(bits * (x[c] - highest)))


@njit(inline="always")
def level_that_matters(shares, tail_mass):  # type: ignore[no-untyped-def]
    """The smallest whole number of nats below the highest (1 .. LEVELS) at which what lies beneath weighs no more than ``tail_mass`` of all."""
    mass = sum_above(shares, np.float32(0))
    low, level = 0, LEVELS
    while level - low > 1:
        middle = (low + level) // 2
        if mass - sum_above(shares, np.float32(np.exp(-middle))) <= tail_mass * mass:
            level = middle
        else:
            low = middle
    return level


@kernel
def mine_rows(part, bounds, products, anchor_norms, norms, positive, margin, first, second, normalise, scale, tail_mass, statistics, counts):  # type: ignore[no-untyped-def]
    """Statistics of the losses x of each row, and how many of its candidates matter.

    products (n, m): anchor . candidate; x = margin + positive - |anchor - candidate|^2, and 0 where the column is ``first`` or ``second``
    (the pair itself; -1: not among the columns). statistics (n, 5): the mean of x (0 unless ``normalise``), the factor f of
    z = f (x - mean), the highest x, the x from which on candidates are kept, and the sum of exp(f (x - highest)) over what is left out.
    counts (n,): how many are kept.
    """
    columns = products.shape[1]
    x = np.empty(columns, dtype=norms.dtype)  # stays in the cache for the passes over a row
    shares = np.empty(columns, dtype=np.float32)
    for row in range(bounds[part], bounds[part + 1]):
        base = norms.dtype.type(margin + positive[row] - anchor_norms[row])
        losses_of(products[row], base, norms, first[row], second[row], x)  # type: ignore[no-untyped-call]
        total, squares = spread_of(x)
        mean = total / columns
        factor = scale
        if normalise:
            factor = scale / np.sqrt(max(squares / columns - mean * mean, 1e-12))
        highest = highest_of(x)
        weights_below(x, highest, factor, shares)  # type: ignore[no-untyped-call]
        cut = x.dtype.type(highest - level_that_matters(shares, tail_mass) / factor)
        counts[row] = count_from(x, cut)  # type: ignore[no-untyped-call]
        for c in range(columns):
            shares[c] = np.float32(0) if x[c] >= cut else shares[c]
        statistics[row, 0] = mean if normalise else 0.0
        statistics[row, 1] = factor
        statistics[row, 2] = highest
        statistics[row, 3] = cut
        statistics[row, 4] = sum_above(shares, np.float32(0))


@kernel
def collect_rows(part, bounds, products, anchor_norms, norms, positive, margin, first, second, statistics, offsets, columns_out):  # type: ignore[no-untyped-def]
    """Write the kept candidates of each row, ascending; the arguments are those of ``mine_rows``."""
    columns = products.shape[1]
    x = np.empty(columns, dtype=norms.dtype)
    for row in range(bounds[part], bounds[part + 1]):
        base = norms.dtype.type(margin + positive[row] - anchor_norms[row])
        losses_of(products[row], base, norms, first[row], second[row], x)  # type: ignore[no-untyped-call]
        cut = x.dtype.type(statistics[row, 3])
        position = offsets[row]
        for start in range(0, columns, SMALL_BLOCK):
            stop = min(start + SMALL_BLOCK, columns)
            if count_from(x[start:stop], cut):  # type: ignore[no-untyped-call]
                for c in range(start, stop):
                    if x[c] >= cut:
                        columns_out[position] = c
                        position += 1


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
