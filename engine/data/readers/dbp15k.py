"""The id files of DBP15K (Sun et al., ISWC 2017) and SRPRS (Guo et al., ICML 2019), with their quirks.

Ids of the two graphs interleave and mean nothing outside of the folder, so they are replaced by the identifiers behind them. The links of
``ref_ent_ids`` may include those of ``sup_ent_ids`` (srprs_dbp_*): the split takes training links out of the test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.config import DataConfig
from engine.data.files import find_file, found_files, require_file
from engine.data.knowledge_graph import Finding
from engine.data.readers.base import Detection, Part, RawDataset, RawGraph, RawLinks, tallies
from engine.data.rows import Rows, parse_ids, read_tabbed
from engine.data.texts import Texts, strings
from engine.errors import DataError
from engine.util.arrays import IntArray
from engine.util.text import count

NEEDED = ("ent_ids_1", "ent_ids_2", "triples_1", "triples_2", "ref_ent_ids")


@dataclass(frozen=True)
class IdNames:
    """The names behind ids.

    Attributes:
        ids: (n,) ascending.
        rows: (n,) the row of ``texts`` that has the name of each.
        texts: n names, in the file's order.
    """

    ids: IntArray
    rows: IntArray
    texts: Texts

    def find(self, ids: IntArray) -> IntArray:
        """(m,) the rows of the names of these ids; -1 where one has none."""
        if not len(self.ids):
            return np.full(len(ids), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.rows[places], -1)


class Dbp15kReader:
    name = "dbp15k"
    description = "DBP15K and SRPRS folders: ent_ids_1/2, triples_1/2, ref_ent_ids, sup_ent_ids, rel_ids_1/2"

    def detect(self, folder: Path) -> Detection:
        missing = tuple(name for name in NEEDED if find_file(folder, name) is None)
        return Detection(1 - len(missing) / len(NEEDED), missing)

    def files(self, folder: Path) -> Sequence[Path]:
        return found_files(folder, (*NEEDED, "sup_ent_ids", "rel_ids_1", "rel_ids_2"))

    def read(self, folder: Path, config: DataConfig) -> RawDataset:
        findings: list[Finding] = []
        names = tuple(_read_names(require_file(folder, f"ent_ids_{number}"), "entity", findings) for number in "12")
        source, target = (_read_graph(folder, number, own, findings) for number, own in zip("12", names, strict=True))
        seeds = find_file(folder, "sup_ent_ids")
        reference = _read_links(require_file(folder, "ref_ent_ids"), names, required=seeds is None)
        if seeds is None:
            return RawDataset(source, target, {"all": reference}, "", tuple(findings))
        links: dict[Part, RawLinks] = {"train": _read_links(seeds, names, required=False), "test": reference}
        return RawDataset(source, target, links, "given: sup_ent_ids / ref_ent_ids", tuple(findings))


def entity_ids(folder: Path) -> tuple[dict[int, str], dict[int, str]]:
    """For each graph, the id files' numbers and the identifiers that the task calls these entities by.

    Raises:
        DataError: an id file is missing or damaged.
    """
    names = (_read_names(require_file(folder, f"ent_ids_{number}"), "entity", []) for number in "12")
    source, target = (dict(zip(own.ids.tolist(), own.texts.take(own.rows), strict=True)) for own in names)
    return source, target


def _read_names(path: Path, what: str, findings: list[Finding]) -> IdNames:
    """Unique names: where two ids bear the same name, each gets its id appended."""
    rows = read_tabbed(path, (f"{what} id", f"{what} name"))
    ids, texts = parse_ids(rows, 0, f"{what} id"), rows.columns[1]
    order = np.argsort(ids, kind="stable")
    again = order[1:][ids[order[1:]] == ids[order[:-1]]]
    if len(again):
        at = again.min()
        raise DataError(f"id {ids[at]} is repeated here. Keep one line per id.", path=path, line=int(rows.lines[at]))
    repeated = np.bincount(texts.codes) > 1
    if repeated.any():
        words = sorted(texts.words.filter(repeated).to_list())
        message = f"{path.name}: {count(len(words), 'name belongs', 'names belong')} to several ids; the ids were appended to distinguish them."
        findings.append(Finding("repeated-names", "warning", message, len(words), tuple(words[:3]), "Give each entity a name of its own."))
        texts = Texts.of(_made_unique(dict(zip(ids.tolist(), texts, strict=True)), set(words)))
    return IdNames(ids[order], order, texts)


def _made_unique(names: Mapping[int, str], repeated: set[str]) -> list[str]:
    taken = set(names.values())
    unique = []
    for number, text in names.items():
        candidate = f"{text}#{number}" if text in repeated else text
        while text in repeated and candidate in taken:
            candidate += "'"
        taken.add(candidate)
        unique.append(candidate)
    return unique


def _read_graph(folder: Path, number: str, entities: IdNames, findings: list[Finding]) -> RawGraph:
    path = require_file(folder, f"triples_{number}")
    rows = read_tabbed(path, ("head id", "relation id", "tail id"))
    file = f"ent_ids_{number}"
    heads, tails = (_names_of(rows, column, what, entities, file) for column, what in ((0, "head id"), (2, "tail id")))
    known_path = find_file(folder, f"rel_ids_{number}")
    known = None if known_path is None else _read_names(known_path, "relation", findings)
    relations = _relations(rows, number, known, findings)
    return RawGraph(path, heads, relations, tails, entities.texts, () if known is None else known.texts, files=tallies("triples", rows))


def _relations(rows: Rows, number: str, known: IdNames | None, findings: list[Finding]) -> Texts:
    """The relations' names; ids where there are none."""
    ids, which = np.unique(parse_ids(rows, 1, "relation id"), return_inverse=True)
    own = Texts(which.astype(np.uint32), strings(map(str, ids.tolist())))
    if known is None:
        return own
    places = known.find(ids)
    nameless = ids[places < 0].tolist()
    if nameless:
        message = f"triples_{number}: {count(len(nameless), 'relation is', 'relations are')} not in rel_ids_{number} and called by id."
        examples = tuple(map(str, nameless[:3]))
        findings.append(Finding("relations-without-name", "warning", message, len(nameless), examples, f"Complete rel_ids_{number}."))
    return own.renamed([str(number) if place < 0 else known.texts[place] for number, place in zip(ids.tolist(), places.tolist(), strict=True)])


def _read_links(path: Path, names: tuple[IdNames, ...], *, required: bool) -> RawLinks:
    columns = ("source id", "target id")
    rows = read_tabbed(path, columns, required=required)
    sources, targets = (_names_of(rows, column, columns[column], names[column], f"ent_ids_{column + 1}") for column in (0, 1))
    return RawLinks(path, sources, targets, files=tallies("links", rows))


def _names_of(rows: Rows, column: int, what: str, names: IdNames, file: str) -> Texts:
    ids = parse_ids(rows, column, what)
    found = names.find(ids)
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        at = unknown[0]
        raise DataError(f"{what} {ids[at]} is not in {file}; add it there, or remove this line.", path=rows.path, line=int(rows.lines[at]))
    return names.texts.take(found)
