"""Time and memory before the start: what they grow with, what corrects them, what is refused."""

from __future__ import annotations

import itertools
import operator
import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import RunConfig
from engine.data import load_task
from engine.errors import TrainingError
from engine.runs import RunSummary
from engine.training import estimate
from engine.training.device import usable_cores
from engine.training.estimate import (
    Machine,
    Share,
    Sizes,
    check_memory,
    count_work,
    estimate_training,
    largest_dim,
    measured_machine,
    memory_needed,
    task_sizes,
)
from engine.training.trainer import Trainer

MACHINE = Machine(float32=150e9, bfloat16=350e9, gather=5e9)
SIZES = Sizes((19_388, 19_572), (70_414, 95_142), (1_701, 1_323), (0, 0), 4_500, 0, 10_500)
BASIC = RunConfig().with_values({"training.precision": "float32"})
SEMI = replace(BASIC, variant="semi")


def with_options(base: RunConfig, **options: Any) -> RunConfig:
    return base.with_values({key.replace("__", "."): value for key, value in options.items()})


def seconds(sizes: Sizes = SIZES, config: RunConfig | None = None) -> float:
    return estimate_training(sizes, config or BASIC, MACHINE).seconds


def test_epochs_and_steps_are_those_of_the_trainer() -> None:
    task = load_task(Path("sample_data") / "europe")
    for settings in ({}, {"training.epochs": 7}, {"training.batch_size": 100}, {"semi.round_epochs": 3, "semi.rounds": 2}):
        config = SEMI.with_values({"encoder.dim": 4, "semi.start": "seeds", **settings})
        trainer, work = Trainer(task, config), count_work(task_sizes(task), config)
        assert sum(work.epochs) == trainer.epochs
        assert work.epochs == (trainer.basic_epochs, *[trainer.round_epochs] * trainer.rounds)
        assert work.steps[0] == trainer.steps_per_epoch


def test_it_grows_with_what_there_is_to_do() -> None:
    basic = seconds()
    twice = replace(SIZES, entities=(38_776, 39_144), triples=(140_828, 190_284))
    assert seconds(twice) > 1.8 * basic
    assert seconds(config=SEMI) > 2 * basic
    assert seconds(config=replace(BASIC, variant="literal")) > seconds(config=SEMI)
    assert seconds(config=with_options(BASIC, encoder__dim=200)) > 1.8 * basic
    assert seconds(config=with_options(BASIC, training__epochs=22)) == pytest.approx(2 * basic, rel=0.15)
    assert seconds(config=with_options(BASIC, encoder__proxy_matching=False)) < basic
    assert seconds(config=with_options(BASIC, training__precision="bfloat16")) < basic
    assert seconds(config=with_options(BASIC, loss__kind="softmax")) > basic


def test_names_alone_are_quick_where_the_semi_run_is_there() -> None:
    literal = replace(BASIC, variant="literal")
    found = estimate_training(SIZES, literal, MACHINE, structure_ready=True)
    assert found.training == 0
    assert found.seconds < 0.3 * seconds(config=literal)


def test_the_range_holds_the_estimate_and_kernels_cost_their_compilation_once() -> None:
    found = estimate_training(SIZES, BASIC, MACHINE)
    assert found.low < found.seconds < found.high
    assert estimate_training(SIZES, BASIC, replace(MACHINE, compiled=False)).seconds == found.seconds + estimate.COMPILE_SECONDS


def test_time_left_counts_later_epochs_for_more() -> None:
    found = estimate_training(SIZES, SEMI, MACHINE)
    epochs = sum(found.epochs)
    assert found.remaining(0, None) == pytest.approx(found.training + found.after)
    assert found.remaining(0, found.weights[0]) == pytest.approx(sum(map(operator.mul, found.epochs, found.weights)) + found.after)
    assert found.remaining(epochs, 100.0) == pytest.approx(found.after)
    first, *rounds = found.epochs
    assert found.remaining(first, 1.0) > sum(rounds) + found.after, "the rounds train on more pairs"
    left = [found.remaining(epoch, 10.0) for epoch in range(1, epochs + 1)]
    assert left == sorted(left, reverse=True)


def test_compiling_is_announced_and_counted_once_whatever_was_trained_before() -> None:
    """Runs of an older version say nothing of whether this version's kernels are compiled."""
    cold = replace(MACHINE, compiled=False)
    found = estimate_training(SIZES, BASIC, cold, [finished(1.0)])
    assert (found.compiling, found.runs) == (estimate.COMPILE_SECONDS, 1)
    assert "45 s of it for compiling, once on this machine" in estimate.duration_range(found)
    assert "compiling" not in estimate.duration_range(estimate_training(SIZES, BASIC, MACHINE))
    epochs = sum(found.epochs)
    assert found.remaining(1, None) == pytest.approx((found.training - found.compiling) * (epochs - 1) / epochs + found.after)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
def test_compiled_kernels_are_found_wherever_numba_keeps_them(tmp_path: Path, compiled: bool) -> None:
    """A folder of another name than the source's, as numba's own in the user's home is."""
    code = "from engine.training.estimate import kernels_compiled; print(kernels_compiled())"
    run = "import numpy as np; from engine.model.losses.kernels import losses_of; a = np.zeros(2, np.float32); losses_of(a, a[0], a, 0, 1, a)"
    there = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "elsewhere")}
    if compiled:
        subprocess.run([sys.executable, "-c", run], env=there, check=True)
    said = subprocess.run([sys.executable, "-c", code], env=there, check=True, capture_output=True, text=True).stdout.split()
    assert said == [str(compiled)]


def finished(factor: float, created: str = "2026-11-01T00:00:00+00:00", **changes: Any) -> RunSummary:
    """A run that took ``factor`` times as long as would have been estimated."""
    config = BASIC
    sides = {
        side: {"entities": SIZES.entities[at], "triples": SIZES.triples[at], "relations": SIZES.relations[at], "attributes": SIZES.attributes[at]}
        for at, side in enumerate(("source", "target"))
    }
    manifest = {
        "config": config.to_dict(),
        "data": {**sides, "links": {"train": SIZES.train, "valid": SIZES.valid, "test": SIZES.test}},
        "training": {"seconds": factor * count_work(SIZES, config).seconds(MACHINE), "precision": "float32"},
        "platform": platform.platform(),
        "threads": usable_cores(),
        "device": "cpu",
        **changes,
    }
    return RunSummary("d", "r", Path("r"), "finished", created, variant="basic", manifest=manifest)


def test_finished_runs_of_this_machine_correct_it() -> None:
    plain = estimate_training(SIZES, BASIC, MACHINE)
    slow = estimate_training(SIZES, BASIC, MACHINE, [finished(2.0)] * 3)
    assert slow.training == pytest.approx(2**0.75 * plain.training)
    assert slow.runs == 3
    one, many = (estimate_training(SIZES, BASIC, MACHINE, [finished(2.0)] * number).training for number in (1, 30))
    assert plain.training < one < slow.training < many < 2 * plain.training, "the fewer runs, the less they say"


@pytest.mark.parametrize(
    "other", [{"platform": "another"}, {"threads": 999}, {"device": "GPU"}, {"config": {"x": {}}}, {"data": {}}, {"training": {"seconds": 0.1}}]
)
def test_runs_that_say_nothing_of_this_machine_do_not(other: dict[str, Any]) -> None:
    assert estimate_training(SIZES, BASIC, MACHINE, [finished(3.0, **other)]).runs == 0


def test_the_median_of_the_nearest_is_taken() -> None:
    factors = (1.0, 1.0, 1.0, 50.0, 0.01)
    assert estimate_training(SIZES, BASIC, MACHINE, [finished(one) for one in factors]).training == pytest.approx(seconds_of_training())


def seconds_of_training() -> float:
    return count_work(SIZES, BASIC).seconds(MACHINE)


def test_memory_grows_with_entities_and_width_and_what_would_fit_is_said() -> None:
    needed = memory_needed(SIZES, SEMI)
    large = replace(SIZES, entities=(500_000, 500_000))
    assert 1_200 < needed < 2_600
    assert memory_needed(large, SEMI) > 5 * needed
    assert memory_needed(large, with_options(SEMI, encoder__dim=200)) > 1.8 * memory_needed(large, SEMI)
    assert memory_needed(large, with_options(SEMI, loss__candidate_share=1.0)) > 1.2 * memory_needed(large, SEMI)
    shares = [None, *(Share(number, 1_000_000 / number, 350_000 / number) for number in (2, 4, 16))]
    memory = [memory_needed(large, SEMI, share=share) for share in shares]
    assert memory == sorted(memory, reverse=True)
    assert check_memory(large, SEMI, 1.4 * memory[2], shares[2]) == "", "in four processes it fits"
    assert check_memory(SIZES, SEMI, 64_000.0) == ""
    assert check_memory(SIZES, SEMI, None) == ""
    assert "may not be enough; encoder.dim=" in check_memory(SIZES, SEMI, 1.1 * needed)
    huge = with_options(SEMI, encoder__dim=4096)
    with pytest.raises(TrainingError, match=r"needs about [\d.]+ GiB of memory, and 4.0 GiB are free; encoder.dim=\d+ would fit"):
        check_memory(SIZES, huge, 4096.0)
    fits = largest_dim(SIZES, huge, 3000.0)
    assert memory_needed(SIZES, with_options(SEMI, encoder__dim=fits)) <= 3000.0 < memory_needed(SIZES, with_options(SEMI, encoder__dim=fits + 10))
    with pytest.raises(TrainingError, match="use a larger machine"):
        check_memory(SIZES, SEMI, 100.0)


def test_the_machine_is_tried_out_once() -> None:
    found = measured_machine()
    assert measured_machine() is found
    assert min(found.float32, found.bfloat16, found.gather) > 1e6


def test_an_estimate_leaves_the_process_as_it_is() -> None:
    """It is made in a server, for one visitor among several."""
    before = torch.get_num_threads()
    for threads in (1, usable_cores()):
        estimate.measured_machine.cache_clear()
        measured_machine(threads)
        assert torch.get_num_threads() == before


def test_a_slow_probe_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """bfloat16 on a CPU without it takes a hundred times as long as float32; the page must not wait for forty trials of it."""
    clock = itertools.count(0.0, 0.25)  # each trial looks at the clock twice
    monkeypatch.setattr(estimate.time, "process_time", lambda: next(clock))
    trials: list[int] = []
    assert estimate._quickest(lambda: trials.append(1), 1) == 0.25
    assert len(trials) == estimate.LEAST_TRIALS
    trials.clear()
    clock = itertools.count(0.0, 1e-6)
    estimate._quickest(lambda: trials.append(1), 2)
    assert len(trials) == estimate.TRIALS


def test_only_who_trains_sets_threads_for_the_process() -> None:
    root = Path(estimate.__file__).resolve().parents[2]
    users = {
        path.relative_to(root).as_posix()
        for folder in ("engine", "app")
        for path in (root / folder).rglob("*.py")
        if "choose_threads" in path.read_text(encoding="utf-8")
    }
    setters = {
        path.relative_to(root).as_posix()
        for folder in ("engine", "app")
        for path in (root / folder).rglob("*.py")
        if ".set_num_threads(" in path.read_text(encoding="utf-8")
    }
    assert users == {"engine/pipeline/training.py", "engine/training/device.py", "engine/training/trainer.py"}
    serving = {f"engine/serving/{name}.py" for name in ("server", "service")}  # a process of its own, which trains nothing
    assert setters == {"engine/training/device.py", *serving}
