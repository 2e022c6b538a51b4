"""The encoder with frozen weights, evaluated for a few entities at a time, on the run's graph or on one that lacks some triples.

:class:`FrozenEncoder` holds the weights and what every entity sends at each layer. A :class:`FrozenVectors` has the vectors of a few entities, in
float64: where triples were removed, it computes anew exactly what depends on them and reaches these entities, and takes everything else as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from engine.config import EncoderConfig
from engine.explanation.graph import EditedGraph, Row, StackedGraph, Triple
from engine.explanation.kernels import mean_of_rows, messages_of_rows
from engine.model.adjacency import Adjacency, Csr
from engine.model.dual_amn import CHANNELS
from engine.model.proxies import proxy_parts, unit_rows
from engine.util.arrays import Float32Array, FloatArray, IntArray
from engine.util.threads import spread


@dataclass(frozen=True)
class Received:
    """What one entity's vector of one layer and channel is the tanh of: the sum of n messages.

    Attributes:
        senders: (n,) stacked entities; at layer 0 of the entity channel the entity itself is among them. Empty at layer 0 of the relation channel.
        relations: the directed relations that each message came along (several where parallel triples are averaged); empty at layer 0 of the entity
            channel.
        weights: (n,) the share that attention, or the mean, gives each.
        messages: (n, d) weighted, so that they sum to the vector before its tanh.
    """

    senders: IntArray  # (n,)
    relations: tuple[tuple[int, ...], ...]
    weights: FloatArray  # (n,)
    messages: FloatArray  # (n, d)


class FrozenEncoder:
    """A trained Dual-AMN of E entities, C channels, L layers, S units and width d, without dropout.

    Args:
        adjacency: the run's whole stacked graph.
        config: the run's encoder settings.
        parameters: by the names of :class:`engine.model.dual_amn.DualAMN`, float32.

    Raises:
        ValueError: parameters that do not fit the graph or the settings.
    """

    def __init__(self, adjacency: Adjacency, config: EncoderConfig, parameters: Mapping[str, npt.NDArray[Any]]) -> None:
        self.config = config
        self.channels = CHANNELS if config.channels == "both" else (config.channels,)
        self.graph = StackedGraph(adjacency, config)
        self.parameters = checked(parameters, adjacency, config, len(self.channels))
        members = adjacency.members
        self.vectors = self._unit_vectors(members.offsets, members.columns)  # (S, d)
        self.scores = self._attention_scores(self.vectors)  # (L, S, C)
        self.sent = self._sent_by_all()  # layers 0 .. L - 1: (E, C, d) float32

    @property
    def dim(self) -> int:
        return self.config.dim

    def _unit_vectors(self, offsets: IntArray, columns: npt.NDArray[Any]) -> FloatArray:
        """(units, d) the mean of each unit's relation features, at length 1."""
        out = np.empty((len(offsets) - 1, self.dim))
        mean_of_rows(offsets, columns, self.parameters["relation_features"], 0, len(out), out)
        unit: FloatArray = unit_rows(torch.from_numpy(out)).numpy()
        return unit

    def _attention_scores(self, vectors: FloatArray) -> FloatArray:
        """(L, units, C) v . r of each layer and channel (paper eq. 3, before the softmax)."""
        attention = self.parameters["attention"].astype(np.float64)
        if not self.config.relational_attention:
            attention = np.zeros_like(attention)
        return np.ascontiguousarray(np.einsum("sd,lcd->lsc", vectors, attention))

    def _sent_by_all(self) -> list[Float32Array]:
        """What every entity sends to the layers above: its vectors of layers 0 .. L - 1, each (E, C, d)."""
        adjacency, nothing = self.graph.adjacency, np.empty((0, len(self.channels), self.dim))
        nowhere = np.full(adjacency.num_entities, -1, dtype=np.int64)
        layers: list[Float32Array] = []
        for layer in range(self.config.layers):
            if layer == 0:
                out = np.stack([self._means(*self._inputs_of(channel)) for channel in self.channels], axis=1)
            else:
                out = self._aggregated(adjacency.messages, adjacency.units, layer, layers[-1], nowhere, nothing, self.vectors, self.scores)
            layers.append(np.tanh(out).astype(np.float32))
        return layers

    def _inputs_of(self, channel: str) -> tuple[Csr, Float32Array]:
        adjacency = self.graph.adjacency
        if channel == "entity":
            return adjacency.neighbours, self.parameters["entity_features"]
        return adjacency.relations, self.parameters["relation_features"]

    @staticmethod
    def _means(rows: Csr, features: Float32Array) -> FloatArray:
        out = np.empty((rows.num_rows, features.shape[1]))
        spread(lambda start, stop: mean_of_rows(rows.offsets, rows.columns, features, start, stop, out), len(out), len(rows.columns) * out.shape[1])
        return out

    def _aggregated(
        self,
        rows: Csr,
        units: npt.NDArray[Any],
        layer: int,
        base: Float32Array,
        place: IntArray,
        replaced: FloatArray,
        vectors: FloatArray,
        scores: FloatArray,
    ) -> FloatArray:
        """(rows, C, d) a layer before its tanh, for the given rows."""
        out, reflect = np.empty((rows.num_rows, len(self.channels), self.dim)), self.config.relational_projection

        def work(start: int, stop: int) -> None:
            messages_of_rows(rows.offsets, rows.columns, units, base, place, replaced, vectors, scores[layer - 1], reflect, start, stop, out)

        spread(work, rows.num_rows, len(rows.columns) * self.dim * len(self.channels))
        return out

    def aggregate_rows(
        self, rows: Sequence[Row], layer: int, place: IntArray, replaced: FloatArray, vectors: FloatArray, scores: FloatArray
    ) -> FloatArray:
        """(n, C, d) a layer (from 1) of n entities that hear ``rows``, before its tanh; ``replaced`` stands in for some of the layer below."""
        offsets = np.concatenate([[0], np.cumsum([len(row.senders) for row in rows])]).astype(np.int64)
        senders = np.concatenate([row.senders for row in rows]).astype(np.int32)
        csr = Csr(offsets, senders, self.graph.adjacency.num_entities)
        return self._aggregated(csr, np.concatenate([row.units for row in rows]), layer, self.sent[layer - 1], place, replaced, vectors, scores)

    def snapshot(self, entities: Sequence[int], removed: Iterable[Triple] = ()) -> FrozenVectors:
        """The vectors of some (stacked) entities on the graph without the removed triples."""
        return FrozenVectors(self, entities, EditedGraph(self.graph, removed))

    def finished(self, hidden: FloatArray) -> FloatArray:
        """(n, C, D) multi-hop embeddings -> (n, C, D) final ones, after proxies and gate (paper section 4.2)."""
        if not self.config.proxy_matching:
            return hidden.copy()
        out = np.empty_like(hidden)
        for c in range(len(self.channels)):
            block = torch.from_numpy(np.ascontiguousarray(hidden[:, c]))
            own = [torch.from_numpy(self.parameters[name][c].astype(np.float64)) for name in ("proxies", "gate_weight", "gate_bias")]
            parts = proxy_parts(block, *own)
            out[:, c] = (block - (1 - parts.gate) * parts.proxy).numpy()
        return out


class FrozenVectors:
    """The vectors of n entities on one graph, exact to float64 given the layers below; removed triples are followed through all layers.

    An entity's layer changes with the layer below of anyone it hears, and where its own row changed. Of all that changes, only what the n entities
    hear, directly or over others, is computed.

    Attributes:
        entities: (n,) stacked indices.
        layers: L + 1 arrays (n, C, d), after tanh.
        hidden: (n, C, D) multi-hop embeddings.
        final: (n, C, D) after proxies and gate.
    """

    def __init__(self, encoder: FrozenEncoder, entities: Sequence[int], graph: EditedGraph) -> None:
        self.encoder, self.graph, self.entities = encoder, graph, list(entities)
        self._vectors, self._scores = self._units()
        self._changed: list[tuple[IntArray, FloatArray]] = []  # for each layer below: who sends something else, and what
        self.layers = [np.tanh(self._inputs(self.entities))]
        self._evaluate()
        parts = self.layers if encoder.config.multi_hop else self.layers[-1:]
        self.hidden: FloatArray = np.concatenate(parts, axis=2)
        self.final = encoder.finished(self.hidden)

    def _units(self) -> tuple[FloatArray, FloatArray]:
        """Unit vectors and attention scores, those of units that only the edited graph has included."""
        encoder, extra = self.encoder, self.graph.extra
        if not extra:
            return encoder.vectors, encoder.scores
        offsets = np.concatenate([[0], np.cumsum([len(members) for members in extra])]).astype(np.int64)
        more = encoder._unit_vectors(offsets, np.array([one for members in extra for one in members], dtype=np.int64))
        scores = np.concatenate([encoder.scores, encoder._attention_scores(more)], axis=1)
        return np.concatenate([encoder.vectors, more]), scores

    def _evaluate(self) -> None:
        """Layer by layer: the entities themselves, and whoever sends them something else than on the whole graph."""
        count, wanted = self.encoder.config.layers, self._wanted()
        endpoints = np.array(self.graph.endpoints, dtype=np.int64)
        if count:
            self._changed.append((endpoints, np.tanh(self._inputs(self.graph.endpoints))))
        for layer in range(1, count + 1):
            place, replaced = self._replaced(layer - 1)
            rows = {entity: self.graph.row(entity) for entity in wanted[layer]}
            changed = [entity for entity, row in rows.items() if self.graph.is_edited(entity) or (place[row.senders] >= 0).any()]
            needed = list(dict.fromkeys([*self.entities, *(changed if layer < count else [])]))
            sums = self.encoder.aggregate_rows([rows[entity] for entity in needed], layer, place, replaced, self._vectors, self._scores)
            values = dict(zip(needed, np.tanh(sums), strict=True))
            self.layers.append(np.stack([values[entity] for entity in self.entities]))
            if layer < count:
                own = np.stack([values[entity] for entity in changed]) if changed else replaced[:0]
                self._changed.append((np.array(changed, dtype=np.int64), own))

    def _wanted(self) -> list[list[int]]:
        """For each layer (0 is left empty) the entities whose vectors of that layer take part."""
        count = self.encoder.config.layers
        wanted: list[list[int]] = [[] for _ in range(count + 1)]
        wanted[count] = self.entities
        for layer in range(count, 1, -1):
            if self.graph.removed:
                heard = np.concatenate([self.graph.row(entity).senders for entity in wanted[layer]])
                wanted[layer - 1] = np.unique(np.concatenate([heard, np.array(self.entities, dtype=np.int64)])).tolist()
            else:
                wanted[layer - 1] = self.entities
        return wanted

    def _replaced(self, layer: int) -> tuple[IntArray, FloatArray]:
        """(E,) where each entity's replaced vectors of a layer stand, -1 for none; and the (n, C, d) vectors."""
        who, values = self._changed[layer]
        place = np.full(self.encoder.graph.adjacency.num_entities, -1, dtype=np.int64)
        place[who] = np.arange(len(who))
        return place, values

    def _inputs(self, entities: Sequence[int]) -> FloatArray:
        """(n, C, d) what layer 0 is the tanh of."""
        encoder, out = self.encoder, np.zeros((len(entities), len(self.encoder.channels), self.encoder.dim))
        for c, channel in enumerate(encoder.channels):
            for at, entity in enumerate(entities):
                features = encoder.parameters[f"{channel}_features"]
                own = self.graph.neighbours(entity) if channel == "entity" else self.graph.relations(entity)
                if len(own):
                    out[at, c] = features[own].mean(axis=0, dtype=np.float64)
        return out

    def received(self, entity: int, layer: int, channel: int) -> Received:
        """The messages that make up one layer and channel of one entity (by its stacked index)."""
        if layer == 0:
            return self._received_inputs(entity, self.encoder.channels[channel])
        row, (place, replaced) = self.graph.row(entity), self._replaced(layer - 1)
        x = self.encoder.sent[layer - 1][row.senders, channel].astype(np.float64)  # (n, d)
        at = place[row.senders]
        x[at >= 0] = replaced[at[at >= 0], channel]
        vectors = self._vectors[row.units]
        if self.encoder.config.relational_projection:
            x -= 2 * (vectors * x).sum(axis=1, keepdims=True) * vectors
        scores = self._scores[layer - 1, row.units, channel]
        weights = np.exp(scores - scores.max(initial=-np.inf)) if len(scores) else scores
        weights = weights / weights.sum() if len(scores) else scores
        relations = tuple(self.graph.members(unit) for unit in row.units.tolist())
        return Received(row.senders, relations, weights, weights[:, None] * x)

    def _received_inputs(self, entity: int, channel: str) -> Received:
        own = self.graph.neighbours(entity) if channel == "entity" else self.graph.relations(entity)
        weights = np.full(len(own), 1 / max(len(own), 1))
        messages = weights[:, None] * self.encoder.parameters[f"{channel}_features"][own].astype(np.float64)
        if channel == "entity":
            return Received(own, ((),) * len(own), weights, messages)
        return Received(own[:0], tuple((one,) for one in own.tolist()), weights, messages)


def checked(parameters: Mapping[str, npt.NDArray[Any]], adjacency: Adjacency, config: EncoderConfig, channels: int) -> dict[str, Float32Array]:
    """The parameters as arrays, after a look at their shapes.

    Raises:
        ValueError: one is missing, or has another shape than graph and settings ask for.
    """
    width = config.dim * (config.layers + 1 if config.multi_hop else 1)
    shapes = {
        "entity_features": (adjacency.num_entities, config.dim),
        "relation_features": (2 * adjacency.num_relations, config.dim),
        "attention": (config.layers, channels, config.dim),
        "proxies": (channels, config.proxies, width),
        "gate_weight": (channels, width, width),
        "gate_bias": (channels, width),
    }
    for name, shape in shapes.items():
        if name not in parameters or parameters[name].shape != shape:
            found = parameters[name].shape if name in parameters else "nothing"
            raise ValueError(f"{name} should have shape {shape}, and has {found}")
    return {name: np.asarray(parameters[name]) for name in shapes}
