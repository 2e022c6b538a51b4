"""No room, at any moment of any stage: one sentence, nothing harmed, and the same works again when there is room."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.room.faults import READING, REMOVING, WRITING, Kind, built
from tests.room.stages import STAGES, Place

STEP = int(os.environ.get("ROOM_STEP", "1"))
CODES = {name: getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EIO", "EROFS", "EACCES", "EMFILE")}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders as before each stage."""
    folder = tmp_path_factory.mktemp("prepared") / "base"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MODELS", "DATA"):
            patch.setenv(f"DUAL_AMN_{name}", str(folder / name.lower()))
        Place(folder).prepare()
    return folder


def reported(found: dict[str, object]) -> None:
    """Figures for the document, where a file for them is named."""
    if report := os.environ.get("ROOM_REPORT"):
        with Path(report).open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")


def one_by_one(library: Path, base: Path, folder: Path, stage: str, code: int, kind: Kind, *, lasting: bool, step: int = STEP) -> None:
    """Each operation fails once, in a process of its own with the library preloaded."""
    words = [str(base), str(folder / "place"), stage, str(code), str(kind), str(int(lasting)), str(step)]
    program = [sys.executable, "-m", "tests.room.nth_failure", *words]
    ended = subprocess.run(program, cwd=ROOT, env={**os.environ, "LD_PRELOAD": str(library)}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    reported({"stage": stage, "code": errno.errorcode[code], "kind": kind, "lasting": lasting, **found})
    assert not found["problems"], "\n".join(found["problems"])
    assert found["operations"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("stage", [stage.name for stage in STAGES])
@pytest.mark.parametrize(("code", "lasting"), [("ENOSPC", True), ("EIO", False), ("EROFS", True)])
def test_every_operation_fails_once(stage: str, code: str, lasting: bool, library: Path, prepared: Path, tmp_path: Path) -> None:
    kind: Kind = WRITING if code == "ENOSPC" else WRITING + REMOVING  # files can be removed from a full disk
    several = stage == "split"  # tables: a disk that fails for good between two of them leaves those before
    one_by_one(library, prepared, tmp_path, stage, CODES[code], kind, lasting=lasting and not several)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("stage", [stage.name for stage in STAGES])
@pytest.mark.parametrize("code", ["EIO", "EMFILE"])
def test_every_reading_fails_once(stage: str, code: str, library: Path, prepared: Path, tmp_path: Path) -> None:
    one_by_one(library, prepared, tmp_path, stage, CODES[code], READING, lasting=False)


def may_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=False, capture_output=True).returncode == 0
        if mounted:
            subprocess.run(["umount", folder], check=True)
    return mounted


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("stage", [stage.name for stage in STAGES])
@pytest.mark.parametrize("limit", ["room", "inodes", "files", "memory"])
def test_limits_that_become_wider(stage: str, limit: str, prepared: Path, tmp_path: Path) -> None:
    """A disk of a few blocks or inodes, a few open files, a little memory: from nothing to enough."""
    if limit in ("room", "inodes") and not may_mount():
        pytest.skip("only the superuser may mount a small disk")
    words = [sys.executable, "-m", "tests.room.limits", str(prepared), str(tmp_path / "place"), stage, limit]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    reported({"stage": stage, "limit": limit, **found})
    assert not found["problems"], "\n".join(found["problems"])
    assert found["done"] or limit == "memory"
