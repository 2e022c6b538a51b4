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

from engine.analysis.entities import degree_table, hubness_tables
from engine.analysis.proxies import pair_divergence_table, proxy_similarities, proxy_tensors, proxy_top_table
from engine.analysis.relations import relation_hits_table, relation_importance_table, relation_twins_table
from engine.analysis.schema import TABLES
from engine.data.knowledge_graph import AlignmentTask
from engine.evaluation.metrics import Evaluation
from engine.model.dual_amn import DualAMN

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
def analyse(task: AlignmentTask, model: DualAMN, evaluation: Evaluation, matches: pd.DataFrame) -> Analysis:
    """Compute all analysis tables of a finished run.

    Args:
        task: the two graphs and their links.
        model: the trained encoder, on any device.
        evaluation: of the test links; may have no queries.
        matches: the run's table of that name: graph, entity, rank, match.
    """
    similarities = proxy_similarities(model)
    num_source = task.source.num_entities
    counts, summaries = hubness_tables(task, matches)
    tables = {
        "degree": degree_table(task, evaluation),
        "relation_hits": relation_hits_table(task, evaluation),
        "relation_importance": relation_importance_table(task, model),
        "relation_twins": relation_twins_table(task, model),
        "proxy_top": proxy_top_table(similarities, num_source),
        "pair_divergence": pair_divergence_table(similarities, task, matches),
        "hubness_counts": counts,
        "hubness_summary": summaries,
    }
    return Analysis(tables, proxy_tensors(similarities, num_source))


__all__ = ["TABLES", "TENSORS", "Analysis", "analyse"]
