"""Estimates of time and memory beside what finished runs took.

    python -m benchmarks.estimates models

Each run is estimated as it would have been before it started: by this machine's speed as it is tried out now, corrected by the runs of the same
folder that were finished by then. The first run of a folder counts as the first on its machine, which compiles the kernels.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.tables import NOTHING, markdown, print_report
from engine.config import RunConfig
from engine.errors import ConfigError, RunError
from engine.runs import RunStore, RunSummary
from engine.training.estimate import Estimate, Machine, Sizes, estimate_training, measured_machine


@dataclass(frozen=True)
class Row:
    """A run, and what would have been said of it: alone, and with what earlier runs taught."""

    run: RunSummary
    alone: Estimate
    corrected: Estimate
    seconds: float
    memory: float | None


def rows_of(models: Path, machine: Machine) -> list[Row]:
    """The finished runs of a folder, the oldest first.

    Raises:
        RunError: there are none.
    """
    runs = sorted((one for one in RunStore(models).list() if one.state == "finished"), key=lambda one: one.created)
    rows = [row for number, run in enumerate(runs) if (row := _row(run, runs[:number], machine)) is not None]
    if not rows:
        raise RunError(f"there are no finished runs in {models} to compare estimates with.")
    return rows


def _row(run: RunSummary, earlier: Sequence[RunSummary], machine: Machine) -> Row | None:
    """None for runs whose manifest says too little."""
    manifest = run.manifest or {}
    try:
        sizes, config = Sizes.of_manifest(manifest["data"]), RunConfig.from_dict(manifest["config"])
        training, seconds = manifest["training"], float(manifest["seconds"])
        ready = run.variant == "literal" and seconds < float(training["seconds"])
    except (KeyError, TypeError, ValueError, ConfigError):
        return None
    then = replace(machine, compiled=bool(earlier))
    alone, corrected = (
        estimate_training(sizes, config, then, runs, structure_ready=ready, precision=training.get("precision", "float32")) for runs in ((), earlier)
    )
    return Row(run, alone, corrected, seconds, manifest.get("peak_rss_mb"))


def report(folders: Sequence[Path]) -> str:
    machine = measured_machine()
    rows = [row for folder in folders for row in rows_of(folder, machine)]
    table = markdown(
        ["run", "took (s)", "estimate alone", "ratio", "with earlier runs", "ratio", "peak (MiB)", "estimate", "ratio"], [_cells(row) for row in rows]
    )
    within = sum(0.5 <= row.corrected.seconds / row.seconds <= 2 for row in rows)
    fits = sum(row.memory is not None and 0.5 <= row.corrected.memory / row.memory <= 2 for row in rows)
    middle = statistics.median(row.corrected.seconds / row.seconds for row in rows)
    speed = f"{machine.float32 / 1e9:.0f} and {machine.bfloat16 / 1e9:.0f} billion operations a second in products of float32 and bfloat16"
    return (
        f"{table}\n\nTime within a factor of 2: {within} of {len(rows)}; memory: {fits} of {len(rows)}. Median ratio of the times {middle:.2f}. "
        f"The probe found {speed}, {machine.gather / 1e9:.1f} billion gathered values."
    )


def _cells(row: Row) -> list[str]:
    alone, corrected = row.alone.seconds, row.corrected.seconds
    memory = [f"{row.memory:,.0f}", f"{row.corrected.memory:,.0f}", f"{row.corrected.memory / row.memory:.2f}"] if row.memory else [NOTHING] * 3
    return [
        row.run.id,
        f"{row.seconds:,.0f}",
        f"{alone:,.0f}",
        f"{alone / row.seconds:.2f}",
        f"{corrected:,.0f}",
        f"{corrected / row.seconds:.2f}",
        *memory,
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", help="models folders with finished runs")
    parser.add_argument("--out", type=Path, help="write the table here as well")
    parsed = parser.parse_args()
    return print_report(lambda: report(parsed.models), parsed.out)


if __name__ == "__main__":
    raise SystemExit(main())
