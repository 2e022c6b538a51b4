"""The regression guard: what counts as worse, and what cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.baseline import best_of, compare, complaints, load, save
from engine.errors import ConfigError

CONDITIONS = {"device": "cpu", "threads": 2}


def measured(ratio: float, seconds: float = 1.0, case: str = "synthetic 10", **conditions: Any) -> Mapping[str, Any]:
    phases = {"loss": {"best_ratio": ratio, "seconds": seconds}, "unrated": {"best_ratio": None, "seconds": 1.0}}
    about = {"machine": {}, "versions": {}, "commit": "0", "command": "x"}
    return {"case": case, "conditions": {**CONDITIONS, **conditions}, "phases": phases, **about}


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    path = tmp_path / "baseline.json"
    save(path, [measured(2.0)])
    return path


@pytest.mark.parametrize(("ratio", "verdict"), [(2.0, "as before"), (2.59, "as before"), (2.61, "WORSE"), (1.5, "better")])
def test_a_ratio_is_judged_by_the_tolerance(baseline: Path, ratio: float, verdict: str) -> None:
    found = compare(load(baseline), [measured(ratio)], 1.3)
    assert [(one.phase, one.verdict) for one in found] == [("loss", verdict)]
    assert bool(complaints(found, 1.3)) == (verdict == "WORSE")


def test_a_complaint_names_case_and_phase(baseline: Path) -> None:
    (said,) = complaints(compare(load(baseline), [measured(4.0)]), 1.3)
    assert said == "regression: synthetic 10: loss takes 4.00 times its ceiling, recorded were 2.00 (x 2.00, tolerated x 1.3)."


@pytest.mark.parametrize(("ratio", "verdict"), [(1400.0, "as before"), (1990.0, "as before"), (2010.0, "WORSE")])
def test_a_phase_that_waits_for_the_interpreter_has_more_room(tmp_path: Path, ratio: float, verdict: str) -> None:
    path = tmp_path / "baseline.json"
    save(path, [measured(1000.0)])
    found = compare(load(path), [measured(ratio)], 1.3)
    assert [one.verdict for one in found] == [verdict]
    assert [said.endswith("tolerated x 2).") for said in complaints(found, 1.3)] == [True] * (verdict == "WORSE")


def test_short_phases_are_not_compared_unless_they_became_long(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    save(path, [measured(2.0, seconds=0.001)])
    assert compare(load(path), [measured(9.0, seconds=0.005)])[0].verdict == "too short to compare"
    assert compare(load(path), [measured(90.0, seconds=0.05)])[0].verdict == "WORSE"


def test_recording_keeps_other_cases(baseline: Path) -> None:
    save(baseline, [measured(3.0, case="synthetic 20")])
    save(baseline, [measured(5.0)])
    assert {name: case["phases"]["loss"]["ratio"] for name, case in load(baseline).items()} == {"synthetic 10": 5.0, "synthetic 20": 3.0}


def test_a_new_case_beside_a_known_one_is_no_regression(baseline: Path) -> None:
    found = compare(load(baseline), [measured(2.0), measured(9.0, case="synthetic 20")])
    assert [one.verdict for one in found] == ["as before", "not recorded"]


def test_nothing_in_common_is_an_error(baseline: Path) -> None:
    with pytest.raises(ConfigError, match=r"'synthetic 20'.*which has synthetic 10; record them"):
        compare(load(baseline), [measured(9.0, case="synthetic 20")])


def test_other_conditions_are_an_error(baseline: Path) -> None:
    with pytest.raises(ConfigError, match=r"threads=2 \(now 8\)"):
        compare(load(baseline), [measured(2.0, threads=8)])


def test_the_better_of_two_measurements_counts(baseline: Path) -> None:
    first, second = [measured(4.0), measured(2.1)], [measured(2.2), measured(9.0)]
    found = best_of(first, second)
    assert [one["phases"]["loss"]["best_ratio"] for one in found] == [2.2, 2.1]
    assert found[0]["phases"]["unrated"]["best_ratio"] is None
    assert not complaints(compare(load(baseline), found), 1.3)


@pytest.mark.parametrize(
    "content",
    [
        "nonsense",
        "[]",
        '{"format": 2, "cases": {}}',
        '{"format": 1, "cases": {"a": {"conditions": {}, "phases": {"loss": {"ratio": "x", "seconds": 1}}}}}',
        '{"format": 1, "cases": {"a": {"conditions": {}, "phases": {"loss": {"ratio": 0, "seconds": 1}}}}}',
        '{"format": 1, "cases": {"a": {"phases": {}}}}',
    ],
)
def test_a_file_that_is_no_baseline_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    for work in (lambda: load(path), lambda: save(path, [measured(1.0)])):
        with pytest.raises(ConfigError, match=r"file\.json: this is no"):
            work()
    assert path.read_text() == content


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="make one with --record"):
        load(tmp_path / "none.json")


def test_the_recorded_baseline_is_one(repository: Path) -> None:
    cases = load(repository / "benchmarks" / "baseline.json")
    steps = [case for name, case in cases.items() if name.startswith("synthetic")]
    assert steps
    assert all({"forward", "loss", "backward", "search"} <= set(case["phases"]) for case in steps)
    assert {"whole run of europe", "first views of europe"} <= set(cases)


def test_the_file_is_json_for_people(baseline: Path) -> None:
    found = json.loads(baseline.read_text())
    assert found["format"] == 1
    assert found["cases"]["synthetic 10"]["conditions"] == CONDITIONS
