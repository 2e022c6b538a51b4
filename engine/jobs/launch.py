"""Is a trainer alive, and how is one started: a detached process, so that it outlives tab, app and terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from engine.errors import JobError, MachineError, printable
from engine.jobs.endings import note_end
from engine.util.files import make_folder
from engine.util.locks import lock_is_held
from engine.util.machine import os_advice, os_reason
from engine.util.paths import PROJECT, jobs_folder, starting_mark, trainer_lock, trainer_log

START_SECONDS: Final = 60.0
"""A trainer that has not taken its lock after so long will never do so."""
NOTE_SECONDS: Final = 1.0
LONGEST_LOG: Final = 1 << 20


def trainer_alive(models: Path) -> bool:
    """Whether a process works at this folder's queue. Asking disturbs neither the trainer nor others who ask.

    Raises:
        JobError: it cannot be known, for example where locks do not work.
    """
    path = trainer_lock(models)
    try:
        return lock_is_held(path)
    except MachineError as error:
        raise JobError(str(error)) from error
    except OSError as error:
        raise JobError(printable(f"{path} cannot be read ({os_reason(error)}); {os_advice(error)}, then try again.")) from error


def is_starting(models: Path) -> bool:
    """Whether a trainer was started a moment ago and has not taken its lock yet.

    After a clock was put back the mark lies in the future, and says nothing: a second trainer that is started finds the lock taken and ends.
    """
    try:
        return abs(time.time() - starting_mark(models).stat().st_mtime) < START_SECONDS and not trainer_alive(models)
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
        words = f"the worker cannot be started ({os_reason(error)}); {os_advice(error)}, then try again (folder {jobs_folder(models)})."
        raise JobError(printable(words)) from error
    thread = threading.Thread(target=lambda: note_end(models, process.pid, process.wait()), daemon=True)
    _waiting[models.absolute()] = thread
    thread.start()  # who started it takes note of its end, so that no zombie stays
    return True


_waiting: dict[Path, threading.Thread] = {}
"""By models folder, what waits for the end of the trainer that this process started last."""


def await_note(models: Path) -> None:
    """Where this process started the trainer, which has ended: wait a moment for the note on how."""
    if (thread := _waiting.get(models.absolute())) is not None:
        thread.join(NOTE_SECONDS)


def _of_its_own() -> dict[str, Any]:
    """How to start a process that no signal to our terminal or session reaches."""
    if os.name == "nt":
        return {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined]
    return {"start_new_session": True}
