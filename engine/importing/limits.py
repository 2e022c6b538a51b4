"""Limits of an import. They are named in every message that refuses something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Limits:
    """What is accepted.

    Attributes:
        file_bytes: of one file, as it was uploaded.
        unpacked_bytes: of all files of an archive together.
        files: in an archive or folder.
        ratio: unpacked to packed size of an archive, beyond ``ratio_from`` unpacked bytes. Triples as text seldom come above 40; a bomb has hundreds.
    """

    file_bytes: int = 2**31
    unpacked_bytes: int = 2**32
    files: int = 500
    ratio: int = 200
    ratio_from: int = 2**24


LIMITS: Final = Limits()


def in_words(size: int) -> str:
    """'200 MB', '1.5 GB'."""
    for unit, word in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {word}"
    return f"{size} bytes"
