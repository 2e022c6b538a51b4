"""How accuracy depends on how much is known of an entity (the paper's motivation for names: about .20 with one neighbour)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from engine.analysis.rates import direction_from, grouped_rates, rank_by_entity
from engine.analysis.schema import frame, joined_parts
from engine.data.knowledge_graph import SIDES, AlignmentTask, Side
from engine.evaluation.metrics import Evaluation
from engine.util.arrays import IntArray

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
