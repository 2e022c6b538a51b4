"""Where and how a run is computed: device, threads, precision. None of it is part of what a run is."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Literal

import torch
from torch import Tensor

from engine.errors import ConfigError
from engine.util.distributed import local_processes
from engine.util.memory import CONTROL_GROUP

EXECUTION_OPTIONS = ("checkpoint_seconds", "device", "threads", "precision", "check_memory")
"""Training options that do not change what is learned, only where and how it is computed."""

Precision = Literal["float32", "bfloat16"]

LEAST_GAIN = 1.3  # of bfloat16 products over float32 ones
TRIALS = 12
TRIED = {"cpu": (1024, 384), "cuda": (16_384, 2048)}
"""Rows and width of the products that are tried out: those of a step, or enough to keep a card busy."""


def choose_device(wanted: str) -> torch.device:
    """The device to train on.

    Raises:
        ConfigError: CUDA was asked for and there is none.
    """
    available = torch.cuda.is_available()
    if wanted == "cuda" and not available:
        raise ConfigError("training.device is cuda, but no CUDA device is available here; use training.device=cpu or auto.")
    return torch.device("cuda" if available and wanted != "cpu" else "cpu")


def count_threads(wanted: int | None) -> int:
    """How many CPU threads a training would use; nothing is changed.

    Raises:
        ConfigError: more than this process may use cores.
    """
    most = usable_cores()
    if wanted is not None and wanted > most:
        raise ConfigError(f"training.threads is {wanted}, but this machine has only {most}.")
    return wanted or max(most // local_processes(), 1)


def choose_threads(wanted: int | None) -> int:
    """Set the number of CPU threads of torch and of our kernels alike, for the whole process, and return it: only for a process that trains.

    Raises:
        ConfigError: more than this process may use cores.
    """
    threads = count_threads(wanted)
    torch.set_num_threads(threads)
    return threads


def usable_cores() -> int:
    """How many cores this process may use, which in a container can be fewer than the machine has.

    A container may be kept to some cores (``--cpuset-cpus``), or to a share of all of them (``--cpus``): of 1.5 cores' time one thread can be sure,
    and a second one would wait for half of its time while the first waits for it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return cores if quota is None else max(min(cores, int(quota)), 1)


def cpu_quota(folder: Path = CONTROL_GROUP) -> float | None:
    """Cores' worth of processor time that the control group may use, in either version; None where there is no limit."""
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        try:
            quota, period = ((folder / "cpu" / f"cpu.cfs_{name}_us").read_text(encoding="ascii").strip() for name in ("quota", "period"))
        except (OSError, ValueError):
            return None
    try:
        share = float(quota) / float(period)
    except (ValueError, ZeroDivisionError):  # "max"
        return None
    return share if share > 0 else None  # -1: none


def choose_precision(wanted: Literal["auto", "float32", "bfloat16"], device: torch.device) -> Precision:
    """What the matrix products of a training step are taken of; parameters, sums and finished embeddings are float32 in any case.

    "auto" is bfloat16 where the device multiplies it right and clearly faster, which is tried out once per process.

    Raises:
        ConfigError: bfloat16 was asked for on a graphics card that does not have it.
    """
    if wanted == "bfloat16" and device.type == "cuda" and not card_has_bfloat16():
        raise ConfigError("the training uses bfloat16, which this GPU cannot multiply; use training.precision=float32, or training.device=cpu.")
    if wanted == "auto":
        return "bfloat16" if bfloat16_pays(device.type) else "float32"
    return wanted


def card_has_bfloat16() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)


@cache
def bfloat16_pays(kind: str = "cpu") -> bool:
    """Whether a kind of device multiplies bfloat16 right, and faster than float32 by at least ``LEAST_GAIN``."""
    if kind not in TRIED or (kind == "cuda" and not card_has_bfloat16()):
        return False
    rows, width = TRIED[kind]
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(rows, width, generator=generator).to(kind), torch.randn(width, width, generator=generator).to(kind)
    rounded = exact[0].to(torch.bfloat16), exact[1].to(torch.bfloat16)
    expected, found = exact[0] @ exact[1], (rounded[0] @ rounded[1]).float()
    if (found - expected).norm() > 0.01 * expected.norm():
        return False
    trials = [(_seconds(*exact), _seconds(*rounded)) for _ in range(TRIALS)]
    slow, fast = (min(column) for column in zip(*trials, strict=True))  # the best of each: other work on the machine only adds
    return bool(slow > LEAST_GAIN * fast)


def _seconds(left: Tensor, right: Tensor) -> float:
    finish(left.device)
    started = time.perf_counter()
    left @ right
    finish(left.device)
    return time.perf_counter() - started


def finish(device: torch.device) -> None:
    """Wait for what was begun on the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextlib.contextmanager
def on_termination(handler: Callable[[int, FrameType | None], None], *, interrupts: bool = True) -> Iterator[None]:
    """Within this, Ctrl-C, a termination signal and a hang-up call ``handler``; afterwards they do what they did before.

    A hang-up that is ignored (``nohup``) stays ignored. ``interrupts``: whether Ctrl-C is among them.
    """
    numbers = [signal.SIGINT, signal.SIGTERM] if interrupts else [signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # not on Windows
        numbers.append(signal.SIGHUP)
    earlier = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in earlier.items():
            signal.signal(number, before)
