"""The clock is put forward and back by hours: nothing is taken for dead or old by it alone, nothing is negative."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from filelock import FileLock

from app import text
from engine.config import RunConfig
from engine.importing.preview import understand
from engine.importing.source import Corrections
from engine.importing.staging import PARTIAL, STAGING, clean_up
from engine.importing.store import write as write_import
from engine.jobs import JobQueue, is_starting, read_news
from engine.jobs.progress import Reporter
from engine.jobs.trainer import work
from engine.reviews import LEASE_SECONDS, ReviewStore
from engine.runs import RunStore
from engine.util.files import new_file
from engine.util.paths import jobs_folder, starting_mark, trainer_lock
from tests.importing.conftest import GRAPH_1, GRAPH_2, LINKS, files
from tests.jobs.conftest import MakePlan

HOURS = 3600.0
JUMPS = (-30 * HOURS, -5 * HOURS, 5 * HOURS, 30 * HOURS)
DATA = "0" * 64


class Clock:
    """Seconds since 1970 with a jump at each call, forth and back."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> float:
        self.calls += 1
        return 1.7e9 + self.calls + JUMPS[self.calls % len(JUMPS)]


@pytest.mark.parametrize("jump", JUMPS)
def test_a_worker_that_holds_its_lock_is_alive_whatever_the_clock_says(
    jump: float, models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = JobQueue(models)
    queue.submit(plan())
    with FileLock(trainer_lock(models)):
        assert queue.take() is not None
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + jump)
        assert [job.state for job in queue.jobs()] == ["running"]
    assert [job.state for job in queue.jobs()] == ["lost"]


@pytest.mark.parametrize("jump", JUMPS)
def test_a_worker_is_not_starting_for_hours(jump: float, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs_folder(models).mkdir(parents=True)
    starting_mark(models).touch()
    assert is_starting(models)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + jump)
    assert not is_starting(models)


def test_a_training_under_a_jumping_clock_is_measured_by_a_steady_one(models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    queue = JobQueue(models)
    job = queue.submit(plan()).job
    began = time.monotonic()
    work(models, successor=lambda _: None)
    took = time.monotonic() - began
    after = queue.find(job.id)
    assert after.state == "finished"
    manifest = RunStore(models).find(after.run).manifest
    for seconds in (manifest["seconds"], manifest["training"]["seconds"], *manifest["phases"].values()):
        assert 0 <= seconds <= took + 1
    news = read_news(models, job.id)
    assert news is not None
    assert 0 <= news.seconds <= took
    assert news.remaining is None or news.remaining >= 0


def test_signs_of_life_go_on_after_the_clock_was_put_back(models: Path) -> None:
    jobs_folder(models).mkdir(parents=True)
    now, steady = [1e9], [0.0]
    reporter = Reporter(models, "0" * 8, clock=lambda: now[0], steady=lambda: steady[0])
    now[0] -= 5 * HOURS
    steady[0] += 10
    reporter.step()
    news = read_news(models, "0" * 8)
    assert news is not None
    assert news.step == 1


@pytest.mark.parametrize("jump", JUMPS)
def test_a_pair_is_reserved_neither_for_ever_nor_for_hours(jump: float, tmp_path: Path) -> None:
    now = [1.7e9]
    store = ReviewStore(tmp_path / "reviews.sqlite3", clock=lambda: now[0])
    pair = ("a", "b")
    assert store.claim(DATA, "Ann", [pair]) == [pair]
    now[0] += jump
    first = store.claim(DATA, "Bob", [pair])
    assert first == ([] if jump < 0 else [pair]), "after a jump forth the reservation is over"
    now[0] += LEASE_SECONDS + 1
    assert store.claim(DATA, "Bob", [pair]) == [pair]
    store.close()


def test_an_import_that_looks_old_fails_whole_or_is_stored_whole(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is put forward by two days while tables are written, and another process clears up."""
    folder = tmp_path / "imported"
    monkeypatch.setenv("DUAL_AMN_DATA", str(folder))
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS)
    understood = understand(material, Corrections())
    rename = os.rename

    def meanwhile(start: Path, end: Path) -> None:
        if PARTIAL in str(start) and STAGING not in str(end):
            with monkeypatch.context() as patch:
                now = time.time()
                patch.setattr(time, "time", lambda: now + 48 * HOURS)
                assert clean_up() == 1
        rename(start, end)

    monkeypatch.setattr(os, "rename", meanwhile)
    with pytest.raises(Exception, match="mine cannot be stored"):
        write_import(understood, material, Corrections(), "mine")
    assert list(folder.iterdir()) == []
    monkeypatch.setattr(os, "rename", rename)
    assert write_import(understood, material, Corrections(), "mine").name == "mine"


def test_two_servers_may_clear_up_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path))
    for number in range(3):
        (tmp_path / f"{STAGING}{number}").mkdir()
    lstat = Path.lstat

    def taken_meanwhile(self: Path) -> os.stat_result:
        if self.name == f"{STAGING}1":
            self.rmdir()
        return lstat(self)

    monkeypatch.setattr(Path, "lstat", taken_meanwhile)
    assert clean_up(older_than=-1.0) == 2


@pytest.mark.parametrize("jump", JUMPS)
def test_an_export_that_another_process_writes_is_left_alone(jump: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    with new_file(path) as file:
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + jump)
        with new_file(path, force=True) as other:
            other.write(b"theirs")
        path.unlink()
        file.write(b"mine")
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("jump", JUMPS)
def test_ages_are_never_negative(jump: float) -> None:
    now = datetime.now(UTC)
    assert "-" not in text.age((now + timedelta(seconds=jump)).isoformat(), now)
    assert RunConfig().seed == 0
