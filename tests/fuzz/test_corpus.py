"""What was found once: files that a reader or an archive was wrong about, and values in databases and addresses."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from app.state import DegreeAddress, PairsAddress, TrainAddress
from engine.config import RunConfig
from engine.data.library import RECORD, data_sets
from engine.data.links import read_links
from engine.data.readers.rdf import read_graph
from engine.errors import ConfigError, DataError, DataImportError, ReviewError
from engine.explanation.new_entities import read_new_entities
from engine.importing import Corrections, Material, SourceFile, Upload, find_staged, stage, understand
from engine.importing.archives import unpack
from engine.reviews import Choice, ReviewStore
from engine.util.sqlite import Database
from tests.fuzz.oracles import assert_sentence, meaning
from tests.fuzz.test_addresses import check
from tests.fuzz.test_links import SSSOM
from tests.fuzz.test_readers import judge, put_all
from tests.fuzz.test_stores import use_reviews
from tests.fuzz.valid_files import forms
from tests.reviews.reviewers import DATA

CORPUS = Path(__file__).parent / "corpus"
READ = sorted(path for path in (CORPUS / "readers").glob("*/*") if path.is_dir())
ARCHIVES = sorted((CORPUS / "archives").iterdir())


@pytest.mark.parametrize("folder", READ, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_files_that_were_found(folder: Path) -> None:
    """Each is a folder ``readers/FORM/WHAT`` with the files of a case."""
    judge(forms()[folder.parent.name], {path.name: path.read_bytes() for path in folder.iterdir()})


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name)
def test_archives_that_were_found(path: Path, tmp_path: Path) -> None:
    with pytest.raises(DataImportError) as caught:
        unpack(path, path.name, tmp_path / "into")
    assert_sentence(caught.value, path.name)


@pytest.mark.parametrize(("form", "ends"), [("rdfxml", b"\r\n"), ("rdfxml", b"\r"), ("owx", b"\r\n"), ("graphml", b"\r\n"), ("neo4j", b"\r")])
def test_line_ends_are_those_of_the_format(form: str, ends: bytes, tmp_path: Path) -> None:
    kind = forms()[form]
    for number, files in enumerate(kind.every):
        put_all(tmp_path / f"{number}", files)
        put_all(tmp_path / f"other-{number}", {name: content.replace(b"\r\n", b"\n").replace(b"\n", ends) for name, content in files.items()})
        expected = [meaning(graph) for graph in kind.read(tmp_path / f"{number}")]
        assert [meaning(graph) for graph in kind.read(tmp_path / f"other-{number}")] == expected


@pytest.mark.parametrize("form", ["ntriples", "turtle", "jsonld", "rdfxml", "ofn", "owx", "obo", "graphml", "gexf", "jsonl", "wide", "attributes"])
def test_names_of_attributes_are_checked_as_identifiers_are(form: str, tmp_path: Path) -> None:
    """Too long a one would be stored by an import, and refused when the data set is read."""
    long = "x" * 5000
    texts = {
        "ntriples": f'<http://a/a> <http://a/p> <http://a/b> .\n<http://a/a> <http://a/{long}> "1" .\n',
        "turtle": f'<http://a/a> <http://a/p> <http://a/b> ; <http://a/{long}> "1" .\n',
        "jsonld": json.dumps({"@id": "http://a/a", "http://a/p": {"@id": "http://a/b"}, f"http://a/{long}": "1"}),
        "rdfxml": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://a/"><rdf:Description rdf:about="http://a/a">'
        f'<p rdf:resource="http://a/b"/><{long}>1</{long}></rdf:Description></rdf:RDF>',
        "ofn": f'Ontology(<http://o>\nSubClassOf(<http://a/a> <http://a/b>)\nAnnotationAssertion(<http://a/{long}> <http://a/a> "1")\n)\n',
        "owx": '<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://o"><SubClassOf>'
        '<Class IRI="http://a/a"/><Class IRI="http://a/b"/></SubClassOf>'
        f'<AnnotationAssertion><AnnotationProperty IRI="http://a/{long}"/><IRI>http://a/a</IRI><Literal>1</Literal></AnnotationAssertion></Ontology>',
        "obo": f'format-version: 1.4\n\n[Term]\nid: A:1\nis_a: A:2\nproperty_value: http://a/{long} "1" xsd:string\n\n[Term]\nid: A:2\n',
        "graphml": '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        f'<key id="d" for="node" attr.name="{long}" attr.type="string"/><graph edgedefault="directed"><node id="a"><data key="d">1</data></node>'
        '<node id="b"/><edge source="a" target="b"/></graph></graphml>',
        "gexf": '<gexf xmlns="http://gexf.net/1.3" version="1.3"><graph defaultedgetype="directed"><attributes class="node">'
        f'<attribute id="0" title="{long}" type="string"/></attributes><nodes><node id="a">'
        '<attvalues><attvalue for="0" value="1"/></attvalues></node>'
        '<node id="b"/></nodes><edges><edge id="0" source="a" target="b"/></edges></graph></gexf>',
        "jsonl": json.dumps({"id": "a", "near": {"id": "b"}, long: "1"}) + "\n",
        "wide": f"id,near,{long}\na,b,one\nb,a,two\n",
        "attributes": f"entity,attribute,value\na,{long},1\n",
    }
    kind = forms()[form]
    names = {next(iter(kind.folders[0])): texts[form]}
    put_all(tmp_path, {name: content.encode() for name, content in names.items()})
    with pytest.raises(DataError, match=r"[45],0.. characters") as caught:
        kind.read(tmp_path)
    assert_sentence(caught.value, *names)


@pytest.mark.parametrize("value", ["\x1b[31m", "\u202e", "\x00", "\n", "\ud800"])
def test_messages_about_addresses_can_be_printed(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, name in ((TrainAddress, "seed"), (DegreeAddress, "side"), (PairsAddress, "page"), (PairsAddress, "known")):
        check(kind, [(name, f"a{value}b")], monkeypatch)


@pytest.mark.parametrize(("column", "value"), [("withdraws", 99), ("withdraws", ""), ("verdict", "perhaps")])
def test_rows_of_reviews_that_make_no_sense(column: str, value: object, tmp_path: Path) -> None:
    store = ReviewStore(tmp_path / "reviews.sqlite3")
    store.decide(DATA, [Choice("a", "b", "accept"), Choice("c", "d", "reject")], "Ann", "click")
    store.undo(DATA, "Ann", "undo")
    store.close()
    number = 1 if column == "verdict" else 3
    database: Database = store._database
    with database.writing() as connection:
        connection.execute("DROP TRIGGER decisions_are_not_changed")
    database.close()
    connection = sqlite3.connect(store.path)
    connection.executescript("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF")
    connection.execute(f"UPDATE decisions SET {column} = ? WHERE number = ?", (value, number))
    connection.commit()
    connection.close()
    for _ in range(2):
        with pytest.raises(ReviewError, match="a decision makes no sense") as caught:
            store.standing(DATA)
        assert_sentence(caught.value, "reviews.sqlite3")
    store.close()


@pytest.mark.parametrize(("old", "new"), [(b"inactive", b"in\x7fctive"), (b"leases (", b"leas\xe9s ("), (b"a note", b"a \xe9ote")])
def test_names_and_texts_in_databases_that_cannot_be_decoded_or_printed(old: bytes, new: bytes, tmp_path: Path) -> None:
    store = ReviewStore(tmp_path / "reviews.sqlite3")
    store.decide(DATA, Choice("a", "b", "accept", "a note"), "Ann", "click")
    store.close()
    store.path.write_bytes(store.path.read_bytes().replace(old, new))
    with pytest.raises(ReviewError, match="damaged") as caught:
        store.standing(DATA)
    assert_sentence(caught.value, "reviews.sqlite3")
    store.close()


@pytest.mark.parametrize("column", ["csls", "probability", "click", "note", "run", "number"])
def test_columns_of_reviews_that_damage_renamed(column: str, tmp_path: Path) -> None:
    """Wherever the file names the column: where no view names it, only a row shows that it is missing."""
    whole = ReviewStore(tmp_path / "whole.sqlite3")
    whole.decide(DATA, Choice("a", "b", "accept", "a note"), "Ann", "click")
    whole.close()
    content, name = whole.path.read_bytes(), column.encode()
    places = [place for place in range(len(content)) if content.startswith(name, place)]
    for number, place in enumerate(places):
        path = tmp_path / f"{number}.sqlite3"
        path.write_bytes(content[:place] + b"x" + content[place + 1 :])
        use_reviews(path)


def test_brackets_without_end_are_no_table(tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_text("[" * 200_000 + "\n")
    with pytest.raises(DataError, match="expected at least 3 columns") as caught:
        understand(Material(tuple(SourceFile(path, path.name, role) for role in ("graph 1", "graph 2"))), Corrections())
    assert_sentence(caught.value, path.name)


def test_ends_of_links_are_checked_after_their_abbreviations_were_expanded(tmp_path: Path) -> None:
    path = tmp_path / "links.sssom.tsv"
    for before, after, words in (("http://a.org/A_", "http://a.org/\x7f", "control character"), ("http://a.org/A_", "x" * 5000, "characters long")):
        path.write_text(SSSOM.replace(before, after), encoding="utf-8")
        with pytest.raises(DataError, match=words) as caught:
            read_links(path)
        assert_sentence(caught.value, path.name)


def test_new_entities_with_separators_and_halves_of_characters(tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    path.write_text('{"id": "x", "label": "one\u2028two\x85three"}\r\n{"id": "y"}\r{"id": "z"}\n', encoding="utf-8", newline="")
    assert [(one.id, one.label) for one in read_new_entities(path)] == [("x", "one\u2028two\x85three"), ("y", ""), ("z", "")]
    path.write_text('{"id": "x"}\n{"id": "y", "values": [["a", "\\ud800"]]}\n', encoding="utf-8")
    with pytest.raises(DataError, match="half a character") as caught:
        read_new_entities(path)
    assert caught.value.line == 2
    assert_sentence(caught.value, path.name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ofn", "Ontology(<http://o>\nSubClassOf(<http://a/a> ObjectMinCardinality({} <http://a/p> <http://a/b>))\n)\n"),
        (
            "a.omn",
            "Ontology: <http://o>\nObjectProperty: <http://a/p>\nClass: <http://a/b>\nClass: <http://a/a>\n  SubClassOf: <http://a/p> min {} <http://a/b>\n",
        ),
        (
            "a.owx",
            '<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://o"><SubClassOf><Class IRI="http://a/a"/>'
            '<ObjectMinCardinality cardinality="{}"><ObjectProperty IRI="http://a/p"/><Class IRI="http://a/b"/></ObjectMinCardinality></SubClassOf></Ontology>',
        ),
    ],
)
def test_a_number_that_is_too_large_for_the_parser_of_ontologies(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text.format("2"), encoding="utf-8")
    assert len(read_graph(path, []).heads) == 1
    path.write_text(text.format("9" * 40), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_graph(path, [])
    assert_sentence(caught.value, str(path))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"training": 3}, "section 'training'"),
        ({"variant": "\x1b[31m"}, "variant must be one of"),
        ({"variant": "9" * 5000}, "variant must be one of"),
        ({"seed": "x" * 5000}, "seed must be"),
        ({"\x1b": {}}, "unknown setting"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        RunConfig.from_dict(settings)
    assert_sentence(caught.value)


@pytest.mark.parametrize(("place", "value"), [("tables", []), ("tables", None), ("least_confidence", 10**400), ("queries", 3)])
def test_an_import_in_progress_that_makes_no_sense(place: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path))
    token = stage([Upload("one.csv", io.BytesIO(b"a,b,c\n"), "graph 1")]).token
    (path,) = tmp_path.rglob("staging.json")
    state = json.loads(path.read_text(encoding="utf-8"))
    state["corrections"][place] = value
    path.write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(DataImportError, match="no longer exists"):
        find_staged(token)


def test_a_record_with_a_number_that_is_none_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path))
    (tmp_path / "mine").mkdir()
    sizes = {"entities": float("inf"), "triples": 1}
    record = {"fingerprint": "f", "imported": "today", "counts": {"source": sizes, "target": sizes, "links": 1}, "settings": {}}
    (tmp_path / "mine" / RECORD).write_text(json.dumps(record), encoding="utf-8")
    assert "mine" in [one.name for one in data_sets()]


def test_the_corpus_can_be_copied(tmp_path: Path) -> None:
    """Files that a version control would change, or a system could not hold, are none of it."""
    shutil.copytree(CORPUS, tmp_path / "corpus")
    assert READ
    assert ARCHIVES
    assert all(path.stat().st_size < 10_000 for path in CORPUS.rglob("*") if path.is_file())
