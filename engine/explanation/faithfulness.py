"""Whether the evidence that was found is what the match rests on: by removing it, by keeping nothing else, and compared with random evidence.

A neighbour with all its triples is one piece of evidence (:class:`engine.explanation.removal.Item`); both entities' neighbours count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.knowledge_graph import Side
from engine.explanation.intervention import Experiment, Intervention
from engine.explanation.removal import Item, by_pairs, evidence_items, triples_of

LOW_AGREEMENT = 0.5
"""A rank correlation below it is worth a warning."""
MOST_COMPARED = 30
"""Neighbours that are removed one by one for the agreement."""
LEAST_COMPARED = 4
"""A rank correlation of fewer says nothing."""


@dataclass(frozen=True)
class FlippingSet:
    """A minimal set of evidence whose removal flips the decision; not always the smallest.

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
    """What became of the match, over one or several sets of evidence.

    Attributes:
        share: of the sets that did what the trial asks for: removed, they flip the decision (necessity); kept alone, they keep it (sufficiency).
        margin: mean margin over the best rival then.
    """

    share: float
    margin: float


@dataclass(frozen=True)
class RemovalAgreement:
    """Spearman's rank correlations with what removing neighbours one by one really does; None for fewer than four, or where all are equal.

    Attributes:
        carried: of what neighbours contribute with what the score loses.
        estimated: of the estimated cost with what the margin loses.
        compared: neighbours that were removed one by one, of ``total``.
    """

    carried: float | None
    estimated: float | None
    compared: int
    total: int

    @property
    def warning(self) -> str:
        """A sentence where contributions should not be read as effects of removal; else ""."""
        if self.carried is None or self.carried >= LOW_AGREEMENT:
            return ""
        return (
            f"Contributions and removal effects agree little here (rank correlation {self.carried:.2f}, n = {self.compared:,} neighbours). "
            "A contribution is a part of the score. A removal effect is the change of the score when the neighbour is removed."
        )


@dataclass(frozen=True)
class Faithfulness:
    """How well an explanation's evidence accounts for the match, compared with as many neighbours drawn at random, ``draws`` times.

    Attributes:
        needed: the neighbours whose removal should cost the most; ``necessity`` is what their removal does.
        enough: the strongest pairs of neighbours, as many; ``sufficiency`` is what they do alone.
        total: number of all neighbours of both entities.
        random_necessity, random_sufficiency: the same of the random ones.
    """

    needed: tuple[Item, ...]
    enough: tuple[Item, ...]
    total: int
    necessity: Trial
    sufficiency: Trial
    random_necessity: Trial
    random_sufficiency: Trial
    draws: int
    agreement: RemovalAgreement

    @property
    def sparsity(self) -> float:
        """The share of the evidence that the explanation does without."""
        return 1 - len(self.needed) / self.total if self.total else 0.0


def items_of(experiment: Experiment, side: Side = "source") -> list[Item]:
    """A pair's evidence, those first whose removal would cost the most of the lead over the best rival, as seen from the entity of one graph."""
    rival = experiment.before.rival(side)
    return evidence_items(experiment.explainer, experiment.source, experiment.target, rival.entity if rival else None)


def flipping_set(experiment: Experiment, side: Side = "source", limit: int = 10, width: int = 3, items: Sequence[Item] | None = None) -> FlippingSet:
    """Search a minimal set of neighbours whose removal flips the decision of one entity: none of it can be put back without undoing the flip.

    Greedy: of the ``width`` first that are still there, the one whose removal leaves the smallest margin goes, until the decision flips or ``limit``
    are gone; then every neighbour that is not needed for that comes back. A smaller set of other neighbours may exist.

    Args:
        experiment: the pair.
        side: whose decision; where the pair is not this entity's best match there is none to flip.
        limit: of the set's size; at most ``limit * (width + limit)`` removals are computed.
        width: alternatives looked at in each step.
        items: the evidence, the strongest first; default: :func:`items_of`.
    """
    gone: list[Item] = []
    evaluations, result = 0, experiment.without(())
    if experiment.before.rank(side) > 1:
        return FlippingSet((), False, result, evaluations, limit)
    left = items_of(experiment, side) if items is None else list(items)
    while left and len(gone) < limit and not result.flips(side):
        trials = [experiment.without(triples_of([*gone, item])) for item in left[:width]]
        evaluations += len(trials)
        chosen = min(range(len(trials)), key=lambda at: trials[at].after.margin(side))
        result = trials[chosen]
        gone.append(left.pop(chosen))
    if result.flips(side):
        gone, result, tried = pruned(experiment, gone, result, side)
        evaluations += tried
    return FlippingSet(tuple(gone), result.flips(side), result, evaluations, limit)


def pruned(experiment: Experiment, items: list[Item], result: Intervention, side: Side) -> tuple[list[Item], Intervention, int]:
    """A flipping set without what it does not need: no item of it can be put back. Also its result, and how many removals were computed."""
    tried, needed = 0, 0
    while needed < len(items):
        fewer = items[:needed] + items[needed + 1 :]
        trial = experiment.without(triples_of(fewer))
        tried += 1
        if trial.flips(side):
            items, result, needed = fewer, trial, 0
        else:
            needed += 1
    return items, result, tried


def faithfulness(experiment: Experiment, side: Side = "source", share: float = 0.2, draws: int = 10, seed: int = 0) -> Faithfulness:
    """Necessity, sufficiency and sparsity of the strongest evidence, beside random evidence, and how far parts and removals agree.

    Args:
        experiment: the pair.
        side: whose decision.
        share: of the neighbours of both entities that count as the evidence found, rounded up.
        draws: random sets of as many.
        seed: of the draws.
    """
    items = items_of(experiment, side)
    count, draw = math.ceil(share * len(items)), np.random.default_rng(seed)
    needed, enough = items[:count], by_pairs(experiment.explainer, experiment.source, experiment.target, items)[:count]
    random = [[items[at] for at in draw.choice(len(items), count, replace=False)] for _ in range(draws)] if items else [[]]
    return Faithfulness(
        needed=tuple(needed),
        enough=tuple(enough),
        total=len(items),
        necessity=without_sets(experiment, [needed], side),
        sufficiency=alone(experiment, items, [enough], side),
        random_necessity=without_sets(experiment, random, side),
        random_sufficiency=alone(experiment, items, random, side),
        draws=draws,
        agreement=removal_agreement(experiment, items, side),
    )


def without_sets(experiment: Experiment, sets: Sequence[Sequence[Item]], side: Side) -> Trial:
    """Remove each set."""
    best = experiment.before.rank(side) == 1
    after = [experiment.standing(triples_of(chosen)) for chosen in sets]
    return Trial(float(np.mean([(one.rank(side) == 1) != best for one in after])), float(np.mean([one.margin(side) for one in after])))


def alone(experiment: Experiment, items: Sequence[Item], sets: Sequence[Sequence[Item]], side: Side) -> Trial:
    """Remove everything but each set."""
    everything, best = triples_of(items), experiment.before.rank(side) == 1
    after = [experiment.standing(everything - triples_of(chosen)) for chosen in sets]
    return Trial(float(np.mean([(one.rank(side) == 1) == best for one in after])), float(np.mean([one.margin(side) for one in after])))


def removal_agreement(experiment: Experiment, items: Sequence[Item], side: Side = "source") -> RemovalAgreement:
    """Remove neighbours one at a time, and compare with what was said of them; of more than ``MOST_COMPARED`` evenly spaced ones."""
    places = np.unique(np.linspace(0, len(items) - 1, min(len(items), MOST_COMPARED)).round().astype(int)).tolist() if items else []
    chosen, before = [items[at] for at in places], experiment.before
    after = [experiment.standing(item.triples) for item in chosen]
    carried = rank_correlation([item.value for item in chosen], [before.csls - one.csls for one in after])
    estimated = rank_correlation([item.cost for item in chosen], [before.margin(side) - one.margin(side) for one in after])
    return RemovalAgreement(carried, estimated, len(chosen), len(items))


def rank_correlation(one: Sequence[float], two: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None for fewer than four values, or where one side is constant."""
    if len(one) < LEAST_COMPARED:
        return None
    from scipy.stats import rankdata  # slow to load, and the command line loads this module for every command

    ranks = rankdata(one), rankdata(two)
    if not ranks[0].std() or not ranks[1].std():
        return None
    return float(np.corrcoef(*ranks)[0, 1])
