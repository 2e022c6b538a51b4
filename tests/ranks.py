"""Several processes of a training, played by threads of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from threading import Barrier, BrokenBarrierError
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

Value = TypeVar("Value")
WAIT = 60.0  # seconds for the others


@dataclass
class Table:
    """Where the threads put the values that they exchange."""

    size: int
    barrier: Barrier = field(init=False)
    values: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.barrier = Barrier(self.size, timeout=WAIT)
        self.values = [None] * self.size

    def exchange(self, rank: int, value: Any) -> Sequence[Any]:
        self.values[rank] = value
        self.barrier.wait()
        everything = list(self.values)
        self.barrier.wait()
        return everything


@dataclass(frozen=True)
class ThreadRanks:
    """See :class:`engine.util.distributed.Ranks`."""

    rank: int
    table: Table

    @property
    def size(self) -> int:
        return self.table.size

    @property
    def sent(self) -> int:
        return 0

    def swap(self, rows: Tensor, sends: Sequence[int], receives: Sequence[int]) -> Tensor:
        given = self.table.exchange(self.rank, (rows.clone(), list(sends)))
        parts = [torch.split(part, counts)[self.rank] for part, counts in given]
        assert [len(part) for part in parts] == list(receives)
        return torch.cat(parts)

    def sum(self, values: Tensor) -> Tensor:
        return torch.stack(list(self.table.exchange(self.rank, values.clone()))).sum(0)

    def max(self, values: Tensor) -> Tensor:
        return torch.stack(list(self.table.exchange(self.rank, values.clone()))).amax(0)

    def most(self, number: int) -> int:
        return max(self.table.exchange(self.rank, number))

    def first(self, compute: Callable[[], Value]) -> Value:
        return cast(Value, deepcopy(self.table.exchange(self.rank, compute() if self.rank == 0 else None)[0]))  # as if it came from elsewhere


def together(size: int, work: Callable[[ThreadRanks], Value]) -> list[Value]:
    """What ``work`` gives in each of ``size`` processes."""
    table = Table(size)

    def one(rank: int) -> Value:
        try:
            return work(ThreadRanks(rank, table))
        except BaseException:
            table.barrier.abort()  # or the others would wait for it
            raise

    with ThreadPoolExecutor(size) as pool:
        parts = [pool.submit(one, rank) for rank in range(size)]
    problems = [problem for part in parts if (problem := part.exception()) is not None]
    for problem in sorted(problems, key=lambda problem: isinstance(problem, BrokenBarrierError)):
        raise problem
    return [part.result() for part in parts]
