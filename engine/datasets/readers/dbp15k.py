"""The id files of DBP15K (Sun et al., ISWC 2017) and SRPRS (Guo et al., ICML 2019), with their quirks.

Ids of the two graphs interleave and mean nothing outside of the folder, so they are replaced by the identifiers behind them. The links of
``ref_ent_ids`` may include those of ``sup_ent_ids`` (srprs_dbp_*): the split takes training links out of the test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from engine.config import DataConfig
from engine.datasets.files import Rows, find_file, parse_ids, read_tabbed, require_file
from engine.datasets.knowledge_graph import Finding
from engine.datasets.readers.base import Detection, Part, RawDataset, RawGraph, RawLinks
from engine.errors import DataError
from engine.wording import count

NEEDED = ("ent_ids_1", "ent_ids_2", "triples_1", "triples_2", "ref_ent_ids")


class Dbp15kReader:
    name = "dbp15k"
    description = "DBP15K and SRPRS folders: ent_ids_1/2, triples_1/2, ref_ent_ids, sup_ent_ids, rel_ids_1/2"

    def detect(self, folder: Path) -> Detection:
        missing = tuple(name for name in NEEDED if find_file(folder, name) is None)
        return Detection(1 - len(missing) / len(NEEDED), missing)

    def read(self, folder: Path, config: DataConfig) -> RawDataset:
        findings: list[Finding] = []
        names = tuple(_read_names(require_file(folder, f"ent_ids_{number}"), "entity", findings) for number in "12")
        source, target = (_read_graph(folder, number, own, findings) for number, own in zip("12", names, strict=True))
        reference = _read_links(require_file(folder, "ref_ent_ids"), names, required=True)
        seeds = find_file(folder, "sup_ent_ids")
        if seeds is None:
            return RawDataset(source, target, {"all": reference}, "", tuple(findings))
        links: dict[Part, RawLinks] = {"train": _read_links(seeds, names, required=True), "test": reference}
        return RawDataset(source, target, links, "given: sup_ent_ids / ref_ent_ids", tuple(findings))


def entity_ids(folder: Path) -> tuple[dict[int, str], dict[int, str]]:
    """For each graph, the id files' numbers and the identifiers that the task calls these entities by.

    Raises:
        DataError: an id file is missing or damaged.
    """
    source, target = (_read_names(require_file(folder, f"ent_ids_{number}"), "entity", []) for number in "12")
    return source, target


def _read_names(path: Path, what: str, findings: list[Finding]) -> dict[int, str]:
    """Id -> identifier, unique: where two ids bear the same name, each gets its id appended."""
    rows = read_tabbed(path, (f"{what} id", f"{what} name"))
    ids, texts = parse_ids(rows, 0, f"{what} id"), rows.columns[1]
    names = dict(zip(ids, texts, strict=True))
    if len(names) < len(ids):
        at = _first_repeated(ids)
        raise DataError(f"id {ids[at]} stands here a second time; each id needs one line.", path=path, line=rows.lines[at])
    repeated = {text for text, count in Counter(texts).items() if count > 1}
    if not repeated:
        return names
    message = f"{path.name}: {count(len(repeated), 'name stands', 'names stand')} for several ids; the ids were appended to tell them apart."
    findings.append(Finding("repeated-names", "warning", message, len(repeated), tuple(sorted(repeated)[:3]), "Give each entity a name of its own."))
    return _told_apart(names, repeated)


def _told_apart(names: Mapping[int, str], repeated: set[str]) -> dict[int, str]:
    taken = set(names.values())
    unique = {}
    for number, text in names.items():
        candidate = f"{text}#{number}" if text in repeated else text
        while text in repeated and candidate in taken:
            candidate += "'"
        taken.add(candidate)
        unique[number] = candidate
    return unique


def _first_repeated(ids: list[int]) -> int:
    seen: set[int] = set()
    for position, number in enumerate(ids):
        if number in seen:
            return position
        seen.add(number)
    raise ValueError("no id is repeated")


def _read_graph(folder: Path, number: str, entities: Mapping[int, str], findings: list[Finding]) -> RawGraph:
    path = require_file(folder, f"triples_{number}")
    rows = read_tabbed(path, ("head id", "relation id", "tail id"))
    file = f"ent_ids_{number}"
    heads, tails = (_names_of(rows, column, what, entities, file) for column, what in ((0, "head id"), (2, "tail id")))
    relation_ids = parse_ids(rows, 1, "relation id")
    known_path = find_file(folder, f"rel_ids_{number}")
    known = {} if known_path is None else _read_names(known_path, "relation", findings)
    relations = [known.get(relation) or str(relation) for relation in relation_ids]
    if known and (nameless := set(relation_ids) - set(known)):
        message = f"triples_{number}: {count(len(nameless), 'relation is', 'relations are')} not in rel_ids_{number} and called by id."
        examples = tuple(map(str, sorted(nameless)[:3]))
        findings.append(Finding("relations-without-name", "warning", message, len(nameless), examples, f"Complete rel_ids_{number}."))
    return RawGraph(path, heads, relations, tails, entities=tuple(entities.values()), known_relations=tuple(known.values()))


def _read_links(path: Path, names: tuple[Mapping[int, str], ...], *, required: bool) -> RawLinks:
    columns = ("source id", "target id")
    rows = read_tabbed(path, columns, required=required)
    sources, targets = (_names_of(rows, column, columns[column], names[column], f"ent_ids_{column + 1}") for column in (0, 1))
    return RawLinks(path, sources, targets)


def _names_of(rows: Rows, column: int, what: str, names: Mapping[int, str], file: str) -> list[str]:
    ids = parse_ids(rows, column, what)
    try:
        return [names[number] for number in ids]
    except KeyError:
        at = next(position for position, number in enumerate(ids) if number not in names)
        raise DataError(f"{what} {ids[at]} is not in {file}; add it there, or remove this line.", path=rows.path, line=rows.lines[at]) from None
