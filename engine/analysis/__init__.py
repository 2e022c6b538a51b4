"""The tables that pages and papers need, computed once when a run finishes and stored with it.

``docs/run_tables.md`` describes every table and column. All of it follows from the graphs, the model's parameters, the evaluation's ranks and
the stored matches; the same input gives the same tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import torch

from engine.analysis import correspondences, entities, proxies, relations
from engine.analysis.schema import COMPUTED, TABLES, AnalysisInput
from engine.data.knowledge_graph import AlignmentTask
from engine.evaluation.metrics import Evaluation
from engine.model.dual_amn import DualAMN
from engine.runs.tensors import InTurn
from engine.training.orders import carried_out, kept_parts

MODULES = (entities, relations, correspondences, proxies)
"""Importing a module registers its tables."""
TENSORS = "proxies"
"""The file that the tensors are stored in."""


@dataclass(frozen=True)
class Analysis:
    """What is stored with a run.

    Attributes:
        tables: every table of ``TABLES``, by name; without rows where the run has nothing to show for it.
        tensors: proxy similarities, to be written as ``TENSORS``; empty without proxy matching.
    """

    tables: Mapping[str, pd.DataFrame]
    tensors: Mapping[str, InTurn]


@torch.no_grad()
def analyse(
    task: AlignmentTask, model: DualAMN | None, evaluation: Evaluation, matches: pd.DataFrame, excluded: frozenset[str] = frozenset()
) -> Analysis:
    """Compute all analysis tables of a finished run.

    Args:
        task: the two graphs and their links.
        model: the trained encoder, on any device; or process 0's part of it, while the others follow. None of a baseline, which has nothing to show
            for relations' importance and proxies.
        evaluation: of the test links; may have no queries.
        matches: the run's table of that name: graph, entity, rank, match.
        excluded: attributes whose values are not compared.
    """
    similarities = {} if model is None else kept_parts(model, proxies.ProxyCosines(task.source.num_entities, task.target.num_entities))
    realised = None if model is None else carried_out(model, relations.RealisedAttention())
    given = AnalysisInput(task, model, evaluation, matches, similarities, realised, excluded)
    tables = {name: compute(given) for name, compute in COMPUTED.items()}
    return Analysis(tables, proxies.proxy_tensors(similarities))


__all__ = ["TABLES", "TENSORS", "Analysis", "analyse"]
