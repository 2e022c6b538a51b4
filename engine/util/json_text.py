"""Results as JSON, the same on the command line and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from typing import Any

from engine.errors import RunDamagedError


def json_text(value: Any) -> str:
    """A value as one line of JSON; letters of all scripts stay as they are.

    Raises:
        RunDamagedError: a number in it is not finite, which JSON cannot say.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=json_value)
    except ValueError:
        message = "the result contains a number that is not finite, which JSON cannot express; the data or the run is damaged: train again."
        raise RunDamagedError(message) from None


def json_value(value: Any) -> Any:
    """What JSON has no form for: collections as lists, anything else as text."""
    return list(value) if isinstance(value, Set | Sequence) else str(value)
