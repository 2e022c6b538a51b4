"""Is a trainer alive, and how is one started: a detached process, so that it outlives tab, app and terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from engine.errors import JobError
from engine.util.files import is_locked, make_folder
from engine.util.paths import PROJECT, jobs_folder, starting_mark, trainer_lock, trainer_log

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

START_SECONDS: Final = 60.0
"""A trainer that has not taken its lock after so long will never do so."""
LONGEST_LOG: Final = 1 << 20


def trainer_alive(models: Path) -> bool:
    """Whether a process works at this folder's queue. Asking disturbs neither the trainer nor others who ask: the look is a shared lock."""
    path = trainer_lock(models)
    if fcntl is None:
        return is_locked(path)
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def is_starting(models: Path) -> bool:
    """Whether a trainer was started a moment ago and has not taken its lock yet."""
    try:
        return time.time() - starting_mark(models).stat().st_mtime < START_SECONDS and not trainer_alive(models)
    except OSError:
        return False


def start_trainer(models: Path) -> bool:
    """Start a trainer unless one is alive. It takes jobs until none waits. Returns whether one was started.

    Two may start one at once: the second finds the lock taken and ends.

    Raises:
        JobError: no process can be started, or its log cannot be written.
    """
    if trainer_alive(models):
        return False
    log = trainer_log(models)
    command = [sys.executable, "-m", "engine.jobs", str(models.resolve())]
    try:
        make_folder(jobs_folder(models))
        if log.exists() and log.stat().st_size > LONGEST_LOG:
            os.replace(log, log.with_suffix(".old.log"))
        starting_mark(models).touch()
        with log.open("ab") as output:
            process = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **_of_its_own())
    except OSError as error:
        raise JobError(f"the worker cannot be started ({error}); check the permissions of {jobs_folder(models)}.") from error
    threading.Thread(target=process.wait, daemon=True).start()  # who started it takes note of its end, so that no zombie stays
    return True


def _of_its_own() -> dict[str, Any]:
    """How to start a process that no signal to our terminal or session reaches."""
    if os.name == "nt":
        return {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined]
    return {"start_new_session": True}
