"""A run whose numbers are none although every checksum fits: one sentence from every command, never "nan" and never a traceback."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.cli.main import main
from engine.cli.options import print_json
from engine.errors import RunDamagedError
from engine.explore.alignment import alignments
from engine.runs.view import RunView
from tests.run_fixture import MemoryRun, analysed, sample_run, write_run


@pytest.fixture(scope="module")
def sound() -> MemoryRun:
    return analysed(sample_run())


def broken(run: MemoryRun, where: str, value: float) -> MemoryRun:
    """A copy in which one number is none: a row's, a tensor's first value, or a table's column."""
    name, _, key = where.partition(":")
    if name.endswith("_table"):
        table = run.tables[name.removesuffix("_table")].copy()
        table.loc[table.index[0], key] = value
        return replace(run, tables={**run.tables, name.removesuffix("_table"): table})
    tensors = deepcopy({group: dict(parts) for group, parts in run.tensors.items()})
    array = np.array(tensors[name][key])
    array[(0,) * array.ndim] = value
    tensors[name][key] = array
    return replace(run, tensors=tensors)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["embeddings:source", "embeddings:target", "hubness:source_all", "hubness:target_all"])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_match_is_a_sentence(
    sound: MemoryRun, where: str, value: float, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = RunView(sound).entity("source", 0)
    run = write_run(broken(sound, where, value), tmp_path)
    assert main(["match", run, f"source:{first.uri}", "--models", str(tmp_path), *options]) == 2
    said = capsys.readouterr()
    assert "is not a finite number" in said.err
    assert "nan" not in said.out
    assert "Traceback" not in said.err


@pytest.mark.parametrize("where", ["embeddings:source", "embeddings:target", "model:attention", "matches_table:csls"])
def test_so_is_everything_else(sound: MemoryRun, where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    view = RunView(sound)
    ends = [f"{side}:{view.entity(side, 0).uri}" for side in ("source", "target")]  # type: ignore[arg-type]
    run = write_run(broken(sound, where, np.nan), tmp_path)
    commands = {"explain": ["explain", run, *ends, "--json"], "evaluate": ["evaluate", run, "--pool", "all", "--json"]}
    if where == "matches_table:csls":
        commands = {"export": ["export", run, "--output", str(tmp_path / "out.csv")]}
    elif where == "model:attention":
        del commands["evaluate"]  # asks for no weights
    for command in commands.values():
        assert main([*command, "--models", str(tmp_path)]) == 2, command
        said = capsys.readouterr()
        assert "finite" in said.err
        assert said.err.count("\n") == 1
        assert not said.out


def test_probabilities_and_matches_are_looked_at(sound: MemoryRun) -> None:
    with pytest.raises(RunDamagedError, match=r"row 0, column 'csls' of matches.parquet is not a finite number"):
        alignments(RunView(broken(sound, "matches_table:csls", np.inf)))


def test_results_that_json_cannot_say(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunDamagedError, match="not finite"):
        print_json({"hits@1": float("nan")})
    print_json({"files": {"a"}, "path": Path("b")})
    assert capsys.readouterr().out == '{"files": ["a"], "path": "b"}\n'


def test_a_zero_vector_has_no_match(sound: MemoryRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    embeddings = dict(sound.tensors["embeddings"])
    embeddings["source"] = np.array(embeddings["source"])
    embeddings["source"][0] = 0.0
    run = replace(sound, tensors={**sound.tensors, "embeddings": embeddings})
    view = RunView(run)
    assert view.is_zero("source", 0)
    assert not view.is_zero("target", 0)
    assert view.matches("source", 0) == []
    assert view.pair(0, 0).rank_from_source == view.pool_size("target", "all")
    name = write_run(run, tmp_path)
    assert main(["match", name, f"source:{view.entity('source', 0).uri}", "--models", str(tmp_path)]) == 0
    assert "zero vector" in capsys.readouterr().out
