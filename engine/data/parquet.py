"""Columns of Parquet files, a stretch of rows at a time."""

from __future__ import annotations

import gzip
import itertools
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.data.files import Cells, opened, read_bytes
from engine.data.texts import Texts, TextsBuilder
from engine.errors import DataError, MachineError
from engine.util.machine import damage_apart
from engine.util.memory import check_room
from engine.util.text import shorten

ROWS: Final = 2**18
"""Of a stretch."""


class ParquetTable:
    """An open file; only the columns that are asked for are read."""

    def __init__(self, path: Path, file: pq.ParquetFile) -> None:
        self.path = path
        self.names = [str(name) for name in file.schema_arrow.names]
        self.num_rows: int = file.metadata.num_rows
        self._file = file

    def column(self, position: int, what: str, *, anything: bool = False) -> Texts:
        """The cells of a column as texts.

        Args:
            position: of the column, from 0.
            what: its cells are meant to be, for messages.
            anything: whether types other than text and whole numbers are turned into texts as well, and cells without a value into empty ones.

        Raises:
            DataError: damaged, a cell without a value, a type that is no text, no memory left for more.
        """
        builder, rows = TextsBuilder(), 0
        for stretch in self._stretches(position):
            check_room(self.path)
            if anything:
                stretch = _with_values(stretch)
            if stretch.null_count:
                row = rows + stretch.is_null().to_pylist().index(True) + 1
                raise DataError(f"column '{self.names[position]}' has no value in row {row:,}; fill or remove that row.", path=self.path)
            builder.add(self._texts(stretch, position, what, anything))
            rows += len(stretch)
        if rows != self.num_rows:
            found = f"{rows:,} of {self.num_rows:,} rows"
            raise DataError(f"column '{self.names[position]}' has {found}: this file is damaged; write it again.", path=self.path)
        return builder.texts()

    def sample(self, first: int, count: int) -> Cells:
        """A number of rows from this one on, as texts."""
        columns = (itertools.islice(self._cells(position), first, first + count) for position in range(len(self.names)))
        return [list(cells) for cells in zip(*columns, strict=False)]  # where a column ends early, reading it says so

    def _cells(self, position: int) -> Iterator[str]:
        return ("" if cell is None or cell != cell else str(cell) for stretch in self._stretches(position) for cell in stretch.to_pylist())

    def _stretches(self, position: int) -> Iterator[pa.Array]:
        name = self.names[position]
        twins = self.names[:position].count(name)
        with _explained(self.path):
            for batch in self._file.iter_batches(ROWS, columns=[name]):
                column = batch.column(twins)
                column.validate(full=True)
                yield column

    def _texts(self, cells: pa.Array, position: int, what: str, anything: bool) -> pl.Series:
        kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        try:
            if is_text or pa.types.is_integer(kind) or anything:
                return pl.Series(cells.cast(pa.large_string()))
        except (pa.ArrowException, UnicodeDecodeError, ValueError):
            pass
        raise DataError(f"column '{self.names[position]}' is of type {kind}, expected text or whole numbers as {what}; convert it.", path=self.path)


def open_parquet(path: Path) -> ParquetTable:
    """
    Raises:
        DataError: unreadable, or no Parquet file.
    """
    with _explained(path):
        return ParquetTable(path, pq.ParquetFile(pa.BufferReader(_content(path))))


def _with_values(cells: pa.Array) -> pa.Array:
    """Cells as texts, of which a missing one (a null, or a number that is none) is empty; types that cannot be texts stay."""
    plain = cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
    if pa.types.is_floating(plain.type):
        plain = pc.if_else(pc.is_nan(plain), pa.scalar(None, plain.type), plain)
    try:
        return plain.cast(pa.large_string()).fill_null("")
    except (pa.ArrowException, UnicodeDecodeError, ValueError):
        return cells


def _content(path: Path) -> pa.Buffer:
    """The file's bytes, of which those are read that are looked at; all of them where they have to be unpacked."""
    with opened(path) as file:
        if not isinstance(file, gzip.GzipFile):
            return pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return pa.py_buffer(read_bytes(path))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        with damage_apart(path):
            yield
    except MachineError as error:
        raise DataError(f"this file cannot be read: {error}", path=path) from error
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataError(f"this is no readable Parquet file ({_first_line(error)}); write it again.", path=path) from None


def _first_line(error: BaseException) -> str:
    return shorten((str(error).splitlines() or [type(error).__name__])[0], 120)
