"""Columns of texts from a file, the place of each row in it, and what became of the file's lines."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np
import polars as pl

from engine.data.dialects import Literals, Tabbed
from engine.data.files import Grid, read_grid
from engine.data.knowledge_graph import FileCount, Finding, Severity
from engine.data.texts import Texts
from engine.errors import DataError
from engine.util.arrays import BoolArray, IntArray
from engine.util.text import count, shorten

# Lines in, rows out: what became of the lines of each file.

MOST_NAMED: Final = 20
What = Literal["triples", "attributes", "links", "declared"]


@dataclass(frozen=True)
class FileTally:
    """A file that was read.

    Attributes:
        path: the file.
        lines: that are not blank; of Parquet the rows.
        rows: that were found in them, without a header.
        what: they are.
        left_out: reason -> rows that could not be used.
        findings: what was noticed while reading.
        headless: whether columns were taken by position, since no name was known, and the first row was not declared to be data.
    """

    path: Path
    lines: int
    rows: int
    what: What = "triples"
    left_out: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    headless: bool = False

    def of(self, what: What) -> FileTally:
        return dataclasses.replace(self, what=what)

    def without(self, reason: str, rows: int) -> FileTally:
        """The same with more rows left out for some reason."""
        return dataclasses.replace(self, left_out={**self.left_out, reason: self.left_out.get(reason, 0) + rows}) if rows else self

    def counted(self) -> FileCount:
        used = self.rows - sum(self.left_out.values())
        return FileCount(str(self.path), self.what, self.lines, self.rows, used, tuple(self.left_out.items()))


def long_row_findings(path: Path, long_rows: int, joined: int, swallowed: int, places: Sequence[tuple[int, int]]) -> tuple[Finding, ...]:
    """Lines that are no rows, since a cell in quotation marks spans several lines."""
    name = shorten(path.name)
    if swallowed:
        message = (
            f"{name}: {count(swallowed, 'separate row')} {'is' if swallowed == 1 else 'are'} inside a cell that "
            "begins in an earlier line, because a quotation mark there is not closed."
        )
        spans = tuple(f"lines {first:,} to {last:,}" for first, last in places)
        return (Finding("swallowed-rows", "warning", message, swallowed, spans, "Remove the lone quotation mark, or double it."),)
    if joined:
        message = (
            f"{name}: {count(long_rows, 'row goes', 'rows go')} on over several lines; {count(joined, 'line is', 'lines are')} part of such a row."
        )
        return (Finding("rows-over-several-lines", "info", message, joined, advice="Check the quotation marks if the file has a row in each line."),)
    return ()


def passed_over(names: Sequence[str], severity: Severity = "warning") -> tuple[Finding, ...]:
    """Files by their names that were not read, though they lie with the others."""
    if not names:
        return ()
    listed = ", ".join(shorten(name, 60) for name in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    message = f"{count(len(names), 'file was', 'files were')} passed over: {listed}{more}."
    advice = "If one of them belongs to the data, give it a name that says what it is (docs/data_formats.md)."
    return (Finding("files-passed-over", severity, message, len(names), tuple(names[:MOST_NAMED]), advice),)


def merged_tallies(tallies: Iterable[FileTally]) -> tuple[FileTally, ...]:
    """One for each file and what it holds: a table of links that is divided by a column counts once."""
    found: dict[tuple[Path, What], FileTally] = {}
    for tally in tallies:
        known = found.get((tally.path, tally.what))
        if known is None:
            found[tally.path, tally.what] = tally
        else:
            for reason, rows in tally.left_out.items():
                known = known.without(reason, rows)
            found[tally.path, tally.what] = known
    return tuple(found.values())


# Columns of identifiers from files of tab-separated lines, and the rules that every identifier has to keep.

MAX_IDENTIFIER = 4096
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
LONGEST_ID = 18  # digits: more do not fit into 64 bits


@dataclass(frozen=True)
class Rows:
    """Columns of texts from one file, and the line of each row.

    Attributes:
        path: the file.
        columns: n texts each.
        lines: n line numbers (for Parquet: row numbers), from 1.
        skipped: rows that could not be used, where the reader tolerates some.
        tally: what became of the file's lines; None where they were not counted.
    """

    path: Path
    columns: tuple[Texts, ...]
    lines: Sequence[int] | IntArray
    skipped: int = 0
    tally: FileTally | None = None

    def __len__(self) -> int:
        return len(self.lines)


def read_tabbed(path: Path, names: Sequence[str], *, required: bool = True) -> Rows:
    """A file of tab-separated lines with one column for each name. Blank lines are passed over.

    Args:
        path: the file.
        names: what the columns hold, for messages.
        required: whether a file without lines is an error.

    Raises:
        DataError: as :func:`read_grid`; an empty file; a line with another number of columns; an identifier that cannot be one.
    """
    grid = read_grid(path, Tabbed(names))
    if required and not len(grid):
        raise DataError(f"this file is empty; expected lines of {', '.join(names)}, separated by tabs.", path=path)
    return check_identifiers(Rows(path, grid.columns, grid.lines, tally=FileTally(path, len(grid), len(grid))), names)


def read_tabbed_literals(path: Path, names: Sequence[str]) -> Rows:
    """Like :func:`read_tabbed`, for attribute triples: the last column may hold tabs, and lines with too few columns are counted, not refused.

    Published attribute files contain such lines, and names are all that is taken from there.

    Raises:
        DataError: as :func:`read_grid`; no line has enough columns; an identifier that cannot be one.
    """
    dialect = Literals(names)
    found = read_grid(path, dialect)
    grid = _described(found)
    skipped = len(dialect.short) + len(found) - len(grid)
    if skipped and not len(grid):
        first = min([*dialect.short[:1], *found.lines[:1].tolist()])
        raise DataError(f"expected {len(names)} columns separated by tabs ({', '.join(names)}), but no line has them.", path=path, line=first)
    check_identifiers(Rows(path, grid.columns[:-1], grid.lines), names[:-1])
    tally = FileTally(path, len(grid) + skipped, len(grid) + skipped).without(f"without {', '.join(names[:-1])} and {names[-1]}", skipped)
    return Rows(path, grid.columns, grid.lines, skipped, tally)


def check_identifiers(rows: Rows, names: Sequence[str]) -> Rows:
    """The rows unchanged, after a look at every identifier in them.

    Raises:
        DataError: an identifier that is blank, longer than 4,096 characters, or holds a control character.
    """
    for name, column in zip(names, rows.columns, strict=True):
        at = column.first(_suspect(column.words))
        if at is not None and (problem := identifier_problem(column[at])):
            raise DataError(f"the {name} {problem}; correct or remove this line.", path=rows.path, line=int(rows.lines[at]))
    return rows


def identifier_problem(text: str) -> str | None:
    """Why a text cannot be an identifier (a half-sentence), or None."""
    if not text.strip():
        return "is empty"
    if len(text) > MAX_IDENTIFIER:
        return f"is {len(text):,} characters long, where {MAX_IDENTIFIER:,} are the limit for an identifier"
    return "holds a control character" if CONTROL.search(text) else None


def _suspect(words: pl.Series) -> BoolArray:
    """(n,) the words with which :func:`identifier_problem` finds something wrong."""
    found: BoolArray = ((words.str.strip_chars() == "") | (words.str.len_chars() > MAX_IDENTIFIER) | words.str.contains(CONTROL.pattern)).to_numpy()
    return found


def parse_ids(rows: Rows, column: int, name: str) -> IntArray:
    """(n,) a column of ids as integers.

    Raises:
        DataError: an id is no whole number of at most 18 digits.
    """
    texts = rows.columns[column]
    # \d alone would let other scripts' digits through.
    wrong = texts.first(~texts.words.str.contains(rf"\A[0-9]{{1,{LONGEST_ID}}}\z").to_numpy())
    if wrong is not None:
        raise DataError(
            f"expected a whole number as {name}, found '{shorten(texts[wrong])}'; correct or remove this line.",
            path=rows.path,
            line=int(rows.lines[wrong]),
        )
    numbers: IntArray = texts.words.cast(pl.Int64).to_numpy()
    return numbers[texts.codes]


def _described(grid: Grid) -> Grid:
    """The rows whose first columns, all but the last, are not empty."""
    kept = np.ones(len(grid), dtype=bool)
    for column in grid.columns[:-1]:
        kept &= column.having((column.words != "").to_numpy())
    return grid if kept.all() else Grid(tuple(column.take(kept) for column in grid.columns), grid.lines[kept])
