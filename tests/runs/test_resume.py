"""An interrupted run shows the command that resumes it, and that command works."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from engine.config import RunConfig
from engine.pipeline import NOTE as PHASE_NOTE
from engine.pipeline import Phase, train_run
from engine.runs import RunStore
from engine.runs.writer import NOTE, NOTHING_KEPT, ResumeRecord, read_beginning
from tests.data.writers import small_sample, write_openea

SMALL = {"encoder.dim": 8, "encoder.proxies": 4, "training.epochs": 3, "training.checkpoint_seconds": 0.0, "training.threads": 1}


def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: RunConfig) -> tuple[Path, Path]:
    """The models folder with one run that was killed, and its folder."""

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    write_openea(tmp_path / "two rings", small_sample())
    with monkeypatch.context() as patched:
        patched.setattr("engine.pipeline.finishing.csls_topk", killed)
        with pytest.raises(KeyboardInterrupt):
            train_run(tmp_path / "two rings", config, RunStore(tmp_path / "models"))
    (partial,) = RunStore(tmp_path / "models").list()
    assert partial.state == "partial"
    return tmp_path / "models", partial.path


@pytest.mark.parametrize("variant", ["basic", "literal"])
def test_the_command_of_an_interrupted_run_finishes_it(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, Any] = {**SMALL, "semi.rounds": 1, "semi.round_epochs": 1, "literal.names": "uri"}
    config = RunConfig.from_dict({"variant": variant, "seed": 3}).with_values(values)
    models, folder = interrupted(tmp_path, monkeypatch, config)
    begun = read_beginning(folder)
    assert begun is not None
    assert begun.config == config, "of what was asked for, though the run in the making may be the one below it"
    python, module, engine, *words = shlex.split(begun.command(models))
    assert (python, module, engine) == ("python", "-m", "engine")
    assert main(words) == 0
    found = {run.run_id: run for run in RunStore(models).list()}
    assert {run.state for run in found.values()} == {"finished"}
    assert begun.run_id in found
    assert not list(models.rglob(f"{NOTE}.json")), "a finished run does not have the note"


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("variant", ["basic", "literal"])
def test_a_training_that_was_killed_before_its_first_checkpoint_says_that_it_starts_again(
    variant: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = RunConfig.from_dict({"variant": variant}).with_values({**SMALL, "semi.rounds": 1, "semi.round_epochs": 1, "literal.names": "uri"})
    models, folder = interrupted(tmp_path, monkeypatch, config)
    if not kept:
        for path in (folder / "checkpoints").iterdir():
            path.unlink()
    events: list[object] = []
    train_run(tmp_path / "two rings", config, RunStore(models), on_event=events.append)
    notes = [event.detail for event in events if isinstance(event, Phase) and event.name == PHASE_NOTE]
    assert notes.count(f"info: {NOTHING_KEPT}") == (not kept)
    again: list[object] = []
    train_run(tmp_path / "two rings", config, RunStore(models), fresh=True, on_event=again.append)
    assert not [event for event in again if isinstance(event, Phase) and NOTHING_KEPT in event.detail], "a new run"


def test_settings_come_back_from_their_assignments() -> None:
    changed = {"encoder.multi_hop": False, "literal.weight": None, "loss.tail_mass": 0.02, "data.name_attribute": "the label"}
    config = RunConfig().with_values(changed)
    assert set(config.assignments()) == {"encoder.multi_hop=no", "literal.weight=none", "loss.tail_mass=0.02", "data.name_attribute=the label"}
    assert RunConfig().with_assignments(config.assignments()) == config
    assert RunConfig().assignments() == ()


def test_reviews_and_other_places_are_named() -> None:
    begun = ResumeRecord(Path("my data"), RunConfig(), "basic-s0-0", Path("models") / "x" / ".partial-basic-s0-0" / "reviews.parquet")
    command = begun.command(Path("other"))
    assert command == "python -m engine train 'my data' --with-reviews models/x/.partial-basic-s0-0/reviews.parquet --models other"


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"data": 1, "config": {}, "run_id": ""}', b'{"data": "x", "config": {"new": {}}, "run_id": ""}']
)
def test_a_note_that_is_none_is_passed_over(content: bytes, tmp_path: Path) -> None:
    assert read_beginning(tmp_path) is None
    (tmp_path / f"{NOTE}.json").write_bytes(content)
    assert read_beginning(tmp_path) is None


def test_the_seconds_of_a_resumed_run_include_what_was_interrupted(tmp_path: Path) -> None:
    """Of a basic run, and of a literal one whose semi run was interrupted."""
    write_openea(tmp_path / "rings", small_sample())
    values: dict[str, Any] = {**SMALL, "semi.rounds": 1, "semi.round_epochs": 1, "literal.names": "uri", "literal.weight": 0.3}
    for variant in ("basic", "literal"):
        config, store = RunConfig.from_dict({"variant": variant, "seed": 3}).with_values(values), RunStore(tmp_path / "models")
        steps = iter([False, True])

        def slow_then_stopped(steps: Iterator[bool] = steps) -> bool:
            time.sleep(1.0)
            return next(steps)

        stopped = train_run(tmp_path / "rings", config, store, should_stop=slow_then_stopped).run
        assert stopped.manifest["status"] == "stopped"
        run = train_run(tmp_path / "rings", config, store).run
        trained = run.manifest["training"]["seconds"]
        assert trained >= stopped.manifest["training"]["seconds"] >= 1.0
        assert run.manifest["seconds"] >= trained
        if variant == "basic":
            assert run.manifest["phases"]["train"] >= trained, "as much as the manifest says elsewhere"
