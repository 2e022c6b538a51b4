"""Work in a process of its own, so that a server answers others meanwhile: Python lets one thread of a process compute at a time.

``python -m engine.util.apart`` is that process: it reads functions with their arguments from standard input and writes what they return to standard
output, pickled, until the input ends. (multiprocessing would run the server's main script again in it.)
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import IO, Final, ParamSpec, TypeVar, cast

from engine.errors import EngineError, MachineError

P = ParamSpec("P")
T = TypeVar("T")
NICENESS: Final = 5
"""By how much the process gives way to others that want to compute."""
IDLE_SECONDS: Final = 60.0
Answer = tuple[object, None] | tuple[None, Exception]


class Helper:
    """A process that computes one thing at a time. It starts when it is needed, and ends when it was not needed for a while, or with its owner.

    Args:
        idle: seconds after which it ends. What its functions keep is there for the next call until then.
    """

    def __init__(self, idle: float = IDLE_SECONDS) -> None:
        self._idle, self._busy = idle, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: threading.Timer | None = None

    def run(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """What a function returns.

        Args:
            function: of a module, so that the other process can import it. Arguments and result are pickled.

        Raises:
            MachineError: the process cannot be started, or was ended before it was done.
            Exception: whatever the function raises.
        """
        with self._busy:
            if self._end is not None:
                self._end.cancel()
            self._process = self._process or _start()
            value, error = self._asked(self._process, (function, arguments, options))
            self._end = threading.Timer(self._idle, self.close)
            self._end.daemon = True
            self._end.start()
        if error is not None:
            raise error
        return cast("T", value)

    def _asked(self, process: subprocess.Popen[bytes], question: object) -> Answer:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(question, process.stdin)
            process.stdin.flush()
            answer: Answer = pickle.load(process.stdout)  # which we started ourselves
        except (EOFError, OSError, pickle.UnpicklingError):
            self._stop()
            raise MachineError(
                "The process that computes this was ended by the system, most likely for lack of memory; "
                "close other programs or use a larger machine, then try again."
            ) from None
        return answer

    def close(self) -> None:
        """End the process, which gives its memory back; the next call starts another one."""
        with self._busy:
            self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):  # it is gone already
                self._process.communicate()
            self._process = None


def _start() -> subprocess.Popen[bytes]:
    """
    Raises:
        MachineError: there is no memory, or no process more, for it.
    """
    command, found = [sys.executable, "-m", "engine.util.apart"], {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=found)
    except OSError as error:
        raise MachineError(f"The process that computes this cannot be started ({error.strerror}); close other programs, then try again.") from None


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there are no more questions."""
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            function, arguments, options = pickle.load(questions)
            pickle.dump(_answer(function, arguments, options), answers)
            answers.flush()


def _answer(function: Callable[..., object], arguments: tuple[object, ...], options: dict[str, object]) -> Answer:
    try:
        return function(*arguments, **options), None
    except Exception as error:
        if not isinstance(error, EngineError):
            error.add_note(traceback.format_exc())  # of this process, which is lost otherwise
        return None, error


def main() -> None:
    """The process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C in the server's terminal is sent to both
    if hasattr(os, "nice"):  # not on Windows
        with contextlib.suppress(OSError):
            os.nice(NICENESS)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever libraries print must not get among the answers
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
