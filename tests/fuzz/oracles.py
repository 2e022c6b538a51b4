"""What counts as right: a sentence that names the file, or a graph that other files can hold and that is the same when it is read from them."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.knowledge_graph import Finding
from engine.data.readers import RawGraph
from engine.data.readers.rdf import read_graph
from engine.data.readers.tables import read_attributes, read_graph_tables
from engine.data.tabular import Layout
from engine.errors import EngineError
from tests.data.writers import Triple, as_csv, json_triples, ntriples

Rows = list[tuple[str, ...]]


def rows(columns: Sequence[Sequence[str]]) -> Rows:
    return sorted(zip(*(list(column) for column in columns), strict=True))


def content(graph: RawGraph) -> tuple[Rows, Rows, list[str]]:
    """Triples, attributes and entities of a graph, in an order of their own."""
    return rows((graph.heads, graph.relations, graph.tails)), rows(graph.attributes), sorted(graph.identifiers.to_list())


def meaning(graph: RawGraph) -> tuple[Rows, Rows, list[str]]:
    """The same without repetitions."""
    triples, attributes, entities = content(graph)
    return sorted(set(triples)), sorted(set(attributes)), entities


def assert_sentence(error: EngineError, *names: str) -> None:
    """One line that could be printed, with the name of the file."""
    text = str(error)
    assert text
    assert text.isprintable(), text
    assert text.encode(), text
    assert not names or any(name in text for name in names), text
    assert len(text) < 2000, text


@contextmanager
def a_folder() -> Iterator[Path]:
    folder = tempfile.mkdtemp(prefix="fuzz")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def assert_round_trip(graph: RawGraph, folder: Path) -> None:
    """What was read is written to tables, as JSON lines and, where identifiers are IRIs, as N-Triples, and comes back from each."""
    triples, attributes, _ = content(graph)
    for name in {cell for row in triples for cell in row} | {row[at] for row in attributes for at in (0, 1)}:
        assert name.strip(), repr(name)
        assert name.encode(), repr(name)
        assert "\n" not in name, repr(name)
        assert "\0" not in name, repr(name)
    if triples:
        assert _tables(triples, attributes, folder, parquet=True) == (triples, attributes)
        assert _tables(triples, attributes, folder, parquet=False) == (triples, attributes)
    filled = [row for row in attributes if row[2]]
    if triples:
        assert _json_lines(triples, filled, folder) == (triples, sorted(filled))
    if triples and all(map(_is_iri, {cell for row in triples for cell in row} | {row[at] for row in attributes for at in (0, 1)})):
        assert _plain_rdf(triples, folder) == triples


def _tables(triples: Rows, attributes: Rows, folder: Path, *, parquet: bool) -> tuple[Rows, Rows]:
    ending = "parquet" if parquet else "csv"
    for name, header, table in (("triples", ("head", "relation", "tail"), triples), ("attributes", ("entity", "attribute", "value"), attributes)):
        path = folder / f"round-{name}.{ending}"
        if parquet:
            columns = list(zip(*table, strict=True)) if table else [(), (), ()]
            pq.write_table(pa.table({one: pa.array(list(cells), pa.string()) for one, cells in zip(header, columns, strict=True)}), path)
        else:
            path.write_text(as_csv(header, table), encoding="utf-8", newline="")
    findings: list[Finding] = []
    graph = read_graph_tables([folder / f"round-triples.{ending}"], Layout(), findings)
    found = read_attributes(folder / f"round-attributes.{ending}")[1] if attributes else ((), (), ())
    return rows((graph.heads, graph.relations, graph.tails)), rows(found)


def _json_lines(triples: Rows, attributes: Rows, folder: Path) -> tuple[Rows, Rows]:
    from engine.data.readers.exports import read_export

    path = folder / "round.jsonl"
    path.write_text(json_triples(_three(triples), _three(attributes)), encoding="utf-8", newline="")
    graph = read_export(path, "jsonl", [])
    return rows((graph.heads, graph.relations, graph.tails)), rows(graph.attributes)


def _three(table: Rows) -> list[Triple]:
    return [(one, two, three) for one, two, three in table]


def _plain_rdf(triples: Rows, folder: Path) -> Rows:
    path = folder / "round.nt"
    path.write_text(ntriples(_three(triples)), encoding="utf-8", newline="")
    graph = read_graph(path, [], "plain")
    return sorted((*rows((graph.heads, graph.relations, graph.tails)), *rows(graph.identities)))


def _is_iri(name: str) -> bool:
    """Whether it is certainly one: of the plainest kind."""
    return re.fullmatch(r"https?://[a-z]+(?:\.[a-z]+)*/[A-Za-z0-9_./#-]*", name) is not None
