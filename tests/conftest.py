"""Shared by all tests: the repository's root, and processors of its own for each process that runs tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def keep_to_own_processors() -> None:
    """Several processes that run tests divide the processors among them. Where all of them use all, threads that wait for each other at every step
    of a training find their processor taken, and tests take many times as long.
    """
    worker, count = os.environ.get("PYTEST_XDIST_WORKER", ""), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if worker.startswith("gw") and hasattr(os, "sched_setaffinity"):
        processors = sorted(os.sched_getaffinity(0))
        if own := processors[int(worker[2:]) % count :: count]:
            os.sched_setaffinity(0, own)


keep_to_own_processors()  # before anything counts processors

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's root."""
    return ROOT
