"""Kills at random moments, a few of them with a tiny data set: nothing that was acknowledged is lost, and nothing half-written is seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.kills import PLACES, main, study
from benchmarks.kills.command import table
from benchmarks.kills.places import spread
from benchmarks.kills.victims import Tally
from tests.data.writers import small_sample, write_openea
from tests.small_europe import write_small_europe

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no forkserver")


@pytest.fixture
def rings(tmp_path: Path) -> Path:
    write_openea(tmp_path / "rings", small_sample())
    return tmp_path / "rings"


@pytest.mark.parametrize("place", ["basic", "review", "queue", "import"])
def test_a_few_kills(place: str, rings: Path, tmp_path: Path) -> None:
    (tally,) = study(rings, tmp_path / "study", 2, 6, [place]).values()
    assert tally.problems == []
    assert tally.same == tally.finished
    assert bool(tally.finished) == (place == "basic")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("place", PLACES)
def test_more_kills(place: str, tmp_path: Path) -> None:
    (tally,) = study(write_small_europe(tmp_path / "europe"), tmp_path / "study", 8, 1, [place]).values()
    assert tally.problems == []
    assert tally.kills
    assert tally.same == tally.finished


def test_kills_are_spread_and_their_finds_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given = spread(200, list(PLACES))
    assert sum(given.values()) == 200
    assert min(given.values()) == 10
    assert sum(spread(7, list(PLACES)).values()) == 7
    found = Tally(acknowledged=3)
    found.moments["writing"] += 2
    found.check(False, "a file is lost.")
    monkeypatch.setattr("benchmarks.kills.command.study", lambda *_: {"export": found})
    assert main([str(tmp_path)]) == 1
    assert table({"export": found}) in (shown := capsys.readouterr().out)
    assert "PROBLEM (export): a file is lost." in shown
