"""What commands share: options that the command line adds to each, and results as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence, Set
from typing import Any

from engine.errors import RunDamagedError

AddOption = Callable[[argparse.ArgumentParser], None]


def print_json(value: Any) -> None:
    """A result as one line.

    Raises:
        RunDamagedError: a number in it is not finite, which JSON cannot say.
    """
    try:
        line = json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain)
    except ValueError:
        message = "the result holds a number that is not finite, which JSON cannot express; the data or the run behind it is damaged: train again."
        raise RunDamagedError(message) from None
    print(line)


def plain(value: Any) -> Any:
    """What JSON has no form for: collections as lists, anything else as text."""
    return list(value) if isinstance(value, Set | Sequence) else str(value)
