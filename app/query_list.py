"""A list of test entities to look through: searched on the server, cut to what one reads, each row a way to the entity's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app import components, pages, state, text
from app.cache import OpenRun
from engine.data.knowledge_graph import Side
from engine.runs.entities import Entity, other

ROWS = 300
NOTHING = -1
COUNTERPART = "counterpart"


def query_list(
    run: OpenRun,
    runs: Sequence[str],
    side: Side,
    table: pd.DataFrame,
    *,
    search: str | None,
    name: str,
    answers: Mapping[str, str],
    columns: Mapping[str, Any] | None = None,
    also: Mapping[str, str] | None = None,
) -> None:
    """The list with its search. A row that is chosen opens the entity's page with all the runs.

    Args:
        run: the main run, which has the entities.
        runs: the open runs, the main one first.
        side: graph of the entities.
        table: entity, then columns that are shown as they are, their names without markup; in the order to list them.
        search: text that an entity's label or identifier must hold.
        name: of the download.
        answers: column of ``table`` with entities of the other graph -> its heading.
        columns: as in :func:`app.components.table`.
        also: as in :func:`app.components.search_box`.
    """
    components.search_box("Search in this list", search, placeholder="label, ID or URI", also=also)
    fitting = table[run.view.graphs[side].fitting(search)[table["entity"].to_numpy()]] if search else table
    if fitting.empty:
        st.info("No entity in this list matches the search." if len(table) else "This list is empty.", icon=":material/search_off:")
        return
    shown = fitting.head(ROWS)
    more = f"; the first {ROWS} are shown, the download contains all" if len(fitting) > ROWS else ""
    words = f"{text.count(len(fitting), 'entity', 'entities')}{more}. Select a row to open the entity."
    row = components.table(
        readable(run, side, shown, answers),
        name=name,
        above=lambda: st.caption(words),
        whole=lambda: readable(run, side, fitting, answers),
        key=state.widget_key(state.QUERY_LIST, name, tuple(runs), side, tuple(shown["entity"])),
        on_select="rerun",
        columns={COUNTERPART: st.column_config.TextColumn(help="The true counterpart, by the test links."), **(columns or {})},
        height=420 if len(shown) > 10 else "auto",
    )
    if row is not None:
        pages.go(pages.ENTITY, state.entity_address(runs, run.view.entity(side, int(shown["entity"].iloc[row])), pool="test"))


def readable(run: OpenRun, side: Side, table: pd.DataFrame, answers: Mapping[str, str]) -> pd.DataFrame:
    """The rows with names in place of numbers of entities."""
    entities = [run.view.entity(side, entity) for entity in table["entity"].tolist()]
    named = pd.DataFrame({"entity": [text.cell(one.title) for one in entities], COUNTERPART: [_counterparts(run, one) for one in entities]})
    for column in table.columns.drop("entity"):
        values = table[column]
        named[answers.get(column, column)] = [_name(run, other(side), one) for one in values.tolist()] if column in answers else values.to_numpy()
    return named.assign(id=[text.cell(one.short_id) for one in entities])


def _counterparts(run: OpenRun, entity: Entity) -> str:
    """What the test links say an entity's counterpart is: the answer that would have been right."""
    across = run.view.graphs[other(entity.side)]
    known = run.view.counterparts(entity.side, entity.index)
    return ", ".join(text.cell(across.title(one)) for one, relation in known.items() if relation == "known test link") or "—"


def _name(run: OpenRun, side: Side, entity: int) -> str:
    return "—" if entity == NOTHING else text.cell(run.view.entity(side, entity).title)
