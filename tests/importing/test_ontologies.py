"""Ontologies in an import: recognised by content, read by the owner's choice, recorded, and stored as the graph that training on the folder gives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.data import load_task
from engine.data.library import RECORD
from engine.importing import Corrections, folder_material, store, understand
from engine.importing.detect import glance, sniff
from tests.data.writers import put

OBO = """format-version: 1.2

[Term]
id: A:1
name: wine
synonym: "vino" EXACT []

[Term]
id: A:2
name: red wine
is_a: A:1

[Instance]
id: I:1
name: this wine
instance_of: A:2
relationship: from I:2
"""
OWL = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [ <!ENTITY b "http://b.org/" > ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
 xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:b="http://b.org/">
<owl:Ontology rdf:about="http://b.org"><owl:imports rdf:resource="http://b.org/more.owl"/></owl:Ontology>
<owl:ObjectProperty rdf:about="&b;von"/>
<owl:Class rdf:about="&b;Wein"><rdfs:label xml:lang="de">Wein</rdfs:label></owl:Class>
<owl:Class rdf:about="&b;Rotwein"><rdfs:subClassOf rdf:resource="&b;Wein"/></owl:Class>
<b:Wein rdf:about="&b;w1"><b:von rdf:resource="&b;w2"/></b:Wein>
</rdf:RDF>
"""
LINKS = "source,target\nA:1,http://b.org/Wein\nA:2,http://b.org/Rotwein\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "wines"
    put(place / "source.obo.gz", gzip.compress(OBO.encode()))
    put(place / "target.owl", OWL)
    put(place / "links.csv", LINKS)
    return place


def test_a_folder_of_obo_and_owl(folder: Path, data: Path) -> None:
    material = folder_material(folder)
    assert {file.role: file.form for file in glance(material, Corrections())} == {
        "graph 1": "OBO",
        "graph 2": "RDF/XML",
        "links": "table, comma between the cells",
    }
    preview = understand(material, Corrections()).preview
    assert [preview.graphs[side].summary.entities for side in ("source", "target")] == [2, 2]
    codes = [finding.code for finding in preview.findings]
    assert codes.count("ontology-read") == 2
    assert "ontology-imports" in codes
    stored = store(material, Corrections(), "wines")
    assert load_task(stored.path).fingerprint == load_task(folder).fingerprint
    assert load_task(folder).format == "ontology"


def test_the_choice_is_recorded(folder: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "links.csv").write_text("source,target\nI:1,http://b.org/w1\n", encoding="utf-8")
    assert main(["import", str(folder), "--name", "wines", "--ontology", "individuals"]) == 0
    shown = capsys.readouterr().out
    assert "individuals are aligned" in " ".join(shown.split())
    assert "--ontology" in shown
    record = json.loads((data / "wines" / RECORD).read_text(encoding="utf-8"))
    assert Corrections.from_dict(record["corrections"]).ontology == "individuals"
    assert "data.ontology" not in record["settings"]  # what is stored is a table
    assert set(load_task(data / "wines").source.entities) == {"I:1", "I:2"}


def test_records_of_older_versions(tmp_path: Path) -> None:
    older = Corrections().to_dict()
    del older["ontology"]
    assert Corrections.from_dict(older) == Corrections()
    with pytest.raises(ValueError, match="everything"):
        Corrections.from_dict({**older, "ontology": "everything"})


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (OBO, "obo"),
        (OWL, "rdfxml"),
        ("Prefix(:=<http://x/>)\nOntology(<http://x>)", "ofn"),
        ("# a comment\nPrefix: : <http://x/>\nOntology: <http://x>\n", "omn"),
        ('<?xml version="1.0"?>\n<!-- <rdf:RDF> -->\n<Ontology xmlns="http://www.w3.org/2002/07/owl#"/>', "owx"),
        ('<Ontology xmlns="http://elsewhere.org/"/>', "rdfxml"),
    ],
)
def test_the_content_says_which_syntax_it_is(text: str, form: str, tmp_path: Path) -> None:
    assert sniff(put(tmp_path / "a.owl", text), "a.owl").form == form


def test_a_name_that_hides_it_is_asked_for(tmp_path: Path) -> None:
    put(tmp_path / "source.csv", OBO)
    put(tmp_path / "target.owl", OWL)
    command = ["import", str(tmp_path / "source.csv"), str(tmp_path / "target.owl"), "--dry-run"]
    assert main(command) == 2
