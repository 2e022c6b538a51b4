"""A stage under limits that become wider step by step: memory, open files, the room and the inodes of a small disk.

    python -m tests.room.limits FOLDER PLACE STAGE LIMIT

Each attempt is a process of its own, forked after everything was imported: running out of memory may end it.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import engine.pipeline
import engine.reporting
from engine.errors import EngineError
from engine.util.machine import as_machine_error
from tests.room.nth_failure import LONGEST, compare, contents
from tests.room.stages import BY_NAME, Meaning, Place, RefusedError, Stage, fresh, sentence_of

Limit = Literal["memory", "files", "room", "inodes"]
IMPORTED = (engine.pipeline, engine.reporting)
STEPS: dict[Limit, tuple[int, ...]] = {
    "memory": (0, 1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512),  # MiB more than the process has
    "files": (0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30),  # more than are open
    "room": (0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256),  # blocks of 4 KiB more than the data take
    "inodes": (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 72, 108),  # a literal training writes two runs
}
SENTENCE, DEFECT = 2, 3


@dataclass
class Tried:
    """What became of all attempts: done, refused in a sentence, ended by a signal (its name), and what broke a promise."""

    done: int = 0
    refused: int = 0
    ended: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def try_limits(base: Path, root: Path, stage: Stage, limit: Limit) -> Tried:
    place, found = fresh(base, root), Tried()
    untouched = contents(place)

    def measured() -> tuple[Meaning, Meaning]:
        before = stage.meaning(place)
        stage.act(place)
        return before, stage.meaning(place)

    code, meanings = in_child(root.parent, measured)
    if code:
        raise RuntimeError(meanings)
    for amount in STEPS[limit]:
        problem = attempt(base, root, stage, limit, amount, found, lambda place, said: compare(place, stage, said, meanings, untouched))
        if problem:
            found.problems.append(f"{limit} +{amount}: {problem}")
    shutil.rmtree(root)
    return found


Check = Callable[[Place, str], str]


def attempt(base: Path, root: Path, stage: Stage, limit: Limit, amount: int, found: Tried, check: Check) -> str:
    """One attempt; what is wrong with it."""
    if limit not in ("room", "inodes"):
        return outcome(fresh(base, root), root, stage, limit, amount, found, check)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    disk(root, base, limit, amount)
    try:
        return outcome(fresh(base, root / "in it"), root, stage, limit, amount, found, check)
    finally:
        subprocess.run(["umount", str(root)], check=True)


def outcome(place: Place, root: Path, stage: Stage, limit: Limit, amount: int, found: Tried, check: Check) -> str:
    def act() -> None:
        narrow(limit, amount)
        stage.act(place)

    code, said = in_child(root.parent, act)
    if code == DEFECT:
        return str(said)
    if code < 0:
        found.ended.append(signal.Signals(-code).name)
    found.done, found.refused = found.done + (code == 0), found.refused + (code == SENTENCE)
    sentence = "" if code == 0 else str(said or "ended.")
    if sentence not in ("", *found.sentences):
        found.sentences.append(sentence)
    if sentence and (not sentence.isprintable() or len(sentence) > LONGEST or not sentence.endswith(".")):
        return f"not one sentence: {sentence!r}"
    if limit in ("room", "inodes"):
        subprocess.run(["mount", "-o", "remount,size=256m,nr_inodes=100000", str(root)], check=True)
    code, problem = in_child(root.parent, lambda: check(place, sentence))
    return str(problem) if code == 0 else f"the check ended with {code}: {problem}"


def disk(root: Path, base: Path, limit: Limit, amount: int) -> None:
    """A disk in memory that has a little more room, or inodes, than the data take."""
    files = [base, *base.rglob("*")]
    blocks = sum(-(-path.stat().st_size // 4096) for path in files if path.is_file())
    room, inodes = (blocks + amount, 100_000) if limit == "room" else (65_536, len(files) + 1 + amount)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={4 * room}k,nr_inodes={inodes}", "tmpfs", str(root)], check=True)


def in_child(folder: Path, action: Callable[[], Any]) -> tuple[int, Any]:
    """An action in a child: 0 and what it returns, 2 with its sentence, 3 with a traceback, or minus the signal that ended it.

    This process itself computes nothing: threads of libraries would be missing in a child.
    """
    answer = folder / "answer"
    answer.write_bytes(pickle.dumps(""))
    process = os.fork()
    if not process:
        code = DEFECT
        try:
            code, found = outcome_of(action)
            answer.write_bytes(pickle.dumps(found))
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), pickle.loads(answer.read_bytes())


def outcome_of(action: Callable[[], Any]) -> tuple[int, Any]:
    before = {kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE)}
    try:
        return 0, action()
    except (EngineError, RefusedError) as error:
        return SENTENCE, sentence_of(error)
    except BaseException as error:
        for kind, limits in before.items():
            resource.setrlimit(kind, limits)
        if (machine := as_machine_error(error)) is not None:  # as the app does, of stages that are no command
            return SENTENCE, str(machine)
        return DEFECT, traceback.format_exc(limit=-8)
    finally:
        for kind, limits in before.items():
            resource.setrlimit(kind, limits)


def narrow(limit: Limit, amount: int) -> None:
    if limit == "memory":
        size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + amount * 2**20, resource.getrlimit(resource.RLIMIT_AS)[1]))
    elif limit == "files":
        most = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + amount, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


if __name__ == "__main__":
    base, root, stage, limit = sys.argv[1:]
    os.environ["NUMBA_CACHE_DIR"] = str(Path(root).parent / "kernels")
    result = try_limits(Path(base), Path(root), BY_NAME[stage], limit)  # type: ignore[arg-type]
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
