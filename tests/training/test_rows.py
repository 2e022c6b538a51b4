"""Checkpoints of several processes: any number of processes resumes from them, and what is missing or damaged of one is noticed by all."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.errors import RunError, TrainingError
from engine.runs.row_files import RowFiles
from engine.training.rows import RowKeeper
from engine.training.trainer import Trainer
from engine.util.distributed import ALONE, Ranks
from tests.ranks import ThreadRanks, together

CONFIG = RunConfig.from_dict({"variant": "semi"}).with_values(
    {
        "encoder.dim": 8,
        "encoder.proxies": 4,
        "training.epochs": 3,
        "training.batch_size": 40,
        "training.threads": 1,
        "training.precision": "float32",
        "training.checkpoint_seconds": 0.0,
        "loss.least_candidates": 150,
        "semi.rounds": 1,
        "semi.round_epochs": 1,
    }
)


class Shared:
    """What process 0 writes: the two newest checkpoints, in memory."""

    def __init__(self) -> None:
        self.saved: list[tuple[dict[str, Tensor], dict[str, Any]]] = []

    def save(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        self.saved = [*self.saved[-1:], copy.deepcopy((dict(tensors), dict(state)))]

    def load(self, earlier: int = 0) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        return copy.deepcopy(self.saved[-1 - earlier]) if earlier < len(self.saved) else None


@pytest.fixture(scope="module")
def task(small_europe: Path) -> AlignmentTask:
    return load_task(small_europe)


def end(task: AlignmentTask, ranks: Ranks, shared: Shared, places: Callable[[int], Path], *, steps: int = 1000) -> tuple[list[float], Tensor]:
    """Train for a number of steps, from the last checkpoint where there is one: the losses of all epochs, and parameters that all share."""
    trainer, asked = Trainer(task, CONFIG, ranks=ranks), iter(range(steps))
    stop = {"should_stop": lambda: next(asked, None) is None}
    trained = trainer.train(checkpoints=None if ranks.rank else shared, rows=RowFiles(places(ranks.rank)), **stop)
    return [line["loss"] for line in trained.trace if "loss" in line], trainer.model.relation_features.detach()


@pytest.fixture(scope="module")
def unbroken(task: AlignmentTask) -> tuple[list[float], Tensor]:
    trainer = Trainer(task, CONFIG)
    return [line["loss"] for line in trainer.train().trace if "loss" in line], trainer.model.relation_features.detach()


def check(found: tuple[list[float], Tensor], unbroken: tuple[list[float], Tensor]) -> None:
    assert found[0] == pytest.approx(unbroken[0], rel=1e-5)
    torch.testing.assert_close(found[1], unbroken[1], rtol=1e-4, atol=1e-5)


def trained(processes: int, work: Callable[[Ranks], Any]) -> list[Any]:
    return [work(ALONE)] if processes == 1 else together(processes, work)


@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (3, 2), (2, 1), (1, 2)])
def test_any_number_of_processes_resumes(before: int, after: int, task: AlignmentTask, unbroken: tuple[list[float], Tensor], tmp_path: Path) -> None:
    shared = Shared()
    trained(before, lambda ranks: end(task, ranks, shared, lambda rank: tmp_path, steps=5))
    for found in trained(after, lambda ranks: end(task, ranks, shared, lambda rank: tmp_path)):
        check(found, unbroken)
    left = sorted(int(path.name[:4]) for path in RowFiles(tmp_path).folder.glob("*"))
    assert left == sorted(2 * list(range(before if after == 1 else after))), "the two newest checkpoints"


def test_no_process_keeps_the_rows_of_others(task: AlignmentTask, tmp_path: Path) -> None:
    shared = Shared()
    together(2, lambda ranks: end(task, ranks, shared, lambda rank: tmp_path / str(rank), steps=2))
    tensors, state = shared.saved[-1]
    assert not [name for name, tensor in tensors.items() if len(tensor) == task.num_entities]
    rows = [RowFiles(tmp_path / str(rank)).load(rank, digest) for rank, digest in enumerate(state["rows"]["digests"])]
    assert sorted(torch.cat([one["own"] for one in rows if one is not None]).tolist()) == list(range(task.num_entities))
    assert all({"own", "model.entity_features"} < set(one or {}) for one in rows)


def test_each_machine_may_have_a_disk_of_its_own(task: AlignmentTask, unbroken: tuple[list[float], Tensor], tmp_path: Path) -> None:
    """Also where processes come up with other numbers; one process alone lacks the other's rows."""
    shared = Shared()
    together(2, lambda ranks: end(task, ranks, shared, lambda rank: tmp_path / str(rank), steps=5))
    with pytest.raises(TrainingError, match="rows of the last checkpoint are missing or damaged; resume where they are"):
        end(task, ALONE, shared, lambda rank: tmp_path / "0")
    for found in together(2, lambda ranks: end(task, ranks, shared, lambda rank: tmp_path / str(1 - rank))):
        check(found, unbroken)


def damaged(folder: Path, process: int) -> None:
    newest = max(folder.glob(f"{process:04}-*"), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-1] + b"\0\1"[newest.read_bytes()[-1] == 0 :][:1])


def test_a_checkpoint_with_a_damaged_file_is_passed_over(task: AlignmentTask, unbroken: tuple[list[float], Tensor], tmp_path: Path) -> None:
    shared = Shared()
    together(2, lambda ranks: end(task, ranks, shared, lambda rank: tmp_path, steps=5))
    damaged(RowFiles(tmp_path).folder, 1)
    before = copy.deepcopy(shared.saved)
    for found in together(2, lambda ranks: end(task, ranks, shared, lambda rank: tmp_path)):
        check(found, unbroken)
    shared.saved = before
    for path in RowFiles(tmp_path).folder.glob("0001-*"):
        path.unlink()

    def shown(ranks: ThreadRanks) -> str:
        with pytest.raises(TrainingError) as caught:
            end(task, ranks, shared, lambda rank: tmp_path)
        return str(caught.value)

    assert all("rows of the last checkpoint are missing or damaged" in message for message in together(2, shown))


def test_a_process_that_dies_while_it_saves_leaves_the_checkpoint_before(
    task: AlignmentTask, unbroken: tuple[list[float], Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are written, but the one that makes them a checkpoint is not."""
    shared = Shared()
    together(2, lambda ranks: end(task, ranks, shared, lambda rank: tmp_path, steps=3))
    known = len(list(RowFiles(tmp_path).folder.iterdir()))
    with monkeypatch.context() as patched:
        patched.setattr(Shared, "save", lambda self, tensors, state: None)
        patched.setattr(RowKeeper, "settle", lambda self, digests: None)
        together(2, lambda ranks: end(task, ranks, shared, lambda rank: tmp_path, steps=3))
    assert len(list(RowFiles(tmp_path).folder.iterdir())) > known
    for found in together(2, lambda ranks: end(task, ranks, shared, lambda rank: tmp_path)):
        check(found, unbroken)


def test_names_in_a_checkpoint_lead_nowhere_else(tmp_path: Path) -> None:
    rows = RowFiles(tmp_path / "run")
    digest = rows.save(0, {"own": torch.arange(3)})
    assert rows.has(0, digest)
    outside = tmp_path / "0000-x.safetensors"
    outside.write_bytes(next(rows.folder.iterdir()).read_bytes())
    for name in ("../../../0000-x", "x", "../" * 9):
        assert not rows.has(0, name)
        assert rows.load(0, name) is None


def test_what_is_left_on_a_machine_without_the_run_is_removed(tmp_path: Path) -> None:
    rows = RowFiles.of_run(tmp_path / "models", "data", "basic-s0-1")
    rows.save(1, {"own": torch.arange(3)})
    rows.clear()
    rows.clear()
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "models"])
    kept = RowFiles.of_run(tmp_path / "models", "data", "basic-s0-2")
    kept.save(1, {"own": torch.arange(3)})
    (kept.folder.parent / "training-000001").touch()
    kept.clear()
    assert (kept.folder.parent / "training-000001").exists()


def test_a_disk_that_does_not_take_rows_is_reported(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(RunError, match="cannot write a checkpoint"):
        RowFiles(tmp_path / "run").save(0, {"own": torch.arange(3)})
