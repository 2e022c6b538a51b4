"""Numbers and what they count."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.cli import main
from engine.run_store import RunStore
from engine.wording import count
from tests.run_fixture import sample_run, write_run


def test_one_and_many() -> None:
    assert [count(number, "run") for number in (0, 1, 2, 1200)] == ["0 runs", "1 run", "2 runs", "1,200 runs"]
    assert [count(number, "entity is", "entities are") for number in (1, 2)] == ["1 entity is", "2 entities are"]


def test_a_backup_of_one_thing_counts_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data"))
    (tmp_path / "data" / "mine").mkdir(parents=True)
    (tmp_path / "data" / "mine" / "triples_1.tsv").write_text("a\tb\tc\n", encoding="utf-8")
    write_run(sample_run(), tmp_path / "models")
    assert len(RunStore(tmp_path / "models").list()) == 1
    assert main(["backup", "--output", str(tmp_path / "all.tar.gz"), "--models", str(tmp_path / "models")]) == 0
    told = capsys.readouterr().out
    assert "1 run, 1 imported data set" in told
    assert not re.search(r"\b1 \w+( data)? ?\w*s[,;.]", told)
