"""Cells that a spreadsheet would run: what begins like a formula is written with an apostrophe in front, and read without it.

To be undone for certain, a text of apostrophes and then a formula gets one more as well: ``=1`` is written ``'=1``, and ``'=1`` is written ``''=1``.
"""

from __future__ import annotations

import re
from typing import Final

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
_DANGEROUS: Final = re.compile("'*[=+\\-@\t\r]")
_DEFUSED: Final = re.compile("'+[=+\\-@\t\r]")


def defuse(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if _DANGEROUS.match(text) else text


def restore(cell: str) -> str:
    """The text of a cell; the inverse of :func:`defuse`."""
    return cell[1:] if _DEFUSED.match(cell) else cell
