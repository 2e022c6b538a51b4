"""The guard of a whole run and of first views: what is compared, and that a step back fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import whole
from engine.errors import TrainingError

SERVER, BYTES = "server's share of entity", "megabytes of entity"


def records(server: float = 900.0, megabytes: float = 3.5, run: float = 2.0) -> list[Mapping[str, Any]]:
    about = {"machine": {}, "versions": {}, "commit": "0", "command": "x"}
    views = {SERVER: whole.rated(0.08, server), BYTES: whole.rated(whole.LONG, megabytes)}
    return [
        {"case": "whole run of europe", "conditions": {"threads": 2}, "phases": {"basic": whole.rated(20.0, run)}, **about},
        {"case": "first views of europe", "conditions": {"browser": True}, "phases": views, **about},
    ]


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "baseline.json"
    monkeypatch.setattr(whole, "measured", lambda *_: records())
    assert whole.main(["--record", str(path)]) == 0
    return path


@pytest.mark.parametrize(
    ("now", "code", "said"),
    [
        ({}, 0, ""),
        ({"megabytes": 8.2}, 1, f"first views of europe: {BYTES}"),
        ({"server": 2000.0}, 1, f"first views of europe: {SERVER}"),
        ({"server": 1500.0}, 0, ""),
        ({"run": 2.7}, 1, "whole run of europe: basic"),
        ({"run": 1.0}, 0, ""),
    ],
)
def test_a_step_back_fails(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], now: dict[str, float], code: int, said: str
) -> None:
    monkeypatch.setattr(whole, "measured", lambda *_: records(**now))
    assert whole.main(["--baseline", str(recorded)]) == code
    complaints = [line for line in capsys.readouterr().err.splitlines() if line.startswith("regression: ")]
    assert len(complaints) == code
    assert all(said in line for line in complaints)


def test_what_is_recorded_can_be_read_by_all_guards(recorded: Path) -> None:
    cases = json.loads(recorded.read_text(encoding="utf-8"))["cases"]
    assert cases["first views of europe"]["phases"][BYTES] == {"ratio": 3.5, "seconds": 1.0}


def test_a_mistake_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def failing(*_: object) -> list[Mapping[str, Any]]:
        raise TrainingError("no data.")

    monkeypatch.setattr(whole, "measured", failing)
    assert whole.main([]) == 2
    assert capsys.readouterr().err == "error: no data.\n"


def test_the_project_has_a_record_of_both() -> None:
    cases = json.loads((Path(whole.__file__).parent / "baseline.json").read_text(encoding="utf-8"))["cases"]
    assert cases["whole run of europe"]["phases"]["basic"]["ratio"] > 0
    assert {name.partition(" of ")[0] for name in cases["first views of europe"]["phases"]} == {"server's share", "megabytes"}
