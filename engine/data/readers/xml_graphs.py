"""GraphML and GEXF, as networkx reads them: nodes are entities, edges are triples."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NoReturn
from xml.parsers import expat

from engine.data.beginnings import beginning, check_xml, not_well_formed, xml_parser
from engine.data.files import read_text
from engine.data.knowledge_graph import Finding
from engine.data.readers.base import RawGraph
from engine.data.readers.records import Notes, RowsBuilder, recorded_graph
from engine.data.texts import Texts
from engine.errors import DataError
from engine.util.text import count, shorten, size_text

XmlGraph = Literal["graphml", "gexf"]
TITLES: Final[Mapping[XmlGraph, str]] = {"graphml": "GraphML", "gexf": "GEXF"}
MOST_BYTES: Final = 2**28
"""Of text: such a file is held in memory whole, as text, as XML and as a graph."""
DEEPEST: Final = 100
CHUNK: Final = 2**20
RELATION_KEYS: Final = ("relation", "label", "type", "relationship", "predicate", "kind", "name", "edgelabel")
"""Names of the property of an edge that says which relation it is, in lower case, the likeliest first."""
NO_RELATION: Final = "edge"
LAYOUT_KEYS: Final = frozenset({"viz", "spells", "slices", "parents", "pid", "start", "end"})
"""What networkx makes of GEXF's pictures, hierarchy and times."""


def read_xml_graph(path: Path, kind: XmlGraph, findings: list[Finding]) -> RawGraph:
    """A graph with its nodes' properties as attributes.

    Raises:
        DataError: not well-formed, a document type, larger than 256 MiB, or nothing that networkx reads.
    """
    check_xml(path, beginning(path), TITLES[kind])
    text = read_text(path)
    if len(text) > MOST_BYTES:
        words = f"this {TITLES[kind]} holds more than {size_text(MOST_BYTES)} of text, and its parser needs all of it in memory at once"
        raise DataError(f"{words}; write nodes and edges as CSV or JSON lines.", path=path)
    if not text.strip():
        raise DataError(f"this file is empty; expected {TITLES[kind]}.", path=path)
    elements = _Elements(path, text)
    graph = _parsed(path, kind, text)
    notes = Notes(path)
    found = _Reading(path, graph, notes)
    lost = elements.counts["edge"] - found.edges
    notes.left_out["edge", "inside of nodes, or with the id of another one between the same nodes"] += max(lost, 0)
    notes.left_out["port", "of nodes"] += elements.counts["port"]
    known = ", ".join(f"'{shorten(key, 40)}'" for key in sorted(found.keys)) or f"nothing; all are called '{NO_RELATION}'"
    direction = "" if graph.is_directed() else "; edges have no direction and go from the smaller identifier to the greater one"
    sizes = f"{count(found.nodes, 'node')} and {count(found.edges, 'edge')}"
    notes.recognised = f"{TITLES[kind]} with {sizes}, whose relation is named by {known}{direction}"
    result = recorded_graph(path, found.triples.columns(), found.attributes.columns(), Texts.of(map(str, graph.nodes)), notes)
    findings += notes.findings()
    return result


class _Elements:
    """Looks through the XML before anything is made of it.

    Attributes:
        counts: local name -> how many elements.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        self.depth = 0
        self.skipped, self.parser = xml_parser(text)
        self.parser.StartDoctypeDeclHandler = self._document_type
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        begin = len(text) - len(text.lstrip())
        try:
            while begin < len(text):
                self.parser.Parse(text[begin : begin + CHUNK], begin + CHUNK >= len(text))
                begin += CHUNK
        except expat.ExpatError as error:
            raise not_well_formed(path, error, self.skipped) from None

    def _refuse(self, words: str) -> NoReturn:
        raise DataError(words, path=self.path, line=self.skipped + self.parser.CurrentLineNumber)

    def _document_type(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        self._refuse("this XML has a document type (DTD), which is never read; remove the DOCTYPE.")

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self._refuse(f"this XML is nested more than {DEEPEST} levels deep; a graph needs a few.")
        self.counts[name.rsplit(":", 1)[-1]] += 1

    def _end(self, name: str) -> None:
        self.depth -= 1


def _parsed(path: Path, kind: XmlGraph, text: str) -> Any:
    import networkx as nx  # takes a moment, and few files need it

    def graphml() -> Any:
        return nx.parse_graphml(text.lstrip(), node_type=str, edge_key_type=str, force_multigraph=True)

    def gexf() -> Any:
        # networkx looks for the namespaces of 1.1 and 1.2; what it reads has not changed in 1.3.
        older = re.sub(r"([\"'])http://(?:www\.)?gexf\.net/1\.3", r"\1http://www.gexf.net/1.2draft", text.lstrip(), count=2)
        return nx.read_gexf(io.BytesIO(older.encode()), node_type=str)

    read: Callable[[], Any] = graphml if kind == "graphml" else gexf
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read()
    except (nx.NetworkXException, ValueError, KeyError, TypeError, AttributeError, RuntimeError, IndexError, StopIteration, SyntaxError) as error:
        reason = shorten(str(error).split("\n", 1)[0], 100) or type(error).__name__
        raise DataError(f"this file cannot be read as {TITLES[kind]} ({reason}); correct it, or export it again.", path=path) from None


class _Reading:
    """Triples and attributes of a graph of networkx.

    Attributes:
        keys: which properties of edges named their relations.
    """

    def __init__(self, path: Path, graph: Any, notes: Notes) -> None:
        self.triples, self.attributes = RowsBuilder(path), RowsBuilder(path)
        self.keys: set[str] = set()
        self.nodes = self.edges = 0
        defaults = {one: dict(graph.graph.get(one, {})) for one in ("node_default", "edge_default")}
        for node, data in graph.nodes(data=True):
            self.nodes += 1
            for key, value in {**defaults["node_default"], **data}.items():
                for text in _texts(key, value, notes):
                    self.attributes.add(node, key, text)
        for head, tail, data in graph.edges(data=True):
            self.edges += 1
            self._edge(graph.is_directed(), head, tail, {**defaults["edge_default"], **data}, notes)

    def _edge(self, directed: bool, head: str, tail: str, data: Mapping[str, Any], notes: Notes) -> None:
        lower = {key.lower(): key for key in data}
        key = next((lower[word] for word in RELATION_KEYS if word in lower and data[lower[word]]), None)
        if key is not None:
            self.keys.add(key)
        notes.left_out["value", "of other properties of edges"] += sum(one not in (key, "id") for one in data)
        ends = (head, tail) if directed else sorted((head, tail))
        self.triples.add(ends[0], NO_RELATION if key is None else str(data[key]), ends[1])


def _texts(key: str, value: Any, notes: Notes) -> Iterator[str]:
    """The values of a node's property as texts."""
    if key in LAYOUT_KEYS and isinstance(value, list | dict):
        notes.left_out["value", "that is a position, colour, time or parent of nodes"] += 1
    elif isinstance(value, list):  # of a dynamic GEXF: value, start, end
        yield from (_text(one[0] if isinstance(one, tuple) else one) for one in value)
    elif value is not None:
        yield _text(value)


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
