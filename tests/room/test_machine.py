"""What ran out is one sentence, wherever it happens: on the command line with code 2, in the app, in the queue."""

from __future__ import annotations

import errno
import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from numba.core.caching import IndexDataCacheFile

from engine.api import open_run
from engine.cli import main as command_line
from engine.errors import DataError, DataImportError, EngineError, ExportError, JobError, MachineError, RunError
from engine.exporting.merged.split import write_tables
from engine.importing.staging import Upload, find_staged, stage
from engine.jobs import JobQueue
from engine.jobs.trainer import NO_MEMORY, work
from engine.reporting import write_report
from engine.runs import RunStore
from engine.runs.cleanup import back_up
from engine.util.files import replacing
from engine.util.kernel_cache import compile_cached
from engine.util.machine import as_machine_error, damage_apart, is_out_of_memory
from engine.util.memory import available_memory, limit_leaves
from tests.conftest import ROOT
from tests.jobs.conftest import MakePlan
from tests.run_fixture import sample_run, write_run


def out_of_memory_of_torch() -> RuntimeError:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    return caught.value


SHORTAGES: dict[str, tuple[Callable[[], Exception], str]] = {
    "disk": (lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "there/a"), "there/a: no space left on device; free some space"),
    "quota": (lambda: OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "free some space"),
    "permission": (lambda: PermissionError(errno.EACCES, os.strerror(errno.EACCES), "a\nb"), r"a\nb: permission denied; make it writable"),
    "read-only": (lambda: OSError(errno.EROFS, os.strerror(errno.EROFS), "a"), "read-only file system"),
    "open files": (lambda: OSError(errno.EMFILE, os.strerror(errno.EMFILE), "a"), "too many open files; raise the limit of open files"),
    "gone": (lambda: FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "a"), "check that the folder is still there"),
    "disk error": (lambda: OSError(errno.EIO, os.strerror(errno.EIO), "a"), "input/output error; check the disk"),
    "memory": (MemoryError, "out of memory; close other programs"),
    "memory of Arrow": (lambda: pa.ArrowMemoryError("malloc of size 64 failed"), "out of memory"),
    "memory of torch": (out_of_memory_of_torch, "out of memory"),
    "memory of C++": (lambda: RuntimeError("std::bad_alloc"), "out of memory"),
    "memory for a map": (lambda: OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "out of memory"),
    "threads": (lambda: RuntimeError("can't start new thread"), "no more threads"),
    "database": (lambda: sqlite3.OperationalError("disk I/O error"), "a database cannot be used (disk I/O error)"),
}


@pytest.mark.parametrize("kind", SHORTAGES)
def test_every_shortage_is_one_sentence_and_code_2(kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    make, words = SHORTAGES[kind]

    def fail(self: RunStore) -> None:
        raise make()

    monkeypatch.setattr(RunStore, "list", fail)
    assert command_line.main(["runs"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert words in said
    assert said.count("\n") == 1
    assert said.endswith(".\n")


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError("shape mismatch"), OSError("no number"), sqlite3.IntegrityError("x")])
def test_defects_of_ours_are_no_shortage(error: Exception) -> None:
    assert as_machine_error(error) is None
    assert not is_out_of_memory(error)


def test_a_shortage_is_not_taken_for_damage() -> None:
    for error in (pa.ArrowMemoryError("malloc of size 64 failed"), OSError(errno.EMFILE, "Too many open files"), MemoryError()):
        with pytest.raises(MachineError), damage_apart(Path("a")):
            raise error
    for damage in (pa.ArrowInvalid("magic bytes"), OSError("Couldn't deserialize thrift"), DataError("x")):
        with pytest.raises(type(damage)), damage_apart(Path("a")):
            raise damage


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [["options"], ["options", "--json"]])
def test_output_to_a_full_disk(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert command_line.main(words) == 2
        monkeypatch.undo()
    assert capsys.readouterr().err == NO_SPACE


NO_SPACE = "error: no space left on device; free some space, then try again.\n"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_of_a_process_to_a_full_disk() -> None:
    """The interpreter itself has nothing to add at its end."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        ended = subprocess.run([sys.executable, "-m", "engine", "options"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, NO_SPACE)


def test_a_folder_that_cannot_be_read_does_not_pass_for_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(sample_run(), tmp_path / "models")
    listed = Path.iterdir

    def limited(number: int, folder: Path) -> None:
        def iterdir(self: Path) -> object:
            if self == folder:
                raise OSError(number, os.strerror(number), str(self))
            return listed(self)

        monkeypatch.setattr(Path, "iterdir", iterdir)

    limited(errno.EACCES, tmp_path / "models")
    with pytest.raises(EngineError, match="permission denied"):
        RunStore(tmp_path / "models").list()
    limited(errno.EMFILE, tmp_path / "models" / "towns")
    with pytest.raises(EngineError, match="Too many open files"):
        RunStore(tmp_path / "models").list()
    limited(errno.EACCES, tmp_path / "models" / "lost+found")
    (tmp_path / "models" / "lost+found").mkdir()
    assert len(RunStore(tmp_path / "models").list()) == 1


def test_no_open_files_left_is_not_a_broken_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(sample_run(), tmp_path / "models")
    monkeypatch.setattr(Path, "read_bytes", lambda self: (_ for _ in ()).throw(OSError(errno.EMFILE, "Too many open files", str(self))))
    with pytest.raises(EngineError, match="ulimit"):
        RunStore(tmp_path / "models").list()


def test_a_backup_leaves_nothing_out_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(sample_run(), tmp_path / "models")
    (tmp_path / "data" / "mine" / "part").mkdir(parents=True)
    scandir = os.scandir

    def limited(path: os.PathLike[str] | str) -> object:
        if os.fspath(path).endswith("part"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", limited)
    with pytest.raises(ExportError, match="permission denied"):
        back_up(tmp_path / "models", tmp_path / "data", tmp_path / "all.tar")
    assert not (tmp_path / "all.tar").exists()


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_that_cannot_be_written_leaves_no_part_of_it(durable: bool, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")
    half = replacing(path, durable=durable)
    half.__enter__().write_bytes(b"half")
    error = OSError(errno.ENOSPC, "full")
    assert not half.__exit__(OSError, error, None), "it is raised on"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"before"


@pytest.mark.parametrize("nth", range(8))
def test_tables_are_put_together_or_not_at_all(nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"triples_source": [("a", "r", "b")], "triples_target": [("c", "s", "d")], "links": [("a", "c", "match")]}
    write_tables(rows, tmp_path, force=False)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    calls, replace = [0], os.replace

    def limited(start: str, end: str) -> None:
        calls[0] += 1
        if calls[0] == nth:
            raise OSError(errno.EIO, "Input/output error")
        replace(start, end)

    monkeypatch.setattr(os, "replace", limited)
    changed = {**rows, "links": [("a", "d", "match")]}
    if 1 <= nth <= 6:
        with pytest.raises(ExportError, match=r"input/output error"):
            write_tables(changed, tmp_path, force=True)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    else:
        write_tables(changed, tmp_path, force=True)
        assert {path.name for path in tmp_path.iterdir()} == set(before)
        assert (tmp_path / "links.parquet").read_bytes() != before["links.parquet"]


def test_a_training_without_memory_or_room_says_so(models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = JobQueue(models)
    for error, words in (
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."), NO_MEMORY),
        (OSError(errno.EMFILE, "Too many open files", "x"), "x: too many open files; raise the limit"),
    ):
        monkeypatch.setattr("engine.jobs.trainer.train_run", lambda *_, error=error, **__: (_ for _ in ()).throw(error))
        job = queue.submit(plan(5)).job
        work(models, successor=lambda _: None)
        after = queue.find(job.id)
        assert after.state == "failed"
        assert after.message.startswith(words)


def test_a_backup_names_the_runs_that_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data"))
    for run_id in ("basic-s0-0123abcd", "basic-s1-0123abcd"):
        write_run(sample_run(), tmp_path / "models", run_id=run_id)
    (tmp_path / "models" / "towns" / "basic-s1-0123abcd" / "manifest.json").write_bytes(b"{}")
    words = ["backup", "--output", str(tmp_path / "all.tar"), "--models", str(tmp_path / "models"), "--json"]
    assert command_line.main(words) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["broken"] == ["towns/basic-s1-0123abcd"]
    assert said.err.startswith("warning: left out, since they cannot be opened: towns/basic-s1-0123abcd;")


@pytest.mark.parametrize("name", ["table", "tensor"])
def test_a_report_is_not_written_without_a_part_that_cannot_be_read_now(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = open_run(write_run(sample_run(), tmp_path / "models"), tmp_path / "models")
    error = OSError(errno.EMFILE, "Too many open files")

    def fail(*_: object, **__: object) -> None:
        raise RunError("cannot read: too many open files.") from error

    monkeypatch.setattr(type(run.run), name, fail)
    with pytest.raises(RunError, match="too many open files"):
        write_report(run, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_lost_job_is_shown_where_that_cannot_be_written(models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = JobQueue(models)
    queue.submit(plan())
    assert queue.take() is not None

    def full(self: JobQueue) -> None:
        raise JobError("the training queue cannot be used: the disk is full; free some space and try again.")

    with monkeypatch.context() as patch:
        patch.setattr(JobQueue, "settle", full)
        assert [job.state for job in queue.jobs()] == ["lost"]
    assert [job.state for job in queue.jobs()] == ["lost"]


def test_an_upload_that_cannot_be_read_for_the_moment_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data"))
    staged = stage([Upload("a.csv", io.BytesIO(b"head,relation,tail\na,r,b\n")), Upload("b.csv", io.BytesIO(b"head,relation,tail\nc,r,d\n"))])
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", lambda self, **_: (_ for _ in ()).throw(OSError(errno.EMFILE, "Too many open files", str(self))))
        with pytest.raises(DataImportError, match=r"this import cannot be read \(too many open files\); raise the limit"):
            find_staged(staged.token)
    assert find_staged(staged.token).token == staged.token


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "No space left on device"), EOFError()])
def test_kernels_that_cannot_be_kept_are_compiled(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fault

    for name in ("save", "load"):
        if name == "load" or isinstance(fault, OSError):
            monkeypatch.setattr(IndexDataCacheFile, name, fail)
    kernel = compile_cached(doubled)
    assert kernel(21) == 42


def doubled(number: int) -> int:
    return number + number


def test_a_command_with_hardly_any_memory_left_does_not_begin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("engine.util.memory.limit_leaves", lambda: 5.0 * 2**20)
    assert command_line.main(["runs"]) == 2
    assert capsys.readouterr().err.startswith("error: the memory limit of this process (ulimit -v) leaves 5 MiB, and at least 128 MiB are needed;")
    assert (available_memory() or 0) <= 5.0


def test_a_limit_of_addresses_counts_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_AS)
    assert limit_leaves() is None or limits[0] != resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**50, 2**50))
    assert 0 < (limit_leaves() or 0) < 2**50
