"""Names as plain text: one spelling for what readers take to be the same."""

from __future__ import annotations

import re
import unicodedata

from anyascii import anyascii

_WORD = re.compile(r"\w+")
_NOT_ASCII_WORD = re.compile(r"[^0-9a-z]+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Letters of scripts that do not put blanks between words: Thai, Lao, Burmese, Khmer, kana, Han."""


def folded(name: str) -> str:
    """Compatibility forms and case removed (NFKC, case folding), the script kept."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def words(name: str) -> list[str]:
    """The folded words of a name, without punctuation; text of scripts without blanks stays together."""
    return _WORD.findall(folded(name).replace("_", " "))


def romanised(name: str) -> str:
    """Folded, transliterated to ASCII letters and digits with single blanks: 'Žurovići' -> 'zurovici', '北京' -> 'beijing'.

    A name of nothing but punctuation is kept unchanged: it is a name all the same.
    """
    plain = _NOT_ASCII_WORD.sub(" ", anyascii(folded(name)).lower()).strip()
    return plain or folded(name).strip()
