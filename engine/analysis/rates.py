"""Hits@k and MRR of groups of queries, with intervals that also hold for groups of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.analysis.schema import RATES
from engine.data.knowledge_graph import Side
from engine.evaluation.metrics import DirectionMetrics, Evaluation, wilson_interval
from engine.util.arrays import IntArray


def direction_from(evaluation: Evaluation, side: Side) -> DirectionMetrics:
    """The direction whose queries are this graph's entities."""
    return evaluation.source_to_target if side == "source" else evaluation.target_to_source


def rank_by_entity(direction: DirectionMetrics, entities: int) -> IntArray:
    """(E,) rank of each entity's counterpart; 0 where the entity is no query."""
    ranks = np.zeros(entities, dtype=np.int64)
    ranks[direction.queries] = direction.ranks
    return ranks


def grouped_rates(groups: IntArray, ranks: IntArray, num_groups: int) -> Mapping[str, npt.NDArray[Any]]:
    """The columns that tables of rates share: ``queries`` and each rate with both ends of its interval, NaN for empty groups.

    Args:
        groups: (q,) group of each query; a query may appear in several.
        ranks: (q,) rank of each query's counterpart, from 1.
        num_groups: G.

    Returns:
        (G,) arrays by column.
    """
    queries = np.bincount(groups, minlength=num_groups)
    values = (ranks <= 1, ranks <= 10, 1.0 / np.maximum(ranks, 1))
    columns: dict[str, npt.NDArray[Any]] = {"queries": queries}
    for name, value in zip(RATES, values, strict=True):
        total = np.bincount(groups, weights=value.astype(np.float64), minlength=num_groups)
        mean = np.divide(total, queries, out=np.full(num_groups, np.nan), where=queries > 0)
        columns[name] = mean
        columns[f"{name}_low"], columns[f"{name}_high"] = wilson_interval(mean, queries)
    return columns
