"""The public face: what ``import engine`` offers, its examples, and the tour in docs/python.md."""

from __future__ import annotations

import doctest
import inspect as inspection
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest

import engine
from engine import api
from engine.cli.main import main
from tests.run_fixture import sample_run, write_run

ROOT = Path(__file__).resolve().parent.parent
TOUR = ROOT / "docs" / "python.md"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder like the project's, to run examples in: the sample data are there, and runs and exports go where they harm nothing."""
    folder = tmp_path_factory.mktemp("workplace")
    (folder / "sample_data").symlink_to(ROOT / "sample_data")
    before = Path.cwd()
    os.chdir(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DUAL_AMN_MODELS", raising=False)
        yield folder
    os.chdir(before)


@pytest.fixture(scope="module")
def run(workplace: Path) -> api.OpenRun:
    return engine.train("sample_data/europe", settings={"training.epochs": 20, "encoder.dim": 32}, progress=False)


def test_the_face_is_what_is_listed() -> None:
    assert set(engine.__all__) == {"OpenRun", "__version__", "errors", "export", "inspect", "list_runs", "open_run", "read", "train", "update"}
    for name in engine.__all__:
        assert getattr(engine, name) is not None
    assert set(dir(engine)) == set(engine.__all__)


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match="it offers OpenRun"):
        _ = engine.trian  # type: ignore[attr-defined]


def test_importing_the_engine_loads_nothing_heavy() -> None:
    code = "import sys, engine; print([name for name in ('torch', 'pandas', 'polars', 'numba', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [test for test in finder.find(api, "engine.api") if test.examples]


def test_every_function_and_question_of_the_face_has_an_example_and_says_what_it_raises() -> None:
    shown = {test.name.removeprefix("engine.api.") for test in examples()}
    functions = {name for name in engine.__all__ if inspection.isfunction(getattr(engine, name))}
    assert functions <= shown
    for name in functions - {"list_runs"}:
        assert "Raises:" in (getattr(engine, name).__doc__ or "")


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_examples_do_what_they_say(example: doctest.DocTest, run: api.OpenRun, workplace: Path) -> None:
    example.globs = {"engine": engine, "run": run}
    runner = doctest.DocTestRunner()
    runner.run(example)
    assert not runner.failures


def test_the_tour_runs(workplace: Path, run: api.OpenRun) -> None:
    scope: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", TOUR.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(TOUR), "exec"), scope)
    assert isinstance(scope["run"], engine.OpenRun)
    assert (workplace / "europe.sssom.tsv").exists()


def test_runs_are_where_the_environment_says_unless_a_folder_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, named = tmp_path / "here", tmp_path / "named"
    written = write_run(sample_run(), named)
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("DUAL_AMN_MODELS", str(named))
    assert engine.list_runs()["run"].tolist() == [written]
    assert engine.open_run(written).models == named
    engine.export(written, "links.csv")
    assert engine.list_runs("models").empty
    monkeypatch.setenv("DUAL_AMN_MODELS", "")
    assert engine.list_runs().empty
    with pytest.raises(engine.errors.RunNotFoundError):
        engine.open_run(written)
    assert sorted(path.name for path in here.iterdir()) == ["links.csv"]


def test_the_command_line_finds_the_same_run(run: api.OpenRun, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "sample_data/europe", "--set", "training.epochs=20", "--set", "encoder.dim=32", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == run.id


def test_settings_of_another_section_are_refused_in_reading(workplace: Path) -> None:
    with pytest.raises(engine.errors.ConfigError, match=r"settings of the section data apply here; got encoder\.dim"):
        engine.read("sample_data/europe", settings={"encoder.dim": 8})


def test_an_import_s_settings_are_the_start_of_a_training(tmp_path: Path) -> None:
    data = tmp_path / "mine"
    shutil.copytree(ROOT / "sample_data" / "europe", data)
    (data / "import.json").write_text(json.dumps({"settings": {"data.name_attribute": "label"}}), encoding="utf-8")
    assert api.configure(data).data.name_attribute == "label"
    assert api.configure(data, settings={"data.name_attribute": "name"}).data.name_attribute == "name"


@pytest.mark.parametrize(
    ("name", "message"), [("a.sssom.tsv", "sssom"), ("A.CSV", "csv"), ("b.tsv", "tsv"), ("c.nt", "ntriples"), ("d.parquet", "parquet")]
)
def test_a_format_is_known_by_the_file_s_ending(name: str, message: str) -> None:
    assert api.format_of(name).name == message
    with pytest.raises(engine.errors.ConfigError, match=r"the ending of 'x\.docx' does not determine a format"):
        api.format_of("x.docx")


def test_matches_are_those_of_the_command_line(run: api.OpenRun) -> None:
    found = run.matches("Sweden", top=3)
    entity = run.view.resolve("Sweden")
    assert found["uri"].tolist() == [match.uri for match in run.view.matches(entity.side, entity.index, 3)]
    assert isinstance(run.alignment(), pd.DataFrame)


@pytest.mark.parametrize("hops", [1, 2])
def test_a_neighbourhood_is_what_a_search_in_breadth_finds(run: api.OpenRun, hops: int) -> None:
    entity = run.view.resolve("Sweden")
    triples = run.table("triples").query("graph == @entity.side")
    whole = nx.MultiDiGraph()
    uris = run.view.graphs[entity.side].uris
    whole.add_edges_from((uris[head], uris[tail]) for head, tail in zip(triples["head"], triples["tail"], strict=True))
    around = run.neighbourhood("Sweden", hops)
    distance = nx.single_source_shortest_path_length(whole.to_undirected(as_view=True), entity.uri, cutoff=hops)
    assert {one: around.nodes[one]["hops"] for one in around} == distance
    expected = [(head, tail) for head, tail in whole.edges() if min(distance.get(head, hops), distance.get(tail, hops)) < hops]
    assert sorted(around.edges()) == sorted(expected)
    with pytest.raises(engine.errors.ConfigError, match="hops must be at least 1"):
        run.neighbourhood("Sweden", 0)


def test_progress_reaches_a_listener(workplace: Path, small_europe: Path) -> None:
    events: list[object] = []
    engine.train(small_europe, seed=3, settings={"training.epochs": 1, "encoder.dim": 8}, progress=events.append)
    assert events
