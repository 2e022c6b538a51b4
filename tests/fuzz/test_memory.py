"""Reading changed files in a process that may take no more memory than was estimated for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fuzz.mutators import WORDS, Change, changed, packed
from tests.fuzz.valid_files import forms

SPARE = 96
"""MiB for what does not depend on the file."""
ADDRESSES = 4096
"""MiB of addresses that allocators may reserve without using them."""
TEXTS = {
    "a long line": lambda data: data[: len(data) // 2] + b"x" * 2**22 + data[len(data) // 2 :],
    "many lines": lambda data: data + b"\n" * 2**20,
    "repeated": lambda data: data * 200,
    "packed blanks": lambda data: packed(data + b" " * 2**22),
    "nested": lambda data: changed(data, [Change("nested", 500, 0, 1, 2)]),
    "nested in front": lambda data: changed(data, [Change("nested", 0, 0, 5, 2)]),
    "a huge number": lambda data: changed(data, [Change("numbers", 700, 0, 0, 7)]),
    "a huge name": lambda data: changed(data, [Change("token", 300, 0, len(WORDS) - 4, 0)]),
}
BYTES = {
    "cut": lambda data: data[: len(data) * 2 // 3],
    **{f"flipped at {at}": (lambda data, at=at: changed(data, [Change("flip", at, 0, 0, 6)])) for at in (20, 30, 600, 930, 960, 990)},
}


def child() -> None:
    """Reads the files that are named on standard input, each under its limit, and writes what came of it."""
    import resource

    from engine.data.assembly import expected_memory
    from engine.errors import EngineError

    def size() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()

    jobs = json.loads(sys.stdin.read())
    for folder in jobs["first"]:
        forms()[Path(folder).name].read(Path(folder))

    def resident(which: str) -> float:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(which)) / 1024

    before = needed = 0.0
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    for form, folder in jobs["then"]:
        try:
            needed = expected_memory(path for path in Path(folder).iterdir())
            resource.setrlimit(resource.RLIMIT_AS, (size() + int((needed + ADDRESSES) * 2**20), hard))
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins here
            before = resident("VmRSS")
            forms()[form].read(Path(folder))
            outcome = "read"
        except EngineError as error:
            outcome = str(error)
        except BaseException as error:
            outcome = f"FAILED with {type(error).__name__}: {error}"
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        if (took := resident("VmHWM") - before) > needed + SPARE:
            outcome = f"FAILED by {took:.0f} MiB where {needed:.1f} were estimated: {outcome}"
        print(json.dumps([form, Path(folder).name, outcome]))  # noqa: T201


def hard_cases(folder: Path) -> Iterator[tuple[str, str]]:
    for form, kind in forms().items():
        for name, change in (TEXTS if kind.text else BYTES).items():
            place = folder / form / name
            place.mkdir(parents=True)
            for number, (file, content) in enumerate(kind.folders[0].items()):
                if "/" not in file:
                    (place / file).write_bytes(change(content) if number == 0 else content)
            yield form, str(place)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_no_more_memory_than_estimated(tmp_path: Path) -> None:
    first = []
    for form, kind in forms().items():
        for file, content in kind.folders[0].items():
            path = tmp_path / "first" / form / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        first.append(str(tmp_path / "first" / form))
    jobs = json.dumps({"first": first, "then": list(hard_cases(tmp_path))})
    environment = {**os.environ, "MALLOC_ARENA_MAX": "2", "POLARS_MAX_THREADS": "2", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-c", "from tests.fuzz.test_memory import child; child()"]
    done = subprocess.run(command, input=jobs, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=250, check=False)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"after {outcomes[-1:]}: {done.stderr[-2000:]}"
    assert len(outcomes) == len(json.loads(jobs)["then"])
    said = [(form, name, outcome.replace(str(tmp_path), "")) for form, name, outcome in outcomes]
    assert not [one for one in said if "FAILED" in one[2] or "memory" in one[2]]
