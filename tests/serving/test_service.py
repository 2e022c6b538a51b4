"""Threads of the service: many questions at once have the answers of one after the other, quick ones never wait for slow ones, and none is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.serving import answers
from engine.serving.runs import ServedRun
from engine.serving.service import Service
from engine.serving.settings import Settings
from tests.serving.conftest import RUN, WEIGHED

SECONDS = 60


@pytest.fixture
def service(served_models: Path) -> Iterator[Service]:
    found = Service(Settings(served_models))
    yield found
    found.close()


def test_many_at_once_get_what_one_after_the_other_gets(service: Service) -> None:
    run = service.runs.get(RUN)
    uris = [(side, uri) for side in ("source", "target") for uri in run.view.graphs[side].uris]  # type: ignore[index]
    alone = [answers.match_answer(run, uri, side, 4, "all") for side, uri in uris]  # type: ignore[arg-type]

    async def together() -> list[dict[str, Any]]:
        return await asyncio.gather(*(service.quick(RUN, answers.match_answer, uri, side, 4, "all") for side, uri in uris))

    assert asyncio.run(together()) == alone


def test_explanations_at_once_are_those_of_one_after_the_other(service: Service) -> None:
    pairs = [("a 2", "b 5"), ("a 1", "b 2"), ("a 3", "b 3")] * 4
    rest = (None, [], "all", "source", 20)
    alone = [answers.explain_answer(service.runs.get(WEIGHED), *pair, *rest) for pair in pairs]  # type: ignore[arg-type]

    async def together() -> list[dict[str, Any]]:
        return await asyncio.gather(*(service.slow(WEIGHED, answers.explain_answer, *pair, *rest) for pair in pairs))

    assert asyncio.run(together()) == alone


def test_quick_questions_do_not_wait_for_slow_ones(service: Service) -> None:
    release, begun = threading.Event(), threading.Event()

    def slow(run: ServedRun) -> dict[str, Any]:
        begun.set()
        release.wait(SECONDS)
        return {}

    async def ask() -> dict[str, Any]:
        waiting = [asyncio.ensure_future(service.slow(RUN, slow)) for _ in range(50)]
        while not begun.is_set():
            await asyncio.sleep(0.01)
        found = await asyncio.wait_for(service.quick(RUN, answers.run_answer), SECONDS)
        release.set()
        assert await asyncio.gather(*waiting) == [{}] * 50
        return found

    assert asyncio.run(ask())["run"] == RUN


def test_each_thread_computes_alone(service: Service) -> None:
    def threads(run: ServedRun) -> dict[str, Any]:
        return {"threads": torch.get_num_threads()}

    async def ask() -> list[dict[str, Any]]:
        return [await service.quick(RUN, threads), await service.slow(RUN, threads)]

    assert asyncio.run(ask()) == [{"threads": 1}] * 2
