"""Accuracy over data sets, variants and seeds, beside the paper's figures.

    python -m benchmarks.reproduce DATA [DATA ...] [--variants basic] [--seeds 0 1 2] [--set section.option=value] [--models DIR] [--out FILE]

Each run is a process of its own (``python -m engine train``), so that its memory is its own. Runs that are finished are not trained again: what
was interrupted goes on where it was. The table is printed and, with ``--out``, written after each run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.paper import PaperFigure, paper_figure
from engine.run_store import RunStore

METRICS = ("hits@1", "hits@10", "mrr")
DIRECTION = "target_to_source"  # the published one


@dataclass(frozen=True)
class Result:
    """One run's last line of output."""

    data: Path
    variant: str
    seed: int
    run: dict[str, Any]
    paper: PaperFigure | None

    def metric(self, name: str, direction: str = DIRECTION) -> float:
        value: float = self.run["metrics"][direction][name]
        return value


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)
    results: list[Result] = []
    wanted = [(data, variant, seed) for data in parsed.data for variant in parsed.variants for seed in parsed.seeds]
    for number, (data, variant, seed) in enumerate(wanted, start=1):
        print(f"[{number}/{len(wanted)}] {data.name} {variant} seed {seed} {' '.join(parsed.set)}", file=sys.stderr, flush=True)
        run = train(data, variant, seed, parsed.set, parsed.models)
        results.append(Result(data, variant, seed, run, published(parsed.models, run["run"], variant)))
        if parsed.out is not None:
            write(parsed.out, table(results))
    print(table(results))
    return 0


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduce", description="Accuracy beside the paper's figures.")
    parser.add_argument("data", nargs="+", type=Path, help="data folders")
    parser.add_argument("--variants", nargs="+", default=["basic"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.OPTION=VALUE", help="passed on to every run")
    parser.add_argument("--models", type=Path, default=Path("models"), help="where runs are kept")
    parser.add_argument("--out", type=Path, help="also write the table here")
    return parser


def train(data: Path, variant: str, seed: int, settings: Sequence[str], models: Path) -> dict[str, Any]:
    """The JSON that the command line ends with; its progress goes to our standard error."""
    words = [sys.executable, "-m", "engine", "train", str(data), "--variant", variant, "--seed", str(seed), "--models", str(models), "--json"]
    for setting in settings:
        words += ["--set", setting]
    finished = subprocess.run(words, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)
    if finished.returncode:
        sys.exit(finished.returncode)
    last: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return last


def published(models: Path, run_id: str, variant: str) -> PaperFigure | None:
    """The paper's figure for the data that a run was trained on; None where it has none."""
    data = RunStore(models).find(run_id).manifest["data"]
    source, target = ((data[side]["entities"], data[side]["triples"]) for side in ("source", "target"))
    return paper_figure(source, target, variant)


def table(results: Sequence[Result]) -> str:
    """Markdown: a line per data set and variant with mean and standard deviation over the seeds, the paper's figure and the difference."""
    lines = [
        "| data | variant | seeds | Hits@1 | Hits@10 | MRR | source to target Hits@1 | paper | difference | seconds | peak MiB |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[Path, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.data, result.variant), []).append(result)
    lines += [line(data, variant, group) for (data, variant), group in groups.items()]
    return "\n".join(lines)


def line(data: Path, variant: str, group: Sequence[Result]) -> str:
    ours = [spread([one.metric(name) for one in group]) for name in METRICS]
    other = spread([one.metric("hits@1", "source_to_target") for one in group])
    figure, paper, difference = group[0].paper, "-", "-"
    if figure is not None:
        paper = f"{figure.hits_at_1:.3f} {figure.hits_at_10:.3f} {figure.mrr:.3f}"
        difference = f"{statistics.mean(one.metric('hits@1') for one in group) - figure.hits_at_1:+.3f}"
    seconds = statistics.median(one.run["seconds"] for one in group)
    memory = max(one.run["peak_rss_mb"] or 0 for one in group)
    seeds = " ".join(str(one.seed) for one in group)
    return "| " + " | ".join([data.name, variant, seeds, *ours, other, paper, difference, f"{seconds:.0f}", f"{memory:.0f}"]) + " |"


def spread(values: Sequence[float]) -> str:
    deviation = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{deviation}"


def write(path: Path, text: str) -> None:
    """Beside its place, then into it."""
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(text + "\n", encoding="utf-8")
    os.replace(beside, path)


if __name__ == "__main__":
    sys.exit(main())
