"""Questions to runs on a bounded number of threads: quick ones never wait for slow ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from engine.reviews import ReviewStore
from engine.serving.runs import OpenRuns
from engine.serving.settings import Settings
from engine.training.device import usable_cores
from engine.util.paths import reviews_file

Answer = dict[str, Any]
Question = Callable[..., Answer]
"""Asked of a run, with further arguments."""


class Service:
    """The runs of a models folder, and the threads that look at them. Each thread computes alone, so that no more than these are busy.

    Attributes:
        settings: how the service was started.
        runs: those that are open.
        reviews: the reviewers' decisions.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.runs = OpenRuns(settings.models)
        self.reviews = ReviewStore(reviews_file(settings.models))
        cores = usable_cores()
        self._quick = ThreadPoolExecutor(cores + 1, "quick", initializer=compute_alone)
        self._slow = ThreadPoolExecutor(max(cores // 2, 1), "slow", initializer=compute_alone)

    async def quick(self, run: str, question: Question, *words: Any) -> Answer:
        """The answer to a question that takes some milliseconds.

        Raises:
            EngineError: whatever the question raises, or the run cannot be opened.
        """
        return await self._asked(self._quick, run, question, *words)

    async def slow(self, run: str, question: Question, *words: Any) -> Answer:
        """The same for one that may take a second."""
        return await self._asked(self._slow, run, question, *words)

    async def _asked(self, threads: ThreadPoolExecutor, run: str, question: Question, *words: Any) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(threads, lambda: question(self.runs.get(run), *words))

    async def without_run(self, question: Callable[[], Answer]) -> Answer:
        """The answer to a question to no run in particular."""
        return await asyncio.get_running_loop().run_in_executor(self._quick, question)

    def close(self) -> None:
        """Let the questions that are being answered end; those that wait are dropped."""
        for threads in (self._quick, self._slow):
            threads.shutdown(wait=True, cancel_futures=True)


def compute_alone() -> None:
    """For a thread of the service: its kernels use no other threads."""
    torch.set_num_threads(1)
