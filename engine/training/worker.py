"""How rank 0 leads the other processes of a training (:mod:`engine.util.distributed`): by orders, the last of which is that there are no more.

Only rank 0 determines what to train: whether the run is there already, which links reviewers changed, that a literal run needs a semi run first.
After training each process keeps what it holds, and rank 0 has it searched (:mod:`engine.search.divided`), summed up and sent for the run, until it
orders another training.
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
from engine.search.divided import EMBEDDINGS, DividedSimilarity, To
from engine.search.parts import NOTHING, Divisible, Part, dealt_out
from engine.training.orders import ModelOrder, PartsOrder
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


@dataclass(frozen=True)
class Deal:
    """Take a part of a similarity that rank 0 has; ``similarity`` is the same without entities."""

    similarity: Divisible


def dealt(ranks: Ranks, similarity: Divisible) -> DividedSimilarity:
    """A similarity that rank 0 has, divided among all, for rank 0."""
    ranks.first(lambda: Deal(similarity.select(NOTHING, NOTHING)))
    return DividedSimilarity(dealt_out(ranks, similarity))


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
    """What every process but the first does: train whatever rank 0 orders, and answer what it asks of that, until it has no more orders.

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
    Follower(ranks, models).obey_all(task, should_stop)


class Follower:
    """A process that is not the first, with what it holds of the training that was ordered last."""

    def __init__(self, ranks: Ranks, models: Path) -> None:
        self.ranks, self.models = ranks, models
        self.left: list[RowFiles] = []
        self.trainer: Trainer | None = None
        self.parts: dict[str, Part] = {}

    def obey_all(self, task: AlignmentTask, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Until there are no more orders."""
        while not isinstance(order := self.ranks.first(no_order), bool):
            if isinstance(order, Order):
                self._train(task, order, should_stop)
            else:
                self._obey(order)
        if order:  # where all went well, rank 0 has removed those of its machine
            for rows in self.left:
                rows.clear()

    def _train(self, task: AlignmentTask, order: Order, should_stop: Callable[[], bool]) -> None:
        self.trainer, self.parts = None, {}  # what the training before left makes room first
        check_data(task, order, self.ranks)
        task_of_rank_0 = replace(task, split=order.split, train_links=order.train_links, valid_links=order.valid_links)
        self.trainer = Trainer(task_of_rank_0, order.config, ranks=self.ranks)
        rows = RowFiles.of_run(self.models, task.name, order.run_id)
        trained = self.trainer.train(rows=rows, should_stop=should_stop)
        self.left += [] if trained.stopped else [rows]

    def _obey(self, order: Deal | ModelOrder | PartsOrder | To) -> None:
        if isinstance(order, Deal):
            self.trainer, self.parts = None, {}  # make room first
            self.parts = {EMBEDDINGS: dealt_out(self.ranks, order.similarity)}
        elif isinstance(order, To):
            order.question.answer(self.parts[order.name])
        elif self.trainer is not None:
            if isinstance(order, ModelOrder):
                order.carry_out(self.trainer.model)
            else:
                self.parts |= order.parts(self.trainer.model)


def no_order() -> Order | Deal | ModelOrder | PartsOrder | To | bool:
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
