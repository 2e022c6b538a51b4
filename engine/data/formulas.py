r"""Cells that a spreadsheet would run: what begins like a formula is written with an apostrophe in front, and read without it.

Spreadsheets trim blanks and invisible characters before they look for a formula, and some take full-width and small forms of the signs for the
signs themselves. To be undone for certain, a text of apostrophes and then a formula gets one more as well: ``=1`` is written ``'=1``, and ``'=1`` is
written ``''=1``.
"""

from __future__ import annotations

import re
from typing import Final

FORMULA_STARTS: Final = (*"=+-@", "\t", "\r", *"＝＋－＠﹦﹢﹣﹫")
_SIGNS: Final = re.escape("".join(FORMULA_STARTS))
# White space and what has no width: soft hyphen, joiners, direction marks, fillers, variation selectors, the byte order mark, tags.
_UNSEEN: Final = (
    r"\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
_DANGEROUS: Final = re.compile(f"'*[{_UNSEEN}]*[{_SIGNS}]")
_DEFUSED: Final = re.compile(f"'+[{_UNSEEN}]*[{_SIGNS}]")


def defuse(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if _DANGEROUS.match(text) else text


def restore(cell: str) -> str:
    """The text of a cell; the inverse of :func:`defuse`."""
    return cell[1:] if _DEFUSED.match(cell) else cell
