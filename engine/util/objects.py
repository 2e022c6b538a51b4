"""JSON objects as people write them by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

from engine.util.text import shorten


class RepeatedKeyError(ValueError):
    """An object has a key twice, of which a parser keeps the last value alone."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key '{shorten(key, 40)}' is twice in one object")


def with_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of its keys and values, for ``object_pairs_hook`` of the parser.

    Raises:
        RepeatedKeyError: a key is there twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return found
