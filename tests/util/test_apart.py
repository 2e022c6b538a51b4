"""Work in a process of its own: its result, its errors, and its end."""

from __future__ import annotations

import os
import signal

import pytest

from engine.errors import DataError, MachineError
from engine.util.apart import run_apart


def failing(line: int) -> None:
    raise DataError("not a number", path="triples.tsv", line=line)


def ended() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_result_comes_from_another_process() -> None:
    assert run_apart(os.getpid) != os.getpid()


def test_an_error_keeps_its_kind_and_its_sentence() -> None:
    with pytest.raises(DataError, match=r"^triples\.tsv:3: not a number$"):
        run_apart(failing, 3)


def test_a_process_that_is_ended_is_one_sentence() -> None:
    with pytest.raises(MachineError, match="most likely for lack of memory"):
        run_apart(ended)
