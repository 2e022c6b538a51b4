"""Small valid files of every form, with what is unusual about it, and how each is read."""

from __future__ import annotations

import io
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox

from engine.config import DataConfig
from engine.data.readers import READERS, RawDataset, RawGraph
from engine.data.readers.exports import export_form, read_export
from engine.data.readers.property_tables import read_property_graph
from engine.data.readers.rdf import read_graph
from engine.data.readers.tables import read_attributes, read_graph_tables
from engine.data.tabular import Layout
from tests.data.test_ontologies import WINES
from tests.data.writers import (
    Triple,
    as_csv,
    as_parquet,
    as_tsv,
    gexf,
    graphml,
    json_entities,
    json_triples,
    neo4j_nodes,
    neo4j_relationships,
    ntriples,
    obo,
    small_sample,
    wide,
    write_dbp15k,
    write_openea,
)

SAMPLE = small_sample()
NAMES = tuple((head, "http://left.org/name", f'Name "of" {head[-3:]}, \u00e9\\') for head, _, _ in SAMPLE.source)
PLAIN: tuple[Triple, ...] = (("Bonn", "near", "K\u00f6ln"), ("K\u00f6ln", "near", "Bonn 2"), ("\u062f\u0645\u0634\u0642", "is, in", "Bonn"))
TURTLE = """@prefix a: <http://a.org/> . @base <http://base.org/> .
# a comment
a:x a a:Thing ; a:near a:y , [ a:near a:z ; a:says "text"@de-AT ] ; a:list ( a:x 1 2.5 true ) .
<rel> a:near a:x ; a:says \"\"\"long "one\"\"\" , 'single \\u00e9 \\U0001F600', "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
_:node a:near a:x .
"""
LONG_TEXT = '<http://a.org/x> <http://a.org/says> """two\nlines""" ; <http://a.org/near> <http://a.org/y> .\n'
TRIG = TURTLE + "a:g { a:x a:in a:y . }\nGRAPH <http://a.org/h> { a:y a:in a:z . }\n{ a:z a:in a:x . }\n"
JSON_LD = """{"@context": {"@vocab": "http://a.org/", "near": {"@type": "@id"}, "label": {"@language": "de"}},
 "@graph": [{"@id": "http://a.org/x", "@type": "Thing", "near": ["http://a.org/y", "http://a.org/z"], "label": "eins"},
  {"@id": "http://a.org/y", "near": {"@id": "http://a.org/x", "says": [1, 2.5, true, null, "text"]}, "list": {"@list": [1, {"@id": "_:b"}]}}]}
"""
NEO4J = "id:ID(Thing);name;year:int;tags:string[];:LABEL\n1;One;1999;a;City\n2;Two;;b|c;City|Town\n3;Three;-5;;\n"
NEO4J_EDGES = ":START_ID(Thing);:END_ID(Thing);:TYPE;since:int\n1;2;NEAR;3\n2;3;FAR;\n3;1;NEAR;4\n"
OBO = """format-version: 1.4
default-namespace: test
idspace: A http://a.org/A_

[Term]
id: A:1
name: one \\(1\\)
def: "a \\"text\\"" [PMID:1]
synonym: "uno" EXACT []
xref: B:7
is_a: A:2 ! two
relationship: part_of A:3

[Term]
id: A:2
name: two
disjoint_from: A:3

[Term]
id: A:3
is_obsolete: true

[Typedef]
id: part_of
name: part of
is_transitive: true
"""
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment --><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="label" attr.type="string"><default>none</default></key>
<key id="d1" for="edge" attr.name="label" attr.type="string"/><key id="d2" for="edge" attr.name="weight" attr.type="double"/>
<graph edgedefault="undirected"><node id="n0"><data key="d0">Bonn &amp; <![CDATA[<K\u00f6ln>]]></data></node><node id="n1"/><node id="n2"/>
<edge source="n0" target="n1"><data key="d1">near</data><data key="d2">1.5</data></edge><edge source="n1" target="n2"/>
<edge source="n2" target="n0"><data key="d1">far</data></edge></graph></graphml>
"""
WIDE = 'id,name,near,lies in,population\n1,Bonn,2|3,10,300000\n2,K\u00f6ln,1,10,1000000\n3,"Wien, Stadt",1|2,11,\n10,NRW,,,\n11,Wien,,,\n'
QUOTED = 'subject;predicate;object\n"Bonn";"near, far";"K""\u00f6""ln"\nx;near;"Bonn"\n'
TWO_LINES = 'entity,attribute,value\nBonn,note,"two\nlines"\nBonn,note,three\n'


def _rdf(text: str, kind: ox.RdfFormat, into: ox.RdfFormat) -> bytes:
    out = io.BytesIO()
    ox.serialize(ox.parse(text, format=kind), out, format=into)
    return out.getvalue()


def _folder(write: Callable[..., None]) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), SAMPLE)
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


def _sqlite() -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE triples (head TEXT, relation TEXT, tail TEXT)")
        connection.executemany("INSERT INTO triples VALUES (?, ?, ?)", PLAIN)
        return connection.serialize()


def _sqlite_entities() -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE facts (h TEXT, r TEXT, t TEXT)")
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?)", SAMPLE.source)
        connection.execute("CREATE VIEW triples AS SELECT h AS head, r AS relation, t AS tail FROM facts")
        return connection.serialize()


def _compressed_parquet() -> bytes:
    columns = {name: pa.array([row[at] for row in PLAIN * 3], pa.string()) for at, name in enumerate(("head", "relation", "tail"))}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="snappy", use_dictionary=True, row_group_size=4)
    return buffer.getvalue()


@dataclass(frozen=True)
class Form:
    """A form of files.

    Attributes:
        folders: valid ones: name of each file -> content.
        read: a folder as graphs.
        text: whether line ends and byte order marks mean nothing.
        rows: whether the order of the lines below the first means nothing.
        comment: a line that means nothing, where a file may end with one.
        more: others, in whose texts line ends mean something.
    """

    folders: tuple[Mapping[str, bytes], ...]
    read: Callable[[Path], list[RawGraph]]
    text: bool = True
    rows: bool = False
    comment: bytes = b""
    more: tuple[Mapping[str, bytes], ...] = ()

    @property
    def every(self) -> tuple[Mapping[str, bytes], ...]:
        return self.folders + self.more


def _dataset(name: str) -> Callable[[Path], list[RawGraph]]:
    def read(folder: Path) -> list[RawGraph]:
        raw: RawDataset = READERS[name].read(folder, DataConfig())
        return [raw.source, raw.target]

    return read


def _named(name: str, read: Callable[[Path], RawGraph]) -> Callable[[Path], list[RawGraph]]:
    return lambda folder: [read(folder / name)]


def _export(path: Path) -> RawGraph:
    form = export_form(path)
    assert form is not None
    return read_export(path, form, [])


def _attributes(path: Path) -> RawGraph:
    found = read_attributes(path)[1]
    return RawGraph(path, (), (), (), attributes=found)


def _one(
    name: str,
    read: Callable[[Path], RawGraph],
    *contents: str | bytes,
    text: bool = True,
    rows: bool = False,
    comment: bytes = b"",
    more: tuple[str, ...] = (),
) -> Form:
    folders = tuple({name: one.encode() if isinstance(one, str) else one} for one in contents)
    return Form(folders, _named(name, read), text, rows, comment, tuple({name: one.encode()} for one in more))


def _rdf_file(path: Path) -> RawGraph:
    return read_graph(path, [])


def _table(path: Path) -> RawGraph:
    return read_graph_tables([path], Layout(), [])


def _neo4j(folder: Path) -> list[RawGraph]:
    return [read_property_graph([folder / "nodes.csv", folder / "relationships.csv"], [])]


@cache
def forms() -> Mapping[str, Form]:
    """Every form by name."""
    header = ("head", "relation", "tail")
    same = ntriples(SAMPLE.source, NAMES)
    starred = same + '<< <http://a.org/x> <http://a.org/p> <http://a.org/y> >> <http://a.org/q> "sure" .\n'
    nodes = {"nodes.csv": neo4j_nodes(SAMPLE.source, NAMES).encode(), "relationships.csv": neo4j_relationships(SAMPLE.source).encode()}
    quads = _rdf(TRIG, ox.RdfFormat.TRIG, ox.RdfFormat.N_QUADS)
    return {
        "openea": Form((_folder(write_openea),), _dataset("openea"), rows=True),
        "dbp15k": Form((_folder(write_dbp15k),), _dataset("dbp15k"), rows=True),
        "csv": _one("a.csv", _table, as_csv(header, PLAIN), QUOTED, as_csv(header, SAMPLE.source)),
        "tsv": _one("a.tsv", _table, as_tsv(header, PLAIN), as_tsv(header, SAMPLE.source), rows=True),
        "attributes": _one("attributes.csv", _attributes, as_csv(("entity", "attribute", "value"), NAMES), more=(TWO_LINES,)),
        "parquet": _one("a.parquet", _table, as_parquet(header, PLAIN), _compressed_parquet(), text=False),
        "wide": _one("a.csv", _table, wide(SAMPLE.source, NAMES), WIDE),
        "neo4j": Form((nodes, {"nodes.csv": NEO4J.encode(), "relationships.csv": NEO4J_EDGES.encode()}), _neo4j),
        "ntriples": _one("a.nt", _rdf_file, same, starred, rows=True, comment=b"# nothing\n"),
        "turtle": _one("a.ttl", _rdf_file, TURTLE, same, WINES["wine.ttl"], comment=b"\n# nothing\n", more=(LONG_TEXT,)),
        "trig": _one("a.trig", _rdf_file, TRIG, comment=b"\n# nothing\n"),
        "nquads": _one("a.nq", _rdf_file, quads, comment=b"# nothing\n"),
        "jsonld": _one("a.jsonld", _rdf_file, JSON_LD),
        "rdfxml": _one(
            "a.rdf",
            _rdf_file,
            _rdf(TURTLE + LONG_TEXT, ox.RdfFormat.TURTLE, ox.RdfFormat.RDF_XML),
            WINES["wine.owl"],
            comment=b"\n<!-- nothing -->\n",
        ),
        "ofn": _one("a.ofn", _rdf_file, WINES["wine.ofn"], comment=b"\n# nothing\n"),
        "owx": _one("a.owx", _rdf_file, WINES["wine.owx"], comment=b"\n<!-- nothing -->\n"),
        "omn": _one("a.omn", _rdf_file, WINES["wine.omn"], comment=b"\n# nothing\n"),
        "obo": _one("a.obo", _rdf_file, OBO, obo(SAMPLE.source, NAMES[:0]), comment=b"\n! nothing\n"),
        "graphml": _one("a.graphml", _export, GRAPHML, graphml(SAMPLE.source, NAMES), comment=b"\n<!-- nothing -->\n"),
        "gexf": _one("a.gexf", _export, gexf(SAMPLE.source, NAMES), gexf(PLAIN), comment=b"\n<!-- nothing -->\n"),
        "jsonl": _one("a.jsonl", _export, json_triples(SAMPLE.source, NAMES), json_entities(SAMPLE.source, NAMES), json_triples(PLAIN)),
        "sqlite": _one("a.sqlite", _export, _sqlite(), _sqlite_entities(), text=False),
    }
