"""Which file of a folder is what, by its name: the rule that tables and RDF graphs share (docs/data_formats.md).

A file's name is cut into words and numbers. A link word makes it a links file (with ``train``, ``valid``, ``test`` or ``unsure`` for a part),
``declared`` with ``entities`` or ``relations`` a list of these, a word that starts with ``attr`` an attribute table, and everything else with a
known ending a graph. Where there are both graphs and one file more, but no links, a link word inside of a longer word is enough
(``goldlinks.csv``). ``1``, ``source``, ``src``, ``left`` say the source side; ``2``, ``target``, ``tgt``, ``right`` the target side. Exactly two
graph files without a side are taken in alphabetical order.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from engine.data.apart import FILE_WORD
from engine.data.endings import DATA_ENDINGS, unpacked_name
from engine.data.files import list_files
from engine.data.knowledge_graph import Finding
from engine.data.readers.base import PART_WORDS, Detection, Part
from engine.errors import DataError
from engine.util.text import shorten

File = TypeVar("File")
LINK_STEMS = ("link", "alignment", "match", "mapping", "sameas", "seed", "pair", "correspondence")
LINK_WORDS = frozenset(stem + ending for stem in LINK_STEMS for ending in ("", "s", "es"))
APART = f"links {FILE_WORD}"
"""The role of a file of mappings that are no links."""
SIDE_WORDS: Mapping[str, frozenset[str]] = {"1": frozenset({"1", "source", "src", "left"}), "2": frozenset({"2", "target", "tgt", "right"})}
NODE_WORDS = frozenset({"node", "nodes"})
RELATIONSHIP_WORDS = frozenset({"relationship", "relationships", "rel", "rels", "edge", "edges"})


@dataclass(frozen=True)
class NamedFiles:
    """Files by role: "graph 1", "attributes 1", "declared entities 1", "declared relations 1", the same with 2, "links", "links train", ...

    Several files in one role are a mistake. ``set_aside``: files of links that the owner of the data did not choose.
    """

    folder: Path
    roles: Mapping[str, tuple[Path, ...]]
    set_aside: tuple[Path, ...] = ()

    @property
    def detection(self) -> Detection:
        """1 where both graphs are there, each by one file, and no file is left that could hold links. Links are not required."""
        missing = [
            f"one file for the {side} graph{self._found(f'graph {number}')}"
            for number, side in (("1", "source"), ("2", "target"))
            if not self._one(f"graph {number}")
        ]
        links = [role for role in self.roles if role.startswith("links") and role not in ("links unsure", APART)]
        if not links and self.roles.get("graph"):
            missing.append(f"a links file{self._found('graph')}")
        return Detection(1 - min(len(missing), 2) / 2, tuple(missing))

    @property
    def paths(self) -> list[Path]:
        """All files whose role says which graph they belong to, or that they are links, by name; roles that several files claim included."""
        return sorted(path for role, paths in self.roles.items() if role.startswith("links") or role.endswith((" 1", " 2")) for path in paths)

    def graph(self, number: str) -> Path:
        """The file of a graph; to be asked after :attr:`detection` said 1."""
        return self.roles[f"graph {number}"][0]

    def graph_files(self, number: str) -> Sequence[Path]:
        """All files of a graph: several where they are tables of nodes and of relationships."""
        return self.roles[f"graph {number}"]

    def optional(self, kind: str, number: str) -> Path | None:
        """The file of a graph's "attributes", "declared entities" or "declared relations"."""
        return self._single(f"{kind} {number}")

    def links(self) -> dict[Part, Path]:
        """Files of links by part."""
        parts: dict[str, Part] = {"links": "all", **{f"links {part}": part for part in PART_WORDS.values()}}
        return {part: path for role, part in sorted(parts.items()) if (path := self._single(role)) is not None}

    def noticed(self) -> list[Finding]:
        """That there are other files of links than the chosen one."""
        if not self.set_aside:
            return []
        names = tuple(shorten(path.name) for path in self.set_aside)
        chosen = next((paths[0] for role, paths in self.roles.items() if role.startswith("links") and role != APART), None)
        words = f"{', '.join(names[:3])} {'was' if len(names) == 1 else 'were'} not read: data.links takes the links from {chosen and chosen.name}."
        return [Finding("links-not-chosen", "info", words, len(names), names[:3], "Choose another file with data.links where that one is meant.")]

    def apart(self) -> Path | None:
        """The file of mappings that are no links."""
        return self._single(APART)

    def _one(self, role: str) -> bool:
        paths = self.roles.get(role, ())
        return len(paths) == 1 or _are_parts([path.name for path in paths])

    def _found(self, role: str) -> str:
        names = [shorten(path.name, 40) for path in self.roles.get(role, ())]
        return f" (found {' and '.join(names[:3])})" if names else ""

    def _single(self, role: str) -> Path | None:
        paths = self.roles.get(role, ())
        if len(paths) > 1:
            shown = [shorten(path.name, 60) for path in paths[:2]]
            choose = f"choose one with data.links (--set data.links={shown[0]}), or " if role == "links" else ""
            raise DataError(f"{shown[0]} and {shown[1]} could both be the {role}; {choose}rename or remove one of them.", path=self.folder)
        return paths[0] if paths else None


def sort_files(folder: Path, is_graph: Callable[[Path], bool], is_links: Callable[[Path], bool], links: str | None = None) -> NamedFiles:
    """Give each file of the folder its role.

    Args:
        folder: the data set.
        is_graph, is_links: whether a file's ending is one that a graph, or links, may have.
        links: name of the file that holds the links, whatever others are called.

    Raises:
        DataError: the folder cannot be listed; it has no such file of links.
    """
    roles: dict[str, list[Path]] = {}
    for path in list_files(folder):
        roles.setdefault(_role(path.name), []).append(path)
    set_aside = () if links is None else _choose_links(folder, roles, links, is_links)
    roles = {role: [path for path in paths if (is_links if _may_be_links(role, path) else is_graph)(path)] for role, paths in roles.items()}
    found = _with_sides({role: paths for role, paths in roles.items() if paths}, lambda path: path.name)
    fitting = {role: tuple(path for path in paths if role.startswith("links") or is_graph(path)) for role, paths in found.items()}
    return NamedFiles(folder, {role: paths for role, paths in fitting.items() if paths}, set_aside)


def _choose_links(folder: Path, roles: dict[str, list[Path]], links: str, is_links: Callable[[Path], bool]) -> tuple[Path, ...]:
    """Leaves the chosen file alone to be the links; returns the others that could have been.

    Raises:
        DataError: there is no such file, or it is none of links.
    """
    role, path = next(((role, path) for role, paths in roles.items() for path in paths if path.name == links), (None, None))
    if role is None or path is None or not is_links(path):
        could = sorted(one.name for role, paths in roles.items() if role.startswith("links") for one in paths if is_links(one))
        known = f"; choose among {', '.join(shorten(name, 60) for name in could[:5])}" if could else "; correct or remove data.links"
        raise DataError(f"data.links names {shorten(links, 60)}, and this folder has no such file of links{known}.", path=folder)
    roles[role].remove(path)
    rivals = [one for one in roles if one.startswith("links") and one != APART]
    others = [one for rival in rivals for one in roles.pop(rival) if is_links(one)]
    roles[role if role in rivals else "links"] = [path]
    return tuple(sorted(others))


class NamedFilesReader(ABC):
    """What readers share that recognise files by their names: a folder's files are sorted by what each ending may be."""

    @abstractmethod
    def is_graph(self, path: Path) -> bool:
        """Whether a file's ending is one of graphs."""

    @abstractmethod
    def is_links(self, path: Path) -> bool:
        """Whether a file's ending is one of links."""

    def sorted_files(self, folder: Path, links: str | None = None) -> NamedFiles:
        """``links``: as ``data.links``."""
        return sort_files(folder, self.is_graph, self.is_links, links)

    def detect(self, folder: Path) -> Detection:
        return self.sorted_files(folder).detection

    def files(self, folder: Path) -> Sequence[Path]:
        return self.sorted_files(folder).paths


def sort_names(names: Iterable[str]) -> dict[str, list[str]]:
    """Give each file name its role; names that do not say their graph's side are left in the roles "graph" and "attributes"."""
    roles: dict[str, list[str]] = {}
    for name in sorted(names):
        roles.setdefault(_role(name), []).append(name)
    return _with_sides(roles, str)


def _may_be_links(role: str, path: Path) -> bool:
    return role.startswith("links") or (role == "graph" and _has_link_stem(path.name))


def _has_link_stem(name: str) -> bool:
    return any(stem in name.split(".", 1)[0].lower() for stem in LINK_STEMS)


def _with_links(roles: dict[str, list[File]], name_of: Callable[[File], str]) -> dict[str, list[File]]:
    """Where no file is known to hold links, the only one that is no graph and has a link word within its name does."""
    if any(role.startswith("links") for role in roles):
        return roles
    likely = [file for file in roles.get("graph", []) if _has_link_stem(name_of(file))]
    others = [file for file in roles.get("graph", []) if file not in likely]
    sided = {"graph 1", "graph 2"} <= roles.keys()
    if len(likely) != 1 or not (sided or len(others) == 2):
        return roles
    return {role: files for role, files in roles.items() if role != "graph"} | ({"graph": others} if others else {}) | {"links": likely}


def _with_sides(roles: dict[str, list[File]], name_of: Callable[[File], str]) -> dict[str, list[File]]:
    """Exactly two graphs without a side become source and target, in their order."""
    roles = _with_links(roles, name_of)
    sideless = roles.get("graph", [])
    if len(sideless) == 2 and not roles.keys() & {"graph 1", "graph 2"}:
        return {role: files for role, files in roles.items() if role != "graph"} | {"graph 1": sideless[:1], "graph 2": sideless[1:]}
    return roles


def looks_like_data(path: Path) -> bool:
    """Whether a file's ending is one that graphs and links have, be it one that is not read."""
    return unpacked_name(path.name).endswith(DATA_ENDINGS)


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W\d_]+|\d+", name.split(".", 1)[0].lower())


def _are_parts(names: Sequence[str]) -> bool:
    """Whether several files of one graph are tables of nodes and of relationships."""
    kinds = [(bool(NODE_WORDS & set(words)), bool(RELATIONSHIP_WORDS & set(words))) for words in map(_words, names)]
    text = all(unpacked_name(name).endswith((".csv", ".tsv")) for name in names)
    return text and all(map(any, kinds)) and any(node for node, _ in kinds) and any(edge for _, edge in kinds)


def _role(name: str) -> str:
    words = _words(name)
    if LINK_WORDS & set(words):
        if FILE_WORD in words:
            return APART
        part = next((PART_WORDS[word] for word in words if word in PART_WORDS), None)
        return "links" if part is None else f"links {part}"
    sides = [number for number, known in SIDE_WORDS.items() if known & set(words)]
    if "declared" in words and len(listed := {"entities", "relations"} & set(words)) == 1:
        kind = f"declared {listed.pop()}"
    else:
        kind = "attributes" if any(word.startswith("attr") for word in words) else "graph"
    return f"{kind} {sides[0]}" if len(sides) == 1 else kind
