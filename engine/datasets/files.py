"""Reading files strictly: every complaint names the file and the line.

Text is UTF-8 (a byte order mark is allowed), lines end in LF or CRLF (or all of them in CR, as old Mac programs write them), a missing final newline
is no matter, and any file may be gzipped.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import DataError

MAX_BYTES = 2**31  # files are read into memory whole; this also stops a gzip bomb
MAX_IDENTIFIER = 4096
GZIP_MAGIC = b"\x1f\x8b"
CR = "\r"
MAC_LINES = "it holds line ends of old Mac programs (CR), so write all line ends as LF"
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Rows:
    """Columns of texts from one file, and where each row stands in it.

    Attributes:
        path: the file.
        columns: one list of n texts for each column.
        lines: n line numbers (for Parquet: row numbers), from 1.
        skipped: rows that could not be used, where the reader tolerates some.
    """

    path: Path
    columns: tuple[list[str], ...]
    lines: Sequence[int]
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.lines)


def find_file(folder: Path, name: str) -> Path | None:
    """``folder/name`` or its gzipped twin ``folder/name.gz``; the plain one goes first. None where neither is a regular file."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if os.path.isfile(path)), None)


def require_file(folder: Path, name: str) -> Path:
    """Like :func:`find_file`.

    Raises:
        DataError: there is no such file.
    """
    path = find_file(folder, name)
    if path is None:
        raise DataError("this file is missing; the data set needs it, plain or gzipped (.gz).", path=folder / name)
    return path


def list_files(folder: Path) -> list[Path]:
    """Regular files right inside the folder, sorted by name.

    Raises:
        DataError: the folder cannot be listed.
    """
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise DataError(f"this folder cannot be listed ({reason(error)}); check its permissions.", path=folder) from None


def read_bytes(path: Path) -> bytes:
    """The file's bytes, unpacked where they are gzipped (told by the content, not by the name).

    Raises:
        DataError: missing, unreadable, larger than 2 GiB unpacked, or a damaged gzip file.
    """
    try:
        with open(path, "rb") as file:
            zipped = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            file.seek(0)
            data = gzip.GzipFile(fileobj=file).read(MAX_BYTES + 1) if zipped else file.read(MAX_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError("this gzip file is damaged or incomplete; copy or pack it again.", path=path) from None
    except OSError as error:
        raise DataError(f"this file cannot be read ({reason(error)}); check its path and permissions.", path=path) from None
    except MemoryError:
        raise DataError("this file does not fit into memory; split or thin out the graph.", path=path) from None
    if len(data) > MAX_BYTES:
        raise DataError(f"this file holds more than {MAX_BYTES >> 30} GiB of text; split or thin out the graph.", path=path)
    return data


def read_head(path: Path, size: int) -> bytes:
    """The first bytes of a file, unpacked where they are gzipped.

    Raises:
        DataError: missing, unreadable, or a damaged gzip file.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(size)
            if not head.startswith(GZIP_MAGIC):
                return head
            file.seek(0)
            return gzip.GzipFile(fileobj=file).read(size)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError("this gzip file is damaged or incomplete; copy or pack it again.", path=path) from None
    except OSError as error:
        raise DataError(f"this file cannot be read ({reason(error)}); check its path and permissions.", path=path) from None


def read_text(path: Path) -> str:
    """The file as text, without a byte order mark; where all lines end in CR alone, they end in LF.

    Raises:
        DataError: as :func:`read_bytes`; bytes that are not UTF-8, or a NUL byte, with their line.
    """
    data = read_bytes(path)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError("this file is UTF-16, expected UTF-8; save it again as UTF-8.", path=path, line=1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError("these bytes are not UTF-8; save the file again as UTF-8.", path=path, line=line) from None
    if "\0" in text:
        raise DataError(
            "there is a NUL byte, so this is no text file; give the file in its text form.", path=path, line=line_at(text, text.index("\0"))
        )
    return text if "\n" in text else text.replace(CR, "\n")


def read_tabbed(path: Path, names: Sequence[str], *, required: bool = True) -> Rows:
    """A file of tab-separated lines with one column for each name. Blank lines are passed over.

    Args:
        path: the file.
        names: what the columns hold, for messages.
        required: whether a file without lines is an error.

    Raises:
        DataError: as :func:`read_text`; an empty file; a line with another number of columns; an identifier that cannot be one.
    """
    rows, lines = _split_lines(path, -1)
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            cure = MAC_LINES if any(CR in cell for cell in row) else "correct or remove this line"
            raise DataError(f"expected {len(names)} columns separated by tabs ({', '.join(names)}), found {len(row)}; {cure}.", path=path, line=line)
    if required and not rows:
        raise DataError(f"this file is empty; expected lines of {', '.join(names)}, separated by tabs.", path=path)
    columns = tuple([row[column] for row in rows] for column in range(len(names)))
    return check_identifiers(Rows(path, columns, lines), names)


def read_tabbed_literals(path: Path, names: Sequence[str]) -> Rows:
    """Like :func:`read_tabbed`, for attribute triples: the last column may hold tabs, and lines with too few columns are counted, not refused.

    Published attribute files contain such lines, and names are all that is taken from there.

    Raises:
        DataError: as :func:`read_text`; no line has enough columns; an identifier that cannot be one.
    """
    rows, lines = _split_lines(path, len(names) - 1)
    good = [number for number, row in enumerate(rows) if len(row) == len(names) and row[0] and row[1]]
    if rows and not good:
        raise DataError(f"expected {len(names)} columns separated by tabs ({', '.join(names)}), but no line has them.", path=path, line=lines[0])
    columns = tuple([rows[number][column] for number in good] for column in range(len(names)))
    found = Rows(path, columns, [lines[number] for number in good], skipped=len(rows) - len(good))
    check_identifiers(Rows(path, found.columns[:-1], found.lines), names[:-1])
    return found


def _split_lines(path: Path, most_splits: int) -> tuple[list[list[str]], list[int]]:
    rows, lines = [], []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        line = line.removesuffix("\r")
        if line:
            rows.append(line.split("\t", most_splits))
            lines.append(number)
    return rows, lines


def check_identifiers(rows: Rows, names: Sequence[str]) -> Rows:
    """The rows unchanged, after a look at every identifier in them.

    Raises:
        DataError: an identifier that is blank, longer than 4,096 characters, or holds a control character.
    """
    for name, column in zip(names, rows.columns, strict=True):
        for text in set(column):
            if problem := identifier_problem(text):
                raise DataError(f"the {name} {problem}; correct or remove this line.", path=rows.path, line=rows.lines[column.index(text)])
    return rows


def identifier_problem(text: str) -> str | None:
    """Why a text cannot be an identifier (a half-sentence), or None."""
    if not text.strip():
        return "is empty"
    if len(text) > MAX_IDENTIFIER:
        return f"is {len(text):,} characters long, where {MAX_IDENTIFIER:,} are the limit for an identifier"
    return "holds a control character" if CONTROL.search(text) else None


def parse_ids(rows: Rows, column: int, name: str) -> list[int]:
    """A column of ids as integers.

    Raises:
        DataError: an id is no whole number of at most 18 digits.
    """
    texts = rows.columns[column]
    # isdigit alone would let other scripts' digits and superscripts through.
    wrong = next((position for position, text in enumerate(texts) if not (text.isascii() and text.isdigit() and len(text) <= 18)), None)
    if wrong is not None:
        raise DataError(
            f"expected a whole number as {name}, found '{shorten(texts[wrong])}'; correct or remove this line.",
            path=rows.path,
            line=rows.lines[wrong],
        )
    return list(map(int, texts))


def line_at(text: str, position: int) -> int:
    """The number of the line, from 1, that holds the character at this position."""
    return text.count("\n", 0, position) + 1


def shorten(text: str, width: int = 80) -> str:
    """A text for a message: one line, control characters escaped, cut where it is long."""
    visible = escape_controls(text[: width + 1])
    return visible if len(visible) <= width else visible[: width - 1] + "…"


def escape_controls(text: str) -> str:
    """Control, line separator and text direction characters as \\x.. or \\u.... escapes, so that a hostile label cannot rearrange a terminal."""
    return UNSAFE.sub(lambda match: ascii(match.group())[1:-1], text)


UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
