"""A run opened for explanations: its frozen encoder beside its view, and what stacked indices mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engine.config import RunConfig
from engine.data.knowledge_graph import SIDES, Side
from engine.decoding import Decoding
from engine.errors import ConfigError, RunDamagedError, RunError
from engine.explanation.frozen import FrozenEncoder, FrozenVectors
from engine.explanation.graph import Triple
from engine.explore.neighbourhood import Edge, IncidentTriples
from engine.model.adjacency import build_adjacency
from engine.runs.entities import Entity, short_id
from engine.runs.numbers import finite_tensor
from engine.runs.view import RunView
from engine.search import StructureAndNames

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
            RunDamagedError: the manifest holds settings that this version does not know.
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
        triples, relations = run.table("triples"), run.table("relations")
        shift = np.array([self.sizes[0], self.sizes[1], self.sizes[0]], dtype=np.int64)
        stacked = triples[["head", "relation", "tail"]].to_numpy(dtype=np.int64) + shift * (triples["graph"] == "target").to_numpy()[:, None]
        count = sum(len(graph) for graph in self.view.graphs.values())
        graph = build_adjacency(stacked, count, len(relations), message_unit=encoder.message_unit, relation_input=encoder.relation_input)
        try:
            return FrozenEncoder(graph, encoder, {name: finite_tensor(run, "model", name) for name in PARAMETERS})
        except RunDamagedError:
            raise
        except (RunError, KeyError):
            raise RunError("this run has no stored weights, so its scores cannot be taken apart; train it again, or choose another run.") from None
        except ValueError as error:
            raise RunDamagedError(f"the run's weights do not fit its graph ({error}); train it again with --fresh.") from None

    @property
    def looks_at_names(self) -> bool:
        return isinstance(self.view.similarity, StructureAndNames)

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
        """A stacked directed relation, as the entity that hears along it sees it."""
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
    """The telling end of a relation's identifier, the same as of an entity's."""
    return short_id(name)
