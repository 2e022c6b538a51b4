"""Tables of relations: accuracy by relation, how much each weighs, and its twins in the other graph."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from engine.analysis.entities import direction_from, grouped_rates, rank_by_entity
from engine.analysis.schema import MEASURED, AnalysisInput, Realised, analysis_table, frame, joined_parts, side_array
from engine.data.knowledge_graph import SIDES, AlignmentTask, KnowledgeGraph, Side
from engine.evaluation.metrics import Evaluation
from engine.model.adjacency import Csr
from engine.model.dual_amn import DualAMN
from engine.model.proxies import unit_rows
from engine.search import get_index
from engine.training.orders import ModelOrder
from engine.util.arrays import FloatArray, IntArray, spans

# Which relations help: accuracy of the entities that have a relation.


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


@analysis_table(
    "relation_hits",
    {"graph": "str", "relation": "int64", "role": "str", **MEASURED},
)
def _relation_hits(given: AnalysisInput) -> pd.DataFrame:
    return relation_hits_table(given.task, given.evaluation)


# Importance of each relation in the attention (paper section 4.1, eq. 3), and its resulting weight among an entity's other triples.
#
# The score of a directed relation is v . r with r at unit length; its weight at an entity is the softmax over the entity's messages, so a relation
# with a middling score may still get all the attention of an entity that has nothing better.

Band = Literal["high", "medium", "low"]
BANDS: tuple[Band, ...] = ("high", "medium", "low")


@dataclass(frozen=True)
class Usage:
    """How R relations occur: number of triples, and distinct heads (tails) per triple."""

    frequency: IntArray  # (R,)
    functionality: FloatArray  # (R,)
    inverse_functionality: FloatArray  # (R,)


def relation_importance_table(task: AlignmentTask, model: DualAMN, realised: Realised | None) -> pd.DataFrame:
    """Importance of each directed relation with triples, by layer and channel; no rows without layers or without attention."""
    if realised is None:
        return frame("relation_importance")
    scores = importance(model)  # (L, C, 2R)
    usage = relation_usage(task)
    used = np.flatnonzero(np.tile(usage.frequency > 0, 2))
    layer, channel, place = (axis.ravel() for axis in np.indices((*scores.shape[:2], len(used))))
    directed = used[place]
    relation = directed % task.num_relations
    is_source = relation < task.source.num_relations
    ranks = descending_ranks(scores[:, :, used])
    return frame(
        "relation_importance",
        {
            "layer": layer + 1,
            "channel": np.array(model.channels)[channel],
            "graph": side_array(is_source),
            "relation": np.where(is_source, relation, relation - task.source.num_relations),
            "direction": np.where(directed < task.num_relations, "forward", "inverse"),
            "importance": scores[layer, channel, directed],
            "rank": ranks.ravel(),
            "band": np.array(BANDS)[(ranks.ravel() - 1) * len(BANDS) // max(len(used), 1)],
            "frequency": usage.frequency[relation],
            "functionality": usage.functionality[relation],
            "inverse_functionality": usage.inverse_functionality[relation],
            "attention": realised.attention[layer, channel, directed],
            "relative_attention": realised.relative[layer, channel, directed],
        },
    )


def importance(model: DualAMN) -> FloatArray:
    """(L, C, 2R) v . r of each single directed relation, r at unit length."""
    vectors = unit_rows(model.relation_features.detach().cpu().double())  # (2R, d)
    scores: FloatArray = (model.attention.detach().cpu().double() @ vectors.T).numpy()
    return scores


@dataclass(frozen=True)
class RealisedAttention(ModelOrder):
    """See :func:`realised_attention`."""

    def carry_out(self, model: DualAMN) -> Realised | None:
        return realised_attention(model)


@torch.no_grad()
def realised_attention(model: DualAMN) -> Realised | None:
    """Means over the messages along each directed relation, from (messages,) arrays only; None where the model does not weigh relations.

    Where parallel triples are averaged into one message, the message counts for each of its relations. Of several processes each sums over the
    messages to its own entities; they call this together.
    """
    if not model.config.relational_attention or not model.config.layers or not model.adjacency.num_relations:
        return None
    counts, *sums = attention_sums(model)
    if model.shard is not None:
        counts, *sums = (model.shard.ranks.sum(torch.from_numpy(one)).numpy() for one in (counts, *sums))
    counts[counts == 0] = np.nan
    return Realised(*(one / counts for one in sums))


def attention_sums(model: DualAMN) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(2R,) number of messages along each directed relation; (L, C, 2R) sums of what :class:`Realised` has means of."""
    adjacency, directed = model.adjacency, 2 * model.adjacency.num_relations
    offsets = adjacency.messages.offsets[: model.num_entities + 1]
    units, rivals = adjacency.units[: offsets[-1]], np.diff(offsets)
    receivers = np.repeat(np.arange(len(rivals)), rivals)
    message, relation = message_relations(adjacency.members, units)
    shape = (model.config.layers, len(model.channels), directed)
    attention, relative = np.empty(shape), np.empty(shape)
    vectors = model.unit_vectors()
    for layer in range(shape[0]):
        scores = model.scores(vectors, layer).detach().cpu().double().numpy()  # (S, C)
        for channel in range(shape[1]):
            weights = row_softmax(scores[units, channel], offsets)  # (messages,)
            attention[layer, channel] = np.bincount(relation, weights[message], directed)
            relative[layer, channel] = np.bincount(relation, (weights * rivals[receivers])[message], directed)
    return np.bincount(relation, minlength=directed).astype(np.float64), attention, relative


def message_relations(members: Csr, units: npt.NDArray[np.int32]) -> tuple[IntArray, IntArray]:
    """(uses,) message and directed relation of each use of a relation by a message, of which ``units`` has the unit."""
    sizes = members.lengths()[units]
    message = np.repeat(np.arange(len(units), dtype=np.int64), sizes)
    return message, members.columns[spans(members.offsets[units], sizes)].astype(np.int64)


def row_softmax(scores: FloatArray, offsets: IntArray) -> FloatArray:
    """(messages,) softmax within each row ``offsets[i]:offsets[i + 1]``."""
    if not len(scores):
        return scores
    lengths = np.diff(offsets)
    filled = lengths > 0
    starts, lengths = offsets[:-1][filled], lengths[filled]
    raised = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), lengths))
    weights: FloatArray = raised / np.repeat(np.add.reduceat(raised, starts), lengths)
    return weights


def relation_usage(task: AlignmentTask) -> Usage:
    """Counts over both graphs' stacked relations; NaN functionality where a relation has no triple."""
    head, relation, tail = task.stacked_triples().T
    frequency = np.bincount(relation, minlength=task.num_relations)
    total = np.where(frequency > 0, frequency, np.nan).astype(np.float64)
    heads, tails = (distinct_partners(relation, one, task.num_entities, task.num_relations) / total for one in (head, tail))
    return Usage(frequency, heads, tails)


def distinct_partners(relation: IntArray, entity: IntArray, num_entities: int, num_relations: int) -> IntArray:
    """(R,) number of distinct entities that occur with each relation."""
    return np.bincount(np.unique(relation * num_entities + entity) // max(num_entities, 1), minlength=num_relations)


def descending_ranks(values: FloatArray) -> IntArray:
    """Ranks from 1 along the last axis, the highest first; of equals the earlier one."""
    order = np.argsort(-values, axis=-1, kind="stable")
    ranks = np.empty(values.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(1, values.shape[-1] + 1), values.shape), axis=-1)
    return ranks


@analysis_table(
    "relation_importance",
    {
        "layer": "int64",
        "channel": "str",
        "graph": "str",
        "relation": "int64",
        "direction": "str",
        "importance": "float64",
        "rank": "int64",
        "band": "str",
        "frequency": "int64",
        "functionality": "float64",
        "inverse_functionality": "float64",
        "attention": "float64",
        "relative_attention": "float64",
    },
)
def _relation_importance(given: AnalysisInput) -> pd.DataFrame:
    return frame("relation_importance") if given.model is None else relation_importance_table(given.task, given.model, given.realised)


# Which relations of the two graphs the model takes for the same, and whether the seed links agree.

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


@analysis_table(
    "relation_twins",
    {
        "graph": "str",
        "relation": "int64",
        "rank": "int64",
        "twin": "int64",
        "turned": "bool",
        "cosine": "float64",
        "seed_triples": "int64",
        "agreement": "float64",
    },
)
def _relation_twins(given: AnalysisInput) -> pd.DataFrame:
    return frame("relation_twins") if given.model is None else relation_twins_table(given.task, given.model)
