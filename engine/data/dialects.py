"""How the cells of a text table are written: delimiters, quotation marks, and what a spreadsheet would take for a formula."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Final

from engine.data.files import CR, MAC_LINES, Block, Cells
from engine.errors import DataError

# The delimiter of a text table, by its first lines: the guess under which every row has the columns that are needed.

TAB: Final = "\t"
KNOWN: Final = (",", ";", TAB, "|")
LINES: Final = 200
_SAID = re.compile(r'"?sep=([\t !#-/:-@\[-`{-~])"?[,;\t|]*\r?\n?', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True)
class Shape:
    """What a table of some kind looks like.

    Attributes:
        width: how many columns it needs.
        is_header: whether a row names them.
    """

    width: int
    is_header: Callable[[Sequence[str]], bool]


ANY_TABLE: Final = Shape(2, lambda row: False)


def said_delimiter(line: str) -> str | None:
    """The delimiter that a line such as Excel's ``sep=;`` names; None where it is another line."""
    said = _SAID.fullmatch(line)
    return said[1] if said else None


def find_delimiter(text: str, shapes: Sequence[Shape], default: str) -> str:
    """The delimiter between the cells.

    Args:
        text: the beginning of a table, in whole lines.
        shapes: what the table may be; it has to have the columns of one of them.
        default: what is taken where the lines leave a choice.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if (said := said_delimiter(lines[0])) is not None:
        return said
    filled = [line for line in dropwhile(lambda line: line.startswith("#"), lines) if line.strip()][:LINES]
    return max((default, *KNOWN), key=lambda delimiter: max(_fitness(filled, delimiter, shape) for shape in shapes or (ANY_TABLE,)))


def _fitness(lines: Sequence[str], delimiter: str, shape: Shape) -> tuple[float, bool, float, float, bool]:
    """How well lines fit, what counts most first: rows alike and wide enough, a known header, where the delimiter comes in a line, no blanks after
    it, no column too many.
    """
    rows = _rows(lines, delimiter)
    if not rows:
        return 0.0, False, 0.0, 0.0, False
    widths = Counter(len(row) for row in rows if len(row) >= shape.width)
    width, alike = widths.most_common(1)[0] if widths else (0, 0)
    later = [cell for row in rows for cell in row[1:]]
    blanks = sum(cell.startswith(" ") for cell in later) / max(len(later), 1)
    return alike / len(rows), shape.is_header(rows[0]), _first(lines, delimiter), -blanks, width == shape.width


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    if delimiter == TAB:
        return [line.split(TAB) for line in lines]
    try:
        return [row for row in csv.reader((f"{line}\n" for line in lines), delimiter=delimiter) if row]
    except csv.Error:  # a cell that is too long for a look at it
        return [line.split(delimiter) for line in lines]


def _first(lines: Sequence[str], delimiter: str) -> float:
    """Share of the lines in which no other delimiter comes earlier. One before a blank is punctuation, where the line has others."""
    return sum(_first_of(_QUOTED.sub('""', line)) == delimiter for line in lines) / len(lines)


def _first_of(line: str) -> str:
    for wanted in (r"[,;\t|](?! )", r"[,;\t|]"):
        if found := re.search(wanted, line):
            return found[0]
    return ""


# Cells that a spreadsheet would run: what begins like a formula is written with an apostrophe in front, and read without it.
#
# Spreadsheets trim blanks and invisible characters before they look for a formula, and some take full-width and small forms of the signs for the
# signs themselves. To be undone for certain, a text of apostrophes and then a formula gets one more as well: ``=1`` is written ``'=1``, and ``'=1``
# is written ``''=1``.

FORMULA_STARTS: Final = (*"=+-@", "\t", "\r", *"＝＋－＠﹦﹢﹣﹫")
_SIGNS: Final = re.escape("".join(FORMULA_STARTS))
# White space and what has no width: soft hyphen, joiners, direction marks, fillers, variation selectors, the byte order mark, tags.
_UNSEEN: Final = (
    r"\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
_DANGEROUS: Final = re.compile(f"'*[{_UNSEEN}]*[{_SIGNS}]")
_DEFUSED: Final = re.compile(f"'+[{_UNSEEN}]*[{_SIGNS}]")


def defuse(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if _DANGEROUS.match(text) else text


def restore(cell: str) -> str:
    """The text of a cell; the inverse of :func:`defuse`."""
    return cell[1:] if _DEFUSED.match(cell) else cell


# The rules of formats whose files are lines of cells: tabs with a fixed number of cells per line, attribute triples, TSV with any width, CSV.

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
        span = f", which continues to line {end:,}" if end > start else ""
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
