"""Which relations of the two graphs the model takes for the same, and whether the seed links agree."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from engine.analysis.schema import frame, joined_parts
from engine.data.knowledge_graph import SIDES, AlignmentTask, KnowledgeGraph, Side
from engine.model.dual_amn import DualAMN
from engine.model.proxies import unit_rows
from engine.search import get_index
from engine.util.arrays import IntArray

TWINS = 5
KEY = ["relation", "twin", "turned"]


def relation_twins_table(task: AlignmentTask, model: DualAMN) -> pd.DataFrame:
    """Each relation's most similar ones in the other graph; no rows where the model makes no use of relations."""
    if not learns_relations(model):
        return frame("relation_twins")
    vectors = unit_rows(model.relation_features.detach().cpu().float()) / math.sqrt(2)  # (2R, d)
    first, count = task.source.num_relations, task.num_relations
    forward = {"source": vectors[:first], "target": vectors[first:count]}
    inverse = {"source": vectors[count : count + first], "target": vectors[count + first :]}
    parts = []
    for side, across in (SIDES, SIDES[::-1]):
        similar = most_similar((forward[side], inverse[side]), (forward[across], inverse[across]), task.graph(side), task.graph(across))
        if similar is not None:
            parts.append(with_agreement(similar, task, side, across))
    return joined_parts("relation_twins", parts)


def learns_relations(model: DualAMN) -> bool:
    """Whether training has any influence on the relation features."""
    config = model.config
    return "relation" in model.channels or (config.layers > 0 and (config.relational_attention or config.relational_projection))


def most_similar(own: tuple[Tensor, Tensor], others: tuple[Tensor, Tensor], graph: KnowledgeGraph, across: KnowledgeGraph) -> pd.DataFrame | None:
    """relation, rank, twin, turned, cosine: at most ``TWINS`` rows for each relation that has triples.

    A relation is compared by its features in both directions, side by side; with the other's directions exchanged as well ("parent" may be
    "child" over there).
    """
    mine, theirs = (np.unique(one.triples[:, 1]) for one in (graph, across))
    if not len(mine) or not len(theirs):
        return None
    rows, columns = torch.from_numpy(mine), torch.from_numpy(theirs)
    queries = torch.cat([own[0][rows], own[1][rows]], dim=1)  # (n, 2d)
    same, turned = torch.cat([one[columns] for one in others], dim=1), torch.cat([one[columns] for one in reversed(others)], dim=1)
    found = get_index("exact").top_k(queries, torch.cat([same, turned]), TWINS)
    indices, kept = found.indices.numpy(), found.indices.shape[1]
    return pd.DataFrame(
        {
            "relation": np.repeat(mine, kept),
            "rank": np.tile(np.arange(1, kept + 1), len(mine)),
            "twin": theirs[indices.ravel() % len(theirs)],
            "turned": indices.ravel() >= len(theirs),
            "cosine": found.values.numpy().ravel(),
        }
    )


def with_agreement(similar: pd.DataFrame, task: AlignmentTask, side: Side, across: Side) -> pd.DataFrame:
    """The rows with what the seed links say of them."""
    links = task.train_links if side == "source" else task.train_links[:, ::-1]
    support, agreeing = seed_agreement(task.graph(side), task.graph(across), links)
    table = similar.merge(agreeing, on=KEY, how="left").merge(support, on="relation", how="left")
    seen = table["seed_triples"].fillna(0).to_numpy()
    share = np.divide(table["agreeing"].fillna(0).to_numpy(), seen, out=np.full(len(table), np.nan), where=seen > 0)
    return frame("relation_twins", {"graph": side, **table[[*KEY, "rank", "cosine"]], "seed_triples": seen, "agreement": share})


def seed_agreement(graph: KnowledgeGraph, across: KnowledgeGraph, links: IntArray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How often the counterparts of a triple's ends are connected as well, and how.

    Args:
        graph, across: the relation's graph, and its twins'.
        links: (n, 2) seed links from ``graph`` to ``across``; need not be one-to-one.

    Returns:
        relation, seed_triples: triples with a seed-linked entity at both ends; and relation, twin, turned, agreeing: how many of these have
        counterparts that the twin connects (``turned``: from the tail's to the head's).
    """
    known = pd.DataFrame(links, columns=["own", "other"]).drop_duplicates()
    triples = pd.DataFrame(graph.triples, columns=["head", "relation", "tail"]).assign(triple=np.arange(len(graph.triples)))
    heads, tails = (known.rename(columns={"own": end, "other": f"far_{end}"}) for end in ("head", "tail"))
    linked = triples.merge(heads, on="head").merge(tails, on="tail")
    support = linked.groupby("relation")["triple"].nunique().rename("seed_triples").reset_index()
    far = pd.DataFrame(across.triples, columns=["far_head", "twin", "far_tail"])
    exchanged = far.rename(columns={"far_head": "far_tail", "far_tail": "far_head"})
    both = pd.concat([far.assign(turned=False), exchanged.assign(turned=True)])
    agreeing = linked.merge(both, on=["far_head", "far_tail"]).drop_duplicates(["triple", "twin", "turned"])
    return support, agreeing.groupby(KEY).size().rename("agreeing").reset_index()
