"""How much memory there is, stopping before the machine runs out of it, and values that are kept in it."""

from __future__ import annotations

import ctypes
import gc
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, Generic, TypeVar

from engine.errors import DataError, MachineError

# How much memory there is, and stopping before the machine runs out of it.

MIB: Final = 2**20
CONTROL_GROUP: Final = Path("/sys/fs/cgroup")
LIMIT_V1: Final = ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat")
UNLIMITED: Final = float(2**60)
"""Bytes; version 1 writes a number beyond this where there is no limit."""
LEAST_LEFT: Final = 128.0
"""MiB of addresses that a command needs beyond what is loaded when it starts, for threads above all."""
KEPT_FREE: Final = 256.0
"""MiB that reading leaves to the machine."""


def available_memory() -> float | None:
    """MiB that a new process can have: what the system and the container's limit leave; None where the system does not report it."""
    found = [amount for amount in (_system_memory(), _container_memory(), limit_leaves()) if amount is not None]
    return min(found) / MIB if found else None


def give_back() -> None:
    """Return to the system what was freed and the allocator keeps for later; where the C library has no such call, nothing happens.

    Training leaves several hundred MiB of it behind, in pieces of other sizes than those that the search asks for.
    """
    gc.collect()
    _ask_allocator("malloc_trim", 0)


def _ask_allocator(function: str, *arguments: int) -> None:
    """Call a function of glibc's malloc; where the C library has no such one, nothing happens."""
    found = getattr(ctypes.CDLL(None), function, None) if os.name == "posix" else None
    if found is not None:
        found(*arguments)


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Within this, the allocator keeps what is freed for what is asked for next: each training step asks for the same large arrays.

    Given back to the system, each of them would be filled with zeros again, page by page, which takes up to a fifth of a step.
    """
    for name, value in _KEEPING.items():
        _ask_allocator("mallopt", name, value)
    try:
        yield
    finally:
        for name, value in _USUAL.items():
            _ask_allocator("mallopt", name, value)


def keep_little() -> None:
    """Make this process's allocators keep little of what is freed: for servers, which have a thread for each click.

    glibc gives each of many threads an arena of its own, and what is freed in one is of no use to the others: two are enough. Arrow's own allocator
    keeps what it freed for a while, each thread for itself (some 20 MiB a run and more after each export): the system's does without.
    """
    import pyarrow as pa

    _ask_allocator("mallopt", _ARENA_MAX, 2)
    pa.set_memory_pool(pa.system_memory_pool())


# Of glibc's malloc.h; other libraries ignore what they do not know.
_ARENA_MAX: Final = -8  # M_ARENA_MAX
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_KEEPING: Final = {_TRIM_THRESHOLD: 2**31 - 1, _MMAP_MAX: 0}
_USUAL: Final = {_TRIM_THRESHOLD: 2**26, _MMAP_MAX: 2**16}


def check_room(path: Path) -> None:
    """To be asked before each stretch of a large file is read.

    Raises:
        DataError: hardly any memory is left.
    """
    free = available_memory()
    if free is not None and free < KEPT_FREE:
        message = f"out of memory while reading this file ({free:,.0f} MiB free); free some memory, use a larger machine, or split the graph."
        raise DataError(message, path=path)


def check_fits(path: Path, needed: float) -> None:
    """To be asked before anything is read.

    Args:
        path: what is to be read.
        needed: MiB.

    Raises:
        DataError: that is more than there is.
    """
    free = available_memory()
    if free is not None and needed > free:
        raise DataError(
            f"reading this data set needs {need_words(needed, free)}; {free / needed:.0%} of it would fit; or use a larger machine.", path=path
        )


def need_words(needed: float, free: float) -> str:
    """How much is needed and how much there is (MiB), as part of a sentence."""
    return f"about {needed / 1024:.1f} GiB of memory, and {free / 1024:.1f} GiB are free"


def limit_leaves(system: Path = Path("/proc")) -> float | None:
    """Bytes that the limit of this process's addresses (``ulimit -v``) leaves; None without one."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        return float(limit - int((system / "self" / "statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize())
    except (OSError, ValueError, IndexError):
        return None


def check_limit() -> None:
    """To be asked before libraries work that end the process where they get no memory.

    Raises:
        MachineError: the limit of this process leaves hardly any.
    """
    left = limit_leaves()
    if left is not None and left < LEAST_LEFT * MIB:
        words = f"the memory limit of this process (ulimit -v) leaves {max(left, 0) / MIB:,.0f} MiB"
        raise MachineError(f"{words}, and at least {LEAST_LEFT:,.0f} MiB are needed; raise the limit, then try again.")


def _system_memory() -> float | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _container_memory(folder: Path = CONTROL_GROUP) -> float | None:
    """Bytes that the control group's limit leaves, whichever of the two versions the system has.

    Files that were read fill the group's memory as well, up to its limit, but the system drops them as soon as a process needs the room: what it
    counts as used without their inactive part (``inactive_file``) is the working set that container tools report.
    """
    for limit, used, statistics in (("memory.max", "memory.current", "memory.stat"), LIMIT_V1):
        try:
            most, held = (float((folder / name).read_text(encoding="ascii")) for name in (limit, used))
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if most < UNLIMITED:
            return most - max(held - _cached(folder / statistics), 0.0)
    return None


def out_of_memory_counter(folder: Path = CONTROL_GROUP, system: Path = Path("/proc")) -> Path | None:
    """The file that counts the processes that the kernel ended for lack of memory: of this process's control group, or of the whole machine where
    the group does not count them; None where neither does."""
    try:
        groups = [line.rstrip("\n").split(":", 2) for line in (system / "self" / "cgroup").read_text(encoding="utf-8").splitlines()]
    except OSError:
        groups = []
    own = {names: path.lstrip("/") for _, names, path in (group for group in groups if len(group) == 3)}
    places = [folder / own.get("", "") / "memory.events", folder / "memory.events"]
    places += [folder / "memory" / own.get("memory", "") / "memory.oom_control", folder / "memory" / "memory.oom_control", system / "vmstat"]
    return next((place for place in places if out_of_memory_kills(place) is not None), None)


def out_of_memory_kills(counter: Path) -> int | None:
    """What such a file says now; None where it says nothing."""
    try:
        lines = [line.split() for line in counter.read_text(encoding="ascii").splitlines()]
        return next((int(words[1]) for words in lines if len(words) == 2 and words[0] == "oom_kill"), None)
    except (OSError, ValueError):
        return None


def _cached(statistics: Path) -> float:
    """Bytes of files in memory that the system can drop; version 1 counts those of the groups below only in its totals."""
    try:
        lines = statistics.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    found = {words[0]: float(words[1]) for line in lines if len(words := line.split()) == 2 and words[1].isdigit()}
    return found.get("total_inactive_file", found.get("inactive_file", 0.0))


# What was computed last, kept for whoever asks for the same again.

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most a fixed number of values, and of large ones fewer: the least recently used goes first. Safe to share between threads.

    Two threads that ask for the same at the same moment may both compute it. What is kept must not be changed.

    Args:
        most: values.
        most_bytes: of all values together; the newest is kept whatever its size.
        size: of a value, in bytes.
    """

    def __init__(self, most: int, most_bytes: int, size: Callable[[V], int]) -> None:
        self._most, self._most_bytes, self._size = most, most_bytes, size
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K, compute: Callable[[], V]) -> V:
        """The value of a key, computed where it is not kept.

        Raises:
            Exception: whatever ``compute`` raises; that is not kept.
        """
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = compute()
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > 1 and (len(self._values) > self._most or self._bytes() > self._most_bytes):
                self._values.popitem(last=False)
        return value

    def _bytes(self) -> int:
        return sum(self._size(value) for value in self._values.values())
