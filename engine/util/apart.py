"""Work in a process of its own, so that a server answers others meanwhile: Python lets one thread of a process compute at a time.

``python -m engine.util.apart N`` is that process: it takes functions with their arguments from the pipe whose number it is given, and sends what they
return, until the other end is closed. (A process that multiprocessing starts would run the server's main script again.)
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Final, ParamSpec, TypeVar, cast

from engine.errors import EngineError, MachineError

P = ParamSpec("P")
T = TypeVar("T")
NICENESS: Final = 10
"""By how much the process gives way to others that want to compute."""
IDLE_SECONDS: Final = 60.0
GONE: Final = (
    "The process that computes this was ended, most likely for lack of memory; close other programs or use a larger machine, then try again."
)
Answer = tuple[object, None] | tuple[None, Exception]


class Helper:
    """A process that computes one thing at a time. It starts when it is needed, and ends when it was not needed for a while, or with its owner.

    Args:
        idle: seconds after which it ends. What its functions keep is there for the next call until then.
    """

    def __init__(self, idle: float = IDLE_SECONDS) -> None:
        self._idle, self._busy = idle, threading.Lock()
        self._started: tuple[subprocess.Popen[bytes], Connection] | None = None
        self._end: threading.Timer | None = None

    def run(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """What a function returns. On Windows, which cannot hand a pipe over, it runs here.

        Args:
            function: of a module, so that the other process can import it.

        Raises:
            MachineError: the process cannot be started, or was ended before it was done.
            Exception: whatever the function raises.
        """
        if os.name == "nt":
            return function(*arguments, **options)
        with self._busy:
            if self._end is not None:
                self._end.cancel()
            self._started = self._started or _start()
            value, error = self._asked(self._started[1], (function, arguments, options))
            self._end = threading.Timer(self._idle, self.close)
            self._end.daemon = True
            self._end.start()
        if error is not None:
            raise error
        return cast("T", value)

    def _asked(self, connection: Connection, question: object) -> Answer:
        try:
            connection.send(question)
            answer: Answer = connection.recv()
        except (EOFError, OSError):
            self._stop()
            raise MachineError(GONE) from None
        return answer

    def close(self) -> None:
        """End the process, which gives its memory back; the next call starts another one."""
        with self._busy:
            self._stop()

    def _stop(self) -> None:
        if self._started is not None:
            process, connection = self._started
            self._started = None
            connection.close()
            process.wait()


def _start() -> tuple[subprocess.Popen[bytes], Connection]:
    """
    Raises:
        MachineError: there is no memory, no process or no open file more for it.
    """
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-m", "engine.util.apart", str(number)]
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, env=found, pass_fds=[number]), ours
    except OSError as error:
        raise MachineError(f"The process that computes this cannot be started ({error.strerror}); close other programs, then try again.") from None


def _serve(connection: Connection) -> None:
    """Answer until the other end is closed."""
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            function, arguments, options = connection.recv()
            connection.send(_answer(function, arguments, options))


def _answer(function: Callable[..., object], arguments: tuple[object, ...], options: dict[str, object]) -> Answer:
    try:
        return function(*arguments, **options), None
    except Exception as error:
        if not isinstance(error, EngineError):
            error.add_note(traceback.format_exc())  # of this process, which is lost otherwise
        return None, error


def _main() -> None:
    """The process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C in the server's terminal is sent to both
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    _serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    _main()
