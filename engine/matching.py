"""Looking into a finished run: find an entity, see what it matches, with the same numbers everywhere.

Embeddings stay memory-mapped: one question costs a matrix-vector product, never an n x n array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.datasets.knowledge_graph import IntArray, Side
from engine.entities import SIDES, Entity, GraphView, normalise, other, shortened
from engine.errors import EntityError

FloatArray = npt.NDArray[np.float32]
Pool = Literal["all", "test"]
Relation = Literal["seed link", "known validation link", "known test link", "probable pair", "unknown"]
Verdict = Literal["seed link", "known validation link", "known test link", "probable pair", "contradicts a known link", "unknown"]

ROLES: Mapping[str, Relation] = {
    "train": "seed link",
    "valid": "known validation link",
    "test": "known test link",
    "unsure": "probable pair",
}
NEAR_MISSES = 5


class RunLike(Protocol):
    """What is needed of :class:`engine.run_store.Run`."""

    @property
    def manifest(self) -> Mapping[str, Any]: ...
    def table(self, name: str) -> pd.DataFrame: ...
    def tensor(self, name: str, key: str) -> npt.NDArray[Any]: ...


@dataclass(frozen=True)
class Match:
    """A candidate of the other graph for some entity.

    Attributes:
        rank: 1 + the number of other candidates in the pool that score at least as high: ties never flatter.
        verdict: what the known links say of the pair.
    """

    rank: int
    entity: int
    uri: str
    label: str
    cosine: float
    csls: float
    verdict: Verdict


@dataclass(frozen=True)
class PairScore:
    """Everything that is shown for a pair; the same wherever it appears.

    Attributes:
        rank_from_source, rank_from_target: of the pair among all pairs of its source (target) entity in the pool.
        pool_sizes: candidates on the target side (what ``rank_from_source`` counts) and on the source side.
    """

    source: Entity
    target: Entity
    cosine: float
    csls: float
    verdict: Verdict
    pool: Pool
    rank_from_source: int
    rank_from_target: int
    pool_sizes: tuple[int, int]


class RunView:
    """A run, opened for questions. Cheap to make; what is costly is computed on first use and kept."""

    def __init__(self, run: RunLike) -> None:
        self.run = run

    @cached_property
    def graphs(self) -> dict[Side, GraphView]:
        entities = self.run.table("entities")
        names = self.run.manifest.get("data", {})
        return {side: GraphView(side, str(names.get(side, {}).get("name") or side), entities[entities["graph"] == side]) for side in SIDES}

    def entity(self, side: Side, index: int) -> Entity:
        """
        Raises:
            EntityError: no such index.
        """
        return self.graphs[side].entity(index)

    # Finding

    def search(self, text: str, side: Side | None = None, limit: int = 50) -> list[Entity]:
        """At most ``limit`` entities whose label or identifier fits the text, best first; without ``side``, of both graphs."""
        found = [(key, graph, position) for graph in self._chosen(side) for key, position in graph.find(text, limit)]
        return [graph.entity(position) for _, graph, position in sorted(found, key=lambda hit: hit[0])[:limit]]

    def resolve(self, text: str, side: Side | None = None) -> Entity:
        """The one entity that a URI, a short id or a label names, in either graph.

        ``source:`` or ``target:`` before the text says which graph.

        Raises:
            EntityError: nothing fits (``candidates`` holds near misses), or several do (``candidates`` holds their URIs).
        """
        text = text.strip()
        prefix, _, rest = text.partition(":")
        if side is None and rest and prefix in SIDES and not any(text in graph.index for graph in self.graphs.values()):
            side, text = ("source" if prefix == "source" else "target"), rest.strip()
        chosen = self._chosen(side)
        words = normalise(text)
        stages: tuple[Iterable[Entity], ...] = (
            (graph.entity(graph.index[text]) for graph in chosen if text in graph.index),
            (graph.entity(position) for graph in chosen for position in _equal(graph.plain_labels, words)),
            (graph.entity(position) for graph in chosen for position in _equal(graph.plain_ids, words)),
        )
        for stage in stages:
            hits = list(stage)
            if len(hits) == 1:
                return hits[0]
            if hits:
                raise _ambiguous(text, hits)
        raise self._unknown(text, words, side)

    def _chosen(self, side: Side | None) -> list[GraphView]:
        return [self.graphs[one] for one in SIDES if side in (None, one)]

    def _unknown(self, text: str, words: str, side: Side | None) -> EntityError:
        near = self.search(text, side, NEAR_MISSES)
        if not near and words:
            names = {label: graph.entity(position) for graph in self._chosen(side) for position, label in enumerate(graph.plain_labels) if label}
            alike = [label for label in names if label[0] == words[0] and abs(len(label) - len(words)) <= 2]
            near = [names[label] for label in get_close_matches(words, alike, NEAR_MISSES, cutoff=0.75)]
        where = "neither graph has" if side is None else f"the {side} graph does not have"
        hint = f" near it: {', '.join(_named(entity) for entity in near)}." if near else " search by a part of its label, its id or its URI."
        return EntityError(f"{where} an entity '{shortened(text)}';{hint}", candidates=tuple(entity.uri for entity in near))

    # What is known

    @cached_property
    def _known(self) -> dict[Side, dict[int, dict[int, Relation]]]:
        """For each side: entity -> its counterparts in the other graph -> what kind of link."""
        links = self.run.table("links")
        known: dict[Side, dict[int, dict[int, Relation]]] = {"source": {}, "target": {}}
        for source, target, role in zip(links["source"].tolist(), links["target"].tolist(), links["role"].tolist(), strict=True):
            relation = ROLES.get(role, "unknown")
            known["source"].setdefault(source, {})[target] = relation
            known["target"].setdefault(target, {})[source] = relation
        return known

    def counterparts(self, side: Side, index: int) -> dict[int, Relation]:
        """The entities of the other graph that a known link ties to this one; probable pairs included."""
        return self._known[side].get(index, {})

    def verdict(self, source: int, target: int) -> Verdict:
        """What the known links say of a pair. It contradicts one where either entity has another counterpart."""
        if relation := self.counterparts("source", source).get(target):
            return relation
        rivals = [*self.counterparts("source", source).values(), *self.counterparts("target", target).values()]
        return "contradicts a known link" if any(relation != "probable pair" for relation in rivals) else "unknown"

    # Scores

    @cached_property
    def _embeddings(self) -> dict[Side, FloatArray]:
        """(E, D) L2-normalised, memory-mapped, for each side."""
        return {side: self.run.tensor("embeddings", side) for side in SIDES}

    def hubness(self, side: Side, pool: Pool = "all") -> FloatArray:
        """(E,) mean cosine of each entity to its k nearest in the other graph's pool; NaN where the entity is not in the pool itself."""
        return np.asarray(self.run.tensor("hubness", f"{side}_{pool}"))

    def in_pool(self, side: Side, index: int, pool: Pool) -> bool:
        return not np.isnan(self.hubness(side, pool)[index])

    def pool_size(self, side: Side, pool: Pool) -> int:
        return int(np.count_nonzero(~np.isnan(self.hubness(side, pool))))

    def scores(self, side: Side, index: int, pool: Pool = "all") -> FloatArray:
        """(E,) CSLS of an entity with every entity of the other graph; NaN outside the pool.

        Raises:
            EntityError: the entity itself is not in the pool.
        """
        entity = self.entity(side, index)
        if not self.in_pool(side, index, pool):
            raise EntityError(f"'{shortened(entity.title)}' is not among the test entities; look at its matches among all entities.")
        across = other(side)
        cosines = self._embeddings[across] @ np.asarray(self._embeddings[side][index])  # (E,)
        return csls(cosines, self.hubness(side, pool)[index], self.hubness(across, pool))

    def matches(self, side: Side, index: int, top: int = 10, pool: Pool = "all") -> list[Match]:
        """The ``top`` candidates with the highest CSLS in the pool, best first.

        Raises:
            EntityError: no such entity, or it is not in the pool.
        """
        scores = self.scores(side, index, pool)
        inside = np.flatnonzero(~np.isnan(scores))
        kept = inside[_largest(scores[inside], top)]
        return [self._match(side, index, int(candidate), pool, scores) for candidate in kept]

    def _match(self, side: Side, index: int, candidate: int, pool: Pool, scores: FloatArray) -> Match:
        found = self.entity(other(side), candidate)
        source, target = (index, candidate) if side == "source" else (candidate, index)
        cosine, score = self._pair_score(source, target, pool)
        return Match(
            rank=rank_of(candidate, scores),
            entity=candidate,
            uri=found.uri,
            label=found.label,
            cosine=cosine,
            csls=score,
            verdict=self.verdict(source, target),
        )

    def _pair_score(self, source: int, target: int, pool: Pool) -> tuple[float, float]:
        """Cosine and CSLS of one pair, to the last bit the same from whichever end one asks; in float64, so that no digit shown is rounding."""
        one = np.asarray(self._embeddings["source"][source], dtype=np.float64)
        two = np.asarray(self._embeddings["target"][target], dtype=np.float64)
        cosine = float((one * two).sum())
        return cosine, csls(cosine, float(self.hubness("source", pool)[source]), float(self.hubness("target", pool)[target]))

    def pair(self, source: int, target: int, pool: Pool = "all") -> PairScore:
        """Any pair's scores and its rank from both ends.

        Raises:
            EntityError: no such entity, or one of the two is not in the pool.
        """
        forward, backward = self.scores("source", source, pool), self.scores("target", target, pool)
        cosine, score = self._pair_score(source, target, pool)
        return PairScore(
            source=self.entity("source", source),
            target=self.entity("target", target),
            cosine=cosine,
            csls=score,
            verdict=self.verdict(source, target),
            pool=pool,
            rank_from_source=rank_of(target, forward),
            rank_from_target=rank_of(source, backward),
            pool_sizes=(self.pool_size("target", pool), self.pool_size("source", pool)),
        )

    @cached_property
    def best(self) -> dict[Side, dict[int, int]]:
        """For each side: entity -> its stored best match in the pool of all entities."""
        table = self.run.table("matches")
        first = table[table["rank"] == 1]
        sides = {side: first[first["graph"] == side] for side in SIDES}
        return {side: dict(zip(rows["entity"].tolist(), rows["match"].tolist(), strict=True)) for side, rows in sides.items()}


Scores = TypeVar("Scores", float, FloatArray)


def csls(cosines: Scores, own: float, theirs: Scores) -> Scores:
    """2 cos - r(own) - r(theirs)."""
    return 2 * cosines - own - theirs


def rank_of(candidate: int, scores: FloatArray) -> int:
    """1 + the number of other candidates that score at least as high; NaN scores do not count."""
    return int(np.count_nonzero(scores >= scores[candidate]))


def _largest(scores: FloatArray, top: int) -> IntArray:
    """Positions of the ``top`` largest scores, largest first, earlier positions first among equals."""
    kept = min(top, len(scores))
    if kept < 1:
        return np.empty(0, dtype=np.int64)
    threshold = np.partition(scores, -kept)[-kept]
    contenders = np.flatnonzero(scores >= threshold)
    return contenders[np.argsort(-scores[contenders], kind="stable")][:kept].astype(np.int64)


def _equal(texts: Sequence[str], wanted: str) -> Iterable[int]:
    return (position for position, text in enumerate(texts) if wanted and text == wanted)


def _named(entity: Entity) -> str:
    return f"'{shortened(entity.title)}' <{shortened(entity.uri)}>"


def _ambiguous(text: str, hits: Sequence[Entity]) -> EntityError:
    shown = ", ".join(f"{hit.side}:{shortened(hit.uri)}" for hit in hits[:NEAR_MISSES])
    more = f" and {len(hits) - NEAR_MISSES} more" if len(hits) > NEAR_MISSES else ""
    return EntityError(
        f"'{shortened(text)}' names {len(hits)} entities; use one of {shown}{more}.", candidates=tuple(f"{hit.side}:{hit.uri}" for hit in hits)
    )
