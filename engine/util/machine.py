"""What of the machine ran out or failed, in one sentence: room on the disk, permissions, memory, open files, locks.

Most of the engine reports such errors where they happen, with what it was doing. What passes by there is made a sentence by
:func:`as_machine_error` where the command line, the app, the worker and the service end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from engine.errors import EngineError, MachineError, printable

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
OPEN_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ESTALE})

LESS_MEMORY: Final = "close other programs, or use a larger machine; a training needs less with a smaller encoder.dim or training.batch_size"
_NO_MEMORY: Final = re.compile(r"can(?:'|no)t allocate memory|not enough memory|bad_alloc|out of memory|failed to allocate|malloc of size", re.I)
_NUMBER: Final = re.compile(r"(?:os error |Os \{ code: )(\d+)")
"""In messages of libraries, of safetensors and of Polars, whose panics are no exceptions of Python's ordinary kind."""
_NO_THREADS: Final = "can't start new thread"


def error_number(error: BaseException) -> int | None:
    """The number that the operating system gives an error; some libraries give it within their message alone ("os error 28")."""
    if isinstance(error, OSError):
        return error.errno
    match = None if isinstance(error, EngineError) else _NUMBER.search(str(error))
    return int(match[1]) if match else None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: Python's and Arrow's error, or what torch, faiss and compiled kernels raise instead."""
    if isinstance(error, MemoryError) or error_number(error) == errno.ENOMEM:
        return True
    return isinstance(error, RuntimeError | sqlite3.Error) and _NO_MEMORY.search(str(error)) is not None


def os_reason(error: OSError) -> str:
    """'no such file or directory'; where the disk has room but no inodes, that."""
    if error.errno == errno.ENOSPC and error.filename is not None and _no_inodes(Path(os.fsdecode(error.filename))):
        return "no inodes left on device, of which each file needs one"
    return (os.strerror(error.errno) if error.errno else error.strerror or type(error).__name__).lower()


def _no_inodes(path: Path) -> bool:
    if not hasattr(os, "statvfs"):  # Windows
        return False
    with contextlib.suppress(OSError):
        found = os.statvfs(next((place for place in (path, *path.absolute().parents) if place.exists()), Path("/")))
        return found.f_files > 0 and found.f_favail == 0 and found.f_bavail > 0
    return False


def os_advice(error: BaseException, otherwise: str = "check the disk and the folder") -> str:
    """What to do about an error of the operating system: 'free some space'."""
    number = error_number(error)
    if number in FULL:
        return "free some space"
    if number in DENIED:
        return "make it writable and readable for this user"
    if number in OPEN_FILES:
        return "raise the limit of open files (ulimit -n) or close other programs"
    if is_out_of_memory(error):
        return "close other programs, or use a larger machine"
    if number in GONE:
        return "check that the folder is still there"
    return otherwise


def as_machine_error(error: BaseException, place: Path | None = None) -> MachineError | None:
    """The sentence for an error that the machine is the cause of; None for anything else, which is a defect of ours.

    ``place``: the file, where the error itself names none.
    """
    if isinstance(error, MachineError):
        return error
    if is_out_of_memory(error):
        return MachineError(f"out of memory; {LESS_MEMORY}.")
    if isinstance(error, RuntimeError) and _NO_THREADS in str(error):
        return MachineError("no more threads can be started; raise the limit of processes (ulimit -u) or of memory, or close other programs.")
    if isinstance(error, OSError) and error.errno is not None:
        named = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else place
        return MachineError(printable(f"{'' if named is None else f'{named}: '}{os_reason(error)}; {os_advice(error)}, then try again."))
    if (number := error_number(error)) is not None and not isinstance(error, OSError):
        return as_machine_error(OSError(number, os.strerror(number)), place)
    if isinstance(error, sqlite3.OperationalError):
        return MachineError(printable(f"a database cannot be used ({error}); check the disk, then try again."))
    return None


def is_of_machine(error: BaseException) -> bool:
    """Whether an error, or what it was raised from, has the machine as its cause: the same may be possible later."""
    return isinstance(error, MachineError) or (error.__cause__ is not None and as_machine_error(error.__cause__) is not None)


@contextlib.contextmanager
def damage_apart(path: Path) -> Iterator[None]:
    """For readers that take most errors as damage of their file: errors of which the machine is the cause pass by as such.

    Raises:
        MachineError: memory ran out, or the operating system gives an error of its own.
    """
    try:
        yield
    except Exception as error:
        found = None if isinstance(error, EngineError) else as_machine_error(error, path)
        if found is None:
            raise
        raise found from error
