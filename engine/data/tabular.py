"""CSV, TSV and Parquet tables: columns found by their names, or by position where no name is known."""

from __future__ import annotations

import codecs
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import numpy as np

from engine.data.beginnings import check_first_line
from engine.data.dialects import TAB, Csv, OddLines, Shape, Tsv, find_delimiter, said_delimiter
from engine.data.endings import SUFFIXES, ending_of
from engine.data.files import Block, Cells, Grid, checked_width, read_grid, read_head
from engine.data.knowledge_graph import Finding
from engine.data.parquet import open_parquet
from engine.data.rows import FileTally, Rows, check_identifiers, long_row_findings
from engine.data.texts import Texts
from engine.errors import DataError, NoRowsError
from engine.util.arrays import IntArray
from engine.util.text import shorten

ENDINGS = ("", "id", "uri", "iri", "entity")
HEAD = 2**16  # bytes in which the delimiter is searched for
INDEX_ROWS = 1000  # that are looked at to see whether a column counts the rows
LEAST_INDEX_ROWS = 2


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
    _role("confidence", "measure", optional=True, literal=True),
)
"""What an SSSOM table has besides; other tables of links may have the last."""
APART_ROLES = (*LINK_ROLES[:2], _role("predicate", "relation"), MAPPING_ROLES[2])
"""Of a table of mappings that say less than equality."""
EXPORTED = _role("exported", "sourcelabel", optional=True, literal=True)
"""What our own exports have besides, whose cells are defused (:mod:`engine.data.dialects`)."""


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
        trim: whether blanks around the cells of a text table are cut off; otherwise they belong to them.
        relations: of a table with a row for each entity, positions of the columns whose values are entities; None finds them by their values.
    """

    delimiter: str | None = None
    header: bool | None = None
    columns: Mapping[str, int] = field(default_factory=dict)
    trim: bool = False
    relations: tuple[int, ...] | None = None


FOUND_OUT: Final = Layout()


@dataclass(frozen=True)
class Table:
    """What CSV, TSV and Parquet have in common: perhaps a header, a width, and columns that are turned into texts when asked for.

    Attributes:
        names: the first row of a text table, the columns' names of a Parquet file.
        always_named: the names are no row.
        lines: the line of each row, the first one included.
        delimiter: between the cells; "" for Parquet.
        column: position, role, whether the first row is left out -> cells.
        sample: first row, number of rows -> their cells.
        odd: lines of a text table that are no rows by themselves.
    """

    path: Path
    names: Sequence[str]
    always_named: bool
    lines: Sequence[int] | IntArray
    delimiter: str
    column: Callable[[int, Role, bool], Texts]
    sample: Callable[[int, int], Cells]
    odd: OddLines = field(default_factory=OddLines)


def read_table(path: Path, roles: Sequence[Role], layout: Layout = FOUND_OUT) -> dict[str, Rows]:
    """The columns that play these roles, by the role's name; optional ones may be missing.

    A CSV or TSV file's first row is a header if it names at least two of the roles; otherwise columns are taken by position.

    Returns:
        One :class:`Rows` of a single column for each role found.

    Raises:
        DataError: unreadable, empty, a row of another length, a needed column that is not there, an identifier that cannot be one.
    """
    return read_columns(open_table(path, layout, roles), roles, layout)


def open_table(path: Path, layout: Layout = FOUND_OUT, *shapes: Sequence[Role]) -> Table:
    """
    Args:
        path: the file.
        layout: what is known of it.
        shapes: the roles of each kind of table that it may be; the delimiter is chosen by them. Without any, by the file's name.

    Raises:
        DataError: unreadable, empty, a row of another length than the first.
    """
    return _open_parquet(path) if table_suffix(path) == ".parquet" else _open_text(path, layout, shapes)


def open_head(path: Path, layout: Layout = FOUND_OUT, size: int = 2**16) -> Table:
    """The first rows of a table, for a look at them; rows of another length than the first are left out.

    Raises:
        DataError: unreadable, or no row among the first ``size`` bytes.
    """
    if table_suffix(path) == ".parquet":
        return _open_parquet(path)
    head = read_head(path, size)
    content = head.decode("utf-8-sig", "ignore").encode()
    dialect = _dialect(path, layout, content, ())
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
    return _text_table(path, Grid(columns, np.array([lines[number] for number in alike], dtype=np.int64)), dialect)


def read_columns(table: Table, roles: Sequence[Role], layout: Layout = FOUND_OUT) -> dict[str, Rows]:
    """As :func:`read_table`, of a table that is open."""
    positions, has_header = place(table, roles, layout)
    lines = table.lines if table.always_named else table.lines[1 if has_header else 0 :]
    if not len(lines):
        raise NoRowsError(f"this table has no rows; expected {_names(roles)}.", path=table.path)
    tally = _tally(table, len(lines), _counts_rows(table, roles, layout))
    tally = dataclasses.replace(tally, headless=layout.header is None and not has_header)
    found = {
        role.name: Rows(table.path, (_cells(table, position, role, has_header, layout),), lines, tally=tally) for role, position in positions.items()
    }
    for role in positions:
        if not role.literal:
            check_identifiers(found[role.name], [role.name])
    return found


def _cells(table: Table, position: int, role: Role, has_header: bool, layout: Layout) -> Texts:
    cells = table.column(position, role, has_header)
    return cells.renamed(cells.words.str.strip_chars(" \t")) if layout.trim else cells


def _tally(table: Table, rows: int, counts_rows: bool) -> FileTally:
    odd = table.odd
    found = long_row_findings(table.path, odd.long_rows, odd.joined, odd.swallowed, odd.places)
    if counts_rows:
        message = f"{shorten(table.path.name)}: the first column counts the rows and was left out."
        found += (
            Finding("index-column", "info", message, rows, advice="If it holds identifiers, say which column is which when importing the file."),
        )
    return FileTally(table.path, len(table.lines) + odd.passed + odd.joined, rows, findings=found)


def table_suffix(path: Path) -> str:
    """'.csv' for 'a.csv' and 'a.csv.gz', and so on; '' where the file is none of the known tables."""
    return ending_of(path.name, SUFFIXES)


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
    if not is_header(table.names, roles):
        if len(table.names) < len(needed):
            raise DataError(_too_narrow(table, roles), path=table.path, line=_line(table))
        start = int(_index_column(table, needed))
        return {role: position for position, role in enumerate(needed, start=start)}, bool(start) and not _is_count(table.names[0])
    for role in needed:
        if role not in by_name:
            found = shorten(", ".join(table.names), 120)
            raise DataError(
                f"no column is known to hold the {role.name} (found: {found}); name one of them '{role.name}'.", path=table.path, line=_line(table)
            )
    return by_name, True


def _counts_rows(table: Table, roles: Sequence[Role], layout: Layout) -> bool:
    """Whether columns were taken by position, and the first of them passed over."""
    needed = [role for role in roles if not role.optional]
    return layout.header is None and not layout.columns and not is_header(table.names, roles) and _index_column(table, needed)


def _index_column(table: Table, needed: Sequence[Role]) -> bool:
    """Whether the first column, which no role needs, counts the rows: 0, 1, 2, ... as data frames are often written."""
    if not 2 <= len(needed) < len(table.names):
        return False
    first = 0 if table.always_named or _is_count(table.names[0]) else 1
    cells = [row[: len(needed) + 1] for row in table.sample(first, INDEX_ROWS)]
    numbers = [row[0] for row in cells]
    if len(cells) < LEAST_INDEX_ROWS or not any(numbers == [str(start + at) for at in range(len(cells))] for start in (0, 1)):
        return False
    last = [row[len(needed)] for row in cells]
    if all(map(_is_decimal, last)):  # how sure somebody is of a pair or triple
        return False
    distinct = [len({row[position] for row in cells}) for position in range(1, len(needed) + 1)]
    if len(needed) < len(TRIPLE_ROLES):
        return distinct[-1] > 0.8 * len(cells)  # or else it is the part of a split, or the like
    return distinct[1] <= distinct[0]  # there are fewer relations than heads


def _is_count(cell: str) -> bool:
    return cell.isascii() and cell.isdigit()


def _is_decimal(cell: str) -> bool:
    return bool(re.fullmatch(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?", cell))


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
    return _places_by_name(table.names, roles)


def _places_by_name(columns: Sequence[str], roles: Sequence[Role]) -> dict[Role, int]:
    names = [normalise_name(name) for name in columns]
    return {role: position for role in roles if (position := role.find(names)) is not None}


def is_header(names: Sequence[str], roles: Sequence[Role]) -> bool:
    """Whether a row names the columns: at least two of the roles that are needed, or all of them."""
    return _is_header(_places_by_name(names, roles), [role for role in roles if not role.optional])


def _is_header(by_name: Mapping[Role, int], needed: Sequence[Role]) -> bool:
    return len(set(by_name.values())) >= min(2, len(needed))


def _too_narrow(table: Table, roles: Sequence[Role]) -> str:
    return f"expected at least {sum(not role.optional for role in roles)} columns ({_names(roles)}), found {len(table.names)}."


def _names(roles: Sequence[Role]) -> str:
    return ", ".join(role.name for role in roles if not role.optional)


def _line(table: Table) -> int | None:
    return None if table.always_named or not len(table.lines) else int(table.lines[0])


def _open_text(path: Path, layout: Layout, shapes: Sequence[Sequence[Role]]) -> Table:
    check_first_line(path)
    dialect = _dialect(path, layout, read_head(path, HEAD), shapes)
    grid = read_grid(path, dialect)
    if not len(grid):
        raise NoRowsError("this file is empty; expected a table.", path=path)
    return _text_table(path, grid, dialect)


def _text_table(path: Path, grid: Grid, dialect: Tsv | Csv) -> Table:
    def column(position: int, role: Role, has_header: bool) -> Texts:
        return grid.columns[position][1 if has_header else 0 :]

    def sample(first: int, count: int) -> Cells:
        return [list(cells) for cells in zip(*(column[first : first + count] for column in grid.columns), strict=True)]

    return Table(path, [column[0] for column in grid.columns], False, grid.lines, dialect.delimiter, column, sample, dialect.odd)


def _dialect(path: Path, layout: Layout, head: bytes, shapes: Sequence[Sequence[Role]]) -> Tsv | Csv:
    delimiter = layout.delimiter
    if delimiter is None and not shapes:
        delimiter = TAB if table_suffix(path) == ".tsv" else ","
    elif delimiter is None:
        text = head.removeprefix(codecs.BOM_UTF8).decode(errors="replace")
        delimiter = likely_delimiter(path, text, whole=len(head) < HEAD, shapes=shapes)
    return Tsv() if delimiter == TAB else Csv(delimiter, trim=layout.trim)


def likely_delimiter(path: Path, text: str, *, whole: bool, shapes: Sequence[Sequence[Role]]) -> str:
    """The delimiter between the cells.

    Args:
        path: the file; where its lines leave a choice, its name decides.
        text: its beginning.
        whole: whether that is all of it.
        shapes: the roles of each kind of table that it may be.
    """
    suffix = table_suffix(path)
    default = TAB if suffix == ".tsv" else ","
    lines = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    if not whole and "\n" in lines:
        lines = lines[: lines.rindex("\n")]
    if said_delimiter(lines.split("\n", 1)[0]) is None and suffix == ".tsv":
        return TAB
    kinds = [Shape(sum(not role.optional for role in roles), partial(is_header, roles=roles)) for roles in shapes]
    return find_delimiter(lines, kinds, default)


def _open_parquet(path: Path) -> Table:
    file = open_parquet(path)

    def column(position: int, role: Role, has_header: bool) -> Texts:
        return file.column(position, role.name, anything=role.literal)

    return Table(path, file.names, True, range(1, file.num_rows + 1), "", column, file.sample)
