"""Neo4j's CSV: nodes and relationships in one or several tables, whose headers say what the columns are (``:ID``, ``:START_ID``, ``born:int``)."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import polars as pl

from engine.data.dialects import KNOWN
from engine.data.files import read_head
from engine.data.knowledge_graph import Finding
from engine.data.readers.base import RawGraph
from engine.data.readers.records import Notes, named_list, recorded_graph
from engine.data.rows import FileTally
from engine.data.tabular import Layout, Role, Table, open_table
from engine.data.texts import Texts, distinct_words, strings
from engine.errors import DataError
from engine.util.arrays import IntArray
from engine.util.text import count, shorten

Kind = Literal["ID", "LABEL", "START_ID", "END_ID", "TYPE", "IGNORE", "property"]
HEAD: Final = 2**16
CELL: Final = Role("value", (), literal=True)
ARRAYS: Final = ";"
LABELS: Final = "type"
"""The attribute that holds the labels of nodes; one called label would be taken for the name."""
_FIELD = re.compile(r"(?P<name>.*):(?P<kind>ID|LABEL|START_ID|END_ID|TYPE|IGNORE)(?:\((?P<space>[^()]*)\))?(?:\{.*\})?", re.IGNORECASE | re.DOTALL)
_PROPERTY = re.compile(r"(?P<name>.*?):(?P<type>[A-Za-z]+)(?:\{.*\})?(?P<array>\[\])?", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\n|\r")
_APOC: Final[dict[str, Kind]] = {"_id": "ID", "_labels": "LABEL", "_start": "START_ID", "_end": "END_ID", "_type": "TYPE"}


@dataclass(frozen=True)
class Field:
    """What a header says of a column.

    Attributes:
        name: of a property.
        space: the id space of an identifier.
        is_array: whether a cell holds several values.
    """

    kind: Kind
    name: str = ""
    space: str = ""
    is_array: bool = False


def property_fields(header: Sequence[str]) -> list[Field] | None:
    """The columns of a table of nodes or relationships; None where the header is of something else."""
    cells = [cell.strip() for cell in header]
    fields = [_field(cell) for cell in cells]
    if {"_id", "_labels"} <= set(cells) or {"_start", "_end", "_type"} <= set(cells):  # as the APOC procedures write them
        fields = [Field(_APOC[cell]) if cell in _APOC else field for cell, field in zip(cells, fields, strict=True)]
    kinds = {field.kind for field in fields}
    return fields if "ID" in kinds or {"START_ID", "END_ID"} <= kinds else None


def _field(cell: str) -> Field:
    if found := _FIELD.fullmatch(cell):
        kind: Kind = found["kind"].upper()  # type: ignore[assignment]
        return Field(kind, found["name"], found["space"] or "")
    found = _PROPERTY.fullmatch(cell)
    return Field("property", cell) if found is None else Field("property", found["name"], is_array=found["array"] is not None)


def property_delimiter(path: Path) -> str | None:
    """What is between the cells of a table of nodes or relationships; None where a file is something else.

    Raises:
        DataError: as :func:`read_head`.
    """
    head = read_head(path, HEAD)
    if b"\0" in head or not any(mark in head for mark in (b":", b"_id", b"_start")):
        return None
    return text_delimiter(head.decode("utf-8-sig", "replace"))


def text_delimiter(text: str) -> str | None:
    """The same, of the beginning of a file."""
    line = _LINE_END.split(text.lstrip("\ufeff").lstrip(), maxsplit=1)[0]
    for delimiter in KNOWN:
        try:
            cells = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(cells) > 1 and property_fields(cells) is not None:
            return delimiter
    return None


def read_property_graph(paths: Sequence[Path], findings: list[Finding]) -> RawGraph:
    """
    Raises:
        DataError: a file that is no table of nodes or relationships, a relationship without type, an identifier that cannot be one.
    """
    notes = Notes(paths[0], "table")
    reading = _Reading(notes)
    tables = [_Table(path) for path in paths]
    for table in tables:
        reading.nodes(table)
    reading.settle()
    for table in tables:
        reading.relationships(table)
    graph = reading.graph()
    findings += notes.findings()
    return graph


class _Table:
    """A table with what its header says."""

    def __init__(self, path: Path) -> None:
        delimiter = property_delimiter(path)
        if delimiter is None:
            raise DataError(
                "the header has no column :ID, and not both :START_ID and :END_ID, as the other files of this graph have.", path=path, line=1
            )
        self.path = path
        self.table: Table = open_table(path, Layout(delimiter=delimiter, header=True))
        self.fields = property_fields(self.table.names) or []
        self.tally = FileTally(path, len(self.table.lines), len(self.table.lines) - 1)

    def first(self, kind: Kind) -> int | None:
        return next((at for at, field in enumerate(self.fields) if field.kind == kind), None)

    def cells(self, position: int) -> Texts:
        return self.table.column(position, CELL, True)

    def filled(self, position: int) -> tuple[IntArray, Texts]:
        """The rows that have something in a column, and what."""
        cells = self.cells(position)
        rows = np.flatnonzero(cells.having((cells.words.str.strip_chars() != "").to_numpy()))
        return rows, cells.take(rows)


class _Reading:
    """A graph in the making, over all of its files."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.files: list[FileTally] = []
        self._ids: dict[str, list[Texts]] = defaultdict(list)
        self._attributes: list[tuple[str, Texts, Texts, Texts]] = []
        self._triples: list[tuple[Texts, Texts, Texts]] = []
        self._prefixed = False

    def nodes(self, table: _Table) -> None:
        """Of a table of relationships there are none."""
        own = table.first("ID")
        if own is None:
            return
        space = table.fields[own].space
        rows, ids = table.filled(own)
        self._ids[space].append(ids)
        self.files.append(table.tally.of("declared" if table.first("START_ID") is None else "triples"))
        if table.first("START_ID") is None:
            self.notes.left_out["row", "without an identifier"] += table.tally.rows - len(rows)
        for position, field in enumerate(table.fields):
            if field.kind == "LABEL":
                self._describe(space, rows, ids, LABELS, table.filled(position), r"[;:]")
            elif field.kind == "property" and field.name:
                self._describe(space, rows, ids, field.name, table.filled(position), ARRAYS if field.is_array else None)
            elif field.kind == "IGNORE":
                self.notes.left_out["column", "marked :IGNORE"] += 1

    def settle(self) -> None:
        """Whether identifiers need the names of their spaces."""
        words = [Texts.joined(*ids).words for ids in self._ids.values()]
        self._prefixed = len(words) > 1 and sum(map(len, words)) > len(distinct_words(*words))

    def relationships(self, table: _Table) -> None:
        """Of a table of nodes there are none."""
        ends = table.first("START_ID"), table.first("END_ID")
        if ends[0] is None or ends[1] is None:
            return
        kind = table.first("TYPE")
        if kind is None:
            raise DataError("there is no column :TYPE that says which relation it is; add one.", path=table.path, line=1)
        columns = [table.cells(position) for position in (ends[0], kind, ends[1])]
        filled = np.logical_and.reduce([column.having((column.words.str.strip_chars() != "").to_numpy()) for column in columns])
        head, relation, tail = (column.take(filled) for column in columns)
        self._triples.append((self._named(table.fields[ends[0]].space, head), relation, self._named(table.fields[ends[1]].space, tail)))
        if table.first("ID") is None:
            self.notes.left_out["row", "without start, end or type"] += int((~filled).sum())
            self.files.append(table.tally)
        for position, field in enumerate(table.fields):
            if field.kind == "property":
                rows, _ = table.filled(position)
                self.notes.left_out["value", "of properties of relationships"] += int(filled[rows].sum())

    def graph(self) -> RawGraph:
        if not self._triples:
            raise DataError("there is no table of relationships (:START_ID, :END_ID, :TYPE); add it, each graph needs some.", path=self.notes.path)
        entities = [self._named(space, one) for space, ids in self._ids.items() for one in ids]
        described = [(self._named(space, ids), names, values) for space, ids, names, values in self._attributes]
        triples, attributes = (_joined(parts) for parts in (self._triples, described))
        listed = Texts.of(Texts.joined(*entities).words)
        number = len(listed)
        spaces = ", identifiers with their id space in front, since several spaces share some" if self._prefixed else ""
        names = sorted(Texts.of(attributes[1]).words.to_list())
        self.notes.recognised = (
            f"Neo4j's CSV with {count(number, 'node')} and {count(len(triples[0]), 'relationship')}; attributes are {named_list(names)}{spaces}"
        )
        found = recorded_graph(self.notes.path, triples, attributes, listed, self.notes)
        return RawGraph(found.path, found.heads, found.relations, found.tails, found.entities, (), found.attributes, tuple(self.files))

    def _named(self, space: str, ids: Texts) -> Texts:
        return ids.renamed(pl.concat([strings(()), f"{space}:" + ids.words])) if self._prefixed and space else ids

    def _describe(self, space: str, rows: IntArray, ids: Texts, name: str, filled: tuple[IntArray, Texts], pattern: str | None) -> None:
        """Values of a column, of which a node may have several."""
        places, values = filled
        at = np.searchsorted(rows, places)
        known = at < len(rows)
        known[known] = rows[at[known]] == places[known]
        at, values = at[known], values.take(known)
        if pattern is not None:
            parts = [[part for one in re.split(pattern, cell) if (part := one.strip())] for cell in values.words.to_list()]
            lengths = np.array([len(cell) for cell in parts], dtype=np.int64)[values.codes] if len(parts) else np.zeros(0, dtype=np.int64)
            at, values = np.repeat(at, lengths), Texts.of(strings(part for code in values.codes.tolist() for part in parts[code]))
        self._attributes.append((space, ids.take(at), Texts.same(shorten(name, 4096), len(at)), values))


def _joined(parts: Sequence[tuple[Texts, Texts, Texts]]) -> tuple[Texts, Texts, Texts]:
    empty = Texts.of(())
    first, second, third = (Texts.joined(*(part[at] for part in parts), empty) for at in range(3))
    return first, second, third
