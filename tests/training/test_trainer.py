"""The loop: what it learns, what it reports, and that stopping, dying and resuming change nothing."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.config import PRESETS, RunConfig
from engine.data import AlignmentTask, load_task
from engine.errors import ConfigError, TrainingError
from engine.evaluation.metrics import evaluate_links
from engine.pipeline.events import parts_text
from engine.training import trainer as training
from engine.training.device import choose_device, choose_precision, choose_threads
from engine.training.schedule import batch_size, default_epochs
from engine.training.trainer import Progress, Trainer, split_embeddings
from engine.util.devices import block_bytes, without_kernels

EUROPE = Path(__file__).resolve().parents[2] / "sample_data" / "europe"
SMALL = RunConfig().with_values(
    {
        "encoder.dim": 12,
        "encoder.proxies": 8,
        "training.epochs": 6,
        "training.batch_size": 25,  # three steps an epoch
        "training.validate_every": 2,
        "training.precision": "float32",
        "loss.least_candidates": 250,  # of 600: steps draw samples
    }
)


@pytest.fixture(scope="module")
def task(small_europe: Path) -> AlignmentTask:
    return load_task(small_europe)


@pytest.fixture(scope="module")
def unbroken(task: AlignmentTask) -> Tensor:
    """What a training by the small settings ends with when nothing interrupts it."""
    return embeddings(task, SMALL)


class Memory:
    """Checkpoints in memory; can play a process that dies right after the n-th save."""

    def __init__(self, die_at: int | None = None) -> None:
        self.saved: tuple[dict[str, Tensor], dict[str, Any]] | None = None
        self.saves, self.die_at = 0, die_at

    @classmethod
    def of(cls, other: Memory) -> Memory:
        """Its own copy of what another one holds."""
        mine = cls()
        mine.saved = copy.deepcopy(other.saved)
        return mine

    def save(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        self.saved = {name: tensor.clone() for name, tensor in tensors.items()}, {**state, "trace": list(state["trace"])}
        self.saves += 1
        if self.saves == self.die_at:
            raise RuntimeError("killed")

    def load(self, earlier: int = 0) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        return None if earlier else self.saved and ({**self.saved[0]}, {**self.saved[1], "trace": list(self.saved[1]["trace"])})


def every_epoch(config: RunConfig) -> RunConfig:
    return config.with_values({"training.checkpoint_seconds": 0.0})


def embeddings(task: AlignmentTask, config: RunConfig, **options: Any) -> Tensor:
    trainer = Trainer(task, config)
    trainer.train(**options)
    return trainer.embed()


def test_learns_to_align() -> None:
    task = load_task(EUROPE)
    config = RunConfig().with_values({"encoder.dim": 32, "training.epochs": 25})
    before, trainer = Trainer(task, config).embed(), Trainer(task, config)
    trained = trainer.train()
    hits = []
    for vectors in (before, trainer.embed()):
        source, target = split_embeddings(vectors, task.source.num_entities)
        hits.append(evaluate_links(source, target, task.test_links, bootstrap=0).target_to_source.hits_at_1)
    assert trained.epochs == 25
    assert not trained.stopped
    assert hits[1] > 0.45 > hits[0]


def test_a_seed_gives_the_same_result_and_another_seed_another(task: AlignmentTask) -> None:
    first, again, other = embeddings(task, SMALL), embeddings(task, SMALL), embeddings(task, dataclasses.replace(SMALL, seed=1))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


@pytest.mark.parametrize("kills", [[1], [3], [2, 1, 2]])
def test_killed_and_resumed_equals_unbroken(task: AlignmentTask, unbroken: Tensor, kills: list[int]) -> None:
    checkpoints = Memory()
    for after in kills:
        checkpoints.saves, checkpoints.die_at = 0, after
        with pytest.raises(RuntimeError, match="killed"):
            embeddings(task, every_epoch(SMALL), checkpoints=checkpoints)
    checkpoints.die_at = None
    trainer = Trainer(task, every_epoch(SMALL))
    trained = trainer.train(checkpoints=checkpoints)
    assert torch.equal(trainer.embed(), unbroken)
    assert [line["epoch"] for line in trained.trace] == [1, 2, 3, 4, 5, 6]


def test_the_first_step_says_nothing_of_the_time_left(task: AlignmentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may compile the kernels for a minute."""
    seen: list[Progress] = []
    clock = itertools.chain([0.0, 60.0], itertools.count(100.0, 2.0))
    trainer = Trainer(task, SMALL.with_values({"training.batch_size": 1000}))  # a step an epoch
    monkeypatch.setattr(trainer, "_train_step", lambda pairs: next(clock) * 0.0)
    monkeypatch.setattr("engine.training.trainer.time", SimpleNamespace(monotonic=lambda: next(clock)))
    trainer.train(on_progress=lambda message: seen.append(message) if isinstance(message, Progress) else None)
    assert (seen[0].remaining, seen[0].epoch_seconds) == (None, None)
    assert seen[1].epoch_seconds is not None
    assert seen[1].epoch_seconds < 10
    assert seen[1].remaining == pytest.approx(4 * seen[1].epoch_seconds)


@pytest.mark.parametrize("after_steps", [0, 4, *(pytest.param(steps, marks=pytest.mark.slow) for steps in (1, 2, 9))])
def test_stopped_between_steps_and_resumed_equals_unbroken(task: AlignmentTask, unbroken: Tensor, after_steps: int) -> None:
    checkpoints, asked = Memory(), iter(range(10_000))
    stopped = Trainer(task, SMALL).train(checkpoints=checkpoints, should_stop=lambda: next(asked) >= after_steps)
    assert stopped.stopped
    assert checkpoints.saves == 1
    assert torch.equal(embeddings(task, SMALL, checkpoints=checkpoints), unbroken)


def test_progress_has_loss_validation_and_time_left(task: AlignmentTask) -> None:
    seen: list[Progress] = []
    Trainer(task, SMALL).train(on_progress=seen.append)
    assert [one.epoch for one in seen] == [1, 2, 3, 4, 5, 6]
    assert all(one.epochs == 6 and np.isfinite(one.loss) and one.remaining is not None and one.remaining >= 0 for one in seen)
    assert seen[-1].remaining == 0
    validated = [one.epoch for one in seen if one.validation is not None]
    assert validated == [2, 4, 6]
    assert all(0 <= one.validation[name] <= 1 for one in seen if one.validation for name in ("hits@1", "mrr"))


def test_test_links_are_never_looked_at(task: AlignmentTask) -> None:
    """Another truth, the same training: nothing can have been chosen on test links."""
    patient = SMALL.with_values({"training.patience": 1, "training.validate_every": 1})
    shuffled = task.test_links.copy()
    np.random.default_rng(0).shuffle(shuffled[:, 1])
    other = dataclasses.replace(task, test_links=shuffled)
    assert torch.equal(embeddings(task, patient), embeddings(other, patient))


def test_patience_stops_early_and_keeps_the_best_state(task: AlignmentTask) -> None:
    config = SMALL.with_values(
        {"training.epochs": 200, "training.patience": 2, "training.validate_every": 1, "training.learning_rate": 0.3, "encoder.dim": 6}
    )
    trainer = Trainer(task, config)
    trained = trainer.train()
    assert trained.epochs < 200
    scores = {line["epoch"]: line["validation"]["mrr"] for line in trained.trace}
    assert trained.best_epoch == max(scores, key=lambda epoch: scores[epoch])
    source, target = split_embeddings(trainer.embed(), task.source.num_entities)
    found = evaluate_links(source, target, task.valid_links, bootstrap=0)
    assert (found.source_to_target.mrr + found.target_to_source.mrr) / 2 == pytest.approx(scores[trained.best_epoch], abs=1e-6)


def test_patience_survives_a_kill(task: AlignmentTask) -> None:
    config = every_epoch(SMALL.with_values({"training.patience": 3, "training.validate_every": 1, "training.epochs": 12}))
    unbroken, checkpoints = embeddings(task, config), Memory(die_at=5)
    with pytest.raises(RuntimeError, match="killed"):
        embeddings(task, config, checkpoints=checkpoints)
    assert torch.equal(embeddings(task, config, checkpoints=checkpoints), unbroken)


def test_a_checkpoint_of_other_settings_is_refused(task: AlignmentTask) -> None:
    checkpoints = Memory(die_at=1)
    with pytest.raises(RuntimeError, match="killed"):
        embeddings(task, every_epoch(SMALL), checkpoints=checkpoints)
    other = every_epoch(SMALL.with_values({"training.learning_rate": 0.001}))
    with pytest.raises(TrainingError, match="--fresh"):
        embeddings(task, other, checkpoints=checkpoints)


def test_a_loss_that_is_not_finite_is_reported_with_its_place(task: AlignmentTask) -> None:
    trainer = Trainer(task, SMALL)
    with torch.no_grad():
        trainer.model.proxies[0, 0, 0] = torch.nan
    with pytest.raises(TrainingError, match=r"nan in epoch 1, step 1.*training\.learning_rate"):
        trainer.train()


BRIEF = SMALL.with_values({"training.epochs": 2, "training.threads": 1})


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_training_in_bfloat16_is_not_resumed_where_there_is_none(task: AlignmentTask) -> None:
    config, checkpoints, asked = BRIEF.with_values({"training.precision": "bfloat16"}), Memory(), iter(range(10_000))
    Trainer(task, config).train(checkpoints=checkpoints, should_stop=lambda: next(asked) >= 1)
    resumed = Trainer(task, config)
    resumed.device = torch.device("cuda")
    with pytest.raises(ConfigError, match=r"this GPU cannot multiply; .*training\.device=cpu"):
        resumed.train(checkpoints=checkpoints)


class Reading:
    """How often a trainer has read losses, and how many each time."""

    def __init__(self, trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: list[int] = []
        read = trainer._read_losses

        def counted() -> None:
            self.counts += [len(trainer.unread)] if trainer.unread else []
            read()

        monkeypatch.setattr(trainer, "_read_losses", counted)


def test_a_card_is_asked_for_its_losses_once_an_epoch(task: AlignmentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card's way, on the CPU: three steps an epoch. What is learned is the same but for rounding, and so is what is reported."""
    exact = BRIEF.with_values({"loss.tail_mass": 0.0})
    trainer = Trainer(task, exact)
    reading = Reading(trainer, monkeypatch)
    expected = trainer.train()
    assert reading.counts == [1] * 6
    with without_kernels():
        rehearsed = Trainer(task, exact)
        reading = Reading(rehearsed, monkeypatch)
        found = rehearsed.train()
        assert reading.counts == [3] * 2
        torch.testing.assert_close(rehearsed.embed(), trainer.embed(), rtol=0.01, atol=0.01)
    assert [line["loss"] for line in found.trace] == pytest.approx([line["loss"] for line in expected.trace], rel=1e-4)


def test_a_card_stopped_within_an_epoch_and_resumed_equals_unbroken(task: AlignmentTask) -> None:
    checkpoints, asked = Memory(), iter(range(10_000))
    with without_kernels():
        expected = Trainer(task, BRIEF)
        trace = expected.train().trace
        Trainer(task, BRIEF).train(checkpoints=checkpoints, should_stop=lambda: next(asked) >= 4)
        resumed = Trainer(task, BRIEF)
        assert [line["loss"] for line in resumed.train(checkpoints=checkpoints).trace] == [line["loss"] for line in trace]
        assert torch.equal(resumed.embed(), expected.embed())


def test_a_card_reports_the_step_whose_loss_was_not_finite(task: AlignmentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although it is noticed only at the end of the epoch, before anything is kept."""
    memory, compare, steps = Memory(), Trainer.compare, iter(range(100))
    monkeypatch.setattr(Trainer, "compare", lambda self, *rest: compare(self, *rest) * (torch.nan if next(steps) == 4 else 1))
    with without_kernels(), pytest.raises(TrainingError, match=r"nan in epoch 2, step 2.*training\.learning_rate"):
        Trainer(task, every_epoch(BRIEF)).train(checkpoints=memory)
    assert memory.saves == 1


def test_a_step_that_does_not_fit_a_card_is_done_in_smaller_blocks(task: AlignmentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    build, room = training.build_loss, [0]

    def crowded(*arguments: Any) -> Any:
        if block_bytes(torch.device("cpu")) > room[0]:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return build(*arguments)

    monkeypatch.setattr(training, "build_loss", crowded)
    monkeypatch.setattr("engine.util.devices._blocks", {})
    with without_kernels():
        room[0] = block_bytes(torch.device("cpu")) // 3
        trained = Trainer(task, BRIEF).train()
        assert trained.epochs == 2
        assert room[0] / 2 < block_bytes(torch.device("cpu")) <= room[0]
        room[0] = 0
        with pytest.raises(TrainingError, match="the GPU is out of memory"):
            Trainer(task, BRIEF).train()


def test_no_seed_links_are_reported(task: AlignmentTask) -> None:
    with pytest.raises(TrainingError, match="trains only on known links"):
        Trainer(dataclasses.replace(task, train_links=task.train_links[:0]), SMALL)


def test_one_seed_link_is_enough_to_run(task: AlignmentTask) -> None:
    assert torch.isfinite(embeddings(dataclasses.replace(task, train_links=task.train_links[:1]), SMALL)).all()


@pytest.mark.parametrize(
    ("links", "size", "epochs"),
    [(4500, 512, 11), (710, 1024, 60), (1, 1024, 60), (1024, 1024, 60), (1025, 512, 33), (15_000, 1000, 11), (30_000, 2000, 11), (90_000, 2048, 11)],
)
def test_the_rule_for_batches_and_epochs(links: int, size: int, epochs: int) -> None:
    assert batch_size(RunConfig(), links) == size
    assert default_epochs(RunConfig(), links) == epochs


@pytest.mark.parametrize(("links", "size", "epochs"), [(4500, 1024, 20), (710, 2048, 60), (1024, 2048, 60), (30_000, 2000, 11)])
def test_with_rounds_batches_are_larger(links: int, size: int, epochs: int) -> None:
    semi = RunConfig(variant="semi")
    assert batch_size(semi, links) == size
    assert default_epochs(semi, links) == epochs


@pytest.mark.parametrize(("links", "epochs"), [(4500, 20), (710, 60), (30_000, 11)])
def test_a_given_size_of_batches_is_kept(links: int, epochs: int) -> None:
    given = RunConfig().with_values({"training.batch_size": 1024})
    assert batch_size(given, links) == 1024
    assert default_epochs(given, links) == epochs


def test_less_effort_is_fewer_epochs_where_none_are_set(task: AlignmentTask) -> None:
    fast = RunConfig().with_values(PRESETS["fast"])
    assert default_epochs(RunConfig().with_values({"training.effort": 0.6}), 4500) == 7
    assert Trainer(task, fast).epochs == 36 == 0.6 * Trainer(task, RunConfig()).epochs
    assert Trainer(task, fast.with_values({"training.epochs": 7})).epochs == 7
    assert Trainer(task, dataclasses.replace(fast, variant="semi")).epochs < 0.65 * Trainer(task, RunConfig(variant="semi")).epochs


def test_a_device_or_threads_that_are_not_there_are_reported() -> None:
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no CUDA device"):
            choose_device("cuda")
    assert choose_device("cpu").type == "cpu"
    with pytest.raises(ConfigError, match="this machine has only"):
        choose_threads(1024)


def test_precision_is_tried_out_and_can_be_asked_for() -> None:
    cpu = torch.device("cpu")
    assert choose_precision("auto", cpu) == choose_precision("auto", cpu)
    assert [choose_precision(wanted, cpu) for wanted in ("float32", "bfloat16")] == ["float32", "bfloat16"]
    if not torch.cuda.is_available():
        assert choose_precision("auto", torch.device("cuda")) == "float32"
        with pytest.raises(ConfigError, match="this GPU cannot multiply"):
            choose_precision("bfloat16", torch.device("cuda"))


TRAINED_HERE = """
import hashlib, sys
from engine.config import RunConfig
from engine.data import load_task
from engine.training.trainer import Trainer

options = {"encoder.dim": 12, "encoder.proxies": 8, "training.epochs": 3, "training.batch_size": 100, "training.validate_every": 100}
trainer = Trainer(load_task(sys.argv[1]), RunConfig().with_values(options))
trainer.train()
print(hashlib.sha256(trainer.embed().detach().numpy().tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_compiled_here_or_loaded_from_the_cache_the_bits_are_the_same(repository: Path, tmp_path: Path) -> None:
    """The first run on a machine compiles its kernels, the next one loads them: numba's parallel loops are other code there."""
    command = [sys.executable, "-c", TRAINED_HERE, str(repository / "sample_data" / "europe")]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = [subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert list(tmp_path.rglob("*.nbc"))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("problem", "message", "kept"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), r"the GPU is out of memory; the progress is kept: .*training.device=cpu", 3),
        (
            torch.AcceleratorError("the device was lost\nand more"),
            r"the GPU failed \(the device was lost\); the same command resumes from the last",
            2,
        ),
    ],
    ids=["out of memory", "lost"],
)
def test_a_gpu_that_fails_leaves_a_checkpoint(
    problem: Exception, message: str, kept: int, task: AlignmentTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Played on the CPU: the 8th of 3 steps an epoch cannot be done. Afterwards training continues as if nothing had been."""
    memory, steps, build = Memory(), iter(range(10**6)), training.build_loss

    def failing(*arguments: Any) -> Any:
        if next(steps) == 7:
            raise problem
        return build(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(training, "build_loss", failing)
        with pytest.raises(TrainingError, match=message):
            Trainer(task, every_epoch(SMALL)).train(checkpoints=memory)
    assert memory.saves == kept
    assert torch.equal(embeddings(task, every_epoch(SMALL), checkpoints=memory), embeddings(task, every_epoch(SMALL)))


def test_what_is_trained_is_kept_whatever_fails_afterwards(task: AlignmentTask) -> None:
    """Of a training that is shorter than the time between two checkpoints as well."""
    config = SMALL.with_values({"training.checkpoint_seconds": 86400.0})
    checkpoints, unbroken = Memory(), Trainer(task, config)
    unbroken.train(checkpoints=checkpoints)
    assert checkpoints.saves == 1
    again, steps = Trainer(task, config), []
    trained = again.train(checkpoints=checkpoints, should_stop=lambda: bool(steps.append(1)))
    assert not steps
    assert (trained.epochs, checkpoints.saves, trained.identical) == (6, 1, True)
    assert torch.equal(again.embed(), unbroken.embed())


def test_a_resume_on_something_else_is_recorded(task: AlignmentTask) -> None:
    checkpoints, asked = Memory(), iter(range(10_000))
    Trainer(task, SMALL).train(checkpoints=checkpoints, should_stop=lambda: next(asked) >= 5)
    same = Trainer(task, SMALL)
    assert same.train(checkpoints=Memory.of(checkpoints)).identical
    other = Trainer(task, SMALL)
    other.threads += 1
    trained = other.train(checkpoints=Memory.of(checkpoints))
    assert not trained.identical
    assert [(part["from_epoch"], part["threads"]) for part in trained.parts] == [(1, same.threads), (trained.parts[1]["from_epoch"], other.threads)]
    assert "resumed" not in str(trained.parts)
    assert parts_text(trained.parts).endswith(f"cpu from epoch {trained.parts[1]['from_epoch']}")


def test_checkpoints_of_before_parts_were_recorded_can_be_resumed(task: AlignmentTask) -> None:
    checkpoints, asked = Memory(), iter(range(10_000))
    Trainer(task, SMALL).train(checkpoints=checkpoints, should_stop=lambda: next(asked) >= 5)
    assert checkpoints.saved is not None
    del checkpoints.saved[1]["parts"]
    trainer = Trainer(task, SMALL)
    trained = trainer.train(checkpoints=checkpoints)
    assert torch.equal(trainer.embed(), embeddings(task, SMALL))
    assert trained.parts[0] == {"from_epoch": 1, "threads": trainer.threads}
