"""Checkpoints of a training in several processes: beside the file that the first one writes, each process keeps the rows of its own entities.

The first file names all of these with their checksums, and is written last: a checkpoint is there when it is whole. Where processes are on several
machines, each may have its files on its own disk.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from engine.runs.manifest import PARTIAL, explained
from engine.runs.tensors import save_sealed
from engine.runs.writer import CHECKPOINTS
from engine.util.files import make_folder, sha256_of

FOLDER: Final = "rows"
FILE: Final = re.compile(r"(?P<process>\d{4,})-(?P<digest>[0-9a-f]{64})\.safetensors")


class RowFiles:
    """The files that are on this machine.

    Args:
        run: the folder of the run in the making.
    """

    def __init__(self, run: Path) -> None:
        self.folder = run / CHECKPOINTS / FOLDER

    @classmethod
    def of_run(cls, models: Path, dataset: str, run_id: str) -> RowFiles:
        """In a models folder."""
        return cls(models / dataset / f"{PARTIAL}{run_id}")

    def save(self, process: int, rows: Mapping[str, Tensor]) -> str:
        """Keep what a process (from 0) holds; returns the checksum, by which it is found.

        Raises:
            RunError: the disk is full or does not permit it.
        """
        with explained(f"write a checkpoint to {self.folder}"):
            make_folder(self.folder)
            return save_sealed(self.folder / f".{process:04}.tmp", rows, partial(self._path, process))

    def has(self, process: int, digest: str) -> bool:
        """Whether this machine has such a file."""
        return self._path(process, digest).is_file()

    def load(self, process: int, digest: str) -> dict[str, Tensor] | None:
        """What was saved; None where the file is missing or damaged."""
        path = self._path(process, digest)
        try:
            return load_file(path) if sha256_of(path) == digest else None
        except (OSError, SafetensorError):
            return None

    def prune(self, process: int, processes: int, kept: Collection[tuple[int, str]]) -> None:
        """Delete a process's files but for those that are kept; the first process deletes those of processes that are no more as well.

        Raises:
            RunError: the disk does not permit it.
        """
        with explained(f"write a checkpoint to {self.folder}"):
            for number, digest, path in self._files():
                if (number, digest) not in kept and (number == process or (process == 0 and number >= processes)):
                    path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete what is left on a machine that keeps no run: files, and the folders around them as far as nothing else is in there."""
        with contextlib.suppress(OSError):
            for _, _, path in self._files():
                path.unlink(missing_ok=True)
            for folder in (self.folder, *self.folder.parents[:3]):
                folder.rmdir()

    def _path(self, process: int, digest: str) -> Path:
        name = f"{process:04}-{digest}.safetensors"
        return self.folder / (name if FILE.fullmatch(name) else "none")

    def _files(self) -> Iterator[tuple[int, str, Path]]:
        if self.folder.is_dir():
            found = ((FILE.fullmatch(path.name), path) for path in list(self.folder.iterdir()))
            yield from ((int(match["process"]), match["digest"], path) for match, path in found if match)
