"""``queue``, ``train --queue`` and ``train --estimate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.cli import queue
from engine.cli.main import main
from engine.config import RunConfig
from engine.data import load_task
from engine.jobs import JobQueue, plan
from engine.jobs.trainer import work
from engine.model import exchange
from tests.jobs.conftest import SETTINGS

SET = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Where a trainer would have been started."""
    found: list[Path] = []
    monkeypatch.setattr("engine.cli.queue.start_trainer", found.append)
    return found


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def message(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(said(capsys, *words, "--json").splitlines()[-1])


def test_from_asking_to_the_run(data: Path, models: Path, capsys: pytest.CaptureFixture[str], started: list[Path]) -> None:
    where = ("--models", str(models))
    empty = said(capsys, "queue", *where)
    assert "the queue is empty" in empty
    assert f"train DATA --queue {' '.join(where)}'" in empty
    first = message(capsys, "train", str(data), *SET, "--queue", *where)
    assert (first["state"], first["position"], first["joined"]) == ("queued", 1, False)
    again = said(capsys, "train", str(data), *SET, "--queue", *where)
    assert "(already submitted)" in again
    assert f"next: python -m engine queue {' '.join(where)}" in again
    assert started == [models, models]
    assert "number 1" in said(capsys, "queue", *where)
    assert message(capsys, "queue", "--cancel", first["job"], *where)[0]["state"] == "cancelled"
    assert message(capsys, "queue", "--resume", first["job"], *where)[0]["state"] == "queued"
    work(models, successor=lambda models: None)
    (row,) = message(capsys, "queue", *where)
    assert (row["state"], row["run"], row["epoch"], row["epochs"]) == ("finished", first["training"], 6, 6)
    assert main(["train", str(data), *SET, "--queue", *where]) == 2
    assert "already exists" in capsys.readouterr().err


def test_an_estimate_of_several_processes_says_what_each_needs(
    data: Path, models: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, read = ("train", str(data), *SET, "--estimate", "--models", str(models)), []
    for module in (queue, plan):
        monkeypatch.setattr(module, "load_task", lambda *arguments: read.append(arguments) or load_task(*arguments))
    divided = message(capsys, *words, "--processes", "2")["divided"]
    assert len(read) == 1, "data may be large"
    assert divided["processes"] == 2
    assert 0 < divided["own"] <= load_task(data).num_entities
    assert divided["sent"] > 0
    assert divided["memory"] > 0
    assert divided["fetched"] == "all at once"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "FEW_ROWS", 0)
        patch.setattr(exchange, "MANY", 0.0)
        pieces = message(capsys, *words, "--processes", "2")["divided"]
    assert pieces["fetched"] == "partner by partner"
    assert pieces["sent"] > divided["sent"], "rows are fetched twice"
    assert "2 processes on machines of their own: about" in said(capsys, *words, "--processes", "2")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--estimate", "--processes", "1"), "--processes expects at least 2; got 1"),
        (("--estimate", "--processes", "5000"), "5000 processes cannot share"),
        (("--processes", "2"), "--processes has no effect here: it is for --estimate"),
    ],
)
def test_processes_that_cannot_be_are_refused(
    words: tuple[str, ...], reason: str, data: Path, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(data), "--models", str(models), *words]) == 2
    assert reason in capsys.readouterr().err


def test_an_estimate_trains_nothing(data: Path, models: Path, capsys: pytest.CaptureFixture[str], started: list[Path]) -> None:
    found = message(capsys, "train", str(data), *SET, "--variant", "literal", "--estimate", "--models", str(models))
    assert 0 < found["low"] < found["seconds"] < found["high"]
    assert found["memory_mb"] > 100
    assert "without finished runs" in said(capsys, "train", str(data), *SET, "--estimate", "--models", str(models))
    assert not started
    assert not models.exists()


def test_names_of_files_are_found_wherever_the_trainer_works(
    data: Path, models: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data)
    Path("names.json").write_text("{}", encoding="utf-8")
    said(capsys, "train", ".", "--variant", "literal", "--names", "names.json", "--queue", "--models", str(models))
    (job,) = JobQueue(models).jobs()
    assert job.config == RunConfig(variant="literal").with_values({"literal.names": f"file:{data / 'names.json'}"})
    assert job.data == data


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["queue", "--stop", "nothing"], "there is no job 'nothing'"),
        (["train", "nowhere", "--queue"], "there is no such folder"),
        (["train", "DATA", "--queue", "--fresh"], "--fresh cannot be combined"),
        (["train", "DATA", "--queue", "--set", "encoder.dim=0"], "must lie between 1 and 4096"),
    ],
)
def test_mistakes_are_one_line(data: Path, models: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str) -> None:
    assert main([str(data) if word == "DATA" else word for word in words] + ["--models", str(models)]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_more_memory_than_there_is(data: Path, models: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.cli.queue.available_memory", lambda: 100.0)
    assert main(["train", str(data), "--queue", "--models", str(models)]) == 2
    assert "needs about" in capsys.readouterr().err
    assert not JobQueue(models).jobs()
