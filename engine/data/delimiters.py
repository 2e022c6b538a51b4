"""The delimiter of a text table, by its first lines: the guess under which every row has the columns that are needed."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Final

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
