"""Lines in, rows out: what became of the lines of each file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from engine.data.knowledge_graph import FileCount, Finding, Severity
from engine.util.text import count, shorten

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
        headless: whether columns were taken by position, since no name was known, and nobody said that the first row is no header.
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
    """Lines that are no rows, since a cell in quotation marks goes on over several lines."""
    name = shorten(path.name)
    if swallowed:
        message = (
            f"{name}: {count(swallowed, 'line')} that would make {'a row' if swallowed == 1 else 'rows'} by themselves are inside of a cell that "
            "begins in an earlier line; a quotation mark there has no end."
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
