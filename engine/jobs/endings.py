"""Why a worker ended without a word, as far as that can be found out afterwards.

A worker notes down when it begins: its process id, the machine's start, and how many processes the system had ended for lack of memory until
then. Who started it notes down the signal that ended it. The process id is compared with that of a process whose end was waited for, and with no
living one: a worker is alive while its lock is held, and no signal is sent to anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any, Final

from engine.util.files import replacing
from engine.util.memory import out_of_memory_counter, out_of_memory_kills
from engine.util.paths import jobs_folder

BEGUN: Final = "worker.begun"
ENDED: Final = "worker.ended"
BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
RESUME: Final = "Resume continues from the last checkpoint"

LOST: Final = (
    "the worker ended unexpectedly: it was killed, memory or the disk was full, or the machine was restarted; its log (.jobs/trainer.log) may "
    f"have the reason. {RESUME}."
)
RESTARTED: Final = f"the machine was restarted during the training. {RESUME}."
OUT_OF_MEMORY: Final = (
    f"the worker was ended by the system because memory ran out. {RESUME}; close other programs before, or train with a smaller encoder.dim or "
    "training.batch_size."
)
KILLED: Final = (
    f"the worker was ended by the system, probably for lack of memory (SIGKILL). {RESUME}; close other programs before, or train with a smaller "
    "encoder.dim or training.batch_size."
)
KILLED_BY_HAND: Final = f"the worker was killed (SIGKILL), and not for lack of memory: by a person or another program. {RESUME}."
CRASHED: Final = f"the worker crashed ({{signal}}); its log (.jobs/trainer.log) may have the reason. {RESUME}."


def note_begin(models: Path) -> None:
    """Called by the worker, which holds its lock. What cannot be noted is not known later, which must not end a training."""
    counter = out_of_memory_counter()
    counted = {} if counter is None else {"counter": str(counter), "kills": out_of_memory_kills(counter)}
    _write(models, BEGUN, {"process": os.getpid(), "boot": _boot(), **counted})


def note_end(models: Path, process: int, code: int) -> None:
    """Called by who started the worker and waited for its end; ``code`` is minus the signal's number where one ended it."""
    if code < 0 and _read(models, BEGUN).get("process") == process:
        _write(models, ENDED, {"process": process, "signal": -code})


def why_lost(models: Path) -> str:
    """One sentence on how the last worker ended, and what to do."""
    begun, ended = _read(models, BEGUN), _read(models, ENDED)
    if not begun:
        return LOST
    if begun.get("boot") != _boot():
        return RESTARTED
    number = ended.get("signal") if ended.get("process") == begun.get("process") else None
    more = _killed_since(begun)
    if more and number in (None, signal.SIGKILL):
        return OUT_OF_MEMORY
    if number == signal.SIGKILL:
        return KILLED if more is None else KILLED_BY_HAND
    with contextlib.suppress(ValueError):
        if isinstance(number, int):
            return CRASHED.format(signal=signal.Signals(number).name)
    return LOST


def _killed_since(begun: dict[str, Any]) -> int | None:
    """How many processes the system has ended for lack of memory since the worker began; None where that was not counted, or is no more."""
    counter, before = begun.get("counter"), begun.get("kills")
    now = out_of_memory_kills(Path(counter)) if isinstance(counter, str) else None
    return now - before if now is not None and isinstance(before, int) else None


def _boot() -> str:
    """Names this start of the machine; "" where the system has no such name."""
    try:
        return BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _write(models: Path, name: str, values: dict[str, Any]) -> None:
    with contextlib.suppress(OSError), replacing(jobs_folder(models) / name) as beside:
        beside.write_text(json.dumps(values), encoding="utf-8")


def _read(models: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads((jobs_folder(models) / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
