"""From a data set to a run: what is read, what is kept, what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import RunConfig
from engine.data import load_task
from engine.errors import ConfigError, DivergenceError, TrainingError
from engine.pipeline import Phase, train_run
from engine.runs import RunStore
from engine.training.estimate import memory_needed, task_sizes
from engine.training.trainer import Progress
from tests.data.writers import put, small_sample, tabbed, write_openea

SMALL = RunConfig().with_values(
    {
        "encoder.dim": 8,
        "encoder.proxies": 4,
        "semi.rounds": 1,
        "semi.round_epochs": 2,
        "training.epochs": 6,
        "training.checkpoint_seconds": 0.0,
        "training.threads": 1,
    }
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_openea(tmp_path / "rings", small_sample())
    return tmp_path / "rings"


def variant(name: str) -> RunConfig:
    return RunConfig.from_dict({**SMALL.to_dict(), "variant": name})


def test_a_literal_run_reads_the_data_once_also_for_its_semi_run(data: Path, tmp_path: Path) -> None:
    events: list[Any] = []
    run = train_run(data, variant("literal"), RunStore(tmp_path / "models"), on_event=events.append).run
    assert [event.name for event in events if isinstance(event, Phase)].count("read") == 1
    semi = RunStore(tmp_path / "models").find(run.manifest["training"]["structure_run"])
    assert "names" in run.manifest["phases"]
    assert "names" not in semi.manifest["phases"]
    assert semi.manifest["phases"]["read"] == run.manifest["phases"]["read"]
    assert semi.manifest["seconds"] <= run.manifest["seconds"]
    store = RunStore(tmp_path / "models")
    store.delete(run)
    torch.set_num_threads(2)
    again = train_run(data, variant("literal"), store).run
    assert torch.get_num_threads() == 1, "also where the structure was trained by another process"
    assert again.manifest["files"] == run.manifest["files"]
    (semi.path / "checkpoints").mkdir()  # left by a process that was killed just after it had finished the run
    assert train_run(data, variant("semi"), RunStore(tmp_path / "models")).reused
    assert not (semi.path / "checkpoints").exists()


def diverging(monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """From now on the loss of every step after the ``last`` one is not a number."""
    from engine.training import trainer as training

    build, steps = training.build_loss, iter(range(10**6))

    def broken(*arguments: Any) -> Any:
        loss = build(*arguments)
        return lambda *inputs, **options: loss(*inputs, **options) * (torch.nan if next(steps) >= last else 1.0)

    monkeypatch.setattr(training, "build_loss", broken)


def test_a_run_that_diverged_leaves_nothing_to_resume(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(tmp_path / "models")
    with monkeypatch.context() as patched:
        diverging(patched, last=3)
        with pytest.raises(DivergenceError, match=r"nan in epoch 4, step 1.*learning_rate"):
            train_run(data, SMALL, store)
        assert store.list() == []
        assert list((tmp_path / "models" / "rings").iterdir()) == []
    events: list[Any] = []
    assert train_run(data, SMALL, store, on_event=events.append).run.manifest["status"] == "finished"
    assert [event.epoch for event in events if isinstance(event, Progress)] == [1, 2, 3, 4, 5, 6]


def test_other_failures_keep_what_was_learned(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(tmp_path / "models")

    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("engine.pipeline.finishing.csls_topk", no_memory)
        with pytest.raises(MemoryError):
            train_run(data, SMALL, store)
    (partial,) = store.list()
    assert partial.state == "partial"
    events: list[Any] = []
    train_run(data, SMALL, store, on_event=events.append)
    assert [event.epoch for event in events if isinstance(event, Progress)] == [], "the checkpoint at the end of training holds all epochs"


def test_a_training_that_does_not_fit_is_refused_before_it_begins(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With settings that would fit; the check can be switched off."""
    store = RunStore(tmp_path / "models")
    monkeypatch.setattr("engine.pipeline.training.available_memory", lambda: 100.0)
    with pytest.raises(
        TrainingError, match=r"needs about .* GiB of memory, and 0.1 GiB are free; .* \(training.check_memory=no trains without this check\)"
    ):
        train_run(data, SMALL, store)
    scarce = 1.1 * memory_needed(task_sizes(load_task(data)), SMALL)
    monkeypatch.setattr("engine.pipeline.training.available_memory", lambda: scarce)
    events: list[Any] = []
    tried = train_run(data, SMALL, store, on_event=events.append).run
    assert any("may not be enough" in event.detail for event in events if isinstance(event, Phase))
    monkeypatch.setattr("engine.pipeline.training.available_memory", lambda: 100.0)
    assert train_run(data, SMALL.with_values({"training.check_memory": False}), store).run.id == tried.id, "it makes no other run"


def test_a_cpu_without_fast_bfloat16_is_reported(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.pipeline.training.bfloat16_pays", lambda: False)
    events: list[Any] = []
    train_run(data, SMALL.with_values({"training.precision": "bfloat16"}), RunStore(tmp_path / "models"), on_event=events.append)
    assert any("bfloat16 is not faster" in event.detail for event in events if isinstance(event, Phase))


@pytest.mark.parametrize(("excluded", "reported"), [("titel, http://x/Title", "http://x/Title, titel"), ("title", ""), (None, "")])
def test_attributes_to_leave_out_that_do_not_exist_are_reported(tmp_path: Path, excluded: str | None, reported: str) -> None:
    messages: list[str] = []
    config = variant("semi").with_values({"values.exclude": excluded})
    folder = no_links(tmp_path / "data", labels=("left {}", "right {}"))
    with pytest.raises(TrainingError):  # after what is reported
        train_run(folder, config, RunStore(tmp_path / "models"), on_event=lambda event: messages.append(getattr(event, "detail", "")))
    found = [message for message in messages if "values.exclude names" in message]
    assert found == (
        [f"warning: values.exclude names what is no attribute of either graph: {reported}. Names are case-sensitive."] if reported else []
    )


def no_links(folder: Path, *, labels: tuple[str, str] = ("left", "right")) -> Path:
    """Two chains without known links; each graph's entities are called after its word and their number."""
    for side, word in zip("12", labels, strict=True):
        put(folder / f"rel_triples_{side}", tabbed([(f"{side}{i:02}q", "next", f"{side}{i + 1:02}q") for i in range(8)]))
        put(folder / f"attr_triples_{side}", tabbed([(f"{side}{i:02}q", "title", word.format(i)) for i in range(9)]))
    return folder


@pytest.mark.parametrize(
    ("labels", "asked", "settings", "message"),
    [
        (("word {}", "word {}"), "basic", {}, "the basic variant trains only on known links"),
        (("word {}", "word {}"), "semi", {"semi.start": "triples"}, "semi.start=triples needs known links"),
        (("left {}", "right {}"), "semi", {}, "share no name or value to start from"),
        (("word {}", "word {}"), "semi", {"values.exclude": "title"}, "only in attributes that values.exclude leaves out"),
        (("same", "same"), "semi", {}, "too many entities have, so no pair of entities follows"),
        (("...", "..."), "semi", {}, "share only values without meaning"),
        (("left {}", "right {}"), "literal", {"literal.names": "attribute:title", "literal.weight": 0.5}, "share no name or value to start from"),
        (("NA", "NA"), "literal", {"literal.names": "attribute:title", "literal.weight": 0.5}, "share only values without meaning"),
        (("word {}", "word {}"), "basic", {"training.patience": 2}, "the basic variant"),
    ],
)
def test_a_training_that_is_refused_leaves_no_folder_behind(
    tmp_path: Path, labels: tuple[str, str], asked: str, settings: dict[str, Any], message: str
) -> None:
    store = RunStore(tmp_path / "models")
    with pytest.raises(TrainingError, match=message):
        train_run(no_links(tmp_path / "data", labels=labels), variant(asked).with_values(settings), store)
    assert store.list() == []
    assert not list((tmp_path / "models").rglob("*"))


def test_settings_and_machines_that_do_not_permit_a_training_leave_no_folder_behind(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path / "models")
    with pytest.raises(ConfigError, match="patience"):
        train_run(data, SMALL.with_values({"training.patience": 2}), store)
    monkeypatch.setattr("engine.pipeline.training.available_memory", lambda: 1)
    with pytest.raises(TrainingError, match="memory"):
        train_run(data, SMALL, store)
    assert not list((tmp_path / "models").rglob("*"))


def test_without_links_a_training_starts_from_what_it_found_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    from engine.training import trainer as training

    look = training.start_pairs
    monkeypatch.setattr(training, "start_pairs", lambda *given: found.append(1) or look(*given))
    store, events = RunStore(tmp_path / "models"), list[Any]()
    run = train_run(no_links(tmp_path / "data", labels=("word {}", "word {}")), epochs_by_default("semi"), store, on_event=events.append).run
    assert len(found) == 1
    assert len(run.table("start")) >= 5
    epochs = next(event.epochs for event in events if isinstance(event, Progress))
    assert next(event.detail for event in events if isinstance(event, Phase) and event.name == "train").endswith(f", {epochs} epochs")


def epochs_by_default(name: str) -> RunConfig:
    """A config whose number of epochs depends on how many pairs training starts with."""
    return variant(name).with_values({"training.epochs": None, "semi.round_epochs": None})


def test_a_literal_training_reports_nothing_about_the_probabilities_of_its_structure(tmp_path: Path) -> None:
    notes: list[str] = []
    folder, store = no_links(tmp_path / "data", labels=("word {}", "word {}")), RunStore(tmp_path / "models")
    for name in ("literal", "semi"):
        asked = variant(name).with_values({"literal.names": "attribute:title", "literal.weight": 0.5, "training.epochs": 6 + (name == "semi")})
        train_run(folder, asked, store, on_event=lambda event: notes.append(getattr(event, "detail", "")))
        reported = [note for note in notes if "probabilities of this run cannot be given" in note]
        assert len(reported) == (name == "semi")
