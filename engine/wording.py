"""Numbers with what they count."""

from __future__ import annotations


def count(number: int, noun: str, plural: str | None = None) -> str:
    """'1 run', '1,200 runs'; with verbs: ``count(n, "entity is", "entities are")``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
