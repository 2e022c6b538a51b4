"""Faults of the disk: a library in C that lets any one operation on files fail, and the same for Python's own operations where no compiler is."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, Literal

import pytest

SOURCE: Final = Path(__file__).with_name("faults.c")
WRITING: Final = 1
READING: Final = 2
REMOVING: Final = 4
Kind = Literal[1, 2, 4, 5]
"""Of one or several of these."""


def built(folder: Path) -> Path:
    """The library, compiled; the test is skipped where that is not possible."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or os.uname().sysname != "Linux":
        pytest.skip("needs Linux and a C compiler")
    library = folder / "faults.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-U_FORTIFY_SOURCE", "-o", str(library), str(SOURCE), "-ldl"], check=True, capture_output=True
    )
    return library


class Faults:
    """The library as it is preloaded into this process.

    Args:
        folder: below which operations fail.
        kind: what fails: writing, reading, removing, or several of them.
    """

    def __init__(self, folder: Path, kind: Kind = WRITING) -> None:
        self.library = ctypes.CDLL(None)
        self.library.fault_disarm.restype = ctypes.c_long
        self.folder, self.kind = os.fsencode(folder), kind

    def arm(self, nth: int, number: int, *, lasting: bool = False) -> None:
        """The nth operation from now on fails with this error; ``lasting``: all later ones, too."""
        self.library.fault_arm(self.folder, self.kind, ctypes.c_long(nth), number, int(lasting))

    def disarm(self) -> int:
        """How many operations there were."""
        return int(self.library.fault_disarm())
