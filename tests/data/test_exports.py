"""GraphML, GEXF, JSON lines, SQLite, Neo4j's CSV and wide tables: what is recognised, what is left out, and bad input."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.data.knowledge_graph import Finding
from engine.data.readers import databases
from engine.data.readers.base import RawGraph
from engine.data.readers.databases import read_database
from engine.data.readers.exports import export_form, read_export
from engine.data.readers.tables import read_graph_tables
from engine.data.tabular import Layout
from engine.errors import DataError
from tests.data.writers import put

FOUND_OUT = Layout()


def read(path: Path, text: str | bytes, query: str = "") -> tuple[RawGraph, dict[str, Finding]]:
    findings: list[Finding] = []
    form = export_form(put(path, text))
    assert form is not None
    return read_export(path, form, findings, query), {one.code: one for one in findings}


def read_tables(folder: Path, layout: Layout = FOUND_OUT, **texts: str) -> tuple[RawGraph, dict[str, Finding]]:
    findings: list[Finding] = []
    paths = [put(folder / f"{name}.csv", text) for name, text in texts.items()]
    return read_graph_tables(paths, layout, findings), {one.code: one for one in findings}


def triples(graph: RawGraph) -> set[tuple[str, str, str]]:
    return set(zip(graph.heads, graph.relations, graph.tails, strict=True))


def facts(graph: RawGraph) -> set[tuple[str, str, str]]:
    return set(zip(*graph.attributes, strict=True))


def refuse(path: Path, text: str | bytes, words: str, line: int | None = None, query: str = "") -> None:
    with pytest.raises(DataError) as caught:
        read(path, text, query)
    assert words in str(caught.value)
    assert caught.value.line == line
    assert "\n" not in str(caught.value)


class TestJsonLines:
    def test_triples_and_entities(self, tmp_path: Path) -> None:
        lines = (
            '["Rome", "capitalOf", "Italy"]',
            '{"subject": "Rome", "predicate": "size", "object": 1.50}',
            '{"entity": "Rome", "attribute": "name", "value": "Roma"}',
            '{"id": "Bern", "name": ["Bern", "Berne"], "twin": "Rome", "in": {"id": "Swiss", "big": false}, "gone": null, "n": NaN, "x": {"y": 1}}',
            '{"id": "Rome", "twin": "Bern"}',
        )
        graph, found = read(tmp_path / "a.jsonl", "\n".join(lines))
        assert triples(graph) == {("Rome", "capitalOf", "Italy"), ("Bern", "twin", "Rome"), ("Rome", "twin", "Bern"), ("Bern", "in", "Swiss")}
        said = {("Rome", "size", "1.50"), ("Rome", "name", "Roma"), ("Bern", "name", "Bern"), ("Bern", "name", "Berne"), ("Swiss", "big", "false")}
        assert set(facts(graph)) == said
        assert "relations in, twin" in found["graph-recognised"].message
        assert "2 values missing (null or NaN)" in found["graph-left-out"].message
        assert found["unlisted-entities"].count == 1

    @pytest.mark.parametrize(
        ("text", "words", "line"),
        [
            ('["a", "b", "c"]\n["a", "b"]\n', "expected a triple", 2),
            ('["a", "b", "c"]\n{"a": \n', "is not valid JSON", 2),
            ('["a", "b", {"id": "c"}]\n', "tail is a list or an object", 1),
            ('{"a": 1, "b": 2}\n', "no key is known to hold the identifier (found: a, b)", 1),
            ('{"id": ["x"], "b": 2}\n', "is no text and no number", 1),
            ('{"id": "", "b": 2}\n', "the id is empty", 1),
            ('["a", "\\ud800", "c"]\n', "half a character", 1),
            ("[" * 100_000 + "\n", "nested too deeply", 1),
            ('[\n["a", "b", "c"]]\n', "JSON in one piece", 1),
            ('["a", "b", "c"]\n{"id": "a", "x": 1, "id": "b"}\n', "the key 'id' is twice in one object", 2),
            ('{"id": "a", "in": {"id": "b", "x": 1, "x": 2}}\n', "the key 'x' is twice in one object", 1),
            ("7\n", "expected a triple", 1),
            ("\n\n", "this file is empty", None),
        ],
    )
    def test_bad_lines(self, text: str, words: str, line: int | None, tmp_path: Path) -> None:
        refuse(tmp_path / "a.jsonl", text, words, line)

    def test_numbers_are_identifiers_only_if_all_of_a_key_are(self, tmp_path: Path) -> None:
        rows = "".join(f'{{"id": {at}, "next": {(at + 1) % 9}, "rank": {at * 2}}}\n' for at in range(9))
        graph, _ = read(tmp_path / "a.ndjson", rows)
        assert set(graph.relations) == {"next"}
        assert set(graph.attributes[1]) == {"rank"}


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'


class TestXml:
    def test_graphml(self, tmp_path: Path) -> None:
        keys = '<key id="n" for="node" attr.name="name" attr.type="string"><default>?</default></key><key id="w" attr.name="w" attr.type="double"/>'
        nodes = '<node id="b"><data key="n">B</data></node><node id="a"/>'
        edges = '<edge source="b" target="a"><data key="w">2</data></edge><edge id="1" source="b" target="a"/><edge id="1" source="b" target="a"/>'
        graph, found = read(tmp_path / "a.graphml", GRAPHML.format(f'{keys}<graph edgedefault="undirected">{nodes}{edges}</graph>'))
        assert triples(graph) == {("a", "edge", "b")}
        assert facts(graph) == {("b", "name", "B"), ("a", "name", "?")}
        assert "no direction" in found["graph-recognised"].message
        assert found["graph-left-out"].count == 2

    def test_gexf(self, tmp_path: Path) -> None:
        nodes = '<nodes><node id="0" label="A"/><node id="1" label="B"/></nodes>'
        edges = '<edges><edge id="0" source="1" target="0" label="near" weight="2"/><edge id="1" source="0" target="1"/></edges>'
        graph, _ = read(tmp_path / "a.gexf", f'<gexf xmlns="http://gexf.net/1.3"><graph defaultedgetype="directed">{nodes}{edges}</graph></gexf>')
        assert triples(graph) == {("1", "near", "0"), ("0", "edge", "1")}
        assert facts(graph) == {("0", "label", "A"), ("1", "label", "B")}

    @pytest.mark.parametrize("ending", ["graphml", "gexf"])
    @pytest.mark.parametrize(
        "dtd", ["<!DOCTYPE g>", '<!DOCTYPE g SYSTEM "http://127.0.0.1:9/x.dtd">', '<!DOCTYPE g [ <!ENTITY a SYSTEM "file:///etc/passwd"> ]>']
    )
    def test_a_document_type_is_refused(self, dtd: str, ending: str, tmp_path: Path) -> None:
        refuse(tmp_path / f"a.{ending}", f'<?xml version="1.0"?>\n{dtd}\n<{ending}>&a;</{ending}>', "has a document type (DTD)", 2)

    @pytest.mark.parametrize(
        ("text", "words", "line"),
        [
            (GRAPHML.format("\n<graph><node></graph>"), "not well-formed", 2),
            (GRAPHML.format('<graph edgedefault="directed"><hyperedge/></graph>'), "hyperedges", None),
            (GRAPHML.format('<graph><node id="a"><data key="x">1</data></node></graph>'), "no key x", None),
            (GRAPHML.format("<a>" * 200 + "</a>" * 200), "nested more than 100 levels", 1),
            (GRAPHML.format(""), "cannot be read as GraphML", None),
            ("", "this file is empty", None),
        ],
    )
    def test_bad_files(self, text: str, words: str, line: int | None, tmp_path: Path) -> None:
        refuse(tmp_path / "a.graphml", text, words, line)

    def test_more_than_its_parser_can_hold(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("engine.data.readers.xml_graphs.MOST_BYTES", 20)
        refuse(tmp_path / "a.graphml", GRAPHML, "needs all of it in memory at once; write nodes and edges as CSV or JSON lines")


class TestNeo4j:
    PEOPLE = "id:ID(Person);name;born:int;tags:string[];:LABEL\n1;Keanu;1964;a;Person\n2;Carrie;;;Person\n"
    ROLES = ":START_ID(Person),:END_ID(Film),role,:TYPE,x:IGNORE\n1,1,Neo,ACTED_IN,0\n2,1,,ACTED_IN,0\n,,,,\n"

    def test_several_files_and_id_spaces(self, tmp_path: Path) -> None:
        films = ':ID(Film),title,"tags:string[]",:LABEL\n1,Matrix,a;b,Film;Classic\n'
        graph, found = read_tables(tmp_path, people=self.PEOPLE, roles=self.ROLES, films=films)
        assert triples(graph) == {("Person:1", "ACTED_IN", "Film:1"), ("Person:2", "ACTED_IN", "Film:1")}
        assert ("Person:1", "born", "1964") in facts(graph)
        assert {row[2] for row in facts(graph) if row[:2] == ("Film:1", "tags")} == {"a", "b"}
        assert {row[2] for row in facts(graph) if row[:2] == ("Film:1", "type")} == {"Film", "Classic"}
        assert "id space in front" in found["table-recognised"].message
        assert "1 row without start, end or type" in found["graph-left-out"].message

    def test_one_space_leaves_identifiers_as_they_are(self, tmp_path: Path) -> None:
        roles = ":START_ID(Person),:END_ID(Person),:TYPE\n1,2,KNOWS\n"
        graph, _ = read_tables(tmp_path, people=self.PEOPLE, roles=roles)
        assert triples(graph) == {("1", "KNOWS", "2")}

    def test_one_file_as_apoc_writes_it(self, tmp_path: Path) -> None:
        text = '"_id","_labels","name","_start","_end","_type"\n"0",":Person:Actor","Keanu",,,\n"1",":Film","Matrix",,,\n,,,"0","1","ACTED_IN"\n'
        graph, _ = read_tables(tmp_path, all=text)
        assert triples(graph) == {("0", "ACTED_IN", "1")}
        assert facts(graph) >= {("0", "type", "Actor"), ("1", "name", "Matrix")}

    @pytest.mark.parametrize(
        ("texts", "words"),
        [
            ({"nodes": PEOPLE}, "no table of relationships"),
            ({"nodes": PEOPLE, "more": "a,b\n1,2\n"}, "the header has no column :ID"),
            ({"nodes": PEOPLE, "roles": ":START_ID,:END_ID\n1,2\n"}, "no column :TYPE"),
        ],
    )
    def test_what_is_missing_is_named(self, texts: dict[str, str], words: str, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=words):
            read_tables(tmp_path, **texts)


class TestWideTables:
    CITIES = "qid;label;capital of;twins;size\nQ1;Rome;Q3;Q2|Q4;28\nQ2;Paris;Q5;Q1;21\nQ3;Italy;;;59\nQ4;Berlin;;Q2;36\n"

    def test_relations_are_columns_whose_values_name_rows(self, tmp_path: Path) -> None:
        graph, found = read_tables(tmp_path, cities=self.CITIES)
        assert triples(graph) == {
            *(("Q1", "capital of", "Q3"), ("Q2", "capital of", "Q5")),
            *(("Q1", "twins", "Q2"), ("Q1", "twins", "Q4"), ("Q2", "twins", "Q1"), ("Q4", "twins", "Q2")),
        }
        assert set(graph.attributes[1]) == {"label", "size"}
        assert "identifiers are in column 'qid'; relations are capital of, twins" in found["table-recognised"].message
        assert found["unlisted-entities"].count == 1

    def test_the_identifier_and_the_relations_can_be_chosen(self, tmp_path: Path) -> None:
        graph, _ = read_tables(tmp_path, Layout(columns={"identifier": 1}, relations=(2,)), cities=self.CITIES)
        assert ("Rome", "capital of", "Q3") in triples(graph)
        assert set(graph.relations) == {"capital of"}

    def test_a_table_of_triples_stays_one(self, tmp_path: Path) -> None:
        graph, _ = read_tables(tmp_path, Layout(columns={"head": 0, "relation": 1, "tail": 2}), cities="id,a,b,c\nx,p,y,1\n")
        assert ("x", "p", "y") in triples(graph)

    @pytest.mark.parametrize(
        ("layout", "text", "words"),
        [
            (Layout(columns={"identifier": 9}), CITIES, "there is no column 10"),
            (Layout(relations=(0,)), CITIES, "column 1 cannot hold a relation"),
            (FOUND_OUT, "id,a,b\n", "no rows"),
            (FOUND_OUT, "id,a,b\nx,1,2\n,1,2\n", "the identifier is empty"),
        ],
    )
    def test_bad_tables(self, layout: Layout, text: str, words: str, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=words):
            read_tables(tmp_path, layout, cities=text)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE city (id, name TEXT, country, size REAL)")
        connection.executemany(
            "INSERT INTO city VALUES (?, ?, ?, ?)", [("Q1", "Rome", "Q3", 1.0), ("Q2", "Paris", None, 2.5), ("Q3", "Italy", "", None)]
        )
        connection.commit()
    return path


class TestSqlite:
    @pytest.mark.parametrize(
        "query",
        [
            "SELECT * FROM city",
            "SELECT id AS head, 'country' AS relation, country AS tail, NULL AS value FROM city WHERE country <> '' "
            "UNION ALL SELECT id, 'name', NULL, name FROM city UNION ALL SELECT id, 'size', NULL, size FROM city WHERE size IS NOT NULL;",
        ],
    )
    def test_a_query_is_the_graph(self, query: str, database: Path) -> None:
        graph = read_database(database, query, [])
        assert triples(graph) == {("Q1", "country", "Q3")}
        assert facts(graph) == {("Q1", "name", "Rome"), ("Q2", "name", "Paris"), ("Q3", "name", "Italy"), ("Q1", "size", "1"), ("Q2", "size", "2.5")}

    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ("", "say what of it is the graph with a query"),
            ("DELETE FROM city", "does something else than read"),
            ("PRAGMA query_only = 0", "does something else than read"),
            ("ATTACH ':memory:' AS other", "does something else than read"),
            ("VACUUM INTO 'copy.db'", "does something else than read"),
            ("SELECT load_extension('x'), 1, 2", "does something else than read"),
            ("SELECT 1, 2, 3; DROP TABLE city", "several statements"),
            ("SELECT * FROM city WHERE id = ?", "has parameters"),
            ("SELECT name FROM city", "it gives name"),
            ("SELECT nought FROM city", "cannot be run (no such column: nought)"),
            ("-- nothing", "gives no rows and columns"),
            ("x" * 30_000, "is longer than"),
        ],
    )
    def test_other_queries_are_refused(self, query: str, words: str, database: Path) -> None:
        before = database.read_bytes()
        with pytest.raises(DataError) as caught:
            read_database(database, query, [])
        assert words in str(caught.value)
        assert database.read_bytes() == before
        assert [path.name for path in database.parent.iterdir()] == ["a.sqlite"]

    def test_limits(self, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        endless = "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT n, n, n FROM x"
        monkeypatch.setattr(databases, "ROWS", 1000)
        with pytest.raises(DataError, match="more than 1,000 rows"):
            read_database(database, endless, [])
        monkeypatch.setattr(databases, "SECONDS", 0.1)
        with pytest.raises(DataError, match="the limit; make it simpler"):
            read_database(database, f"{endless} WHERE n < 0", [])

    def test_damaged_and_other_files(self, database: Path, tmp_path: Path) -> None:
        data = database.read_bytes()
        refuse(tmp_path / "b.sqlite", data[:1500] + b"\xff" * 3000, "damaged", query="SELECT * FROM city")
        refuse(tmp_path / "c.sqlite", b"head,relation,tail\n", "no SQLite or DuckDB database")
        refuse(put(tmp_path / "d.sqlite", data, gz=True).with_suffix(""), b"\x1f\x8b", "gzip")
