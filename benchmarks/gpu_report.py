"""One JSON file from all that ``benchmarks/gpu.sh`` measured.

    python -m benchmarks.gpu_report FOLDER

Reads of the folder ``steps.tsv`` (name, exit code, seconds), the JSON lines of the benchmarks, ``agreement.json``, ``waits.json`` and the runs under
``models``, and writes ``gpu.json``. Exit code 1 where a step failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import describe_machine
from benchmarks.tables import write
from engine.errors import DataError, EngineError
from engine.pipeline import git_commit, versions
from engine.runs import RunStore

FAILED_STEP, FAILED = 1, 2
SINGLE = ("waits", "agreement")
OF_A_RUN = ("variant", "seconds", "phases", "peak_rss_mb", "device", "training")


def steps(folder: Path) -> list[dict[str, Any]]:
    """What the script did, in order.

    Raises:
        DataError: the list is not there, or is no such list.
    """
    path = folder / "steps.tsv"
    try:
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        return [{"step": name, "exit_code": int(code), "seconds": float(seconds)} for name, code, seconds in lines]
    except OSError as error:
        raise DataError(f"this cannot be read ({error.strerror or error}); give the folder that benchmarks/gpu.sh wrote.", path=path) from None
    except ValueError:
        raise DataError("lines of name, exit code and seconds, separated by tabs, were expected; run benchmarks/gpu.sh again.", path=path) from None


def measurements(folder: Path) -> list[dict[str, Any]]:
    """Of all ``*.jsonl``."""
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()]


def runs(folder: Path) -> list[dict[str, Any]]:
    """Finished runs with their metrics."""
    store = RunStore(folder / "models")
    found = [store.find(summary.id) for summary in store.list() if summary.state == "finished"]
    return [{"data": run.dataset, "run": run.id, **{name: run.manifest.get(name) for name in OF_A_RUN}, "metrics": run.metrics} for run in found]


def report(folder: Path) -> dict[str, Any]:
    single = {name: json.loads(path.read_text(encoding="utf-8")) if (path := folder / f"{name}.json").exists() else None for name in SINGLE}
    return {
        "machine": describe_machine(torch.device("cuda" if torch.cuda.is_available() else "cpu")),
        "versions": versions(),
        "commit": git_commit(),
        "steps": steps(folder),
        **single,
        "runs": runs(folder),
        "measurements": measurements(folder),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_report", description="One JSON file from what gpu.sh measured.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    try:
        found = report(folder)
    except EngineError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    write(folder / "gpu.json", json.dumps(found, indent=1, sort_keys=True))
    failed = [step["step"] for step in found["steps"] if step["exit_code"]]
    print(f"{folder / 'gpu.json'}: {found['machine'].get('gpu', 'no GPU')}; " + (f"FAILED: {', '.join(failed)}" if failed else "all steps done"))
    return FAILED_STEP if failed else 0


if __name__ == "__main__":
    sys.exit(main())
