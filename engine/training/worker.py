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
from engine.errors import LostProcessError, TrainingError
from engine.training.trainer import Trainer
from engine.util.arrays import IntArray
from engine.util.distributed import Ranks


@dataclass(frozen=True)
class Order:
    """What to train: settings, which data (each process reads them itself), and their links, which reviewers may have changed."""

    config: RunConfig
    fingerprint: str
    split: str
    train_links: IntArray
    valid_links: IntArray


@contextlib.contextmanager
def leading(ranks: Ranks) -> Iterator[None]:
    """Within this, rank 0 gives orders; at its end the others are let go, unless they are gone."""
    try:
        yield
    finally:
        with contextlib.suppress(LostProcessError):
            ranks.first(lambda: None)


def lead(task: AlignmentTask, config: RunConfig, ranks: Ranks) -> None:
    """Have the others train this, too.

    Raises:
        TrainingError: one of them reads other data.
    """
    order = Order(config, task.fingerprint, task.split, task.train_links, task.valid_links)
    ranks.first(lambda: order)
    check_data(task, order, ranks)


def follow(path: Path, config: RunConfig, ranks: Ranks, should_stop: Callable[[], bool] = lambda: False) -> None:
    """What every process but the first does: train whatever rank 0 orders, until it has none.

    Args:
        path: the data set's folder, on this machine.
        config: as for rank 0; only how the data are read is looked at.
        ranks: the processes.
        should_stop: asked after each step; True ends the training of all.

    Raises:
        EngineError: as in training; data that cannot be read, or are not those of rank 0.
    """
    task = load_task(path, config.data, config.seed)
    while (order := ranks.first(no_order)) is not None:
        check_data(task, order, ranks)
        task_of_rank_0 = replace(task, split=order.split, train_links=order.train_links, valid_links=order.valid_links)
        Trainer(task_of_rank_0, order.config, ranks=ranks).train(should_stop=should_stop)


def no_order() -> Order | None:
    """The followers' side of an order: they compute none."""
    return None


def check_data(task: AlignmentTask, order: Order, ranks: Ranks) -> None:
    """
    Raises:
        TrainingError: in all processes, where one has read other data than rank 0.
    """
    if other := ranks.most(ranks.rank if task.fingerprint != order.fingerprint else 0):
        raise TrainingError(f"process {other} reads other data than process 0; use the same, unchanged folder for all processes.")
