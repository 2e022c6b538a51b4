"""For what a training step would wait on a graphics card, and how many operations it begins there.

    python -m benchmarks.host_waits DATA [--device cuda] [--steps 5] [--set section.option=value] [--out FILE]

On a card torch itself reports every operation that waits (its sync debug mode). Without one, steps are computed on torch's device ``meta``, which has
shapes but no values: they take the card's way through the program, and whatever would read a value from the card, or copy to it and wait, is counted.
A step that waits for anything gives exit code 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.machine import describe_machine, synchronise
from benchmarks.phases import add_study, found_by, keep_found
from engine.config import RunConfig
from engine.data import AlignmentTask
from engine.pipeline import git_commit, versions
from engine.training import trainer as training
from engine.training.device import choose_device
from engine.util.devices import upload

WAITS, FAILED = 1, 2
META = torch.device("meta")
READING = {
    "_local_scalar_dense": "a value is read",
    "equal": "a value is read",
    "nonzero": "the size of the result depends on values",
    "masked_select": "the size of the result depends on values",
    "_unique2": "the size of the result depends on values",
    "unique_dim": "the size of the result depends on values",
    "unique_consecutive": "the size of the result depends on values",
    "bincount": "the size of the result depends on values",
}
"""Operations that a card cannot begin without an answer, or whose answer the program needs."""
SENDING = "copied between host and card"
MIXED = "an index or operand on the host"


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """What is begun on a device, and what would be waited for.

    Attributes:
        kind: of the device.
        operations: those that start work there: no views.
        waits: number of each reason.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kind = device.type
        self.operations = 0
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        there = any(one.device.type == self.kind for one in tensors) or torch.device(kwargs.get("device") or "cpu").type == self.kind
        if there:
            self.operations += not func.is_view
            if reason := self._reason(func, tensors, args, kwargs):
                self.waits[f"{func.overloadpacket.__name__}: {reason}"] += 1
        return func(*args, **kwargs)

    def _reason(self, func: Any, tensors: Sequence[Tensor], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        name = func.overloadpacket.__name__
        if name in READING:
            return READING[name]
        if name in ("index", "index_put", "index_put_") and any(one is not None and one.dtype == torch.bool for one in args[1]):
            return READING["nonzero"]
        if name == "repeat_interleave" and kwargs.get("output_size") is None:
            return READING["nonzero"]
        if name in ("_to_copy", "copy_"):
            target = torch.device(kwargs.get("device") or args[0].device).type
            source = args[1 if name == "copy_" else 0].device.type
            return SENDING if source != target and not called_from(upload.__code__) else None
        return MIXED if any(one.device.type != self.kind and one.dim() for one in tensors) else None


def called_from(code: Any) -> bool:
    """Whether a function is among those that run now."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


@contextmanager
def sync_debug() -> Iterator[list[str]]:
    """Within this, torch reports what waits for a card; the list has the reports afterwards."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        before = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode(before)
            found += [str(one.message) for one in reported if "synchroniz" in str(one.message)]


def trainer_on(task: AlignmentTask, config: RunConfig, device: torch.device) -> training.Trainer:
    with patch.object(training, "choose_device", lambda wanted: device):
        return training.Trainer(task, config)


def step_waits(task: AlignmentTask, config: RunConfig, device: torch.device, steps: int) -> dict[str, Any]:
    """Operations and waits of a step, after one that sets everything up, and on a card its seconds.

    Raises:
        EngineError: settings that cannot be used.
    """
    trainer = trainer_on(task, config, device)
    size = trainer.batch_size
    trainer._train_step(trainer.pairs[:size])
    recorder = Recorder(device)
    with recorder:
        trainer._train_step(trainer.pairs[:size])
    waits, seconds = Counter(recorder.waits), None
    if device.type == "cuda":
        with sync_debug() as reports:
            trainer._train_step(trainer.pairs[:size])
        waits, seconds = Counter(reports), step_seconds(trainer, steps)
    return {
        "device": device.type,
        "operations_per_step": recorder.operations,
        "waits_per_step": waits.total(),
        "waits": dict(waits),
        "seconds": seconds,
        "precision": trainer.precision,
    }


def step_seconds(trainer: training.Trainer, steps: int) -> dict[str, float]:
    """Seconds until the program has begun a step, and until a step is done where one follows the other: the larger of what program and card need."""
    pairs, begun = trainer.pairs[: trainer.batch_size], []
    for _ in range(steps):
        synchronise(trainer.device)
        started = time.perf_counter()
        trainer._train_step(pairs)
        begun.append(time.perf_counter() - started)
    synchronise(trainer.device)
    started = time.perf_counter()
    for _ in range(steps):
        trainer._train_step(pairs)
    synchronise(trainer.device)
    return {"begun": statistics.median(begun), "done": (time.perf_counter() - started) / steps}


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.host_waits", description="For what a training step waits on a graphics card.")
    parser.add_argument("data", type=Path, help="a data folder")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: a rehearsal without a card, by shapes (default: cuda)")
    parser.add_argument("--steps", type=int, default=5, help="steps to time (default: 5)")
    add_study(parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print and write; returns the exit code."""
    parsed = build_parser().parse_args(arguments)

    def study(task: AlignmentTask, config: RunConfig) -> dict[str, Any]:
        waits = step_waits(task, config, choose_device("cuda") if parsed.device == "cuda" else META, max(parsed.steps, 1))
        return {**waits, "machine": describe_machine(torch.device(parsed.device)), "versions": versions(), "commit": git_commit()}

    found = found_by(study, parsed, "benchmarks.host_waits", arguments)
    if found is None:
        return FAILED
    times = found["seconds"]
    timed = "" if times is None else f" begun in {times['begun'] * 1e3:.1f} ms, done in {times['done'] * 1e3:.1f} ms,"
    print(f"{found['operations_per_step']} operations per step,{timed} waits per step: {found['waits_per_step']}.")
    for reason, number in found["waits"].items():
        print(f"- {number} x {reason}")
    keep_found(found, parsed.out)
    return WAITS if found["waits_per_step"] else 0


if __name__ == "__main__":
    sys.exit(main())
