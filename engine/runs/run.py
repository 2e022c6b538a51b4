"""A run that is finished: opened, read, checked."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.errors import RunDamagedError, RunError
from engine.runs.manifest import METRICS, RESTORE, TRACE, changed, explained, parse_object, read_manifest, with_suffix
from engine.runs.tensors import map_tensor
from engine.util.files import sha256_of
from engine.util.machine import damage_apart
from engine.util.text import one_line


class Run:
    """An opened run; nothing but the manifest is held in memory. Made by :meth:`RunStore.find`."""

    def __init__(self, dataset: str, run_id: str, path: Path, manifest: Mapping[str, Any]) -> None:
        self.dataset = dataset
        self.run_id = run_id
        self.path = path
        self.manifest = manifest
        self._checked: dict[str, int] = {}

    @classmethod
    def open(cls, dataset: str, run_id: str, path: Path) -> Run:
        """A run from its folder, after a look at the manifest and at the files' sizes.

        Raises:
            RunVersionError: written by a newer version of the engine.
            RunDamagedError: the manifest is missing or changed, or a file is missing or has another size.
        """
        run = cls(dataset, run_id, path, read_manifest(path))
        for name in run.files:
            run.file(name)
        return run

    @property
    def id(self) -> str:
        """``dataset/run_id``: fits one run only."""
        return f"{self.dataset}/{self.run_id}"

    @property
    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """Name -> {"size": bytes, "sha256": hex}."""
        files: Mapping[str, Mapping[str, Any]] = self.manifest["files"]
        return files

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Content of ``metrics.json``; empty if the run has none.

        Raises:
            RunDamagedError: the file was changed.
        """
        return self.json("metrics") if METRICS in self.files else {}

    def json(self, name: str) -> dict[str, Any]:
        """A JSON object.

        Raises:
            RunDamagedError: the file was changed.
            RunError: the run has no such file.
        """
        return parse_object(self.content(with_suffix(name, ".json")), self.path / with_suffix(name, ".json"))

    def trace(self) -> list[dict[str, Any]]:
        """The trace, a dictionary an epoch; empty if the run has none.

        Raises:
            RunDamagedError: the file was changed.
        """
        if TRACE not in self.files:
            return []
        lines = self.content(TRACE).splitlines()
        return [parse_object(line, self.path / TRACE, number) for number, line in enumerate(lines, start=1)]

    def table(self, name: str, columns: Sequence[str] | None = None, where: Mapping[str, object] | None = None) -> pd.DataFrame:
        """A table, or a part of it. The file is memory-mapped, and only what holds that part is unpacked.

        Args:
            name: of the table.
            columns: the ones to read; None reads all.
            where: column -> the value that rows must have there, or a list of values; rows keep their order.

        Raises:
            RunDamagedError: the file was changed.
            RunError: the run has no such table or column.
        """
        name = with_suffix(name, ".parquet")
        path = self._intact(name)
        try:
            with damage_apart(path), pa.memory_map(str(path)) as source, pq.ParquetFile(source) as file:
                names = file.schema_arrow.names
                if unknown := {*(columns or ()), *(where or ())} - set(names):
                    raise RunError(f"{path} has no column '{min(unknown)}'; its columns are {', '.join(names)}.")
                wanted = None if columns is None else list(columns)
                found = _rows(source, wanted, where) if where else file.read(columns=wanted)
                table: pd.DataFrame = found.to_pandas()
                return table
        except (pa.ArrowException, OSError, ValueError) as error:
            raise RunDamagedError(f"{path} cannot be read as a table ({one_line(error)}); {RESTORE}.") from error

    def stretches(self, name: str, columns: Sequence[str], where: Mapping[str, str], rows: int) -> Iterator[pd.DataFrame]:
        """The same part of a table as :meth:`table` gives, at most ``rows`` rows at a time, so that memory does not grow with the table.

        Raises:
            RunDamagedError, RunError: as :meth:`table`.
        """
        path = self._intact(with_suffix(name, ".parquet"))
        try:
            with damage_apart(path), pa.memory_map(str(path)) as source, pq.ParquetFile(source) as file:
                for batch in file.iter_batches(rows, columns=[*columns, *where]):
                    block = pa.Table.from_batches([batch])
                    for column, value in where.items():
                        block = block.filter(pc.equal(block[column], value))
                    if len(block):
                        yield block.select(list(columns)).to_pandas()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise RunDamagedError(f"{path} cannot be read as a table ({one_line(error)}); {RESTORE}.") from error

    def tensor(self, name: str, key: str) -> npt.NDArray[Any]:
        """A tensor, memory-mapped: only the pages that are looked at are read, so a row of a large matrix costs a row.

        The array is copy-on-write: it can be changed and wrapped by ``torch.from_numpy``, and the file stays as it is. Because nothing is
        read in advance, changed bytes are noticed by :meth:`verify` only; a truncated file or a damaged header is noticed here.

        Raises:
            RunDamagedError: the file has another size than the manifest says, or its header makes no sense.
            RunError: the run has no such file or tensor.
        """
        path = self.file(with_suffix(name, ".safetensors"))
        with explained(f"read {path}"):
            return map_tensor(path, key)

    def verify(self) -> None:
        """Read all files and compare their checksums.

        Raises:
            RunDamagedError: the first file that differs.
        """
        for name, expected in self.files.items():
            path = self.file(name)
            with explained(f"read {path}"):
                if sha256_of(path) != expected["sha256"]:
                    raise changed(path)

    def file(self, name: str) -> Path:
        """Path of one of the run's files, which exists with the right size.

        Raises:
            RunDamagedError: it does not.
            RunError: the run has no such file.
        """
        if name not in self.files:
            raise RunError(f"{self.path} has no file {name!r}; its files are {', '.join(self.files) or 'none'}.")
        path = self.path / name
        with explained(f"read {path}"):
            try:
                status = path.lstat()
            except FileNotFoundError:
                raise RunDamagedError(f"{path} is missing; {RESTORE}.") from None
            if not stat.S_ISREG(status.st_mode):
                raise RunDamagedError(f"{path} is not a regular file; {RESTORE}.")
            if status.st_size != self.files[name]["size"]:
                raise RunDamagedError(f"{path} has {status.st_size:,} bytes instead of {self.files[name]['size']:,}; {RESTORE}.")
        return path

    def content(self, name: str) -> bytes:
        """A file's bytes, with the checksum that the manifest gives.

        Raises:
            RunDamagedError: they differ.
            RunError: the run has no such file.
        """
        path = self.file(name)
        with explained(f"read {path}"):
            content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != self.files[name]["sha256"]:
            raise changed(path)
        return content

    def _intact(self, name: str) -> Path:
        """Path of a file that has its checksum, which is computed once for as long as the file is not written.

        Raises:
            RunDamagedError, RunError: as :meth:`content`.
        """
        path = self.file(name)
        with explained(f"read {path}"):
            written = path.stat().st_mtime_ns
            if self._checked.get(name) != written:
                if sha256_of(path) != self.files[name]["sha256"]:
                    raise changed(path)
                self._checked[name] = written
        return path


def _rows(source: pa.MemoryMappedFile, columns: list[str] | None, where: Mapping[str, object]) -> pa.Table:
    filters = [(column, "in", value) if isinstance(value, list) else (column, "=", value) for column, value in where.items()]
    return pq.read_table(source, columns=columns, filters=filters)
