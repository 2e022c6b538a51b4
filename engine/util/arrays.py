"""The arrays' types, and rows of small numbers packed as single ones: a sort by several keys is then one of plain integers, several times faster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]

MOST: Final = 2**63
"""Number of values that 64 bits without a sign can distinguish."""


def link_keys(links: IntArray, width: int) -> IntArray:
    """(n, 2) links -> (n,) one number each; ``width``: what the second column stays below."""
    keys: IntArray = links[:, 0] * width + links[:, 1]
    return keys


def links_of_keys(keys: IntArray, width: int) -> IntArray:
    """(n,) keys -> (n, 2) links: the inverse of :func:`link_keys`."""
    return np.stack(np.divmod(keys, width), axis=1)


def sorted_rows(columns: Sequence[npt.NDArray[np.integer]], sizes: Sequence[int]) -> list[IntArray]:
    """The rows by their first column, then by their second, and so on.

    Args:
        columns: (n,) each.
        sizes: what the numbers of each column stay below.
    """
    if math.prod(max(size, 1) for size in sizes) > MOST:
        order = np.lexsort(tuple(columns)[::-1])
        return [column[order].astype(np.int64, copy=False) for column in columns]
    keys = columns[0].astype(np.int64)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        keys *= size
        keys += column
    keys.sort()
    return unpacked(keys, sizes)


def unpacked(keys: IntArray, sizes: Sequence[int]) -> list[IntArray]:
    """The columns that were packed into the keys."""
    columns = []
    for size in reversed(sizes[1:]):
        keys, column = np.divmod(keys, max(size, 1))
        columns.append(column)
    return [keys, *reversed(columns)]


def fresh_rows(columns: Sequence[npt.NDArray[np.generic]]) -> BoolArray:
    """(n,) which of the sorted rows differ from the one before."""
    fresh = np.zeros(len(columns[0]), dtype=bool)
    fresh[:1] = True
    for column in columns:
        fresh[1:] |= column[1:] != column[:-1]
    return fresh


def row_starts(lengths: npt.NDArray[np.integer] | Sequence[int]) -> IntArray:
    """(n + 1,) where each of n stretches of these lengths begins, laid one after the other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def row_pointers(rows: IntArray, count: int) -> IntArray:
    """(count + 1,) where each row's entries begin in arrays sorted by row."""
    return row_starts(np.bincount(rows, minlength=count))


def places(rows: IntArray, size: int) -> IntArray:
    """The position of each of the distinct ``rows``; of other numbers below ``size`` nothing that may be read."""
    place = np.empty(size, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return place


def spans(starts: npt.NDArray[np.integer], lengths: npt.NDArray[np.integer]) -> IntArray:
    """The numbers of several stretches, one after the other: a number of them from each start on."""
    found: IntArray = np.arange(int(lengths.sum())) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return found


def distinct(keys: IntArray) -> IntArray:
    """The different numbers, ascending; sorts ``keys`` in their place."""
    keys.sort()
    return keys[fresh_rows([keys])]
