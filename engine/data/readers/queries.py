"""What queries of a database give, as a graph: rows of head, relation and tail, or a row for each entity."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from engine.data.readers.base import RawGraph
from engine.data.readers.records import IDENTIFIER_WORDS, Notes, RowsBuilder, divided, named_list, recorded_graph
from engine.data.tabular import TRIPLE_ROLES, is_header, normalise_name
from engine.data.texts import Texts
from engine.errors import DataError
from engine.util.text import count

SECONDS: Final = 120.0
ROWS: Final = 20_000_000
LONGEST_QUERY: Final = 20_000
DEFAULT_QUERY: Final = "SELECT head, relation, tail FROM triples"
EXAMPLE: Final = "SELECT head, relation, tail FROM triples"


def check_query(path: Path, query: str) -> None:
    """
    Raises:
        DataError: a query that no one writes, or a packed file.
    """
    with path.open("rb") as file:
        if file.read(2) == b"\x1f\x8b":
            raise DataError("a database is not read from a gzip file; unpack it first.", path=path)
    if len(query) > LONGEST_QUERY or "\0" in query:
        raise DataError(f"the query is longer than {LONGEST_QUERY:,} characters, or holds a NUL character; write a shorter one.", path=path)


def graph_of_rows(path: Path, names: Sequence[str], rows: Iterator[tuple[Any, ...]], notes: Notes, title: str) -> RawGraph:
    """The graph that the rows of a query are.

    Args:
        names: of the columns.
        title: of the database, for what was recognised: "SQLite database".

    Raises:
        DataError: columns that are no graph.
    """
    normal = [normalise_name(name) for name in names]
    own = next((normal.index(word) for word in IDENTIFIER_WORDS if word in normal), None)
    if is_header(names, TRIPLE_ROLES) or (own is None and len(names) == len(TRIPLE_ROLES)):
        return _triples(path, names, rows, notes, title)
    if own is None:
        found = named_list(names)
        raise DataError(f"the query must give head, relation and tail, or a column 'id' and others; it gives {found}.", path=path)
    return _entities(path, names, own, rows, notes, title)


def _triples(path: Path, names: Sequence[str], rows: Iterator[tuple[Any, ...]], notes: Notes, title: str) -> RawGraph:
    normal = [normalise_name(name) for name in names]
    places = [role.find(normal) for role in TRIPLE_ROLES] if is_header(names, TRIPLE_ROLES) else list(range(len(TRIPLE_ROLES)))
    at = [place for place in places if place is not None]
    if len(set(at)) < len(TRIPLE_ROLES):
        raise DataError(f"the query must give head, relation and tail; it gives {named_list(names)}.", path=path)
    value_at = normal.index("value") if "value" in normal else None
    triples, attributes = RowsBuilder(path), RowsBuilder(path)
    number = 0
    for row in rows:
        number += 1
        head, relation, tail = (_cell(row[place]) for place in at)
        value = "" if value_at is None else _cell(row[value_at])
        if head and relation and tail:
            triples.add(head, relation, tail)
        elif head and relation and value:
            attributes.add(head, relation, value)
        else:
            notes.left_out["row", "with an empty cell"] += 1
    notes.recognised = f"a {title}, whose query gives {count(number, 'row')} of head, relation and tail"
    return recorded_graph(path, triples.columns(), attributes.columns(), Texts.of(()), notes)


def _entities(path: Path, names: Sequence[str], own: int, rows: Iterator[tuple[Any, ...]], notes: Notes, title: str) -> RawGraph:
    facts, ids = RowsBuilder(path), dict[str, None]()
    for row in rows:
        entity = _cell(row[own])
        if not entity.strip():
            notes.left_out["row", "without an identifier"] += 1
            continue
        ids[entity] = None
        for place, cell in enumerate(row):
            if place != own and (text := _cell(cell)).strip():
                facts.add(entity, names[place], text)
    listed = Texts.of(ids)
    triples, attributes, related = divided(facts.columns(), listed.words)
    notes.recognised = f"a {title}, whose query gives a row for each of {count(len(ids), 'entity', 'entities')}; relations are {named_list(related)}"
    return recorded_graph(path, triples, attributes, listed, notes)


def _cell(value: Any) -> str:
    """A value as text; what is no text and no number is none."""
    if isinstance(value, bytes | bytearray | memoryview) or value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return re.sub(r"\.0\Z", "", repr(value)) if isinstance(value, float) else str(value)
