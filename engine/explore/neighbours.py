"""Who stands around an entity, along which relations, and how much the entity listens to each of them.

A hub of thousands of neighbours costs one slice of an index. Several triples between the same two entities are one neighbour with several edges.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.analysis.entity_attention import MEAN, AttentionPart, EntityAttention
from engine.config import RunConfig
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError, RunDamagedError
from engine.runs.entities import Entity
from engine.runs.numbers import finite_tensor
from engine.runs.similarity import RunLike
from engine.runs.view import RunView
from engine.util.arrays import FloatArray, IntArray

Direction = Literal["out", "in"]
MODEL = "model.safetensors"


@dataclass(frozen=True)
class Edge:
    """One triple, seen from the entity in the middle: "out" where it is the head.

    Attributes:
        attention: the share of the entity's attention that the triple gets; None where the run stores none.
    """

    relation: str
    direction: Direction
    attention: float | None = None


@dataclass(frozen=True)
class Neighbour:
    """An adjacent entity; a self-loop makes an entity its own neighbour."""

    entity: Entity
    edges: tuple[Edge, ...]

    @property
    def attention(self) -> float | None:
        """What all its triples together get; None where the run stores no attention."""
        shares = [edge.attention for edge in self.edges if edge.attention is not None]
        return sum(shares) if shares else None


class IncidentTriples:
    """Incident triples of both graphs, grouped by entity, and the attention that entities pay to them.

    Attributes:
        attention: None where the run stores no model with attention.
    """

    def __init__(self, view: RunView) -> None:
        self.view = view
        triples, relations = view.run.table("triples"), view.run.table("relations")
        self._graphs = {side: _Incidence(_of(triples, side), _of(relations, side), len(view.graphs[side])) for side in SIDES}

    @cached_property
    def attention(self) -> EntityAttention | None:
        """
        Raises:
            RunDamagedError: the stored model does not fit the run's settings or relations.
        """
        found = _stored_attention(self.view.run)
        if found is not None and found.num_relations != sum(len(graph.names) for graph in self._graphs.values()):
            raise RunDamagedError("the run's model has other relations than its table 'relations'; train it again with --fresh.")
        return found

    def adjacent(self, side: Side, index: int) -> set[int]:
        """Every neighbour's index.

        Raises:
            EntityError: no such entity.
        """
        self.view.entity(side, index)
        return set(self._graphs[side].around(index).neighbours.tolist())

    def neighbours(self, side: Side, index: int, among: Collection[int] | None = None, part: AttentionPart = MEAN) -> dict[int, Neighbour]:
        """Every neighbour by its index, or those ``among`` some; ``part`` says which attention its edges carry.

        Raises:
            EntityError: no such entity.
            RunError: the model has no such part.
        """
        self.view.entity(side, index)
        graph = self._graphs[side]
        around = graph.around(index)
        weights = self._weights(side, around)
        shares: list[float | None] = [None] * len(around.neighbours)
        if weights is not None and self.attention is not None:
            shares = [*self.attention.part(weights, part).tolist()]
        edges: dict[int, list[Edge]] = {}
        for neighbour, relation, outgoing, share in zip(*(one.tolist() for one in around), shares, strict=True):
            if among is None or neighbour in among:
                edges.setdefault(neighbour, []).append(Edge(graph.names.get(relation, str(relation)), "out" if outgoing else "in", share))
        return {neighbour: Neighbour(self.view.entity(side, neighbour), tuple(found)) for neighbour, found in edges.items()}

    def strongest(self, side: Side, index: int) -> dict[int, int]:
        """Every neighbour's place when the strongest come first: by mean attention; without attention the named before others, then by degree.

        Whatever part of the attention is shown, places are the same, so that nothing moves when another one is chosen.
        """
        around = self._graphs[side].around(index)
        neighbours, place = np.unique(around.neighbours, return_inverse=True)
        weights = self._weights(side, around)
        graph = self.view.graphs[side]
        if weights is None or self.attention is None:
            named = np.array([bool(graph.labels[one]) for one in neighbours.tolist()], dtype=np.int64)
            order = np.lexsort((neighbours, -graph.degrees[neighbours], -named))
        else:
            shares = np.bincount(place, self.attention.part(weights, MEAN), minlength=len(neighbours)).round(9)
            order = np.lexsort((neighbours, -graph.degrees[neighbours], -shares))
        return {neighbour: rank for rank, neighbour in enumerate(neighbours[order].tolist())}

    def _weights(self, side: Side, around: _Around) -> FloatArray | None:
        """(L, C, n) attention of the entity in the middle to its n triples."""
        if self.attention is None:
            return None
        stacked = around.relations + (0 if side == "source" else len(self._graphs["source"].names))
        return self.attention.weights(around.neighbours, stacked + np.where(around.outgoing, 0, self.attention.num_relations))


class _Around(NamedTuple):
    """An entity's n incident triples, each (n,): the other end, the relation, and whether the entity is the head."""

    neighbours: IntArray
    relations: IntArray
    outgoing: npt.NDArray[np.bool_]


class _Incidence:
    """One graph's triples, twice: ordered by head and by tail."""

    def __init__(self, triples: pd.DataFrame, relations: pd.DataFrame, entities: int) -> None:
        self.names: dict[int, str] = dict(zip(relations["relation"].tolist(), relations["name"].astype(str).tolist(), strict=True))
        columns = {name: triples[name].to_numpy(dtype=np.int64) for name in ("head", "relation", "tail")}
        self._out = _Rows(columns["head"], columns["relation"], columns["tail"], entities)
        self._in = _Rows(columns["tail"], columns["relation"], columns["head"], entities)

    def around(self, index: int) -> _Around:
        (out, tails), (into, heads) = self._out.of(index), self._in.of(index)
        outgoing = np.repeat([True, False], [len(out), len(into)])
        return _Around(np.concatenate([tails, heads]), np.concatenate([out, into]), outgoing)


class _Rows:
    """(relation, entity) rows grouped by a key entity."""

    def __init__(self, keys: IntArray, relations: IntArray, entities: IntArray, size: int) -> None:
        order = np.argsort(keys, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=size))])
        self._relations, self._entities = relations[order], entities[order]

    def of(self, key: int) -> tuple[IntArray, IntArray]:
        part = slice(self._starts[key], self._starts[key + 1])
        return self._relations[part], self._entities[part]


def _of(table: pd.DataFrame, side: Side) -> pd.DataFrame:
    return table[table["graph"] == side]


def _stored_attention(run: RunLike) -> EntityAttention | None:
    """The attention of a run's model, None where it stores none or has no layers.

    Raises:
        RunDamagedError: its shapes do not fit the run's settings.
    """
    if MODEL not in run.manifest.get("files", {}):
        return None
    try:
        config = RunConfig.from_dict({"encoder": run.manifest["config"].get("encoder", {})}).encoder  # its other settings do not matter here
        if not config.layers:
            return None
        return EntityAttention(config, finite_tensor(run, "model", "relation_features"), finite_tensor(run, "model", "attention"))
    except (ConfigError, KeyError, ValueError) as error:
        raise RunDamagedError(f"the run's model does not fit its settings ({error}); train it again with --fresh.") from None
