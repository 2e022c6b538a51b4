"""Why a worker is gone: out of memory, killed, crashed, or the machine restarted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.jobs import JobQueue, endings, launch, start_trainer
from engine.jobs.endings import KILLED, KILLED_BY_HAND, LOST, OUT_OF_MEMORY, RESTARTED, note_begin, note_end, why_lost
from engine.util.memory import out_of_memory_counter, out_of_memory_kills
from engine.util.paths import jobs_folder
from tests.jobs.conftest import MakePlan


@pytest.fixture
def counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's count of processes that were ended for lack of memory, as control groups of version 2 have it."""
    place = tmp_path / "memory.events"
    place.write_text("low 0\noom 0\noom_kill 3\n", encoding="ascii")
    monkeypatch.setattr(endings, "out_of_memory_counter", lambda: place)
    return place


def begun(models: Path) -> None:
    jobs_folder(models).mkdir(parents=True, exist_ok=True)
    note_begin(models)


def test_out_of_memory_is_named(models: Path, counter: Path) -> None:
    begun(models)
    assert why_lost(models) == LOST
    counter.write_text("low 0\noom 1\noom_kill 4\n", encoding="ascii")
    assert why_lost(models) == OUT_OF_MEMORY
    note_end(models, os.getpid(), -signal.SIGKILL)
    assert why_lost(models) == OUT_OF_MEMORY


def test_a_kill_without_a_count_is_probably_for_lack_of_memory(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "out_of_memory_counter", lambda: None)
    begun(models)
    note_end(models, os.getpid(), -signal.SIGKILL)
    assert why_lost(models) == KILLED
    assert "probably for lack of memory" in KILLED


def test_a_kill_that_the_system_did_not_count_is_none_of_its_own(models: Path, counter: Path) -> None:
    begun(models)
    note_end(models, os.getpid(), -signal.SIGKILL)
    assert why_lost(models) == KILLED_BY_HAND


def test_a_crash_has_its_name(models: Path, counter: Path) -> None:
    begun(models)
    note_end(models, os.getpid(), -signal.SIGSEGV)
    assert "crashed (SIGSEGV)" in why_lost(models)


def test_the_end_of_an_earlier_worker_is_not_taken_for_this_one(models: Path, counter: Path) -> None:
    begun(models)
    note_end(models, os.getpid() + 1, -signal.SIGKILL)
    assert why_lost(models) == LOST


def test_a_restarted_machine_is_named(models: Path, counter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(models)
    (tmp_path / "boot").write_text("another\n", encoding="ascii")
    monkeypatch.setattr(endings, "BOOT", tmp_path / "boot")
    assert why_lost(models) == RESTARTED


@pytest.mark.parametrize("content", ["", "[]", "{", '{"process": "x", "kills": "many", "counter": 7}', "\x00", "[" * 100_000])
def test_notes_that_are_none(content: str, models: Path) -> None:
    assert why_lost(models) == LOST
    jobs_folder(models).mkdir(parents=True)
    for name in (endings.BEGUN, endings.ENDED):
        (jobs_folder(models) / name).write_text(content, encoding="utf-8")
    assert why_lost(models) in (LOST, RESTARTED)


def test_counts_of_both_kinds_of_control_groups_are_found(tmp_path: Path) -> None:
    groups, system = tmp_path / "cgroup", tmp_path / "proc"
    (system / "self").mkdir(parents=True)
    (system / "self" / "cgroup").write_text("4:memory:/own\n0::/service\n", encoding="ascii")
    assert out_of_memory_counter(groups, system) is None
    (system / "vmstat").write_text("nr_free 7\noom_kill 1\n", encoding="ascii")
    for number, place in enumerate([groups / "memory" / "own" / "memory.oom_control", groups / "service" / "memory.events"], start=5):
        place.parent.mkdir(parents=True)
        before = out_of_memory_counter(groups, system)
        place.write_text(f"under_oom 0\noom_kill {number}\n", encoding="ascii")
        found = out_of_memory_counter(groups, system)
        assert found == place != before
        assert out_of_memory_kills(place) == number


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_who_started_the_worker_notes_how_it_ended(models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that takes its job and is killed: the next look names the kill, without waiting for luck."""
    queue = JobQueue(models)
    job = queue.submit(plan()).job
    queue.take()
    program = "import os, signal, sys; open(sys.argv[1], 'w').write(sys.argv[2] % os.getpid()); os.kill(os.getpid(), signal.SIGKILL)"
    note = json.dumps({"process": 0, "boot": endings._boot()}).replace("0", "%d", 1)
    popen, words = subprocess.Popen, [sys.executable, "-S", "-c", program, str(jobs_folder(models) / endings.BEGUN), note]
    monkeypatch.setattr(launch.subprocess, "Popen", lambda _, **options: popen(words, **options))
    monkeypatch.setattr(launch, "NOTE_SECONDS", 60.0)
    start_trainer(models)
    launch.await_note(models)
    after = queue.find(job.id)
    assert after.state == "lost"
    assert after.message == KILLED


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group that holds little memory; for the superuser alone, and for systems with version 1 of them."""
    group = Path("/sys/fs/cgroup/memory") / f"dual-amn-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(96 * 2**20), encoding="ascii")
    except OSError:
        pytest.skip("needs control groups of version 1 that may be written to")
    yield group
    wait_until_empty(group)
    group.rmdir()


def wait_until_empty(group: Path) -> None:
    until = time.monotonic() + 60
    while (group / "tasks").read_text(encoding="ascii") and time.monotonic() < until:
        time.sleep(0.05)


@pytest.mark.slow
def test_the_system_really_ends_a_worker_for_lack_of_memory(small_group: Path, models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = JobQueue(models)
    job = queue.submit(plan()).job
    program = (
        "import os, sys; from pathlib import Path\n"
        "from engine.jobs.endings import note_begin; from engine.jobs.queue import JobQueue\n"
        "Path(sys.argv[2], 'tasks').write_text(str(os.getpid()))\n"
        "models = Path(sys.argv[1]); note_begin(models); JobQueue(models).take()\n"
        "kept = [bytearray(b'x' * 2**20) for _ in range(4096)]"
    )
    popen, words = subprocess.Popen, [sys.executable, "-c", program, str(models), str(small_group)]
    monkeypatch.setattr(launch.subprocess, "Popen", lambda _, **options: popen(words, **options))
    monkeypatch.setattr(launch, "NOTE_SECONDS", 120.0)
    start_trainer(models)
    launch.await_note(models)
    after = queue.find(job.id)
    assert (after.state, after.message) == ("lost", OUT_OF_MEMORY)
    assert queue.resume(job.id).state == "queued"
