"""The rules of formats whose files are lines of cells: tabs with so many cells a line, attribute triples, TSV with any width, CSV."""

from __future__ import annotations

import csv
import io
import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from engine.datasets.blocks import Block, Cells
from engine.datasets.files import CR, MAC_LINES
from engine.errors import DataError

TAB = "\t"
MAX_FIELD = 2**27  # characters; the csv module's own limit of 131,072 is too short for some literals


@dataclass
class Tabbed:
    """Lines of so many cells, with tabs between."""

    names: Sequence[str]
    delimiter: str = TAB
    quotes: bool = False
    width: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.width = len(self.names)

    def split(self, block: Block, more: Iterator[Block]) -> tuple[Cells, list[int]]:
        lines = block.filled_lines()
        return [line.split(TAB) for _, line in lines], [number for number, _ in lines]

    def complaint(self, row: Sequence[str]) -> str:
        cure = MAC_LINES if any(CR in cell for cell in row) else "correct or remove this line"
        return f"expected {len(self.names)} columns separated by tabs ({', '.join(self.names)}), found {len(row)}; {cure}."


class Literals(Tabbed):
    """The last cell goes on to the end of its line; shorter lines are left out."""

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
    """Quotation marks are ordinary characters in TSV. Leading '#' lines without a tab (SSSOM's metadata) are passed over."""

    delimiter: str = TAB
    quotes: bool = False
    width: int | None = None

    def split(self, block: Block, more: Iterator[Block]) -> tuple[Cells, list[int]]:
        filled = block.filled_lines()
        if self.width is None:
            filled = list(itertools.dropwhile(lambda line: line[1].startswith("#") and TAB not in line[1], filled))
        return [line.split(TAB) for _, line in filled], [number for number, _ in filled]

    def complaint(self, row: Sequence[str]) -> str:
        return f"expected {self.width} columns as in the first row, found {len(row)}; correct or remove this row."


@dataclass
class Csv:
    """As the csv module reads it: cells in quotation marks may hold delimiters and line ends."""

    delimiter: str
    quotes: bool = True
    width: int | None = None
    complaint = Tsv.complaint

    def split(self, block: Block, more: Iterator[Block]) -> tuple[Cells, list[int]]:
        lines = _Lines(block, more)
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        rows, numbers, start = [], [], block.line
        previous_limit = csv.field_size_limit(MAX_FIELD)
        try:
            while not lines.at_end and (row := next(reader, None)) is not None:
                if row:
                    rows.append(row)
                    numbers.append(start)
                start = block.line + reader.line_num
        except csv.Error as error:
            line = block.line + max(reader.line_num, 1) - 1
            raise DataError(f"this is not valid CSV ({error}); check the quotation marks here.", path=block.path, line=line) from None
        finally:
            csv.field_size_limit(previous_limit)
        return rows, numbers


class _Lines(Iterator[str]):
    """The lines of a block, and of the following ones if a row goes on there."""

    def __init__(self, block: Block, more: Iterator[Block]) -> None:
        self._left = self._of(block)
        self._more = more

    @property
    def at_end(self) -> bool:
        """Whether nothing is left of the blocks that were begun."""
        return not self._left

    def __next__(self) -> str:
        if not self._left:
            self._left = self._of(next(self._more))
        return self._left.popleft()

    @staticmethod
    def _of(block: Block) -> deque[str]:
        return deque(io.StringIO(block.text(), newline=""))
