"""Lock files: complete, with checksums, consistent with the pinned requirements and with each other; the list of components is made of them."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT
from tools.lock import CUDA, PLANS, entries, locked

LOCKS = sorted(ROOT.glob("requirements*.lock"))
BASE = ("requirements.lock", "requirements-torch.lock", "requirements-cuda.lock")


def of(*names: str) -> dict[str, str]:
    return locked([ROOT / name for name in names])


def requirements(path: Path) -> Iterator[str]:
    """The pinned requirements of a file and of those that it includes."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            yield from requirements(path.parent / line.removeprefix("-r ").strip())
        elif line and not line.startswith("#"):
            yield line.split("#")[0].strip()


def test_there_is_a_lock_for_each_way_to_install() -> None:
    assert {path.name for path in LOCKS} == {*BASE, *PLANS}
    assert {path.stem for path in ROOT.glob("requirements*.txt")} == {path.stem for path in LOCKS} - {"requirements-torch", "requirements-cuda"} | {
        "requirements-common"
    }


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_has_checksums(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = entries(text)
    assert found
    for entry in found.values():
        lines = entry.split(" \\\n    ")
        assert re.fullmatch(r"[a-z0-9._-]+==[0-9][A-Za-z0-9.!+]*( ; .*)?", lines[0])
        assert len(lines) > 1
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", line) for line in lines[1:])
    assert not re.search(r"^-|://", text, re.M), "no index and no address belongs into a lock"


@pytest.mark.parametrize("lock", ["requirements.lock", *PLANS])
def test_the_lock_holds_every_requirement(lock: str) -> None:
    known = of(lock, *BASE)
    for line in requirements(ROOT / lock.replace(".lock", ".txt")):
        wanted = Requirement(line)
        assert str(wanted.specifier) == f"=={known[canonicalize_name(wanted.name)]}", f"{line} is not what {lock} has; run make lock"


def test_locks_agree_with_each_other() -> None:
    seen: dict[str, str] = {}
    for path in LOCKS:
        for name, version in of(path.name).items():
            assert seen.setdefault(name, version) == version, f"{name} in {path.name}"
    for lock in PLANS:
        if lock != "requirements-gpu.lock":
            assert not set(of(lock)) & set(of(*BASE)), "what is installed already is not locked twice"


def test_processors_alone_need_no_cuda_and_a_gpu_differs_in_faiss_only() -> None:
    cpu, gpu = of("requirements.lock"), of("requirements-gpu.lock")
    assert not [name for name in cpu if CUDA.match(name)]
    assert {name for name in cpu if name not in gpu} == {"faiss-cpu"}
    assert {name for name in gpu if name not in cpu and not CUDA.match(name)} == {"faiss-gpu"}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_what_a_locked_package_needs_is_locked(lock: str) -> None:
    """pip is not asked to find what is missing (``--no-deps``): of all that is installed here, every need is in the lock."""
    known = of(lock, *BASE)
    checked = 0
    for name in of(lock):
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        checked += 1
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonicalize_name(need.name) in known, f"{name} needs {need}"
    assert checked > 40


def test_make_installs_by_checksums_unless_asked_otherwise() -> None:
    def commands(*arguments: str) -> str:
        return subprocess.run(["make", "-n", "-B", "install", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "--require-hashes --no-deps -r requirements.lock" in commands("GPU=")
    assert "--require-hashes --no-deps -r requirements-gpu.lock" in commands("GPU=-gpu")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "$(LOCKED) -r requirements-dev.lock" in makefile
    assert "--require-hashes --no-deps" in (ROOT / "Containerfile").read_text(encoding="utf-8")


def test_the_list_of_components_is_complete(tmp_path: Path) -> None:
    (command,) = re.findall(r"\| \$\(PY\) -W ignore -m (cyclonedx_py .*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    content = "".join((ROOT / name).read_text(encoding="utf-8") for name in BASE)
    out = tmp_path / "sbom.json"
    words = command.replace("sbom.json", str(out)).split()
    subprocess.run([sys.executable, "-m", *words], cwd=ROOT, input=content, text=True, check=True, capture_output=True)
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["bomFormat"] == "CycloneDX"
    assert {canonicalize_name(one["name"]): one["version"] for one in found["components"]} == of(*BASE)
    assert found["metadata"]["component"]["name"] == "dual-amn-explorer"
    for one in found["components"]:
        hashes = [each for reference in one.get("externalReferences", ()) for each in reference.get("hashes", ())]
        assert hashes, one["name"]
