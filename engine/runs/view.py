"""Looking into a finished run: find an entity, see what it matches, with the same numbers everywhere.

Embeddings stay memory-mapped: one question costs one pass over the other graph's embeddings, never an n x n array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import torch

from engine.data.knowledge_graph import SIDES, Side
from engine.errors import AmbiguousEntityError, EntityError
from engine.evaluation.calibration import LEAST_LINKS
from engine.evaluation.metrics import untested_words
from engine.runs.entities import Entity, FoldedTexts, GraphView, other, search_forms
from engine.runs.tensors import RunLike, check_numbers, damaged, has_table, run_similarity
from engine.runs.verdicts import CONTRADICTION, PROBABLE, ROLES, START_ROUND, Relation, Verdict
from engine.search import TIE_TOLERANCE, LiteralSimilarity, StructuralSimilarity, tie_tolerance
from engine.search.csls import csls_score
from engine.util.arrays import Float32Array, IntArray
from engine.util.memory import Recent
from engine.util.text import shortened

Pool = Literal["all", "test"]

PROBABILITY_COLUMNS = ("graph", "entity", "match", "probability")
"""Of the table of probabilities, what every run that has one stores."""
NEAR_MISSES = 5
UNCHECKED: Final = (
    "No held-out links check these probabilities, which can be too high where the graphs share few names or values, or little structure: "
    "review a random sample before you rely on them."
)
KEPT_ROWS, KEPT_BYTES = 12, 1 << 26
"""Rows of scores that an open run keeps: at most this number, and 64 MiB, which is four rows of a million candidates."""


def probability_word(estimated: bool) -> str:
    """What a probability is called, by whether it is estimated without held-out links."""
    return "estimated probability" if estimated else "probability"


@dataclass(frozen=True)
class Match:
    """A candidate of the other graph for some entity.

    Attributes:
        rank: 1 + the number of other candidates in the pool that score at least as high: ties never flatter.
        cosine: of the structural embeddings.
        csls: by structure, and names and values where the run looks at them.
        verdict: what the known links say of the pair.
        names: similarity of the names; None where the run has none, or either entity.
        values: similarity of other attribute values, 0 where none is shared; None where the run does not look at them.
        probability: that the pair is right, for the best match of an entity of a calibrated run.
        added: the first semi-supervised round that trained on the pair, 0 if training started from it, None otherwise.
    """

    rank: int
    entity: int
    uri: str
    label: str
    cosine: float
    csls: float
    verdict: Verdict
    names: float | None = None
    values: float | None = None
    probability: float | None = None
    added: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what the run does not have is left out."""
        named = ("rank", "uri", "label", "cosine", "csls", "verdict", "names", "values", "probability", "added")
        return {name: value for name in named if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class PairScore:
    """Everything that is shown for a pair; the same wherever it appears.

    Attributes:
        rank_from_source, rank_from_target: of the pair among all pairs of its source (target) entity in the pool.
        pool_sizes: candidates on the target side (what ``rank_from_source`` counts) and on the source side.
        names, values, probability, added: as in :class:`Match`.
        estimated: whether the probability is estimated, so that no held-out link checks it.
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
    names: float | None = None
    values: float | None = None
    probability: float | None = None
    added: int | None = None
    estimated: bool = False

    @property
    def probability_word(self) -> str:
        return probability_word(self.estimated)


@dataclass(frozen=True)
class RowScores:
    """One entity's scores with n candidates: all that are in the pool, in ascending order.

    Attributes:
        candidates: (n,) indices.
        cosine, csls: (n,) float32, a pair's values the same to the last bit from whichever end one asks.
        names: (n,) float32, NaN where either entity has no name; None where the run looks at no names.
        values: (n,) float32; None where the run looks at no values.
        tolerance: CSLS values closer than this are equal.
        zero: whether nothing is known of the entity (its embedding is a zero vector), so that no candidate is nearer than another.
    """

    candidates: IntArray
    cosine: Float32Array
    csls: Float32Array
    names: Float32Array | None = None
    values: Float32Array | None = None
    tolerance: float = TIE_TOLERANCE
    zero: bool = False

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.candidates, self.cosine, self.csls, self.names, self.values) if array is not None)

    def names_at(self, position: int) -> float | None:
        """Similarity of the names of one candidate and the query, None where there is none."""
        return None if self.names is None or np.isnan(self.names[position]) else float(self.names[position])

    def values_at(self, position: int) -> float | None:
        """Similarity of the attribute values of one candidate and the query."""
        return None if self.values is None else float(self.values[position])

    def position(self, candidate: int) -> int:
        """Position of a candidate in the arrays."""
        return int(np.searchsorted(self.candidates, candidate))

    def rank(self, position: int) -> int:
        """1 + the number of other candidates that score at least as high; as in the evaluation, ``tolerance`` apart is equal."""
        if self.zero:
            return len(self.candidates)
        return int(np.count_nonzero(self.csls >= self.csls[position] - np.float32(self.tolerance)))


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

        ``source:`` or ``target:`` before the text says which graph. Identifiers are compared as they are, blanks at their ends included; only where
        there is no such identifier, case, accents, blanks and percent-encoding do not count.

        Raises:
            EntityError: nothing fits (``candidates`` holds near misses), or several do (``candidates`` holds their URIs).
        """
        if side is None:
            side, text = self.split_side(text)
        chosen = self._chosen(side)
        words = search_forms(text)
        stages: tuple[Iterable[Entity], ...] = (
            (graph.entity(graph.index[text]) for graph in chosen if text in graph.index),
            (graph.entity(position) for graph in chosen for position in _equal(graph.plain_labels, words)),
            (graph.entity(position) for graph in chosen for position in _equal(graph.plain_ids, words)),
            (graph.entity(position) for graph in chosen for position in _equal(graph.plain_uris, words)),
        )
        for stage in stages:
            hits = list(stage)
            if len(hits) == 1:
                return hits[0]
            if hits:
                raise _ambiguous(text, hits)
        raise self._unknown(text, words[0], side)

    def identified(self, identifier: str, side: Side) -> Entity:
        """The entity that has exactly this identifier: for what is stored, where nothing may be taken for something like it.

        Raises:
            EntityError: there is none.
        """
        graph = self.graphs[side]
        if identifier not in graph.index:
            raise EntityError(f"the {side} graph has no entity with the identifier '{shortened(identifier)}'; search by its label.")
        return graph.entity(graph.index[identifier])

    def split_side(self, text: str) -> tuple[Side | None, str]:
        """A text without the ``source:`` or ``target:`` in front of it, and the side that this says; an identifier that begins so is left whole."""
        prefix, _, rest = text.lstrip().partition(":")
        if not rest or any(text in graph.index for graph in self.graphs.values()):
            return None, text
        side = next((side for side in SIDES if side == prefix), None)
        return side, text if side is None else rest

    def _chosen(self, side: Side | None) -> list[GraphView]:
        return [self.graphs[one] for one in SIDES if side in (None, one)]

    def _unknown(self, text: str, words: str, side: Side | None) -> EntityError:
        near = self.search(text, side, NEAR_MISSES)
        if not near and words:
            names = {label: graph.entity(position) for graph in self._chosen(side) for position, label in enumerate(graph.plain_labels) if label}
            alike = [label for label in names if label[0] == words[0] and abs(len(label) - len(words)) <= 2]
            near = [names[label] for label in get_close_matches(words, alike, NEAR_MISSES, cutoff=0.75)]
        where = "neither graph has" if side is None else f"the {side} graph does not have"
        hint = f" similar: {', '.join(_named(entity) for entity in near)}." if near else " search by a part of its label, ID or URI."
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
        return CONTRADICTION if any(relation != PROBABLE for relation in rivals) else "unknown"

    # Scores

    @cached_property
    def similarity(self) -> StructuralSimilarity | LiteralSimilarity:
        """What the run's scores come from; embeddings are memory-mapped."""
        return run_similarity(self.run)

    @cached_property
    def _probabilities(self) -> dict[Side, dict[tuple[int, int], float]]:
        """For each side: (entity, its best match) -> probability; empty for runs that are not calibrated."""
        if not self.has("probabilities"):
            return {side: {} for side in SIDES}
        table = self.run.table("probabilities", PROBABILITY_COLUMNS)
        check_numbers(self.run, table, ("probability",), "probabilities")
        parts = {side: table[table["graph"] == side] for side in SIDES}
        return {
            side: dict(zip(zip(part["entity"].tolist(), part["match"].tolist(), strict=True), part["probability"].tolist(), strict=True))
            for side, part in parts.items()
        }

    @cached_property
    def pairs_added(self) -> pd.DataFrame:
        """source, target, round of each pair that training used without a link: the first round that trained on it, or ``START_ROUND``."""
        columns = ["source", "target", "round"]
        tables = [self.run.table("start")[columns[:2]].assign(round=START_ROUND)] if self.has("start") else []
        tables += [self.run.table("selections")[columns]] if self.has("selections") else []
        if not tables:
            return pd.DataFrame(columns=columns, dtype="int64")
        return pd.concat(tables).sort_values("round", kind="stable").drop_duplicates(columns[:2], ignore_index=True).astype("int64")

    @cached_property
    def _added(self) -> dict[tuple[int, int], int]:
        """(source, target) -> the first round that trained on the pair, ``START_ROUND`` where training started from it."""
        table = self.pairs_added
        return dict(zip(zip(table["source"].tolist(), table["target"].tolist(), strict=True), table["round"].tolist(), strict=True))

    @cached_property
    def _added_with(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for source, target in self._added:
            found.setdefault(source, []).append(target)
        return found

    def added_with(self, source: int) -> Sequence[int]:
        """The targets of the pairs of a source entity that training started from or that semi-supervised rounds trained on."""
        return self._added_with.get(source, ())

    def has(self, table: str) -> bool:
        """Whether the run stores such a table; runs of older versions lack some."""
        return has_table(self.run, table)

    @property
    def stored_fit(self) -> Mapping[str, Any]:
        """How the run's probabilities were fitted, as it was stored; empty in runs that store nothing of it.

        Raises:
            RunDamagedError: it cannot be read.
        """
        stored = self.run.json("calibration") if "calibration.json" in self.run.manifest.get("files", {}) else {}
        return dict(stored.get("fit") or {})

    @property
    def why_no_probabilities(self) -> str:
        """Sentences for a run that has no probabilities, as its training gave them.

        Raises:
            RunDamagedError: they cannot be read.
        """
        return str(self.stored_fit.get("reason") or "This run has no probabilities.")

    @cached_property
    def unchecked_probabilities(self) -> bool:
        """Whether the run's probabilities are estimated, and not fitted on links that were held out from training.

        Raises:
            RunDamagedError: how they were fitted cannot be read.
        """
        fit = self.stored_fit
        if "estimated" in fit:
            return bool(fit["estimated"])
        return int((self.run.table("links")["role"] == "valid").sum()) < LEAST_LINKS

    @property
    def probability_word(self) -> str:
        return probability_word(self.unchecked_probabilities)

    def probability(self, side: Side, index: int, match: int) -> float | None:
        """That an entity's best match is right; None for other pairs and for runs that are not calibrated."""
        return self._probabilities[side].get((index, match))

    def added(self, source: int, target: int) -> int | None:
        """The first semi-supervised round that trained on a pair, ``START_ROUND`` if training started from it, None otherwise."""
        return self._added.get((source, target))

    def hubness(self, side: Side, pool: Pool = "all") -> Float32Array:
        """(E,) mean cosine of each entity to its k nearest in the other graph's pool; NaN where the entity is not in the pool itself."""
        terms = np.asarray(self.run.tensor("hubness", f"{side}_{pool}"))
        if not (np.isfinite(terms) if pool == "all" else ~np.isinf(terms)).all():
            raise damaged(self.run, f"the hubness of a {side} entity")
        return terms

    def in_pool(self, side: Side, index: int, pool: Pool) -> bool:
        return not np.isnan(self.hubness(side, pool)[index])

    def pool_size(self, side: Side, pool: Pool) -> int:
        return int(np.count_nonzero(~np.isnan(self.hubness(side, pool))))

    def pool_note(self, pool: Pool) -> str:
        """What belongs behind the size of a pool: the known links that were left out of the test; mostly nothing."""
        return untested_words(int(self.run.manifest.get("data", {}).get("untested", 0))) if pool == "test" else ""

    def scores(self, side: Side, index: int, pool: Pool = "all") -> RowScores:
        """An entity's scores with every entity of the other graph in the pool.

        Raises:
            EntityError: no such entity, or it is not in the pool itself.
            RunDamagedError: a score is not finite.
        """
        entity = self.entity(side, index)
        if not self.in_pool(side, index, pool):
            raise EntityError(f"'{shortened(entity.title)}' is not a test entity; show its matches among all entities instead.")
        return self._rows.get((side, index, pool), lambda: self._scored(side, index, pool))

    @cached_property
    def _rows(self) -> Recent[tuple[Side, int, Pool], RowScores]:
        """The last rows of scores: one view of a pair asks for the same few again and again."""
        return Recent(KEPT_ROWS, KEPT_BYTES, lambda row: row.nbytes)

    def _scored(self, side: Side, index: int, pool: Pool) -> RowScores:
        """One pass over the other graph's embeddings."""
        candidates = np.flatnonzero(~np.isnan(self.hubness(other(side), pool))).astype(np.int64)
        return self.scores_with(side, index, candidates, pool, zero=self.is_zero(side, index))

    def scores_with(self, side: Side, index: int, candidates: IntArray, pool: Pool = "all", *, zero: bool = False) -> RowScores:
        """An entity's scores with some entities of the pool: the same to the last bit as among all of them.

        Args:
            candidates: (n,) in ascending order.
            zero: whether nothing is known of the entity.

        Raises:
            RunDamagedError: a score is not finite.
        """
        theirs = self.hubness(other(side), pool)
        repeated = np.full(len(candidates), index, dtype=np.int64)
        left, right = (torch.from_numpy(one) for one in ((repeated, candidates) if side == "source" else (candidates, repeated)))
        names, values, similarity = None, None, self.similarity
        if isinstance(similarity, StructuralSimilarity):
            cosines = both = similarity.pairs(left, right)
        else:
            parts = similarity.parts(left, right)
            cosines, both, names = parts.structure, similarity.together(parts), parts.names.float().numpy()
            values = parts.values.float().numpy() if similarity.value_weight else None
        own = torch.tensor(float(self.hubness(side, pool)[index]))
        scores = csls_score(both, own, torch.from_numpy(theirs[candidates])).float().numpy()
        if not (finite := np.isfinite(scores)).all():
            wrong = self.entity(side, index) if not finite.any() else self.entity(other(side), int(candidates[~finite][0]))
            raise damaged(self.run, f"the embedding of {_named(wrong)} in the {wrong.side} graph (row {wrong.index})")
        return RowScores(candidates, cosines.float().numpy(), scores, names, values, tie_tolerance(similarity), zero)

    def is_zero(self, side: Side, index: int) -> bool:
        """Whether nothing is known of an entity: its embedding is a zero vector, and it has no name and no value that the run looks at."""
        one, none = torch.tensor([index]), torch.zeros(0, dtype=torch.int64)
        part = self.similarity.select(one, none) if side == "source" else self.similarity.select(none, one)
        return bool(part.zero_rows()[SIDES.index(side)].item())

    def parts(self, source: IntArray, target: IntArray) -> tuple[Float32Array, Float32Array]:
        """(P,) cosine of the embeddings and similarity of the names of given pairs; the latter NaN where an entity, or the run, has none."""
        left, right = torch.from_numpy(source), torch.from_numpy(target)
        if isinstance(self.similarity, StructuralSimilarity):
            return self.similarity.pairs(left, right).float().numpy(), np.full(len(source), np.nan, dtype=np.float32)
        found = self.similarity.parts(left, right)
        return found.structure.float().numpy(), found.names.float().numpy()

    def matches(self, side: Side, index: int, top: int = 10, pool: Pool = "all") -> list[Match]:
        """The ``top`` candidates with the highest CSLS in the pool, best first; of equals the one with the lower index first.

        None for an entity of which nothing is known: its embedding is a zero vector, and any order of candidates would be an accident.

        Raises:
            EntityError: no such entity, or it is not in the pool.
        """
        row = self.scores(side, index, pool)
        if row.zero:
            return []
        return [self.match_at(side, index, row, int(position)) for position in np.argsort(-row.csls, kind="stable")[: max(top, 0)]]

    def match_at(self, side: Side, index: int, row: RowScores, position: int) -> Match:
        """One candidate of an entity's row of scores."""
        candidate = int(row.candidates[position])
        found = self.entity(other(side), candidate)
        pair = (index, candidate) if side == "source" else (candidate, index)
        return Match(
            rank=row.rank(position),
            entity=candidate,
            uri=found.uri,
            label=found.label,
            cosine=float(row.cosine[position]),
            csls=float(row.csls[position]),
            verdict=self.verdict(*pair),
            names=row.names_at(position),
            values=row.values_at(position),
            probability=self.probability(side, index, candidate),
            added=self.added(*pair),
        )

    def pair(self, source: int, target: int, pool: Pool = "all") -> PairScore:
        """Any pair's scores and its rank from both ends.

        Raises:
            EntityError: no such entity, or one of the two is not in the pool.
        """
        forward, backward = self.scores("source", source, pool), self.scores("target", target, pool)
        place, probability = forward.position(target), self.probability("source", source, target)
        return PairScore(
            source=self.entity("source", source),
            target=self.entity("target", target),
            cosine=float(forward.cosine[place]),
            csls=float(forward.csls[place]),
            verdict=self.verdict(source, target),
            pool=pool,
            rank_from_source=forward.rank(place),
            rank_from_target=backward.rank(backward.position(source)),
            pool_sizes=(len(forward.candidates), len(backward.candidates)),
            names=forward.names_at(place),
            values=forward.values_at(place),
            probability=probability,
            added=self.added(source, target),
            estimated=probability is not None and self.unchecked_probabilities,
        )

    # Facts

    def attributes(self, side: Side, index: int) -> list[tuple[str, str]]:
        """(attribute, value) of an entity, in the data's order.

        Raises:
            EntityError: no such entity.
        """
        self.entity(side, index)
        rows = self.run.table("attributes", ["attribute", "value"], {"graph": side, "entity": index})
        return list(zip(rows["attribute"].astype(str).tolist(), rows["value"].astype(str).tolist(), strict=True))

    def well_connected(self, side: Side, count: int) -> list[Entity]:
        """The named entities with the most triples: somewhere to start."""
        graph = self.graphs[side]
        order = np.argsort(-graph.degrees, kind="stable").tolist()
        return [graph.entity(index) for index in order if graph.labels[index]][:count]

    def stored_matches(self, where: Mapping[str, object] | None = None) -> pd.DataFrame:
        """The stored best matches with their scores, or a part of them.

        Raises:
            RunDamagedError: a score is not finite, or the table cannot be read.
        """
        table = self.run.table("matches", where=where)
        check_numbers(self.run, table, ("cosine", "csls"), "matches")
        return table

    @cached_property
    def best(self) -> dict[Side, dict[int, int]]:
        """For each side: entity -> its stored best match in the pool of all entities."""
        first = self.run.table("matches", ["graph", "entity", "match"], {"rank": 1})
        sides = {side: first[first["graph"] == side] for side in SIDES}
        return {side: dict(zip(rows["entity"].tolist(), rows["match"].tolist(), strict=True)) for side, rows in sides.items()}


def _equal(texts: FoldedTexts, wanted: Iterable[str]) -> list[int]:
    return sorted({position for words in wanted for position in texts.equal(words)})


def _named(entity: Entity) -> str:
    return f"'{shortened(entity.title)}' <{shortened(entity.uri)}>"


def _ambiguous(text: str, hits: Sequence[Entity]) -> AmbiguousEntityError:
    shown = ", ".join(f"'{hit.side}:{shortened(hit.uri)}'" for hit in hits[:NEAR_MISSES])
    more = f" and {len(hits) - NEAR_MISSES} more" if len(hits) > NEAR_MISSES else ""
    return AmbiguousEntityError(
        f"'{shortened(text)}' names {len(hits)} entities; use one of {shown}{more}.", candidates=tuple(f"{hit.side}:{hit.uri}" for hit in hits)
    )
