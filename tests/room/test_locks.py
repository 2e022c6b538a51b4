"""Locks of network folders that fail or exclude nothing are refused in a sentence; process ids decide nothing."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import EngineError, JobError, MachineError
from engine.jobs import JobQueue, trainer_alive
from engine.jobs.endings import BEGUN
from engine.jobs.trainer import work
from engine.reviews import ReviewStore
from engine.runs import RunStore
from engine.util.locks import lock_is_held, may_be_held, take_lock
from engine.util.paths import jobs_folder, reviews_file, trainer_lock
from tests.jobs.conftest import MakePlan

LOCKLESS = ("ENOLCK", "EIO", "ENOSYS", "EOPNOTSUPP", "nothing")


@pytest.fixture(params=LOCKLESS)
def lockless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The system's locks fail with an error, or do nothing at all."""

    def flock(file: object, operation: int) -> None:
        if request.param != "nothing":
            raise OSError(getattr(errno, request.param), os.strerror(getattr(errno, request.param)))

    monkeypatch.setattr(fcntl, "flock", flock)
    return str(request.param)


def test_locks_that_do_not_work_are_refused(lockless: str, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"file locks do not work in .*; use a folder on a local disk"):
        take_lock(tmp_path / "lock", 0.1)
    if lockless != "nothing":
        with pytest.raises(MachineError, match="file locks do not work"):
            lock_is_held(tmp_path / "lock")
        assert may_be_held(tmp_path / "lock"), "what cannot be known to be dead is not deleted"


USES: dict[str, Callable[[Path, MakePlan], object]] = {
    "a run": lambda models, plan: RunStore(models).create("world", "one"),
    "reviews": lambda models, plan: ReviewStore(reviews_file(models)).claim("0" * 64, "Ann", [("a", "b")]),
    "the queue": lambda models, plan: JobQueue(models).submit(plan()),
    "a worker": lambda models, plan: work(models),
}


@pytest.mark.parametrize("use", USES)
def test_nothing_is_begun_without_locks(use: str, lockless: str, models: Path, plan: MakePlan) -> None:
    with pytest.raises(EngineError, match="file locks do not work"):
        USES[use](models, plan)


def test_a_worker_is_not_declared_dead_where_locks_fail(models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = JobQueue(models)
    queue.submit(plan())
    assert queue.take() is not None
    trainer_lock(models).touch()
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))))
        with pytest.raises(JobError, match="file locks do not work"):
            queue.jobs()
    assert [job.state for job in queue.jobs()] == ["lost"]


def test_a_lock_excludes_and_is_looked_at_without_taking_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not lock_is_held(path)
    lock = take_lock(path, 0.1)
    assert lock_is_held(path)
    with pytest.raises(TimeoutError):
        take_lock(path, 0.1)
    lock.release()
    assert not lock_is_held(path)


def test_a_process_id_that_another_program_has_by_now_means_nothing(models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is gone, and its process id is now ours: it is lost, and no signal is sent to us."""
    queue = JobQueue(models)
    job = queue.submit(plan()).job
    assert queue.take() is not None
    (jobs_folder(models) / BEGUN).write_text(json.dumps({"process": os.getpid(), "boot": ""}), encoding="utf-8")
    trainer_lock(models).write_text(str(os.getpid()), encoding="utf-8")
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal"))
    assert not trainer_alive(models)
    assert queue.find(job.id).state == "lost"
    assert queue.resume(job.id).state == "queued"
