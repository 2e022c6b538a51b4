"""Whether the evidence that was found is what the match rests on: by removing it, by keeping nothing else, and beside random evidence of equal size.

A neighbour with all its triples is one piece of evidence (:class:`engine.explanation.removal.Item`); both entities' neighbours count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from engine.datasets.knowledge_graph import Side
from engine.explanation.intervention import Experiment, Intervention
from engine.explanation.removal import Item, evidence_items, triples_of

LOW_AGREEMENT = 0.5
"""A rank correlation below it is worth a warning."""
MOST_COMPARED = 30
"""Neighbours that are removed one by one for the agreement."""
LEAST_COMPARED = 4
"""A rank correlation of fewer says nothing."""


@dataclass(frozen=True)
class FlippingSet:
    """A small set of evidence whose removal flips the decision.

    Attributes:
        items: the set; where none was found, what was removed on the way.
        flips: whether their removal flips the decision.
        result: without them.
        evaluations: how many removals were computed.
        limit: how many items the search was allowed.
    """

    items: tuple[Item, ...]
    flips: bool
    result: Intervention
    evaluations: int
    limit: int


@dataclass(frozen=True)
class Trial:
    """What became of the match, over one set of evidence or several random ones.

    Attributes:
        removed_flips: share of the sets whose removal flips the decision (necessity).
        removed_margin: mean margin over the best rival when the set is removed.
        kept_keeps: share of the sets that keep the decision when nothing else is left (sufficiency).
        kept_margin: mean margin when nothing else is left.
    """

    removed_flips: float
    removed_margin: float
    kept_keeps: float
    kept_margin: float


@dataclass(frozen=True)
class Agreement:
    """Spearman's rank correlation of what neighbours carry and what their removal costs.

    Attributes:
        correlation: None for fewer than four neighbours, or where all are equal.
        compared: neighbours that were removed one by one; ``total`` there are.
    """

    correlation: float | None
    compared: int
    total: int

    @property
    def warning(self) -> str:
        """A sentence where the decomposition should not be read as what removal would do; else ""."""
        if self.correlation is None or self.correlation >= LOW_AGREEMENT:
            return ""
        return (
            f"What a neighbour carries and what its removal costs agree little here (rank correlation {self.correlation:.2f} "
            f"over {self.compared} neighbours): rely on removal for what would be without a neighbour."
        )


@dataclass(frozen=True)
class Faithfulness:
    """How well the strongest evidence stands for the match.

    Attributes:
        evidence: the items that were tried together, ``share`` of all.
        total: number of all items.
        found: with these; random: with as many drawn at random, ``draws`` times.
    """

    evidence: tuple[Item, ...]
    total: int
    share: float
    found: Trial
    random: Trial
    draws: int
    agreement: Agreement

    @property
    def sparsity(self) -> float:
        """The share of the evidence that the explanation does without."""
        return 1 - len(self.evidence) / self.total if self.total else 0.0


def flipping_set(experiment: Experiment, side: Side = "source", limit: int = 10, width: int = 3, items: Sequence[Item] | None = None) -> FlippingSet:
    """Search a smallest set of neighbours whose removal flips the decision of one entity.

    Greedy: of the ``width`` neighbours that carry the most and are still there, the one whose removal leaves the smallest margin goes, until the
    decision flips or ``limit`` are gone; then every neighbour that is not needed for that comes back. The result need not be the smallest there is.

    Args:
        experiment: the pair.
        side: whose decision.
        limit: of the set's size; at most ``limit * (width + 1)`` removals are computed.
        width: alternatives looked at in each step.
        items: the evidence, the most telling first; default: all neighbours by what they carry.
    """
    if items is None:
        items = evidence_items(experiment.explainer, experiment.source, experiment.target)
    left, gone, evaluations = list(items), [], 0
    best_before = experiment.before.rank(side) == 1
    result = experiment.without(())
    while left and len(gone) < limit and best_before and not result.flips(side):
        trials = [experiment.without(triples_of([*gone, item])) for item in left[:width]]
        evaluations += len(trials)
        chosen = min(range(len(trials)), key=lambda at: trials[at].after.margin(side))
        result = trials[chosen]
        gone.append(left.pop(chosen))
    if result.flips(side):
        for item in gone[:-1]:
            fewer = [one for one in gone if one is not item]
            trial = experiment.without(triples_of(fewer))
            evaluations += 1
            if trial.flips(side):
                gone, result = fewer, trial
    return FlippingSet(tuple(gone), result.flips(side), result, evaluations, limit)


def faithfulness(experiment: Experiment, side: Side = "source", share: float = 0.2, draws: int = 10, seed: int = 0) -> Faithfulness:
    """Necessity, sufficiency and sparsity of the strongest evidence, beside random evidence, and how far parts and removals agree.

    Args:
        experiment: the pair.
        side: whose decision.
        share: of the neighbours of both entities that count as the evidence found, rounded up.
        draws: random sets of as many.
        seed: of the draws.
    """
    items = evidence_items(experiment.explainer, experiment.source, experiment.target)
    count = math.ceil(share * len(items))
    draw = np.random.default_rng(seed)
    random = [[items[at] for at in draw.choice(len(items), count, replace=False)] for _ in range(draws)] if items else [[]]
    return Faithfulness(
        evidence=tuple(items[:count]),
        total=len(items),
        share=share,
        found=trial(experiment, items, [items[:count]], side),
        random=trial(experiment, items, random, side),
        draws=draws,
        agreement=agreement(experiment, items),
    )


def trial(experiment: Experiment, items: Sequence[Item], sets: Sequence[Sequence[Item]], side: Side) -> Trial:
    """Remove each set, and keep nothing else than it."""
    everything, best = triples_of(items), experiment.before.rank(side) == 1
    removed = [experiment.standing(triples_of(chosen)) for chosen in sets]
    kept = [experiment.standing(everything - triples_of(chosen)) for chosen in sets]
    return Trial(
        removed_flips=float(np.mean([(one.rank(side) == 1) != best for one in removed])),
        removed_margin=float(np.mean([one.margin(side) for one in removed])),
        kept_keeps=float(np.mean([(one.rank(side) == 1) == best for one in kept])),
        kept_margin=float(np.mean([one.margin(side) for one in kept])),
    )


def agreement(experiment: Experiment, items: Sequence[Item]) -> Agreement:
    """Compare what neighbours carry with what their removal, one at a time, costs the CSLS score.

    Of more than ``MOST_COMPARED``, evenly spaced ones from the largest to the smallest value are removed.
    """
    places = np.unique(np.linspace(0, len(items) - 1, min(len(items), MOST_COMPARED)).round().astype(int)) if items else []
    chosen = [items[at] for at in places]
    costs = [experiment.before.csls - experiment.standing(item.triples).csls for item in chosen]
    return Agreement(rank_correlation([item.value for item in chosen], costs), len(chosen), len(items))


def rank_correlation(one: Sequence[float], two: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None for fewer than four values, or where one side is constant."""
    ranks = rankdata(one), rankdata(two)
    if len(one) < LEAST_COMPARED or not ranks[0].std() or not ranks[1].std():
        return None
    return float(np.corrcoef(*ranks)[0, 1])
