"""Options that hold for both graphs, or for each of them: ``VALUE``, or ``source=VALUE`` and ``target=VALUE``."""

from __future__ import annotations

from collections.abc import Sequence

from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError


def by_side(option: str, texts: Sequence[str], example: str) -> dict[Side | None, str]:
    """What an option that may be repeated says: a value by graph, or one for both (None).

    Args:
        option: its name, for the message.
        texts: what was given, one after the other.
        example: a value, for the message.

    Raises:
        ConfigError: several values for one graph, or one for both and another one.
    """
    found: dict[Side | None, str] = {}
    for text in texts:
        prefix, equals, value = text.partition("=")
        side = next((side for side in SIDES if equals and side == prefix), None)
        if side in found or (found and None in (side, *found)):
            raise ConfigError(f"{option} takes one {example} for both graphs, or one for each: {option} source={example} {option} target={example}.")
        found[side] = text if side is None else value
    return found
