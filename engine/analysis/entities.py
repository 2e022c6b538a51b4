"""Tables of entities: accuracy by degree, and hubs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.analysis.schema import K_OCCURRENCES, MEASURED, RATES, AnalysisInput, analysis_table, frame, joined_parts
from engine.data.knowledge_graph import SIDES, AlignmentTask, Side
from engine.evaluation.metrics import DirectionMetrics, Evaluation, wilson_interval
from engine.util.arrays import IntArray

# Hits@k and MRR of groups of queries, with intervals that also hold for groups of one.


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


# How accuracy depends on how much is known of an entity (the paper's motivation for names: about .20 with one neighbour).

LEAST_DEGREES = (0, 1, 2, 3, 4, 5, 7, 10, 15, 25)


def bucket_names() -> list[str]:
    """'0', '1', .., '5-6', .., '25+'."""
    ends = [following - 1 for following in LEAST_DEGREES[1:]]
    closed = [str(low) if low == high else f"{low}-{high}" for low, high in zip(LEAST_DEGREES, ends, strict=False)]
    return [*closed, f"{LEAST_DEGREES[-1]}+"]


def degree_buckets(degrees: IntArray) -> IntArray:
    """Position of each degree's bucket in ``bucket_names()``."""
    return np.searchsorted(LEAST_DEGREES, degrees, side="right") - 1


def degree_table(task: AlignmentTask, evaluation: Evaluation) -> pd.DataFrame:
    """Rates by the query's degree in its own graph; every bucket of both graphs has a row."""
    return joined_parts("degree", [side_table(task, evaluation, side) for side in SIDES])


def side_table(task: AlignmentTask, evaluation: Evaluation, side: Side) -> pd.DataFrame:
    degrees = task.graph(side).degrees
    buckets = degree_buckets(degrees)  # (E,)
    ranks = rank_by_entity(direction_from(evaluation, side), len(degrees))
    asked = ranks > 0
    return frame(
        "degree",
        {
            "graph": side,
            "bucket": bucket_names(),
            "least_degree": LEAST_DEGREES,
            "entities": np.bincount(buckets, minlength=len(LEAST_DEGREES)),
            **grouped_rates(buckets[asked], ranks[asked], len(LEAST_DEGREES)),
        },
    )


@analysis_table(
    "degree",
    {"graph": "str", "bucket": "str", "least_degree": "int64", "entities": "int64", **MEASURED},
)
def _degree(given: AnalysisInput) -> pd.DataFrame:
    return degree_table(given.task, given.evaluation)


# Hubness: how often an entity is among the best matches of others (k-occurrence N_k; Radovanovic et al., JMLR 2010).


def hubness_tables(task: AlignmentTask, matches: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``hubness_counts`` and ``hubness_summary`` from the stored matches of both directions."""
    kept = [k for k in K_OCCURRENCES if lists_reach(task, matches, k)]
    counts, summaries = [], []
    for side, asking in (SIDES, SIDES[::-1]):
        entities = task.graph(side).num_entities
        lists = matches[matches["graph"] == asking]
        found = {k: occurrences(lists, k, entities) for k in kept}
        counts.append(frame("hubness_counts", {"graph": side, "entity": np.arange(entities), **{f"n_{k}": found[k] for k in kept}}))
        summaries += [frame("hubness_summary", {"graph": [side], "k": k, **summary(found[k])}) for k in kept if entities]
    return joined_parts("hubness_counts", counts), joined_parts("hubness_summary", summaries)


def lists_reach(task: AlignmentTask, matches: pd.DataFrame, k: int) -> bool:
    """Whether the stored lists hold k matches, or all candidates where there are fewer than k."""
    longest = matches.groupby("graph")["rank"].max()
    candidates = {"source": task.target.num_entities, "target": task.source.num_entities}
    return all(longest.get(side, k) >= min(k, candidates[side]) for side in SIDES) or k == 1


def occurrences(lists: pd.DataFrame, k: int, entities: int) -> IntArray:
    """(E,) N_k: in how many lists an entity is among the first k."""
    return np.bincount(lists.loc[lists["rank"] <= k, "match"].to_numpy(dtype=np.int64), minlength=entities)


def summary(counts: IntArray) -> dict[str, float | int]:
    """The columns that describe a distribution of N_k over at least one entity. A constant one has skewness 0."""
    spread = counts.std()
    skewness = float((((counts - counts.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0
    return {
        "entities": len(counts),
        "mean": float(counts.mean()),
        "largest": int(counts.max()),
        "skewness": skewness,
        "never": float((counts == 0).mean()),
    }


@analysis_table(
    "hubness_counts",
    {"graph": "str", "entity": "int64", **{f"n_{k}": "int64" for k in K_OCCURRENCES}},
    optional=("n_10",),
)
def _hubness_counts(given: AnalysisInput) -> pd.DataFrame:
    return hubness_tables(given.task, given.matches)[0]


@analysis_table(
    "hubness_summary",
    {
        "graph": "str",
        "k": "int64",
        "entities": "int64",
        "mean": "float64",
        "largest": "int64",
        "skewness": "float64",
        "never": "float64",
    },
)
def _hubness_summary(given: AnalysisInput) -> pd.DataFrame:
    return hubness_tables(given.task, given.matches)[1]
