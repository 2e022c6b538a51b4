"""How rank 0 leads the other processes of a training (:mod:`engine.util.distributed`): by orders, the last of which is that there are no more.

Only rank 0 determines what to train: whether the run is there already, which links reviewers changed, that a literal run needs a semi run first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.data.shards import StoredTask
from engine.errors import LostProcessError, TrainingError
from engine.runs.row_files import RowFiles
from engine.training.trainer import Trainer
from engine.util.arrays import IntArray
from engine.util.distributed import Ranks


@dataclass(frozen=True)
class Order:
    """What to train: settings, which data (each process reads them itself), and their links, which reviewers may have changed; the run's id."""

    config: RunConfig
    fingerprint: str
    split: str
    train_links: IntArray
    valid_links: IntArray
    shards: str = ""
    run_id: str = ""


@contextlib.contextmanager
def leading(ranks: Ranks) -> Iterator[None]:
    """Within this, rank 0 gives orders; at its end the others are let go, unless they are gone. They learn whether all went well."""
    done = False
    try:
        yield
        done = True
    finally:
        with contextlib.suppress(LostProcessError):
            ranks.first(lambda: done)


def lead(task: AlignmentTask, config: RunConfig, ranks: Ranks, run_id: str = "") -> None:
    """Have the others train this, too; ``run_id``: of the run in the making, in whose folder each process keeps its rows of checkpoints.

    Raises:
        TrainingError: one of them reads other data.
    """
    order = Order(config, task.fingerprint, task.split, task.train_links, task.valid_links, shards_of(task), run_id)
    ranks.first(lambda: order)
    check_data(task, order, ranks)


def follow(path: Path, config: RunConfig, ranks: Ranks, should_stop: Callable[[], bool] = lambda: False, *, models: Path) -> None:
    """What every process but the first does: train whatever rank 0 orders, until it has none.

    Args:
        path: the data set's folder, on this machine.
        config: as for rank 0; only how the data are read is looked at.
        ranks: the processes.
        should_stop: asked after each step; True ends the training of all.
        models: where runs are kept, or would be: what this process holds of checkpoints is kept there until the run is finished.

    Raises:
        EngineError: as in training; data that cannot be read, or are not those of rank 0.
    """
    task = load_task(path, config.data, config.seed)
    left: list[RowFiles] = []
    while isinstance(order := ranks.first(no_order), Order):
        check_data(task, order, ranks)
        task_of_rank_0 = replace(task, split=order.split, train_links=order.train_links, valid_links=order.valid_links)
        rows = RowFiles.of_run(models, task.name, order.run_id)
        trained = Trainer(task_of_rank_0, order.config, ranks=ranks).train(rows=rows, should_stop=should_stop)
        left += [] if trained.stopped else [rows]
    if order:  # where all went well, rank 0 has removed those of its machine
        for rows in left:
            rows.clear()


def no_order() -> Order | bool:
    """The followers' side of an order: they compute none."""
    return False


def shards_of(task: AlignmentTask) -> str:
    """The digest of the shard folder that a task is from; "" where it is from none."""
    return task.shards.digest if isinstance(task, StoredTask) else ""


def check_data(task: AlignmentTask, order: Order, ranks: Ranks) -> None:
    """
    Raises:
        TrainingError: in all processes, where one has read other data than rank 0.
    """
    same = (task.fingerprint, shards_of(task)) == (order.fingerprint, order.shards)
    if other := ranks.most(0 if same else ranks.rank):
        raise TrainingError(f"process {other} reads other data than process 0; use the same, unchanged folder for all processes.")
