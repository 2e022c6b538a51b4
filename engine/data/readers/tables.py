"""Two tables of triples and a table of links: CSV, TSV or Parquet, plain or gzipped."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from engine.config import DataConfig
from engine.data.apart import RELATIONS, WORDS, Apart, confidence_of, local_predicate
from engine.data.dialects import restore
from engine.data.knowledge_graph import Finding
from engine.data.readers.base import PART_WORDS, Part, RawDataset, RawGraph, RawLinks, listed_counts, tallies
from engine.data.readers.entity_tables import is_entity_table, read_entity_table
from engine.data.readers.naming import NamedFiles, NamedFilesReader
from engine.data.readers.property_tables import property_delimiter, read_property_graph
from engine.data.rows import Rows, check_identifiers
from engine.data.sssom import expand, read_curie_map, relation_apart, why_not
from engine.data.tabular import (
    APART_ROLES,
    ATTRIBUTE_ROLES,
    DECLARED_ROLES,
    FOUND_OUT,
    LINK_TABLE_ROLES,
    NAME_ROLES,
    TRIPLE_ROLES,
    Layout,
    open_table,
    read_columns,
    read_table,
    table_suffix,
)
from engine.data.texts import Texts
from engine.errors import DataError, NoRowsError
from engine.util.arrays import BoolArray
from engine.util.text import shorten


class TablesReader(NamedFilesReader):
    name = "tables"
    description = "CSV, TSV or Parquet: a table of triples for each graph and a table of links"

    def is_graph(self, path: Path) -> bool:
        return bool(table_suffix(path))

    def is_links(self, path: Path) -> bool:
        return bool(table_suffix(path))

    def read(self, folder: Path, config: DataConfig) -> RawDataset:
        files = complete(self.sorted_files(folder, config.links))
        findings = files.noticed()
        source, target = (_read_graph(files, number, findings) for number in "12")
        links, given = gather_links(files, read_link_parts)
        return RawDataset(source, target, links, given, tuple(findings))


def complete(files: NamedFiles) -> NamedFiles:
    """The files unchanged, if nothing is missing.

    Raises:
        DataError: something is.
    """
    if missing := files.detection.missing:
        raise DataError(f"{' and '.join(missing)} could not be found; see docs/data_formats.md for how files are named.", path=files.folder)
    return files


def gather_links(files: NamedFiles, read: Callable[[Path, Part], dict[Part, RawLinks]]) -> tuple[dict[Part, RawLinks], str]:
    """All link files by part, and the name of the split if they give one.

    Raises:
        DataError: as ``read``; a part that is in two files.
    """
    links: dict[Part, RawLinks] = {}
    if (path := files.apart()) is not None:
        links["all"] = read_apart(path)
    given = files.links()
    for part, path in given.items():
        found = links_or_none(partial(read, path, part), path, part) if may_be_empty(part, given) else read(path, part)
        found = with_apart(found, links.pop("all").apart) if "all" in links and not len(links["all"].sources) else found
        if twice := found.keys() & links.keys():
            raise DataError(f"{min(twice)} links stand here and in {links[min(twice)].path.name}; keep them in one place.", path=path)
        links |= found
    return links, f"given: {links['train'].path.name}" if "train" in links else ""


def may_be_empty(part: Part, given: Collection[Part]) -> bool:
    """Whether a file of links without rows says that there are none: any part of a split, and a file of all links that has no other beside it."""
    return part != "all" or set(given) == {"all"}


def links_or_none(read: Callable[[], dict[Part, RawLinks]], path: Path, part: Part) -> dict[Part, RawLinks]:
    """The links of a part, of a table that may be empty; one without rows has none.

    Raises:
        DataError: as ``read``, of any other table.
    """
    try:
        return read()
    except NoRowsError:
        return {part: RawLinks(path, (), ())}


def with_apart(links: Mapping[Part, RawLinks], apart: Apart) -> dict[Part, RawLinks]:
    """The links with more mappings that are kept apart."""
    first = next(iter(links))
    return {**links, first: replace(links[first], apart=Apart.joined((links[first].apart, apart)))}


def read_apart(path: Path) -> RawLinks:
    """A table of mappings that say less than equality: no links, and these kept apart.

    Raises:
        DataError: as :func:`read_table`; a relation that is none of these.
    """
    found = read_table(path, APART_ROLES)
    relations = [RELATIONS.get(local_predicate(one)) for one in found["predicate"].columns[0]]
    if (wrong := next((at for at, relation in enumerate(relations) if relation is None), None)) is not None:
        word, line = shorten(found["predicate"].columns[0][wrong], 60), int(found["predicate"].lines[wrong])
        raise DataError(f"expected {', '.join(WORDS)} as predicate, found '{word}'.", path=path, line=line)
    sources, targets = (list(found[role].columns[0]) for role in ("source", "target"))
    apart = Apart(sources, targets, [one for one in relations if one is not None], confidences_of(found, len(sources)))
    return RawLinks(path, (), (), apart=apart)


def read_link_parts(path: Path, part: Part, layout: Layout = FOUND_OUT) -> dict[Part, RawLinks]:
    """A table of links, taken apart by its column ``split`` where it has one. Of SSSOM mappings those that say that two things are the same.

    Raises:
        DataError: as :func:`read_table`; an unknown word in ``split``; mappings none of which says so.
    """
    return links_by_part(path, part, read_table(path, LINK_TABLE_ROLES, layout))


def links_by_part(path: Path, part: Part, found: Mapping[str, Rows]) -> dict[Part, RawLinks]:
    """A table that was read, by its column ``split`` where it has one; else all of it is of one part.

    Raises:
        DataError: an unknown word in ``split``; mappings none of which says that two things are the same.
    """
    files = tallies("links", found["source"])
    if "predicate" in found:
        return {part: _mapped(path, found)}
    sources, targets = found["source"].columns[0], found["target"].columns[0]
    if "exported" in found and table_suffix(path) != ".parquet":
        sources, targets = _renamed(path, found, restore)
    given = "confidence" in found
    confidences = confidences_of(found, len(sources))
    if "split" not in found:
        return {part: RawLinks(path, sources, targets, files=files, confidences=confidences if given else ())}
    return {
        known: RawLinks(path, sources.take(rows), targets.take(rows), files=files, confidences=_chosen(confidences, rows) if given else ())
        for known, rows in _rows_by_part(path, found["split"]).items()
    }


def _renamed(path: Path, found: Mapping[str, Rows], form: Callable[[str], str]) -> tuple[Texts, Texts]:
    """The ends of the links in another form.

    Raises:
        DataError: what comes of one cannot be an identifier.
    """
    sources, targets = (column.renamed(map(form, column.words)) for column in (found["source"].columns[0], found["target"].columns[0]))
    check_identifiers(Rows(path, (sources, targets), found["source"].lines), ("source", "target"))
    return sources, targets


def _rows_by_part(path: Path, split: Rows) -> dict[Part, BoolArray]:
    """(n,) for each part, which rows are of it; in the order in which they first come."""
    words = split.columns[0]
    parts = [PART_WORDS.get(word.strip().lower()) for word in words.words]
    wrong = words.first(np.array([part is None for part in parts], dtype=bool))
    if wrong is not None:
        message = f"expected train, valid, test or unsure as split, found '{shorten(words[wrong])}'."
        raise DataError(message, path=path, line=int(split.lines[wrong]))
    by_part = {part: words.having(np.array([one == part for one in parts], dtype=bool)) for part in parts if part is not None}
    return dict(sorted(by_part.items(), key=lambda item: int(item[1].argmax())))


def _mapped(path: Path, found: Mapping[str, Rows]) -> RawLinks:
    """The links among the mappings of an SSSOM table, and what it says of less than equality."""
    sources, targets, predicates = (found[role].columns[0] for role in ("source", "target", "predicate"))
    modifiers = found["modifier"].columns[0] if "modifier" in found else [""] * len(sources)
    reasons = list(map(why_not, sources, targets, predicates, modifiers))
    relations = list(map(relation_apart, sources, targets, predicates, modifiers))
    kept = np.array([reason is None for reason in reasons], dtype=bool)
    aside = np.array([relation is not None for relation in relations], dtype=bool)
    left_out = Counter(reason for reason, relation in zip(reasons, relations, strict=True) if reason is not None and relation is None)
    if not kept.any() and not aside.any():
        message = f"no mapping in this table says owl:sameAs or skos:exactMatch ({listed_counts(left_out)}); add some that do."
        raise DataError(message, path=path)
    prefixes = {} if table_suffix(path) == ".parquet" else read_curie_map(path)
    subjects, objects = _renamed(path, found, lambda word: expand(word, prefixes))
    confidences = confidences_of(found, len(sources))
    files = tallies("links", found["source"])
    for reason, rows in [*left_out.items(), *([("kept apart", int(aside.sum()))] if aside.any() else [])]:
        files = tuple(one.without(reason, rows) for one in files)
    apart = (
        Apart(list(subjects.take(aside)), list(objects.take(aside)), [one for one in relations if one is not None], _chosen(confidences, aside))
        if aside.any()
        else Apart()
    )
    return RawLinks(
        path,
        subjects.take(kept),
        objects.take(kept),
        symmetric=True,
        left_out=left_out,
        files=files,
        apart=apart,
        confidences=_chosen(confidences, kept) if "confidence" in found else (),
    )


def confidences_of(found: Mapping[str, Rows], rows: int) -> list[float]:
    """(n,) the column ``confidence``; NaN where there is none."""
    return list(map(confidence_of, found["confidence"].columns[0])) if "confidence" in found else [math.nan] * rows


def _chosen(confidences: Sequence[float], rows: BoolArray) -> list[float]:
    return list(itertools.compress(confidences, rows))


def _read_graph(files: NamedFiles, number: str, findings: list[Finding]) -> RawGraph:
    graph = read_graph_tables(files.graph_files(number), FOUND_OUT, findings)
    declared = [_declared(files.optional(f"declared {kind}", number)) for kind in ("entities", "relations")]
    found = graph.files + tallies("declared", *(rows for rows in declared if rows is not None))
    entities, known_relations = (Texts.of(()) if rows is None else rows.columns[0] for rows in declared)
    graph = replace(graph, entities=Texts.joined(graph.entities, entities), known_relations=known_relations, files=found)
    described = files.optional("attributes", number)
    if described is None:
        return graph
    rows, more = read_attributes(described)
    first, second, third = (Texts.joined(own, theirs) for own, theirs in zip(graph.attributes, more, strict=True))
    return replace(graph, attributes=(first, second, third), files=found + tallies("attributes", rows))


def read_graph_tables(paths: Sequence[Path], layout: Layout, findings: list[Finding]) -> RawGraph:
    """A graph from a table of triples, a table with a row for each entity, or Neo4j's tables of nodes and relationships.

    Raises:
        DataError: as :func:`read_table`; several files that are not Neo4j's.
    """
    path = paths[0]
    if len(paths) > 1 or (table_suffix(path) != ".parquet" and not layout.columns and property_delimiter(path) is not None):
        return read_property_graph(paths, findings)
    table = open_table(path, layout, TRIPLE_ROLES)
    if is_entity_table(table, layout):
        return read_entity_table(table, layout, findings)
    triples = read_columns(table, TRIPLE_ROLES, layout)
    heads, relations, tails = (triples[role.name].columns[0] for role in TRIPLE_ROLES)
    return RawGraph(path, heads, relations, tails, files=tallies("triples", triples["head"]))


def read_attributes(path: Path, layout: Layout = FOUND_OUT) -> tuple[Rows, tuple[Sequence[str], Sequence[str], Sequence[str]]]:
    """The entities' rows; entities, attributes and values. Of a table of two columns, which only names entities, the attribute is called "name".

    Raises:
        DataError: as :func:`read_table`.
    """
    table = open_table(path, layout, ATTRIBUTE_ROLES, NAME_ROLES)
    if len(table.names) == len(NAME_ROLES):
        found = read_columns(table, NAME_ROLES, layout)
        entities = found["entity"].columns[0]
        return found["entity"], (entities, Texts.same("name", len(entities)), found["name"].columns[0])
    found = read_columns(table, ATTRIBUTE_ROLES, layout)
    entities, attributes, values = (found[role.name].columns[0] for role in ATTRIBUTE_ROLES)
    return found["entity"], (entities, attributes, values)


def _declared(path: Path | None) -> Rows | None:
    return None if path is None else read_table(path, DECLARED_ROLES)["name"]
