"""Reading files strictly: every complaint names the file and the line.

Text is UTF-8 (a byte order mark is allowed), lines end in LF or CRLF (or all of them in CR, as old Mac programs write them), a missing final newline
is no matter, and any file may be gzipped.
"""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Final, Protocol, cast

import numpy as np
import polars as pl

from engine.data.endings import GZIP_ENDING
from engine.data.texts import Texts, TextsBuilder, strings
from engine.errors import DataError
from engine.util.arrays import IntArray
from engine.util.machine import OPEN_FILES, os_advice, os_reason
from engine.util.memory import check_room

# Reading files strictly: every complaint names the file and the line.
#
# Text is UTF-8 (a byte order mark is allowed), lines end in LF or CRLF (or all of them in CR, as old Mac programs write them), a missing final
# newline is no matter, and any file may be gzipped.

MAX_BYTES = 2**31  # of a file that is read into memory whole, and of a line; this also stops a gzip bomb
GZIP_MAGIC = b"\x1f\x8b"
CR = "\r"
BY_PRODUCTS = frozenset({"__macosx", "thumbs.db", "desktop.ini"})
MAC_LINES = "it holds line ends of old Mac programs (CR), so write all line ends as LF"


def find_file(folder: Path, name: str) -> Path | None:
    """``folder/name`` or its gzipped twin ``folder/name.gz``; the plain one goes first. None where neither is a regular file."""
    return next((path for path in (folder / name, folder / f"{name}{GZIP_ENDING}") if os.path.isfile(path)), None)


def found_files(folder: Path, names: Iterable[str]) -> list[Path]:
    """Those of the files that :func:`find_file` finds."""
    return [path for name in names if (path := find_file(folder, name)) is not None]


def require_file(folder: Path, name: str) -> Path:
    """Like :func:`find_file`.

    Raises:
        DataError: there is no such file.
    """
    path = find_file(folder, name)
    if path is None:
        raise DataError("this file is missing; the data set needs it, plain or gzipped (.gz).", path=folder / name)
    return path


def is_by_product(name: str) -> bool:
    """Whether a file or folder is one that programs leave behind, such as macOS's ``._kg1.csv`` beside ``kg1.csv`` and ``__MACOSX``."""
    return name.startswith(".") or name.lower() in BY_PRODUCTS


def list_files(folder: Path) -> list[Path]:
    """Regular files right inside the folder, sorted by name, without by-products of programs.

    Raises:
        DataError: the folder cannot be listed.
    """
    try:
        return sorted(path for path in folder.iterdir() if path.is_file() and not is_by_product(path.name))
    except OSError as error:
        advice = os_advice(error) if error.errno in OPEN_FILES else "check its permissions"
        raise DataError(f"this folder cannot be listed ({os_reason(error)}); {advice}.", path=folder) from error


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file for reading, unpacked where it is gzipped (detected by content, not by name); errors meanwhile are raised in plain words.

    Raises:
        DataError: missing, unreadable, a damaged gzip file, or no memory left for what is read.
    """
    try:
        with open(path, "rb") as file:
            zipped = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            file.seek(0)
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=file) if zipped else file)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError("this gzip file is damaged or incomplete; copy or pack it again.", path=path) from None
    except OSError as error:
        advice = os_advice(error) if error.errno in OPEN_FILES else "check its path and permissions"
        raise DataError(f"this file cannot be read ({os_reason(error)}); {advice}.", path=path) from error
    except MemoryError:
        raise DataError("this file does not fit into memory; split or thin out the graph.", path=path) from None


def read_bytes(path: Path) -> bytes:
    """The file's bytes, unpacked where they are gzipped.

    Raises:
        DataError: as :func:`opened`; larger than 2 GiB unpacked.
    """
    with opened(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(f"this file holds more than {MAX_BYTES >> 30} GiB of text; split or thin out the graph.", path=path)
    return data


def read_head(path: Path, size: int) -> bytes:
    """The first bytes of a file, unpacked where they are gzipped.

    Raises:
        DataError: as :func:`opened`.
    """
    with opened(path) as file:
        return file.read(size)


def check_begin(path: Path, data: bytes) -> bytes:
    """The beginning of a text file without its byte order mark.

    Raises:
        DataError: it is UTF-16.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError("this file is UTF-16, expected UTF-8; save it again as UTF-8.", path=path, line=1)
    return data.removeprefix(codecs.BOM_UTF8)


def decode_text(path: Path, data: bytes, line: int = 1) -> str:
    """The text of a file, or of a part of it that begins in this line.

    Raises:
        DataError: bytes that are not UTF-8, with their line.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        raise DataError("these bytes are not UTF-8; save the file again as UTF-8.", path=path, line=line) from None


def check_nul(path: Path, data: bytes, line: int = 1) -> None:
    """
    Raises:
        DataError: a NUL byte, with its line; ``data`` begin in the given one.
    """
    if (at := data.find(0)) >= 0:
        line += data.count(b"\n", 0, at)
        raise DataError("there is a NUL byte, so this is no text file; give the file in its text form.", path=path, line=line)


def read_text(path: Path) -> str:
    """The file as text, without a byte order mark; where all lines end in CR alone, they end in LF.

    Raises:
        DataError: as :func:`read_bytes`; bytes that are not UTF-8, or a NUL byte, with their line.
    """
    data = check_begin(path, read_bytes(path))
    text = decode_text(path, data)
    check_nul(path, data)
    return text if "\n" in text else text.replace(CR, "\n")


# Has a file been changed? Without reading it: by all metadata of the file system, not by the time alone, which a copy may preserve.

FileState = tuple[int, int, int, int]
"""Size, time of the content's and of the entry's last change, number on the disk. The third cannot be set back, the fourth changes with a rename."""


def state_of(path: Path) -> FileState | None:
    """Of a file or folder, links followed; None where there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def folder_state(folder: Path) -> str:
    """A digest of the states of everything in a folder and below: another one as soon as a file was edited, replaced, added or removed."""
    digest = blake2b(digest_size=16)
    for place, below, names in os.walk(folder, followlinks=False):
        below.sort()
        for name in sorted([*below, *names]):
            path = Path(place, name)
            digest.update(repr((os.path.relpath(path, folder), state_of(path))).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


# Text files of any length as columns, a stretch of whole lines at a time.
#
# Nearly all lines of a large file are plain: a fixed number of cells. A block of such lines is handed to Polars, which takes it apart
# and numbers its texts. A block with anything out of the ordinary in it (blank lines, quotation marks, stray carriage returns, a cell too many) goes
# through Python, which has the rules of each format and its messages about lines that break them. Both ways give the same columns.

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
        width: how many cells a row has; None until the first row is read.
    """

    delimiter: str
    quotes: bool
    width: int | None

    def split(self, block: Block, more: Iterator[Block]) -> tuple[Cells, list[int]]:
        """The rows of a block and their lines; where a row continues after the block, with the blocks that it takes from ``more``.

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
                message = f"this gzip file unpacks to more than {MAX_RATIO} times its size. If that is correct, provide it unpacked."
                raise DataError(message, path=path)
            yield data
            data = file.read(BLOCK)


def read_grid(path: Path, dialect: Dialect) -> Grid:
    """All rows of a file; blank lines are none. An empty file gives no columns where the dialect does not fix their number.

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
    """How many delimiters are outside quotation marks; None unless each mark begins or ends a whole cell."""
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
