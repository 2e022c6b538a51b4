"""How many random examples a test tries: all of them with ``-m slow``, where each test of random examples runs again; otherwise a third."""

from __future__ import annotations

_THOROUGH = [False]


def be_thorough() -> None:
    """For what is decorated from here on."""
    _THOROUGH[0] = True


def examples(all_of_them: int) -> int:
    """``max_examples`` of a test."""
    return all_of_them if _THOROUGH[0] else -(-all_of_them // 3)
