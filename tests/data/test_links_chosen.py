"""Folders in which several files could hold the known links: refused with what to do, and read once one is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.main import main
from engine.config import DataConfig
from engine.data import load_task
from engine.data.knowledge_graph import AlignmentTask
from engine.errors import DataError, DataImportError
from engine.importing import Corrections, folder_material, preview
from tests.importing.conftest import GRAPH_1, GRAPH_2, NAMES

SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
AS_TURTLE = {
    name: "".join(f"<{cells[0]}> <x:{cells[1]}> <{cells[2]}> .\n" for row in text.splitlines()[1:] if (cells := row.split(",")))
    for name, text in (("source.ttl", GRAPH_1), ("target.ttl", GRAPH_2))
}


@pytest.fixture(params=["csv", "ttl"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two graphs, six links in a table, and the same and two more in RDF, or in a second table where the graphs are tables."""
    graphs = {"source.csv": GRAPH_1, "target.csv": GRAPH_2} if request.param == "csv" else AS_TURTLE
    for name, text in graphs.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "links.csv").write_text("source,target\n" + "".join(f"a:{name},b:{name}\n" for name in NAMES[:6]), encoding="utf-8")
    reference = {
        "csv": ("reference_alignment.csv", "source,target\n" + "".join(f"a:{name},b:{name}\n" for name in NAMES)),
        "ttl": ("reference_alignment.ttl", "".join(f"<a:{name}> <{SAME_AS}> <b:{name}> .\n" for name in NAMES)),
    }
    name, text = reference[request.param]
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def number_of_links(task: AlignmentTask) -> int:
    return sum(map(len, task.all_links()))


def test_two_files_are_refused_with_the_setting_that_chooses(folder: Path) -> None:
    with pytest.raises(DataError, match=r"links\.csv and reference_alignment\.\w+ could both be the links; choose one with data\.links"):
        load_task(folder)


@pytest.mark.parametrize(("stem", "count"), [("links", 6), ("reference_alignment", 8)])
def test_the_chosen_one_is_read_and_the_other_is_named(folder: Path, stem: str, count: int) -> None:
    chosen = next(path.name for path in folder.iterdir() if path.stem == stem)
    other = next(path.name for path in folder.iterdir() if path.stem in {"links", "reference_alignment"} - {stem})
    task = load_task(folder, DataConfig(links=chosen))
    assert number_of_links(task) == count
    (finding,) = [finding for finding in task.findings if finding.code == "links-not-chosen"]
    assert finding.message == f"{other} was not read: data.links takes the links from {chosen}."


def test_a_part_stays_that_part(folder: Path) -> None:
    (folder / "links.csv").rename(folder / "links_train.csv")
    task = load_task(folder, DataConfig(links="links_train.csv"))
    assert (len(task.train_links), task.split) == (6, "given: links_train.csv")


@pytest.mark.parametrize("name", ["../links.csv", "none.csv", "source", "", "<b>x</b>"])
def test_names_of_no_file_of_links(folder: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"has no such file of links; choose among links\.csv, reference_alignment"):
        load_task(folder, DataConfig(links=name))


def test_an_import_says_how_to_choose_and_does(folder: Path) -> None:
    material = folder_material(folder)
    with pytest.raises(DataImportError, match="could each be the known links; say which one under 'Roles of the files' on the page Import, or with"):
        preview(material, Corrections())
    found = preview(material, Corrections(roles={"links": "links.csv"}))
    assert sum(found.links.values()) == 6


def test_the_command_line_chooses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(folder), "--set", "data.links=links.csv", "--json"]) == 0
    assert '"links-not-chosen"' in capsys.readouterr().out
    assert main(["import", str(folder), "--links", str(folder / "links.csv"), "--dry-run"]) == 0
    assert "reference_alignment" in capsys.readouterr().out, "what is not read is named"
