"""Freed memory goes back to the system every so often, whoever opens a page, and in a thread that nothing waits for."""

from __future__ import annotations

import threading

import pytest

from app import upkeep


def test_memory_is_given_back_at_most_every_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    given, now = threading.Semaphore(0), [100.0]
    monkeypatch.setattr(upkeep, "give_back", given.release)
    monkeypatch.setattr(upkeep, "_last", 100.0 - upkeep.EVERY_SECONDS)
    monkeypatch.setattr(upkeep.time, "monotonic", lambda: now[0])
    for _ in range(20):
        upkeep.give_memory_back()
    assert given.acquire(timeout=10)
    assert not given.acquire(timeout=0.1)
    now[0] += upkeep.EVERY_SECONDS
    upkeep.give_memory_back()
    assert given.acquire(timeout=10)
