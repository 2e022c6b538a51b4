"""Rows spread over threads: all of them, each once, and nothing hidden that goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from engine.util.threads import LEAST_WORK, equal_parts, run_parts, spread


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [0, 1, 4, 1001])
@pytest.mark.parametrize("size", [0, 10 * LEAST_WORK])
def test_every_row_once(count: int, size: int, threads: int) -> None:
    seen = np.zeros(count, dtype=np.int64)

    def work(start: int, stop: int) -> None:
        seen[start:stop] += 1

    spread(work, count, size)
    assert (seen == 1).all()
    assert len(equal_parts(count, size)) - 1 <= max(threads if size else 1, 1)


def test_parts_run_side_by_side() -> None:
    met = threading.Barrier(3, timeout=20)
    run_parts(lambda _: met.wait() and None, 3)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failing_part_is_reported_after_all_have_ended(failing: int) -> None:
    ended = []

    def work(part: int) -> None:
        if part == failing:
            raise ValueError(f"part {part}")
        ended.append(part)

    with pytest.raises(ValueError, match=f"part {failing}"):
        run_parts(work, 3)
    assert sorted([*ended, failing]) == [0, 1, 2]
    run_parts(ended.append, 2)  # and the threads serve on


def test_several_sessions_share_the_threads() -> None:
    totals = np.zeros(8, dtype=np.int64)

    def session(number: int) -> None:
        for _ in range(50):
            run_parts(lambda part: totals.__setitem__(number, totals[number] + 1) if part == 0 else None, 4)

    sessions = [threading.Thread(target=session, args=(number,)) for number in range(8)]
    for one in sessions:
        one.start()
    for one in sessions:
        one.join(60)
    assert (totals == 50).all()
