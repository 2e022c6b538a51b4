"""Precision, recall and F1 of a run's alignment as a set of pairs: what ontology matching reports.

- The alignment: best matches that are mutual. Where training and validation links give some target several sources, every source keeps its best match
  as well, and where they give some source several targets, every target does: an entity may then be in several pairs.
- The threshold: the probability that the run suggests; without one, no pair is left out.
- Judged are pairs with an entity of a test link, apart from other known links. A pair is right if it is a test link itself: of an entity with three
  counterparts all three have to be found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import AlignmentTask
from engine.evaluation.metrics import rate_interval
from engine.util.arrays import IntArray, link_keys, links_of_keys


@dataclass(frozen=True)
class AlignmentFigures:
    """Of a set of pairs; None where there is nothing to divide by.

    Attributes:
        predicted: judged pairs.
        correct: those that are test links.
        links: test links.
        threshold: least probability of a pair; None where there is none.
        several: whether entities may be in several pairs.
    """

    predicted: int
    correct: int
    links: int
    threshold: float | None = None
    several: bool = False

    @property
    def precision(self) -> float | None:
        return self.correct / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        return self.correct / self.links if self.links else None

    @property
    def f1(self) -> float | None:
        total = self.predicted + self.links
        return 2 * self.correct / total if total else None

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """95% score intervals. That of F1 comes from the share of right pairs among all that were predicted or are links, J: F1 = 2J / (1 + J)."""
        found: dict[str, tuple[float, float]] = {}
        if self.precision is not None:
            found["precision"] = rate_interval(self.precision, self.predicted)
        if self.recall is not None:
            found["recall"] = rate_interval(self.recall, self.links)
        if union := self.predicted + self.links - self.correct:
            low, high = rate_interval(self.correct / union, union)
            found["f1"] = 2 * low / (1 + low), 2 * high / (1 + high)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``metrics.json`` stores them."""
        return {
            **{name: getattr(self, name) for name in ("precision", "recall", "f1", "predicted", "correct", "links", "threshold")},
            "several_counterparts": self.several,
            "intervals": {name: list(interval) for name, interval in self.intervals.items()},
        }


def several_counterparts(links: IntArray) -> tuple[bool, bool]:
    """Whether some source, and whether some target, has several counterparts."""
    source, target = (len(np.unique(links[:, side])) < len(links) for side in (0, 1))
    return source, target


def alignment_pairs(matches: pd.DataFrame, known: IntArray) -> IntArray:
    """(P, 2) the pairs of an alignment, distinct.

    Args:
        matches: graph, entity, match: the best match of entities of either graph.
        known: (n, 2) links that say whether an entity may have several counterparts.
    """
    sides = [matches.loc[matches["graph"] == side, ["entity", "match"]].to_numpy(dtype=np.int64) for side in ("source", "target")]
    forward, backward = sides[0], sides[1][:, ::-1]
    width = int(max((part[:, 1].max(initial=0) for part in (forward, backward)), default=0)) + 1
    of_source, of_target = (np.unique(link_keys(part, width)) for part in (forward, backward))
    kept = [np.intersect1d(of_source, of_target)]
    sources_have_several, targets_have_several = several_counterparts(known)
    kept += [of_source] * targets_have_several + [of_target] * sources_have_several
    return links_of_keys(np.unique(np.concatenate(kept)), width)


def alignment_figures(matches: pd.DataFrame, task: AlignmentTask, threshold: float | None = None) -> AlignmentFigures:
    """The figures on a task's test links.

    Args:
        matches: graph, entity, match of best matches, and their probability where there is a threshold.
        task: the links.
        threshold: least probability; None takes all.
    """
    if threshold is not None:
        matches = matches[matches["probability"] >= threshold]
    known = np.concatenate([task.train_links, task.valid_links])
    pairs = alignment_pairs(matches, known)
    test, others = np.unique(task.test_links, axis=0), np.concatenate([known, task.unsure_links])
    touching = np.isin(pairs[:, 0], test[:, 0]) | np.isin(pairs[:, 1], test[:, 1])
    width = task.target.num_entities
    keys, right, aside = (link_keys(rows, width) for rows in (pairs[touching], test, others))
    judged = keys[~np.isin(keys, aside)]
    return AlignmentFigures(len(judged), int(np.isin(judged, right).sum()), len(test), threshold, any(several_counterparts(known)))


def figures_sentence(figures: Mapping[str, Any]) -> str:
    """What is printed of stored figures."""
    parts = []
    for name, word in (("precision", "precision"), ("recall", "recall"), ("f1", "F1")):
        if figures.get(name) is not None:
            low, high = figures["intervals"][name]
            parts.append(f"{word} {figures[name]:.3f} (95% interval {low:.3f} to {high:.3f})")
    threshold = figures.get("threshold")
    least = "" if threshold is None else f" of probability {threshold:.2f} or more"
    return f"{', '.join(parts)}: {figures['predicted']:,} pairs{least} against {figures['links']:,} test links"
