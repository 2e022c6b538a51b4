"""CSV, TSV and Parquet tables: columns found by their names, or by position where no name is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from engine.datasets.blocks import Block, Cells, Grid, checked_width, read_grid
from engine.datasets.dialects import TAB, Csv, Tsv
from engine.datasets.files import read_head, shorten
from engine.datasets.parquet import open_parquet
from engine.datasets.rows import Rows, check_identifiers
from engine.datasets.texts import IntArray, Texts
from engine.errors import DataError

ENDINGS = ("", "id", "uri", "iri", "entity")
SUFFIXES = (".csv", ".tsv", ".parquet")
HEAD = 2**16  # bytes in which the first line of a table is looked for


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


LINK_TABLE_ROLES = (*LINK_ROLES, *MAPPING_ROLES, EXPORTED)
"""What a table of links may have in all."""
NAME_ROLES = (
    _role("entity", "head h subject subj s source id"),
    _role("name", "label title value literal preflabel", literal=True),
)
"""Of tables that name entities and say nothing else: two columns."""
DECLARED_ROLES = (_role("name", "id"),)
"""Of tables that list entities or relations, whether or not a triple has them."""


@dataclass(frozen=True)
class Layout:
    """What is known of a table beforehand, instead of being found out.

    Attributes:
        delimiter: between the cells of a text table; a tab makes quotation marks ordinary characters. None goes by the file's name.
        header: whether the first row names the columns; None looks whether it does.
        columns: role -> position from 0, for roles whose column would not be found.
    """

    delimiter: str | None = None
    header: bool | None = None
    columns: Mapping[str, int] = field(default_factory=dict)


FOUND_OUT: Final = Layout()


@dataclass(frozen=True)
class Table:
    """What CSV, TSV and Parquet have in common: perhaps a header, a width, and columns that are turned into texts when asked for.

    Attributes:
        names: the first row of a text table, the columns' names of a Parquet file.
        always_named: the names are no row.
        lines: where each row stands, the first one included.
        delimiter: between the cells; "" for Parquet.
        column: position, role, whether the first row is left out -> cells.
        sample: first row, number of rows -> their cells.
    """

    path: Path
    names: Sequence[str]
    always_named: bool
    lines: Sequence[int] | IntArray
    delimiter: str
    column: Callable[[int, Role, bool], Texts]
    sample: Callable[[int, int], Cells]


def read_table(path: Path, roles: Sequence[Role], layout: Layout = FOUND_OUT) -> dict[str, Rows]:
    """The columns that play these roles, by the role's name; optional ones may be missing.

    A CSV or TSV file's first row is a header if it names at least two of the roles; otherwise columns are taken by position.

    Returns:
        One :class:`Rows` of a single column for each role found.

    Raises:
        DataError: unreadable, empty, a row of another length, a needed column that is not there, an identifier that cannot be one.
    """
    return read_columns(open_table(path, layout), roles, layout)


def open_table(path: Path, layout: Layout = FOUND_OUT) -> Table:
    """
    Raises:
        DataError: unreadable, empty, a row of another length than the first.
    """
    return _open_parquet(path) if table_suffix(path) == ".parquet" else _open_text(path, layout.delimiter)


def open_head(path: Path, layout: Layout = FOUND_OUT, size: int = 2**16) -> Table:
    """The first rows of a table, for a look at them; rows of another length than the first are left out.

    Raises:
        DataError: unreadable, or no row among the first ``size`` bytes.
    """
    if table_suffix(path) == ".parquet":
        return _open_parquet(path)
    head = read_head(path, size)
    content = head.decode("utf-8-sig", "ignore").encode()
    dialect = _dialect(path, layout.delimiter, content)
    try:
        rows, lines = dialect.split(Block(path, content, 1), iter(()))
    except DataError:  # a quotation mark that is open where the text was cut
        first = content.split(b"\n", 1)[0].replace(dialect.delimiter.encode(), b"\t")
        rows, lines = Tsv().split(Block(path, first, 1), iter(()))
    alike = [number for number, row in enumerate(rows) if len(row) == len(rows[0])]
    if not alike:
        raise DataError("this table has no rows.", path=path)
    checked_width(path, len(rows[0]), lines[0])
    columns = tuple(map(Texts.of, zip(*(rows[number] for number in alike), strict=True)))
    return _text_table(path, Grid(columns, np.array([lines[number] for number in alike], dtype=np.int64)), dialect.delimiter)


def read_columns(table: Table, roles: Sequence[Role], layout: Layout = FOUND_OUT) -> dict[str, Rows]:
    """As :func:`read_table`, of a table that is open."""
    positions, has_header = place(table, roles, layout)
    lines = table.lines if table.always_named else table.lines[1 if has_header else 0 :]
    if not len(lines):
        raise DataError(f"this table has no rows; expected {_names(roles)}.", path=table.path)
    found = {role.name: Rows(table.path, (table.column(position, role, has_header),), lines) for role, position in positions.items()}
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


def place(table: Table, roles: Sequence[Role], layout: Layout = FOUND_OUT) -> tuple[dict[Role, int], bool]:
    """Role -> position, and whether the first row is a header.

    Raises:
        DataError: a needed column that is not there, or one column in two roles.
    """
    needed = [role for role in roles if not role.optional]
    if layout.header is None and not layout.columns:
        return _found_places(table, roles, needed)
    by_name = _by_name(table, roles)
    has_header = layout.header if layout.header is not None else table.always_named or _is_header(by_name, needed)
    return _given_places(table, roles, by_name if has_header else {}, layout.columns), has_header


def _found_places(table: Table, roles: Sequence[Role], needed: Sequence[Role]) -> tuple[dict[Role, int], bool]:
    by_name = _by_name(table, roles)
    if not _is_header(by_name, needed):
        if len(table.names) < len(needed):
            raise DataError(_too_narrow(table, roles), path=table.path, line=_line(table))
        return {role: position for position, role in enumerate(needed)}, False
    for role in needed:
        if role not in by_name:
            found = shorten(", ".join(table.names), 120)
            raise DataError(
                f"no column is known to hold the {role.name} (found: {found}); name one of them '{role.name}'.", path=table.path, line=_line(table)
            )
    return by_name, True


def _given_places(table: Table, roles: Sequence[Role], by_name: Mapping[Role, int], columns: Mapping[str, int]) -> dict[Role, int]:
    """The given positions, then names, then what is left in its order."""
    width = len(table.names)
    given = {role: columns[role.name] for role in roles if role.name in columns}
    for role, position in given.items():
        if not 0 <= position < width:
            raise DataError(f"there is no column {position + 1} for the {role.name}; this table has {width}.", path=table.path)
        if (twin := next((one for one, at in given.items() if at == position and one is not role), None)) is not None:
            raise DataError(f"column {position + 1} cannot hold both the {role.name} and the {twin.name}; choose two columns.", path=table.path)
    places = given | {role: at for role, at in by_name.items() if role not in given and at not in given.values()}
    left = (position for position in range(width) if position not in places.values())
    for role in roles:
        if not role.optional and role not in places:
            position = next(left, -1)
            if position < 0:
                raise DataError(_too_narrow(table, roles), path=table.path, line=_line(table))
            places[role] = position
    return places


def _by_name(table: Table, roles: Sequence[Role]) -> dict[Role, int]:
    names = [normalise_name(name) for name in table.names]
    return {role: position for role in roles if (position := role.find(names)) is not None}


def _is_header(by_name: Mapping[Role, int], needed: Sequence[Role]) -> bool:
    return len(set(by_name.values())) >= min(2, len(needed))


def _too_narrow(table: Table, roles: Sequence[Role]) -> str:
    return f"expected at least {sum(not role.optional for role in roles)} columns ({_names(roles)}), found {len(table.names)}."


def _names(roles: Sequence[Role]) -> str:
    return ", ".join(role.name for role in roles if not role.optional)


def _line(table: Table) -> int | None:
    return None if table.always_named or not len(table.lines) else int(table.lines[0])


def _open_text(path: Path, delimiter: str | None) -> Table:
    dialect = _dialect(path, delimiter, read_head(path, HEAD))
    grid = read_grid(path, dialect)
    if not len(grid):
        raise DataError("this file is empty; expected a table.", path=path)
    return _text_table(path, grid, dialect.delimiter)


def _text_table(path: Path, grid: Grid, delimiter: str) -> Table:
    def column(position: int, role: Role, has_header: bool) -> Texts:
        return grid.columns[position][1 if has_header else 0 :]

    def sample(first: int, count: int) -> Cells:
        return [list(cells) for cells in zip(*(column[first : first + count] for column in grid.columns), strict=True)]

    return Table(path, [column[0] for column in grid.columns], False, grid.lines, delimiter, column, sample)


def _dialect(path: Path, delimiter: str | None, head: bytes) -> Tsv | Csv:
    if delimiter is None:
        first = head.replace(b"\r", b"\n").split(b"\n", 1)[0]
        delimiter = TAB if table_suffix(path) != ".csv" else ";" if b";" in first and b"," not in first else ","
    return Tsv() if delimiter == TAB else Csv(delimiter)


def _open_parquet(path: Path) -> Table:
    file = open_parquet(path)

    def column(position: int, role: Role, has_header: bool) -> Texts:
        return file.column(position, role.name, anything=role.literal)

    return Table(path, file.names, True, range(1, file.num_rows + 1), "", column, file.sample)
