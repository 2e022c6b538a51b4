"""What the attention thinks of each relation (paper section 4.1, eq. 3), and what becomes of it among an entity's other triples.

The score of a directed relation is v . r with r at unit length; its weight at an entity is the softmax over the entity's messages, so a relation
with a middling score may still get all the attention of an entity that has nothing better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from engine.analysis.schema import frame, side_array
from engine.data.knowledge_graph import AlignmentTask
from engine.model.adjacency import Adjacency
from engine.model.dual_amn import DualAMN
from engine.model.proxies import unit_rows
from engine.util.arrays import FloatArray, IntArray, spans

Band = Literal["high", "medium", "low"]
BANDS: tuple[Band, ...] = ("high", "medium", "low")


@dataclass(frozen=True)
class Realised:
    """Mean attention weights of 2R directed relations, for each of L layers and C channels; NaN where a relation has no message.

    Attributes:
        attention: (L, C, 2R) mean weight of the messages along the relation.
        relative: (L, C, 2R) the same, each weight as a multiple of what its receiver would give if it gave all its messages the same.
    """

    attention: FloatArray  # (L, C, 2R)
    relative: FloatArray  # (L, C, 2R)


@dataclass(frozen=True)
class Usage:
    """How R relations occur: number of triples, and distinct heads (tails) per triple."""

    frequency: IntArray  # (R,)
    functionality: FloatArray  # (R,)
    inverse_functionality: FloatArray  # (R,)


def relation_importance_table(task: AlignmentTask, model: DualAMN) -> pd.DataFrame:
    """Importance of each directed relation with triples, by layer and channel; no rows without layers or without attention."""
    if not model.config.relational_attention or not model.config.layers or not task.num_relations:
        return frame("relation_importance")
    scores = importance(model)  # (L, C, 2R)
    realised = realised_attention(model)
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


def realised_attention(model: DualAMN) -> Realised:
    """Means over the messages along each directed relation, from (messages,) arrays only.

    Where parallel triples are averaged into one message, the message counts for each of its relations.
    """
    adjacency = model.adjacency
    message, relation = message_relations(adjacency)
    receivers, rivals = adjacency.messages.rows(), adjacency.messages.lengths()
    directed = 2 * adjacency.num_relations
    counts = np.bincount(relation, minlength=directed).astype(np.float64)
    counts[counts == 0] = np.nan
    shape = (model.config.layers, len(model.channels), directed)
    attention, relative = np.empty(shape), np.empty(shape)
    vectors = model.unit_vectors()
    for layer in range(shape[0]):
        scores = model.scores(vectors, layer).detach().cpu().double().numpy()  # (S, C)
        for channel in range(shape[1]):
            weights = row_softmax(scores[adjacency.units, channel], adjacency.messages.offsets)  # (messages,)
            attention[layer, channel] = np.bincount(relation, weights[message], directed) / counts
            relative[layer, channel] = np.bincount(relation, (weights * rivals[receivers])[message], directed) / counts
    return Realised(attention, relative)


def message_relations(adjacency: Adjacency) -> tuple[IntArray, IntArray]:
    """(uses,) message and directed relation of each use of a relation by a message."""
    sizes = adjacency.members.lengths()[adjacency.units]
    message = np.repeat(np.arange(len(adjacency.units), dtype=np.int64), sizes)
    return message, adjacency.members.columns[spans(adjacency.members.offsets[adjacency.units], sizes)].astype(np.int64)


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
