"""Which relations help: accuracy of the entities that have a relation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from engine.analysis.rates import direction_from, grouped_rates, rank_by_entity
from engine.analysis.schema import frame, joined_parts
from engine.data.knowledge_graph import SIDES, AlignmentTask, KnowledgeGraph
from engine.evaluation.metrics import Evaluation
from engine.util.arrays import IntArray


def relation_hits_table(task: AlignmentTask, evaluation: Evaluation) -> pd.DataFrame:
    """Rates of the queries that are head, tail, or either of a relation; only of relations with such queries."""
    parts = []
    for side in SIDES:
        graph = task.graph(side)
        ranks = rank_by_entity(direction_from(evaluation, side), graph.num_entities)
        for role, (relation, entity) in incidences(graph).items():
            asked = ranks[entity] > 0
            rates = grouped_rates(relation[asked], ranks[entity[asked]], graph.num_relations)
            seen = np.flatnonzero(rates["queries"])
            columns = {name: column[seen] for name, column in rates.items()}
            parts.append(frame("relation_hits", {"graph": side, "relation": seen, "role": role, **columns}))
    return joined_parts("relation_hits", parts).sort_values(["graph", "relation"], kind="stable", ignore_index=True)


def incidences(graph: KnowledgeGraph) -> Mapping[str, tuple[IntArray, IntArray]]:
    """Role -> distinct (relation, entity) as two arrays."""
    head, relation, tail = graph.triples.T
    keys = {"head": relation * graph.num_entities + head, "tail": relation * graph.num_entities + tail}
    keys["any"] = np.concatenate([keys["head"], keys["tail"]])
    width = max(graph.num_entities, 1)
    return {role: (distinct // width, distinct % width) for role in ("any", "head", "tail") for distinct in (np.unique(keys[role]),)}
