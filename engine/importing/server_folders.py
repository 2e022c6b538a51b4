"""What lies in the server's import folders; nothing outside of them can be asked for, by any name or link."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.data.files import is_by_product
from engine.errors import DataImportError
from engine.importing.material import may_be_data
from engine.util import settings
from engine.util.text import shorten

DEEPEST_OFFERED: Final = 3
MOST_OFFERED: Final = 200
ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True)
class Offered:
    """A folder or archive that can be imported.

    Attributes:
        name: what to ask for: the import folder's name and the path beneath it.
        path: where it is.
    """

    name: str
    path: Path


def offered() -> tuple[Offered, ...]:
    """Folders with at least two files that may be data, and archives, in the import folders (``DUAL_AMN_IMPORT``), by name; at most 200."""
    found: list[Offered] = []
    for root in settings.import_folders():
        for path in _candidates(root.resolve(), 0):
            if len(found) == MOST_OFFERED:
                break
            found.append(Offered(Path(root.name, path.relative_to(root.resolve())).as_posix(), path))
    return tuple(sorted(found, key=lambda one: one.name))


def find(name: str) -> Path:
    """The path of something that is offered; looked up, and never made of the name.

    Raises:
        DataImportError: nothing of this name is offered.
    """
    for one in offered():
        if one.name == name:
            return one.path
    raise DataImportError(
        f"'{shorten(name)}' is not in the folders that may be imported from; choose one of the list, or ask for DUAL_AMN_IMPORT to be set."
    )


def _candidates(folder: Path, depth: int) -> Iterator[Path]:
    """Links are not followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    entries = [entry for entry in entries if not is_by_product(entry.name) and not entry.name.startswith("_") and not entry.is_symlink()]
    files = [entry.name for entry in entries if entry.is_file()]
    if sum(map(may_be_data, files)) >= 2:
        yield folder
        return
    yield from (folder / name for name in files if name.lower().endswith(ARCHIVES))
    if depth < DEEPEST_OFFERED:
        for entry in entries:
            if entry.is_dir():
                yield from _candidates(folder / entry.name, depth + 1)
