"""Files that are written beside their place and put there when they are whole, locks, and errors of the operating system in words."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from engine.errors import ExportError, printable
from engine.util.machine import os_advice, os_reason

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY: Final = ".tmp"
ABANDONED_SECONDS: Final = 1.0
"""A younger temporary file may be one that is about to be locked."""


@contextlib.contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its place if all goes well, and of which nothing is left otherwise.

    Args:
        path: of the file.
        force: whether a file that is there may be replaced.

    Raises:
        ExportError: there is a file already, a folder of this name, no folder to write to, no space, no permission.
    """
    check_new_file(path, force=force)
    prefix = _temporary_prefix(path)
    _remove_abandoned(path.parent, prefix)
    with _explained(path):
        descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=TEMPORARY, dir=path.parent)
    temporary = Path(name)
    _try_lock(descriptor)
    try:
        with _explained(path), os.fdopen(descriptor, "wb") as file:
            yield file
            temporary.chmod(0o666 & ~_umask())
            file.flush()
            os.fsync(file.fileno())
        with _explained(path):
            _put(temporary, path, force=force)
            fsync(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _temporary_prefix(path: Path) -> str:
    """How names of temporary files for this one begin, whatever characters and however many its name has."""
    return f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:12]}-"


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove what a process left behind that was killed while it wrote the same file; others that write it now hold a lock."""
    for path in folder.glob(f"{prefix}*{TEMPORARY}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS and _try_lock(file.fileno()):
                path.unlink()


def _try_lock(descriptor: int) -> bool:
    """Take the lock of an open file, which ends with the process; False where another process has it. True where the system has no such locks:
    then open files cannot be deleted either."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def check_new_file(path: Path, *, force: bool, folder_is_made: bool = False) -> None:
    """
    Args:
        path: of a file that is to be written.
        force: whether a file that is there may be replaced.
        folder_is_made: whether the folder may be missing.

    Raises:
        ExportError: there is a file already, a folder of this name, or no folder to write to.
    """
    if os.path.isdir(path):  # which answers False for names that the file system cannot take
        raise ExportError(printable(f"{path} is a folder; give the file to write, for example with --output."))
    if not force and os.path.lexists(path):
        raise _taken(path)
    if not folder_is_made and not os.path.isdir(path.parent):
        raise ExportError(printable(f"the folder {path.parent} does not exist; create it, or choose another with --output."))


def _put(temporary: Path, path: Path, *, force: bool) -> None:
    """Into its place; without ``force`` a file that another process has put there meanwhile stays."""
    if force:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError:  # a file system without hard links
        os.rename(temporary, path)


def _taken(path: Path) -> ExportError:
    return ExportError(printable(f"{path} already exists; choose another name with --output, or overwrite it with --force."))


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        words = f"cannot write {path}: {os_reason(error)}; {os_advice(error, 'check the disk')}, or choose another place with --output."
        raise ExportError(printable(words)) from error


def sha256_of(path: Path) -> str:
    """Hex checksum of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_durably(path: Path, content: bytes) -> None:
    """Write a file so that after a crash it is either as before or as it should be."""
    with replacing(path, durable=True) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A path to write to, which takes the file's place if all goes well, and of which nothing is left where an error ends that.

    Args:
        path: the file.
        durable: whether to wait until the disk has it.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        yield temporary
        if durable:
            fsync(temporary)
        os.replace(temporary, path)
    except Exception:
        remove(temporary)
        raise
    if durable:
        fsync(path.parent)


NO_SUCH_THING: Final = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES)
"""What file systems answer that cannot wait for a folder's names, and folders that may be written to but not read."""


def fsync(path: Path) -> None:
    """Wait until the disk has a file's content, or a folder's list of names."""
    folder = path.is_dir()
    if folder and os.name == "nt":
        return  # Windows has no such thing for folders
    try:
        descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if not folder or error.errno not in NO_SUCH_THING:
            raise


def fsync_tree(folder: Path) -> None:
    """Wait until the disk has all files in a folder and in those below it, and their names."""
    for place, _, names in os.walk(folder):
        for name in names:
            fsync(Path(place, name))
        fsync(Path(place))


def make_folder(path: Path) -> None:
    """Make a folder, with those above it that are missing; the disk has their names when this returns."""
    missing = list(itertools.takewhile(lambda place: not place.exists(), (path, *path.parents)))
    path.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        fsync(made.parent)


def remove(path: Path) -> None:
    """Delete a file or folder as far as that goes; links are deleted, not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
