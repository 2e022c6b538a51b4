"""Several processes that train together (``torchrun -m engine train``): which rank a process has, and the collective operations between them.

The entities are divided among the processes ("ranks"; :mod:`engine.model.shard`): each holds the features of its own, computes their embeddings
and compares each step's pairs with those of its own that are candidates. Rows of neighbours, the pairs' embeddings, sums of the softmax and the
gradients of what all entities share go from process to process. Rank 0 leads: it alone knows what to train and writes; the others train on its
command (:mod:`engine.training.worker`) and answer what it asks of the embeddings (:mod:`engine.search.divided`) until it ends.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from engine.errors import ConfigError, LostProcessError

Value = TypeVar("Value")

PATIENCE = timedelta(hours=2)
"""How long the others wait for rank 0 where it works by itself; a process that ends is noticed at once, by its closed connection."""
STEP_PATIENCE = timedelta(minutes=10)
"""How long all wait for each other within a step, and rank 0 for others to receive an order."""


class Ranks(Protocol):
    """The processes of a training. All of them must call the same methods in the same order.

    Every method raises LostProcessError where another process has ended or can no longer be reached.
    """

    @property
    def rank(self) -> int:
        """This process, from 0."""
        ...

    @property
    def size(self) -> int: ...

    @property
    def sent(self) -> int:
        """Bytes that this process has sent to others by ``sum``, ``max`` and ``swap``; of sums, what a ring sends."""
        ...

    def swap(self, rows: Tensor, sends: Sequence[int], receives: Sequence[int]) -> Tensor:
        """Send rows to each process, and receive rows of the same shape.

        Args:
            rows: (sum of ``sends``, ...) first those for process 0.
            sends, receives: how many rows go to and come from each process, this one included.

        Returns:
            (sum of ``receives``, ...) first those of process 0.
        """
        ...

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes, which may be written into ``values``; the same bits in each of them."""
        ...

    def max(self, values: Tensor) -> Tensor:
        """The maximum over all processes, likewise."""
        ...

    def most(self, number: int) -> int:
        """The largest of the processes' numbers."""
        ...

    def first(self, compute: Callable[[], Value]) -> Value:
        """What rank 0 computes; the others do not compute."""
        ...


class Alone:
    """One process."""

    rank = 0
    size = 1
    sent = 0

    def swap(self, rows: Tensor, sends: Sequence[int], receives: Sequence[int]) -> Tensor:
        return rows

    def sum(self, values: Tensor) -> Tensor:
        return values

    def max(self, values: Tensor) -> Tensor:
        return values

    def most(self, number: int) -> int:
        return number

    def first(self, compute: Callable[[], Value]) -> Value:
        return compute()


ALONE = Alone()


class Together:
    """The processes that torchrun has started, through torch.distributed: gloo between CPUs, NCCL between GPUs."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.sent = 0
        self.steps = dist.new_group(timeout=STEP_PATIENCE)
        self.orders = dist.new_group(timeout=PATIENCE if self.rank else STEP_PATIENCE)
        self._met = False

    def swap(self, rows: Tensor, sends: Sequence[int], receives: Sequence[int]) -> Tensor:
        received = rows.new_empty((sum(receives), *rows.shape[1:]))
        with as_lost_process():
            dist.all_to_all_single(received, rows.contiguous(), list(receives), list(sends), group=self.steps)
        self.sent += (len(rows) - sends[self.rank]) * rows[:1].nbytes
        return received

    def sum(self, values: Tensor) -> Tensor:
        return self._reduce(values, dist.ReduceOp.SUM)

    def max(self, values: Tensor) -> Tensor:
        return self._reduce(values, dist.ReduceOp.MAX)

    def _reduce(self, values: Tensor, operation: dist.ReduceOp.RedOpType) -> Tensor:
        with as_lost_process():
            dist.all_reduce(values, operation, group=self.steps)
        self.sent += round(ring_bytes(values.nbytes, self.size))
        return values

    def most(self, number: int) -> int:
        return int(self.max(torch.tensor(number)))

    def first(self, compute: Callable[[], Value]) -> Value:
        values: list[Any] = [compute() if self.rank == 0 else None]
        group = self.orders if self._met else None  # before the others come for the first time they read the data
        with as_lost_process():
            dist.broadcast_object_list(values, src=0, group=group, device=torch.device("cpu"))
        self._met = True
        return cast(Value, values[0])


def ring_bytes(size: float, processes: int) -> float:
    """Bytes that each process sends where ``size`` bytes are reduced in a ring: all but its own part twice, as sums and as results."""
    return 2 * size * (processes - 1) / processes


@contextlib.contextmanager
def as_lost_process() -> Iterator[None]:
    """
    Raises:
        LostProcessError: instead of what torch.distributed raises where a connection ends.
    """
    try:
        yield
    except RuntimeError as error:  # gloo's and NCCL's failures have no class of their own in common
        raise LostProcessError(
            "another process of this training has ended, cannot be reached or no longer answers; start all processes again to resume."
        ) from error


@contextlib.contextmanager
def joined() -> Iterator[Ranks]:
    """The processes that this one was started with by torchrun; it alone where it was not.

    Raises:
        ConfigError: they cannot find each other.
        LostProcessError: another one ends.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1 or "RANK" not in os.environ:
        yield ALONE
        return
    join()
    try:
        yield Together()
    finally:
        with contextlib.suppress(RuntimeError):  # a connection that is broken already
            dist.destroy_process_group()


def join() -> None:
    """Connect to the other processes at the address that torchrun gave to all."""
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl"
    try:
        dist.init_process_group(backend, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        where = f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{socket.gethostname()} cannot reach the other processes at {where} ({reason}); start them with torchrun.") from None


def local_processes() -> int:
    """How many processes of the training share this machine's cores."""
    return max(int(os.environ.get("LOCAL_WORLD_SIZE", "1")), 1)
