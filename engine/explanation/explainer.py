"""An open run that can explain: its encoder, the entities that a question names, and what else is known of a pair."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from engine.config import RunConfig
from engine.data.knowledge_graph import SIDES, Side
from engine.decoding import Decoding
from engine.errors import ConfigError, EngineError, EntityError, RunDamagedError, RunError
from engine.explanation.encoder import FrozenEncoder, FrozenVectors, Triple
from engine.explore.neighbourhood import Edge, IncidentTriples
from engine.model.adjacency import build_adjacency
from engine.runs import RunStore
from engine.runs.entities import Entity, other, short_id
from engine.runs.manifest import baseline_of
from engine.runs.tensors import finite_tensor
from engine.runs.verdicts import Verdict
from engine.runs.view import PairScore, Pool, RunView
from engine.search import BestNames, LiteralSimilarity
from engine.util.machine import is_of_machine
from engine.util.text import count, shorten, shortened

# A run opened for explanations: its frozen encoder beside its view, and what stacked indices mean.

PARAMETERS = ("entity_features", "relation_features", "attention", "proxies", "gate_weight", "gate_bias")


@dataclass(frozen=True)
class NamedTriple:
    """A triple as people see it."""

    side: Side
    head: Entity
    relation: str
    tail: Entity


class Explainer:
    """Answers about one run. Cheap to make; the encoder's weights and what every entity sends (4 E C L d bytes) are loaded on first use and kept.

    Safe to share between threads once made.
    """

    def __init__(self, view: RunView, adjacency: IncidentTriples | None = None) -> None:
        self.view = view
        self._adjacency = adjacency
        self.decodings: dict[str, Decoding] = {}

    @cached_property
    def adjacency(self) -> IncidentTriples:
        """Both graphs' incident triples, for names of edges."""
        return self._adjacency or IncidentTriples(self.view)

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Entities and relations of the source graph: where the target's begin in the stacked index space."""
        relations = self.view.run.table("relations")
        return len(self.view.graphs["source"]), int((relations["graph"] == "source").sum())

    @cached_property
    def config(self) -> RunConfig:
        """
        Raises:
            RunDamagedError: the manifest holds settings unknown to this version.
        """
        try:
            return RunConfig.from_dict(self.view.run.manifest["config"])
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            raise RunDamagedError(f"the run's settings cannot be read ({error}); train it again.") from None

    @cached_property
    def encoder(self) -> FrozenEncoder:
        """
        Raises:
            RunError: the run has no stored weights.
            RunDamagedError: weights that do not fit the run's graph and settings.
        """
        run, encoder = self.view.run, self.config.encoder
        if baseline := baseline_of(run.manifest):
            lacking = "has no encoder to explain scores or match new entities with"
            raise RunError(f"this is a run of the baseline {baseline}, which {lacking}; open a run of Dual-AMN.")
        triples, relations = run.table("triples"), run.table("relations")
        shift = np.array([self.sizes[0], self.sizes[1], self.sizes[0]], dtype=np.int64)
        stacked = triples[["head", "relation", "tail"]].to_numpy(dtype=np.int64) + shift * (triples["graph"] == "target").to_numpy()[:, None]
        count = sum(len(graph) for graph in self.view.graphs.values())
        graph = build_adjacency(stacked, count, len(relations), message_unit=encoder.message_unit, relation_input=encoder.relation_input)
        try:
            return FrozenEncoder(graph, encoder, {name: finite_tensor(run, "model", name) for name in PARAMETERS})
        except RunDamagedError:
            raise
        except (RunError, KeyError) as error:
            if is_of_machine(error):
                raise
            raise RunError("this run has no stored weights, so its scores cannot be explained; train it again, or open another run.") from None
        except ValueError as error:
            raise RunDamagedError(f"the run's weights do not fit its graph ({error}); train it again with --fresh.") from None

    @cached_property
    def value_features(self) -> pd.DataFrame:
        """The columns of the run's value rows: attributes, key, and how many entities of each graph have the value."""
        return self.view.run.table("value_features")

    @property
    def looks_at_names(self) -> bool:
        return isinstance(self.view.similarity, LiteralSimilarity)

    def names_met(self, source: int, target: int) -> str:
        """Which names of two entities are compared, where one of them has several; "" otherwise."""
        similarity = self.view.similarity
        if not isinstance(similarity, LiteralSimilarity) or not isinstance(similarity.names, BestNames) or not self.view.has("names"):
            return ""
        names = [self._names_of(side, index) for side, index in zip(SIDES, (source, target), strict=True)]
        if all(len(own) < 2 for own in names):
            return ""
        left, right = similarity.names.meeting(source, target)
        counts = f"{count(len(names[0]), 'name')} and {count(len(names[1]), 'name')}"
        return f"Of {counts}, the most similar two are compared: '{shorten(names[0][left])}' and '{shorten(names[1][right])}'."

    def _names_of(self, side: Side, index: int) -> list[str]:
        """An entity's names, in the order in which they are compared."""
        table = self.view.run.table("names", ["graph", "entity", "name"], {"graph": side, "entity": index})
        return table["name"].astype(str).tolist()

    def stacked(self, side: Side, index: int) -> int:
        """An entity's place in the stacked graph.

        Raises:
            EntityError: no such entity.
        """
        self.view.entity(side, index)
        return index if side == "source" else index + self.sizes[0]

    def place(self, stacked: int) -> tuple[Side, int]:
        """The graph of a stacked entity, and its index there."""
        return ("source", stacked) if stacked < self.sizes[0] else ("target", stacked - self.sizes[0])

    def entity(self, stacked: int) -> Entity:
        return self.view.entity(*self.place(stacked))

    @cached_property
    def _relation_names(self) -> list[str]:
        table = self.view.run.table("relations")
        return [name for side in SIDES for name in table[table["graph"] == side].sort_values("relation")["name"].astype(str).tolist()]

    def relation(self, relation: int) -> str:
        """The name of a stacked relation."""
        return self._relation_names[relation]

    def edge(self, direction: int) -> Edge:
        """A stacked directed relation, as seen from the entity that receives along it."""
        count = len(self._relation_names)
        return Edge(self._relation_names[direction % count], "out" if direction < count else "in")

    def edges(self, entity: int) -> dict[int, tuple[Edge, ...]]:
        """For each neighbour of a stacked entity, all triples between the two, seen from the entity."""
        side, index = self.place(entity)
        shift = entity - index
        return {neighbour + shift: found.edges for neighbour, found in self.adjacency.neighbours(side, index).items()}

    def named(self, triples: Iterable[Triple]) -> tuple[NamedTriple, ...]:
        """Triples in words, ordered by their indices."""
        return tuple(
            NamedTriple(self.place(one.head)[0], self.entity(one.head), self.relation(one.relation), self.entity(one.tail)) for one in sorted(triples)
        )

    def snapshot(self, source: int, target: int, removed: Iterable[Triple] = ()) -> FrozenVectors:
        """The vectors of a pair, by the indices in their graphs."""
        return self.encoder.snapshot([self.stacked("source", source), self.stacked("target", target)], removed)


def short_relation(name: str) -> str:
    """The last part of a relation's identifier, as for an entity."""
    return short_id(name)


# Which pair a user's words mean.


def resolve_pair(view: RunView, source: str, target: str) -> tuple[int, int]:
    """The indices of a pair of entities from what was typed for them: URIs, ids or labels, in either order.

    Raises:
        EntityError: one of them is unknown or ambiguous (with candidates), or both are of one graph.
    """
    if exact := _exact_pair(view, source, target):
        return exact
    first, second = _attempt(view, source, "source"), _attempt(view, target, "target")
    if isinstance(first, Entity) and isinstance(second, Entity):
        return first.index, second.index
    swapped = _attempt(view, source, "target"), _attempt(view, target, "source")
    if isinstance(swapped[0], Entity) and isinstance(swapped[1], Entity):
        return swapped[1].index, swapped[0].index
    failed, elsewhere, text = (first, swapped[0], source) if isinstance(first, EntityError) else (second, swapped[1], target)
    if isinstance(elsewhere, Entity):
        raise _one_graph(view, text, elsewhere.side)
    assert isinstance(failed, EntityError)
    raise failed


def _exact_pair(view: RunView, one: str, another: str) -> tuple[int, int] | None:
    """The pair whose identifiers these are, in either order: before anything that is only like them."""
    for source, target in ((one, another), (another, one)):
        (first, own), (second, theirs) = view.split_side(source), view.split_side(target)
        if first in (None, "source") and second in (None, "target"):
            ends = view.graphs["source"].index.get(own), view.graphs["target"].index.get(theirs)
            if ends[0] is not None and ends[1] is not None:
                return ends[0], ends[1]
    return None


def _attempt(view: RunView, text: str, side: Side) -> Entity | EntityError:
    """The entity of one graph that a text names, or why there is none; ``source:`` or ``target:`` in front must be this graph."""
    said, rest = view.split_side(text)
    if said not in (None, side):
        return EntityError(f"'{shortened(text)}' is not of the {side} graph.")
    try:
        return view.resolve(rest, side)
    except EntityError as error:
        return error


def _one_graph(view: RunView, text: str, side: Side) -> EntityError:
    missing = view.graphs[other(side)].name
    return EntityError(
        f"'{shortened(text)}' is an entity of the {side} graph, as is the other one; a pair needs one entity of each graph, and none is of {missing}."
    )


def resolve_rival(view: RunView, text: str, first: Side = "target") -> Entity:
    """The entity that a pair is to be compared with: of the graph ``first`` if it has one of this name, else of the other graph.

    Raises:
        EntityError: unknown or ambiguous.
    """
    second = other(first)
    if text not in view.graphs[first].index and text in view.graphs[second].index:
        return view.identified(text, second)
    found = _attempt(view, text, first)
    if isinstance(found, Entity):
        return found
    elsewhere = _attempt(view, text, second)
    if isinstance(elsewhere, Entity):
        return elsewhere
    return view.resolve(text)  # raises, with candidates of both graphs


# What is known of a pair besides its score: by the links, by the rounds that trained on it, and in the other runs of the same data.


@dataclass(frozen=True)
class PairRound:
    """A semi-supervised round that trained on the pair, and the score that it was chosen by."""

    number: int
    score: float


@dataclass(frozen=True)
class OtherRun:
    """The pair in another run of the same data.

    Attributes:
        pair: its scores there, among the same candidates; None where that run has none, and ``reason`` says why.
    """

    run: str
    variant: str
    seed: int
    pair: PairScore | None
    reason: str = ""


@dataclass(frozen=True)
class Context:
    """What is known of a pair besides its score.

    Attributes:
        verdict: what the known links say.
        rounds: those that trained on it, in order.
        runs: the pair in the other runs of the same data.
        selection: the rule by which rounds selected pairs, which says what their scores are; empty where the manifest does not have it.
    """

    verdict: Verdict
    rounds: tuple[PairRound, ...]
    runs: tuple[OtherRun, ...] = ()
    selection: str = ""


def context(explainer: Explainer, source: int, target: int, others: Iterable[tuple[str, RunView]] = (), pool: Pool = "all") -> Context:
    """What is known of a pair.

    Args:
        explainer: of the run.
        source, target: indices in their graphs.
        others: ids and views of other runs of the same data (:func:`sibling_runs` finds them).
        pool: the candidates that the other runs' numbers are of, so that they can be compared with the pair's own.

    Raises:
        EntityError: no such entity.
    """
    view = explainer.view
    uris = view.entity("source", source).uri, view.entity("target", target).uri
    runs = tuple(_in_run(run, other, uris, pool) for run, other in others)
    selection = str(view.run.manifest.get("config", {}).get("semi", {}).get("selection", ""))
    return Context(view.verdict(source, target), rounds_of(view, source, target), runs, selection)


def rounds_of(view: RunView, source: int, target: int) -> tuple[PairRound, ...]:
    """The semi-supervised rounds that trained on a pair."""
    if not view.has("selections"):
        return ()
    table = view.run.table("selections")
    rows = table[(table["source"] == source) & (table["target"] == target)].sort_values("round")
    return tuple(PairRound(int(number), float(score)) for number, score in zip(rows["round"], rows["score"], strict=True))


def _in_run(run: str, view: RunView, uris: tuple[str, str], pool: Pool) -> OtherRun:
    manifest = view.run.manifest
    about = run, str(manifest.get("variant", "")), int(manifest.get("seed", 0))
    try:
        places = [view.graphs[side].index.get(uri) for side, uri in zip(("source", "target"), uris, strict=True)]  # type: ignore[index]
        if places[0] is None or places[1] is None:
            return OtherRun(*about, None, "it does not have both entities.")
        return OtherRun(*about, view.pair(places[0], places[1], pool))
    except EngineError as error:
        return OtherRun(*about, None, str(error))


def sibling_runs(store: RunStore, run_id: str, fingerprint: str) -> list[tuple[str, RunView]]:
    """The other finished runs of the same data, the newest first.

    Args:
        store: where runs are kept.
        run_id: ``dataset/run_id`` of the run to leave out.
        fingerprint: of the data, from its manifest.
    """
    fitting = [
        one.id
        for one in store.list()
        if one.id != run_id and one.manifest is not None and one.manifest.get("data", {}).get("fingerprint") == fingerprint
    ]
    return [(one, RunView(store.find(one))) for one in fitting]
