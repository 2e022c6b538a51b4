"""What was computed last, kept for whoever asks for the same again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

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
