"""Work in a process of its own: its result, its errors, and its end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from engine.errors import DataError, MachineError
from engine.util.apart import Helper


@pytest.fixture
def helper() -> Iterator[Helper]:
    made = Helper()
    yield made
    made.close()


def failing(line: int) -> None:
    raise DataError("not a number", path="triples.tsv", line=line)


def ended() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_results_come_from_one_other_process(helper: Helper) -> None:
    process = helper.run(os.getpid)
    assert process != os.getpid()
    assert helper.run(os.getpid) == process


def test_an_error_keeps_its_kind_and_its_sentence(helper: Helper) -> None:
    with pytest.raises(DataError, match=r"^triples\.tsv:3: not a number$"):
        helper.run(failing, 3)
    assert helper.run(os.getpid)


def test_a_process_that_is_ended_is_one_sentence_and_the_next_call_starts_another(helper: Helper) -> None:
    with pytest.raises(MachineError, match="most likely for lack of memory"):
        helper.run(ended)
    assert helper.run(os.getpid) != os.getpid()


def test_a_process_that_is_not_needed_ends() -> None:
    helper = Helper(idle=0.05)
    process = helper.run(os.getpid)
    until = time.monotonic() + 20
    while time.monotonic() < until and os.path.exists(f"/proc/{process}"):
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{process}")
