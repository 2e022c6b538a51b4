"""Who carries the multi-hop product of two entities: a matrix of neighbours times neighbours, or of relations times relations, whose entries add up.

A layer's vector is x = tanh(S), S = sum_k m_k over the messages m_k. With the messages scaled by tanh(S) / S in each dimension (1 where S is 0), x is
the sum of the scaled messages itself, and

    x_s . x_t = sum over k, l of (scaled m_k of s) . (scaled m_l of t).

Summed over layers and channels, what a neighbour sends is one row: its scaled messages side by side. All neighbour pairs together are then one
product of two such matrices, and a neighbour's total is its row's product with the other side's sum; neither needs an array of all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from engine.explanation.blocks import shown_layers
from engine.explanation.frozen import FrozenVectors, Received
from engine.util.arrays import FloatArray

Key = TypeVar("Key", bound=Hashable)
CELLS = 1 << 21
"""Pairs that are looked at in one go: 16 MiB."""
TINY = 1e-12
"""Sums below it count as 0, where tanh(S) / S is 1."""


@dataclass(frozen=True)
class Sent(Generic[Key]):
    """What n senders, by key, add to an entity's multi-hop embedding.

    Attributes:
        keys: n stacked neighbours, or n tuples of directed relations.
        vectors: (n, W) scaled messages, the blocks side by side; their sum is the entity's multi-hop embedding, as far as the keys make it.
        weights: (n,) the share of attention, averaged over channels and the layers from 1 on.
    """

    keys: tuple[Key, ...]
    vectors: FloatArray  # (n, W)
    weights: FloatArray  # (n,)


@dataclass(frozen=True)
class Products(Generic[Key]):
    """The products of what two entities' senders sent: an n x m matrix that is never written down.

    Attributes:
        scale: what a dot product is multiplied by to be a share of the score.
    """

    source: Sent[Key]
    target: Sent[Key]
    scale: float

    @property
    def total(self) -> float:
        """The sum of all n m entries."""
        return float(self.source.vectors.sum(axis=0) @ self.target.vectors.sum(axis=0)) * self.scale

    def source_totals(self) -> FloatArray:
        """(n,) the sum of each row."""
        totals: FloatArray = self.source.vectors @ self.target.vectors.sum(axis=0) * self.scale
        return totals

    def target_totals(self) -> FloatArray:
        """(m,) the sum of each column."""
        totals: FloatArray = self.target.vectors @ self.source.vectors.sum(axis=0) * self.scale
        return totals

    def value(self, row: int, column: int) -> float:
        return float(self.source.vectors[row] @ self.target.vectors[column]) * self.scale

    def strongest(self, count: int, sign: int) -> list[tuple[int, int, float]]:
        """(row, column, value) of the ``count`` largest positive (sign 1) or smallest negative (sign -1) entries, strongest first."""
        if not count or not len(self.source.keys) or not len(self.target.keys):
            return []
        best = [np.empty((0, 3))]
        for top, block in self._blocks():
            flat = sign * block.ravel()
            kept = np.argpartition(-flat, count - 1)[:count] if len(flat) > count else np.arange(len(flat))
            kept = kept[flat[kept] > 0]
            row, column = np.divmod(kept, block.shape[1])
            best = [np.concatenate([*best, np.stack([row + top, column, flat[kept]], axis=1)])]
        rows = best[0][np.lexsort((best[0][:, 1], best[0][:, 0], -best[0][:, 2]))][:count]
        return [(int(row), int(column), sign * float(value)) for row, column, value in rows]

    def positive_and_negative(self) -> tuple[float, float]:
        """The sums of the positive and of the negative entries."""
        positive = negative = 0.0
        for _, block in self._blocks():
            positive += float(block.clip(min=0).sum())
            negative += float(block.clip(max=0).sum())
        return positive, negative

    def _blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """The matrix in stretches of rows, each with its first row's number."""
        step = max(CELLS // max(len(self.target.keys), 1), 1)
        for top in range(0, len(self.source.keys), step):
            yield top, (self.source.vectors[top : top + step] @ self.target.vectors.T) * self.scale


def scaled(received: Received) -> FloatArray:
    """(n, d) messages scaled so that they sum to the tanh of their sum."""
    whole = received.messages.sum(axis=0)
    flat = np.abs(whole) < TINY
    ratio = np.where(flat, 1.0, np.tanh(whole) / np.where(flat, 1.0, whole))
    messages: FloatArray = received.messages * ratio
    return messages


def by_neighbour(snapshot: FrozenVectors, entity: int) -> Sent[int]:
    """What each neighbour sends, and the entity itself (its own features at layer 0, and self-loops).

    Layer 0 of the relation channel has no neighbours: it is left out, and a part of its own (:func:`own_relations`).
    """
    return _sent(snapshot, entity, lambda received: received.senders.tolist(), leave_out=(0, "relation"))


def by_relation(snapshot: FrozenVectors, entity: int) -> Sent[tuple[int, ...]]:
    """What comes along each relation. Layer 0 of the entity channel has no relations: it is left out, and a part of its own."""
    return _sent(snapshot, entity, lambda received: received.relations, leave_out=(0, "entity"))


def _sent(snapshot: FrozenVectors, entity: int, keys_of: Callable[[Received], Sequence[Key]], leave_out: tuple[int, str]) -> Sent[Key]:
    encoder, width = snapshot.encoder, snapshot.encoder.dim
    blocks = [(layer, c) for c, name in enumerate(encoder.channels) for layer in shown_layers(encoder) if (layer, name) != leave_out]
    place: dict[Key, int] = {}
    parts = [(snapshot.received(entity, layer, c), layer) for layer, c in blocks]
    rows = [np.array([place.setdefault(key, len(place)) for key in keys_of(received)], dtype=np.int64) for received, _ in parts]
    vectors, weights = np.zeros((len(place), width * len(blocks))), np.zeros(len(place))
    attentive = max(sum(layer > 0 for _, layer in parts), 1)
    for at, ((received, layer), own) in enumerate(zip(parts, rows, strict=True)):
        np.add.at(vectors[:, at * width : (at + 1) * width], own, scaled(received))
        if layer:
            np.add.at(weights, own, received.weights / attentive)
    return Sent(tuple(place), vectors, weights)


def left_out(snapshot: FrozenVectors, entity: int, layer: int, channel: str) -> FloatArray:
    """(d,) the vector of one layer and channel; zero where the embedding does not have it."""
    encoder = snapshot.encoder
    if channel not in encoder.channels or layer not in shown_layers(encoder):
        return np.zeros(encoder.dim)
    vector: FloatArray = snapshot.layers[layer][snapshot.entities.index(entity), encoder.channels.index(channel)]
    return vector
