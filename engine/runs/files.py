"""Names, locks, and file operations that survive a crash; errors of the operating system in plain words."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from filelock import FileLock, Timeout
from safetensors import SafetensorError

from engine.errors import RunError
from engine.util.files import fsync, one_line, remove, sha256_of

PARTIAL = ".partial-"
TRASH = ".trash-"
LOCK = ".lock"
LOCK_SECONDS = 0.5
"""Patience with a lock: a list of runs holds each for an instant, to see whether it is free."""
SAFE_NAME = re.compile(r"\w[\w.-]{0,99}")
"""Data sets, run ids and files: a letter, digit or underscore first; no separators, no spaces, no hidden files."""
LONGEST_NAME = 200  # bytes, which leaves room for a prefix within the 255 of most file systems


def is_name(text: str) -> bool:
    """Whether a text can be the name of a data set, run or file."""
    return SAFE_NAME.fullmatch(text) is not None and len(text.encode("utf-8", "surrogatepass")) <= LONGEST_NAME and not text.endswith(".")


def check_name(text: str, what: str) -> None:
    """
    Raises:
        RunError: the text cannot be a name.
    """
    if not is_name(text):
        raise RunError(f"{text[:200]!r} cannot be a {what}; use at most 100 letters, digits and _ - . with a letter, digit or _ first.")


def with_suffix(name: str, suffix: str) -> str:
    """'metrics' -> 'metrics.json'.

    Raises:
        RunError: the text cannot be a file's name.
    """
    check_name(name, "file name")
    return name if name.endswith(suffix) else name + suffix


@contextlib.contextmanager
def explained(action: str) -> Iterator[None]:
    """Turn errors of the operating system into a RunError: 'cannot <action>: <why>; <what to do>'."""
    try:
        yield
    except (OSError, SafetensorError, pa.ArrowException) as error:
        raise RunError(f"cannot {action}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """Why an operation failed and what to do about it; earlier runs are never affected."""
    code = error.errno if isinstance(error, OSError) else None
    if code is None and (match := re.search(r"os error (\d+)", str(error))):  # the safetensors library's way to say it
        code = int(match[1])
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "the disk is full; free some space and start again with the same command (earlier runs are untouched)."
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "permission denied; make the folder writable or choose another with --models (earlier runs are untouched)."
    return f"{os.strerror(code) if code else one_line(error)}; check the disk and the folder (earlier runs are untouched)."


def acquire(path: Path, run: str) -> FileLock:
    """Lock a run for this process.

    Raises:
        RunError: another process holds the lock.
    """
    lock = FileLock(path, timeout=LOCK_SECONDS, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise RunError(f"run {run} is being trained by another process; wait for it, stop it, or choose another run id.") from None
    return lock


def folders(parent: Path) -> list[Path]:
    """Sub-folders, and links to folders, by name; none if the parent is not there or cannot be read."""
    try:
        return sorted(entry for entry in parent.iterdir() if entry.is_dir())
    except OSError:
        return []


def changed_at(path: Path) -> str:
    """ISO 8601 UTC time of a folder's last change; the epoch if even that cannot be read."""
    try:
        seconds = path.stat().st_mtime
    except OSError:
        seconds = 0.0
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def sealed(path: Path) -> dict[str, int | str]:
    """A manifest's entry for a file, which is on the disk for certain after this."""
    fsync(path)
    return {"size": path.stat().st_size, "sha256": sha256_of(path)}


def remove_by_way_of_trash(path: Path, run_id: str) -> None:
    """Rename a folder away, so that no one sees half of it, then delete it and what earlier deletions left behind."""
    with explained(f"delete {path}"):
        taken = {entry.name for entry in path.parent.iterdir()}
        names = (f"{TRASH}{run_id}-{number}" for number in itertools.count(1))
        os.rename(path, path.with_name(next(name for name in names if name not in taken)))
        fsync(path.parent)
    for trash in path.parent.glob(f"{TRASH}*"):
        remove(trash)
