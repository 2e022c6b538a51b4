from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.util import arrays

SIZES = (7, 3, 5)
ROWS = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), max_size=60)


@pytest.mark.parametrize("most", [arrays.MOST, 1])
@settings(deadline=None)
@given(rows=ROWS)
def test_rows_are_sorted_and_distinguished(most: int, rows: list[tuple[int, ...]]) -> None:
    table = np.array(rows, dtype=np.int32).reshape(-1, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "MOST", most)
        columns = arrays.sorted_rows(table.T, SIZES)
    assert [column.dtype for column in columns] == [np.int64] * 3
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == sorted(rows)
    fresh = arrays.fresh_rows(columns)
    assert list(zip(*(column[fresh].tolist() for column in columns), strict=True)) == sorted(set(rows))


def test_numbers_that_just_fit() -> None:
    big = 2**31
    columns = arrays.sorted_rows([np.array([big - 1, 0]), np.array([0, big - 1]), np.array([1, 0])], (big, big, 2))
    assert [column.tolist() for column in columns] == [[0, big - 1], [big - 1, 0], [0, 1]]
    wide = arrays.sorted_rows([np.array([big, 0]), np.array([1, big]), np.array([3, 0])], (big + 1, big + 1, 4))
    assert [column.tolist() for column in wide] == [[0, big], [big, 1], [0, 3]]


@given(st.lists(st.integers(-5, 5)))
def test_distinct_numbers(numbers: list[int]) -> None:
    assert arrays.distinct(np.array(numbers, dtype=np.int64)).tolist() == sorted(set(numbers))


@given(st.lists(st.tuples(st.integers(-5, 9), st.integers(0, 4)), max_size=6))
def test_spans_are_counted_on_from_their_starts(stretches: list[tuple[int, int]]) -> None:
    starts, lengths = (np.array([one[part] for one in stretches], dtype=np.int64) for part in (0, 1))
    assert arrays.spans(starts, lengths).tolist() == [number for start, length in stretches for number in range(start, start + length)]
