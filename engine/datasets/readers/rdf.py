"""N-Triples, Turtle and RDF/XML: two graph files and links as owl:sameAs triples or as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from engine.config import DataConfig
from engine.datasets.files import read_text, shorten
from engine.datasets.knowledge_graph import Finding
from engine.datasets.readers.base import Detection, Part, RawDataset, RawGraph, RawLinks, listed
from engine.datasets.readers.naming import NamedFiles, sort_files
from engine.datasets.readers.tables import complete, gather_links, read_links
from engine.datasets.rows import identifier_problem
from engine.datasets.tabular import table_suffix
from engine.datasets.texts import Texts
from engine.datasets.xml_entities import check_entities, error_line
from engine.errors import DataError

FORMATS = {
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".ntriples": ox.RdfFormat.N_TRIPLES,
    ".ttl": ox.RdfFormat.TURTLE,
    ".turtle": ox.RdfFormat.TURTLE,
    ".rdf": ox.RdfFormat.RDF_XML,
    ".owl": ox.RdfFormat.RDF_XML,
    ".xml": ox.RdfFormat.RDF_XML,
}
SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
LINK_PREDICATES = frozenset({SAME_AS, "http://www.w3.org/2004/02/skos/core#exactMatch"})


class RdfReader:
    name = "rdf"
    description = "N-Triples, Turtle or RDF/XML: a file for each graph, and links as owl:sameAs triples or as a table"

    def detect(self, folder: Path) -> Detection:
        return _files(folder).detection

    def files(self, folder: Path) -> Sequence[Path]:
        return _files(folder).paths

    def read(self, folder: Path, config: DataConfig) -> RawDataset:
        files = complete(_files(folder))
        findings: list[Finding] = []
        source, target = (read_graph(files.graph(number), findings) for number in "12")

        def read(path: Path, part: Part) -> dict[Part, RawLinks]:
            return {part: read_same_as(path)} if rdf_suffix(path) else read_links(path, part)

        links, given = gather_links(files, read)
        return RawDataset(source, target, links, given, tuple(findings))


def rdf_suffix(path: Path) -> str:
    """'.nt' for 'a.nt' and 'a.nt.gz', and so on; '' where the file is no RDF."""
    name = path.name.lower().removesuffix(".gz")
    return next((suffix for suffix in FORMATS if name.endswith(suffix)), "")


def _files(folder: Path) -> NamedFiles:
    return sort_files(folder, lambda path: bool(rdf_suffix(path)), lambda path: bool(rdf_suffix(path) or table_suffix(path)))


@dataclass
class _Collector:
    """Columns of one graph in the making."""

    triples: tuple[list[str], list[str], list[str]] = field(default_factory=lambda: ([], [], []))
    attributes: tuple[list[str], list[str], list[str]] = field(default_factory=lambda: ([], [], []))
    blank_nodes: dict[str, str] = field(default_factory=dict)
    identities: int = 0
    nested: int = 0

    def add(self, subject: Any, predicate: Any, value: Any) -> None:
        if isinstance(value, ox.Triple) or isinstance(subject, ox.Triple):
            self.nested += 1
        elif predicate.value in LINK_PREDICATES:
            self.identities += 1
        else:
            columns, text = (self.attributes, value.value) if isinstance(value, ox.Literal) else (self.triples, self.identifier(value))
            for column, cell in zip(columns, (self.identifier(subject), predicate.value, text), strict=True):
                column.append(cell)

    def identifier(self, node: Any) -> str:
        """IRIs as they are; blank nodes numbered as they come, since the parser draws names for anonymous ones at random."""
        if isinstance(node, ox.BlankNode):
            return self.blank_nodes.setdefault(node.value, f"_:b{len(self.blank_nodes)}")
        return str(node.value)


def read_graph(path: Path, findings: list[Finding]) -> RawGraph:
    """A graph with its attributes; what was left out is added to the findings.

    Raises:
        DataError: as :func:`parse`; an identifier that cannot be one.
    """
    collector = _Collector()
    for statement in parse(path):
        collector.add(statement.subject, statement.predicate, statement.object)
    heads, relations, tails = collector.triples
    _check(path, heads, relations, tails)
    if collector.identities:
        message = f"{path.name}: {collector.identities:,} owl:sameAs or skos:exactMatch triples were left out of the graph: they say who is who."
        findings.append(Finding("identity-triples", "info", message, collector.identities, advice="Put known links into the links file."))
    if collector.nested:
        message = f"{path.name}: {collector.nested:,} statements about statements (RDF 1.2 triple terms) were left out."
        findings.append(Finding("triple-terms", "warning", message, collector.nested))
    entities, attributes, values = map(Texts.of, collector.attributes)
    columns = [Texts.of(column) for column in collector.triples]
    return RawGraph(path, columns[0], columns[1], columns[2], attributes=(entities, attributes, values))


def read_same_as(path: Path) -> RawLinks:
    """The link triples, and how many other statements there are.

    Raises:
        DataError: as :func:`parse`; no such triple; an identifier that cannot be one.
    """
    sources: list[str] = []
    targets: list[str] = []
    left_out: Counter[str] = Counter()
    for statement in parse(path):
        reason = _why_no_link(statement)
        if reason is None:
            sources.append(statement.subject.value)
            targets.append(statement.object.value)
        else:
            left_out[reason] += 1
    if not sources:
        others = f" ({listed(left_out)})" if left_out else ""
        raise DataError(f"there are no owl:sameAs (or skos:exactMatch) triples between IRIs in this links file{others}; add some.", path=path)
    _check(path, sources, targets)
    return RawLinks(path, Texts.of(sources), Texts.of(targets), symmetric=True, left_out=left_out)


def _why_no_link(statement: Any) -> str | None:
    if statement.predicate.value not in LINK_PREDICATES:
        return f"with {shorten(statement.predicate.value)}"
    named = isinstance(statement.subject, ox.NamedNode) and isinstance(statement.object, ox.NamedNode)
    return None if named else "with a blank node or a literal for an end"


def parse(path: Path) -> Iterator[Any]:
    """The statements of an RDF file, in order.

    Raises:
        DataError: as :func:`read_text`; a syntax error, with its line; XML that refers to other files or grows without measure.
    """
    text = read_text(path)
    kind = FORMATS[rdf_suffix(path)]
    is_xml = kind == ox.RdfFormat.RDF_XML
    if is_xml:
        check_entities(path, text)
    try:
        yield from ox.parse(text, format=kind, without_named_graphs=True)
    except SyntaxError as error:
        line = error.lineno or (error_line(text) if is_xml else None)
        raise DataError(f"this is not valid RDF ({_explanation(error)}); correct this {'line' if line else 'file'}.", path=path, line=line) from None
    except (OSError, ValueError) as error:
        raise DataError(f"this file cannot be read as RDF ({error}).", path=path) from None


def _explanation(error: SyntaxError) -> str:
    words = str(error.msg).split(": ", 1)[-1].splitlines()
    return words[0][:160] if words else "syntax error"


def _check(path: Path, *columns: list[str]) -> None:
    for identifier in set().union(*columns):
        if problem := identifier_problem(identifier):
            raise DataError(f"an identifier {problem}; shorten or correct it.", path=path)
