"""Work in a process of its own, so that a server answers others meanwhile: Python lets one thread of a process compute at a time."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Final, ParamSpec, TypeVar

from engine.errors import EngineError, MachineError

P = ParamSpec("P")
T = TypeVar("T")
NICENESS: Final = 5
"""By how much the process gives way to others that want to compute."""
IDLE_SECONDS: Final = 60.0


class Helper:
    """A process that computes one thing at a time. It starts when it is needed, and ends when it was not needed for a while, or with its owner.

    Args:
        idle: seconds after which it ends. What its functions keep is there for the next call until then.
    """

    def __init__(self, idle: float = IDLE_SECONDS) -> None:
        self._idle, self._busy = idle, threading.Lock()
        self._started: tuple[SpawnProcess, Connection] | None = None
        self._end: threading.Timer | None = None

    def run(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """What a function returns.

        Args:
            function: of a module, so that the other process can import it. Arguments and result are pickled.

        Raises:
            MachineError: the process was ended before it was done.
            Exception: whatever the function raises.
        """
        with self._busy:
            if self._end is not None:
                self._end.cancel()
            self._started = self._started or _start()
            connection = self._started[1]
            try:
                connection.send((function, arguments, options))
                answer: tuple[T, None] | tuple[None, Exception] = connection.recv()
            except (EOFError, BrokenPipeError, ConnectionResetError):
                self._stop()
                reason = "a process that this needs was ended by the system, most likely for lack of memory"
                raise MachineError(f"{reason}; close other programs or use a larger machine, then try again.") from None
            else:
                self._end = threading.Timer(self._idle, self.close)
                self._end.daemon = True
                self._end.start()
        value, error = answer
        if error is not None:
            raise error
        return value  # type: ignore[return-value]

    def close(self) -> None:
        """End the process, which gives its memory back; the next call starts another one."""
        with self._busy:
            self._stop()

    def _stop(self) -> None:
        if self._started is not None:
            process, connection = self._started
            self._started = None
            connection.close()
            process.join()


def _start() -> tuple[SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _serve(connection: Connection) -> None:
    """Answer until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C in the server's terminal is sent to both
    if hasattr(os, "nice"):  # not on Windows
        with contextlib.suppress(OSError):
            os.nice(NICENESS)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            function, arguments, options = connection.recv()
            connection.send(_answer(function, arguments, options))


def _answer(function: Callable[..., T], arguments: tuple[object, ...], options: dict[str, object]) -> tuple[T, None] | tuple[None, Exception]:
    try:
        return function(*arguments, **options), None
    except Exception as error:
        if not isinstance(error, EngineError):
            error.add_note(traceback.format_exc())  # of this process, which is lost otherwise
        return None, error
