"""How many cases are tried: a few of fixed ones by default, ``SOAK_CASES`` (2,000) others each with ``make soak``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, Phase, settings

from tests.effort import examples

LONGEST = 10.0
"""Seconds of the processor that a case may take."""


def cases(few: int = 30) -> Callable[[Any], Any]:
    """Decorates a test of random cases."""
    thorough = examples(3) == 3
    return settings(
        max_examples=int(os.environ.get("SOAK_CASES", "2000")) if thorough else few,
        derandomize=not thorough,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def in_time() -> Iterator[None]:
    """Fails where what is done takes too long; processor time, since other processes may be at work."""
    begin = time.process_time()
    yield
    took = time.process_time() - begin
    assert took < LONGEST, f"this took {took:.1f} s"
