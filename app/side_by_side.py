"""Two entities next to each other: tables of their values and of their neighbours, with a mark in words on each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd
import streamlit as st

from app import cache, light_table, state, text
from app.cache import OpenRun
from app.palette import PLAIN_MARKS
from engine.data.labels import local_name
from engine.explore.neighbourhood import Facing, facing
from engine.explore.side_by_side import (
    Mark,
    NeighbourRow,
    ValueRow,
    attribute_counterparts,
    compare_neighbours,
    compare_values,
)
from engine.runs.entities import Entity

MARK_WORDS: Final[Mapping[Mark, str]] = {
    "same": "✓ same",
    "similar": "≈ similar",
    "different": "≠ different",
    "source only": "– only here",
    "target only": "– only there",
}
NEIGHBOUR_WORDS: Final[Mapping[Mark, str]] = {
    "same": "✓ known",
    "similar": "≈ predicted",
    "source only": "– not aligned",
    "target only": "– not aligned",
}
EVIDENCE_WORDS: Final = {
    "seed link": "✓ seed link",
    "added in a round": "✓ trained on",
    "known validation link": "✓ validation link",
    "known test link": "✓ test link",
}
VALUE_ROWS: Final = 6
NEIGHBOUR_ROWS: Final = 6
TEXT_LENGTH: Final = 90
LISTED: Final = 40
"""Neighbours of each entity that are looked at."""
TOGETHER: Final = 4
"""Neighbours that a row lists."""


def values(run: OpenRun, source: Entity, target: Entity, rows: int = VALUE_ROWS) -> None:
    """The values of both entities, aligned by attribute."""
    counterparts = cache.kept(
        [run], ("attributes",), lambda: attribute_counterparts(run.correspondences()) if run.view.has("correspondences") else {}
    )
    found = compare_values(run.view, source, target, counterparts)
    if not found:
        st.caption("Neither entity has a name or a value.")
        return
    _table([_value_cells(row) for row in found[:rows]], "Values", source, target)
    if len(found) > rows:
        with st.expander(f"{text.count(len(found) - rows, 'more attribute')}"):
            _table([_value_cells(row) for row in found[rows:]], "Values", source, target, "more")


def _table(rows: Sequence[Sequence[str]], what: str, source: Entity, target: Entity, *parts: str) -> None:
    data = pd.DataFrame(rows, columns=[what, f"{PLAIN_MARKS['source']} source", f"{PLAIN_MARKS['target']} target", "comparison"])
    light_table.show(data, key=state.widget_key(state.TABLE, what, source.uri, target.uri, *parts), alt=f"Table: {what.lower()} side by side")


def _value_cells(row: ValueRow) -> list[str]:
    names = dict.fromkeys(local_name(name) for name in (row.source_attribute, row.target_attribute) if name)
    mark = MARK_WORDS[row.mark] + (f", {row.note}" if row.note else "")
    return [text.cell(" / ".join(names), TEXT_LENGTH), *(text.cell(one, TEXT_LENGTH) or "·" for one in (row.source_text, row.target_text)), mark]


def neighbours(run: OpenRun, source: Entity, target: Entity, rows: int = NEIGHBOUR_ROWS) -> Facing:
    """The neighbours of both entities by relation, aligned ones first; those of one entity only share a row for each relation."""
    faced = facing(run.adjacency, source.index, target.index, LISTED)
    if not faced.total_source and not faced.total_target:
        st.caption("Neither entity has a neighbour.")
        return faced
    found = _balanced(compare_neighbours(faced), rows)
    _table([_neighbour_cells(row) for row in found], "Neighbours", source, target)
    totals = f"{faced.total_pairs:,} of {faced.total_source:,} source and {faced.total_target:,} target neighbours are aligned with each other."
    left = faced.total_pairs - sum(row.pair is not None for row in found)
    st.caption(f"{totals} {text.count(left, 'more aligned pair')} not listed." if left > 0 else totals)
    return faced


def _balanced(found: Sequence[NeighbourRow], rows: int) -> list[NeighbourRow]:
    """At most ``rows``: half of them, or more where there is room, for aligned pairs, so that what is not aligned is seen as well."""
    aligned, alone = [row for row in found if row.pair is not None], [row for row in found if row.pair is None]
    kept = min(len(aligned), max(rows - len(alone), rows // 2))
    return [*aligned[:kept], *alone[: rows - kept]]


def _neighbour_cells(row: NeighbourRow) -> list[str]:
    relations = " / ".join(dict.fromkeys(name for name in (row.source_relation, row.target_relation) if name))
    mark = EVIDENCE_WORDS.get(row.pair.evidence, NEIGHBOUR_WORDS[row.mark]) if row.pair is not None else NEIGHBOUR_WORDS[row.mark]
    if row.pair is not None and row.pair.evidence == "predicted" and not row.pair.mutual:
        mark += ", one way"
    return [text.cell(relations, TEXT_LENGTH), *(_titles(side) for side in (row.source, row.target)), mark]


def _titles(entities: Sequence[Entity]) -> str:
    if not entities:
        return "·"
    more = f" and {len(entities) - TOGETHER:,} more" if len(entities) > TOGETHER else ""
    return ", ".join(text.cell(one.title, 40) for one in entities[:TOGETHER]) + more
