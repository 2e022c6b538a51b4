"""A run in the making."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.config import RunConfig
from engine.data.library import starting_config
from engine.errors import ConfigError, RunError
from engine.runs.manifest import (
    FORMAT_VERSION,
    LOCK,
    MANIFEST,
    PARTIAL,
    TRACE,
    acquire,
    check_manifest,
    check_name,
    explained,
    remove_by_way_of_trash,
    sealed,
    to_json,
    with_seal,
    with_suffix,
)
from engine.runs.run import Run
from engine.runs.tensors import Stored, save_sealed, save_tensors
from engine.util import paths
from engine.util.files import fsync, make_folder, remove, replacing, sha256_of, write_durably

CHECKPOINTS = "checkpoints"
CHECKPOINT_FILE = re.compile(r"(?P<name>\w[\w.-]*)-(?P<number>\d{6,12})-(?P<digest>[0-9a-f]{64})\.safetensors")

ROWS_A_GROUP = 2**17
"""Rows of a table that are packed together: a reader of a few rows unpacks this number."""


@dataclass(frozen=True)
class Checkpoint:
    """What training needs to resume.

    Attributes:
        tensors: by name, on the CPU.
        state: what was given to :meth:`RunWriter.save_checkpoint`, as JSON gives it back (tuples are lists, non-finite numbers None).
    """

    tensors: dict[str, Tensor]
    state: dict[str, Any]


class RunWriter:
    """Writes one run. Holds the run's lock until :meth:`finish`, :meth:`discard` or :meth:`close`; a context manager that closes.

    Files get their suffix from the method: ``write_tensors("embeddings", ...)`` makes ``embeddings.safetensors``. Every method raises
    :class:`engine.errors.RunError` when the disk is full or does not permit it; other runs are never touched.
    """

    def __init__(self, dataset: str, run_id: str, final: Path) -> None:
        self.dataset = dataset
        self.run_id = run_id
        self._final = final
        self.path = final.parent / f"{PARTIAL}{run_id}"
        self._checkpoints = self.path / CHECKPOINTS
        self._written: set[str] = set()
        self._trace: IO[bytes] | None = None
        with explained(f"write to {self.path}"):
            make_folder(self._checkpoints)
            self._lock = acquire(self.path / LOCK, f"{dataset}/{run_id}")
        try:
            with explained(f"write to {self.path}"):
                if os.path.lexists(final):  # another process finished the run while this one waited for the lock
                    raise already_there(dataset, run_id)
                for torn in self._checkpoints.glob(".*"):
                    remove(torn)
        except RunError:
            self.discard()
            raise

    @property
    def id(self) -> str:
        """``dataset/run_id``."""
        return f"{self.dataset}/{self.run_id}"

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write_tensors(self, name: str, tensors: Mapping[str, Stored]) -> None:
        """Write tensors as ``<name>.safetensors``."""
        with self._replacing(with_suffix(name, ".safetensors")) as path:
            save_tensors(path, tensors)

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table as ``<name>.parquet``; the index is left out."""
        with self._replacing(with_suffix(name, ".parquet")) as path:
            pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path, compression="zstd", row_group_size=ROWS_A_GROUP)

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a JSON object as ``<name>.json``; numbers that are not finite become null."""
        with self._replacing(with_suffix(name, ".json")) as path:
            path.write_bytes(to_json(value, indent=2) + b"\n")

    def write_note(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a JSON object for resuming the run; the finished run does not have it."""
        with explained(f"write to {self.path}"):
            write_durably(self.path / with_suffix(name, ".json"), to_json(value, indent=2) + b"\n")

    def append_trace(self, entry: Mapping[str, Any]) -> None:
        """Add a line to ``trace.jsonl``. Other processes see it at once; the disk has it for certain at the next checkpoint."""
        with explained(f"write {self.path / TRACE}"):
            if self._trace is None:
                # A trace that no checkpoint vouches for is left from a process that was killed: it starts again.
                self._trace = (self.path / TRACE).open("ab" if TRACE in self._written else "wb", buffering=0)
                self._written.add(TRACE)
            self._trace.write(to_json(entry) + b"\n")

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a checkpoint of any name, whole or not."""
        with explained(f"read {self._checkpoints}"):
            return any(CHECKPOINT_FILE.fullmatch(path.name) for path in self._checkpoints.iterdir())

    def save_checkpoint(self, name: str, tensors: Mapping[str, Tensor | npt.NDArray[Any]], state: Mapping[str, Any]) -> None:
        """Write a checkpoint beside the previous one of this name, which stays, while older ones go."""
        check_name(name, "checkpoint")
        with explained(f"write a checkpoint to {self._checkpoints}"):
            earlier = self._checkpoint_files(name)
            number = 1 + max((number for number, _, _ in earlier), default=0)
            metadata = {"state": to_json(state).decode("utf-8"), "trace_bytes": str(self._flushed_trace())}
            temporary = self._checkpoints / f".{name}.tmp"
            save_sealed(temporary, tensors, lambda digest: self._checkpoints / f"{name}-{number:06d}-{digest}.safetensors", metadata)
            for _, _, path in earlier[1:]:
                path.unlink()

    def load_checkpoint(self, name: str, earlier: int = 0) -> Checkpoint | None:
        """The newest whole checkpoint of this name, or None; the trace is cut back to where it was then.

        A checkpoint that does not have its checksum (torn by a crash, damaged later) is passed over for the one before. ``earlier`` is how many whole
        ones are passed over as well.
        """
        check_name(name, "checkpoint")
        with explained(f"read a checkpoint from {self._checkpoints}"):
            for _, digest, path in self._checkpoint_files(name):
                if sha256_of(path) == digest and (found := read_checkpoint(path)):
                    if earlier:
                        earlier -= 1
                        continue
                    checkpoint, trace_bytes = found
                    self._cut_trace(trace_bytes)
                    return checkpoint
        return None

    def finish(self, manifest: Mapping[str, Any]) -> Run:
        """Seal the run and move it into its place; the writer is closed.

        Files that this writer did not write (left by a process that was killed) do not become part of the run.

        Args:
            manifest: at least variant, status ("finished" or "stopped") and created (ISO 8601, UTC); format_version, run_id, dataset and files
                are added.

        Raises:
            RunError: the disk is full or does not permit it; the partial run stays and can be resumed.
            ValueError: the manifest lacks something.
        """
        content: dict[str, Any] = {**manifest, "format_version": FORMAT_VERSION, "run_id": self.run_id, "dataset": self.dataset}
        check_manifest(content)
        with explained(f"write to {self.path}"):
            self._flushed_trace()
            content["files"] = {name: sealed(self.path / name) for name in sorted(self._written)}
            write_durably(self.path / MANIFEST, to_json(with_seal(content), indent=2) + b"\n")
            self._remove_leftovers()
            if os.path.lexists(self._final):
                raise already_there(self.dataset, self.run_id)
            os.rename(self.path, self._final)
            fsync(self._final.parent)
        self.close()
        clear_finished(self._final)
        return Run.open(self.dataset, self.run_id, self._final)

    def close(self) -> None:
        """Release the lock. The partial run stays, so that training can resume later."""
        if self._trace is not None:
            self._trace.close()
            self._trace = None
        self._lock.release()

    def discard(self) -> None:
        """Remove the partial run and release the lock."""
        remove_by_way_of_trash(self.path, self.run_id)
        self.close()

    @contextlib.contextmanager
    def _replacing(self, name: str) -> Iterator[Path]:
        """A path to write to, which takes the file's place if all goes well."""
        if name in (MANIFEST, TRACE):
            raise ValueError(f"{name} is written by the run store")
        with explained(f"write {self.path / name}"), replacing(self.path / name) as temporary:
            yield temporary
        self._written.add(name)

    def _checkpoint_files(self, name: str) -> list[tuple[int, str, Path]]:
        """(number, checksum, path) of the checkpoints of this name, newest first."""
        found = ((CHECKPOINT_FILE.fullmatch(path.name), path) for path in self._checkpoints.iterdir())
        mine = [(int(match["number"]), match["digest"], path) for match, path in found if match and match["name"] == name]
        return sorted(mine, reverse=True)

    def _flushed_trace(self) -> int:
        """Bytes of the trace, all of which are on the disk, with the file's name."""
        path = self.path / TRACE
        if TRACE not in self._written:
            return 0
        fsync(path)
        fsync(self.path)
        return path.stat().st_size

    def _cut_trace(self, size: int) -> None:
        """Forget what was traced after the first ``size`` bytes."""
        path = self.path / TRACE
        if self._trace is not None:
            self._trace.close()
            self._trace = None
        self._written.discard(TRACE)
        if size and path.exists() and path.stat().st_size >= size:
            os.truncate(path, size)
            self._written.add(TRACE)
        else:
            path.unlink(missing_ok=True)

    def _remove_leftovers(self) -> None:
        for path in self.path.iterdir():
            if path.name not in self._written | {MANIFEST, LOCK, CHECKPOINTS}:
                remove(path)


def read_checkpoint(path: Path) -> tuple[Checkpoint, int] | None:
    """A checkpoint, and the length of the trace at that time; None if the file is something else."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  (not a dictionary)
        return Checkpoint(tensors, json.loads(metadata["state"])), int(metadata["trace_bytes"])
    except (SafetensorError, KeyError, TypeError, ValueError):
        return None


def clear_finished(folder: Path) -> None:
    """Remove from a finished run what was needed to make it; a process that was killed in between leaves it."""
    for leftover in (folder / LOCK, folder / CHECKPOINTS):
        remove(leftover)


def already_there(dataset: str, run_id: str) -> RunError:
    """The error for an id that is taken."""
    return RunError(f"run {dataset}/{run_id} already exists; choose another run id, or delete that run first.")


# How an interrupted run is resumed: a note in the folder of the run in the making, which the finished run does not have any more.

NOTE: Final = "begun"
NOTHING_KEPT: Final = "the earlier training of this run ended before its first checkpoint, so this one starts from the beginning"
REVIEWS: Final = "reviews"
"""Table of the decisions that a run is trained with."""
RENAMED: Final = "renamed"
"""Table of old and new identifiers, of a run on a new version of its parent's data."""


@dataclass(frozen=True)
class ResumeRecord:
    """What was asked for when a run was begun.

    Attributes:
        data: the data set's folder.
        config: all settings; of the literal run where the run in the making is the semi run below it.
        run_id: of the run that was asked for.
        reviews: the decisions of reviewers that it is trained with; None without any.
        parent: the run that is updated; "" for a training.
        mapping: of an update, its mapping files by graph; the key "" for both graphs.
        assigned: of an update, the settings that were chosen for it.
    """

    data: Path
    config: RunConfig
    run_id: str
    reviews: Path | None = None
    parent: str = ""
    mapping: Mapping[str, Path] = field(default_factory=dict)
    assigned: tuple[str, ...] = ()

    def command(self, models: Path) -> str:
        """The command that resumes it, to be typed in the project's folder; ``models``: where the run is."""
        if self.parent:
            options = [("--mapping", f"{side}={path}" if side else str(path)) for side, path in self.mapping.items()]
            options += [("--seed", str(self.config.seed)), *(("--set", one) for one in self.assigned)]
            return paths.update_command(self.parent, self.data, [*options, *self._places(models)])
        options = [("--variant", self.config.variant)] if self.config.variant != "basic" else []
        if self.config.seed:
            options.append(("--seed", str(self.config.seed)))
        options += [("--set", one) for one in self.config.assignments(starting_config(self.data))]
        return paths.train_command(self.data, [*options, *self._places(models)])

    def _places(self, models: Path) -> list[tuple[str, str]]:
        """Where reviews and runs are, if not where they are looked for anyway."""
        reviews = [] if self.reviews is None else [("--with-reviews", paths.shown_path(self.reviews))]
        return reviews if (shown := paths.shown_path(models)) == "models" else [*reviews, ("--models", shown)]


def note_beginning(writer: RunWriter, begun: ResumeRecord) -> bool:
    """
    Returns:
        Whether the run was begun before and ended without a checkpoint, so that it starts from the beginning: ``NOTHING_KEPT`` says so.

    Raises:
        RunError: the disk is full or does not permit it.
    """
    nothing_kept = (writer.path / with_suffix(NOTE, ".json")).exists() and not writer.has_checkpoint
    note: dict[str, Any] = {"data": str(begun.data.resolve()), "config": begun.config.to_dict(), "run_id": begun.run_id}
    if begun.parent:
        mapping = {side: str(path.resolve()) for side, path in begun.mapping.items()}
        note["update"] = {"parent": begun.parent, "mapping": mapping, "assigned": list(begun.assigned)}
    writer.write_note(NOTE, note)
    return nothing_kept


def read_beginning(folder: Path) -> ResumeRecord | None:
    """The note in the folder of a run in the making; None where that is nothing this engine understands."""
    try:
        value: Any = json.loads((folder / f"{NOTE}.json").read_text(encoding="utf-8"))
        reviews = folder / f"{REVIEWS}.parquet"
        record = ResumeRecord(Path(value["data"]), RunConfig.from_dict(value["config"]), str(value["run_id"]), reviews if reviews.is_file() else None)
        if (update := value.get("update")) is None:
            return record
        mapping = {str(side): Path(path) for side, path in update["mapping"].items()}
        return replace(record, parent=str(update["parent"]), mapping=mapping, assigned=tuple(map(str, update["assigned"])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError):
        return None
