"""Has a file been changed? Without reading it: by all metadata of the file system, not by the time alone, which a copy may preserve."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

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
