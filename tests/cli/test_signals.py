"""Termination signals, hang-ups and Ctrl-C: one sentence, an exit code, nothing half-written, and the same command works again."""

from __future__ import annotations

import gc
import importlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.served_app import wait_for
from engine.cli.main import main
from engine.data.library import data_sets
from engine.runs import RunStore
from tests.conftest import ROOT
from tests.data.writers import small_sample, write_openea
from tests.processes import Forked
from tests.run_fixture import analysed, sample_run, write_run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")

HOW = {signal.SIGTERM: "ended by a termination signal", signal.SIGHUP: "ended by a hang-up: the terminal was closed", signal.SIGINT: "interrupted"}
PATIENCE = 60  # seconds
TINY = [f"--set={one}" for one in ("encoder.dim=8", "encoder.proxies=4", "training.threads=1", "training.precision=float32")]


@pytest.fixture(autouse=True)
def hang_ups_count() -> Iterator[None]:
    """Even where the tests themselves were started with nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_openea(tmp_path / "rings", small_sample())
    monkeypatch.setenv("DUAL_AMN_DATA", str(tmp_path / "data"))
    return tmp_path / "rings"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is only read."""
    folder = tmp_path_factory.mktemp("models")
    write_run(analysed(sample_run()), folder)
    return folder


def signalled(patch: pytest.MonkeyPatch, place: str, number: signal.Signals) -> None:
    """The process gets a signal when it calls this function, once."""
    module, _, name = place.partition(":")
    owner, _, name = name.rpartition(".")
    home = importlib.import_module(module)
    home = getattr(home, owner) if owner else home
    real: Callable[..., Any] = getattr(home, name)
    raised = list[int]()

    def attempt(*arguments: Any, **options: Any) -> Any:
        if not raised:
            raised.append(number)
            signal.raise_signal(number)
        return real(*arguments, **options)

    patch.setattr(home, name, attempt)


def visible(folder: Path) -> set[str]:
    """What is in a folder, hidden names as well."""
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("engine.cli.importing:understand", signal.SIGINT),
        ("engine.importing.store:_record", signal.SIGHUP),
        ("engine.importing.store:_move", signal.SIGTERM),
    ],
)
def test_an_import_that_is_ended_stores_nothing(
    place: str, number: signal.Signals, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {at: signal.getsignal(at) for at in HOW}
    command = ["import", str(data), "--name", "mine"]
    with monkeypatch.context() as patch:
        signalled(patch, place, number)
        assert main(command) == 128 + number
    assert capfd.readouterr().err == f"{HOW[number]}.\n"
    assert {at: signal.getsignal(at) for at in HOW} == before
    assert visible(tmp_path / "data") == set()
    assert main(command) == 0
    assert [one.name for one in data_sets() if one.imported] == ["mine"]


@pytest.mark.parametrize(
    ("command", "place", "number"),
    [
        (["export", "--format", "csv"], "engine.exporting.formats.simple:_write_text", signal.SIGHUP),
        (["export", "--format", "csv"], "engine.exporting.formats.simple:_write_text", signal.SIGINT),
        (["export", "--format", "merged"], "engine.exporting.merged.files:graph_statements", signal.SIGTERM),
        (["export", "--format", "merged-parquet"], "engine.exporting.merged.files:graph_statements", signal.SIGTERM),
        (["export", "--format", "sssom"], "engine.util.files:_put", signal.SIGTERM),
        (["report"], "engine.reporting.document:new_file", signal.SIGTERM),
        (["backup"], "engine.runs.cleanup:_add_folder", signal.SIGTERM),
    ],
)
def test_a_file_in_the_making_is_removed(
    command: list[str],
    place: str,
    number: signal.Signals,
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    run = [] if command[0] == "backup" else ["towns/basic-s0-0123abcd"]
    words = [command[0], *run, *command[1:], "--output", str(out / "file.tar"), "--models", str(models)]
    with monkeypatch.context() as patch:
        signalled(patch, place, number)
        assert main(words) == 128 + number
    assert capfd.readouterr().err == f"{HOW[number]}.\n"
    assert visible(out) == set()
    assert main(words) == 0
    assert visible(out) == {"file.tar"}


def test_a_training_that_is_ended_while_it_is_written_is_finished(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    signalled(monkeypatch, "engine.pipeline.training:finish_run", signal.SIGTERM)
    assert main(["train", str(data), "--models", str(tmp_path / "models"), "--epochs", "2", *TINY]) == 0
    assert "Stopping after this step" in capfd.readouterr().err
    assert [one.state for one in RunStore(tmp_path / "models").list()] == ["finished"]


def test_a_terminal_that_hangs_up_twice_asks_for_no_more_than_once(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for place in ("engine.pipeline.training:prepared_trainer", "engine.pipeline.training:finish_run"):
        signalled(monkeypatch, place, signal.SIGHUP)
    command = ["train", str(data), "--models", str(tmp_path / "models"), "--epochs", "2", *TINY]
    assert main(command) == 2
    assert "stopped before the first epoch was complete; the same command resumes." in capfd.readouterr().err
    signalled(monkeypatch, "engine.pipeline.training:prepared_trainer", signal.SIGTERM)
    signalled(monkeypatch, "engine.pipeline.training:RunCheckpoints.load", signal.SIGTERM)
    assert main(command) == 128 + signal.SIGTERM
    assert capfd.readouterr().err.endswith("ended by a termination signal; run the same command to resume from the last checkpoint.\n")
    assert main(command) == 0
    assert [one.state for one in RunStore(tmp_path / "models").list()] == ["finished"]


@pytest.mark.parametrize("number", HOW)
def test_a_signal_that_arrives_where_exceptions_are_dropped_ends_the_command_all_the_same(
    number: signal.Signals, data: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a finaliser, or in a function that compiled code calls; and what was interrupted there may fail when it is closed."""

    class Finalised:
        def __init__(self, end: Callable[[], object]) -> None:
            self.end = end

        def __del__(self) -> None:
            self.end()

    def understand(*_: object) -> None:
        half = Finalised(lambda: {}["half made"])
        Finalised(lambda: signal.raise_signal(number))
        time.sleep(PATIENCE)
        del half

    monkeypatch.setattr("engine.cli.importing.understand", understand)
    started = time.monotonic()
    assert main(["import", str(data), "--name", "mine"]) == 128 + number
    assert time.monotonic() - started < PATIENCE
    gc.collect()
    assert capfd.readouterr().err == f"{HOW[number]}.\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_at_random_moments(number: signal.Signals, data: Path, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a command is doing: it ends with a code of a signal or as if there had been none, at most one sentence, and nothing in the making."""
    draw, out = random.Random(number), tmp_path / "out"
    out.mkdir()
    run = "towns/basic-s0-0123abcd"
    commands = {
        "import": ["import", str(data), "--name", "mine"],
        "csv": ["export", run, "--output", str(out / "a.csv"), "--models", str(models)],
        "merged": ["export", run, "--format", "merged", "--output", str(out / "a.trig"), "--models", str(models)],
        "report": ["report", run, "--output", str(out / "a.html"), "--models", str(models)],
        "backup": ["backup", "--output", str(out / "a.tar"), "--models", str(models)],
    }
    for name, words in commands.items():
        for _ in range(8):
            process = Forked(words)
            time.sleep(draw.uniform(0.0, 1.0))
            if process.process.is_alive():
                process.send_signal(number)
            code, _, err = process.end(60)
            assert code in (0, 128 + number, -number) or "already" in err, err
            assert "Traceback" not in err
            assert err.count("\n") <= 1, err
            left = {one for one in visible(out) if one.startswith(".")} if code != -number else set()
            assert not left, (name, code, left)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGHUP, -signal.SIGHUP)])
def test_the_apps_server_ends_without_a_traceback(number: signal.Signals, code: int, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.address", "127.0.0.1", "--server.port", str(port)]
    environment = {**os.environ, "DUAL_AMN_MODELS": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", process)
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert b"Traceback" not in err
