"""``python -m engine import``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.data import load_task
from tests.data.writers import WRITERS, small_sample
from tests.importing.conftest import GRAPH_1, GRAPH_2, LINKS, SWAPPED, files
from tests.importing.test_archives import pack_zip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS)
    return tmp_path


def test_a_folder_becomes_a_data_set(folder: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    WRITERS["openea"][1](tmp_path / "mine", small_sample())
    assert main(["import", str(tmp_path / "mine")]) == 0
    message = capsys.readouterr().out
    assert "6 entities, 1 relation, 6 triples" in message
    assert f"next: python -m engine train {data / 'mine'}" in message
    assert load_task(data / "mine").fingerprint == load_task(tmp_path / "mine").fingerprint


def test_files_with_corrections(folder: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split(",") for line in GRAPH_1.split("\n")[1:-1]]
    (folder / "one.csv").write_text("x|y|z\n" + "".join(f"{tail}|{head}|{relation}\n" for head, relation, tail in rows), encoding="utf-8")
    (folder / "swapped.csv").write_text(SWAPPED, encoding="utf-8")
    command = ["import", str(folder / "one.csv"), str(folder / "graph_2.csv"), "--links", str(folder / "swapped.csv"), "--name", "cities", "--json"]
    corrections = ["--swap-links", "--columns", "graph1:head=2,tail=1,relation=3,header=yes,delimiter=bar"]
    assert main([*command, *corrections]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stored"] == str(data / "cities")
    assert found["graphs"]["source"]["summary"]["entities"] == 8
    assert found["can be stored"]


def test_a_dry_run_stores_nothing(folder: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(folder / "graph_1.csv"), str(folder / "graph_2.csv"), "--dry-run"]) == 0
    message = capsys.readouterr().out
    assert "names suggest 8 seed links by equal" in message
    assert "There are no known links. Training can start from 8 names and values that both graphs have." in message
    assert not data.exists()


@pytest.mark.parametrize("content", ["source,target\n", "", "\n"])
def test_links_without_rows_are_none(content: str, folder: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "none.csv").write_text(content, encoding="utf-8")
    graphs = [str(folder / f"graph_{number}.csv") for number in (1, 2)]
    assert main(["import", *graphs, "--links", str(folder / "none.csv"), "--name", "unlinked"]) == 0
    assert "none.csv has no links, so none are known" in capsys.readouterr().out
    assert not any(map(len, load_task(data / "unlinked").all_links()))


@pytest.mark.parametrize("content", ["source,target\n", "", "\n"])
def test_an_empty_part_of_a_split_has_no_links(content: str, tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "divided"
    folder.mkdir()
    for name, text in (("graph_1", GRAPH_1), ("graph_2", GRAPH_2), ("train_links", content), ("test_links", LINKS)):
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    assert main(["import", str(folder)]) == 0
    message = capsys.readouterr().out
    assert "train_links.csv has no links, so there are no seed links" in message
    assert "There are no seed links. Training can start from 8 names" in message
    task = load_task(data / "divided")
    assert (len(task.train_links), len(task.test_links)) == (0, len(LINKS.split()) - 1)


def test_seeds_from_names(folder: Path, data: Path) -> None:
    assert main(["import", str(folder / "graph_1.csv"), str(folder / "graph_2.csv"), "--seeds-from-names", "--name", "seeded"]) == 0
    assert len(load_task(data / "seeded").train_links) == 8


@pytest.mark.parametrize(
    ("files_given", "code", "option"),
    [
        (["graph_1.csv", "graph_2.csv", "--links", "swapped.csv"], "links-swapped", "--swap-links"),
        (["graph_1.csv", "graph_2.csv", "--links", "strange.csv"], "links-unknown", "--links FILE"),
        (["graph_1.csv", "graph_2.csv"], "no-seeds", "--seeds-from-names"),
        (["graph_1.csv", "spread.csv", "--links", "links.csv"], "columns-mixed-up", "--columns graph1:relation=NUMBER"),
        (["graph_1.csv", "spread.csv", "--links", "links.csv"], "entities-without-name", "--name-attribute NAME"),
    ],
)
def test_what_is_wrong_comes_with_the_option_that_fixes_it(
    files_given: list[str], code: str, option: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "swapped.csv").write_text(SWAPPED, encoding="utf-8")
    (folder / "strange.csv").write_text(LINKS.replace("a:", "c:"), encoding="utf-8")
    spread = "head,relation,tail\n" + "".join(f"b:{number},r{number},b:{number + 1}\n" for number in range(1000, 1030))
    (folder / "spread.csv").write_text(spread + GRAPH_2.partition("\n")[2], encoding="utf-8")
    code_of_trial = main(["import", *files_given, "--dry-run", "--json"])
    shown = json.loads(capsys.readouterr().out)
    found = next(one for one in shown["findings"] if one["code"] == code)
    assert option in found["advice"]
    assert code_of_trial == (0 if shown["can be stored"] else 2)
    assert main(["import", *files_given, "--dry-run"]) == code_of_trial
    captured = capsys.readouterr()
    assert option in " ".join(captured.out.split())
    if found["severity"] == "error":
        assert code_of_trial == 2
        assert main(["import", *files_given]) == 2
        assert capsys.readouterr().err == captured.err, "a trial ends as the import does"
        assert option in captured.err


def test_few_links_come_with_the_options_for_more(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"b:{number},nah,b:{number + 1}\n" for number in range(1000))
    (folder / "large.csv").write_text(GRAPH_2 + rows, encoding="utf-8")
    (folder / "other.csv").write_text(GRAPH_1 + rows.replace("b:", "a:"), encoding="utf-8")
    assert main(["import", str(folder / "other.csv"), str(folder / "large.csv"), "--links", str(folder / "links.csv"), "--dry-run"]) == 0
    assert "Provide more with --links FILE" in capsys.readouterr().out


def test_an_archive(folder: Path, data: Path, tmp_path: Path) -> None:
    pack_zip(tmp_path / "mine.zip", {"x/kg1.csv": GRAPH_1.encode(), "x/kg2.csv": GRAPH_2.encode(), "x/links.csv": LINKS.encode()})
    assert main(["import", str(tmp_path / "mine.zip"), "--name", "packed"]) == 0
    assert [path.name for path in data.iterdir()] == ["packed"], "what was unpacked is gone"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "there is no file or folder 'none'"),
        (["graph_1.csv"], "alone is one file"),
        (
            ["graph_1.csv", "a.csv", "b.csv"],
            "none of the files is recognised as the target graph (found: a.csv, b.csv, graph_1.csv); rename the graphs",
        ),
        (["graph_1.csv", "."], "is a folder among files"),
        (["graph_1.csv", "graph_2.csv", "--links", "none"], "there is no file 'none' to be the links"),
        (["graph_1.csv", "graph_2.csv", "--columns", "graph3:head=1"], "--columns expects"),
        (["graph_1.csv", "graph_2.csv", "--columns", "graph1:head=x"], "--columns expects"),
        (["graph_1.csv", "graph_2.csv", "--columns", "graph1:head=²"], "--columns expects"),
        (["graph_1.csv", "graph_2.csv", "--columns", "graph1:delimiter=,"], "--columns expects"),
        (["graph_1.csv", "graph_2.csv", "--name", "a b"], "'a b' cannot be the name of a data set"),
        (["graph_1.csv", "graph_2.csv", "--name", "europe"], "there is a data set called 'europe' already"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    for name in "ab":
        (folder / f"{name}.csv").write_text(GRAPH_2, encoding="utf-8")
    assert main(["import", *arguments]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1


def test_links_are_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["import", "a.csv", "b.csv", "--links", "one.csv", "--links", "two.csv"])
    assert "--links is given twice" in capsys.readouterr().err
