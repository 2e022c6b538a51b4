"""Entity alignment of two knowledge graphs with Dual-AMN, kept in run folders that an analyst can look into.

The names below are the public face: ``read`` and ``inspect`` a data set, ``train`` a run, ``update`` it to a new version of its data, ``open_run``
and ``list_runs``, ``export`` an alignment.
They are loaded when they are first used. docs/python.md is a tour. The engine has no web code: notebooks, the command line (``python -m engine``)
and the app use the same objects.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine import errors
    from engine.api import OpenRun, export, inspect, list_runs, open_run, read, train, update

# Large pages for large tensors: without them a training step on a CPU spends a fifth of its time on page faults. Read when torch is imported.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

# Matrix products must not choose their number of threads by the machine's load: sums would be taken in another order, and a resumed run would
# differ from an unbroken one in the last digits. Read when the library is loaded.
os.environ.setdefault("MKL_DYNAMIC", "FALSE")
os.environ.setdefault("OMP_DYNAMIC", "FALSE")

# After a matrix product its threads would keep spinning for milliseconds, on the cores that our own threads (engine.util.threads) need by then.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

__version__ = "0.2.0"
"""Run ids and manifests hold it."""

__all__ = ["OpenRun", "__version__", "errors", "export", "inspect", "list_runs", "open_run", "read", "train", "update"]


def __getattr__(name: str) -> Any:
    """A public name on its first use (PEP 562): importing the engine alone loads neither torch nor pandas."""
    if name not in __all__:
        raise AttributeError(f"module 'engine' has no attribute '{name}'; it offers {', '.join(__all__)}")
    return importlib.import_module("engine.errors") if name == "errors" else getattr(importlib.import_module("engine.api"), name)


def __dir__() -> list[str]:
    return list(__all__)
