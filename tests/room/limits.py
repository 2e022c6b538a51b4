"""A stage under limits that become wider step by step: memory, open files, the room and the inodes of a small disk.

    python -m tests.room.limits FOLDER PLACE STAGE LIMIT

Each attempt is a process of its own, forked after everything was imported: running out of memory may end it.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import engine.pipeline
import engine.reporting
from engine.errors import EngineError
from tests.room.nth_failure import LONGEST, compare, contents
from tests.room.stages import BY_NAME, Meaning, Place, RefusedError, Stage, fresh, sentence_of

Limit = Literal["memory", "files", "room", "inodes"]
IMPORTED = (engine.pipeline, engine.reporting)
STEPS: dict[Limit, tuple[int, ...]] = {
    "memory": (0, 1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512),  # MiB more than the process has
    "files": (0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30),  # more than are open
    "room": (0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256),  # blocks of 4 KiB more than the data take
    "inodes": (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48),
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
    before, untouched = stage.meaning(place), contents(place)
    if forked(stage, place, root.parent / "said", None, 0)[0]:
        raise RuntimeError((root.parent / "said").read_text(encoding="utf-8"))
    after = stage.meaning(place)
    for amount in STEPS[limit]:
        problem = attempt(base, root, stage, limit, amount, found, (before, after), untouched)
        if problem:
            found.problems.append(f"{limit} +{amount}: {problem}")
    shutil.rmtree(root)
    return found


def attempt(
    base: Path, root: Path, stage: Stage, limit: Limit, amount: int, found: Tried, meanings: tuple[Meaning, Meaning], untouched: dict[str, bytes]
) -> str:
    """One attempt; what is wrong with it."""
    if limit not in ("room", "inodes"):
        return outcome(fresh(base, root), root, stage, limit, amount, found, meanings, untouched)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    disk(root, base, limit, amount)
    try:
        place = fresh(base, root / "in it")
        return outcome(place, root, stage, limit, amount, found, meanings, untouched)
    finally:
        subprocess.run(["umount", str(root)], check=True)


def outcome(
    place: Place, root: Path, stage: Stage, limit: Limit, amount: int, found: Tried, meanings: tuple[Meaning, Meaning], untouched: dict[str, bytes]
) -> str:
    code, sentence = forked(stage, place, root.parent / "said", limit, amount)
    if code == DEFECT:
        return sentence
    if code < 0:
        found.ended.append(signal.Signals(-code).name)
    found.done, found.refused = found.done + (code == 0), found.refused + (code == SENTENCE)
    if code == SENTENCE:
        if sentence not in found.sentences:
            found.sentences.append(sentence)
        if not sentence.isprintable() or len(sentence) > LONGEST or not sentence.endswith("."):
            return f"not one sentence: {sentence!r}"
    if limit in ("room", "inodes"):
        subprocess.run(["mount", "-o", "remount,size=256m,nr_inodes=100000", str(root)], check=True)
    return compare(place, stage, sentence if code >= 0 else "ended", meanings, untouched)


def disk(root: Path, base: Path, limit: Limit, amount: int) -> None:
    """A disk in memory that has a little more room, or inodes, than the data take."""
    files = [base, *base.rglob("*")]
    blocks = sum(-(-path.stat().st_size // 4096) for path in files if path.is_file())
    room, inodes = (blocks + amount, 100_000) if limit == "room" else (65_536, len(files) + 1 + amount)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={4 * room}k,nr_inodes={inodes}", "tmpfs", str(root)], check=True)


def forked(stage: Stage, place: Place, said: Path, limit: Limit | None, amount: int) -> tuple[int, str]:
    """The stage in a child with a limit: 0, 2 with its sentence, 3 with a traceback, or minus the signal that ended it."""
    said.write_text("", encoding="utf-8")
    process = os.fork()
    if not process:
        code = DEFECT
        try:
            code, words = in_child(stage, place, limit, amount)
            said.write_text(words, encoding="utf-8")
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), said.read_text(encoding="utf-8")


def in_child(stage: Stage, place: Place, limit: Limit | None, amount: int) -> tuple[int, str]:
    before = {kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE)}
    try:
        narrow(limit, amount)
        stage.act(place)
        return 0, ""
    except (EngineError, RefusedError) as error:
        return SENTENCE, sentence_of(error)
    except BaseException:
        widen(before)
        return DEFECT, traceback.format_exc(limit=-8)
    finally:
        widen(before)


def narrow(limit: Limit | None, amount: int) -> None:
    if limit == "memory":
        size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + amount * 2**20, resource.getrlimit(resource.RLIMIT_AS)[1]))
    elif limit == "files":
        most = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + amount, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def widen(before: dict[int, tuple[int, int]]) -> None:
    for kind, limits in before.items():
        resource.setrlimit(kind, limits)


if __name__ == "__main__":
    base, root, stage, limit = sys.argv[1:]
    os.environ["NUMBA_CACHE_DIR"] = str(Path(root).parent / "kernels")
    result = try_limits(Path(base), Path(root), BY_NAME[stage], limit)  # type: ignore[arg-type]
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
