"""Selection on a CPU: compiled loops over a tile of scores that touch only what beats a bar.

The bars are compared a strip at a time without branches, which compiles to vector instructions; strips without a hit (nearly all of them, once a few
thousand scores have been seen) cost no more than reading them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.util.arrays import Float32Array, IntArray
from engine.util.threads import compiled, first_from, spread, summing

SparseRows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""CSR arrays: where each row starts, columns (ascending within a row), values."""

STRIP = 64
"""Scores compared before anything is decided."""


@compiled
def replace_root(values: Float32Array, indices: IntArray, value: float, index: int) -> None:
    """Put an entry in the place of a heap's worst one. Lower values are worse, among equal values higher indices are."""
    k = len(values)
    node = 0
    while True:
        child = 2 * node + 1
        if child >= k:
            break
        other = child + 1
        if other < k and (values[other] < values[child] or (values[other] == values[child] and indices[other] > indices[child])):
            child = other
        if values[child] > value or (values[child] == value and indices[child] < index):
            break
        values[node], indices[node] = values[child], indices[child]
        node = child
    values[node], indices[node] = value, index


@compiled
def push_rows(
    scores: Float32Array,
    start: int,
    stop: int,
    first: int,
    offset: int,
    terms: Float32Array,
    values: Float32Array,
    indices: IntArray,
    bars: Float32Array,
) -> None:
    """Offer the scores of tile rows start..stop, with a term for each column added, to the heaps of queries first + row; keys are offset + column."""
    width = scores.shape[1]
    for i in range(start, stop):
        query = first + i
        bar = bars[query]
        for left in range(0, width, STRIP):
            strip, own = scores[i, left : left + STRIP], terms[left : left + STRIP]
            hits = np.int32(0)
            for j in range(len(strip)):
                hits |= np.int32(strip[j] + own[j] > bar)
            if hits:
                for j in range(len(strip)):
                    if strip[j] + own[j] > bar:
                        replace_root(values[query], indices[query], strip[j] + own[j], offset + left + j)
                        bar = values[query, 0]
        bars[query] = bar


@compiled
def push_columns(
    scores: Float32Array,
    start: int,
    stop: int,
    first: int,
    offset: int,
    terms: Float32Array,
    values: Float32Array,
    indices: IntArray,
    bars: Float32Array,
) -> None:
    """Offer the scores of tile columns start..stop, with a term for each row added, to the heaps of queries first + column; keys are offset + row."""
    for i in range(scores.shape[0]):
        term = terms[i]
        for left in range(start, stop, STRIP):
            right = min(left + STRIP, stop)
            strip = scores[i, left:right]
            own = bars[first + left : first + right]
            hits = np.int32(0)
            for j in range(len(strip)):
                hits |= np.int32(strip[j] + term > own[j])
            if hits:
                for j in range(len(strip)):
                    if strip[j] + term > own[j]:
                        query = first + left + j
                        replace_root(values[query], indices[query], strip[j] + term, offset + i)
                        own[j] = values[query, 0]


@compiled
def sort_heaps(start: int, stop: int, terms: Float32Array, values: Float32Array, indices: IntArray) -> None:
    """Turn heaps start..stop, with the query's term added to their values, into lists: the best first, of equals the lower index."""
    for i in range(start, stop):
        own, keys = values[i], indices[i]
        for last in range(len(own) - 1, 0, -1):
            value, key = own[last], keys[last]
            own[last], keys[last] = own[0], keys[0]
            replace_root(own[:last], keys[:last], value, key)
        for place in range(len(own)):
            own[place] += terms[i]
        for place in range(1, len(own)):  # values that the term's rounding made equal
            value, key, free = own[place], keys[place], place
            while free and (own[free - 1] < value or (own[free - 1] == value and keys[free - 1] > key)):
                own[free], keys[free] = own[free - 1], keys[free - 1]
                free -= 1
            own[free], keys[free] = value, key


@compiled
def order_lists(start: int, stop: int, scores: npt.NDArray[np.float64], indices: IntArray, order: IntArray) -> None:
    """Positions that put rows start..stop in descending order of their scores, of equals the lower index first; quick where they nearly are."""
    for i in range(start, stop):
        own, keys, places = scores[i], indices[i], order[i]
        for place in range(len(own)):
            free = place
            while free and (own[places[free - 1]] < own[place] or (own[places[free - 1]] == own[place] and keys[places[free - 1]] > keys[place])):
                places[free] = places[free - 1]
                free -= 1
            places[free] = place


@compiled
def count_rows(scores: Float32Array, start: int, stop: int, first: int, terms: Float32Array, bars: Float32Array, counts: IntArray) -> None:
    """Add to each query's count the scores of its tile row that reach its bar, once a term for each column is added."""
    for i in range(start, stop):
        bar = bars[first + i]
        reached = np.int32(0)
        for j in range(scores.shape[1]):
            reached += np.int32(scores[i, j] + terms[j] >= bar)
        counts[first + i] += reached


@compiled
def count_columns(scores: Float32Array, start: int, stop: int, first: int, terms: Float32Array, bars: Float32Array, counts: IntArray) -> None:
    """Add to each query's count the scores of its tile column that reach its bar, once a term for each row is added."""
    own = bars[first + start : first + stop]
    reached = np.zeros(len(own), dtype=np.int32)
    for i in range(scores.shape[0]):
        row, term = scores[i, start:stop], terms[i]
        for j in range(len(row)):
            reached[j] += np.int32(row[j] + term >= own[j])
    for j in range(len(own)):
        counts[first + start + j] += reached[j]


@compiled
def copy_cells(start: int, stop: int, scores: Float32Array, rows: IntArray, columns: IntArray, left: int, out: Float32Array) -> None:
    """Copy some columns of some rows of a tile into rows start..stop of a table, from its column ``left`` on."""
    for i in range(start, stop):
        row, own = scores[rows[i]], out[i]
        for j in range(len(columns)):
            own[left + j] = row[columns[j]]


def pair_dots(source: Float32Array, target: Float32Array, left: IntArray, right: IntArray) -> npt.NDArray[np.float64]:
    """(P,) inner products of source rows ``left`` and target rows ``right``, in float64; a pair's value does not depend on the others."""
    out = np.empty(len(left), dtype=np.float64)
    spread(lambda start, stop: fill_pair_dots(source, target, left, right, start, stop, out), len(left), len(left) * source.shape[1])
    return out


@summing
def fill_pair_dots(
    source: Float32Array, target: Float32Array, left: IntArray, right: IntArray, start: int, stop: int, out: npt.NDArray[np.float64]
) -> None:
    for pair in range(start, stop):
        i, j = left[pair], right[pair]
        total = 0.0
        for column in range(source.shape[1]):
            total += np.float64(source[i, column]) * np.float64(target[j, column])
        out[pair] = total


@compiled
def add_sparse_products(
    scores: Float32Array, start: int, stop: int, top: int, left: int, weight: np.float32, source: SparseRows, postings: SparseRows
) -> None:
    """Add to tile rows start..stop the weighted inner products of sparse rows; the tile's corner is pair (top, left).

    ``postings`` holds for each feature the target entities that have it. Equal target rows get bit-equal sums, whatever their position.
    """
    begins, features, values = source
    posting_begins, entities, posting_values = postings
    width = scores.shape[1]
    for i in range(start, stop):
        out = scores[i]
        for at in range(begins[top + i], begins[top + i + 1]):
            feature, value = features[at], weight * values[at]
            end = posting_begins[feature + 1]
            for posting in range(first_from(entities, posting_begins[feature], end, left), end):
                j = entities[posting] - left
                if j >= width:
                    break
                out[j] += value * posting_values[posting]


@compiled
def add_best_products(
    scores: Float32Array, start: int, stop: int, weight: np.float32, own: IntArray, others: IntArray, source: SparseRows, postings: SparseRows
) -> None:
    """Add to tile rows start..stop the weighted inner product of each pair's best names, without a table of all names.

    Args:
        scores: (height, width) of entities.
        own: (height + 1,) rows of ``source`` where the names of each of the tile's source entities begin.
        others: (width + 1,) the same for its target entities.
        source: rows of all source names.
        postings: for each feature the target names that have it, ascending.
    """
    begins, features, values = source
    posting_begins, names, posting_values = postings
    left, width = others[0], others[-1] - others[0]
    table, best = np.zeros(width, dtype=np.float32), np.empty(scores.shape[1], dtype=np.float32)
    for i in range(start, stop):
        for name in range(own[i], own[i + 1]):
            for at in range(begins[name], begins[name + 1]):
                feature, value = features[at], values[at]
                end = posting_begins[feature + 1]
                for posting in range(first_from(names, posting_begins[feature], end, left), end):
                    j = names[posting] - left
                    if j >= width:
                        break
                    table[j] += value * posting_values[posting]
            for j in range(scores.shape[1]):
                largest = np.float32(0) if name == own[i] else best[j]
                for other in range(others[j] - left, others[j + 1] - left):
                    largest = max(largest, table[other])
                    table[other] = np.float32(0)
                best[j] = largest
        for j in range(scores.shape[1]):
            scores[i, j] += weight * best[j]


@compiled
def scale_nameless(scores: Float32Array, start: int, stop: int, named: npt.NDArray[np.bool_], factors: Float32Array, factor: np.float32) -> None:
    """Multiply tile rows start..stop: a row without a name by ``factor``, each other one by its columns' ``factors``."""
    for i in range(start, stop):
        row = scores[i]
        if named[i]:
            for j in range(len(row)):
                row[j] *= factors[j]
        else:
            for j in range(len(row)):
                row[j] *= factor


def sparse_pair_dots(source: SparseRows, target: SparseRows, left: IntArray, right: IntArray) -> npt.NDArray[np.float64]:
    """(P,) inner products of sparse source rows ``left`` and target rows ``right``, in float64."""
    out = np.empty(len(left), dtype=np.float64)
    spread(lambda start, stop: fill_sparse_pair_dots(source, target, left, right, start, stop, out), len(left), 64 * len(left))
    return out


@compiled
def fill_sparse_pair_dots(
    source: SparseRows, target: SparseRows, left: IntArray, right: IntArray, start: int, stop: int, out: npt.NDArray[np.float64]
) -> None:
    begins, features, values = source
    other_begins, other_features, other_values = target
    for pair in range(start, stop):
        one, one_end = begins[left[pair]], begins[left[pair] + 1]
        two, two_end = other_begins[right[pair]], other_begins[right[pair] + 1]
        total = 0.0
        while one < one_end and two < two_end:
            if features[one] == other_features[two]:
                total += np.float64(values[one]) * np.float64(other_values[two])
                one += 1
                two += 1
            elif features[one] < other_features[two]:
                one += 1
            else:
                two += 1
        out[pair] = total
