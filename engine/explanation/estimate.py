"""What each neighbour's removal would cost, estimated for all neighbours of a pair at once.

What a neighbour carries is not what its removal costs: attention and means are shares, so what is left is scaled up when a neighbour goes. The
estimate follows that through the entity's own sums, S without k = (S - m_k) / (1 - a_k) in each layer and channel, then tanh, proxies, gate and
cosine as they are. It leaves out only how the neighbours' own vectors would change. Where a rival is given, the cost is what the lead over it would
lose: a neighbour that carries as much for the rival is no evidence for the one against the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.explanation.blocks import shown_layers
from engine.explanation.contributions import TINY
from engine.explanation.frozen import FrozenVectors, Received
from engine.util.arrays import FloatArray, IntArray

AT_ONCE = 1 << 20
"""Values of multi-hop embeddings that are finished in one go: 8 MiB."""


@dataclass(frozen=True)
class Costs:
    """Estimated loss of n neighbours' removal, as shares of the CSLS score (of the lead over a rival where one is given).

    Attributes:
        neighbours: (n,) stacked entities.
        costs: (n,) negative where the score would rise.
    """

    neighbours: tuple[int, ...]
    costs: FloatArray


def estimated_costs(snapshot: FrozenVectors, entity: int, others: FloatArray) -> Costs:
    """The cost of each of an entity's neighbours.

    Args:
        snapshot: holds the entity (by its stacked index).
        entity: whose neighbours.
        others: (1 or 2, C D) final embedding of its counterpart, and of the rival counterpart.
    """
    neighbours = tuple(sorted(set(snapshot.graph.row(entity).senders.tolist()) - {entity}))
    at = snapshot.entities.index(entity)
    before = lead_over_rival(snapshot.final[at].reshape(1, -1), others)
    costs, step = np.empty(len(neighbours)), max(AT_ONCE // max(snapshot.hidden[at].size, 1), 1)
    for start in range(0, len(neighbours), step):
        part = neighbours[start : start + step]
        final = snapshot.encoder.finished(hidden_without(snapshot, entity, part))
        costs[start : start + step] = before - lead_over_rival(final.reshape(len(part), -1), others)
    return Costs(neighbours, costs)


def lead_over_rival(final: FloatArray, others: FloatArray) -> FloatArray:
    """(n,) twice the cosine with the counterpart, minus twice the cosine with the rival."""
    unit, them = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY) for rows in (final, others))
    cosines = 2 * unit @ them.T
    values: FloatArray = cosines[:, 0] - (cosines[:, 1] if len(others) > 1 else 0.0)
    return values


def hidden_without(snapshot: FrozenVectors, entity: int, neighbours: tuple[int, ...]) -> FloatArray:
    """(n, C, D) an entity's multi-hop embedding without each of n neighbours, everybody else's vectors held fixed."""
    encoder = snapshot.encoder
    channels = []
    for c, channel in enumerate(encoder.channels):
        layers = []
        for layer in shown_layers(encoder):
            received = snapshot.received(entity, layer, c)
            gone = lost_relations(snapshot, entity, neighbours) if (layer, channel) == (0, "relation") else sent_by(received, neighbours)
            layers.append(np.tanh(sums_without(received, gone)))
        channels.append(np.concatenate(layers, axis=1))
    return np.stack(channels, axis=1)


def sent_by(received: Received, neighbours: tuple[int, ...]) -> list[IntArray]:
    """For each neighbour the places of its messages."""
    order = np.argsort(received.senders, kind="stable")
    left, right = (np.searchsorted(received.senders[order], neighbours, side) for side in ("left", "right"))
    return [order[a:b] for a, b in zip(left, right, strict=True)]


def lost_relations(snapshot: FrozenVectors, entity: int, neighbours: tuple[int, ...]) -> list[IntArray]:
    """For each neighbour the places of the relations that the entity would not have without it."""
    graph = snapshot.graph
    row, whole = graph.row(entity), graph.whole
    holders: dict[int, set[int]] = {}
    for sender, unit in zip(row.senders.tolist(), row.units.tolist(), strict=True):
        for direction in graph.members(unit):
            holders.setdefault(whole.flipped(direction) if whole.opposite else direction, set()).add(sender)
    lost: dict[int, list[int]] = {}
    for place, relation in enumerate(graph.relations(entity).tolist()):
        if len(holders[relation]) == 1:
            lost.setdefault(next(iter(holders[relation])), []).append(place)
    return [np.array(lost.get(neighbour, []), dtype=np.int64) for neighbour in neighbours]


def sums_without(received: Received, gone: list[IntArray]) -> FloatArray:
    """(n, d) the sum of the messages without some of them, each time scaled up as attention and means would."""
    whole = received.messages.sum(axis=0)
    out = np.zeros((len(gone), len(whole)))
    for at, places in enumerate(gone):
        left = 1 - received.weights[places].sum()
        if left > TINY:
            out[at] = (whole - received.messages[places].sum(axis=0)) / left
    return out
