"""How wide a table's columns of numbers have to be, so that no number is cut: a number without its last digit is another number.

Streamlit takes a column's width from what is set, or from the first rows that it shows; neither is about the widest number of the column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pandas as pd

NAMED: Final[Mapping[str, int]] = {"small": 75, "medium": 200, "large": 400}
"""Streamlit's words for widths, in pixels."""
LETTER: Final = 8.2  # pixels of a digit or sign of a cell, with some to spare for other fonts
HEAD_LETTER: Final = 7.4  # pixels of a letter of a head
PADDING: Final = 20  # pixels at both sides of a cell together
WIDEST: Final = 420
NUMBERS: Final = re.compile(r"(?:[\d.,%()+\-−–—<\s]|to|of)*")
"""A text that holds numbers alone: a count, an interval, a difference with its interval."""


def with_room(data: pd.DataFrame, columns: Mapping[str, Any] | None) -> dict[str, Any]:
    """The configuration of a table's columns, in which each column of numbers is at least as wide as its widest number, and as its head.

    Other columns are as wide as their heads at least where a width is set. A head that the data names, such as a graph, may be cut.

    Args:
        data: the whole table.
        columns: as ``column_config`` of ``st.dataframe``.
    """
    found: dict[str, Any] = dict(columns or {})
    for name in data.columns:
        config = found.get(str(name))
        needed = needed_width(data[name], shown_format(config))
        given, head = _given(config), _head(str(name), config)
        if needed is not None:
            found[str(name)] = {**(config or {}), "width": max(needed, given or 0, head)}
        elif given and config is not None and config.get("label") is None:
            found[str(name)] = {**config, "width": max(given, head)}
    return found


def text_width(values: Iterable[str]) -> int:
    """Pixels for the longest of some texts, within bounds."""
    return min(math.ceil(LETTER * max(map(len, values), default=0)) + PADDING, WIDEST)


def needed_width(values: pd.Series[Any], form: str | None) -> int | None:
    """Pixels for the widest of some numbers as they are shown; None where the values are no numbers."""
    if pd.api.types.is_bool_dtype(values):
        return None
    present = values.dropna()
    if pd.api.types.is_numeric_dtype(values):
        shown = [shown_number(float(value), form, whole=pd.api.types.is_integer_dtype(values)) for value in _ends(present)]
    else:
        shown = [str(value) for value in present if str(value)]
        if not shown or not all(NUMBERS.fullmatch(one) for one in shown):
            return None
    return text_width(shown)


def _ends(values: pd.Series[Any]) -> list[float]:
    """The values that may be the widest as they are shown with this number of decimals: the smallest and the largest."""
    return [values.min(), values.max()] if len(values) else []


def shown_number(value: float, form: str | None, *, whole: bool) -> str:
    """A number as Streamlit shows it, or longer."""
    if not math.isfinite(value):
        return str(value)
    if form == "percent":
        return f"{value:.2%}"
    if form is not None and "%" in form:
        pattern = form.replace("%,", "%")
        return pattern % (int(value) if pattern.endswith("d") else value)
    return f"{value:,.0f}" if whole or (form == "localized" and value.is_integer()) else f"{value:,.4f}"


def shown_format(config: Any) -> str | None:
    """The format of a column's numbers, of its configuration."""
    found = ((config or {}).get("type_config") or {}).get("format") if isinstance(config, Mapping) else None
    return str(found) if found else None


def _given(config: Any) -> int | None:
    """The width that is set, in pixels."""
    width = config.get("width") if isinstance(config, Mapping) else None
    return NAMED.get(width) if isinstance(width, str) else width


def _head(name: str, config: Any) -> int:
    """Pixels for a column's head."""
    label = (config or {}).get("label") if isinstance(config, Mapping) else None
    return math.ceil(HEAD_LETTER * len(str(label or name))) + PADDING
