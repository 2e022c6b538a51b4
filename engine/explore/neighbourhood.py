"""The neighbourhood of an entity, and which of it is aligned with the neighbourhood of a candidate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from engine.runs.entities import Entity, other
from engine.runs.tensors import RunLike, finite_tensor
from engine.runs.verdicts import Relation, Verdict
from engine.runs.view import RunView
from engine.util.arrays import FloatArray, IntArray, row_pointers
from engine.util.memory import Recent

# The neighbours of an entity, their relations, and the attention weight of each.
#
# A hub of thousands of neighbours costs one slice of an index. Several triples between the same two entities are one neighbour with several edges.

Direction = Literal["out", "in"]
MODEL = "model.safetensors"
KEPT_WEIGHTS, KEPT_BYTES = 256, 1 << 22
"""Entities of which an open run keeps the attention weights: at most this number, and 4 MiB."""


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
        self._kept_weights: Recent[tuple[Side, int], FloatArray] = Recent(KEPT_WEIGHTS, KEPT_BYTES, lambda weights: weights.nbytes)

    @cached_property
    def attention(self) -> EntityAttention | None:
        """
        Raises:
            RunDamagedError: the stored model does not fit the run's settings or relations.
        """
        found = _stored_attention(self.view.run)
        if found is not None and found.num_relations != sum(len(graph.names) for graph in self._graphs.values()):
            raise RunDamagedError("the relations of the run's model differ from its table 'relations'; train it again with --fresh.")
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
        weights = self._weights(side, index, around)
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
        weights = self._weights(side, index, around)
        graph = self.view.graphs[side]
        if weights is None or self.attention is None:
            named = np.array([bool(graph.labels[one]) for one in neighbours.tolist()], dtype=np.int64)
            order = np.lexsort((neighbours, -graph.degrees[neighbours], -named))
        else:
            shares = np.bincount(place, self.attention.part(weights, MEAN), minlength=len(neighbours)).round(9)
            order = np.lexsort((neighbours, -graph.degrees[neighbours], -shares))
        return {neighbour: rank for rank, neighbour in enumerate(neighbours[order].tolist())}

    def _weights(self, side: Side, index: int, around: _Around) -> FloatArray | None:
        """(L, C, n) attention of an entity to its n triples; one view of a pair asks for those of the same two again and again."""
        attention = self.attention
        if attention is None:
            return None

        def compute() -> FloatArray:
            stacked = around.relations + (0 if side == "source" else len(self._graphs["source"].names))
            return attention.weights(around.neighbours, stacked + np.where(around.outgoing, 0, attention.num_relations))

        return self._kept_weights.get((side, index), compute)


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
        self._starts = row_pointers(keys, size)
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
        raise RunDamagedError(f"the run's model does not match its settings ({error}); train it again with --fresh.") from None


Evidence = Literal["seed link", "added in a round", "known validation link", "known test link", "predicted"]

PER_PAIR = 3
"""Maximum number of pairs shown after another one."""

EVALUATION_ONLY: frozenset[Evidence] = frozenset({"known validation link", "known test link"})
_EVIDENCE: Mapping[Relation, Evidence] = {
    "seed link": "seed link",
    "known validation link": "known validation link",
    "known test link": "known test link",
}
_STRENGTH: Mapping[Evidence, int] = {"seed link": 0, "added in a round": 1, "known validation link": 2, "known test link": 2, "predicted": 3}


@dataclass(frozen=True)
class Neighbourhood:
    """The neighbours of an entity, the strongest first: what most attention goes to; without attention the named and best connected.

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
        evidence: how that is known, what training used before what it did not use: seed links, pairs that a semi-supervised round added (though
            a link that is kept for evaluation says the same), links kept for evaluation, best matches.
        mutual: for a prediction: each is the other's best match.
        verdict, added: what the known links say, and the first round that trained on the pair.
    """

    source: Neighbour
    target: Neighbour
    evidence: Evidence
    mutual: bool
    verdict: Verdict
    added: int | None

    @property
    def evaluation_only(self) -> bool:
        """Known by a link alone that training did not use."""
        return self.evidence in EVALUATION_ONLY


@dataclass(frozen=True)
class FarPair:
    """A pair two hops away: neighbours of two neighbours that are aligned with each other.

    Attributes:
        through: place of the pair in between in :attr:`Facing.pairs`.
        pair: its edges are those to the pair in between, seen from there.
    """

    through: int
    pair: NeighbourPair


@dataclass(frozen=True)
class Facing:
    """Two neighbourhoods facing each other.

    Attributes:
        pairs: aligned neighbours: seed links, known links, predictions, in each kind the strongest first; at most ``cap``.
        source_only, target_only: the strongest of the rest, up to ``cap`` entities per side.
        total_pairs: all pairs, hidden ones included.
        total_source, total_target: all neighbours of each side.
        far: with two hops: pairs behind ``pairs``, in their order, none twice; at most ``PER_PAIR`` behind one and ``cap`` together.
    """

    source: Entity
    target: Entity
    pairs: tuple[NeighbourPair, ...]
    source_only: tuple[Neighbour, ...]
    target_only: tuple[Neighbour, ...]
    total_pairs: int
    total_source: int
    total_target: int
    far: tuple[FarPair, ...] = ()

    @property
    def hidden_source(self) -> int:
        return self.total_source - len(self.pairs) - len(self.source_only)

    @property
    def hidden_target(self) -> int:
        return self.total_target - len(self.pairs) - len(self.target_only)

    def count(self, evidence: Evidence) -> int:
        """Shown pairs that are known in this way."""
        return sum(pair.evidence == evidence for pair in self.pairs)


@dataclass(frozen=True)
class NeighbourMatch:
    """A neighbour and where it is aligned.

    Attributes:
        counterpart, evidence: None where neither a link nor the model aligns it.
        here: the counterpart is a neighbour of the entity that is faced.
    """

    neighbour: Neighbour
    counterpart: Entity | None
    evidence: Evidence | None
    here: bool


def neighbourhood(adjacency: IncidentTriples, side: Side, index: int, cap: int = 40, part: AttentionPart = MEAN) -> Neighbourhood:
    """At most ``cap`` neighbours of an entity.

    Raises:
        EntityError: no such entity.
        RunError: the model has no such part.
    """
    found = adjacency.adjacent(side, index)
    return Neighbourhood(adjacency.view.entity(side, index), _shown(adjacency, side, index, found, cap, part), len(found))


def highest_attention(adjacency: IncidentTriples, side: Side, index: int, part: AttentionPart = MEAN) -> Neighbour | None:
    """The neighbour that gets most of an entity's attention; None without neighbours or without attention.

    Raises:
        EntityError: no such entity.
        RunError: the model has no such part.
    """
    received = [one for one in adjacency.neighbours(side, index, part=part).values() if one.attention is not None]
    return max(received, key=lambda one: one.attention or 0.0, default=None)


def facing(adjacency: IncidentTriples, source: int, target: int, cap: int = 40, hops: int = 1, part: AttentionPart = MEAN) -> Facing:
    """The neighbours of a pair, aligned where a link or the model's best matches align them; at most ``cap`` a side.

    Each neighbour is in at most one pair. Links come before predictions, mutual predictions before one-sided ones.

    Args:
        hops: 2 looks behind the pairs that are shown, too.
        part: which attention the edges carry; the order does not depend on it.

    Raises:
        EntityError: no such entity.
        RunError: the model has no such part.
    """
    around = {"source": adjacency.adjacent("source", source), "target": adjacency.adjacent("target", target)}
    centres: Mapping[Side, int] = {"source": source, "target": target}
    offers = _strongest_first(adjacency, centres, _aligned(adjacency.view, around["source"], around["target"]))
    shown = offers[:cap]
    left = {side: around[side] - {offer.end(side) for offer in offers} for side in SIDES}
    return Facing(
        source=adjacency.view.entity("source", source),
        target=adjacency.view.entity("target", target),
        pairs=_pairs(adjacency, centres, shown, part),
        source_only=_shown(adjacency, "source", source, left["source"], cap - len(shown), part),
        target_only=_shown(adjacency, "target", target, left["target"], cap - len(shown), part),
        total_pairs=len(offers),
        total_source=len(around["source"]),
        total_target=len(around["target"]),
        far=tuple(_far(adjacency, centres, shown, cap, part)) if hops > 1 else (),
    )


def _far(adjacency: IncidentTriples, centres: Mapping[Side, int], near: Sequence[_Aligned], cap: int, part: AttentionPart) -> Iterator[FarPair]:
    """Pairs behind each pair; every pair gets its strongest before any gets a second. What is nearer, or behind an earlier pair, is left out."""
    seen = {side: {centres[side], *(offer.end(side) for offer in near)} for side in SIDES}
    behind: list[list[_Aligned]] = []
    for between in near:
        middle = {side: between.end(side) for side in SIDES}
        around = {side: adjacency.adjacent(side, middle[side]) - seen[side] for side in SIDES}
        behind.append(_strongest_first(adjacency, middle, _aligned(adjacency.view, around["source"], around["target"]))[:PER_PAIR])
        for side in SIDES:
            seen[side].update(offer.end(side) for offer in behind[-1])
    turns = sorted((turn, through) for through, offers in enumerate(behind) for turn in range(len(offers)))[:cap]
    kept = Counter(through for _, through in turns)
    for through, between in enumerate(near):
        middle = {side: between.end(side) for side in SIDES}
        yield from (FarPair(through, pair) for pair in _pairs(adjacency, middle, behind[through][: kept[through]], part))


def standings(adjacency: IncidentTriples, side: Side, index: int, faced: int, part: AttentionPart = MEAN) -> list[NeighbourMatch]:
    """Every neighbour of an entity, the strongest first, and where each is aligned while the entity faces one of the other graph.

    Raises:
        EntityError: no such entity.
        RunError: the model has no such part.
    """
    across = other(side)
    around = {side: adjacency.adjacent(side, index), across: adjacency.adjacent(across, faced)}
    offers = _aligned(adjacency.view, around["source"], around["target"])
    here = {offer.end(side): (adjacency.view.entity(across, offer.end(across)), offer.evidence) for offer in offers}
    found = []
    for neighbour in _shown(adjacency, side, index, around[side], len(around[side]), part):
        one = neighbour.entity.index
        counterpart, evidence = here.get(one) or aligned_elsewhere(adjacency.view, side, one) or (None, None)
        found.append(NeighbourMatch(neighbour, counterpart, evidence, one in here))
    return found


class _Aligned(NamedTuple):
    """The indices of two neighbours that are aligned with each other."""

    source: int
    target: int
    evidence: Evidence
    mutual: bool

    def end(self, side: Side) -> int:
        return self.source if side == "source" else self.target


def _aligned(view: RunView, sources: set[int], targets: set[int]) -> list[_Aligned]:
    """Disjoint pairs out of two sets of neighbours."""
    best = view.best
    links = [(one, two, _EVIDENCE.get(relation)) for one in sources for two, relation in view.counterparts("source", one).items() if two in targets]
    chosen = [(one, two) for one in sources for two in view.added_with(one) if two in targets]
    forward = {(one, best["source"][one]) for one in sources if best["source"].get(one) in targets}
    backward = {(best["target"][two], two) for two in targets if best["target"].get(two) in sources}
    offers = [_Aligned(one, two, evidence, True) for one, two, evidence in links if evidence]
    offers += [_Aligned(one, two, "added in a round", True) for one, two in chosen]
    offers += [_Aligned(one, two, "predicted", True) for one, two in forward & backward]
    offers += [_Aligned(one, two, "predicted", False) for one, two in forward ^ backward]
    offers.sort(key=lambda offer: (*_kind(offer), offer.source, offer.target))
    taken: dict[Side, set[int]] = {"source": set(), "target": set()}
    pairs = []
    for offer in offers:
        if offer.source not in taken["source"] and offer.target not in taken["target"]:
            taken["source"].add(offer.source)
            taken["target"].add(offer.target)
            pairs.append(offer)
    return pairs


def _strongest_first(adjacency: IncidentTriples, centres: Mapping[Side, int], offers: list[_Aligned]) -> list[_Aligned]:
    """Links, then mutual predictions, then the rest; of each kind the highest attention weights of both entities.

    Without attention the less connected come first: a shared rare neighbour says more than a shared hub.
    """
    if adjacency.attention is None:
        one, two = (adjacency.view.graphs[side].degrees for side in SIDES)
        return sorted(offers, key=lambda offer: (*_kind(offer), int(one[offer.source] + two[offer.target])))
    source, target = (adjacency.strongest(side, centres[side]) for side in SIDES)
    return sorted(offers, key=lambda offer: (*_kind(offer), source[offer.source] + target[offer.target]))


def _kind(offer: _Aligned) -> tuple[int, bool]:
    return _STRENGTH[offer.evidence], not offer.mutual


def _pairs(adjacency: IncidentTriples, centres: Mapping[Side, int], offers: Sequence[_Aligned], part: AttentionPart) -> tuple[NeighbourPair, ...]:
    source, target = (adjacency.neighbours(side, centres[side], {offer.end(side) for offer in offers}, part) for side in SIDES)
    view = adjacency.view
    return tuple(
        NeighbourPair(source[one], target[two], evidence, mutual, view.verdict(one, two), view.added(one, two))
        for one, two, evidence, mutual in offers
    )


def _shown(adjacency: IncidentTriples, side: Side, index: int, found: Collection[int], count: int, part: AttentionPart) -> tuple[Neighbour, ...]:
    """The strongest of some neighbours."""
    places = adjacency.strongest(side, index)
    kept = sorted(found, key=places.__getitem__)[: max(count, 0)]
    neighbours = adjacency.neighbours(side, index, set(kept), part)
    return tuple(neighbours[one] for one in kept)


def aligned_elsewhere(view: RunView, side: Side, index: int) -> tuple[Entity, Evidence] | None:
    """Where an unpaired neighbour goes instead: its known counterpart, else its best match; None where neither is known."""
    for counterpart, relation in view.counterparts(side, index).items():
        if relation in _EVIDENCE:
            return view.entity(other(side), counterpart), tied(view, side, index, counterpart)
    best = view.best[side].get(index)
    return None if best is None else (view.entity(other(side), best), tied(view, side, index, best))


def tied(view: RunView, side: Side, index: int, counterpart: int) -> Evidence:
    """How it is known of two entities that belong together, the strongest first; "predicted" where nothing else ties them."""
    pair = (index, counterpart) if side == "source" else (counterpart, index)
    relation = view.counterparts(side, index).get(counterpart)
    if relation != "seed link" and view.added(*pair) is not None:
        return "added in a round"
    return _EVIDENCE.get(relation, "predicted") if relation else "predicted"


__all__ = [
    "MEAN",
    "AttentionPart",
    "Direction",
    "Edge",
    "Evidence",
    "Facing",
    "FarPair",
    "IncidentTriples",
    "Neighbour",
    "NeighbourMatch",
    "NeighbourPair",
    "Neighbourhood",
    "aligned_elsewhere",
    "facing",
    "highest_attention",
    "neighbourhood",
    "standings",
    "tied",
]
