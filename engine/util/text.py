"""Texts for people: numbers with what they count, sizes, durations, and texts of others made short and harmless."""

from __future__ import annotations

import re

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def count(number: int, noun: str, plural: str | None = None) -> str:
    """'1 run', '1,200 runs'; with verbs: ``count(n, "entity is", "entities are")``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size_text(size: int) -> str:
    """'1.3 GiB'."""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{size} bytes" if unit == 0 else f"{value:.1f}".removesuffix(".0") + f" {UNITS[unit]}"


def duration(seconds: float) -> str:
    """'48 s', '2 min 5 s', '1 h 20 min'."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def one_line(text: object, longest: int = 200) -> str:
    """The text of a value, of an error for example, without line breaks and cut where it is long."""
    return " ".join(str(text).split())[:longest]


def shorten(text: str, width: int = 80) -> str:
    """A text for a message: one line, cut where it is long. Control characters are escaped, and blanks that look like others but are none: they are
    often why two spellings differ."""
    visible = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text[: width + 1])
    return visible if len(visible) <= width else visible[: width - 1] + "…"


def escape_controls(text: str) -> str:
    """Control, line separator and text direction characters as \\x.. or \\u.... escapes, so that a hostile label cannot rearrange a terminal."""
    return UNSAFE.sub(lambda match: ascii(match.group())[1:-1], text)


def shortened(text: str, length: int = 120) -> str:
    """The text itself, or its beginning and an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
