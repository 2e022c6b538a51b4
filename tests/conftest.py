"""Shared by all tests: the repository's root, and processors of its own for each process that runs tests."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.effort import be_thorough, examples
from tests.small_europe import write_small_europe


def keep_to_own_processors() -> None:
    """Several processes that run tests divide the processors among them. Where all of them use all, threads that wait for each other at every step
    of a training find their processor taken, and tests take many times as long.
    """
    worker, count = os.environ.get("PYTEST_XDIST_WORKER", ""), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if worker.startswith("gw") and hasattr(os, "sched_setaffinity"):
        processors = sorted(os.sched_getaffinity(0))
        if own := processors[int(worker[2:]) % count :: count]:
            os.sched_setaffinity(0, own)


def receive_signals() -> None:
    """Ctrl-C and hang-ups do what they do at a terminal, in these processes and in those they start: a shell that runs the tests in the background,
    or nohup, has them ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


keep_to_own_processors()  # before anything counts processors
receive_signals()


def slow_ones_wanted(config: pytest.Config) -> bool:
    return str(config.getoption("markexpr")).strip() == "slow"


def pytest_configure(config: pytest.Config) -> None:
    if slow_ones_wanted(config):
        be_thorough()
    settings.register_profile("patient", deadline=None, max_examples=examples(100))  # on a machine that is busy any example may take long
    settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``-m slow`` runs tests of random examples as well, with more of them."""
    if slow_ones_wanted(config):
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What was imported by now stays: each collection of garbage, of which every training starts one, would look through all of it again."""
    gc.collect()
    gc.freeze()


ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def small_europe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of the sample data, 300 entities a side, all of them linked."""
    return write_small_europe(tmp_path_factory.mktemp("data") / "europe")
