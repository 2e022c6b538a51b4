"""The same small data set in every format, so that tests can ask for the same answer from all readers."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape as xml_escape

import pyarrow as pa
import pyarrow.parquet as pq

Triple = tuple[str, str, str]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Sample:
    """Two graphs and links by identifier; ``train`` empty means that the data gives no split."""

    source: tuple[Triple, ...]
    target: tuple[Triple, ...]
    links: tuple[Pair, ...]
    train: tuple[Pair, ...] = ()
    source_attributes: tuple[Triple, ...] = ()
    target_attributes: tuple[Triple, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)

    def graphs(self) -> tuple[tuple[str, tuple[Triple, ...], tuple[Triple, ...]], ...]:
        return (("1", self.source, self.source_attributes), ("2", self.target, self.target_attributes))


def small_sample() -> Sample:
    """Six entities a side in a ring, all linked, two of them seeds."""
    names = ["Rome", "Paris", "Berlin", "Oslo", "Bern", "Wien"]
    left, right = [f"http://left.org/{name}" for name in names], [f"http://right.org/{name}" for name in names]

    def ring(ends: Sequence[str], relation: str) -> tuple[Triple, ...]:
        return tuple((ends[at], relation, ends[(at + 1) % len(ends)]) for at in range(len(ends)))

    links = tuple(zip(left, right, strict=True))
    return Sample(ring(left, "http://left.org/near"), ring(right, "http://right.org/nah"), links, links[:2])


def put(path: Path, text: str | bytes, *, gz: bool = False) -> Path:
    """Write a file, gzipped under ``name.gz`` if wanted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode() if isinstance(text, str) else text
    if gz:
        path = path.with_name(f"{path.name}.gz")
        data = gzip.compress(data)
    path.write_bytes(data)
    return path


def tabbed(rows: Sequence[Sequence[object]]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def write_openea(folder: Path, sample: Sample, *, gz: bool = False) -> None:
    for number, triples, attributes in sample.graphs():
        put(folder / f"rel_triples_{number}", tabbed(triples), gz=gz)
        if attributes:
            put(folder / f"attr_triples_{number}", tabbed(attributes), gz=gz)
    put(folder / "ent_links", tabbed(sample.links), gz=gz)
    if sample.train:
        rest = [link for link in sample.links if link not in sample.train]
        put(folder / "721_5fold" / "1" / "train_links", tabbed(sample.train), gz=gz)
        put(folder / "721_5fold" / "1" / "test_links", tabbed(rest), gz=gz)


def write_dbp15k(folder: Path, sample: Sample, *, gz: bool = False) -> None:
    """Entity ids of the two graphs interleave; relation ids of the second graph follow the first's."""
    ids: list[dict[str, int]] = []
    first_relation = 0
    for side, (number, triples, _) in enumerate(sample.graphs()):
        linked = [link[side] for link in sample.links]
        entities = list(dict.fromkeys([*linked, *(end for head, _, tail in triples for end in (head, tail))]))
        own = {entity: 2 * at + side for at, entity in enumerate(entities)}
        relations = {name: first_relation + at for at, name in enumerate(dict.fromkeys(relation for _, relation, _ in triples))}
        first_relation += len(relations)
        ids.append(own)
        put(folder / f"ent_ids_{number}", tabbed([(at, entity) for entity, at in own.items()]), gz=gz)
        put(folder / f"rel_ids_{number}", tabbed([(at, name) for name, at in relations.items()]), gz=gz)
        put(folder / f"triples_{number}", tabbed([(own[head], relations[relation], own[tail]) for head, relation, tail in triples]), gz=gz)
    put(folder / "ref_ent_ids", tabbed([(ids[0][left], ids[1][right]) for left, right in sample.links]), gz=gz)
    if sample.train:
        put(folder / "sup_ent_ids", tabbed([(ids[0][left], ids[1][right]) for left, right in sample.train]), gz=gz)


def as_csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([header, *rows])
    return buffer.getvalue()


def as_tsv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return tabbed([header, *rows])


def as_parquet(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    columns = {name: pa.array([row[at] for row in rows], type=pa.string()) for at, name in enumerate(header)}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def _write_tables(folder: Path, sample: Sample, ending: str, form: Callable[..., str | bytes], *, gz: bool) -> None:
    for number, triples, attributes in sample.graphs():
        put(folder / f"triples_{number}.{ending}", form(("head", "relation", "tail"), triples), gz=gz)
        if attributes:
            put(folder / f"attributes_{number}.{ending}", form(("entity", "attribute", "value"), attributes), gz=gz)
    if sample.train:
        rows = [(*link, "train" if link in sample.train else "test") for link in sample.links]
        put(folder / f"links.{ending}", form(("source", "target", "split"), rows), gz=gz)
    else:
        put(folder / f"links.{ending}", form(("source", "target"), sample.links), gz=gz)


def write_csv(folder: Path, sample: Sample, *, gz: bool = False) -> None:
    _write_tables(folder, sample, "csv", as_csv, gz=gz)


def write_tsv(folder: Path, sample: Sample, *, gz: bool = False) -> None:
    _write_tables(folder, sample, "tsv", as_tsv, gz=gz)


def write_parquet(folder: Path, sample: Sample, *, gz: bool = False) -> None:
    _write_tables(folder, sample, "parquet", as_parquet, gz=gz)


def ntriples(triples: Sequence[Triple], attributes: Sequence[Triple] = ()) -> str:
    facts = [f"<{head}> <{relation}> <{tail}> .\n" for head, relation, tail in triples]
    literals = [f"<{entity}> <{name}> {quoted(value)} .\n" for entity, name, value in attributes]
    return "".join(facts + literals)


def quoted(value: str) -> str:
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        value = value.replace(character, escape)
    return f'"{value}"'


def same_as(links: Sequence[Pair]) -> str:
    return ntriples([(left, "http://www.w3.org/2002/07/owl#sameAs", right) for left, right in links])


def write_rdf(folder: Path, sample: Sample, *, gz: bool = False) -> None:
    """One graph as N-Triples, the other as Turtle (of which N-Triples are a part), links as owl:sameAs."""
    put(folder / "source.nt", ntriples(sample.source, sample.source_attributes), gz=gz)
    put(folder / "target.ttl", ntriples(sample.target, sample.target_attributes), gz=gz)
    if sample.train:
        put(folder / "train_links.nt", same_as(sample.train), gz=gz)
        put(folder / "test_links.nt", same_as([link for link in sample.links if link not in sample.train]), gz=gz)
    else:
        put(folder / "links.nt", same_as(sample.links), gz=gz)


def functional(triples: Sequence[Triple], attributes: Sequence[Triple] = ()) -> str:
    """An ontology whose classes are in existential restrictions, in functional-style syntax."""
    facts = [f"SubClassOf(<{head}> ObjectSomeValuesFrom(<{relation}> <{tail}>))\n" for head, relation, tail in triples]
    literals = [f"AnnotationAssertion(<{name}> <{entity}> {_backslashed(value)})\n" for entity, name, value in attributes]
    return f"Ontology(<http://onto.org/>\n{''.join(facts + literals)})\n"


def _backslashed(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def obo(triples: Sequence[Triple], attributes: Sequence[Triple] = ()) -> str:
    """The same as an OBO flat file."""
    lines: dict[str, list[str]] = {end: [] for head, _, tail in triples for end in (head, tail)}
    for head, relation, tail in triples:
        lines[head].append(f"relationship: {relation} {tail}\n")
    for entity, name, value in attributes:
        lines[entity].append(f"property_value: {name} {quoted(value)} xsd:string\n")
    return "format-version: 1.4\n" + "".join(f"\n[Term]\nid: {name}\n{''.join(clauses)}" for name, clauses in lines.items())


def write_ontologies(folder: Path, sample: Sample, *, gz: bool = False) -> None:
    """One graph in functional-style syntax, the other as OBO, links as owl:sameAs."""
    put(folder / "source.ofn", functional(sample.source, sample.source_attributes), gz=gz)
    put(folder / "target.obo", obo(sample.target, sample.target_attributes), gz=gz)
    if sample.train:
        put(folder / "train_links.nt", same_as(sample.train), gz=gz)
        put(folder / "test_links.nt", same_as([link for link in sample.links if link not in sample.train]), gz=gz)
    else:
        put(folder / "links.nt", same_as(sample.links), gz=gz)


def _marked(text: str) -> str:
    return xml_escape(text, {'"': "&quot;"})


def graphml(triples: Sequence[Triple], attributes: Sequence[Triple] = ()) -> str:
    names = dict.fromkeys(name for _, name, _ in attributes)
    keys = {name: f"d{number}" for number, name in enumerate(names)}
    said: dict[str, list[str]] = {end: [] for head, _, tail in triples for end in (head, tail)}
    for entity, name, value in attributes:
        said[entity].append(f'<data key="{keys[name]}">{_marked(value)}</data>')
    lines = [f'<key id="{key}" for="node" attr.name="{_marked(name)}" attr.type="string"/>' for name, key in keys.items()]
    lines += ['<key id="r" for="edge" attr.name="label" attr.type="string"/>', '<graph edgedefault="directed">']
    lines += [f'<node id="{_marked(entity)}">{"".join(data)}</node>' for entity, data in said.items()]
    lines += [
        f'<edge id="e{number}" source="{_marked(head)}" target="{_marked(tail)}"><data key="r">{_marked(relation)}</data></edge>'
        for number, (head, relation, tail) in enumerate(triples)
    ]
    body = "\n".join(lines)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n{body}\n</graph></graphml>\n'


def gexf(triples: Sequence[Triple], attributes: Sequence[Triple] = ()) -> str:
    names = dict.fromkeys(name for _, name, _ in attributes)
    keys = {name: str(number) for number, name in enumerate(names)}
    said: dict[str, list[str]] = {end: [] for head, _, tail in triples for end in (head, tail)}
    for entity, name, value in attributes:
        said[entity].append(f'<attvalue for="{keys[name]}" value="{_marked(value)}"/>')
    declared = "".join(f'<attribute id="{key}" title="{_marked(name)}" type="string"/>' for name, key in keys.items())
    nodes = "".join(f'<node id="{_marked(entity)}"><attvalues>{"".join(data)}</attvalues></node>\n' for entity, data in said.items())
    edges = "".join(
        f'<edge id="{number}" source="{_marked(head)}" target="{_marked(tail)}" label="{_marked(relation)}"/>\n'
        for number, (head, relation, tail) in enumerate(triples)
    )
    return (
        '<gexf xmlns="http://gexf.net/1.3" version="1.3"><graph defaultedgetype="directed">'
        f'<attributes class="node">{declared}</attributes><nodes>\n{nodes}</nodes><edges>\n{edges}</edges></graph></gexf>\n'
    )


def json_triples(triples: Sequence[Triple], attributes: Sequence[Triple] = ()) -> str:
    rows: list[object] = [list(triple) if number % 2 else dict(zip("hrt", triple, strict=True)) for number, triple in enumerate(triples)]
    rows += [dict(zip(("entity", "attribute", "value"), row, strict=True)) for row in attributes]
    return "".join(json.dumps(row, ensure_ascii=len(str(row)) % 2 == 0) + "\n" for row in rows)


def json_entities(triples: Sequence[Triple], attributes: Sequence[Triple] = ()) -> str:
    """An object for each entity; keys of relations and attributes may be the same."""
    said: dict[str, dict[str, list[object]]] = {end: {} for head, _, tail in triples for end in (head, tail)}
    for head, relation, tail in triples:
        said[head].setdefault(relation, []).append({"id": tail})
    for entity, name, value in attributes:
        said[entity].setdefault(name, []).append(value)
    return "".join(json.dumps({"id": entity, **facts}) + "\n" for entity, facts in said.items())


def _write_exports(first: Callable[..., str], second: Callable[..., str], endings: tuple[str, str]) -> Callable[..., None]:
    def write(folder: Path, sample: Sample, *, gz: bool = False) -> None:
        put(folder / f"source.{endings[0]}", first(sample.source, sample.source_attributes), gz=gz)
        put(folder / f"target.{endings[1]}", second(sample.target, sample.target_attributes), gz=gz)
        rows = [(*link, "train" if link in sample.train else "test") for link in sample.links]
        header = ("source", "target", "split")
        put(folder / "links.csv", as_csv(header, rows) if sample.train else as_csv(header[:2], sample.links), gz=gz)

    return write


def wide(triples: Sequence[Triple], attributes: Sequence[Triple] = ()) -> str:
    """A column for each relation and each attribute; entities with several values have several rows."""
    ends = dict.fromkeys(end for head, _, tail in triples for end in (head, tail))
    columns = [(0, name) for name in dict.fromkeys(name for _, name, _ in triples)] + [
        (1, name) for name in dict.fromkeys(row[1] for row in attributes)
    ]
    said: dict[tuple[str, tuple[int, str]], list[str]] = {}
    for kind, rows in enumerate((triples, attributes)):
        for entity, name, value in rows:
            said.setdefault((entity, (kind, name)), []).append(value)
    table = []
    for entity in ends:
        many = max(len(said.get((entity, column), ())) for column in columns)
        for number in range(max(many, 1)):
            cells = (said.get((entity, column), ())[number : number + 1] for column in columns)
            table.append([entity, *(next(iter(cell), "") for cell in cells), ""])
    return as_csv(["id", *(name for _, name in columns), "note"], table)


def write_wide(folder: Path, sample: Sample, *, gz: bool = False) -> None:
    for number, triples, attributes in sample.graphs():
        put(folder / f"graph_{number}.csv", wide(triples, [*attributes]), gz=gz)
    rows = [(*link, "train" if link in sample.train else "test") for link in sample.links]
    put(folder / "links.csv", as_csv(("source", "target", "split"), rows) if sample.train else as_csv(("source", "target"), sample.links), gz=gz)


def neo4j_nodes(triples: Sequence[Triple], attributes: Sequence[Triple] = ()) -> str:
    """A column for each attribute, several where a node has several values."""
    said: dict[str, dict[tuple[str, int], str]] = {end: {} for head, _, tail in triples for end in (head, tail)}
    for entity, name, value in attributes:
        said[entity][name, sum(name == other for other, _ in said[entity])] = value
    columns = list(dict.fromkeys(column for facts in said.values() for column in facts))
    rows = [[entity, *(facts.get(column, "") for column in columns), "x"] for entity, facts in said.items()]
    return as_csv([":ID(Thing)", *(f"{name}:string" for name, _ in columns), "passed:IGNORE"], rows)


def neo4j_relationships(triples: Sequence[Triple]) -> str:
    return as_csv([":START_ID(Thing)", ":END_ID(Thing)", ":TYPE"], [(head, tail, relation) for head, relation, tail in triples])


def write_neo4j(folder: Path, sample: Sample, *, gz: bool = False) -> None:
    for number, triples, attributes in sample.graphs():
        put(folder / f"nodes_{number}.csv", neo4j_nodes(triples, attributes), gz=gz)
        put(folder / f"relationships_{number}.csv", neo4j_relationships(triples), gz=gz)
    rows = [(*link, "train" if link in sample.train else "test") for link in sample.links]
    put(folder / "links.csv", as_csv(("source", "target", "split"), rows) if sample.train else as_csv(("source", "target"), sample.links), gz=gz)


def sqlite_file(triples: Sequence[Triple], attributes: Sequence[Triple] = ()) -> bytes:
    """A database whose view ``triples`` is the graph."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE facts (h TEXT, r TEXT, t TEXT)")
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?)", triples)
        connection.execute("CREATE VIEW triples AS SELECT h AS head, r AS relation, t AS tail FROM facts")
        return connection.serialize()


def write_sqlite(folder: Path, sample: Sample, *, gz: bool = False) -> None:
    """Databases are never packed."""
    put(folder / "source.sqlite", sqlite_file(sample.source))
    put(folder / "target.db", sqlite_file(sample.target))
    rows = [(*link, "train" if link in sample.train else "test") for link in sample.links]
    put(folder / "links.csv", as_csv(("source", "target", "split"), rows) if sample.train else as_csv(("source", "target"), sample.links), gz=gz)


def write_duckdb(folder: Path, sample: Sample) -> None:
    """Databases whose table ``triples`` is the graph, and a table of links; needs the package duckdb."""
    import duckdb

    for number, triples, _ in sample.graphs():
        with duckdb.connect(str(folder / f"graph_{number}.duckdb")) as connection:
            connection.execute("CREATE TABLE triples (head VARCHAR, relation VARCHAR, tail VARCHAR)")
            connection.executemany("INSERT INTO triples VALUES (?, ?, ?)", list(triples))
    rows = [(*link, "train" if link in sample.train else "test") for link in sample.links]
    put(folder / "links.csv", as_csv(("source", "target", "split"), rows) if sample.train else as_csv(("source", "target"), sample.links))


WRITERS: dict[str, tuple[str, Callable[..., None]]] = {
    "openea": ("openea", write_openea),
    "dbp15k": ("dbp15k", write_dbp15k),
    "csv": ("tables", write_csv),
    "tsv": ("tables", write_tsv),
    "parquet": ("tables", write_parquet),
    "rdf": ("rdf", write_rdf),
    "ontology": ("ontology", write_ontologies),
    "wide": ("tables", write_wide),
    "neo4j": ("tables", write_neo4j),
    "sqlite": ("exports", write_sqlite),
    "xml": ("exports", _write_exports(graphml, gexf, ("graphml", "gexf"))),
    "jsonl": ("exports", _write_exports(json_triples, json_triples, ("jsonl", "ndjson"))),
    "records": ("exports", _write_exports(json_entities, json_entities, ("jsonl", "jsonl"))),
}
