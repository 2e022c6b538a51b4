"""Work in a process of its own, so that a server answers others meanwhile: Python lets one thread of a process compute at a time."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import ParamSpec, TypeVar

from engine.errors import MachineError

P = ParamSpec("P")
T = TypeVar("T")
NICENESS = 10
"""How far the process stands back: it computes when no one else has to."""


def run_apart(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """What a function returns, computed in a new process of low priority; its memory goes back to the system with it.

    Args:
        function: of a module, so that the other process can import it. Arguments and result are pickled.

    Raises:
        MachineError: the process was ended before it was done.
        Exception: whatever the function raises.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _stand_back) as process:
        try:
            return process.submit(function, *arguments, **options).result()
        except BrokenProcessPool:
            reason = "a process that this needs was ended by the system, most likely for lack of memory"
            raise MachineError(f"{reason}; close other programs or use a larger machine, then try again.") from None


def _stand_back() -> None:
    if hasattr(os, "nice"):  # not on Windows
        with contextlib.suppress(OSError):
            os.nice(NICENESS)
