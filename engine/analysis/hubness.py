"""Hubness: how often an entity is among the best matches of others (k-occurrence N_k; Radovanovic et al., JMLR 2010)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from engine.analysis.schema import K_OCCURRENCES, frame, joined_parts
from engine.data.knowledge_graph import SIDES, AlignmentTask
from engine.util.arrays import IntArray


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
