"""Do explanations name what a match rests on? Remove it, keep nothing else, and compare with other ways to rank the same evidence.

    python -m benchmarks.fidelity RUN [--models DIR] [--pairs 300] [--share 0.2] [--seed 0] [--out FILE]

Of the test links whose source is matched right (first of the test pool by CSLS), ``--pairs`` are drawn. A neighbour of either entity, with all
triples between the two, is a piece of evidence. Each method ranks a pair's evidence; the first ``--share`` of it, rounded up, is removed (the match
should fall) and, apart from that, kept alone (the match should stay). Weights are frozen, all other entities stay as they are (docs/explanation.md).

Methods: the estimated cost of removal and the strongest pairs of neighbours, which explanations name as needed and as enough; what a neighbour
carries; the cost of its removal alone, computed; attention weights alone; neighbours that the run aligns with each other, the most similar first and
the others at random behind them (the idea of ExEA, rebuilt here); at random.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.tables import print_report
from engine.evaluation.metrics import wilson_interval
from engine.explanation import Experiment, Explainer, Item, triples_of
from engine.explanation.evidence import aligned_with
from engine.explanation.faithfulness import items_of, rank_correlation
from engine.explanation.removal import by_pairs
from engine.runs import RunStore
from engine.runs.view import RunView

DRAWS = 5
"""Random sets a pair."""
RESAMPLES = 2000
ALIGNED = ("seed", "added", "predicted")


@dataclass(frozen=True)
class Outcome:
    """What one set of evidence did to one pair.

    Attributes:
        flipped: without it the right match is not the best any more, so its rank drops.
        fall: by how much the margin over the best rival fell.
        kept: with nothing else, the right match is still the best.
        kept_margin: the margin then.
    """

    flipped: float
    fall: float
    kept: float
    kept_margin: float


@dataclass(frozen=True)
class Case:
    """A pair and its evidence."""

    experiment: Experiment
    items: Sequence[Item]
    costs: Sequence[float]
    draw: np.random.Generator


Ranking = Callable[[Case], Sequence[Item]]


def by_estimate(case: Case) -> Sequence[Item]:
    return case.items  # they come in this order


def by_pair(case: Case) -> Sequence[Item]:
    return by_pairs(case.experiment.explainer, case.experiment.source, case.experiment.target, case.items)


def by_value(case: Case) -> Sequence[Item]:
    return sorted(case.items, key=lambda item: -item.value)


def by_cost(case: Case) -> Sequence[Item]:
    return [case.items[at] for at in np.argsort(-np.array(case.costs), kind="stable")]


def by_attention(case: Case) -> Sequence[Item]:
    return sorted(case.items, key=lambda item: -item.attention)


def at_random(case: Case) -> Sequence[Item]:
    return [case.items[at] for at in case.draw.permutation(len(case.items))]


def by_alignment(case: Case) -> Sequence[Item]:
    """Neighbours with a counterpart among the other entity's neighbours, by the cosine of the two."""
    view = case.experiment.explainer.view
    sides = [[item for item in case.items if item.side == side] for side in ("source", "target")]
    pairs = [(one, two) for one in sides[0] for two in sides[1] if aligned_with(view, one.neighbour.index, two.neighbour.index) in ALIGNED]
    ends = [torch.tensor([pair[at].neighbour.index for pair in pairs], dtype=torch.int64) for at in (0, 1)]
    cosines = view.similarity.pairs(*ends).numpy() if pairs else np.empty(0)
    ordered = [item for at in np.argsort(-cosines, kind="stable") for item in pairs[at]]
    return list(dict.fromkeys([*ordered, *at_random(case)]))


METHODS: Mapping[str, Ranking] = {
    "estimated cost": by_estimate,
    "strongest pairs": by_pair,
    "what it carries": by_value,
    "removal one by one": by_cost,
    "attention alone": by_attention,
    "aligned neighbours": by_alignment,
    "random": at_random,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)
    return print_report(lambda: study(parsed), parsed.out)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description="Do explanations name what a match rests on?")
    parser.add_argument("run", help="a finished run's id")
    parser.add_argument("--models", type=Path, default=Path("models"), help="where runs are kept")
    parser.add_argument("--pairs", type=int, default=300, help="correctly matched test pairs to draw")
    parser.add_argument("--share", type=float, default=0.2, help="of the evidence to remove, or to keep")
    parser.add_argument("--seed", type=int, default=0, help="of all draws")
    parser.add_argument("--out", type=Path, help="also write the table here")
    return parser


def study(parsed: argparse.Namespace) -> str:
    """The whole study of one run, as Markdown."""
    started = time.monotonic()
    run = RunStore(parsed.models).find(parsed.run)
    explainer = Explainer(RunView(run))
    draw = np.random.default_rng(parsed.seed)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in METHODS}
    agreements: dict[str, list[float]] = {"what it carries": [], "estimated cost": []}
    for experiment in drawn_pairs(explainer, parsed.pairs, draw):
        case = case_of(experiment, draw)
        for name, ranking in METHODS.items():
            outcomes[name].append(average([outcome(case, ranking(case), parsed.share) for _ in range(DRAWS if name == "random" else 1)]))
        for name, values in (("what it carries", [item.value for item in case.items]), ("estimated cost", [item.cost for item in case.items])):
            if (correlation := rank_correlation(values, case.costs)) is not None:
                agreements[name].append(correlation)
    counted = len(outcomes["random"])
    heading = f"{run.id}: {counted} test pairs matched right from the source (test pool), {parsed.share:.0%} of the evidence, seed {parsed.seed}"
    rows = "\n".join(table_rows(outcomes, parsed.seed)) if counted else "no test pair is matched right and has neighbours."
    return f"{heading}\n\n{rows}\n\n{agreement_lines(agreements)}\n\n{time.monotonic() - started:.0f} s."


def drawn_pairs(explainer: Explainer, count: int, draw: np.random.Generator) -> list[Experiment]:
    """At most ``count`` test links whose source has the right match, and of which either entity has a neighbour."""
    links = explainer.view.run.table("links")
    test = links.loc[links["role"] == "test", ["source", "target"]].to_numpy(dtype="int64")
    found: list[Experiment] = []
    for source, target in test[draw.permutation(len(test))].tolist():
        if len(found) == count:
            break
        if explainer.view.graphs["source"].degrees[source] or explainer.view.graphs["target"].degrees[target]:
            experiment = Experiment(explainer, source, target, "test")
            if experiment.before.rank("source") == 1:
                found.append(experiment)
    return found


def case_of(experiment: Experiment, draw: np.random.Generator) -> Case:
    items = items_of(experiment)
    costs = [experiment.before.margin() - experiment.standing(item.triples).margin() for item in items]
    return Case(experiment, items, costs, draw)


def outcome(case: Case, ranked: Sequence[Item], share: float) -> Outcome:
    """Remove the first of the ranked evidence, and keep it alone."""
    chosen, everything = triples_of(ranked[: math.ceil(share * len(ranked))]), triples_of(case.items)
    before = case.experiment.before
    without, alone = (case.experiment.standing(gone) for gone in (chosen, everything - chosen))
    return Outcome(
        flipped=float(without.rank("source") > 1),
        fall=before.margin() - without.margin(),
        kept=float(alone.rank("source") == 1),
        kept_margin=alone.margin(),
    )


def average(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(*np.mean([list(vars(one).values()) for one in outcomes], axis=0).tolist())


def table_rows(outcomes: Mapping[str, Sequence[Outcome]], seed: int) -> list[str]:
    """A Markdown table: shares with 95 % score intervals, means and differences to random with bootstrap intervals over pairs."""
    values = {name: np.array([list(vars(one).values()) for one in found]) for name, found in outcomes.items()}
    rows = [
        "| evidence ranked by | removed: flips | minus random | margin falls by | kept alone: match stays | minus random | margin then |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, table in values.items():
        flips, keeps = (share_text(table[:, column]) for column in (0, 2))
        lead = [difference_text(table[:, column] - values["random"][:, column], seed) for column in (0, 2)]
        rows.append(f"| {name} | {flips} | {lead[0]} | {table[:, 1].mean():.3f} | {keeps} | {lead[1]} | {table[:, 3].mean():.3f} |")
    return rows


def share_text(values: npt.NDArray[np.float64]) -> str:
    low, high = wilson_interval(np.array([values.mean()]), np.array([len(values)]))
    return f"{values.mean():.1%} ({low[0]:.1%} to {high[0]:.1%})"


def difference_text(values: npt.NDArray[np.float64], seed: int) -> str:
    """A mean difference over pairs with its 95 % bootstrap interval."""
    draw = np.random.default_rng(seed)
    means = values[draw.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{values.mean():+.1%} ({low:+.1%} to {high:+.1%})"


def agreement_lines(found: Mapping[str, Sequence[float]]) -> str:
    """How far what is said of single neighbours agrees with what their removal costs the margin."""
    lines = []
    for name, values in found.items():
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75]) if values else (np.nan,) * 3
        quartiles = f"median {median:.2f}, quartiles {low:.2f} and {high:.2f}"
        lines.append(f"- {name} and cost of removal, computed: rank correlation over {len(values)} pairs: {quartiles}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
