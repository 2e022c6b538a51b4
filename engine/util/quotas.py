"""How much of the server the users of the app may take together, as the environment says; the command line has no such limits.

==================== ================================================== =============================
variable             what it limits                                     without it
==================== ================================================== =============================
DUAL_AMN_STORAGE     GiB of uploads and imported data sets              50
DUAL_AMN_QUEUE       training runs that wait in the queue               50
==================== ================================================== =============================
"""

from __future__ import annotations

import os
from typing import Final

from engine.errors import ConfigError

GIB: Final = 2**30
STORAGE: Final = 50.0
QUEUE: Final = 50


def storage_quota() -> int:
    """Bytes that uploads and imported data sets may take together.

    Raises:
        ConfigError: the variable holds no number.
    """
    return int(_number("DUAL_AMN_STORAGE", STORAGE) * GIB)


def queue_quota() -> int:
    """How many training runs may wait in the queue.

    Raises:
        ConfigError: the variable holds no number.
    """
    return int(_number("DUAL_AMN_QUEUE", QUEUE))


def _number(variable: str, otherwise: float) -> float:
    given = os.environ.get(variable, "").strip()
    try:
        found = float(given) if given else float(otherwise)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1e9:
        raise ConfigError(f"the variable {variable} must hold a number of at least 0; got '{given[:40]}'.")
    return found
