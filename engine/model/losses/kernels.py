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

from engine.util.prefetch import AHEAD, prefetch_row
from engine.util.threads import compiled, kernel

LEVELS = 24  # nats below the hardest candidate that are looked at; exp(-24) of a million candidates is 4e-5 of the hardest one
NEAR = 8  # nats below the hardest candidate within which nearly always all that matters lies
ROUNDING = 0.01  # nats
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
def levels_below(x, highest, factor, levels, shares):  # type: ignore[no-untyped-def]
    """levels = whole nats that factor x lies below the highest, at most LEVELS; shares = exp(factor (x - highest)), float32."""
    by = x.dtype.type(factor)
    for c in range(len(x)):
        nats = np.float32(by * (highest - x[c]))
        levels[c] = np.int32(min(nats, np.float32(LEVELS)))
        shares[c] = power_of_two(np.float32(nats * np.float32(-LOG2_E)))


@compiled
def sort_into_levels(x, highest, factor, depth, levels, shares, masses, counts):  # type: ignore[no-untyped-def]
    """Add what lies less than ``depth`` nats below the highest to the masses and counts of its level; levels and shares hold a small block."""
    cut = x.dtype.type(highest - (depth + ROUNDING) / factor)
    for start in range(0, len(x), SMALL_BLOCK):
        block = x[start : start + SMALL_BLOCK]
        if count_from(block, cut):  # type: ignore[no-untyped-call]
            levels_below(block, highest, factor, levels, shares)  # type: ignore[no-untyped-call]
            for c in range(len(block)):
                if levels[c] < depth:
                    masses[levels[c]] += shares[c]
                    counts[levels[c]] += 1


@njit(inline="always")
def mass_between(x, highest, factor, near):  # type: ignore[no-untyped-def]
    """Sum of exp(factor (x - highest)) over what lies from ``near`` down to LEVELS nats below the highest; by the numbers of :func:`levels_below`."""
    by, total = x.dtype.type(factor), np.float32(0)
    for c in range(len(x)):
        nats = np.float32(by * (highest - x[c]))
        share = power_of_two(np.float32(nats * np.float32(-LOG2_E)))
        total += share if near <= nats < np.float32(LEVELS) else np.float32(0)
    return np.float64(total)


@kernel
def spread_rows(part, bounds, products, anchor_norms, norms, positive, margin, first, second, moments, highest):  # type: ignore[no-untyped-def]
    """Sum, sum of squares (moments: (n, 2)) and highest (n,) of the losses x of each row.

    products (n, m): anchor . candidate; x = margin + positive - |anchor - candidate|^2, and 0 where the column is ``first`` or ``second``
    (the pair itself; -1: not among the columns).
    """
    x = np.empty(products.shape[1], dtype=norms.dtype)  # stays in the cache for the passes over a row
    for row in range(bounds[part], bounds[part + 1]):
        base = norms.dtype.type(margin + positive[row] - anchor_norms[row])
        losses_of(products[row], base, norms, first[row], second[row], x)  # type: ignore[no-untyped-call]
        moments[row, 0], moments[row, 1] = spread_of(x)
        highest[row] = highest_of(x)


@kernel
def level_rows(part, bounds, products, anchor_norms, norms, positive, margin, first, second, factor, highest, near, tail, masses, counts):  # type: ignore[no-untyped-def]
    """How much lies how far below each row's highest x: masses and counts (n, LEVELS) start at zero.

    Level l holds the candidates that lie between l and l + 1 nats below it, each with exp(factor (x - highest)); what lies below is skipped. Where
    less than the share ``tail`` of all mass lies ``near`` nats below or deeper, that mass is in level ``near``, without a count: nothing of it can be
    kept. The other arguments are those of ``spread_rows``.
    """
    columns = products.shape[1]
    x = np.empty(columns, dtype=norms.dtype)
    levels, shares = np.empty(SMALL_BLOCK, dtype=np.int32), np.empty(SMALL_BLOCK, dtype=np.float32)
    for row in range(bounds[part], bounds[part + 1]):
        base = norms.dtype.type(margin + positive[row] - anchor_norms[row])
        losses_of(products[row], base, norms, first[row], second[row], x)  # type: ignore[no-untyped-call]
        sort_into_levels(x, highest[row], factor[row], near, levels, shares, masses[row], counts[row])  # type: ignore[no-untyped-call]
        if near < LEVELS:
            inside, below = masses[row].sum(), 0.0
            for start in range(0, columns, SMALL_BLOCK):
                below += mass_between(x[start : start + SMALL_BLOCK], highest[row], factor[row], np.float32(near))
            if below > tail * (inside + below):
                masses[row] = 0
                counts[row] = 0
                sort_into_levels(x, highest[row], factor[row], LEVELS, levels, shares, masses[row], counts[row])  # type: ignore[no-untyped-call]
            else:
                masses[row, near] = below


@kernel
def collect_rows(part, bounds, products, anchor_norms, norms, positive, margin, first, second, factor, highest, kept, offsets, columns_out):  # type: ignore[no-untyped-def]
    """Write the columns of each row that lie less than ``kept`` (n,) nats below its highest, ascending; arguments as there."""
    columns = products.shape[1]
    x = np.empty(columns, dtype=norms.dtype)
    levels, shares = np.empty(SMALL_BLOCK, dtype=np.int32), np.empty(SMALL_BLOCK, dtype=np.float32)
    for row in range(bounds[part], bounds[part + 1]):
        base = norms.dtype.type(margin + positive[row] - anchor_norms[row])
        losses_of(products[row], base, norms, first[row], second[row], x)  # type: ignore[no-untyped-call]
        cut = x.dtype.type(highest[row] - (kept[row] + ROUNDING) / factor[row])
        position = offsets[row]
        for start in range(0, columns, SMALL_BLOCK):
            block = x[start : start + SMALL_BLOCK]
            if count_from(block, cut):  # type: ignore[no-untyped-call]
                levels_below(block, highest[row], factor[row], levels, shares)  # type: ignore[no-untyped-call]
                for c in range(len(block)):
                    if levels[c] < kept[row]:
                        columns_out[position] = start + c
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
    factor,
    highest,
    weights,
    totals,
    masses,
    out,
):
    """Score each row's kept candidates from the embeddings: exp(factor (x - highest)) is what they weigh in its softmax, before it is divided by all.

    weights (t,): by entry, 0 for the pair's own, which the gradient takes for constant; totals (n,): a row's sum of them; masses (n,): the same with
    the pair's own; out (n, D): sum of weights_t features_{columns_t}.
    """
    width, last = features.shape[1], len(columns) - 1
    for i in range(bounds[part], bounds[part + 1]):
        base = features.dtype.type(margin + positive[i] - anchor_norms[i])
        for k in range(width):
            out[i, k] = 0
        total, mass = 0.0, 0.0
        for t in range(offsets[i], offsets[i + 1]):
            c = columns[t]
            prefetch_row(features, columns[min(t + AHEAD, last)])
            constant = c == first[i] or c == second[i]
            x = features.dtype.type(0)
            if not constant:
                for k in range(width):
                    x += anchors[i, k] * features[c, k]
                x = base - norms[c] + 2 * x
            share = np.exp(factor[i] * (x - highest[i]))
            mass += share
            weights[t] = 0.0 if constant else share
            if not constant:
                total += share
                share = features.dtype.type(share)
                for k in range(width):
                    out[i, k] += share * features[c, k]
        totals[i], masses[i] = total, mass


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
