"""Processes that work until they are killed and acknowledge what they have done, and the tally of what became of it."""

from __future__ import annotations

import itertools
import multiprocessing
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, Final

START_SECONDS: Final = 120.0
LOOK_SECONDS: Final = 0.0005
"""Between two looks for a sign: shorter than a small file takes to write."""
READY: Final = "ready"

Work = Callable[..., None]
Sign = Callable[[], bool]


@dataclass
class Tally:
    """What became of the kills in one place.

    Attributes:
        moments: how many of them fell where.
        acknowledged: of what was confirmed before a kill, how much was looked for after it.
        finished, same: trainings that were resumed to their end, and those of them that ended with the bits of an unbroken one.
        problems: one sentence each.
    """

    moments: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    finished: int = 0
    same: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return self.moments.total()

    def check(self, holds: bool, problem: str) -> None:
        """Note a problem unless all is well."""
        if not holds:
            self.problems.append(problem)


def context() -> BaseContext:
    """Processes that start quickly: what they import is imported once."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["benchmarks.kills.works"])
    return found


class Victim:
    """A process that does some work and acknowledges each part of it once the call for it has returned.

    Attributes:
        said: what it acknowledged so far, in its order; :data:`READY` is left out.
    """

    def __init__(self, work: Work, *arguments: Any) -> None:
        self._here, there = multiprocessing.Pipe(duplex=False)
        self.process = context().Process(target=work, args=(*arguments, there))  # type: ignore[attr-defined]
        self.process.start()
        there.close()
        self.said: list[Any] = []
        self.ready = False

    def listen(self) -> None:
        """Take what it has acknowledged; of a message that its death cut off nothing."""
        try:
            while self._here.poll():
                message = self._here.recv()
                self.ready = True
                if message != READY:
                    self.said.append(message)
        except (EOFError, OSError):
            return

    def wait_until(self, condition: Sign, seconds: float = START_SECONDS) -> bool:
        """Whether a condition came true while it lived and within this time."""
        until = time.monotonic() + seconds
        while not condition():
            self.listen()
            if not self.process.is_alive() or time.monotonic() > until:
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def begin(self) -> None:
        """Wait until it is ready.

        Raises:
            TimeoutError: it never is.
        """
        if not self.wait_until(lambda: self.ready):
            self.end()
            raise TimeoutError("a process did not begin")

    def continues(self) -> bool:
        """Whether it acknowledges more than it has so far."""
        before = len(self.said)
        return self.wait_until(lambda: len(self.said) > before)

    def kill(self, after: float, sign: Sign | None = None, patience: float = START_SECONDS) -> bool:
        """Kill it some seconds after it was ready and a sign was seen (``patience``: seconds to wait for the sign). Whether it lived until then."""
        self.begin()
        if sign is not None:
            self.wait_until(sign, patience)
        until = time.monotonic() + after
        self.wait_until(lambda: time.monotonic() >= until, after + 1.0)
        alive: bool = self.process.is_alive()
        self.end()
        return alive

    def end(self) -> None:
        """Kill it whatever it does, and take its last words."""
        self.process.kill()
        self.process.join()
        self.listen()
        self._here.close()


def turns(tally: Tally, kills: int) -> Iterator[int]:
    """One after the other until a number of processes were killed; those that had ended before their kill do not count."""
    for turn in itertools.count():
        if tally.kills >= kills:
            return
        yield turn


def half_written(folder: Path, pattern: str) -> Sign:
    """A sign: there is a file or folder in the making."""
    return lambda: any(folder.glob(pattern))


def check_database(path: Path, tally: Tally) -> None:
    with closing(sqlite3.connect(path)) as database:
        said = database.execute("PRAGMA integrity_check").fetchone()[0]
    tally.check(said == "ok", f"{path.name} is damaged: {said}")


__all__ = ["READY", "Connection", "Sign", "Tally", "Victim", "check_database", "half_written", "turns"]
