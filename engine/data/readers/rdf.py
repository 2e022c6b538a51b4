"""N-Triples, Turtle, RDF/XML, N-Quads, TriG and JSON-LD: two graph files and links as owl:sameAs triples or as a table."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn
from xml.parsers import expat

import pyoxigraph as ox

from engine.config import DataConfig
from engine.data.apart import EQUAL, RELATIONS, SKOS, Apart, confidence_of, local_predicate
from engine.data.beginnings import LONGEST_LINE, beginning, check_lines, check_obo, check_statements, check_xml, not_well_formed, xml_parser
from engine.data.endings import RDF_ENDINGS, OntologySyntax, RdfForm, ending_of
from engine.data.files import read_text
from engine.data.knowledge_graph import Finding
from engine.data.labels import XSD_STRING, tagged
from engine.data.readers.base import Part, RawDataset, RawGraph, RawLinks, listed_counts
from engine.data.readers.cells import Cell, is_alignment, read_cells
from engine.data.readers.naming import NamedFilesReader
from engine.data.readers.obo import read_obo
from engine.data.readers.ontology import Aligned, Ontology, literal_value
from engine.data.readers.owl_axioms import read_axioms
from engine.data.readers.owl_triples import is_ontology, ontology_of
from engine.data.readers.syntaxes import BYTES_OF_ONTOLOGIES, ontology_syntax
from engine.data.readers.tables import complete, gather_links, read_link_parts
from engine.data.rows import identifier_problem
from engine.data.tabular import table_suffix
from engine.data.texts import STRETCH, Texts
from engine.errors import DataError
from engine.util.memory import MIB, check_fits, check_room
from engine.util.text import count, one_line, shorten, size_text

# Identifiers of blank nodes that do not depend on the order of a file.
#
# A blank node with a label keeps it. One without (``[]`` in Turtle, nested elements in RDF/XML, objects without ``@id`` in JSON-LD) gets a hash
# of what is said of it and of where it hangs. Such nodes form a forest: each is the object of one triple at most. So the hash is exact: nodes with
# the same hash are interchangeable, and are numbered.

Columns = tuple[Sequence[str], Sequence[str], Sequence[str]]
Facts = list[tuple[str, str, str]]

DIGITS: Final = 16
_RANDOM: Final = re.compile(r"_:[0-9a-f]{24,32}")
"""What the parser calls a node without a label."""
_LABELS: Final = re.compile(r"""_:([^\s<>"'()\[\]{};,]+)|nodeID\s*=\s*["']([^"']+)["']""")


def anonymous_nodes(nodes: Collection[str], text: str) -> set[str]:
    """Those of a file's blank nodes (``_:name``) that have no label in the file."""
    suspects = {node for node in nodes if _RANDOM.fullmatch(node)}
    if not suspects:
        return suspects
    for match in _LABELS.finditer(text):
        label = match[1] or match[2]
        suspects -= {f"_:{label}", f"_:{label.rstrip('.')}"}  # a label may hold points, but the last one ends the statement
    return suspects


def stable_names(nodes: Collection[str], triples: Columns, attributes: Columns) -> dict[str, str]:
    """Identifiers for nodes without a label: ``_:[HASH]``, which no label can be.

    Args:
        nodes: the nodes without a label, as the parser calls them.
        triples: heads, relations, tails.
        attributes: entities, attributes, values.
    """
    forest = _Forest(set(nodes), triples, attributes)
    below: dict[str, str] = {}
    for node in reversed(forest.order):
        said = [*forest.facts[node], *((relation, "[]", below.get(child, "")) for relation, child in forest.children[node])]
        below[node] = _hash("below", *(part for fact in sorted(said) for part in fact))
    names: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for node in forest.order:
        above = [(names.get(head, head), relation) for head, relation in forest.above[node]]
        place = _hash("place", below[node], *(part for link in sorted(above) for part in link))
        names[node] = f"_:[{_hash(place, str(seen[place]))[:DIGITS]}]"
        seen[place] += 1
    return names


class _Forest:
    """What is said of nodes without a label, and how they hang together.

    Attributes:
        facts: node -> what is said of it without other such nodes.
        children: node -> relations to such nodes.
        above: node -> triples of which it is the object: head and relation.
        order: all nodes, each behind the one that it hangs on.
    """

    def __init__(self, nodes: set[str], triples: Columns, attributes: Columns) -> None:
        self.facts: dict[str, Facts] = defaultdict(list)
        self.children: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self.above: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for entity, attribute, value in zip(*attributes, strict=True):
            if entity in nodes:
                self.facts[entity].append((attribute, "value", value))
        for head, relation, tail in zip(*triples, strict=True):
            if tail in nodes:
                self.above[tail].append((head, relation))
                if head in nodes:
                    self.children[head].append((relation, tail))
            elif head in nodes:
                self.facts[head].append((relation, "entity", tail))
        self.order = self._ordered(nodes)

    def _ordered(self, nodes: set[str]) -> list[str]:
        """Roots first. Every node comes, even in a graph that is no forest."""
        roots = [node for node in sorted(nodes) if not any(head in nodes for head, _ in self.above[node])]
        order: dict[str, None] = {}
        for root in (*roots, *sorted(nodes)):
            waiting = [root]
            while waiting:
                node = waiting.pop()
                if node not in order:
                    order[node] = None
                    waiting += [child for _, child in self.children[node]]
        return list(order)


def _hash(*parts: str) -> str:
    """Hexadecimal; lengths come along, so that no two lists of texts give the same."""
    hasher = hashlib.sha256()
    for part in parts:
        content = part.encode(errors="surrogatepass")
        hasher.update(len(content).to_bytes(8, "little") + content)
    return hasher.hexdigest()


RDF_FORMATS: Final[Mapping[RdfForm, ox.RdfFormat]] = {
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "turtle": ox.RdfFormat.TURTLE,
    "rdfxml": ox.RdfFormat.RDF_XML,
    "nquads": ox.RdfFormat.N_QUADS,
    "trig": ox.RdfFormat.TRIG,
    "jsonld": ox.RdfFormat.JSON_LD,
}
FORMATS: Final = {ending: RDF_FORMATS[form] for form, endings in RDF_ENDINGS.items() for ending in endings}
RELATIVE: Final = "No scheme found in an absolute IRI"
"""What the parser says of an IRI that needs a base."""
LINE_END: Final = re.compile(r"\r\n|[\r\n]")
QUOTED_TRIPLE: Final = re.compile(r"(?:^|[ \t])<<[ \t<]", re.MULTILINE)
"""A triple that is the subject or object of another one, as RDF-star has it; or a text that looks so."""
DEFAULT_GRAPH: Final = "default"
"""What triples outside of named graphs are called where named graphs are chosen."""
GRAPHS_LISTED: Final = 20
SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TYPE, STATEMENT = f"{RDF}type", f"{RDF}Statement"
REIFICATION = frozenset({f"{RDF}subject", f"{RDF}predicate", f"{RDF}object"})
LINK_PREDICATES = frozenset({SAME_AS, f"{SKOS}exactMatch"})
"""Left out of graphs."""
MAPPING_NAMESPACES: Final = ("http://www.w3.org/2002/07/owl#", SKOS, "http://www.w3.org/2000/01/rdf-schema#")


class RdfReader(NamedFilesReader):
    name = "rdf"
    description = "N-Triples, Turtle, RDF/XML, N-Quads, TriG or JSON-LD: a file for each graph, and links as owl:sameAs triples or as a table"

    def is_graph(self, path: Path) -> bool:
        return bool(rdf_suffix(path))

    def is_links(self, path: Path) -> bool:
        return bool(rdf_suffix(path) or table_suffix(path))

    def read(self, folder: Path, config: DataConfig) -> RawDataset:
        files = complete(self.sorted_files(folder, config.links))
        findings = files.noticed()
        source, target = (read_graph(files.graph(number), findings, config.ontology) for number in "12")

        def read(path: Path, part: Part) -> dict[Part, RawLinks]:
            return {part: read_same_as(path)} if rdf_suffix(path) else read_link_parts(path, part)

        links, given = gather_links(files, read)
        return RawDataset(source, target, links, given, tuple(findings))


def rdf_suffix(path: Path) -> str:
    """'.nt' for 'a.nt' and 'a.nt.gz', and so on; '' where the file is no RDF."""
    return ending_of(path.name, FORMATS)


class _Collector:
    """Columns of one graph in the making."""

    def __init__(self, wanted: Collection[str] | None = None) -> None:
        self.wanted = wanted
        self.elsewhere = 0
        self.triples: tuple[list[str], list[str], list[str]] = ([], [], [])
        self.attributes: tuple[list[str], list[str], list[str]] = ([], [], [])
        self.blank_nodes: set[str] = set()
        self.shared: dict[str, str] = {}  # the parser makes a text of each occurrence; one is enough
        self.statement_nodes: set[str] = set()
        self.graphs: set[str] = set()
        self.datatypes: dict[int, str] = {}
        self.identities: tuple[list[str], list[str], list[str]] = ([], [], [])
        self.left_out_identities = 0
        self.nested = 0

    def add(self, statement: Any) -> None:
        subject, predicate, value = statement.subject, statement.predicate.value, statement.object
        named = not isinstance(statement.graph_name, ox.DefaultGraph)
        if named:
            self.graphs.add(statement.graph_name.value)
        if self.wanted is not None and (statement.graph_name.value if named else DEFAULT_GRAPH) not in self.wanted:
            self.elsewhere += 1
        elif isinstance(value, ox.Triple):
            self.nested += 1
            self.statement_nodes.add(self.identifier(subject))
        elif predicate in LINK_PREDICATES:
            if isinstance(subject, ox.NamedNode) and not isinstance(value, ox.BlankNode):
                self._append(self.identities, subject.value, predicate, value.value)
            self.left_out_identities += 1
        else:
            if predicate in REIFICATION or (predicate == TYPE and getattr(value, "value", "") == STATEMENT):
                self.statement_nodes.add(self.identifier(subject))
            literal = isinstance(value, ox.Literal)
            columns, text = (self.attributes, literal_text(value)) if literal else (self.triples, self.identifier(value))
            if literal and not value.language and value.datatype.value != XSD_STRING:
                self.datatypes[len(columns[0])] = value.datatype.value
            self._append(columns, self.identifier(subject), self.shared.setdefault(predicate, predicate), text)

    @staticmethod
    def _append(columns: tuple[list[str], list[str], list[str]], *cells: str) -> None:
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)

    def identifier(self, node: Any) -> str:
        """IRIs as they are, blank nodes as the parser calls them."""
        if isinstance(node, ox.BlankNode):
            name = f"_:{node.value}"
            name = self.shared.setdefault(name, name)
            self.blank_nodes.add(name)
            return name
        iri: str = node.value
        return self.shared.setdefault(iri, iri)

    def leave_out_statements(self) -> int:
        """Take nodes that represent statements, and blank nodes that hang on nothing else, out of the graph; returns how many statements went."""
        if not self.statement_nodes:
            return 0
        heads, _, tails = self.triples
        out = set(self.statement_nodes)
        above: dict[str, set[str]] = {}
        below: dict[str, set[str]] = {}
        for head, tail in zip(heads, tails, strict=True):
            if tail in self.blank_nodes:
                above.setdefault(tail, set()).add(head)
                below.setdefault(head, set()).add(tail)
        waiting = list(out)
        while waiting:
            hanging = {node for node in below.get(waiting.pop(), ()) if node not in out and above[node] <= out}
            out |= hanging
            waiting += hanging
        before = len(heads) + len(self.attributes[0])
        types = [self.datatypes.get(row, "") for row in range(len(self.attributes[0]))] if self.datatypes else []
        kept = [head not in out and tail not in out for head, tail in zip(heads, tails, strict=True)]
        described = [entity not in out for entity in self.attributes[0]]
        for columns, rows in ((self.triples, kept), (self.attributes, described)):
            for column in columns:
                column[:] = itertools.compress(column, rows)
        self.datatypes = {row: datatype for row, datatype in enumerate(itertools.compress(types, described)) if datatype}
        return before - sum(kept) - sum(described)

    def keep_datatypes(self) -> None:
        """Give values their datatypes, so that ``"1912"^^<...#gYear>`` is not taken for a number."""
        values = self.attributes[2]
        for row, datatype in self.datatypes.items():
            typed = literal_value(values[row], datatype=datatype)
            values[row] = self.shared.setdefault(typed, typed)

    def name_blank_nodes(self, text: str) -> None:
        """Give nodes without a label an identifier that does not depend on the order of the file."""
        anonymous = anonymous_nodes(self.blank_nodes, text)
        if not anonymous:
            return
        names = stable_names(anonymous, self.triples, self.attributes)
        for column in (self.triples[0], self.triples[2], self.attributes[0]):
            column[:] = [names.get(cell, cell) for cell in column]


def literal_text(literal: Any) -> str:
    """A literal's text; in quotation marks and with its language where it has one (``"Rom"@de``)."""
    return tagged(literal.value, literal.language) if literal.language else str(literal.value)


def read_graph(path: Path, findings: list[Finding], aligned: Aligned = "auto", *, named_graphs: Collection[str] | None = None) -> RawGraph:
    """A graph with its attributes, or the graph of an ontology; what was left out is added to the findings.

    Args:
        path: the file.
        findings: what was noticed before.
        aligned: which things of an ontology are entities; "plain": of RDF everything that triples are about.
        named_graphs: those whose triples are read, ``default`` for triples outside of named graphs; None: all.

    Raises:
        DataError: as :func:`parse`; an identifier that cannot be one; a named graph that is not there; an ontology without anything to align.
    """
    check_beginning(path)
    collector, text = _Collector(named_graphs), read_text(path)
    if syntax := ontology_syntax(path, text):
        return _axioms(path, text, syntax).graph(aligned, findings)
    try:
        _collect(path, text, collector)
    except _RelativeError as error:
        collector = _Collector(named_graphs)
        _collect(path, text, collector, lenient=True)
        where = f", the first in line {error.line:,}" if error.line else ""
        examples = "identifiers without a scheme, such as <ASHRAE> or #A"
        message = f"{path.name} has {examples}{where}, and gives no base for them; they are kept as written."
        findings.append(Finding("relative-identifiers", "warning", message, advice="Write whole IRIs, or a base (@base, xml:base), into the file."))
    for missing in sorted({*(named_graphs or ())} - collector.graphs - {DEFAULT_GRAPH}):
        known = ", ".join(shorten(name, 60) for name in sorted(collector.graphs)[:GRAPHS_LISTED]) or "none"
        raise DataError(f"there is no named graph '{shorten(missing)}' in this file; there are {known}.", path=path)
    if aligned != "plain" and is_ontology(collector.triples):
        found = ontology_of(path, collector.triples, collector.attributes, collector.datatypes, collector.left_out_identities)
        found.left_out["about statements"] += collector.nested
        return found.graph(aligned, findings)
    left_out = collector.leave_out_statements() + collector.nested
    collector.name_blank_nodes(text)
    collector.keep_datatypes()
    heads, relations, tails = collector.triples
    _check(path, heads, relations, tails, *collector.attributes[:2])
    findings += _noticed(path, collector, left_out)
    entities, attributes, values = map(Texts.of, collector.attributes)
    columns = [Texts.of(column) for column in collector.triples]
    return RawGraph(path, columns[0], columns[1], columns[2], attributes=(entities, attributes, values), identities=collector.identities)


def _collect(path: Path, text: str, collector: _Collector, *, lenient: bool = False) -> None:
    for number, statement in enumerate(_statements(path, text, lenient=lenient)):
        if number % STRETCH == 0:
            check_room(path)
        collector.add(statement)


def check_beginning(path: Path) -> None:
    """Refuse at once what cannot be RDF or an ontology, whatever its size.

    Raises:
        DataError: it begins as nothing of its kind does.
    """
    head = beginning(path)
    syntax = ontology_syntax(path, head)
    kind = FORMATS.get(rdf_suffix(path))
    if syntax == "obo":
        check_obo(path, head)
    elif syntax == "owx" or (syntax is None and kind == ox.RdfFormat.RDF_XML):
        check_xml(path, head, "OWL/XML" if syntax else "RDF/XML")
    elif syntax is None and kind in (ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS):
        check_statements(path, head, "N-Triples" if kind == ox.RdfFormat.N_TRIPLES else "N-Quads")


def _axioms(path: Path, text: str, syntax: OntologySyntax) -> Ontology:
    """The axioms of a text that is no RDF."""
    if not text.strip():
        raise DataError("this file is empty; expected an ontology.", path=path)
    check_fits(path, BYTES_OF_ONTOLOGIES[syntax] * len(text) / MIB)
    if syntax == "obo":
        check_lines(path, text)
        return read_obo(path, text)
    if syntax == "owx":
        text = with_xml_line_ends(text)
        check_entities(path, text)
    return read_axioms(path, text, syntax)


def _noticed(path: Path, collector: _Collector, left_out: int) -> Iterator[Finding]:
    if collector.left_out_identities:
        message = (
            f"{path.name}: {collector.left_out_identities:,} owl:sameAs or skos:exactMatch triples were left out of the graph: they say who is who."
        )
        yield Finding("identity-triples", "info", message, collector.left_out_identities, advice="Put known links into the links file.")
    if left_out:
        message = (
            f"{path.name}: {count(left_out, 'statement')} about statements (annotations, RDF 1.2 triple terms, reification) "
            f"{'was' if left_out == 1 else 'were'} left out, with the nodes that stand for statements."
        )
        yield Finding("triple-terms", "warning", message, left_out)
    if collector.graphs:
        number = len(collector.graphs)
        graphs = count(number, "named graph")
        message = f"{path.name}: the triples of {graphs} were read as triples of one graph."
        if collector.wanted is not None:
            taken = len(collector.graphs & {*collector.wanted})
            message = (
                f"{path.name}: {taken:,} of {graphs} {'is' if taken == 1 else 'are'} read; {count(collector.elsewhere, 'triple')} elsewhere left out."
            )
        yield Finding("named-graphs", "info", message, number, tuple(sorted(collector.graphs)[:GRAPHS_LISTED]))


def read_same_as(path: Path) -> RawLinks:
    """The links of an RDF file: triples that say equality, or the cells of the Alignment format. What says less than equality is kept apart; other
    statements are counted.

    Raises:
        DataError: as :func:`parse`; no link and nothing to keep apart; an identifier that cannot be one.
    """
    check_beginning(path)
    found, text = _Mappings(), read_text(path)
    with_cells = FORMATS[rdf_suffix(path)] == ox.RdfFormat.RDF_XML and is_alignment(text)
    if with_cells:
        check_entities(path, text)
        for cell in read_cells(path, text):
            found.add_cell(cell)
    else:
        for statement in _statements(path, text):
            found.add_statement(statement)
    if not found.links and not found.apart:
        others = f" ({listed_counts(found.left_out)})" if found.left_out else ""
        expected = "cells with the relation '='" if with_cells else "owl:sameAs (or skos:exactMatch, owl:equivalentClass) triples between IRIs"
        raise DataError(f"there are no {expected} in this links file{others}; add some.", path=path)
    sources, targets, confidences = (list(column) for column in zip(*found.links, strict=True)) if found.links else ([], [], [])
    _check(path, sources, targets, *([list(row[:2]) for row in found.apart]))
    return RawLinks(
        path,
        Texts.of(sources),
        Texts.of(targets),
        symmetric=True,
        left_out=found.left_out,
        apart=Apart.of(found.apart),
        confidences=confidences if with_cells else (),
    )


class _Mappings:
    """What a links file says, sorted."""

    def __init__(self) -> None:
        self.links: list[tuple[str, str, float]] = []
        self.apart: list[tuple[str, str, str, float]] = []
        self.left_out: Counter[str] = Counter()

    def add_statement(self, statement: Any) -> None:
        predicate = statement.predicate.value
        local = local_predicate(predicate)
        if not predicate.startswith(MAPPING_NAMESPACES) or local not in {*EQUAL, *RELATIONS}:
            self.left_out[f"with {shorten(predicate)}"] += 1
        elif not (isinstance(statement.subject, ox.NamedNode) and isinstance(statement.object, ox.NamedNode)):
            self.left_out["with a blank node or a literal for an end"] += 1
        else:
            self._add(statement.subject.value, statement.object.value, local, math.nan)

    def add_cell(self, cell: Cell) -> None:
        predicate = cell.predicate
        if not cell.entity1 or not cell.entity2:
            self.left_out["without two entities"] += 1
        elif predicate not in {*EQUAL, *RELATIONS}:
            self.left_out[f"with the relation {shorten(predicate, 40)}"] += 1
        else:
            self._add(cell.entity1, cell.entity2, predicate, confidence_of(cell.measure))

    def _add(self, source: str, target: str, local: str, confidence: float) -> None:
        if local in EQUAL:
            self.links.append((source, target, confidence))
        else:
            self.apart.append((source, target, RELATIONS[local], confidence))


def parse(path: Path) -> Iterator[Any]:
    """The statements of an RDF file, in order.

    Raises:
        DataError: as :func:`read_text`; a syntax error, with its line; XML that refers to other files or grows without measure; JSON-LD whose context
            lies elsewhere.
    """
    yield from _statements(path, read_text(path))


class _RelativeError(DataError):
    """An IRI without a scheme, in a file that gives no base for it."""


def _statements(path: Path, text: str, *, lenient: bool = False) -> Iterator[Any]:
    """``lenient``: take IRIs as they are written."""
    kind = FORMATS[rdf_suffix(path)]
    if kind in (ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS):
        check_lines(path, text)
    if kind == ox.RdfFormat.N_TRIPLES and "<<" in text and QUOTED_TRIPLE.search(text):
        kind = ox.RdfFormat.TURTLE  # of which N-Triples are a part, and which has triples about triples as older programs write them
    is_xml = kind == ox.RdfFormat.RDF_XML
    if is_xml:
        text = with_xml_line_ends(text)
        check_entities(path, text)
        check_end(path, text)
    try:
        yield from ox.parse(text, format=kind, lenient=lenient)
    except SyntaxError as error:
        if kind == ox.RdfFormat.JSON_LD and "LoadDocumentCallback" in str(error):
            words = "this JSON-LD refers to a context in another file, which is never read; write the context into this file."
            raise DataError(words, path=path) from None
        line = error.lineno or (error_line(text) if is_xml else None)
        if kind == ox.RdfFormat.N_QUADS and line and QUOTED_TRIPLE.search(_line(text, line)):
            words = "this line has a triple about a triple (<< ... >>), which N-Quads does not have; export the file as TriG, or remove the line."
            raise DataError(words, path=path, line=line) from None
        words = f"this is not valid RDF ({_explanation(error)}); correct this {'line' if line else 'file'}."
        raise (_RelativeError if RELATIVE in str(error) else DataError)(words, path=path, line=line) from None
    except (OSError, ValueError) as error:
        raise DataError(f"this file cannot be read as RDF ({one_line(error, 160)}).", path=path) from None
    except MemoryError:  # of the parser's own, for a single piece
        words = f"a name or text in this file is longer than {size_text(LONGEST_LINE)}; shorten it, or check that it is the right file."
        raise DataError(words, path=path) from None


def _line(text: str, number: int) -> str:
    """A line as the parser counts them, from 1: a carriage return alone ends one, too."""
    lines = LINE_END.split(text, number)
    return lines[number - 1] if number <= len(lines) else ""


def _explanation(error: SyntaxError) -> str:
    words = str(error.msg).split(": ", 1)[-1].splitlines()
    return words[0][:160] if words else "syntax error"


def _check(path: Path, *columns: list[str]) -> None:
    for identifier in set().union(*columns):
        if problem := identifier_problem(identifier):
            raise DataError(f"an identifier {problem}; shorten or correct it.", path=path)


# What an XML file's document type may declare: short names for texts, as OWL files do, and nothing that reaches outside of the file or grows.
#
# The declarations are those that an XML parser finds, whatever precedes them. The RDF parser accepts a document type in places where XML does
# not; such a file is refused.

MOST_ENTITIES: Final = 500
MOST_EXPANDED: Final = 2**28  # characters
CHUNK: Final = 2**16  # characters
_DECLARATION = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_NESTED = re.compile(r"&(?!#|lt;|gt;|amp;|quot;|apos;)")
_ROOT = re.compile(r"<([A-Za-z_][\w:.-]*)")
_LAST = re.compile(r"</([A-Za-z_][\w:.-]*)\s*>\s*\Z")
_REFERENCE = re.compile(r"&([^&;\s]{1,200});")
EXTERNAL = "this XML refers to another file (an external entity or document type), which is never read; remove that declaration."
FAR_LONGER = "the entities of this XML would make it far longer than it is; write their texts out."


def check_entities(path: Path, text: str) -> None:
    """
    Raises:
        DataError: an external entity or document type, entities inside of entities, entities that would make the text far longer, or a document type
            where none is allowed.
    """
    if "<!" not in text or not _DECLARATION.search(text):
        return
    prolog = _Prolog(path, text)
    if line := error_line(text):  # after what the parser of the prolog saw there may be another document type
        raise DataError("this is not well-formed XML; correct this line.", path=path, line=line)
    if prolog.longest:
        uses = Counter(match[1] for match in _REFERENCE.finditer(text))
        if sum(length * uses[name] for name, length in prolog.longest.items()) > MOST_EXPANDED:
            raise DataError(FAR_LONGER, path=path)


def with_xml_line_ends(text: str) -> str:
    """The text with LF as its only line end, which is what XML means by CRLF and CR; the parsers keep them in literals."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def check_end(path: Path, text: str) -> None:
    """The RDF parser takes a file that was cut off between two tags for a whole one.

    Raises:
        DataError: the text does not end with the end of its first element.
    """
    root, last = _ROOT.search(text), _LAST.search(text, max(0, len(text) - CHUNK))
    if root and last and root[1] == last[1]:
        return
    if text.strip() and (line := error_line(text)):
        raise DataError("this XML is not complete or not well-formed here; it may have been cut off on its way: get it again.", path=path, line=line)


class _FirstElementError(Exception):
    """The document type, if there is one, is behind."""


class _Prolog:
    """The text before the first element, as an XML parser reads it.

    Attributes:
        longest: entity -> the length of its longest text.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.longest: dict[str, int] = {}
        self.skipped, self.parser = xml_parser(text)
        self.parser.StartDoctypeDeclHandler = self._document_type
        self.parser.EntityDeclHandler = self._entity
        self.parser.StartElementHandler = _stop
        begin = len(text) - len(text.lstrip())
        try:
            while begin < len(text):
                self.parser.Parse(text[begin : begin + CHUNK], False)
                begin += CHUNK
        except _FirstElementError:
            return
        except expat.ExpatError as error:
            raise not_well_formed(path, error, self.skipped) from None

    def _refuse(self, words: str) -> NoReturn:
        raise DataError(words, path=self.path, line=self.skipped + self.parser.CurrentLineNumber)

    def _document_type(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        if system is not None or public is not None:
            self._refuse(EXTERNAL)

    def _entity(
        self, name: str, is_parameter: bool, value: str | None, base: str | None, system: str | None, public: str | None, notation: str | None
    ) -> None:
        if is_parameter or value is None:
            self._refuse(EXTERNAL)
        if _NESTED.search(value):
            self._refuse(f"the entity '{shorten(name, 40)}' refers to other entities, which is not accepted; write its text out.")
        self.longest[name] = max(len(value), self.longest.get(name, 0))
        if len(self.longest) > MOST_ENTITIES:
            self._refuse(FAR_LONGER)


def _stop(name: str, attributes: dict[str, str]) -> NoReturn:
    raise _FirstElementError


def error_line(text: str) -> int | None:
    """The first line that is not well-formed; None where all are."""
    skipped, parser = xml_parser(text)
    try:
        parser.Parse(text.lstrip().encode(), True)
    except expat.ExpatError as error:
        return skipped + error.lineno
    return None
