"""Ctrl-C, termination signals and hang-ups: how they end a command."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from engine.training.device import on_termination

INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit code after Ctrl-C. As of shells, that of any other signal is 128 and its number."""
HANG_UP: Final = getattr(signal, "SIGHUP", None)  # not on Windows


AGAIN_SECONDS: Final = 0.05


class Terminated(KeyboardInterrupt):
    """A signal that ends a command as Ctrl-C does: what is in the making is removed or can be resumed."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def terminations() -> Iterator[None]:
    """A termination signal or a hang-up raises :class:`Terminated`, so that a command clears up, and says how it ended."""
    if threading.current_thread() is not threading.main_thread():  # which alone receives signals
        yield
        return
    ended = list[int]()

    def end(number: int, frame: FrameType | None) -> None:
        ended.append(number)
        raise Terminated(number)

    with on_termination(end, interrupts=False), _raised_again(ended):
        try:
            yield
        except KeyboardInterrupt as error:
            ended.append(number_of(error))
            traceback.clear_frames(error.__traceback__)  # what was interrupted while it was made may fail when it is closed: now, unseen
            raise


@contextmanager
def _raised_again(ended: list[int]) -> Iterator[None]:
    """Python drops an exception in a finaliser, or in a function that a library calls from compiled code, and prints a traceback. The exception of a
    signal is raised again a moment later instead, so that the command ends all the same.

    ``ended``: has the signals that have ended the command; what is dropped from then on is a consequence, which is not shown.
    """
    before, timers = sys.unraisablehook, list[threading.Timer]()

    def dropped(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            timers.append(threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number_of(unraisable.exc_value))))
            timers[-1].daemon = True
            timers[-1].start()
        elif not ended:
            before(unraisable)

    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in timers:
            timer.cancel()


def number_of(error: KeyboardInterrupt) -> int:
    """The signal that an exception comes from."""
    return error.number if isinstance(error, Terminated) else signal.SIGINT


@contextmanager
def interruptions(*, verbose: bool = True) -> Iterator[Callable[[], bool]]:
    """Ctrl-C, a termination signal or a hang-up once: stop after this step and keep the result; again: stop at once, with the last checkpoint.

    A terminal that is closed may hang up more than once, which asks for nothing more. ``verbose``: print to the user that a signal arrived.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked and number != HANG_UP:
            raise Terminated(number)
        if verbose and not asked:
            write_at_once(b"Stopping after this step (once more stops at once) ...\n")
        asked = True

    with on_termination(ask):
        yield lambda: asked


def how_ended(error: KeyboardInterrupt, resumed: str) -> tuple[str, int]:
    """The sentence for what ended a command, without its full stop, and the exit code; ``resumed``: how it is resumed, if it can be."""
    number = number_of(error)
    by = {signal.SIGTERM: "ended by a termination signal", HANG_UP: "ended by a hang-up: the terminal was closed"}.get(number, "interrupted")
    return f"{by}{resumed}", 128 + number


def write_at_once(message: bytes) -> None:
    """To be called from a signal's handler, which may run in the middle of a print: buffered streams cannot be entered twice.

    A terminal that has hung up takes no more output; what follows goes nowhere then, so that it does not end the training.
    """
    try:
        os.write(2, message)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            with suppress(OSError):
                if stat.S_ISCHR(os.fstat(stream).st_mode):
                    os.dup2(nowhere, stream)
        os.close(nowhere)
