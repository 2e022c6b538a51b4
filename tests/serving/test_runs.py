"""Runs that are open: a few, each opened once, and never one that is not there any more."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest

from engine.errors import RunDamagedError, RunNotFoundError
from engine.serving import runs
from engine.serving.runs import OpenRuns, ServedRun
from tests.run_fixture import jolted, sample_run, write_run


def names(models: Path, count: int) -> list[str]:
    run = sample_run()
    return [write_run(run, models, run_id=f"basic-s{number}-0123abcd") for number in range(count)]


def test_the_least_recently_used_run_makes_room(tmp_path: Path) -> None:
    first, second, third = names(tmp_path, 3)
    opened = OpenRuns(tmp_path, most=2)
    kept = opened.get(first)
    opened.get(second)
    assert opened.get(first) is kept
    opened.get(third)
    assert len(opened) == 2
    assert opened.get(first) is kept


def test_threads_that_ask_at_once_open_a_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (name,) = names(tmp_path, 1)
    made = []

    class Slow(ServedRun):
        def __init__(self, *arguments: object) -> None:
            made.append(self)
            time.sleep(0.05)
            super().__init__(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(runs, "ServedRun", Slow)
    opened, found = OpenRuns(tmp_path), []
    threads = [threading.Thread(target=lambda: found.append(opened.get(name))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert found == made * 8


def test_a_run_that_was_replaced_is_opened_again_and_a_deleted_one_is_gone(tmp_path: Path) -> None:
    (name,) = names(tmp_path, 1)
    opened = OpenRuns(tmp_path)
    before = opened.get(name)
    shutil.rmtree(tmp_path / name)
    with pytest.raises(RunNotFoundError):
        opened.get(name)
    write_run(jolted(sample_run(), 0.5, 1), tmp_path, run_id=name.rpartition("/")[2])
    after = opened.get(name)
    assert after is not before
    assert after.view.matches("source", 0) != before.view.matches("source", 0)


def test_a_damaged_run_is_refused_each_time(tmp_path: Path) -> None:
    (name,) = names(tmp_path, 1)
    file = tmp_path / name / "matches.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    opened = OpenRuns(tmp_path)
    for _ in range(2):
        with pytest.raises(RunDamagedError):
            opened.get(name)
    assert len(opened) == 0


def test_other_runs_of_the_data_are_read_once_and_deleted_ones_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = names(tmp_path, 3)
    write_run(sample_run(manifest={"data": {**sample_run().manifest["data"], "fingerprint": "1" * 64}}), tmp_path, "other")
    opened = OpenRuns(tmp_path)
    found = dict(opened.siblings(first, "0" * 64))
    assert set(found) == {second, third}
    assert dict(opened.siblings(first, "0" * 64)) == found
    monkeypatch.setattr(runs, "LIST_SECONDS", -1.0)
    shutil.rmtree(tmp_path / second)
    assert dict(opened.siblings(first, "0" * 64)) == {third: found[third]}
