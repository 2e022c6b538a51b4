"""Numbers with what they count, and texts of others made fit for a terminal."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_JOINERS: Final = re.compile("[\u200c\u200d]")
_JOINED_FROM: Final = "\u0590"
"""Scripts and symbols that joiners have a use in come behind Latin, Greek, Cyrillic and Armenian."""
_WITHOUT_JOINERS: Final = ("LATIN ", "GREEK ", "CYRILLIC ", "FULLWIDTH ", "HALFWIDTH ")
UNITS = ("bytes", "KB", "MB", "GB", "TB")


def count(number: int, noun: str, plural: str | None = None) -> str:
    """'1 run', '1,200 runs'; with verbs: ``count(n, "entity is", "entities are")``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    """The text with everything that a terminal could act on, or could not print, as an escape: names of files and entities may be hostile.

    Joiners stay where a writing needs them: behind a letter or a mark of Persian, Hindi and the like, and inside of an emoji.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or _joins(text, at) else ascii(one)[1:-1] for at, one in enumerate(text))


def printable_lines(text: str) -> str:
    """The same of several lines, whose ends stay."""
    return "\n".join(map(printable, text.split("\n")))


def _joins(text: str, at: int) -> bool:
    """Whether the character there is a joiner that changes how the one before it is drawn."""
    if not at or not _JOINERS.match(text[at]):
        return False
    before = text[at - 1]
    drawn = unicodedata.category(before) in ("Lo", "Lm", "Mn", "Mc", "So", "Sk")
    return drawn and before >= _JOINED_FROM and not unicodedata.name(before, "").startswith(_WITHOUT_JOINERS)


def size_text(size: int) -> str:
    """'1.3 GB'."""
    value, unit = float(size), 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{size} bytes" if unit == 0 else f"{value:.3g} {UNITS[unit]}"
