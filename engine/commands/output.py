"""What commands share: options that the command line adds to each, and results as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

AddOption = Callable[[argparse.ArgumentParser], None]


def print_json(value: Any) -> None:
    """A result as one line."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str))
