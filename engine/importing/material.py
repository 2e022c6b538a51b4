"""What was brought: files, what their owner calls them, and which of them is what."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from engine.data.files import is_by_product
from engine.data.readers import READERS
from engine.data.readers.naming import sort_names
from engine.data.readers.rdf import rdf_suffix
from engine.data.tabular import table_suffix
from engine.errors import DataImportError
from engine.importing.limits import LIMITS, Limits
from engine.util.files import os_reason
from engine.util.text import shorten, size_text

Role = Literal["graph 1", "graph 2", "attributes 1", "attributes 2", "links"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
ROLE_WORDS: Final[Mapping[str, str]] = {
    "graph 1": "source graph",
    "graph 2": "target graph",
    "attributes 1": "names and attributes of the source graph",
    "attributes 2": "names and attributes of the target graph",
    "links": "known links",
}
FILE_BY_FILE: Final = ("tables", "rdf")
"""Formats whose files are understood one by one, whatever they are called; a folder of any other that is registered is read as a whole."""
DEEPEST: Final = 3


@dataclass(frozen=True)
class SourceFile:
    """A file.

    Attributes:
        path: where it lies now.
        name: what its owner calls it: text, and never a path.
        role: what its owner says it is; None where its name is to tell.
    """

    path: Path
    name: str
    role: Role | None = None

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def sha256(self) -> str:
        """Hex checksum, read in pieces."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Material:
    """Everything that was brought.

    Attributes:
        files: the files.
        folder: where they lie, if they came as one folder.
        origin: how they came, for people.
    """

    files: tuple[SourceFile, ...]
    folder: Path | None = None
    origin: str = "files"

    @property
    def whole_folder(self) -> str | None:
        """The format that the folder as a whole is in; None if its files are to be understood one by one."""
        if self.folder is None or any(file.role for file in self.files):
            return None
        return next((name for name in READERS if name not in FILE_BY_FILE and READERS[name].detect(self.folder).score >= 1), None)

    def named(self, name: str) -> SourceFile | None:
        return next((file for file in self.files if file.name == name), None)


def folder_material(folder: Path, *, origin: str = "folder", called: str | None = None, limits: Limits = LIMITS) -> Material:
    """The files of a folder, links among them only if they stay inside of it.

    ``called``: what its owner calls it, for messages; None: the folder's own name.

    Raises:
        DataImportError: nothing in it, a link that leads out of it, too many or too large files, no permission.
    """
    start, shown = _innermost(folder), shorten(called or folder.name)
    files: list[SourceFile] = []
    for path in _walk(start):
        name = path.relative_to(start).as_posix()
        if not path.resolve().is_relative_to(start.resolve()):
            raise DataImportError(f"{shorten(name)} is a link that leads out of the folder; put the file itself there.")
        if len(files) == limits.files:
            raise DataImportError(f"{shown} holds more than {limits.files:,} files, the limit; choose a folder of one data set.")
        files.append(SourceFile(path, name))
        if files[-1].size > limits.file_bytes:
            raise DataImportError(f"{shorten(name)} is larger than {size_text(limits.file_bytes)}, the limit for a file; thin out the graph.")
    if not files:
        raise DataImportError(f"{shown} holds no files; choose one with two graphs and links.")
    return Material(tuple(files), start, origin)


def with_file(material: Material, file: SourceFile) -> Material:
    """One more file, whose role takes precedence over what names say."""
    return dataclasses.replace(material, files=(*material.files, file))


def check_given(material: Material) -> None:
    """
    Raises:
        DataImportError: two files were given for one role.
    """
    given = [file for file in material.files if file.role]
    for file in given:
        twin = next(one for one in given if one.role == file.role)
        if twin is not file and file.role is not None:
            raise DataImportError(f"{shorten(twin.name)} and {shorten(file.name)} were both given as {ROLE_WORDS[file.role]}; give one of them.")


def assign(material: Material, corrected: Mapping[str, str]) -> dict[str, SourceFile]:
    """Role -> file: what was corrected, then what was said, then what names tell. Roles that nothing plays are missing.

    Besides ROLES there may be parts of links ("links train") and lists ("declared entities 1").

    Raises:
        DataImportError: a role that names leave open, or a correction that names no file.
    """
    chosen: dict[str, SourceFile] = {}
    for role, name in corrected.items():
        file = material.named(name)
        if role not in ROLES or file is None:
            raise DataImportError(
                f"there is no file '{shorten(name)}' to be the {ROLE_WORDS.get(role, shorten(role))}; choose one of those that were brought."
            )
        chosen[role] = file
    said: dict[str, SourceFile] = {file.role: file for file in material.files if file.role}
    settled: dict[str, SourceFile] = {**said, **chosen}
    unsaid = {file.name: file for file in material.files if file not in settled.values() and file.role is None and may_be_data(file.name)}
    told = sort_names(unsaid)
    for role, names in told.items():
        if role in settled or role in ("graph", "attributes"):
            continue
        if role == "links" and any(one.startswith("links") for one in settled):
            continue
        if len(names) > 1:
            listed = " and ".join(shorten(name, 40) for name in names[:3])
            raise DataImportError(f"{listed} could each be the {ROLE_WORDS.get(role, role)}; say which one it is.")
        settled[role] = unsaid[names[0]]
    return settled


def may_be_data(name: str) -> bool:
    """Whether a file's name lets it be a graph or links: a known ending or none, and right inside of the folder."""
    path = Path(name)
    return "/" not in name and bool(
        table_suffix(path) or rdf_suffix(path) or READERS.for_file(name) or Path(name.removesuffix(".gz")).suffix in ("", ".txt")
    )


def _walk(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise DataImportError(f"{shorten(folder.name)} cannot be read ({os_reason(error)}); check its permissions.")

    for place, folders, names in os.walk(folder, onerror=refuse):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not is_by_product(name)) if depth < DEEPEST else []
        yield from (path for name in sorted(names) if not is_by_product(name) and (path := Path(place, name)).is_file())


def _innermost(folder: Path) -> Path:
    """Archives often hold one folder that holds everything."""
    for _ in range(DEEPEST):
        inside = [path for path in folder.iterdir() if not is_by_product(path.name)]
        if len(inside) != 1 or not inside[0].is_dir() or inside[0].is_symlink():
            break
        folder = inside[0]
    return folder
