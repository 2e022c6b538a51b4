"""Files of an import as graphs and links; triples that name entities are separated from relations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from engine.config import DataConfig
from engine.data.dialects import TAB
from engine.data.endings import ARCHIVES, ONTOLOGY_ENDINGS, RDF_ENDINGS, UNREAD_ARCHIVES, ExportForm, unpacked_name
from engine.data.knowledge_graph import SIDES, Finding
from engine.data.labels import NAME_ATTRIBUTES, local_name
from engine.data.links import confident, respelt, with_known_identifiers
from engine.data.readers import READERS, RawDataset, RawGraph, RawLinks
from engine.data.readers.base import PART_WORDS, Part, tallies
from engine.data.readers.exports import read_export
from engine.data.readers.naming import APART
from engine.data.readers.rdf import read_graph, read_same_as
from engine.data.readers.tables import links_by_part, links_or_none, may_be_empty, read_apart, read_attributes, read_graph_tables, with_apart
from engine.data.rows import Rows, read_tabbed_literals
from engine.data.tabular import DECLARED_ROLES, LINK_TABLE_ROLES, Layout, Role, read_table, table_suffix
from engine.data.texts import Texts
from engine.errors import DataError, DataImportError
from engine.importing.cross_references import with_cross_references
from engine.importing.detect import GRAPH_FORMS, RDF_FORMS, SUFFIXES, Sniffed, layout_of, sniff
from engine.importing.source import ROLE_WORDS, Corrections, Material, SourceFile, assign
from engine.util.arrays import BoolArray
from engine.util.text import count, shorten

# Names among the triples of a table: rows such as ``Q90,label,Paris``, whose tail is a text and no entity.

SELDOM_HEADS = 0.1
"""Share of the would-be names that may be heads of triples as well."""


def name_triple_findings(raw: RawDataset) -> Iterator[Finding]:
    """Triples that look like names, by graph."""
    for side, graph in zip(SIDES, (raw.source, raw.target), strict=True):
        rows = _name_rows(graph)
        if rows.sum() > 1:  # one alone is no pattern
            heads, relations, tails = (column.take(rows) for column in _columns(graph))
            named = ", ".join(f"'{shorten(word, 40)}'" for word in sorted(relations.words))
            number = int(rows.sum())
            message = (
                f"{count(number, 'triple')} of the {side} graph with the relation {named} look like names: "
                f"as triples they make {count(len(tails.words), 'entity', 'entities')} of texts."
            )
            examples = tuple(f"{head} | {tail}" for head, tail in zip(heads[:3], tails[:3], strict=True))
            yield Finding("names-as-triples", "warning", message, number, examples)


def with_name_triples(raw: RawDataset) -> RawDataset:
    """The data with these triples taken as names."""
    return dataclasses.replace(raw, source=_named(raw.source), target=_named(raw.target))


def _columns(graph: RawGraph) -> tuple[Texts, Texts, Texts]:
    return Texts.of(graph.heads), Texts.of(graph.relations), Texts.of(graph.tails)


def _name_rows(graph: RawGraph) -> BoolArray:
    """(n,) which triples have a relation that is called like names, and tails that are texts."""
    heads, relations, tails = _columns(graph)
    found = np.zeros(len(heads), dtype=bool)
    for at, word in enumerate(relations.words):
        if local_name(word).lower() not in NAME_ATTRIBUTES:
            continue
        rows: BoolArray = relations.codes == at
        texts = tails.take(rows).words
        if not texts.str.contains("://", literal=True).any() and int(texts.is_in(heads.words.implode()).sum()) <= SELDOM_HEADS * len(texts):
            found |= rows
    return found


def _named(graph: RawGraph) -> RawGraph:
    rows = _name_rows(graph)
    if not rows.any() or rows.all():
        return graph
    columns = _columns(graph)
    heads, relations, tails = (column.take(~rows) for column in columns)
    entities, attributes, values = (Texts.joined(Texts.of(own), more.take(rows)) for own, more in zip(graph.attributes, columns, strict=True))
    files = tuple(one.without("taken as names", int(rows.sum())) if one.what == "triples" else one for one in graph.files)
    return dataclasses.replace(graph, heads=heads, relations=relations, tails=tails, attributes=(entities, attributes, values), files=files)


# From the uploaded files to the two graphs and links that a reader would have found.

NAMED: Final = 5  # files that a message lists
Columns = tuple[Sequence[str], Sequence[str], Sequence[str]]


@dataclass(frozen=True)
class ReadMaterial:
    """Graphs and links before they are put together.

    Attributes:
        raw: graphs and links; without links where none were given.
        format: the reader's name, "files" where each file was understood by itself.
        files: those that were read.
        named_graphs: role of a graph -> the first named graphs of its file.
    """

    raw: RawDataset
    format: str
    files: tuple[SourceFile, ...]
    named_graphs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_material(material: Material, corrections: Corrections) -> ReadMaterial:
    """
    Raises:
        DataImportError: a graph is missing, or a file is nothing that could be read.
        DataError: a file does not hold what it should, under the name that its owner gave it, with the line.
    """
    whole = material.whole_folder
    with original_names(material):
        if whole is not None and material.folder is not None and not corrections.roles:
            reader = READERS.named(whole)
            raw, read = reader.read(material.folder, DataConfig()), set(reader.files(material.folder))
            found = ReadMaterial(raw, whole, tuple(file for file in material.files if file.path in read))
        else:
            found = _FileByFile(material, corrections).read()
    raw = _swapped(found.raw) if corrections.swap_links else found.raw
    raw = with_name_triples(raw) if corrections.names_from_triples else raw
    if corrections.links_from is not None:
        raw = with_cross_references(raw, corrections.links_from)
    raw = with_known_identifiers(raw)
    if (least := corrections.least_confidence) is not None:
        raw = dataclasses.replace(raw, links={part: confident(links, least) for part, links in raw.links.items()})
    return dataclasses.replace(found, raw=respelt(raw) if corrections.repair_links else raw)


def _swapped(raw: RawDataset) -> RawDataset:
    links = {part: dataclasses.replace(one, sources=one.targets, targets=one.sources, apart=one.apart.swapped) for part, one in raw.links.items()}
    return dataclasses.replace(raw, links=links)


@contextmanager
def original_names(material: Material) -> Iterator[None]:
    """Says in errors what a file's owner calls it, and not where it lies on the server."""
    try:
        yield
    except DataError as error:
        known = {file.path: file.name for file in material.files}
        if error.path is None:
            raise
        shown = known.get(error.path, error.path.name)
        raise DataError(error.complaint, path=shorten(shown), line=error.line) from None


class _FileByFile:
    """Reads files of any form, each in its role."""

    def __init__(self, material: Material, corrections: Corrections) -> None:
        self.corrections = corrections
        self.roles = assign(material, corrections.roles)
        self.names = [file.name for file in material.files]
        self.archives = [file.name for file in material.files if file.name.lower().endswith((*ARCHIVES, *UNREAD_ARCHIVES))]
        self.findings: list[Finding] = []
        self.named_graphs: dict[str, tuple[str, ...]] = {}

    def read(self) -> ReadMaterial:
        for role in ("graph 1", "graph 2"):
            if role not in self.roles:
                raise self._missing(ROLE_WORDS[role])
        source, target = (self._graph(number) for number in "12")
        links: dict[Part, RawLinks] = {}
        for role in sorted(role for role in self.roles if role.startswith("links") and role != APART):
            links |= self._links(role)
        if APART in self.roles:
            aside = read_apart(self.roles[APART].path)
            links = with_apart(links, aside.apart) if links else {"all": aside}
        given = "given with the files" if "train" in links else ""
        raw = RawDataset(source, target, links, given, tuple(self.findings))
        return ReadMaterial(raw, "files", tuple(self.roles.values()), self.named_graphs)

    def _missing(self, role: str) -> DataImportError:
        if self.archives:
            inner = shorten(self.archives[0])
            return DataImportError(f"none of the files is recognised as the {role}, and {inner} is an archive among them; unpack it first.")
        names = [shorten(name, 40) for name in sorted(self.names)]
        found = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")
        words = f"none of the files is recognised as the {role} (found: {found}); rename the graphs, for example to source.csv and target.csv,"
        return DataImportError(f"{words} give two graphs alone and the links with --links, or choose under 'Roles of the files' on the page Import.")

    def _graph(self, number: str) -> RawGraph:
        role = f"graph {number}"
        if (reader := READERS.for_file(self.roles[role].name)) is not None:
            return self._described(reader.read_graph(self.roles[role].path), f"attributes {number}")
        file, kind = self._sniffed(role)
        if kind.export:
            graph = self._export(role, file, kind.export)
        elif kind.form in GRAPH_FORMS:
            known = len(self.findings)
            graph = read_graph(self._as(file, kind), self.findings, self.corrections.ontology, named_graphs=self.corrections.named_graphs.get(role))
            for noticed in self.findings[known:]:
                if noticed.code == "named-graphs":
                    self.named_graphs[role] = noticed.examples
        else:
            more = [self.roles[other].path for other in sorted(self.roles) if other.startswith(f"{role} file ")]
            graph = read_graph_tables([self._as(file, kind), *more], self._layout(role, kind), self.findings)
        declared = [self._declared(f"declared {what} {number}") for what in ("entities", "relations")]
        entities, names = (Texts.of(()) if rows is None else rows.columns[0] for rows in declared)
        entities = Texts.joined(graph.entities, entities)  # some forms list them in the file
        files = graph.files + tallies("declared", *(rows for rows in declared if rows is not None))
        graph = dataclasses.replace(graph, entities=entities, known_relations=names, files=files)
        return self._described(graph, f"attributes {number}")

    def _export(self, role: str, file: SourceFile, form: ExportForm) -> RawGraph:
        return read_export(file.path, form, self.findings, self.corrections.queries.get(role, ""))

    def _described(self, graph: RawGraph, role: str) -> RawGraph:
        """The graph with the attributes of another file; one in RDF may hold triples as well."""
        if role not in self.roles:
            return graph
        file, kind = self._sniffed(role)
        if kind.export or kind.form in GRAPH_FORMS:
            exported = kind.export
            more = self._export(role, file, exported) if exported else read_graph(self._as(file, kind), self.findings, self.corrections.ontology)
            graph = dataclasses.replace(
                graph,
                heads=Texts.joined(graph.heads, more.heads),
                relations=Texts.joined(graph.relations, more.relations),
                tails=Texts.joined(graph.tails, more.tails),
            )
            files, found = more.files, more.attributes
        else:
            rows, found = self._attributes(role, file, kind)
            files = tallies("attributes", rows)
        entities, attributes, values = (Texts.joined(own, theirs) for own, theirs in zip(graph.attributes, found, strict=True))
        return dataclasses.replace(graph, attributes=(entities, attributes, values), files=graph.files + files)

    def _attributes(self, role: str, file: SourceFile, kind: Sniffed) -> tuple[Rows, Columns]:
        if kind.delimiter == TAB and not table_suffix(file.path) and role not in self.corrections.tables:
            rows = read_tabbed_literals(file.path, ("entity", "attribute", "value"))  # OpenEA's, whose values may hold tabs
            entities, attributes, values = rows.columns
            return rows, (entities, attributes, values)
        return read_attributes(self._as(file, kind), self._layout(role, kind))

    def _links(self, role: str) -> dict[Part, RawLinks]:
        part = part_of(role)
        file, kind = self._sniffed(role)
        if kind.form in RDF_FORMS:
            return {part: read_same_as(self._as(file, kind))}

        def read() -> dict[Part, RawLinks]:
            return links_by_part(file.path, part, self._read(role, file, kind, LINK_TABLE_ROLES))

        given = [part_of(other) for other in self.roles if other.startswith("links") and other != APART]
        return links_or_none(read, file.path, part) if may_be_empty(part, given) else read()

    def _declared(self, role: str) -> Rows | None:
        if role not in self.roles:
            return None
        file, kind = self._sniffed(role)
        return self._read(role, file, kind, DECLARED_ROLES)["name"]

    def _sniffed(self, role: str) -> tuple[SourceFile, Sniffed]:
        file = self.roles[role]
        return file, sniff(file.path, file.name, role)

    def _layout(self, role: str, kind: Sniffed) -> Layout:
        return layout_of(kind, self.corrections.tables.get(role, Layout()))

    def _read(self, role: str, file: SourceFile, kind: Sniffed, columns: Sequence[Role]) -> dict[str, Rows]:
        return read_table(self._as(file, kind), columns, self._layout(role, kind))

    def _as(self, file: SourceFile, kind: Sniffed) -> Path:
        """The file's path, with an ending that says what it holds: the readers go by it."""
        wanted = SUFFIXES.get(kind.form, "")
        name = unpacked_name(file.path.name)
        if not wanted or name.endswith(_KNOWN_ENDINGS[kind.form]):
            return file.path
        raise DataImportError(f"{shorten(file.name)} holds {kind.words}, but its name does not say so; call it '{shorten(Path(name).stem)}{wanted}'.")


def part_of(role: str) -> Part:
    """The part of a split that a file of links is, by its role."""
    return PART_WORDS.get(role.removeprefix("links").strip(), "all")


_KNOWN_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "parquet": (".parquet",),
    **dict(RDF_ENDINGS.items()),
    **{syntax: (*endings, *RDF_ENDINGS["rdfxml"]) for syntax, endings in ONTOLOGY_ENDINGS.items()},  # files called .owl may be of any syntax
}
