"""Columns of numbers are as wide as their widest number, whatever is set."""

from __future__ import annotations

import pandas as pd
import pytest
import streamlit as st

from app.column_widths import LETTER, PADDING, needed_width, with_room


@pytest.mark.parametrize(
    ("values", "form", "shown"),
    [
        ([7, -791], "%+d", "-791"),
        ([791], "%+d", "+791"),
        ([1_234_567], None, "1,234,567"),
        ([1_234_567], "localized", "1,234,567"),
        ([0.5, 0.123], "percent", "50.00%"),
        ([-1.25, 2.0], "%.3f", "-1.250"),
        (["+0.032 (+0.025 to +0.039)", "—"], None, "+0.032 (+0.025 to +0.039)"),
        ([1.0, None], "%.3f", "1.000"),
    ],
)
def test_a_column_has_room_for_its_widest_number(values: list[object], form: str | None, shown: str) -> None:
    width = needed_width(pd.Series(values), form)
    assert width is not None
    assert width >= LETTER * len(shown) + PADDING


@pytest.mark.parametrize("values", [["Bavaria", "7"], [""], [True, False], ["7 of Nine"]])
def test_other_columns_are_left_alone(values: list[object]) -> None:
    assert needed_width(pd.Series(values), None) is None


def test_a_width_that_is_set_is_kept_where_it_is_enough() -> None:
    data = pd.DataFrame({"net": [791], "rank": [1], "name": ["x"]})
    number = st.column_config.NumberColumn
    found = with_room(data, {"net": number(format="%+d", width=40), "rank": number(width=70, help="of all"), "name": st.column_config.TextColumn()})
    assert found["net"]["width"] > 40
    assert (found["rank"]["width"], found["rank"]["help"]) == (70, "of all")
    assert found["name"].get("width") is None


def test_columns_without_a_configuration_have_room_for_number_and_head() -> None:
    found = with_room(pd.DataFrame({"test entities": [5], "n": [123_456_789]}), None)
    assert found["test entities"]["width"] > LETTER * len("test entities")
    assert found["n"]["width"] > LETTER * len("123,456,789")


def test_a_table_without_rows_is_no_error() -> None:
    assert with_room(pd.DataFrame({"n": pd.Series([], dtype="int64")}), None)["n"]["width"] > 0


def test_no_head_of_ours_is_cut() -> None:
    data = pd.DataFrame({"inverse functionality": [0.5], "known as": ["x"], "graph": ["y"]})
    columns = {
        "inverse functionality": st.column_config.NumberColumn(width="small"),
        "known as": st.column_config.TextColumn(width=20),
        "graph": st.column_config.TextColumn("the name of a graph as the data have it", width=100),
    }
    found = with_room(data, columns)
    assert found["inverse functionality"]["width"] > 21 * 7
    assert found["known as"]["width"] > 8 * 7
    assert found["graph"]["width"] == 100
