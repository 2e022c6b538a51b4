"""What stands around an entity, and which of it is aligned with what stands around a candidate.

Works from the triples alone; a hub of thousands of neighbours costs one slice of an index. Several triples between the same two entities are
one neighbour with several edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from engine.datasets.knowledge_graph import SIDES, IntArray, Side
from engine.entities import Entity, other
from engine.matching import Relation, RunView

Direction = Literal["out", "in"]
Evidence = Literal["seed link", "known validation link", "known test link", "predicted"]

EVALUATION_ONLY: frozenset[Evidence] = frozenset({"known validation link", "known test link"})
_EVIDENCE: Mapping[Relation, Evidence] = {
    "seed link": "seed link",
    "known validation link": "known validation link",
    "known test link": "known test link",
}
_STRENGTH: Mapping[Evidence, int] = {"seed link": 0, "known validation link": 1, "known test link": 1, "predicted": 2}


@dataclass(frozen=True)
class Edge:
    """One triple, seen from the entity in the middle: "out" where it is the head."""

    relation: str
    direction: Direction


@dataclass(frozen=True)
class Neighbour:
    """An adjacent entity; a self-loop makes an entity its own neighbour."""

    entity: Entity
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Neighbourhood:
    """The neighbours of an entity, the best connected first.

    Attributes:
        total: number of all neighbours; ``hidden`` of them are beyond the cap.
    """

    entity: Entity
    neighbours: tuple[Neighbour, ...]
    total: int

    @property
    def hidden(self) -> int:
        return self.total - len(self.neighbours)


@dataclass(frozen=True)
class NeighbourPair:
    """Two neighbours, one of each entity, that are aligned with each other.

    Attributes:
        evidence: how that is known. Validation and test links are for evaluation: the model has not seen them.
        mutual: for a prediction: each is the other's best match.
    """

    source: Neighbour
    target: Neighbour
    evidence: Evidence
    mutual: bool

    @property
    def evaluation_only(self) -> bool:
        return self.evidence in EVALUATION_ONLY


@dataclass(frozen=True)
class Facing:
    """Two neighbourhoods facing each other.

    Attributes:
        pairs: aligned neighbours: seed links, known links, predictions; at most ``cap``.
        source_only, target_only: the best connected of the rest, so many that each side shows at most ``cap``.
        total_pairs: all pairs, hidden ones included.
        total_source, total_target: all neighbours of each side.
    """

    source: Entity
    target: Entity
    pairs: tuple[NeighbourPair, ...]
    source_only: tuple[Neighbour, ...]
    target_only: tuple[Neighbour, ...]
    total_pairs: int
    total_source: int
    total_target: int

    @property
    def hidden_source(self) -> int:
        return self.total_source - len(self.pairs) - len(self.source_only)

    @property
    def hidden_target(self) -> int:
        return self.total_target - len(self.pairs) - len(self.target_only)

    def count(self, evidence: Evidence) -> int:
        """Shown pairs that are known in this way."""
        return sum(pair.evidence == evidence for pair in self.pairs)


class Adjacency:
    """Incident triples of both graphs, grouped by entity."""

    def __init__(self, view: RunView) -> None:
        self.view = view
        triples, relations = view.run.table("triples"), view.run.table("relations")
        self._graphs = {side: _Incidence(_of(triples, side), _of(relations, side), len(view.graphs[side])) for side in SIDES}

    def neighbours(self, side: Side, index: int) -> dict[int, tuple[Edge, ...]]:
        """Every neighbour's index and the edges to it.

        Raises:
            EntityError: no such entity.
        """
        self.view.entity(side, index)
        return self._graphs[side].around(index)

    def neighbour(self, side: Side, index: int, edges: tuple[Edge, ...]) -> Neighbour:
        return Neighbour(self.view.entity(side, index), edges)


class _Incidence:
    """One graph's triples, twice: ordered by head and by tail."""

    def __init__(self, triples: pd.DataFrame, relations: pd.DataFrame, entities: int) -> None:
        self._names: dict[int, str] = dict(zip(relations["relation"].tolist(), relations["name"].astype(str).tolist(), strict=True))
        columns = {name: triples[name].to_numpy(dtype=np.int64) for name in ("head", "relation", "tail")}
        self._out = _Rows(columns["head"], columns["relation"], columns["tail"], entities)
        self._in = _Rows(columns["tail"], columns["relation"], columns["head"], entities)

    def around(self, index: int) -> dict[int, tuple[Edge, ...]]:
        found: dict[int, list[Edge]] = {}
        directions: tuple[tuple[Direction, _Rows], ...] = (("out", self._out), ("in", self._in))
        for direction, rows in directions:
            for relation, neighbour in rows.of(index):
                found.setdefault(neighbour, []).append(Edge(self._names.get(relation, str(relation)), direction))
        return {neighbour: tuple(edges) for neighbour, edges in found.items()}


class _Rows:
    """(relation, entity) rows grouped by a key entity."""

    def __init__(self, keys: IntArray, relations: IntArray, entities: IntArray, size: int) -> None:
        order = np.argsort(keys, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=size))])
        self._relations, self._entities = relations[order], entities[order]

    def of(self, key: int) -> Iterable[tuple[int, int]]:
        part = slice(self._starts[key], self._starts[key + 1])
        return zip(self._relations[part].tolist(), self._entities[part].tolist(), strict=True)


def _of(table: pd.DataFrame, side: Side) -> pd.DataFrame:
    return table[table["graph"] == side]


def neighbourhood(adjacency: Adjacency, side: Side, index: int, cap: int = 40) -> Neighbourhood:
    """At most ``cap`` neighbours of an entity.

    Raises:
        EntityError: no such entity.
    """
    found = adjacency.neighbours(side, index)
    return Neighbourhood(adjacency.view.entity(side, index), _shown(adjacency, side, found, cap), len(found))


def facing(adjacency: Adjacency, source: int, target: int, cap: int = 40) -> Facing:
    """The neighbours of a pair, aligned where a link or the model's best matches align them; at most ``cap`` a side.

    Each neighbour is in at most one pair. Links come before predictions, mutual predictions before one-sided ones.

    Raises:
        EntityError: no such entity.
    """
    view = adjacency.view
    around: dict[Side, dict[int, tuple[Edge, ...]]] = {
        "source": adjacency.neighbours("source", source),
        "target": adjacency.neighbours("target", target),
    }
    pairs = _strongest_first(view, _aligned(view, set(around["source"]), set(around["target"])))
    paired: dict[Side, set[int]] = {"source": {pair[0] for pair in pairs}, "target": {pair[1] for pair in pairs}}
    shown = pairs[:cap]
    left = {side: {index: edges for index, edges in around[side].items() if index not in paired[side]} for side in SIDES}
    return Facing(
        source=view.entity("source", source),
        target=view.entity("target", target),
        pairs=tuple(
            NeighbourPair(
                adjacency.neighbour("source", one, around["source"][one]), adjacency.neighbour("target", two, around["target"][two]), evidence, mutual
            )
            for one, two, evidence, mutual in shown
        ),
        source_only=_shown(adjacency, "source", left["source"], cap - len(shown)),
        target_only=_shown(adjacency, "target", left["target"], cap - len(shown)),
        total_pairs=len(pairs),
        total_source=len(around["source"]),
        total_target=len(around["target"]),
    )


_Aligned = tuple[int, int, Evidence, bool]


def _aligned(view: RunView, sources: set[int], targets: set[int]) -> list[_Aligned]:
    """Disjoint pairs out of two sets of neighbours."""
    best = view.best
    links = [(one, two, _EVIDENCE.get(relation)) for one in sources for two, relation in view.counterparts("source", one).items() if two in targets]
    forward = {(one, best["source"][one]) for one in sources if best["source"].get(one) in targets}
    backward = {(best["target"][two], two) for two in targets if best["target"].get(two) in sources}
    offers: list[_Aligned] = [(one, two, evidence, True) for one, two, evidence in links if evidence]
    offers += [(one, two, "predicted", True) for one, two in forward & backward]
    offers += [(one, two, "predicted", False) for one, two in forward ^ backward]
    offers.sort(key=lambda offer: (_STRENGTH[offer[2]], not offer[3], offer[0], offer[1]))
    taken: dict[Side, set[int]] = {"source": set(), "target": set()}
    pairs = []
    for offer in offers:
        if offer[0] not in taken["source"] and offer[1] not in taken["target"]:
            taken["source"].add(offer[0])
            taken["target"].add(offer[1])
            pairs.append(offer)
    return pairs


def _strongest_first(view: RunView, pairs: list[_Aligned]) -> list[_Aligned]:
    """Links, then mutual predictions, then the rest; the less connected first: a shared rare neighbour says more than a shared hub."""
    degrees = {side: view.graphs[side].degrees for side in SIDES}
    return sorted(pairs, key=lambda pair: (_STRENGTH[pair[2]], not pair[3], int(degrees["source"][pair[0]] + degrees["target"][pair[1]])))


def _shown(adjacency: Adjacency, side: Side, found: Mapping[int, tuple[Edge, ...]], count: int) -> tuple[Neighbour, ...]:
    """The named and best connected: what an analyst recognises."""
    graph = adjacency.view.graphs[side]
    order = sorted(found, key=lambda index: (not graph.labels[index], -int(graph.degrees[index]), index))
    return tuple(adjacency.neighbour(side, index, found[index]) for index in order[: max(count, 0)])


def aligned_elsewhere(view: RunView, side: Side, index: int) -> tuple[Entity, Evidence] | None:
    """Where an unpaired neighbour goes instead: its known counterpart, else its best match; None where neither is known."""
    for counterpart, relation in view.counterparts(side, index).items():
        if evidence := _EVIDENCE.get(relation):
            return view.entity(other(side), counterpart), evidence
    best = view.best[side].get(index)
    return None if best is None else (view.entity(other(side), best), "predicted")
