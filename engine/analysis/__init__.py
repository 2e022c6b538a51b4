"""The tables that pages and papers need, computed once when a run finishes and stored with it.

``docs/run_tables.md`` describes every table and column. All of it follows from the graphs, the model's parameters, the evaluation's ranks and
the stored matches; the same input gives the same tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from engine.analysis import correspondences, entities, proxies, relations
from engine.analysis.schema import COMPUTED, TABLES, AnalysisInput
from engine.data.knowledge_graph import AlignmentTask
from engine.evaluation.metrics import Evaluation
from engine.model.dual_amn import DualAMN

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
    tensors: Mapping[str, Tensor]


@torch.no_grad()
def analyse(
    task: AlignmentTask, model: DualAMN | None, evaluation: Evaluation, matches: pd.DataFrame, excluded: frozenset[str] = frozenset()
) -> Analysis:
    """Compute all analysis tables of a finished run.

    Args:
        task: the two graphs and their links.
        model: the trained encoder, on any device; None of a baseline, which has nothing to show for relations' importance and proxies.
        evaluation: of the test links; may have no queries.
        matches: the run's table of that name: graph, entity, rank, match.
        excluded: attributes whose values are not compared.
    """
    similarities = {} if model is None else proxies.proxy_similarities(model)
    given = AnalysisInput(task, model, evaluation, matches, similarities, excluded)
    tables = {name: compute(given) for name, compute in COMPUTED.items()}
    return Analysis(tables, proxies.proxy_tensors(similarities, task.source.num_entities))


__all__ = ["TABLES", "TENSORS", "Analysis", "analyse"]
