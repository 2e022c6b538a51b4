"""What the server does for itself now and then, whoever happens to open a page."""

from __future__ import annotations

import gc
import threading
import time
from typing import Final

from engine.util.memory import give_back, keep_little

EVERY_SECONDS: Final = 30.0
keep_little()  # when the first page is opened: before there are many threads
_busy = threading.Lock()
_last = -EVERY_SECONDS


def give_memory_back() -> None:
    """Give freed memory back to the system, at most every so often; nothing waits for it.

    Exports and searches need much for a moment, and each script has a thread of its own: otherwise the process keeps the most that they ever needed.
    """
    global _last
    with _busy:
        if time.monotonic() - _last < EVERY_SECONDS:
            return
        _last = time.monotonic()
    threading.Thread(target=_tidy, name="upkeep", daemon=True).start()


def _tidy() -> None:
    """Collect all garbage, and keep what is left, which open runs hold for hours, out of the collections that Python makes by itself until then: each
    would walk over it, with all sessions waiting."""
    gc.unfreeze()
    give_back()
    gc.freeze()
