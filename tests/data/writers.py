"""The same small data set in every format, so that tests can ask for the same answer from all readers."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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


WRITERS: dict[str, tuple[str, Callable[..., None]]] = {
    "openea": ("openea", write_openea),
    "dbp15k": ("dbp15k", write_dbp15k),
    "csv": ("tables", write_csv),
    "tsv": ("tables", write_tsv),
    "parquet": ("tables", write_parquet),
    "rdf": ("rdf", write_rdf),
    "ontology": ("ontology", write_ontologies),
}
