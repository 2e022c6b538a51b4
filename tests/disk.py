"""What a power cut leaves: the content that files had at their last fsync, under the names that their folders had at theirs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DATABASE = ("-wal", "-shm", ".sqlite3")
"""Ends of names of files that SQLite itself takes to the disk."""
Inode = tuple[int, int]


def identity(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino


class Disk:
    """Records every fsync, and what is renamed into the sight of others before the disk has it.

    Attributes:
        early: names of those.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._files: dict[Inode, tuple[int, int]] = {}
        self._names: dict[Inode, dict[str, int]] = {}
        self.early: list[str] = []
        patch.setattr(os, "fsync", self._recorded(os.fsync))
        for name in ("replace", "rename", "link"):
            patch.setattr(os, name, self._watched(getattr(os, name)))

    def _recorded(self, fsync: Callable[[int], None]) -> Callable[[int], None]:
        def attempt(descriptor: int) -> None:
            fsync(descriptor)
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(descriptor) as entries:
                    self._names[identity(status)] = {entry.name: entry.inode() for entry in entries}
            else:
                self._files[identity(status)] = (status.st_size, status.st_mtime_ns)

        return attempt

    def _watched(self, operation: Callable[..., None]) -> Callable[..., None]:
        def attempt(source: Any, target: Any, *rest: Any, **options: Any) -> None:
            if not any(part.startswith(".") for part in (Path(target).name, Path(target).parent.name)):
                self.early += [str(path) for path in self.files_in(Path(source)) if not self._has_content(path)]
            operation(source, target, *rest, **options)

        return attempt

    def files_in(self, path: Path) -> list[Path]:
        """A file, or all in a folder and below, without locks."""
        found = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
        return [one for one in found if one.suffix != ".lock" and one.name != ".lock"]

    def _has_content(self, path: Path) -> bool:
        status = path.stat()
        return path.name.endswith(DATABASE) or self._files.get(identity(status)) == (status.st_size, status.st_mtime_ns)

    def _has_name(self, path: Path) -> bool:
        return self._names.get(identity(path.parent.stat()), {}).get(path.name) == path.stat().st_ino

    def lost(self, root: Path, *paths: Path) -> list[str]:
        """What of files and folders below ``root``, which was there before, a power cut would take: their content, or a name on the way to them."""
        files = [file for path in paths for file in self.files_in(path)]
        places = {place for path in (*files, *paths) for place in (path, *path.parents) if root in place.parents}
        content = [f"content of {path.relative_to(root)}" for path in files if not self._has_content(path)]
        return content + [f"name of {path.relative_to(root)}" for path in sorted(places) if not self._has_name(path)]

    def knows(self, path: Path) -> bool:
        """Whether a folder had such a name when it was last taken to the disk."""
        return path.name in self._names.get(identity(path.parent.stat()), {})
