"""Several processes that train together (``torchrun -m engine train``): which rank a process has, and the collective operations between them.

Every process ("rank") holds the graphs and the parameters. The candidates that a step compares its pairs with are divided among them: each computes
the final embeddings, the products and the gradient of its own part; sums are exchanged (per pair what the softmax needs, then the gradients).
Rank 0 leads: it alone writes, validates, selects pairs and evaluates; the others train on its command (:mod:`engine.training.worker`) until it ends.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Protocol, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from engine.errors import ConfigError, LostProcessError

Value = TypeVar("Value")

PATIENCE = timedelta(hours=2)
"""How long the others wait for a word of rank 0, which evaluates and writes by itself; one that ends is noticed at once, by its closed connection."""


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

    def sum(self, values: Tensor) -> Tensor:
        with as_lost_process():
            dist.all_reduce(values, dist.ReduceOp.SUM)
        return values

    def max(self, values: Tensor) -> Tensor:
        with as_lost_process():
            dist.all_reduce(values, dist.ReduceOp.MAX)
        return values

    def most(self, number: int) -> int:
        return int(self.max(torch.tensor(number)))

    def first(self, compute: Callable[[], Value]) -> Value:
        values: list[Any] = [compute() if self.rank == 0 else None]
        with as_lost_process():
            dist.broadcast_object_list(values, src=0, device=torch.device("cpu"))
        return cast(Value, values[0])


@contextlib.contextmanager
def as_lost_process() -> Iterator[None]:
    """
    Raises:
        LostProcessError: instead of what torch.distributed raises where a connection ends.
    """
    try:
        yield
    except RuntimeError as error:  # gloo's and NCCL's failures have no class of their own in common
        raise LostProcessError("another process of this training has ended or cannot be reached; start all processes again to resume.") from error


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
