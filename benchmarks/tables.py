"""What all tables share."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.runs import Result
from engine.errors import EngineError

Group = tuple[str, str, str]
NOTHING = "-"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [list(header), ["---"] * len(header), *map(list, rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def spread(values: Sequence[float], sign: str = "") -> str:
    """Mean and standard deviation; ``sign="+"`` shows the sign of the mean."""
    deviation = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):{sign}.3f}{deviation}"


def by_group(results: Iterable[Result]) -> Mapping[Group, list[Result]]:
    """Results that differ in the seed alone, together; in the order in which they come."""
    groups: dict[Group, list[Result]] = {}
    for result in results:
        groups.setdefault(result.group, []).append(result)
    return groups


def seeds(group: Sequence[Result]) -> str:
    return " ".join(str(result.experiment.seed) for result in group)


def write(path: Path, text: str) -> None:
    """Beside its place, then into it; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(text + "\n", encoding="utf-8")
    os.replace(beside, path)


def print_report(study: Callable[[], str], out: Path | None) -> int:
    """Print what a study reports, and write it to a file where one is named; a user's mistake becomes one line. Returns the exit code."""
    try:
        report = study()
    except EngineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(report)
    if out is not None:
        write(out, report)
    return 0
