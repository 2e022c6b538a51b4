"""Whether two devices agree: one training step from the same parameters, and the metrics of two trainings.

    python -m benchmarks.agreement sample_data/europe [--device cuda] [--step-tolerance 0.001] [--tolerance 0.03]
                                   [--set section.option=value] [--out FILE]

The step is computed on the CPU and on the other device in float32, without dropout (each device draws its own) and with every candidate in the
gradient; embeddings, loss and the gradient of each parameter must be the same up to rounding. The trainings are those a user would start, so their
metrics differ by the luck of dropout as well. Exit code 1: they do not agree.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.machine import describe_machine, timed
from benchmarks.phases import check_place, this_command
from benchmarks.tables import write
from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.errors import ConfigError, EngineError
from engine.evaluation.metrics import evaluate_links
from engine.pipeline import git_commit, versions
from engine.training.device import choose_device
from engine.training.trainer import Trainer, split_embeddings

DISAGREE, FAILED = 1, 2
CPU = "cpu"
STEP_SETTINGS = {"training.precision": "float32", "loss.tail_mass": 0.0, "encoder.dropout": 0.0}
METRICS = ("hits@1", "hits@10", "mrr")


def step_values(task: AlignmentTask, config: RunConfig, device: str) -> dict[str, Tensor]:
    """Embeddings, loss and gradients of one step on a device, in float64 on the CPU."""
    trainer = Trainer(task, config.with_values({**STEP_SETTINGS, "training.device": device}))
    sample = trainer.sampling.draw(trainer.pairs[: config.training.batch_size], seed=0)
    embeddings = trainer.forward(sample, seed=0)
    value = trainer.compare(embeddings, sample, seed=0)
    value.backward()  # type: ignore[no-untyped-call]
    found = {"embeddings": embeddings, "loss": value}
    found |= {f"gradient of {name}": parameter.grad for name, parameter in trainer.model.named_parameters() if parameter.grad is not None}
    return {name: tensor.detach().cpu().double() for name, tensor in found.items()}


def differences(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> dict[str, float]:
    """Length of the difference, relative to that of the first, by name."""
    return {name: float((other[name] - tensor).norm() / tensor.norm().clamp_min(1e-12)) for name, tensor in one.items()}


def trained(task: AlignmentTask, config: RunConfig, device: str) -> dict[str, Any]:
    """Seconds of a training and its metrics, mean of both directions."""
    trainer = Trainer(task, config.with_values({"training.device": device}))
    _, seconds = timed(trainer.device, trainer.train)
    source, target = split_embeddings(trainer.embed(), task.source.num_entities)
    found = evaluate_links(source, target, task.test_links, config.search.csls_k, bootstrap=0).to_dict()
    both = found["source_to_target"], found["target_to_source"]
    return {"seconds": seconds, "precision": trainer.precision, **{name: sum(one[name] for one in both) / 2 for name in METRICS}}


def agreement(task: AlignmentTask, config: RunConfig, device: str, step_tolerance: float, tolerance: float) -> dict[str, Any]:
    """Both comparisons in plain values; ``agrees`` is their verdict.

    Raises:
        ConfigError: no test links to have metrics of, or no such device.
    """
    if not len(task.test_links):
        raise ConfigError(f"{task.name} has no test links to compare metrics on; give data with some.")
    choose_device(device)
    step = differences(*(step_values(task, config, one) for one in (CPU, device)))
    runs = {"cpu": trained(task, config, CPU), "device": trained(task, config, device)}
    apart = {name: abs(runs["cpu"][name] - runs["device"][name]) for name in METRICS}
    return {
        "device": device,
        "step": step,
        "step_tolerance": step_tolerance,
        "trained": runs,
        "metrics_apart": apart,
        "tolerance": tolerance,
        # not "any is larger": what is not a number agrees with nothing
        "agrees": all(one <= step_tolerance for one in step.values()) and all(one <= tolerance for one in apart.values()),
        "machine": describe_machine(torch.device(device)),
        "versions": versions(),
        "commit": git_commit(),
    }


def verdict(found: Mapping[str, Any]) -> str:
    worst = max(found["step"], key=found["step"].get)
    lines = [f"One step on CPU and {found['device']}: largest relative difference {found['step'][worst]:.2e} ({worst})."]
    for name in METRICS:
        one, other = (found["trained"][where][name] for where in ("cpu", "device"))
        lines.append(f"Trained: {name} {one:.4f} on the CPU, {other:.4f} on {found['device']}.")
    seconds = [found["trained"][where]["seconds"] for where in ("cpu", "device")]
    return "\n".join([*lines, "Seconds: {:.1f} and {:.1f}.".format(*seconds), "They agree." if found["agrees"] else "THEY DO NOT AGREE."])


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description="Whether two devices compute the same.")
    parser.add_argument("data", type=Path, help="a small data folder")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="what the CPU is compared with (default: cuda)")
    parser.add_argument("--step-tolerance", type=float, default=1e-3, help="relative difference of one step's results (default: 0.001)")
    parser.add_argument("--tolerance", type=float, default=0.03, help="difference of metrics (default: 0.03)")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.OPTION=VALUE", help="a setting of the engine")
    parser.add_argument("--out", type=Path, help="write what was found here, as JSON")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print and write; returns the exit code."""
    parsed = build_parser().parse_args(arguments)
    try:
        check_place(parsed.out)
        config = RunConfig().with_assignments(parsed.set)
        task = load_task(parsed.data, config.data, config.seed)
        found = agreement(task, config, parsed.device, parsed.step_tolerance, parsed.tolerance)
    except EngineError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    found["command"] = this_command("benchmarks.agreement", arguments)
    print(verdict(found))
    if parsed.out is not None:
        write(parsed.out, json.dumps(found, indent=1, sort_keys=True))
    return 0 if found["agrees"] else DISAGREE


if __name__ == "__main__":
    sys.exit(main())
