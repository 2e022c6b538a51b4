"""Loops compiled by numba, and their rows spread over threads.

Kernels are compiled for one thread, without the interpreter lock, and several plain threads call them with rows of their own. numba's own parallel
loops are not used: such a loop runs other machine code in the process that compiled it than in one that loads it from the cache (sums are taken in
another order), so that the first run on a machine would differ from its repetition; and numba's thread pools abort the process on some platforms
when two sessions of a web server compute at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch

from engine.util.kernel_cache import compile_cached

Function = TypeVar("Function", bound=Callable[..., Any])
LEAST_WORK = 1 << 18
"""Values below which a second thread costs more than it saves."""


def compiled(function: Function) -> Function:
    """numba's ``njit`` without the interpreter lock, with the signature kept for the type checker."""
    return cast(Function, compile_cached(function, nogil=True))


def summing(function: Function) -> Function:
    """The same for kernels that sum: sums may be reassociated, so that their loops become vector instructions.

    A loop that sums must not write to an array as well: where arrays lie in memory would decide whether it is vectorised, and with it the order of
    the sum. Divisions by zero give what numpy's give.
    """
    return cast(Function, compile_cached(function, nogil=True, fastmath={"reassoc", "nsz", "arcp"}, error_model="numpy"))


@compiled
def first_from(indices: npt.NDArray[np.integer], start: int, stop: int, least: int) -> int:
    """The first position in start..stop whose index, ascending there, is at least ``least``; ``stop`` where there is none."""
    while start < stop:
        middle = (start + stop) // 2
        if indices[middle] < least:
            start = middle + 1
        else:
            stop = middle
    return start


def kernel(function: Callable[..., None]) -> Callable[..., None]:
    """A summing kernel whose rows are cut at bounds: called as ``f(bounds, ...)``, it runs ``function(part, bounds, ...)`` for each part."""
    one_part = summing(function)

    @wraps(function)
    def every_part(bounds: npt.NDArray[np.int64], *arguments: Any) -> None:
        run_parts(lambda part: one_part(part, bounds, *arguments), len(bounds) - 1)

    return every_part


def cut(size: int, step: int) -> Iterator[slice]:
    """range(size) in parts of ``step``, the last one shorter, to be worked on one after the other."""
    return (slice(start, min(start + step, size)) for start in range(0, size, max(step, 1)))


def spread(work: Callable[[int, int], None], count: int, size: int) -> None:
    """Call ``work(start, stop)`` over equal parts of range(count) on as many threads as torch uses; ``size`` values are looked at in all."""
    edges = equal_parts(count, size)
    run_parts(lambda part: work(int(edges[part]), int(edges[part + 1])), len(edges) - 1)


def equal_parts(count: int, size: int) -> npt.NDArray[np.int64]:
    """(parts + 1,) bounds of equal parts of range(count), one for each of torch's threads that ``size`` values are worth."""
    threads = max(min(torch.get_num_threads(), size // LEAST_WORK, count), 1)
    return np.arange(threads + 1, dtype=np.int64) * count // threads


def run_parts(work: Callable[[int], None], parts: int) -> None:
    """Call ``work(part)`` for each part, side by side; the first in the calling thread.

    ``work`` must not spread work of its own: it would wait for threads that wait for it.
    """
    waiting = [_pool(parts - 1).submit(work, part) for part in range(1, parts)]
    try:
        if parts:
            work(0)
    finally:  # what they write to must not be given back before they are done
        problems = [one.exception() for one in waiting]
    for problem in problems:
        if problem is not None:
            raise problem


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="kernels")
