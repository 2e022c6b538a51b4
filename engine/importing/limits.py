"""How much an import may bring. The figures are named in every message that refuses something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Limits:
    """What is accepted.

    Attributes:
        file_bytes: of one file, as it was brought.
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
