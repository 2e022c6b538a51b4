"""Small graphs with attributes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import KnowledgeGraph, empty_attributes


def graph_with(entities: int, attributes: Sequence[tuple[int, str, str]], labels: Sequence[str] = ()) -> KnowledgeGraph:
    """A ring of entities with these attribute rows."""
    triples = np.array([[i, 0, (i + 1) % entities] for i in range(entities)], dtype=np.int64)
    table = pd.DataFrame(attributes, columns=["entity", "attribute", "value"]).astype(empty_attributes().dtypes.to_dict())
    return KnowledgeGraph("g", tuple(f"e{i}" for i in range(entities)), tuple(labels) or ("",) * entities, ("r",), triples, table)
