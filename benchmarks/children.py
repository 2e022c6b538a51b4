"""Measurements in processes of their own, so that each has its own peak of memory and starts with nothing warmed up by another."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol, TypeVar

from engine.errors import TrainingError

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class Run(Protocol):
    """Calls a function with an argument, somewhere."""

    def __call__(self, function: Callable[[Argument], Result], argument: Argument, about: str) -> Result: ...


def in_a_process(function: Callable[[Argument], Result], argument: Argument, about: str) -> Result:
    """Call it in a new process.

    Raises:
        TrainingError: the process was ended from outside.
    """
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(function, argument).result()
        except BrokenProcessPool:
            raise TrainingError(f"{about} was ended by the system, most likely for lack of memory; measure something smaller.") from None


def here(function: Callable[[Argument], Result], argument: Argument, about: str) -> Result:
    """Call it in this process: for tests."""
    return function(argument)
