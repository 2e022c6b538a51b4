"""The server's memory, processor time and threads while the crowd is there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.machine import own_mib, resident_mib

EVERY = 2.0  # seconds
LAST = 300.0
"""Seconds at the end over which memory must be flat."""


@dataclass
class Server:
    """Measurements of its process (Linux).

    Attributes:
        memory: (seconds, MiB, threads) at several moments.
        processor: seconds of processor time that it used.
        own: MiB of its memory, at most, that are no pages of files (of runs and libraries, which the system drops when others need room).
        helpers: MiB that processes of its own had at most, which search for exports.
    """

    memory: list[tuple[float, float, int]] = field(default_factory=list)
    processor: float = 0.0
    own: float = 0.0
    helpers: float = 0.0

    @property
    def seconds(self) -> float:
        return self.memory[-1][0] if self.memory else 0.0

    @property
    def peak(self) -> float:
        return max((mib for _, mib, _ in self.memory), default=float("nan"))

    @property
    def threads(self) -> int:
        return max((number for _, _, number in self.memory), default=0)

    def slope(self, last: float = LAST) -> float:
        """MiB a minute at the end, by least squares; of a shorter visit, over its second half."""
        last = min(last, self.seconds / 2)
        rows = np.array([(at, mib) for at, mib, _ in self.memory if at >= self.seconds - last])
        return float(np.polyfit(rows[:, 0], rows[:, 1], 1)[0] * 60) if len(rows) > 2 else float("nan")

    def at(self, seconds: float) -> float:
        """MiB at a moment."""
        return next((mib for at, mib, _ in self.memory if at >= seconds), self.memory[-1][1] if self.memory else float("nan"))


@contextmanager
def watched(process: int) -> Iterator[Server]:
    """Measure a process until the block ends."""
    server, stop, began = Server(), threading.Event(), time.monotonic()

    def watch() -> None:
        while not stop.wait(EVERY if server.memory else 0.0):
            if (mib := resident_mib(process)) is not None:
                server.memory.append((time.monotonic() - began, mib, _threads(process)))
                server.processor = _processor(process)
                server.own = max(server.own, own_mib(process) or 0.0)
                server.helpers = max(server.helpers, sum(resident_mib(one) or 0.0 for one in _helpers(process)))

    before = _processor(process)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        stop.set()
        thread.join()
        server.processor -= before


def _processor(process: int) -> float:
    """Seconds of processor time of a process until now."""
    try:
        words = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _threads(process: int) -> int:
    try:
        return len(os.listdir(f"/proc/{process}/task"))
    except OSError:
        return 0


def _helpers(process: int) -> list[int]:
    """Its children that compute for it; the workers of trainings are not among them."""
    found = []
    for thread in Path(f"/proc/{process}/task").glob("*"):
        with suppress(OSError):
            children = [int(word) for word in (thread / "children").read_text(encoding="ascii").split()]
            found += [one for one in children if b"engine.util.apart" in Path(f"/proc/{one}/cmdline").read_bytes()]
    return found
