"""A wide table: a row for each entity, whose columns are attributes, or relations where their values name other rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from engine.data.knowledge_graph import Finding
from engine.data.readers.base import RawGraph
from engine.data.readers.records import (
    IDENTIFIER_WORDS,
    Columns,
    Notes,
    are_numbers,
    cannot_be_identifiers,
    holds_names,
    named_list,
    names_entities,
    recorded_graph,
)
from engine.data.rows import FileTally, Rows, check_identifiers
from engine.data.tabular import ATTRIBUTE_ROLES, TRIPLE_ROLES, Layout, Role, Table, is_header, normalise_name, place
from engine.data.texts import Texts, are_among, strings
from engine.errors import DataError
from engine.util.arrays import BoolArray, IntArray
from engine.util.text import count

ENTITY_ROLES: Final = (Role("identifier", IDENTIFIER_WORDS),)
CELL: Final = Role("value", (), literal=True)
SEPARATORS: Final = (";", "|")
"""Between several entities in one cell."""


def no_column() -> Texts:
    """A column without rows. Not a constant: the first column of a process starts threads, and a forked child would wait for them for ever."""
    return Texts.of(())


def is_entity_table(table: Table, layout: Layout) -> bool:
    """Whether each row is an entity: where the owner names the column of identifiers, or the header has one and is none of triples."""
    if "identifier" in layout.columns or layout.relations is not None:
        return True
    if (
        layout.header is False
        or layout.columns.keys() & {role.name for role in (*TRIPLE_ROLES, *ATTRIBUTE_ROLES)}
        or len(table.names) < len(TRIPLE_ROLES)
    ):
        return False
    if any(is_header(table.names, roles) for roles in (TRIPLE_ROLES, ATTRIBUTE_ROLES)):
        return False
    return any(normalise_name(name) in IDENTIFIER_WORDS for name in table.names)


def entity_layout(layout: Layout) -> Layout:
    """The same, of a table whose first row names the columns unless its owner says otherwise."""
    return dataclasses.replace(layout, header=True) if layout.header is None else layout


@dataclass(frozen=True)
class _Column:
    """A column of a wide table.

    Attributes:
        name: the relation or attribute.
        rows: (n,) row of the table that each value is of.
        values: n texts.
        is_relation: whether they are entities.
    """

    name: str
    rows: IntArray
    values: Texts
    is_relation: bool


def read_entity_table(table: Table, layout: Layout, findings: list[Finding]) -> RawGraph:
    """
    Raises:
        DataError: no identifier where one is needed, no column for them, an identifier that cannot be one.
    """
    places, has_header = place(table, ENTITY_ROLES, entity_layout(layout))
    own = next(iter(places.values()))
    skipped = int(has_header and not table.always_named)
    lines = table.lines[skipped:]
    if not len(lines):
        raise DataError("this table has no rows; expected one for each entity.", path=table.path)
    for position in layout.relations or ():
        if not 0 <= position < len(table.names) or position == own:
            raise DataError(f"column {position + 1} cannot hold a relation; this table has {len(table.names)} columns.", path=table.path)
    ids = table.column(own, ENTITY_ROLES[0], has_header)
    tally = FileTally(table.path, len(table.lines) + table.odd.passed + table.odd.joined, len(lines), "declared")
    check_identifiers(Rows(table.path, (ids,), lines), ["identifier"])
    names = [name if has_header or table.always_named else f"column {at}" for at, name in enumerate(table.names, start=1)]
    columns = [_column(table, position, names[position], has_header, ids.words, layout) for position in range(len(names)) if position != own]
    notes = Notes(table.path, "table")
    notes.left_out["column", "without a name"] += sum(not column.name.strip() for column in columns)
    columns = [column for column in columns if column.name.strip() and len(column.values)]
    related = [column.name for column in columns if column.is_relation]
    described = [column.name for column in columns if not column.is_relation]
    notes.recognised = (
        f"a table with a row for each entity; identifiers are in column '{names[own]}'; relations are {named_list(related)}; "
        f"attributes are {named_list(described)}"
    )
    triples, attributes = (_stacked(ids, [one for one in columns if one.is_relation == kind]) for kind in (True, False))
    if repeated := len(ids) - len(ids.words):
        notes.recognised += f"; {count(repeated, 'row repeats', 'rows repeat')} an identifier and {'adds' if repeated == 1 else 'add'} to its entity"
    graph = recorded_graph(table.path, triples, attributes, Texts.of(ids.words), notes)
    findings += notes.findings()
    return dataclasses.replace(graph, files=(tally,))


def _column(table: Table, position: int, name: str, has_header: bool, ids: pl.Series, layout: Layout) -> _Column:
    cells = table.column(position, CELL, has_header)
    if layout.trim:
        cells = cells.renamed(cells.words.str.strip_chars(" \t"))
    rows = np.flatnonzero(cells.having((cells.words.str.strip_chars() != "").to_numpy()))
    cells = cells.take(rows)
    numeric = are_numbers(ids)
    if layout.relations is not None and position not in layout.relations:
        return _Column(name, rows, cells, False)
    options = [(rows, cells), *filter(None, (_split(rows, cells, separator) for separator in SEPARATORS))]
    shares = [are_among(values.words, ids).mean() if len(values) else 0.0 for _, values in options]
    best = options[int(np.argmax(shares))]  # the first of equals: cells as they are
    if (layout.relations is not None or not holds_names(name)) and names_entities(are_among(best[1].words, ids), numeric):
        return _column_of_entities(name, *best)
    if layout.relations is not None:
        return _column_of_entities(name, rows, cells)
    return _Column(name, rows, cells, False)


def _column_of_entities(name: str, rows: IntArray, cells: Texts) -> _Column:
    fit: BoolArray = ~cells.having(cannot_be_identifiers(cells.words))
    return _Column(name, rows[fit], cells.take(fit), True)


def _split(rows: IntArray, cells: Texts, separator: str) -> tuple[IntArray, Texts] | None:
    """The cells taken apart; None where none has the separator."""
    if not cells.words.str.contains(separator, literal=True).any():
        return None
    parts = cells.words.str.split(separator).to_list()
    stripped = [[part for one in cell if (part := one.strip())] for cell in parts]
    lengths = np.array([len(cell) for cell in stripped], dtype=np.int64)[cells.codes]
    values = [part for code in cells.codes.tolist() for part in stripped[code]]
    return np.repeat(rows, lengths), Texts.of(strings(values))


def _stacked(ids: Texts, columns: Sequence[_Column]) -> Columns:
    """Rows of entity, name of the column, value."""
    return (
        Texts.joined(*(ids.take(one.rows) for one in columns), no_column()),
        Texts.joined(*(Texts.same(one.name, len(one.rows)) for one in columns), no_column()),
        Texts.joined(*(one.values for one in columns), no_column()),
    )
