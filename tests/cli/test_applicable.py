"""Options that would change nothing end in one sentence and code 2."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.cli.main import main
from tests.conftest import ROOT
from tests.data.writers import WRITERS, small_sample
from tests.importing.conftest import GRAPH_1, GRAPH_2, LINKS, files
from tests.run_fixture import sample_run, write_run

RUN = "towns/basic-s0-0123abcd"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where imports are stored."""
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with two graphs as tables, one as Turtle, one as a database, and links."""
    files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS)
    (tmp_path / "graph_1.ttl").write_text("<http://a/1> <http://a/r> <http://a/2> .\n", encoding="utf-8")
    with closing(sqlite3.connect(tmp_path / "graph_2.sqlite")) as connection:
        connection.execute("CREATE TABLE triples (head TEXT, relation TEXT, tail TEXT)")
        connection.executemany("INSERT INTO triples VALUES (?, ?, ?)", [row.split(",") for row in GRAPH_2.splitlines()[1:]])
        connection.commit()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one sentence with which a command ends."""
    assert main(list(words)) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


TABLES = ["graph_1.csv", "graph_2.csv"]
LINKED = [*TABLES, "--links", "links.csv"]
IMPORTS = {
    "query of a table": ([*LINKED, "--query1", "SELECT 1"], "--query1 has no effect here: graph_1.csv is read as table"),
    "named graphs of a table": ([*LINKED, "--named-graphs2", "http://g"], "--named-graphs2 has no effect here: graph_2.csv"),
    "columns of RDF": (
        ["graph_1.ttl", "graph_2.csv", "--columns", "graph1:head=1"],
        "--columns graph1 has no effect here: graph_1.ttl is read as Turtle",
    ),
    "columns of a database": (["graph_1.csv", "graph_2.sqlite", "--columns", "graph2:head=1"], "graph_2.sqlite is read as SQLite database"),
    "columns of no file": ([*TABLES, "--columns", "links:source=2"], "no file has the role 'links'"),
    "columns that no table has": ([*LINKED, "--columns", "graph1:kopf=1"], "cannot have 'kopf'; choose among head, relation, tail, identifier"),
    "ontology of tables": ([*LINKED, "--ontology", "classes"], "--ontology has no effect here: neither graph is an ontology or RDF"),
    "ontology of plain RDF": (["graph_1.ttl", "graph_2.csv", "--ontology", "classes"], "--ontology has no effect here: neither graph is an ontology"),
    "no links to swap": (
        [*TABLES, "--swap-links", "--repair-links"],
        "--swap-links and --repair-links have no effect here: there are no known links",
    ),
    "no links to rate": ([*TABLES, "--min-confidence", "0.5"], "--min-confidence has no effect here: there are no known links"),
    "links without confidences": ([*LINKED, "--min-confidence", "0.5"], "none of the links has a confidence"),
    "no names among triples": ([*LINKED, "--names-from-triples"], "no triples of either graph look like names"),
}


@pytest.mark.parametrize(("words", "message"), IMPORTS.values(), ids=IMPORTS)
@pytest.mark.parametrize("trial", [True, False])
def test_import(words: list[str], message: str, trial: bool, folder: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refusal(capsys, "import", *words, *(["--dry-run"] if trial else []))
    assert not data.exists()


def test_import_of_a_folder_that_is_read_as_a_whole(folder: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    WRITERS["openea"][1](folder / "mine", small_sample())
    message = refusal(capsys, "import", "mine", "--columns", "graph1:head=1", "--query2", "SELECT 1", "--ontology", "classes")
    assert "--columns graph1, --query2 and --ontology have no effect here: this folder is read as a whole, in the format openea" in message
    assert main(["import", "mine", "--dry-run"]) == 0


def test_options_that_apply_are_followed(folder: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT head, relation, tail FROM triples WHERE head <> 'b:Rome'"
    words = ["graph_1.csv", "graph_2.sqlite", "--links", "links.csv", "--query2", query, "--columns", "graph1:head=1,relation=2,tail=3", "--json"]
    main(["import", *words, "--dry-run"])
    found = json.loads(capsys.readouterr().out)
    assert [one["advice"] for one in found["findings"] if one["code"] == "database-recognised"] == [
        "Choose other rows with --query1 for the source graph, --query2 for the target graph."
    ]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_run(sample_run(), folder)
    return folder


EXPORTS = {
    "ending of another format": (
        ["--format", "csv", "--output", "x.trig"],
        "'x.trig' has the ending of format merged, not of csv; choose --format merged",
    ),
    "two formats with this ending": (["--format", "csv", "--output", "x.tsv"], "has the ending of format tsv or sssom"),
    "identifiers of folded entities": (["--canonical", "minted"], "--canonical has no effect here: format csv folds no entities"),
    "relations that become one": (["--least-correspondence", "0.3"], "--least-correspondence has no effect here"),
    "a decoder for what reviewers accepted": (["--reviewed", "--decoder", "stable", "--repair"], "--decoder and --repair have no effect here"),
    "no hierarchy": (["--repair"], "--repair has no effect here: neither graph of this run has a class hierarchy"),
}


@pytest.mark.parametrize(("words", "message"), EXPORTS.values(), ids=EXPORTS)
def test_export(words: list[str], message: str, models: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(folder.iterdir())
    assert message in refusal(capsys, "export", RUN, "--models", str(models), *words)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "start"), [("x.tsv", b"source"), ("x.nt", b"<"), ("x.parquet", b"PAR1"), ("x.dat", b"\xef\xbb\xbfsource"), ("x.sssom.tsv", b"#")]
)
def test_an_export_has_the_format_of_its_ending(name: str, start: bytes, models: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", RUN, "--models", str(models), "--output", name]) == 0
    assert (folder / name).read_bytes().startswith(start)


TRAININGS = {
    "names": (["--names", "names.tsv"], "--names has no effect here: the variant basic compares no names; choose --variant literal"),
    "names of a semi run": (
        ["--variant", "semi", "--names", "source=a.tsv", "--queue"],
        "--names has no effect here: the variant semi compares no names",
    ),
    "epochs twice": (["--epochs", "3", "--set", "training.epochs=4"], "--set training.epochs has no effect here: --epochs sets it"),
}


@pytest.mark.parametrize(("words", "message"), TRAININGS.values(), ids=TRAININGS)
def test_train(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refusal(capsys, "train", str(ROOT / "sample_data" / "europe"), "--models", str(tmp_path / "models"), *words)
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "semi.rounds=2", "--set", "values.exclude=x"], "note: semi.rounds and values.exclude have no effect on the variant basic."),
        (["--variant", "semi", "--set", "literal.weight=2"], "note: literal.weight has no effect on the variant semi."),
        (["--variant", "literal", "--set", "literal.weight=2", "--set", "semi.rounds=2"], ""),
    ],
)
def test_settings_of_other_variants_are_named(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They make no other run, so that a script may give all variants the same settings."""
    assert main(["train", str(ROOT / "sample_data" / "europe"), "--models", str(tmp_path / "models"), "--estimate", *words]) == 0
    assert capsys.readouterr().err == (f"{message}\n" if message else "")


def test_inspect_and_match(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "only settings of the section data apply" in refusal(capsys, "inspect", "sample_data/europe", "--set", "encoder.dim=8")
    assert "--pool has no effect here" in refusal(capsys, "match", RUN, "new.jsonl", "--new", "--pool", "test", "--models", str(models))
