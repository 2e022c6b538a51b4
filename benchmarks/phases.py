"""What is measured: phases of a case, with what each has to compute and to move, and the lines that report it.

A phase's *ceiling* is the least time in which this machine could do it: its operations at the speed of a matrix product and then its bytes at the
speed of a copy, both measured in the same run. How many times the ceiling a phase takes depends far less than its seconds on the machine and on what
else it is doing. Tables show medians; earlier measurements are compared by the best of the trials, which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from benchmarks.machine import Ceilings, Probe, describe_machine, device_peak_mib, forget_peak, peak_mib, timed
from benchmarks.tables import NOTHING, markdown, write
from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.errors import ConfigError, EngineError
from engine.pipeline import git_commit, versions

Result = TypeVar("Result")
HEADER = ("case", "phase", "seconds", "GFLOP/s", "of product", "GB/s", "of copy", "times the ceiling", "peak MiB")
MEASUREMENTS = ".jsonl"
REPEATS, LONG = 5, 3.0
"""How often what happens once in a run is timed, unless that takes this number of seconds."""


@dataclass(frozen=True)
class Work:
    """What a phase cannot do without: operations of arithmetic, and bytes that are read or written at least once."""

    operations: float = 0.0
    bytes: float = 0.0

    def ceiling(self, ceilings: Ceilings, precision: str) -> float:
        """Seconds that it would take at full speed."""
        return self.operations / ceilings.product(precision) + self.bytes / ceilings.copy


@dataclass
class Phase:
    """Seconds of each time that a phase was gone through, what it has to do each time, and the most MiB held meanwhile."""

    name: str
    work: Work = field(default_factory=Work)
    precision: str = "float32"
    samples: list[float] = field(default_factory=list)
    peak: float | None = None
    device_peak: float | None = None
    note: str = ""

    @property
    def seconds(self) -> float:
        return statistics.median(self.samples)

    def to_dict(self, ceilings: Ceilings, best: Ceilings) -> dict[str, Any]:
        """As a JSON line has it; shares and ``ratio`` are medians over medians, ``best_ratio`` the best of both."""
        seconds, least = self.seconds, self.work.ceiling(ceilings, self.precision)
        flops, moved = self.work.operations / seconds, self.work.bytes / seconds
        return {
            "seconds": seconds,
            "samples": [round(one, 6) for one in self.samples],
            "gflops": flops / 1e9 if flops else None,
            "of_product": flops / ceilings.product(self.precision) if flops else None,
            "gbytes": moved / 1e9 if moved else None,
            "of_copy": moved / ceilings.copy if moved else None,
            "ratio": seconds / least if least else None,
            "best_ratio": min(self.samples) / self.work.ceiling(best, self.precision) if least else None,
            "precision": self.precision,
            "peak_mib": self.peak,
            "device_peak_mib": self.device_peak,
            "note": self.note,
        }


@dataclass
class Stopwatch:
    """Runs work as phases and remembers what it cost."""

    device: torch.device
    phases: dict[str, Phase] = field(default_factory=dict)

    def run(self, name: str, work: Callable[[], Result], *, counted: bool = True) -> Result:
        """Do it as one more sample of a phase; ``counted=False`` for one that warms up."""
        forget_peak(self.device)
        result, seconds = timed(self.device, work)
        phase = self.phases.setdefault(name, Phase(name))
        phase.peak = larger(phase.peak, peak_mib())
        phase.device_peak = larger(phase.device_peak, device_peak_mib(self.device))
        if counted:
            phase.samples.append(seconds)
        return result

    def several(self, name: str, work: Callable[[], Result]) -> Result:
        """The same some times over, where it is short; returns what the last one did."""
        result = self.run(name, work)
        while len(self.phases[name].samples) < REPEATS and sum(self.phases[name].samples) < LONG:
            del result  # or memory would be that of two
            result = self.run(name, work)
        return result

    def has_to(self, name: str, work: Work, precision: str = "float32", note: str = "") -> None:
        """Report what a phase requires."""
        phase = self.phases[name]
        phase.work, phase.precision, phase.note = work, precision, note

    @property
    def peak(self) -> float | None:
        """Of all phases."""
        return larger(*(phase.peak for phase in self.phases.values()))

    @property
    def device_peak(self) -> float | None:
        """The same on the graphics card."""
        return larger(*(phase.device_peak for phase in self.phases.values()))


def larger(*values: float | None) -> float | None:
    """The largest that is known."""
    return max((value for value in values if value is not None), default=None)


def record(name: str, watch: Stopwatch, probe: Probe, conditions: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """All that is known of a measured case, in plain values.

    Args:
        name: what tables call it.
        conditions: what must be the same for another measurement to be comparable.
        more: sizes and the like.
    """
    ceilings = probe.ceilings
    return {
        "case": name,
        "conditions": dict(conditions),
        "ceilings": ceilings.to_dict(),
        "phases": {phase.name: phase.to_dict(ceilings, probe.best) for phase in watch.phases.values()},
        "peak_mib": watch.peak,
        "device_peak_mib": watch.device_peak,
        "machine": describe_machine(watch.device),
        "versions": versions(),
        "commit": git_commit(),
        **more,
    }


def this_command(module: str, arguments: Sequence[str] | None) -> str:
    """How the measurement can be made again."""
    return shlex.join(["python", "-m", module, *(sys.argv[1:] if arguments is None else arguments)])


def heading(records: Sequence[Mapping[str, Any]]) -> str:
    """Machine, versions, commit and command, above a table."""
    first = records[0]
    machine, found = first["machine"], first["versions"]
    packages = ", ".join(f"{name} {version}" for name, version in found.items())
    lines = [
        f"- machine: {machine_text(machine)}",
        f"- versions: {packages}",
        f"- commit: {first['commit'] or 'unknown'}",
        f"- command: `{first['command']}`",
        *(f"- {one['case']}: {conditions(one)}; measured ceilings: {ceilings_text(one)}" for one in records),
    ]
    return "\n".join(lines)


def machine_text(machine: Mapping[str, Any]) -> str:
    parts = [f"{machine['cpu']}, {machine['cores']} cores, {optional(machine['memory_gib'], '.1f')} GiB"]
    if "gpu" in machine:
        parts.append(f"{machine['gpu']}, {machine['gpu_memory_gib']} GiB")
    return "; ".join([*parts, machine["platform"]])


def conditions(record: Mapping[str, Any]) -> str:
    """For people; settings last, as they are given."""
    values = {name: value for name, value in record["conditions"].items() if name != "settings"}
    return ", ".join([*(f"{name} {value}" for name, value in values.items()), *record["conditions"].get("settings", [])])


def ceilings_text(record: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {speed:,.0f} {'GB/s' if name == 'copy' else 'GFLOP/s'}" for name, speed in record["ceilings"].items())


def phase_table(records: Iterable[Mapping[str, Any]]) -> str:
    """A line for each case and phase."""
    rows, notes = [], []
    for one in records:
        for name, phase in one["phases"].items():
            rows.append([one["case"], name, *figures(phase)])
            if phase["note"]:
                notes.append(f"{one['case']}, {name}: {phase['note']}")
        device = "" if one["device_peak_mib"] is None else f" (on the GPU: {one['device_peak_mib']:,.0f})"
        rows.append([one["case"], "all", *[NOTHING] * 6, f"{optional(one['peak_mib'], ',.0f')}{device}"])
    return "\n\n".join([markdown(HEADER, rows), *notes])


def figures(phase: Mapping[str, Any]) -> list[str]:
    shapes = {"gflops": ",.1f", "of_product": ".0%", "gbytes": ",.2f", "of_copy": ".0%", "ratio": ",.2f", "peak_mib": ",.0f"}
    return [f"{phase['seconds']:.3f}", *(optional(phase[name], shape) for name, shape in shapes.items())]


def optional(value: float | None, shape: str) -> str:
    return NOTHING if value is None else format(value, shape)


def check_place(path: Path | None) -> None:
    """Find out before anything is measured whether its results can be written there.

    Raises:
        ConfigError: they cannot.
    """
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{path}: this cannot be written ({error.strerror or error}); name another place.") from None
    if path.is_dir() or path.suffix == MEASUREMENTS or not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{path}: results cannot be written there; name a file in a folder of yours, for example speed.md.")


def add_study(parser: argparse.ArgumentParser) -> None:
    """What :func:`found_by` looks for besides the data."""
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.OPTION=VALUE", help="a setting of the engine")
    parser.add_argument("--out", type=Path, help="write what was found here, as JSON")


def found_by(
    study: Callable[[AlignmentTask, RunConfig], dict[str, Any]], parsed: argparse.Namespace, module: str, arguments: Sequence[str] | None
) -> dict[str, Any] | None:
    """What a study finds in the data with the settings that were asked for, and the command; None, and the error printed, where it cannot."""
    try:
        check_place(parsed.out)
        config = RunConfig().with_assignments(parsed.set)
        found = study(load_task(parsed.data, config.data, config.seed), config)
    except EngineError as error:
        print(f"error: {error}", file=sys.stderr)
        return None
    return {**found, "command": this_command(module, arguments)}


def keep_found(found: Mapping[str, Any], out: Path | None) -> None:
    """Write it as JSON where that was asked for."""
    if out is not None:
        write(out, json.dumps(found, indent=1, sort_keys=True))


def keep(records: Sequence[Mapping[str, Any]], text: str, out: Path | None) -> None:
    """Write the text, and beside it the measurements as JSON lines (``FILE.jsonl``)."""
    if out is not None:
        write(out, text)
        write(out.with_suffix(MEASUREMENTS), "\n".join(json.dumps(one, sort_keys=True) for one in records))
