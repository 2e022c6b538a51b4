"""Every decoder's figures, as each run stores them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.plan import Plan, Report
from benchmarks.runs import DIRECTION, METRICS, Experiment, Result
from benchmarks.tables import NOTHING, by_group, markdown, seeds, spread

DIRECTIONS = (DIRECTION, "source_to_target")
HEADER = (
    *("data", "variant", "decoder", "seeds", "Hits@1", "Hits@10", "MRR"),
    *("source to target Hits@1", "Hits@10", "MRR", "precision"),
)
NOTE = "precision: share of the predicted pairs that are right, where a decoder abstains from some (published direction)."


def experiments(plan: Plan) -> list[Experiment]:
    return plan.experiments({"": ()})


def table(results: Sequence[Result]) -> str:
    """A line per data set, variant and decoder, the best decoder last."""
    rows = [line for group in by_group(results).values() for line in lines(group)]
    return f"{markdown(HEADER, rows)}\n\n{NOTE}"


def lines(group: Sequence[Result]) -> list[list[str]]:
    stored: list[dict[str, Any]] = [result.run.json("decoders") for result in group]
    names = sorted(set.intersection(*map(set, stored)), key=lambda name: statistics.mean(one[name][DIRECTION]["hits@1"] for one in stored))
    data, variant, _ = group[0].group
    return [[data, variant, name, seeds(group), *figures([one[name] for one in stored])] for name in names]


def figures(evaluations: Sequence[dict[str, Any]]) -> list[str]:
    """Of one decoder over the seeds."""
    cells = [spread([one[direction][metric] for one in evaluations]) for direction in DIRECTIONS for metric in METRICS]
    precision = [one[DIRECTION]["precision"] for one in evaluations]
    abstains = any(one[DIRECTION]["recall"] != found for one, found in zip(evaluations, precision, strict=True))
    return [*cells, spread(precision) if abstains and None not in precision else NOTHING]


REPORT = Report("every stored decoder's figures", experiments, table)
