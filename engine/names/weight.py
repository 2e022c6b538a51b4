"""How much names should count beside structure, chosen on validation links; never on test links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from engine.data.knowledge_graph import empty_links
from engine.errors import ConfigError
from engine.evaluation.metrics import evaluate_links
from engine.search import NameSimilarity, StructuralSimilarity, StructureAndNames
from engine.util.arrays import IntArray

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
PAPER_WEIGHT = 1.0
LARGEST_POOL = 5000
"""Candidates a side that a weight is tried on."""


@dataclass(frozen=True)
class WeightChoice:
    """The weight with the best validation MRR.

    Attributes:
        weight: the chosen one.
        mrr: mean of both directions' MRR by weight that was tried.
        links: validation links that it was chosen on.
    """

    weight: float
    mrr: Mapping[float, float]
    links: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a manifest."""
        return {"weight": self.weight, "links": self.links, "mrr": {f"{weight:g}": value for weight, value in self.mrr.items()}}


def choose_weight(
    structure: StructuralSimilarity,
    names: NameSimilarity,
    valid_links: IntArray,
    weights: Sequence[float] = WEIGHTS,
    k: int = 10,
    *,
    train_links: IntArray | None = None,
    seed: int = 0,
) -> WeightChoice:
    """Try weights on the validation links. Of equals the one nearest to the paper's 1 is taken.

    Validation links are few, and among few candidates names look better than they will among all: so entities of no known link, drawn with the seed,
    join the pool up to ``LARGEST_POOL`` a side. Which of them belong together is not looked at.

    Args:
        structure: (E1, E2) s. It must come from training that has not seen these links, or names will look worth less than they are.
        names: (E1, E2) l.
        valid_links: (L, 2).
        weights: candidates for w in s + w l.
        k: neighbours in CSLS's hubness terms.
        train_links: (T, 2) links that ``structure`` was trained on; their entities stay out of the pool, for they are too well known.
        seed: draws the pool.

    Raises:
        ConfigError: no validation links, or no weights.
    """
    require_valid_links(valid_links)
    if not len(weights):
        raise ConfigError("there are no weights to choose from; give some, for example 0.5, 1 and 2.")
    pools = [
        pool_with_rivals(valid_links[:, side], empty_links()[:, 0] if train_links is None else train_links[:, side], size, seed)
        for side, size in enumerate(structure.shape)
    ]
    pooled = StructureAndNames(structure, names).select(*(torch.from_numpy(pool) for pool in pools))
    links = np.stack([np.searchsorted(pool, valid_links[:, side]) for side, pool in enumerate(pools)], axis=1)
    mrr = {float(weight): mean_mrr(pooled.with_weight(weight), links, k) for weight in weights}
    best = max(mrr, key=lambda weight: (mrr[weight], -abs(weight - PAPER_WEIGHT)))
    return WeightChoice(best, mrr, len(valid_links))


def require_valid_links(valid_links: IntArray) -> None:
    """
    Raises:
        ConfigError: there are none to choose a weight on.
    """
    if not len(valid_links):
        raise ConfigError(
            "there are no validation links, so no weight of the names can be chosen; hold some out (data.valid_ratio=0.1), or set a weight "
            f"yourself (literal.weight; the paper's is {PAPER_WEIGHT:g})."
        )


def pool_with_rivals(linked: IntArray, trained: IntArray, size: int, seed: int) -> IntArray:
    """The linked entities of one graph and up to ``LARGEST_POOL`` in all of those that were not trained on, ascending."""
    linked = np.unique(linked)
    others = np.setdiff1d(np.arange(size), np.concatenate([linked, trained]))
    count = min(max(LARGEST_POOL - len(linked), 0), len(others))
    drawn = np.random.default_rng([seed, size]).choice(others, count, replace=False)
    return np.sort(np.concatenate([linked, drawn])).astype(np.int64)


def mean_mrr(similarity: StructureAndNames, links: IntArray, k: int) -> float:
    """Mean of both directions' MRR among all of a pool."""
    found = evaluate_links(similarity, links, k, pool="all", bootstrap=0, links_name="validation")
    return float(np.mean([found.source_to_target.mrr, found.target_to_source.mrr]))
