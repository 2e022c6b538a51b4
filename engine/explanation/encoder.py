"""The encoder with frozen weights, evaluated for a few entities at a time, on the run's graph or on one that lacks some triples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from engine.config import EncoderConfig
from engine.explanation.kernels import mean_of_rows, messages_of_rows
from engine.model.adjacency import Adjacency, Csr
from engine.model.dual_amn import CHANNELS
from engine.model.proxies import proxy_parts, unit_rows
from engine.util.arrays import Float32Array, FloatArray, IntArray, row_starts
from engine.util.threads import spread

# The stacked graph of a run, whole or without some of its triples.


class Triple(NamedTuple):
    """Head, relation and tail in the stacked index space: the target graph's entities and relations follow the source's."""

    head: int
    relation: int
    tail: int


class Entry(NamedTuple):
    """One incoming edge of an entity: a neighbour and a directed relation (r at r's head, r + R at its tail)."""

    neighbour: int
    direction: int


class Row(NamedTuple):
    """The messages of one entity: n neighbours, and the unit of each message."""

    senders: IntArray  # (n,)
    units: IntArray  # (n,)


class StackedGraph:
    """An adjacency with what explanations ask of it."""

    def __init__(self, adjacency: Adjacency, config: EncoderConfig) -> None:
        self.adjacency = adjacency
        self.by_triple = config.message_unit == "triple"
        self.opposite = config.relation_input == "opposite"

    @cached_property
    def unit_of(self) -> dict[tuple[int, ...], int]:
        """The directed relations of a unit, ascending -> the unit."""
        return {self.members(unit): unit for unit in range(self.adjacency.num_units)}

    def members(self, unit: int) -> tuple[int, ...]:
        """The directed relations that a unit averages, ascending."""
        return tuple(row_of(self.adjacency.members, unit).tolist())

    def flipped(self, direction: int) -> int:
        """The same relation, seen from its other end."""
        count = self.adjacency.num_relations
        return direction - count if direction >= count else direction + count

    def row(self, entity: int) -> Row:
        part = slice(*self.adjacency.messages.offsets[entity : entity + 2].tolist())
        return Row(self.adjacency.messages.columns[part].astype(np.int64), self.adjacency.units[part].astype(np.int64))

    def entries(self, entity: int) -> list[Entry]:
        """All incoming edges of an entity: each of its triples once, a self-loop from both of its ends."""
        row = self.row(entity)
        return [Entry(j, direction) for j, u in zip(row.senders.tolist(), row.units.tolist(), strict=True) for direction in self.members(u)]

    def triple(self, entity: int, entry: Entry) -> Triple:
        """The triple behind an incoming edge."""
        count = self.adjacency.num_relations
        if entry.direction < count:
            return Triple(entity, entry.direction, entry.neighbour)
        return Triple(entry.neighbour, entry.direction - count, entity)

    def triples(self, entity: int) -> list[Triple]:
        """The distinct triples at an entity, in the order of its neighbours."""
        return list(dict.fromkeys(self.triple(entity, entry) for entry in self.entries(entity)))


class EditedGraph:
    """A graph without some of its triples. Only the rows of their ends are rebuilt: all others are unchanged.

    Attributes:
        endpoints: the ends of the removed triples, ascending.
        extra: the directed relations of units that the whole graph does not have (what is left of parallel triples), numbered from its S on.
    """

    def __init__(self, whole: StackedGraph, removed: Iterable[Triple] = ()) -> None:
        self.whole = whole
        self.removed = frozenset(removed)
        self.endpoints = sorted({end for triple in self.removed for end in (triple.head, triple.tail)})
        self.extra: list[tuple[int, ...]] = []
        self._entries = {entity: self._remaining(entity) for entity in self.endpoints}
        self._rows = {entity: self.built(entries) for entity, entries in self._entries.items()}

    def _remaining(self, entity: int) -> list[Entry]:
        return [entry for entry in self.whole.entries(entity) if self.whole.triple(entity, entry) not in self.removed]

    def built(self, entries: list[Entry]) -> Row:
        """The messages that these incoming edges make."""
        if self.whole.by_triple:
            return Row(*np.array(entries, dtype=np.int64).reshape(-1, 2).T)
        together: dict[int, list[int]] = {}
        for neighbour, direction in entries:
            together.setdefault(neighbour, []).append(direction)
        units = [self._unit(tuple(sorted(directions))) for directions in together.values()]
        return Row(np.array(list(together), dtype=np.int64), np.array(units, dtype=np.int64))

    def _unit(self, members: tuple[int, ...]) -> int:
        if members in self.whole.unit_of:
            return self.whole.unit_of[members]
        if members not in self.extra:
            self.extra.append(members)
        return self.whole.adjacency.num_units + self.extra.index(members)

    def members(self, unit: int) -> tuple[int, ...]:
        """The directed relations that a unit averages, ascending."""
        beyond = unit - self.whole.adjacency.num_units
        return self.whole.members(unit) if beyond < 0 else self.extra[beyond]

    def is_edited(self, entity: int) -> bool:
        """Whether the entity lost a triple."""
        return entity in self._rows

    def row(self, entity: int) -> Row:
        """The messages that an entity receives."""
        return self._rows[entity] if entity in self._rows else self.whole.row(entity)

    def neighbours(self, entity: int) -> IntArray:
        """(n,) the entity itself and its distinct neighbours, ascending: the input of its entity channel."""
        if entity not in self._entries:
            return row_of(self.whole.adjacency.neighbours, entity)
        return np.array(sorted({entity, *(entry.neighbour for entry in self._entries[entity])}), dtype=np.int64)

    def relations(self, entity: int) -> IntArray:
        """(n,) the distinct directed relations of an entity, ascending: the input of its relation channel."""
        if entity not in self._entries:
            return row_of(self.whole.adjacency.relations, entity)
        received = {entry.direction for entry in self._entries[entity]}
        return np.array(sorted(self.whole.flipped(one) for one in received) if self.whole.opposite else sorted(received), dtype=np.int64)


def row_of(csr: Csr, row: int) -> IntArray:
    """The columns of one row."""
    return csr.columns[csr.offsets[row] : csr.offsets[row + 1]].astype(np.int64)


# The encoder with frozen weights, evaluated for a few entities at a time, on the run's graph or on one that lacks some triples.
#
# :class:`FrozenEncoder` holds the weights and what every entity sends at each layer. A :class:`FrozenVectors` has the vectors of a few entities, in
# float64: where triples were removed, it recomputes exactly what depends on them and reaches these entities, and takes everything else as it is.


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

    def units_with(self, extra: Sequence[tuple[int, ...]]) -> tuple[FloatArray, FloatArray]:
        """(S + n, d) unit vectors and (L, S + n, C) attention scores, those of n further units behind the graph's own.

        Args:
            extra: the directed relations of each further unit.
        """
        if not extra:
            return self.vectors, self.scores
        offsets = row_starts([len(members) for members in extra])
        more = self._unit_vectors(offsets, np.array([one for members in extra for one in members], dtype=np.int64))
        return np.concatenate([self.vectors, more]), np.concatenate([self.scores, self._attention_scores(more)], axis=1)

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
        """(n, C, d) a layer (from 1) of n entities that receive ``rows``, before its tanh; ``replaced`` changes some of the layer below."""
        offsets = row_starts([len(row.senders) for row in rows])
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

    An entity's layer changes with the layer below of its neighbours, and where its own row changed. Of all that changes, only what the n entities
    depend on, directly or over others, is computed.

    Attributes:
        entities: (n,) stacked indices.
        layers: L + 1 arrays (n, C, d), after tanh.
        hidden: (n, C, D) multi-hop embeddings.
        final: (n, C, D) after proxies and gate.
    """

    def __init__(self, encoder: FrozenEncoder, entities: Sequence[int], graph: EditedGraph) -> None:
        self.encoder, self.graph, self.entities = encoder, graph, list(entities)
        self._vectors, self._scores = encoder.units_with(graph.extra)
        self._changed: list[tuple[IntArray, FloatArray]] = []  # for each layer below: who sends something else, and what
        self.layers = [np.tanh(self._inputs(self.entities))]
        self._evaluate()
        parts = self.layers if encoder.config.multi_hop else self.layers[-1:]
        self.hidden: FloatArray = np.concatenate(parts, axis=2)
        self.final = encoder.finished(self.hidden)

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
                received = np.concatenate([self.graph.row(entity).senders for entity in wanted[layer]])
                wanted[layer - 1] = np.unique(np.concatenate([received, np.array(self.entities, dtype=np.int64)])).tolist()
            else:
                wanted[layer - 1] = self.entities
        return wanted

    def _replaced(self, layer: int) -> tuple[IntArray, FloatArray]:
        """(E,) row of each entity's replaced vectors of a layer, -1 for none; and the (n, C, d) vectors."""
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
