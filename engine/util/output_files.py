"""Files for a user: written beside their place and put there when they are whole; what is there already stays unless it may go."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from engine.errors import ExportError, printable


@contextlib.contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its place if all goes well, and of which nothing is left otherwise.

    Args:
        path: of the file.
        force: whether a file that is there may be replaced.

    Raises:
        ExportError: there is a file already, a folder of this name, no folder to write to, no space, no permission.
    """
    _check_place(path, force=force)
    with _explained(path):
        descriptor, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with _explained(path), os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with _explained(path):
            temporary.chmod(0o666 & ~_umask())
            _put(temporary, path, force=force)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _check_place(path: Path, *, force: bool) -> None:
    if os.path.isdir(path):  # which answers False for names that the file system cannot take
        raise ExportError(printable(f"{path} is a folder; name the file to write, for example with --output."))
    if not force and os.path.lexists(path):
        raise _taken(path)
    if not os.path.isdir(path.parent):
        raise ExportError(printable(f"there is no folder {path.parent} to write {path.name} to; make it first, or choose another with --output."))


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
    return ExportError(printable(f"{path} is there already; choose another name with --output, or replace it with --force."))


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise ExportError(printable(f"cannot write {path}: {why}; free some space or choose another place with --output.")) from error
