"""Numbers with what they count, and sizes, in words."""

from __future__ import annotations

UNITS = ("bytes", "KB", "MB", "GB", "TB")


def count(number: int, noun: str, plural: str | None = None) -> str:
    """'1 run', '1,200 runs'; with verbs: ``count(n, "entity is", "entities are")``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size_text(size: int) -> str:
    """'1.3 GB'."""
    value, unit = float(size), 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{size} bytes" if unit == 0 else f"{value:.3g} {UNITS[unit]}"
