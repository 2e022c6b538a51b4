"""What ``make app`` trains before it opens: only what is missing, and nothing for whoever has runs already."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from engine.cli import main as cli
from engine.cli import queue as queueing
from engine.cli.main import INTERRUPTED, main
from engine.config import VARIANTS
from engine.errors import JobError
from engine.jobs import JobQueue
from engine.jobs.plan import STEPS, missing_steps
from engine.jobs.trainer import work
from engine.runs import RunStore
from engine.training.trainer import Progress
from tests.cli.test_main import one_line
from tests.data.writers import small_sample, write_openea
from tests.run_fixture import sample_run, write_run


def missing(models: Path) -> list[str]:
    return [step.variant for step in missing_steps(RunStore(models), Path("sample_data/world"))]


def add(models: Path, variant: str, dataset: str = "world", run_id: str = "", **manifest: str) -> None:
    write_run(sample_run(), models, dataset, run_id or f"{variant}-s0-0123abcd", variant=variant, **manifest)


def test_every_variant_is_prepared_in_the_order_in_which_they_build_on_each_other(tmp_path: Path) -> None:
    assert missing(tmp_path / "nothing") == list(VARIANTS)
    assert all(step.does and step.takes for step in STEPS)


def test_what_exists_is_not_trained_again(tmp_path: Path) -> None:
    add(tmp_path, "basic")
    assert missing(tmp_path) == ["semi", "literal"]
    add(tmp_path, "literal")
    assert missing(tmp_path) == ["semi"]
    add(tmp_path, "semi", run_id="semi-s7-of-mine")
    assert missing(tmp_path) == []


def test_who_has_other_runs_is_not_made_to_wait(tmp_path: Path) -> None:
    add(tmp_path, "basic")
    with RunStore(tmp_path).create("towns", "basic-s0-0123abcd"):
        assert missing(tmp_path) == []  # begun is enough
    add(tmp_path, "basic", dataset="towns")
    assert missing(tmp_path) == []


@pytest.mark.parametrize("state", ["stopped", "partial", "broken"])
def test_what_is_not_finished_is_resumed(tmp_path: Path, state: str) -> None:
    if state == "stopped":
        add(tmp_path, "basic", run_id="basic-s0-0123abcd-e3", status="stopped")
    elif state == "partial":
        RunStore(tmp_path).create("world", "basic-s0-0123abcd").close()
    else:
        (tmp_path / "world" / "basic-s0-0123abcd").mkdir(parents=True)
    assert missing(tmp_path) == list(VARIANTS)


def test_the_command_says_what_it_does_and_resumes_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, models = tmp_path / "tiny", tmp_path / "models"
    write_openea(data, small_sample())
    words = ["--models", str(models), "--set", "training.device=cpu"]
    assert main(["train", str(data), *words]) == 0
    capsys.readouterr()
    assert main(["prepare", str(data), "--models", str(models), "--all"]) == 0
    message = capsys.readouterr().err
    assert "[1/2] semi: " in message
    assert message.index("[1/2] semi: done") < message.index("[2/2] literal: adds names")
    assert "basic:" not in message
    runs = {summary.variant: summary for summary in RunStore(models).list()}
    assert set(runs) == set(VARIANTS)
    manifest = RunStore(models).find(runs["literal"].id).manifest
    assert manifest["training"]["structure_run"] == runs["semi"].id
    assert main(["prepare", str(data), "--models", str(models), "--all"]) == 0
    assert capsys.readouterr().err == ""


def test_the_app_opens_after_the_first_variant_and_the_queue_trains_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, models, started = tmp_path / "tiny", tmp_path / "models", []
    write_openea(data, small_sample())
    monkeypatch.setattr(queueing, "start_trainer", started.append)
    words = ["prepare", str(data), "--models", str(models)]
    assert main(words) == 0
    message = capsys.readouterr().err
    assert "[1/1] basic: done" in message
    assert "semi and literal will train in the background" in message
    assert [(job.variant, job.state) for job in JobQueue(models).jobs()] == [("semi", "queued"), ("literal", "queued")]
    assert started == [models]
    assert main(words) == 0
    assert capsys.readouterr().err == "", "nothing new"
    assert started == [models, models], "nobody works at what waits, as after a restart of the machine"
    literal = JobQueue(models).jobs()[1]
    JobQueue(models).cancel(literal.id)
    assert main(words) == 0
    assert [job.state for job in JobQueue(models).jobs() if job.id == literal.id] == ["cancelled"], "not asked for again"
    work(models, successor=lambda folder: None)
    assert {summary.variant for summary in RunStore(models).list() if summary.state == "finished"} == {"basic", "semi"}


def test_the_app_opens_where_nothing_can_be_queued(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    data, models = tmp_path / "tiny", tmp_path / "models"
    write_openea(data, small_sample())

    def refused(*_: object) -> None:
        raise JobError("the queue cannot be written.")

    monkeypatch.setattr(JobQueue, "submit", refused)
    assert main(["prepare", str(data), "--models", str(models)]) == 0
    assert "warning: semi and literal cannot be queued: the queue cannot be written." in capsys.readouterr().err


def test_a_folder_that_is_not_there_gets_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare", str(tmp_path / "nothing"), "--models", str(tmp_path / "models")]) == 2
    assert "no such folder" in one_line(capsys.readouterr().err)


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("number", ["SIGTERM", *(pytest.param(name, marks=pytest.mark.slow) for name in ("SIGINT", "SIGHUP"))])
def test_what_ends_a_preparation_keeps_what_was_learned(
    number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signals that end ``train`` after a step end this too, whichever epoch it is in; the next call resumes."""
    data, models = tmp_path / "tiny", tmp_path / "models"
    write_openea(data, small_sample())
    shown, reported = [], cli.report

    def ask(event: object) -> None:
        reported(event)  # type: ignore[arg-type]
        if isinstance(event, Progress) and not shown:
            shown.append(event.epoch)
            signal.raise_signal(getattr(signal, number))

    def hang_up(number: int, frame: object) -> None:
        raise AssertionError("the signal was not caught")

    monkeypatch.setattr(cli, "report", ask)
    before = signal.signal(signal.SIGHUP, hang_up)  # not ignored, whatever the tests were started with
    try:
        assert main(["prepare", str(data), "--models", str(models), "--all"]) == INTERRUPTED
    finally:
        signal.signal(signal.SIGHUP, before)
    message = capsys.readouterr().err
    assert "Stopped. The progress is kept as tiny/basic-s0-" in message
    assert "[2/3]" not in message, "nothing is begun any more"
    assert "stopped" in {summary.state for summary in RunStore(models).list()}
    monkeypatch.setattr(cli, "report", reported)
    assert main(["prepare", str(data), "--models", str(models), "--all"]) == 0
    assert {summary.variant for summary in RunStore(models).list() if summary.state == "finished"} == set(VARIANTS)
