"""Text files of any length as columns, a stretch of whole lines at a time.

Nearly all lines of a large file are plain: so many cells with a delimiter between. A block of such lines is handed to Polars, which takes it apart
and numbers its texts. A block with anything out of the ordinary in it (blank lines, quotation marks, stray carriage returns, a cell too many) goes
through Python, which knows the rules of each format and what to say about a line that breaks them. Both ways give the same columns.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import polars as pl

from engine.data.files import MAX_BYTES, check_begin, check_nul, decode_text, opened
from engine.data.texts import Texts, TextsBuilder, strings
from engine.errors import DataError
from engine.util.arrays import IntArray
from engine.util.memory import check_room

FIRST_BLOCK: Final = 2**16
"""Bytes; small, since where a format finds out from its first row what a file is like, that block takes the slow way."""
BLOCK: Final = 2**24
MAX_RATIO: Final = 100
"""Of a large file's size to its packed size; gzip packs text to a tenth, and a bomb to a thousandth."""
MAX_COLUMNS: Final = 1000
LF, CR_BYTES, CRLF, QUOTE = b"\n", b"\r", b"\r\n", b'"'

Cells = list[list[str]]
PACKED = (b"\x1f\x8b", b"x\x01", b"x\x9c", b"x\xda", b"\x28\xb5\x2f\xfd")
"""With these Polars takes text for a compressed file, and fails; text can begin so (an identifier xڑ), and blocks are always unpacked."""


@dataclass(frozen=True)
class Block:
    """Whole lines of a file.

    Attributes:
        path: the file, for messages.
        content: the lines; all but the file's last end in LF.
        line: the number of the first one.
    """

    path: Path
    content: bytes
    line: int

    def text(self) -> str:
        """
        Raises:
            DataError: bytes that are not UTF-8, with their line.
        """
        return decode_text(self.path, self.content, self.line)

    def filled_lines(self) -> list[tuple[int, str]]:
        """Number and text of each line that is not blank, without its end."""
        numbered = ((number, line.removesuffix("\r")) for number, line in enumerate(self.text().split("\n"), start=self.line))
        return [(number, line) for number, line in numbered if line]


class Dialect(Protocol):
    """The rules of a format whose files are lines of cells.

    Attributes:
        delimiter: between the cells, an ASCII character.
        quotes: whether quotation marks mean something.
        width: how many cells a row has; None until the first row tells.
    """

    delimiter: str
    quotes: bool
    width: int | None

    def split(self, block: Block, more: Iterator[Block]) -> tuple[Cells, list[int]]:
        """The rows of a block and their lines; where a row goes on behind the block, with the blocks that it takes from ``more``.

        Raises:
            DataError: it cannot be taken apart.
        """
        ...

    def complaint(self, row: Sequence[str]) -> str:
        """What is wrong about a row that has another width."""
        ...


@dataclass(frozen=True)
class Grid:
    """Columns of n texts, and the line that each row begins in."""

    columns: tuple[Texts, ...]
    lines: IntArray

    def __len__(self) -> int:
        return len(self.lines)


def read_blocks(path: Path) -> Iterator[Block]:
    """The file's lines, unpacked where they are gzipped, without a byte order mark; where all lines end in CR alone, they end in LF.

    Raises:
        DataError: missing, unreadable, UTF-16, a damaged gzip file or a bomb, a NUL byte, or a line that is longer than 2 GiB.
    """
    line, held = 1, 0
    unfinished: list[bytes] = []
    for data in _pieces(path):
        check_nul(path, data, line)
        end = data.rfind(LF) + 1
        if end:
            block = Block(path, b"".join([*unfinished, data[:end]]), line)
            line += block.content.count(LF)
            yield block
            unfinished, held = [], 0
        unfinished.append(data[end:])
        held += len(data) - end
        if held > MAX_BYTES:
            raise DataError(f"this file holds a line of more than {MAX_BYTES >> 30} GiB; break it up.", path=path, line=line)
    if rest := b"".join(unfinished):
        yield Block(path, rest if line > 1 else rest.replace(CR_BYTES, LF), line)


def _pieces(path: Path) -> Iterator[bytes]:
    """The file's bytes without a byte order mark, unpacked; the first piece is a small one."""
    with opened(path) as file:
        most, total = max(MAX_BYTES, MAX_RATIO * os.fstat(file.fileno()).st_size), 0
        data = check_begin(path, file.read(FIRST_BLOCK))
        while data:
            total += len(data)
            if total > most:
                message = f"this gzip file unpacks to {MAX_RATIO} times its size and more; give it unpacked if that is right."
                raise DataError(message, path=path)
            yield data
            data = file.read(BLOCK)


def read_grid(path: Path, dialect: Dialect) -> Grid:
    """All rows of a file; blank lines are none. An empty file gives no columns where the dialect does not know how many there are.

    Raises:
        DataError: as :func:`read_blocks`; bytes that are not UTF-8; a row that the dialect does not take; no memory left for more.
    """
    builders = [TextsBuilder() for _ in range(dialect.width or 0)]
    lines = [np.empty(0, dtype=np.int64)]
    blocks = read_blocks(path)
    for block in blocks:
        check_room(path)
        frame = _plain_columns(block, dialect)
        if frame is not None:
            lines.append(np.arange(block.line, block.line + frame.height, dtype=np.int64))
            columns = frame.get_columns()
        else:
            rows, numbers = _checked(dialect, block, blocks)
            if not rows:
                continue
            lines.append(np.array(numbers, dtype=np.int64))
            columns = [strings(cells) for cells in zip(*rows, strict=True)]
            builders = builders or [TextsBuilder() for _ in columns]
        for builder, column in zip(builders, columns, strict=True):
            builder.add(column)
    return Grid(tuple(builder.texts() for builder in builders), np.concatenate(lines))


def _plain_columns(block: Block, dialect: Dialect) -> pl.DataFrame | None:
    """The columns of a block without anything out of the ordinary; None for any other."""
    content = block.content.replace(CRLF, LF) if CR_BYTES in block.content else block.content
    lines = content.count(LF) + (not content.endswith(LF))
    quoted = dialect.quotes and QUOTE in content
    odd = content.startswith((LF, codecs.BOM_UTF8, *PACKED)) or LF + LF in content or CR_BYTES in content
    if odd or dialect.width is None:
        return None
    delimiters = _delimiters_between_quoted(content, dialect.delimiter) if quoted else content.count(dialect.delimiter.encode())
    if delimiters != lines * (dialect.width - 1):
        return None
    try:
        frame = pl.read_csv(
            content,
            separator=dialect.delimiter,
            quote_char=QUOTE.decode() if quoted else None,
            has_header=False,
            schema={str(number): pl.String for number in range(dialect.width)},
            empty_string_is_null=False,
        )
    except pl.exceptions.PolarsError:  # a line with too few cells and one with too many, or no UTF-8
        return None
    return frame if frame.height == lines else None


def _delimiters_between_quoted(content: bytes, delimiter: str) -> int | None:
    """How many delimiters do not stand in quotation marks; None unless each mark begins or ends a whole cell."""
    characters = np.frombuffer(content, dtype=np.uint8)
    is_mark = characters == ord(QUOTE)
    marks = np.flatnonzero(is_mark)
    borders = np.array([ord(delimiter), ord(LF)], dtype=np.uint8)
    framed = np.concatenate([borders[1:], characters, borders[1:]])
    whole = len(marks) % 2 == 0 and np.isin(framed[marks[::2]], borders).all() and np.isin(framed[marks[1::2] + 2], borders).all()
    if not whole:
        return None
    inside = np.bitwise_xor.accumulate(is_mark)
    return int(np.count_nonzero((characters == ord(delimiter)) & ~inside))


def _checked(dialect: Dialect, block: Block, more: Iterator[Block]) -> tuple[Cells, list[int]]:
    rows, lines = dialect.split(block, more)
    if rows and dialect.width is None:
        dialect.width = checked_width(block.path, len(rows[0]), lines[0])
    wrong = next((number for number, row in enumerate(rows) if len(row) != dialect.width), None)
    if wrong is not None:
        raise DataError(dialect.complaint(rows[wrong]), path=block.path, line=lines[wrong])
    return rows, lines


def checked_width(path: Path, width: int, line: int) -> int:
    """
    Raises:
        DataError: more columns than any table needs; each costs some memory, however short it is.
    """
    if width > MAX_COLUMNS:
        raise DataError(f"there are {width:,} columns here, where {MAX_COLUMNS:,} are the limit; leave out what is not needed.", path=path, line=line)
    return width
