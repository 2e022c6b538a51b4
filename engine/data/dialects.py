"""The rules of formats whose files are lines of cells: tabs with a fixed number of cells per line, attribute triples, TSV with any width, CSV."""

from __future__ import annotations

import csv
import io
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from engine.data.blocks import Block, Cells
from engine.data.delimiters import TAB, said_delimiter
from engine.data.files import CR, MAC_LINES
from engine.errors import DataError

MOST_PLACES = 3
MAX_FIELD = 2**27  # characters; the csv module's own limit of 131,072 is too short for some literals


@dataclass
class OddLines:
    """What became of lines that are no rows by themselves.

    Attributes:
        passed: lines in front of the table, such as metadata and ``sep=``.
        left_out: rows that could not be used, where a format tolerates some.
        joined: lines that belong to a cell of a row that began before them.
        long_rows: rows of several lines.
        swallowed: lines of these that would be rows by themselves.
        places: first and last line of the first such rows.
    """

    passed: int = 0
    left_out: int = 0
    joined: int = 0
    long_rows: int = 0
    swallowed: int = 0
    places: list[tuple[int, int]] = field(default_factory=list)

    def note(self, start: int, end: int, joined: int, swallowed: int) -> None:
        """A row from one line to another."""
        self.long_rows += 1
        self.joined += joined
        self.swallowed += swallowed
        if swallowed and len(self.places) < MOST_PLACES:
            self.places.append((start, end))


@dataclass
class Tabbed:
    """Lines of a fixed number of cells, with tabs between."""

    names: Sequence[str]
    delimiter: str = TAB
    quotes: bool = False
    width: int | None = field(init=False)
    odd: OddLines = field(default_factory=OddLines)

    def __post_init__(self) -> None:
        self.width = len(self.names)

    def split(self, block: Block, more: Iterator[Block]) -> tuple[Cells, list[int]]:
        lines = block.filled_lines()
        return [line.split(TAB) for _, line in lines], [number for number, _ in lines]

    def complaint(self, row: Sequence[str]) -> str:
        cure = MAC_LINES if any(CR in cell for cell in row) else "correct or remove this line"
        return f"expected {len(self.names)} columns separated by tabs ({', '.join(self.names)}), found {len(row)}; {cure}."


class Literals(Tabbed):
    """The last cell extends to the end of its line; shorter lines are left out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.short: list[int] = []

    def split(self, block: Block, more: Iterator[Block]) -> tuple[Cells, list[int]]:
        lines = [(number, line.split(TAB, len(self.names) - 1)) for number, line in block.filled_lines()]
        whole = [(number, row) for number, row in lines if len(row) == len(self.names)]
        self.short += [number for number, row in lines if len(row) < len(self.names)]
        return [row for _, row in whole], [number for number, _ in whole]


@dataclass
class Tsv:
    """Quotation marks are ordinary characters in TSV. A line ``sep=`` and leading '#' lines without a tab (SSSOM's metadata) are passed over."""

    delimiter: str = TAB
    quotes: bool = False
    width: int | None = None
    odd: OddLines = field(default_factory=OddLines)

    def split(self, block: Block, more: Iterator[Block]) -> tuple[Cells, list[int]]:
        filled = block.filled_lines()
        if self.width is None:
            all_lines = len(filled)
            filled = filled[1:] if filled and filled[0][0] == 1 and said_delimiter(filled[0][1]) is not None else filled
            filled = list(itertools.dropwhile(lambda line: line[1].startswith("#") and TAB not in line[1], filled))
            self.odd.passed += all_lines - len(filled)
        return [line.split(TAB) for _, line in filled], [number for number, _ in filled]

    def complaint(self, row: Sequence[str]) -> str:
        return f"expected {self.width} columns as in the first row, found {len(row)}; correct or remove this row."


@dataclass
class Csv:
    """As the csv module reads it: cells in quotation marks may hold delimiters and line ends. A line ``sep=`` in front is passed over.

    Attributes:
        trim: whether blanks after a delimiter belong to no cell, so that a quotation mark may follow them.
    """

    delimiter: str
    quotes: bool = True
    width: int | None = None
    trim: bool = False
    odd: OddLines = field(default_factory=OddLines)
    complaint = Tsv.complaint

    def split(self, block: Block, more: Iterator[Block]) -> tuple[Cells, list[int]]:
        lines = _Lines(block, more)
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True, skipinitialspace=self.trim)
        passed = int(self.width is None and block.line == 1 and lines.skip(lambda line: said_delimiter(line) is not None))
        self.odd.passed += passed
        first = start = block.line + passed
        rows, numbers = [], []
        previous_limit = csv.field_size_limit(MAX_FIELD)
        try:
            while not lines.at_end and (row := next(reader, None)) is not None:
                end = first + reader.line_num
                if row:
                    rows.append(row)
                    numbers.append(start)
                    if end - start > 1:
                        self._note_long_row(row, start, lines.taken)
                start = end
                lines.taken.clear()
        except csv.Error as error:
            raise DataError(self._invalid(error, start, first + max(reader.line_num, 1) - 1), path=block.path, line=start) from None
        finally:
            csv.field_size_limit(previous_limit)
        return rows, numbers

    def _note_long_row(self, row: Sequence[str], start: int, taken: Sequence[str]) -> None:
        """A row over several lines; a line within it that would be a row by itself was more likely swallowed by a lone quotation mark."""
        width = self.width or len(row)
        inner = [line for line in taken[1:] if line.strip()]
        whole = sum(line.count(self.delimiter) == width - 1 > 0 and f"{self.delimiter} " not in line for line in inner)  # prose has blanks there
        self.odd.note(start, start + len(taken) - 1, len(inner), whole)

    @staticmethod
    def _invalid(error: csv.Error, start: int, end: int) -> str:
        span = f", which goes on to line {end:,}" if end > start else ""
        return f"this is not valid CSV ({error}); check the quotation marks of the row that begins here{span}."


class _Lines(Iterator[str]):
    """The lines of a block, and of the following ones if a row continues there.

    Attributes:
        taken: those that were handed out, until somebody clears the list.
    """

    def __init__(self, block: Block, more: Iterator[Block]) -> None:
        self._left = self._of(block)
        self._more = more
        self.taken: list[str] = []

    @property
    def at_end(self) -> bool:
        """Whether nothing is left of the blocks that were begun."""
        return not self._left

    def skip(self, unwanted: Callable[[str], bool]) -> bool:
        """Leave out the next line if it is unwanted; says whether it was."""
        skipped = bool(self._left) and unwanted(self._left[0])
        if skipped:
            self._left.popleft()
        return skipped

    def __next__(self) -> str:
        if not self._left:
            self._left = self._of(next(self._more))
        self.taken.append(self._left.popleft())
        return self.taken[-1]

    @staticmethod
    def _of(block: Block) -> deque[str]:
        return deque(io.StringIO(block.text(), newline=""))
