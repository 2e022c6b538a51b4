"""The way of a training step on a graphics card, rehearsed without one: nothing in it waits, and its values are those of the compiled kernels."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks import host_waits
from benchmarks.agreement import differences
from benchmarks.host_waits import META, Recorder, step_waits, trainer_on
from engine.config import RunConfig, Variant
from engine.data import AlignmentTask, load_task
from engine.pipeline import train_run
from engine.runs import RunStore
from engine.training.trainer import Trainer
from engine.util.devices import upload, without_kernels
from tests.model.options import OPTIONS
from tests.played_card import OnCard, card_in

SMALL = RunConfig().with_values(
    {
        "encoder.dim": 8,
        "encoder.proxies": 4,
        "training.threads": 1,
        "training.batch_size": 20,
        "training.precision": "float32",
        "loss.least_candidates": 90,
    }
)
VARIED: dict[str, dict[str, Any]] = {
    **{name: {f"encoder.{key}": value for key, value in changes.items()} for name, changes in OPTIONS.items()},
    **{f"loss {kind}": {"loss.kind": kind} for kind in ("softmax", "triplet", "truncated")},
    "other graph's candidates": {"loss.candidates": "other"},
    "all candidates": {"loss.candidate_share": 1.0},
    "bfloat16": {"training.precision": "bfloat16"},
}


FEW = ("paper", "loss triplet", "other graph's candidates")


def cases(names: Iterable[str]) -> list[Any]:
    """The changes of some names; all but a few only where time does not count."""
    return [pytest.param(VARIED[name], id=name, marks=() if name in FEW else pytest.mark.slow) for name in names]


@pytest.fixture(scope="module")
def task(small_world: Path) -> AlignmentTask:
    return load_task(small_world)


@pytest.mark.parametrize("changes", cases(VARIED))
def test_nothing_in_a_step_waits_for_the_card(task: AlignmentTask, changes: dict[str, Any]) -> None:
    found = step_waits(task, SMALL.with_values(changes), META, steps=1)
    assert found["waits"] == {}
    assert 50 < found["operations_per_step"] < 700, "each costs the program some microseconds"


THERE = torch.empty(6, 3, device=META)
WHOLE = torch.empty(6, dtype=torch.int64, device=META)
WAITING: dict[str, Callable[[], Any]] = {
    "a value": lambda: THERE.sum().item(),
    "a decision": lambda: bool(THERE.sum() == 1),
    "positions": lambda: (THERE > 0).nonzero(),
    "a mask": lambda: THERE[THERE > 0],
    "a masked assignment": lambda: THERE.clone().__setitem__(THERE > 0, THERE[0, 0]),
    "distinct values": lambda: torch.unique(WHOLE),
    "repetitions of unknown number": lambda: torch.repeat_interleave(WHOLE),
    "an index on the host": lambda: THERE[torch.arange(2)],
    "a copy to the host": lambda: WHOLE.to("cpu"),
    "a copy from the host": lambda: torch.arange(3).to(META),
}


@pytest.mark.parametrize("work", WAITING.values(), ids=WAITING)
def test_what_would_wait_is_noticed(work: Callable[[], Any]) -> None:
    recorder = Recorder(META)
    with recorder, contextlib.suppress(RuntimeError, NotImplementedError):  # shapes alone have no answer to give
        work()
    assert recorder.waits.total() >= 1


def test_what_is_sent_ahead_is_no_wait() -> None:
    recorder = Recorder(META)
    with recorder:
        there = upload(torch.arange(4).numpy(), META)
        torch.repeat_interleave(there, there, output_size=9)
        THERE[WHOLE].sum()
    assert recorder.waits.total() == 0
    assert recorder.operations >= 3


def step(trainer: Trainer) -> dict[str, Tensor]:
    """Loss and gradients of a step, with dropout."""
    sample = trainer.sampling.draw(trainer.pairs[:20], 3)
    value = trainer.compare(trainer.forward(sample, 3), sample, 3)
    value.backward()  # type: ignore[no-untyped-call]
    gradients = {name: one.grad for name, one in trainer.model.named_parameters() if one.grad is not None}
    return {name: tensor.detach().double() for name, tensor in {"loss": value, **gradients}.items()}


@pytest.mark.parametrize("changes", cases(name for name in VARIED if name != "bfloat16"))
def test_both_ways_give_the_same_values(task: AlignmentTask, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """In several blocks of everything, too."""
    config = SMALL.with_values({"loss.tail_mass": 0.0, **changes})
    expected = step(Trainer(task, config))
    with without_kernels():
        at_once = step(Trainer(task, config))
        monkeypatch.setattr("engine.util.devices.LEAST_BLOCK", 3000)
        monkeypatch.setattr("engine.util.devices._blocks", {})
        in_blocks = step(Trainer(task, config))
    for found in (at_once, in_blocks):
        assert set(found) == set(expected)
        assert max(differences(expected, found).values()) < 2e-4


def test_rounded_products_hardly_move_a_step_on_a_card(task: AlignmentTask) -> None:
    with without_kernels():
        exact, rounded = (step(Trainer(task, SMALL.with_values({"training.precision": precision}))) for precision in ("float32", "bfloat16"))
    apart = differences(exact, rounded)
    assert 0 < apart["loss"] < 0.01
    assert 0 < apart["entity_features"] < 0.1


def test_the_rehearsal_is_a_command(small_world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "waits.json"
    assert host_waits.main([str(small_world), "--device", "cpu", "--steps", "1", "--set", "encoder.dim=8", "--out", str(out)]) == 0
    assert "waits per step: 0." in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert (found["device"], found["waits_per_step"], found["waits"]) == ("meta", 0, {})


def test_a_step_that_waits_is_reported(small_world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    compare = Trainer.compare

    def asking(self: Trainer, *arguments: Any) -> Tensor:
        value = compare(self, *arguments)
        torch.ones(2).to(value.device)
        return value

    monkeypatch.setattr(Trainer, "compare", asking)
    assert host_waits.main([str(small_world), "--device", "cpu", "--steps", "1", "--set", "encoder.dim=8"]) == 1
    assert "copied between host and card" in capsys.readouterr().out


def test_the_trainer_is_the_ordinary_one(task: AlignmentTask) -> None:
    assert {one.device for one in trainer_on(task, SMALL, META).model.parameters()} == {META}


def test_a_training_on_a_played_card_is_the_rehearsed_one(task: AlignmentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit: the two only disagree about where the tensors are."""
    config = SMALL.with_values({"training.epochs": 2})
    with without_kernels():
        rehearsed = Trainer(task, config)
        trace, expected = rehearsed.train().trace, rehearsed.embed()
    with card_in(monkeypatch):
        trainer = Trainer(task, config)
        found = trainer.train().trace
        embeddings = trainer.embed()
        assert isinstance(embeddings, OnCard)
        with pytest.raises(TypeError, match="copy it"):
            embeddings.numpy()
        with pytest.raises(RuntimeError, match="one device"):
            embeddings + torch.zeros(len(embeddings), 1)
        assert torch.equal(embeddings.cpu(), expected)
    assert [line["loss"] for line in found] == [line["loss"] for line in trace]


WHOLE_RUNS = [pytest.param("basic", {}, id="basic"), pytest.param("basic", {"search.index": "faiss"}, id="faiss", marks=pytest.mark.slow)]
WHOLE_RUNS += [pytest.param(variant, {}, id=variant, marks=pytest.mark.slow) for variant in ("semi", "literal")]


@pytest.mark.parametrize(("variant", "changes"), WHOLE_RUNS)
def test_a_whole_run_on_a_played_card(
    small_europe: Path, tmp_path: Path, variant: Variant, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Search, evaluation, analysis and what is written, too: nothing takes a tensor of the card for one of the host."""
    rounds = {"semi.rounds": 1, "semi.round_epochs": 1}
    config = SMALL.with_values({"training.epochs": 2, **rounds, **changes})
    with card_in(monkeypatch):
        run = train_run(small_europe, dataclasses.replace(config, variant=variant), RunStore(tmp_path)).run
    assert run.manifest["training"]["device"] == "a card that the CPU plays"
    assert 0 < run.metrics["source_to_target"]["mrr"] <= 1
