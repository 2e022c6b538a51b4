"""In a process with the library of faults preloaded: each operation of a stage on files fails once, one after the other.

LD_PRELOAD=faults.so python -m tests.room.nth_failure FOLDER STAGE ERROR KIND LASTING STEP
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path

from engine.errors import EngineError
from tests.room.faults import Faults, Kind
from tests.room.stages import BY_NAME, Meaning, Place, RefusedError, Stage, fresh, sentence_of

LONGEST = 900
"""Characters of a sentence with the paths of a test."""
MOST_PROBLEMS = 5


@dataclass
class Found:
    """What became of all attempts.

    Attributes:
        operations: of the stage on files.
        tried: how many of them failed, one at a time.
        refused: attempts that ended with a sentence; the others did without the operation.
        sentences: some of these.
        problems: what broke a promise.
    """

    operations: int = 0
    tried: int = 0
    refused: int = 0
    sentences: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def try_all(base: Path, root: Path, stage: Stage, number: int, kind: Kind, *, lasting: bool, step: int) -> Found:
    """Let every ``step``-th operation fail, and compare what there is with what was before and what the stage makes."""
    place = fresh(base, root)
    before = stage.meaning(place)
    untouched = contents(place)
    faults = Faults(place.root, kind)
    faults.arm(-1, number)
    stage.act(place)
    found = Found(operations=faults.disarm())
    after = stage.meaning(place)
    for nth in range(0, found.operations, step):
        found.tried += 1
        problem = attempt(base, root, stage, faults, nth, number, found, (before, after), untouched, lasting=lasting)
        if problem:
            found.problems.append(f"operation {nth}: {problem}")
        if len(found.problems) >= MOST_PROBLEMS:
            break
    return found


def attempt(
    base: Path,
    root: Path,
    stage: Stage,
    faults: Faults,
    nth: int,
    number: int,
    found: Found,
    meanings: tuple[Meaning, Meaning],
    untouched: dict[str, bytes],
    *,
    lasting: bool,
) -> str:
    """One attempt; what is wrong with it, "" where nothing is."""
    place = fresh(base, root)
    sentence, defect = "", ""
    faults.arm(nth, number, lasting=lasting)
    try:
        stage.act(place)
    except (EngineError, RefusedError) as error:
        sentence = sentence_of(error)
    except BaseException:
        defect = "".join(traceback.format_exc(limit=-6))
    finally:
        faults.disarm()
    if defect:
        return defect
    if sentence:
        found.refused += 1
        if sentence not in found.sentences and len(found.sentences) < 200:
            found.sentences.append(sentence)
        if not sentence.isprintable() or len(sentence) > LONGEST or not sentence.endswith("."):
            return f"not one sentence: {sentence!r}"
    return compare(place, stage, sentence, meanings, untouched)


def compare(place: Place, stage: Stage, sentence: str, meanings: tuple[Meaning, Meaning], untouched: dict[str, bytes]) -> str:
    """What there is after the fault, and once the stage was done again."""
    before, after = meanings
    try:
        now = stage.meaning(place)
        if now != after and (now != before or not sentence):
            return f"neither what was before nor what should be, after {sentence!r}: {now!r}"
        if changed := [name for name, content in contents(place).items() if name in untouched and untouched[name] != content]:
            return f"changed: {changed}"
        if gone := [name for name in untouched if not (place.root / name).exists() and stage.name != "delete"]:
            return f"gone: {gone}"
        if now == before or stage.again:
            for path in list(place.root.rglob("*.tmp")):
                os.utime(path, (1, 1))  # what is younger than a second may be one that another process is about to lock
            stage.act(place)
            if stage.meaning(place) != after:
                return f"not what should be once there is room again: {stage.meaning(place)!r}"
        ours = (path for path in place.root.rglob("*") if path.parent.name != "in")
        if left := [path.relative_to(place.root).as_posix() for path in ours if path.suffix in (".tmp", ".new")]:
            return f"left behind: {left}"
    except BaseException:
        return f"after {sentence!r}: " + "".join(traceback.format_exc(limit=-6))
    return ""


def contents(place: Place) -> dict[str, bytes]:
    """Files that no stage may change: not databases, whose content is compared by its meaning, and not the outputs."""
    files = (path for path in place.root.rglob("*") if path.is_file() and not path.is_relative_to(place.out))
    names = {path.relative_to(place.root).as_posix(): path for path in files}
    return {name: path.read_bytes() for name, path in names.items() if ".sqlite3" not in name and "/.jobs/" not in name and ".lock" not in name}


if __name__ == "__main__":
    base, root, stage, number, kind, lasting, step = sys.argv[1:]
    os.environ["NUMBA_CACHE_DIR"] = str(Path(root).parent / "kernels")
    result = try_all(Path(base), Path(root), BY_NAME[stage], int(number), int(kind), lasting=lasting == "1", step=int(step))  # type: ignore[arg-type]
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
