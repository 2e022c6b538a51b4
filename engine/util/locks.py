"""Locks between processes: files that are locked while their owner lives, which the system unlocks however it ends. No process id is compared.

Network folders may have no locks, or such as exclude nothing. What can be noticed of that on one machine is refused in a sentence; that another
machine is not excluded cannot be noticed (docs/reliability.md).
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from engine.errors import MachineError, printable
from engine.util.machine import os_reason

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_HELD: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK})


def take_lock(path: Path, seconds: float) -> FileLock:
    """Lock a file for this process, until the lock is released or the process ends.

    Raises:
        Timeout: another one has held it for so long.
        MachineError: the file system has no locks, or they exclude nothing.
        OSError: the file cannot be made or opened.
    """
    lock = FileLock(path, timeout=seconds, thread_local=False, fallback_to_soft=False)  # the soft ones compare process ids
    try:
        lock.acquire()
    except Timeout:
        raise
    except OSError as error:
        if error.filename is not None:  # of the file; locks themselves have no name
            raise
        raise no_locks(path, os_reason(error)) from error
    try:
        excludes = lock_is_held(path)
    except BaseException:
        lock.release()
        raise
    if not excludes:
        lock.release()
        raise no_locks(path, "they exclude no other process")
    return lock


def lock_is_held(path: Path) -> bool:
    """Whether a process holds this lock right now. The look is a shared lock: it disturbs neither the owner nor others who look.

    Raises:
        MachineError: the file system has no locks.
        OSError: the file cannot be opened.
    """
    if fcntl is None:
        return _is_held_on_windows(path)
    try:
        file = path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _HELD:
                return True
            raise no_locks(path, os_reason(error)) from error
    return False


def _is_held_on_windows(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with FileLock(path, timeout=0, thread_local=False):
            return False
    except Timeout:
        return True


def may_be_held(path: Path) -> bool:
    """The same, and True where it cannot be known: for lists, which must take nothing that may be alive for dead."""
    try:
        return lock_is_held(path)
    except (OSError, MachineError):
        return True


def no_locks(path: Path, reason: str) -> MachineError:
    """The error for a file system without locks that work."""
    words = f"file locks do not work in {path.parent} ({reason}), so that two processes could write at once"
    return MachineError(printable(f"{words}; use a folder on a local disk, or mount this one with locks."))
