"""CSV, TSV and Parquet tables: columns found by their names, or by position where no name is known."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.datasets.files import Rows, check_identifiers, read_bytes, read_text, shorten
from engine.errors import DataError

ENDINGS = ("", "id", "uri", "iri", "entity")
SUFFIXES = (".csv", ".tsv", ".parquet")
MAX_FIELD = 2**27  # characters; the csv module's own limit of 131,072 is too short for some literals


@dataclass(frozen=True)
class Role:
    """A column that a table must or may have, and the words by which it goes, alone or with one of ENDINGS (see :func:`normalise_name`)."""

    name: str
    words: tuple[str, ...]
    optional: bool = False
    literal: bool = False

    @cached_property
    def aliases(self) -> frozenset[str]:
        return frozenset(word + ending for word in self.words for ending in ENDINGS)

    def find(self, names: Sequence[str]) -> int | None:
        """The position of the role's column: its own name goes before the others."""
        own = (at for at, name in enumerate(names) if name == self.name)
        others = (at for at, name in enumerate(names) if name in self.aliases)
        return next(own, next(others, None))


def _role(name: str, others: str, *, optional: bool = False, literal: bool = False) -> Role:
    return Role(name, (name, *others.split()), optional, literal)


TRIPLE_ROLES = (
    _role("head", "h subject subj s source from start"),
    _role("relation", "rel r predicate pred p property edge type relationtype"),
    _role("tail", "t object obj o target to end"),
)
ATTRIBUTE_ROLES = (
    _role("entity", "head h subject subj s source id"),
    _role("attribute", "attr predicate pred p property key relation rel r"),
    _role("value", "literal object obj o tail t", literal=True),
)
LINK_ROLES = (
    _role("source", "src left kg1 entity1 id1 uri1 subject subj head from"),
    _role("target", "tgt right kg2 entity2 id2 uri2 object obj tail to"),
    _role("split", "part subset", optional=True, literal=True),
)
MAPPING_ROLES = (
    _role("predicate", "", optional=True, literal=True),
    _role("modifier", "predicatemodifier", optional=True, literal=True),
)
"""What an SSSOM table has besides."""
EXPORTED = _role("exported", "sourcelabel", optional=True, literal=True)
"""What our own exports have besides, whose cells are defused (:mod:`engine.datasets.formulas`)."""


@dataclass(frozen=True)
class _Table:
    """What CSV, TSV and Parquet have in common: perhaps a header, a width, and columns that are turned into texts when asked for."""

    path: Path
    names: Sequence[str]
    always_named: bool
    lines: Sequence[int]
    column: Callable[[int, Role, bool], list[str]]


def read_table(path: Path, roles: Sequence[Role]) -> dict[str, Rows]:
    """The columns that play these roles, by the role's name; optional ones may be missing.

    A CSV or TSV file's first row is a header if it names at least two of the roles; otherwise columns are taken by position.

    Returns:
        One :class:`Rows` of a single column for each role found.

    Raises:
        DataError: unreadable, empty, a row of another length, a needed column that is not there, an identifier that cannot be one.
    """
    table = _open_parquet(path) if table_suffix(path) == ".parquet" else _open_text(path)
    positions, has_header = _place(table, roles)
    lines = table.lines if table.always_named else table.lines[1 if has_header else 0 :]
    if not len(lines):
        raise DataError(f"this table has no rows; expected {_names(roles)}.", path=path)
    found = {role.name: Rows(path, (table.column(position, role, has_header),), lines) for role, position in positions.items()}
    for role in positions:
        if not role.literal:
            check_identifiers(found[role.name], [role.name])
    return found


def table_suffix(path: Path) -> str:
    """'.csv' for 'a.csv' and 'a.csv.gz', and so on; '' where the file is none of the known tables."""
    name = path.name.lower().removesuffix(".gz")
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def normalise_name(name: str) -> str:
    """A column's name for comparison: letters and digits only, lower case ("Head ID" and ":head_id" are the same)."""
    return "".join(character for character in name.lower() if character.isalnum())


def _place(table: _Table, roles: Sequence[Role]) -> tuple[dict[Role, int], bool]:
    """Role -> position, and whether the table has a header."""
    names = [normalise_name(name) for name in table.names]
    by_name = {role: position for role in roles if (position := role.find(names)) is not None}
    needed = [role for role in roles if not role.optional]
    if len(set(by_name.values())) < 2:
        if len(names) < len(needed):
            raise DataError(f"expected at least {len(needed)} columns ({_names(roles)}), found {len(names)}.", path=table.path, line=_line(table))
        return {role: position for position, role in enumerate(needed)}, False
    for role in needed:
        if role not in by_name:
            found = shorten(", ".join(table.names), 120)
            raise DataError(
                f"no column is known to hold the {role.name} (found: {found}); name one of them '{role.name}'.", path=table.path, line=_line(table)
            )
    return by_name, True


def _names(roles: Sequence[Role]) -> str:
    return ", ".join(role.name for role in roles if not role.optional)


def _line(table: _Table) -> int | None:
    return None if table.always_named or not table.lines else table.lines[0]


def _open_text(path: Path) -> _Table:
    text = read_text(path)
    records, lines = _parse_csv(path, text) if table_suffix(path) == ".csv" else _parse_tsv(text)
    if not records:
        raise DataError("this file is empty; expected a table.", path=path)
    width = len(records[0])
    wrong = next((number for number, record in enumerate(records) if len(record) != width), None)
    if wrong is not None:
        raise DataError(
            f"expected {width} columns as in the first row, found {len(records[wrong])}; correct or remove this row.", path=path, line=lines[wrong]
        )

    def column(position: int, role: Role, has_header: bool) -> list[str]:
        return [record[position] for record in records[1 if has_header else 0 :]]

    return _Table(path, records[0], False, lines, column)


def _parse_tsv(text: str) -> tuple[list[list[str]], list[int]]:
    """Quotation marks are ordinary characters in TSV. Leading '#' lines without a tab (SSSOM's metadata) are passed over."""
    numbered = ((number, line.removesuffix("\r")) for number, line in enumerate(text.split("\n"), start=1))
    filled = [(number, line) for number, line in numbered if line]
    start = next((at for at, (_, line) in enumerate(filled) if not line.startswith("#") or "\t" in line), 0)
    return [line.split("\t") for _, line in filled[start:]], [number for number, _ in filled[start:]]


def _parse_csv(path: Path, text: str) -> tuple[list[list[str]], list[int]]:
    first = text.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if ";" in first and "," not in first else ",", strict=True)
    records: list[list[str]] = []
    lines: list[int] = []
    previous_limit = csv.field_size_limit(MAX_FIELD)
    try:
        start = 1
        for record in reader:
            if record:
                records.append(record)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"this is not valid CSV ({error}); check the quotation marks here.", path=path, line=max(reader.line_num, 1)) from None
    finally:
        csv.field_size_limit(previous_limit)
    return records, lines


def _open_parquet(path: Path) -> _Table:
    try:
        table = pq.read_table(pa.BufferReader(read_bytes(path)))
        table.validate(full=True)
        names = [str(name) for name in table.column_names]
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        raise DataError(f"this is no readable Parquet file ({_first_line(error)}); write it again.", path=path) from None

    def column(position: int, role: Role, has_header: bool) -> list[str]:
        return _texts(path, names[position], table.column(position), role)

    return _Table(path, names, True, range(1, table.num_rows + 1), column)


def _texts(path: Path, name: str, column: pa.ChunkedArray, role: Role) -> list[str]:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if column.null_count:
        row = column.is_null().to_pylist().index(True) + 1
        raise DataError(f"column '{name}' has no value in row {row:,}; fill or remove that row.", path=path)
    fits = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_integer(kind) or role.literal
    try:
        if fits:
            texts: list[str] = column.cast(pa.large_string()).to_pylist()
            return texts
    except (pa.ArrowException, UnicodeDecodeError, ValueError):
        pass
    raise DataError(f"column '{name}' is of type {kind}, expected text or whole numbers as {role.name}; convert it.", path=path)


def _first_line(error: BaseException) -> str:
    return shorten((str(error).splitlines() or [type(error).__name__])[0], 120)
