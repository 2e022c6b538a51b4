"""What measurements are compared with: this machine, what it can do at most, and how much memory is used."""

from __future__ import annotations

import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from engine.pipeline import device_name, peak_rss_mb
from engine.training.device import bfloat16_pays, usable_cores

Result = TypeVar("Result")
MIB = 2**20
COPY = "copy"
PRODUCT_SIDE = {"cpu": 1536, "cuda": 8192}  # of the square matrices that are multiplied
COPIED = {"cpu": 128 * MIB, "cuda": 1024 * MIB}  # bytes; far beyond any cache
TRIALS = 3


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Processor, cores that may be used, memory, and the graphics card where there is one."""
    found = {"cpu": cpu_model(), "cores": usable_cores(), "memory_gib": memory_gib(), "platform": platform.platform()}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        found |= {"gpu": device_name(device), "gpu_memory_gib": round(properties.total_memory / 2**30, 1)}
        found |= {"compute_capability": f"{properties.major}.{properties.minor}", "cuda": torch.version.cuda, "driver": driver_version()}
    return found


def driver_version() -> str | None:
    """Of the graphics card's driver; None where the system does not report it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.split("\n")[0].strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def cpu_model() -> str:
    lines = _lines(Path("/proc/cpuinfo"))
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor() or platform.machine())


def memory_gib() -> float | None:
    """All of the machine's memory; None where the system does not report it."""
    kib = _kib(Path("/proc/meminfo"), "MemTotal")
    return None if kib is None else round(kib / MIB, 1)


def synchronise(device: torch.device) -> None:
    """Wait for what was begun on the device, so that a clock read afterwards counts it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(device: torch.device, work: Callable[[], Result]) -> tuple[Result, float]:
    """What the work returns, and its seconds of wall time until the device is done."""
    synchronise(device)
    started = time.perf_counter()
    result = work()
    synchronise(device)
    return result, time.perf_counter() - started


# What the machine can do at most


@dataclass(frozen=True)
class Ceilings:
    """Operations a second of matrix products by precision, and bytes a second of a copy, those read and those written together."""

    products: Mapping[str, float]
    copy: float

    def product(self, precision: str) -> float:
        """At this precision, or float32 where it was not measured."""
        return self.products.get(precision, self.products["float32"])

    def to_dict(self) -> dict[str, float]:
        """In GFLOP/s and GB/s."""
        return {name: round(speed / 1e9, 2) for name, speed in {**self.products, COPY: self.copy}.items()}


@dataclass
class Probe:
    """Times a matrix product and a copy, between the phases of a measurement, so that both run under the same load on a shared machine.

    Attributes:
        device: where.
        trials: seconds by what was timed.
    """

    device: torch.device
    trials: dict[str, list[float]] = field(default_factory=dict)

    def measure(self) -> None:
        """Some more trials of each."""
        for name in self.amounts:
            work = self._work(name)
            if name not in self.trials:
                work()  # the first call may set up the library
            self.trials.setdefault(name, []).extend(timed(self.device, work)[1] for _ in range(TRIALS))

    @property
    def ceilings(self) -> Ceilings:
        """Medians of the trials so far; ``measure`` must have been called."""
        return self._speeds(statistics.median)

    @property
    def best(self) -> Ceilings:
        """Of the quickest trials: other work on the machine only adds."""
        return self._speeds(min)

    def _speeds(self, chosen: Callable[[list[float]], float]) -> Ceilings:
        speeds = {name: amount / chosen(self.trials[name]) for name, amount in self.amounts.items()}
        copy = speeds.pop(COPY)
        return Ceilings(speeds, copy)

    @cached_property
    def amounts(self) -> dict[str, float]:
        """Operations, or bytes read and written, of a trial of each."""
        rounded = torch.cuda.is_bf16_supported() if self.device.type == "cuda" else bfloat16_pays()
        operations = 2.0 * PRODUCT_SIDE[self.device.type] ** 3
        precisions = ("float32", "bfloat16") if rounded else ("float32",)
        return {**dict.fromkeys(precisions, operations), COPY: 2.0 * COPIED[self.device.type]}

    def _work(self, name: str) -> Callable[[], Tensor]:
        if name == COPY:
            here, there = (torch.ones(COPIED[self.device.type] // 4, device=self.device) for _ in range(2))
            return lambda: there.copy_(here)
        side, kind = PRODUCT_SIDE[self.device.type], getattr(torch, name)
        left, right, out = (torch.full((side, side), 0.5, dtype=kind, device=self.device) for _ in range(3))
        return lambda: torch.mm(left, right, out=out)


# Memory


def resident_mib(process: int | None = None) -> float | None:
    """What a process holds in memory now; None: this one."""
    kib = _kib(Path(f"/proc/{process or 'self'}/status"), "VmRSS")
    return None if kib is None else round(kib / 1024, 1)


def own_mib(process: int) -> float | None:
    """The part of it that is no pages of files."""
    kib = _kib(Path(f"/proc/{process}/status"), "RssAnon")
    return None if kib is None else round(kib / 1024, 1)


def peak_mib() -> float | None:
    """The most that it has held since it began, or since :func:`forget_peak`.

    Linux counts for ``getrusage`` what the parent held when it started a child; ``VmHWM`` is this program's alone.
    """
    kib = _kib(Path("/proc/self/status"), "VmHWM")
    return peak_rss_mb() if kib is None else round(kib / 1024, 1)


def forget_peak(device: torch.device) -> None:
    """Restart the count of peaks here, where the system allows that."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def device_peak_mib(device: torch.device) -> float | None:
    """The most that was held on a graphics card since :func:`forget_peak`; None on a CPU."""
    return round(torch.cuda.max_memory_allocated(device) / MIB, 1) if device.type == "cuda" else None


def _kib(path: Path, name: str) -> float | None:
    return next((float(line.split()[1]) for line in _lines(path) if line.startswith(f"{name}:")), None)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
