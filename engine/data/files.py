"""Reading files strictly: every complaint names the file and the line.

Text is UTF-8 (a byte order mark is allowed), lines end in LF or CRLF (or all of them in CR, as old Mac programs write them), a missing final newline
is no matter, and any file may be gzipped.
"""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from engine.errors import DataError
from engine.util.files import os_reason

MAX_BYTES = 2**31  # of a file that is read into memory whole, and of a line; this also stops a gzip bomb
GZIP_MAGIC = b"\x1f\x8b"
CR = "\r"
BY_PRODUCTS = frozenset({"__macosx", "thumbs.db", "desktop.ini"})
MAC_LINES = "it holds line ends of old Mac programs (CR), so write all line ends as LF"


def find_file(folder: Path, name: str) -> Path | None:
    """``folder/name`` or its gzipped twin ``folder/name.gz``; the plain one goes first. None where neither is a regular file."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if os.path.isfile(path)), None)


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
        raise DataError(f"this folder cannot be listed ({os_reason(error)}); check its permissions.", path=folder) from None


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file for reading, unpacked where it is gzipped (told by the content, not by the name); what goes wrong meanwhile is said in plain words.

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
        raise DataError(f"this file cannot be read ({os_reason(error)}); check its path and permissions.", path=path) from None
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


def line_at(text: str, position: int) -> int:
    """The number of the line, from 1, that holds the character at this position."""
    return text.count("\n", 0, position) + 1
