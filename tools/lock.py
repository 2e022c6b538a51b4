"""Write the lock files: every package that an install needs, with its version and the checksums of all its files.

    python -m tools.lock

It reads the pinned requirements and asks the package index that uv is set up with. Packages that are locked already keep their version unless
``--upgrade`` is given. pip takes nothing else then (``--require-hashes --no-deps``), on every machine and for every supported Python.

torch has a lock of its own, and so has what it needs of CUDA: a machine may offer a build for processors alone beside its index, which pip must be
shown before it looks into the index, and which needs none of these gigabytes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parent.parent
CUDA: Final = re.compile(r"(nvidia-|cuda-|triton\b)")
HEADER: Final = "# Made by `make lock` from {made_of}; do not edit.\n"
PYTHON: Final = "3.11"
FURTHER_HASHES: Final[Mapping[str, Sequence[str]]] = {
    # torch 2.13.0 for processors alone (2.13.0+cpu), Python 3.11 on x86-64 Linux: smaller than the index's own, and the same to the engine.
    "torch==2.13.0": ("sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",),
}
"""Checksums of files that another index offers."""
PLANS: Final[Mapping[str, tuple[str, ...]]] = {
    "requirements-gpu.lock": ("requirements-gpu.txt",),
    "requirements-sign-in.lock": ("requirements.txt", "requirements-sign-in.txt"),
    "requirements-extras.lock": ("requirements.txt", "requirements-extras.txt"),
    "requirements-dev.lock": ("requirements.txt", "requirements-dev.txt"),
}
"""Lock -> what it is made of; what requirements.lock has is left out of those that are installed on top of it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write all locks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.lock", description="Write the lock files from the pinned requirements.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions of packages that no requirement pins")
    parsed = parser.parse_args(arguments)
    kept = {} if parsed.upgrade else locked(sorted(PROJECT.glob("requirements*.lock")))
    whole = resolved(("requirements.txt",), kept)
    cuda = {name: entry for name, entry in whole.items() if CUDA.match(name)}
    torch = {"torch": whole["torch"]}
    write("requirements-torch.lock", torch, "requirements.txt (torch alone)")
    write("requirements-cuda.lock", cuda, "requirements.txt (what torch needs of CUDA)")
    write("requirements.lock", without(whole, cuda | torch), "requirements.txt")
    for lock, files in PLANS.items():
        found = without(resolved(files, kept | versions(whole)), cuda | torch)
        write(lock, found if lock == "requirements-gpu.lock" else without(found, whole), " and ".join(files))
    return 0


def resolved(files: Sequence[str], kept: Mapping[str, str]) -> dict[str, str]:
    """Name -> entry of each package that an install of some requirements needs, on any machine.

    Args:
        files: the requirements.
        kept: name -> version that is taken where nothing asks for another one.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "lock")
        out.write_text("".join(f"{name}=={version}\n" for name, version in kept.items()), encoding="utf-8")
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-annotate", "--no-header"]
        subprocess.run([*command, "--python-version", PYTHON, "--output-file", str(out), *files], cwd=PROJECT, check=True)
        return entries(out.read_text(encoding="utf-8"))


def entries(text: str) -> dict[str, str]:
    """Name -> entry of each package of a lock; an entry is its requirement and below it the checksums, ordered."""
    found: dict[str, str] = {}
    for block in re.findall(r"^[A-Za-z0-9].*(?:\n[ \t].*)*", text, re.M):
        requirement, hashes = block.partition("--hash=")[0].rstrip(" \\\n\t"), set(re.findall(r"--hash=(\S+)", block))
        hashes |= set(FURTHER_HASHES.get(requirement, ()))
        name = re.split(r"[=\[ ;]", requirement)[0].lower()
        entry = " \\\n    ".join([requirement, *(f"--hash={one}" for one in sorted(hashes))])
        found[name] = f"{found[name]}\n{entry}" if name in found else entry  # several, where systems need other versions
    return found


def versions(found: Mapping[str, str]) -> dict[str, str]:
    return {name: re.split(r"[ ;\\\n]", entry.partition("==")[2])[0] for name, entry in found.items()}


def locked(locks: Sequence[Path]) -> dict[str, str]:
    """Name -> version of all packages of some locks."""
    return {name: version for lock in locks for name, version in versions(entries(lock.read_text(encoding="utf-8"))).items()}


def without(found: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    return {name: entry for name, entry in found.items() if name not in others}


def write(name: str, found: Mapping[str, str], made_of: str) -> None:
    text = HEADER.format(made_of=made_of) + "".join(f"{entry}\n" for _, entry in sorted(found.items()))
    (PROJECT / name).write_text(text, encoding="utf-8")
    print(f"{name}: {len(found)} packages")


if __name__ == "__main__":
    sys.exit(main())
