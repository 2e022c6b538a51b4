"""Whether two devices agree: one training step from the same parameters, the loss curves and the metrics of two trainings.

    python -m benchmarks.agreement sample_data/europe [--device cuda] [--step-tolerance 0.001] [--tolerance 0.03]
                                   [--curve-tolerance 0.001] [--set section.option=value] [--out FILE]

A step is computed by the CPU's kernels and on the other device in float32 and with every candidate in the gradient; embeddings, loss and the gradient
of each parameter must be the same up to rounding, for dropout is the same everywhere. So must the losses of a training by these settings, epoch by
epoch. Then come the trainings that a user would start, whose metrics are compared. ``--device cpu`` compares the kernels with the operations that a
graphics card would run, on the CPU. Exit code 1: they do not agree.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.machine import describe_machine, timed
from benchmarks.phases import add_study, found_by, keep_found
from engine.config import RunConfig
from engine.data import AlignmentTask
from engine.errors import ConfigError
from engine.evaluation.metrics import evaluate_links
from engine.pipeline import git_commit, versions
from engine.training.device import choose_device
from engine.training.trainer import Trainer, split_embeddings
from engine.util.devices import without_kernels

DISAGREE, FAILED = 1, 2
CPU = "cpu"
EXACT = {"training.precision": "float32", "loss.tail_mass": 0.0}
METRICS = ("hits@1", "hits@10", "mrr")


def by_kernels(config: RunConfig) -> RunConfig:
    """On the CPU."""
    return config.with_values({"training.device": CPU})


def rehearsing(device: str) -> AbstractContextManager[None]:
    """What a training on the device that is compared runs in: in place of a card's, the CPU's operations without kernels."""
    return without_kernels() if device == CPU else nullcontext()


def step_values(task: AlignmentTask, config: RunConfig) -> dict[str, Tensor]:
    """Embeddings, loss and gradients of one step, in float64 on the CPU."""
    trainer = Trainer(task, config.with_values(EXACT))
    sample = trainer.sampling.draw(trainer.pairs[: trainer.batch_size], seed=0)
    embeddings = trainer.forward(sample, seed=0)
    value = trainer.compare(embeddings, sample, seed=0)
    value.backward()  # type: ignore[no-untyped-call]
    found = {"embeddings": embeddings, "loss": value}
    found |= {f"gradient of {name}": parameter.grad for name, parameter in trainer.model.named_parameters() if parameter.grad is not None}
    return {name: tensor.detach().cpu().double() for name, tensor in found.items()}


def differences(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> dict[str, float]:
    """Length of the difference, relative to that of the first, by name."""
    return {name: float((other[name] - tensor).norm() / tensor.norm().clamp_min(1e-12)) for name, tensor in one.items()}


def losses(task: AlignmentTask, config: RunConfig) -> Tensor:
    """(epochs,) of a training in which everything counts."""
    trained = Trainer(task, config.with_values(EXACT)).train()
    return torch.tensor([line["loss"] for line in trained.trace if "loss" in line], dtype=torch.float64)


def trained(task: AlignmentTask, config: RunConfig) -> dict[str, Any]:
    """Seconds of a training and its metrics, mean of both directions."""
    trainer = Trainer(task, config)
    _, seconds = timed(trainer.device, trainer.train)
    source, target = split_embeddings(trainer.embed(), task.source.num_entities)
    found = evaluate_links(source, target, task.test_links, config.search.csls_k, bootstrap=0).to_dict()
    both = found["source_to_target"], found["target_to_source"]
    return {"seconds": seconds, "precision": trainer.precision, **{name: sum(one[name] for one in both) / 2 for name in METRICS}}


@dataclass(frozen=True)
class Tolerances:
    """How far apart two devices may be: relative differences of one step's results and of an epoch's loss, and differences of metrics."""

    step: float
    curve: float
    metrics: float


def agreement(task: AlignmentTask, config: RunConfig, device: str, tolerances: Tolerances) -> dict[str, Any]:
    """All comparisons in plain values; ``agrees`` is their verdict.

    Raises:
        ConfigError: no test links to have metrics of, or no such device.
    """
    if not len(task.test_links):
        raise ConfigError(f"{task.name} has no test links to compare metrics on; give data with some.")
    choose_device(device)
    here, there = by_kernels(config), config.with_values({"training.device": device})
    values, curve, runs = step_values(task, here), losses(task, here), {"cpu": trained(task, here)}
    with rehearsing(device):
        step, runs["device"] = differences(values, step_values(task, there)), trained(task, there)
        curve_apart = ((losses(task, there) - curve) / curve).abs().max().item()
    apart = {name: abs(runs["cpu"][name] - runs["device"][name]) for name in METRICS}
    close = (
        *(one <= tolerances.step for one in step.values()),
        curve_apart <= tolerances.curve,
        *(one <= tolerances.metrics for one in apart.values()),
    )
    return {
        "device": device,
        "step": step,
        "curve": curve.tolist(),
        "curve_apart": curve_apart,
        "trained": runs,
        "metrics_apart": apart,
        "tolerances": vars(tolerances),
        "agrees": all(close),  # not "any is larger": what is not a number agrees with nothing
        "machine": describe_machine(torch.device(device)),
        "versions": versions(),
        "commit": git_commit(),
    }


def verdict(found: Mapping[str, Any]) -> str:
    worst = max(found["step"], key=found["step"].get)
    where = f"{CPU} without kernels" if found["device"] == CPU else found["device"]
    lines = [f"One step on CPU and {where}: largest relative difference {found['step'][worst]:.2e} ({worst})."]
    lines.append(f"Loss of {len(found['curve'])} epochs: largest relative difference {found['curve_apart']:.2e}.")
    for name in METRICS:
        one, other = (found["trained"][place][name] for place in ("cpu", "device"))
        lines.append(f"Trained: {name} {one:.4f} on the CPU, {other:.4f} on {where}.")
    seconds = [found["trained"][place]["seconds"] for place in ("cpu", "device")]
    return "\n".join([*lines, "Seconds: {:.1f} and {:.1f}.".format(*seconds), "They agree." if found["agrees"] else "THEY DO NOT AGREE."])


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description="Whether two devices compute the same.")
    parser.add_argument("data", type=Path, help="a small data folder")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="what the CPU's kernels are compared with (default: cuda)")
    parser.add_argument("--step-tolerance", type=float, default=1e-3, help="relative difference of one step's results (default: 0.001)")
    parser.add_argument("--curve-tolerance", type=float, default=1e-3, help="relative difference of an epoch's loss (default: 0.001)")
    parser.add_argument("--tolerance", type=float, default=0.03, help="difference of metrics (default: 0.03)")
    add_study(parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print and write; returns the exit code."""
    parsed = build_parser().parse_args(arguments)
    tolerances = Tolerances(parsed.step_tolerance, parsed.curve_tolerance, parsed.tolerance)
    found = found_by(lambda task, config: agreement(task, config, parsed.device, tolerances), parsed, "benchmarks.agreement", arguments)
    if found is None:
        return FAILED
    print(verdict(found))
    keep_found(found, parsed.out)
    return 0 if found["agrees"] else DISAGREE


if __name__ == "__main__":
    sys.exit(main())
