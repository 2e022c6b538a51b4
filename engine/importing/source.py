"""What an import is made of: files and their roles, how much is accepted, what their owner corrects, and what the server offers."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from engine.data.endings import ARCHIVES, GZIP_ENDING, PLAIN
from engine.data.files import is_by_product
from engine.data.readers import READERS
from engine.data.readers.exports import export_form
from engine.data.readers.naming import APART, sort_names
from engine.data.readers.ontology import ALIGNED, Aligned
from engine.data.readers.property_tables import property_delimiter
from engine.data.readers.rdf import rdf_suffix
from engine.data.readers.syntaxes import syntax_by_ending
from engine.data.tabular import Layout, table_suffix
from engine.errors import DataImportError
from engine.util import paths
from engine.util.machine import os_reason
from engine.util.text import shorten, size_text

# Limits of an import. They are named in every message that refuses something.


@dataclass(frozen=True)
class Limits:
    """What is accepted.

    Attributes:
        file_bytes: of one file, as it was uploaded.
        unpacked_bytes: of all files of an archive together.
        files: in an archive or folder.
        ratio: unpacked to packed size of an archive, beyond ``ratio_from`` unpacked bytes. Triples as text seldom come above 40; a bomb has hundreds.
        storage_bytes: of everything in the data folder together; None: as much as fits. ``free_bytes`` of the disk stay free then.
    """

    file_bytes: int = 2**31
    unpacked_bytes: int = 2**32
    files: int = 500
    ratio: int = 200
    ratio_from: int = 2**24
    storage_bytes: int | None = None
    free_bytes: int = 2**30


LIMITS: Final = Limits()


# What the owner of the data says about it, where the engine understood something else.

SeedChoice = Literal["none", "exact", "near"]
SEED_CHOICES: Final[tuple[SeedChoice, ...]] = get_args(SeedChoice)
NAMING: Final = ("name_attribute", "name_language", "name_language_source", "name_language_target")
"""Corrections that are settings of a data set's reading as well: of a training and of ``inspect``."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Corrections:
    """All of it; as it is by default, nothing is corrected.

    Attributes:
        roles: "graph 1", "links", ... -> name of the file that plays this role.
        tables: role -> what is known of that file's table.
        name_attribute: the attribute that holds the names; None looks for it.
        name_language: languages of names to prefer, as ``data.name_language``; None: no preference.
        name_language_source, name_language_target: the same for one graph.
        swap_links: take the links' second column for the source.
        repair_links: spell ends of links as the graphs do where they differ by Unicode normalisation or percent-encoding only.
        names_from_triples: take triples that look like names for names.
        ontology: which things of an ontology are entities, as ``data.ontology``.
        queries: role of a graph -> what of its database is the graph.
        named_graphs: role of a graph -> the named graphs of its file that are read, "default" for triples outside of any; without it, all.
        seeds: seed links from names: none, exactly equal ones, or nearly equal ones too.
        rejected: pairs of these that are not to be seeds, by identifier.
        least_confidence: that a link must have where its file gives one; None keeps all.
        links_from: the attribute whose values link to entities of the other graph; None: no attribute does.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Layout] = field(default_factory=dict)
    name_attribute: str | None = None
    name_language: str | None = None
    name_language_source: str | None = None
    name_language_target: str | None = None
    swap_links: bool = False
    repair_links: bool = False
    seeds: SeedChoice = "none"
    rejected: frozenset[Pair] = frozenset()
    names_from_triples: bool = False
    ontology: Aligned = "auto"
    least_confidence: float | None = None
    links_from: str | None = None
    queries: Mapping[str, str] = field(default_factory=dict)
    named_graphs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def naming(self) -> dict[str, str]:
        """``data.option`` -> value: how names are to be read, where the owner said so."""
        return {f"data.{name}": value for name in NAMING if (value := getattr(self, name)) is not None}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``import.json`` stores them."""
        return {
            "roles": dict(self.roles),
            "tables": {
                role: {"delimiter": one.delimiter, "header": one.header, "columns": dict(one.columns), "trim": one.trim}
                | ({} if one.relations is None else {"relations": list(one.relations)})
                for role, one in self.tables.items()
            },
            **{name: getattr(self, name) for name in NAMING},
            "swap_links": self.swap_links,
            "repair_links": self.repair_links,
            "names_from_triples": self.names_from_triples,
            "ontology": self.ontology,
            "queries": dict(self.queries),
            "named_graphs": {role: list(names) for role, names in self.named_graphs.items()},
            "seeds": self.seeds,
            "rejected": sorted(map(list, self.rejected)),
            "least_confidence": self.least_confidence,
            "links_from": self.links_from,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Corrections:
        """The inverse of :meth:`to_dict`.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        if value["seeds"] not in SEED_CHOICES:
            raise ValueError(value["seeds"])
        if (ontology := value.get("ontology", "auto")) not in ALIGNED:
            raise ValueError(ontology)
        return cls(
            roles=dict(value["roles"]),
            tables={
                role: Layout(
                    one["delimiter"],
                    one["header"],
                    dict(one["columns"]),
                    one.get("trim") is True,
                    None if one.get("relations") is None else tuple(map(int, one["relations"])),
                )
                for role, one in value["tables"].items()
            },
            **{name: value.get(name) for name in NAMING},
            swap_links=bool(value["swap_links"]),
            repair_links=bool(value.get("repair_links", False)),
            names_from_triples=value.get("names_from_triples") is True,
            ontology=ontology,
            queries={str(role): str(query) for role, query in dict(value.get("queries", {})).items()},
            named_graphs={str(role): tuple(map(str, names)) for role, names in dict(value.get("named_graphs", {})).items()},
            seeds=value["seeds"],
            rejected=frozenset((str(left), str(right)) for left, right in value["rejected"]),
            least_confidence=None if value.get("least_confidence") is None else float(value["least_confidence"]),
            links_from=None if value.get("links_from") is None else str(value["links_from"]),
        )


# The files of an import, their names, and their roles.

Role = Literal["graph 1", "graph 2", "attributes 1", "attributes 2", "links"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
ROLE_WORDS: Final[Mapping[str, str]] = {
    "graph 1": "source graph",
    "graph 2": "target graph",
    "attributes 1": "names and attributes of the source graph",
    "attributes 2": "names and attributes of the target graph",
    "links": "known links",
}
OPTIONAL_ROLES: Final[tuple[Role, ...]] = ("links", "attributes 1", "attributes 2")
"""Those that the command line has an option for."""
FILE_BY_FILE: Final = ("tables", "rdf", "ontology", "exports")
"""Formats whose files are understood one by one, whatever they are called; a folder of any other that is registered is read as a whole."""
DEEPEST: Final = 3


@dataclass(frozen=True)
class SourceFile:
    """A file.

    Attributes:
        path: where it lies now.
        name: what its owner calls it: text, and never a path.
        role: what its owner says it is; None where its name decides.
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
    """All files of an import.

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
    """Role -> file: by correction, then as stated, then by name. Roles without a file are missing.

    Besides ROLES there may be parts of links ("links train"), lists ("declared entities 1"), and more files of a graph in Neo4j's CSV
    ("graph 1 file 2").

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
    by_name = sort_names(unsaid)
    for role, names in by_name.items():
        if role in settled or role in ("graph", "attributes"):
            continue
        if role == "links" and any(one.startswith("links") and one != APART for one in settled):
            continue
        if len(names) > 1 and role in ("graph 1", "graph 2") and all(property_delimiter(unsaid[name].path) for name in names):
            settled |= {f"{role} file {number}": unsaid[name] for number, name in enumerate(names[1:], start=2)}
        elif len(names) > 1:
            listed = " and ".join(shorten(name, 40) for name in names[:3])
            option = f"with --{role.replace(' ', '')} on the command line" if role in OPTIONAL_ROLES else "by other names"
            words = (
                f"{listed} could each be the {ROLE_WORDS.get(role, role)}; say which one under 'Roles of the files' on the page Import, or {option}."
            )
            raise DataImportError(words)
        settled[role] = unsaid[names[0]]
    return settled


def may_be_data(name: str) -> bool:
    """Whether a file's name lets it be a graph or links: a known ending or none, and right inside of the folder."""
    path = Path(name)
    return "/" not in name and bool(
        table_suffix(path)
        or rdf_suffix(path)
        or syntax_by_ending(path)
        or export_form(path)
        or READERS.for_file(name)
        or Path(name.removesuffix(GZIP_ENDING)).suffix in PLAIN
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


# What lies in the server's import folders; nothing outside of them can be asked for, by any name or link.

DEEPEST_OFFERED: Final = 3
MOST_OFFERED: Final = 200


@dataclass(frozen=True)
class Offered:
    """A folder or archive that can be imported.

    Attributes:
        name: as it is requested: the import folder's name and the path below it.
        path: where it is.
    """

    name: str
    path: Path


def offered() -> tuple[Offered, ...]:
    """Folders with at least two files that may be data, and archives, in the import folders (``DUAL_AMN_IMPORT``), by name; at most 200."""
    found: list[Offered] = []
    for root in paths.import_folders():
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
