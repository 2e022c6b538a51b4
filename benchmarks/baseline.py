"""The regression guard: what was measured before, kept in a file, and what takes more of the machine now.

Compared are ratios, the least seconds of a phase divided by the least seconds of its ceiling in the same run (:mod:`benchmarks.phases`), so that a
slower or a busy machine raises no alarm. The file (``benchmarks/baseline.json``) holds JSON::

    {"format": 1,
     "cases": {"synthetic 10,000": {"conditions": {"device": "cpu", "threads": 2, ...},   must be the same to be comparable
                                    "phases": {"loss": {"ratio": 3.1, "seconds": 0.42}, ...},
                                    "machine": {...}, "versions": {...}, "commit": "...", "command": "..."}}}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.tables import NOTHING, markdown, write
from engine.errors import ConfigError

FORMAT = 1
TOLERANCE = 1.3
LEAST_SECONDS = 0.02
"""Phases that took less than this, then and now, are not compared: the clock and the system's scheduler would decide."""

FAR = 50
LOOSE = 2.0
"""Phases that took more than ``FAR`` times their ceiling (reading, indexing) wait for the interpreter and not for what the ceiling measures; how fast
that is changes beside the ceiling, so only twice as much counts."""

HEADER = ("case", "phase", "recorded ratio", "now", "change", "verdict")
BETTER, SAME, WORSE, SHORT, NEW = "better", "as before", "WORSE", "too short to compare", "not recorded"


@dataclass(frozen=True)
class Comparison:
    """A phase then and now; ``recorded`` is None where there is nothing to compare with."""

    case: str
    phase: str
    recorded: float | None
    now: float
    verdict: str

    @property
    def change(self) -> float | None:
        return self.now / self.recorded if self.recorded else None

    def cells(self) -> list[str]:
        change = NOTHING if self.change is None else f"x {self.change:.2f}"
        return [self.case, self.phase, NOTHING if self.recorded is None else f"{self.recorded:,.2f}", f"{self.now:,.2f}", change, self.verdict]


def save(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Put the measured cases into the file; its other cases stay.

    Raises:
        ConfigError: the file is there, but holds something else, or it cannot be written.
    """
    cases = dict(load(path)) if path.exists() else {}
    for one in records:
        phases = {name: {"ratio": round(phase["best_ratio"], 4), "seconds": round(phase["seconds"], 5)} for name, phase in rated(one)}
        cases[one["case"]] = {name: one[name] for name in ("conditions", "machine", "versions", "commit", "command")} | {"phases": phases}
    try:
        write(path, json.dumps({"format": FORMAT, "cases": cases}, indent=1, sort_keys=True))
    except OSError as error:
        raise ConfigError(f"{path}: the baseline cannot be written ({error.strerror or error}); name another file.") from None


def load(path: Path) -> Mapping[str, Any]:
    """The recorded cases by name.

    Raises:
        ConfigError: no such file, or no baseline in it.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: the baseline cannot be read ({error.strerror or error}); make one with --record.") from None
    except ValueError:
        raise ConfigError(f"{path}: this is not JSON; make a new baseline with --record FILE in another place.") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT or not all(map(is_case, as_mapping(found.get("cases")).values())):
        raise ConfigError(f"{path}: this is no baseline of format {FORMAT}; make a new one with --record FILE in another place.")
    return as_mapping(found["cases"])


def is_case(value: object) -> bool:
    case = as_mapping(value)
    phases = as_mapping(case.get("phases")).values()
    numbers = (as_mapping(phase).get(name) for phase in phases for name in ("ratio", "seconds"))
    return isinstance(case.get("conditions"), dict) and all(isinstance(number, (int, float)) and number > 0 for number in numbers)


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def rated(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The phases of a measured case that have a ratio."""
    return ((name, phase) for name, phase in record["phases"].items() if phase["best_ratio"] is not None)


def best_of(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first measurements, each phase with the better ratio of both."""

    def better(name: str, phase: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
        again = other["phases"][name]["best_ratio"]
        return phase if phase["best_ratio"] is None else {**phase, "best_ratio": min(phase["best_ratio"], again)}

    return [
        {**one, "phases": {name: better(name, phase, other) for name, phase in one["phases"].items()}}
        for one, other in zip(first, second, strict=True)
    ]


def compare(cases: Mapping[str, Any], records: Sequence[Mapping[str, Any]], tolerance: float = TOLERANCE) -> list[Comparison]:
    """Every phase with its recorded self.

    Args:
        cases: as :func:`load` gives them.
        records: what was measured now.
        tolerance: how many times the recorded ratio is still the same.

    Raises:
        ConfigError: a case was recorded under other conditions, or none of the cases is recorded.
    """
    if not any(one["case"] in cases for one in records):
        names = ", ".join(f"'{one['case']}'" for one in records)
        raise ConfigError(
            f"none of the measured cases ({names}) is in the baseline, which has {', '.join(sorted(cases))}; record them with --record."
        )
    return [comparison for one in records for comparison in compared(cases.get(one["case"]), one, tolerance)]


def compared(case: Mapping[str, Any] | None, record: Mapping[str, Any], tolerance: float) -> Iterator[Comparison]:
    if case is not None and case["conditions"] != record["conditions"]:
        changed = [name for name in record["conditions"] if case["conditions"].get(name) != record["conditions"][name]]
        was = ", ".join(f"{name}={case['conditions'].get(name)} (now {record['conditions'][name]})" for name in changed)
        raise ConfigError(f"'{record['case']}' was recorded under other conditions: {was}; measure under those, or record anew with --record.")
    for name, phase in rated(record):
        before = case["phases"].get(name) if case is not None else None
        if before is None:
            yield Comparison(record["case"], name, None, phase["best_ratio"], NEW)
        else:
            short = max(before["seconds"], phase["seconds"]) < LEAST_SECONDS
            verdict = SHORT if short else judged(phase["best_ratio"] / before["ratio"], tolerated(before["ratio"], tolerance))
            yield Comparison(record["case"], name, before["ratio"], phase["best_ratio"], verdict)


def tolerated(recorded: float, tolerance: float) -> float:
    """How many times the recorded ratio is still the same."""
    return max(tolerance, LOOSE) if recorded > FAR else tolerance


def judged(change: float, tolerance: float) -> str:
    return WORSE if change > tolerance else BETTER if change < 1 / tolerance else SAME


def comparison_table(found: Sequence[Comparison]) -> str:
    return markdown(HEADER, [one.cells() for one in found])


def complaints(found: Sequence[Comparison], tolerance: float) -> list[str]:
    """One sentence for each phase that became worse."""
    return [
        f"regression: {one.case}: {one.phase} takes {one.now:,.2f} times its ceiling, recorded were {one.recorded:,.2f} "
        f"(x {one.change:.2f}, tolerated x {tolerated(one.recorded or 0.0, tolerance):g})."
        for one in found
        if one.verdict == WORSE
    ]
