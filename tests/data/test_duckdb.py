"""DuckDB files: the package is optional; with it a query is the graph, and nothing but the file is read."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from engine.data import load_task
from engine.data.knowledge_graph import Finding
from engine.data.readers import duckdb_files
from engine.data.readers.databases import read_database
from engine.data.readers.exports import export_form, read_export
from engine.errors import DataError
from engine.importing import Corrections, Material, SourceFile, preview
from tests.data.test_round_trip import assert_same, plain_names, samples
from tests.data.writers import Sample, put, write_duckdb
from tests.effort import examples
from tests.importing.conftest import GRAPH_2

STATEMENTS = (
    "CREATE TABLE city (id VARCHAR, name VARCHAR, country VARCHAR, size DOUBLE, big BOOLEAN)",
    "INSERT INTO city VALUES ('Q1', 'Rome', 'Q3', 1.0, true), ('Q2', 'Paris', NULL, 2.5, NULL), ('Q3', 'Italy', '', 'nan', false)",
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
    return path


def test_without_the_package_it_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    path = put(tmp_path / "a.duckdb", b"01234567DUCK" + b"\0" * 4096)
    assert export_form(path) == "duckdb"
    with pytest.raises(DataError, match=r"the package 'duckdb' is not installed; install it \(pip install -r requirements-extras\.txt\)"):
        read_export(path, "duckdb", [])


def test_another_file_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no SQLite or DuckDB database"):
        read_export(put(tmp_path / "a.duckdb", b"head,relation,tail\n"), "duckdb", [])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, name, country, size FROM city",
        "FROM city SELECT id AS head, 'country' AS relation, country AS tail, NULL AS value WHERE country <> '' "
        "UNION ALL SELECT id, 'name', NULL, name FROM city UNION ALL SELECT id, 'size', NULL, size::VARCHAR FROM city WHERE size < 9;",
    ],
)
def test_a_query_is_the_graph(query: str, database: Path) -> None:
    findings: list[Finding] = []
    graph = read_database(database, query, findings)
    assert list(zip(graph.heads, graph.relations, graph.tails, strict=True)) == [("Q1", "country", "Q3")]
    facts = {(entity, name, value.removesuffix(".0")) for entity, name, value in zip(*graph.attributes, strict=True)}
    assert facts == {("Q1", "name", "Rome"), ("Q2", "name", "Paris"), ("Q3", "name", "Italy"), ("Q1", "size", "1"), ("Q2", "size", "2.5")}
    assert "a DuckDB database, whose query gives" in findings[0].message


def test_truth_values_are_texts(database: Path) -> None:
    graph = read_database(database, "SELECT id, big FROM city", [])
    assert set(zip(*graph.attributes, strict=True)) == {("Q1", "big", "true"), ("Q3", "big", "false")}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "say what of it is the graph with a query such as SELECT head, relation, tail FROM triples (it has: city)"),
        ("DELETE FROM city", "does something else than read"),
        ("SET threads = 4", "does something else than read"),
        ("ATTACH ':memory:' AS other", "does something else than read"),
        ("COPY city TO 'copy.csv'", "does something else than read"),
        ("INSTALL httpfs", "does something else than read"),
        ("SELECT * FROM read_csv('/etc/passwd')", "does something else than read"),
        ("SELECT * FROM glob('*')", "does something else than read"),
        ("SELECT * FROM 'a.parquet'", "; "),
        ("SELECT * FROM found", "cannot be run"),
        ("SELECT 1, 2, 3; DROP TABLE city", "several statements"),
        ("SELECT * FROM city WHERE id = ?", "has parameters"),
        ("SELECT name FROM city", "it gives name"),
        ("SELECT nought FROM city", "cannot be run"),
        ("-- nothing", "several statements, or none"),
        ("x" * 30_000, "is longer than"),
    ],
)
def test_other_queries_are_refused(query: str, words: str, database: Path) -> None:
    before, found = database.read_bytes(), {"id": ["Q1"]}
    with pytest.raises(DataError) as caught:
        read_database(database, query, [])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == ["a.duckdb"]
    assert found, "a variable of this program is no table"


def test_limits(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_files, "ROWS", 1000)
    with pytest.raises(DataError, match="more than 1,000 rows"):
        read_database(database, "SELECT n, n, n FROM range(100000) AS t(n)", [])
    monkeypatch.setattr(duckdb_files, "SECONDS", 0.05)
    with pytest.raises(DataError, match="the limit; make it simpler"):
        read_database(database, "SELECT a.n, b.n, c.n FROM range(100000) a(n), range(100000) b(n), range(100000) c(n) WHERE a.n + b.n + c.n < 0", [])


def test_a_damaged_file(database: Path) -> None:
    data = database.read_bytes()
    database.write_bytes(data[:12] + b"\xff" * 5000)
    with pytest.raises(DataError, match=r"this database (is damaged|cannot be opened)"):
        read_database(database, "SELECT * FROM city", [])


@settings(max_examples=examples(8), deadline=None)
@given(sample=samples(plain_names))
def test_any_identifiers_survive(sample: Sample) -> None:
    pytest.importorskip("duckdb")
    with tempfile.TemporaryDirectory() as folder:
        write_duckdb(Path(folder), sample)
        assert_same(load_task(folder), sample)


def test_an_import_knows_it_by_its_content(database: Path, tmp_path: Path) -> None:
    other = put(tmp_path / "two.csv", GRAPH_2)
    material = Material((SourceFile(database.rename(tmp_path / "any"), "mine.db", "graph 1"), SourceFile(other, "two.csv", "graph 2")))
    found = preview(material, Corrections(queries={"graph 1": "SELECT id AS head, 'in' AS relation, country AS tail FROM city WHERE country <> ''"}))
    assert next(file.form for file in found.files if file.role == "graph 1") == "DuckDB database"
    assert found.graphs["source"].summary.triples == 1
