"""What the two graphs say about candidate pairs: neighbours that match each other, over relations that go together.

Only incident triples are looked at, so a round costs O(candidates x degree) and no array is larger than the candidates or the affinity table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from engine.data.knowledge_graph import KnowledgeGraph
from engine.decoding.candidates import PAIRS_AT_ONCE, Candidates
from engine.decoding.kernels import IncidentArrays, agreement_of_pairs, count_relation_pairs, divide_by_expected
from engine.util.arrays import IntArray, row_pointers, row_starts
from engine.util.threads import cut, spread

FloatArray = npt.NDArray[np.float64]

MOST_RELATIONS = 4096
"""Relations per graph, each direction counted, that get an affinity of their own; rarer ones share one, so that the table stays small."""
LEAST_WEIGHT = 0.05
"""Plan weight below which a pair says nothing about its neighbours."""
TRUSTED_WEIGHT = 0.5
"""Plan weight from which a pair teaches which relations go together."""
PRIOR_COUNT = 5.0
"""Occurrences that an affinity has to outweigh: relations seen once together are no proof."""


@dataclass(frozen=True)
class Incidence:
    """What each entity of a graph is incident to: its neighbours by relation and direction.

    Attributes:
        indptr: (E + 1,) int64.
        relations: (2T,) int64, below ``num_relations``: the outgoing ones, then the incoming ones.
        neighbours: (2T,) int64.
        rarity: (2T,) 1 / sqrt(entities that have the same neighbour by the same relation): a country of birth says less than a spouse.
        norms: (E,) sums of ``rarity``.
    """

    indptr: IntArray
    relations: IntArray
    neighbours: IntArray
    rarity: FloatArray
    norms: FloatArray
    num_relations: int

    @classmethod
    def of(cls, triples: IntArray, num_entities: int) -> Incidence:
        """Of (T, 3) head, relation, tail."""
        head, relation, tail = (np.ascontiguousarray(triples[:, column]) for column in range(3))
        distinct = int(relation.max(initial=-1)) + 1
        entities, neighbours = np.concatenate([head, tail]), np.concatenate([tail, head])
        relations, kinds = frequent(np.concatenate([relation, relation + distinct]))
        order = np.argsort(entities, kind="stable")
        _, place, counts = np.unique(relations * num_entities + neighbours, return_inverse=True, return_counts=True)
        rarity = counts[place].astype(np.float64) ** -0.5
        return cls(
            row_pointers(entities, num_entities),
            relations[order],
            neighbours[order],
            rarity[order],
            np.bincount(entities, rarity, minlength=num_entities).astype(np.float64),
            kinds,
        )

    @cached_property
    def neighbourhoods(self) -> sparse.csr_array:
        """(E, E) 1 for each neighbour of each entity, by whatever relation and direction; no entity is its own."""
        count = len(self.norms)
        entities = np.repeat(np.arange(count, dtype=np.int64), np.diff(self.indptr))
        codes = np.unique((entities * count + self.neighbours)[entities != self.neighbours])
        rows, columns = np.divmod(codes, max(count, 1))
        return sparse.csr_array((np.ones(len(codes), dtype=np.float32), (rows, columns)), shape=(count, count))

    @property
    def degrees(self) -> IntArray:
        """(E,) number of incident triples; a self-loop counts twice."""
        return np.diff(self.indptr)

    @property
    def arrays(self) -> IncidentArrays:
        return self.indptr, self.relations, self.neighbours, self.rarity

    @property
    def equally_rare(self) -> IncidentArrays:
        """As if no neighbour were shared."""
        return self.indptr, self.relations, self.neighbours, np.ones_like(self.rarity)


def frequent(relations: IntArray) -> tuple[IntArray, int]:
    """Relations renumbered by frequency, all beyond ``MOST_RELATIONS`` as one; and how many numbers there are."""
    _, place, counts = np.unique(relations, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank, MOST_RELATIONS - 1)[place], min(len(counts), MOST_RELATIONS)


@dataclass(frozen=True)
class Anchors:
    """Weighted pairs of all entities that are believed to match, by source: ``targets[indptr[i]:indptr[i + 1]]``."""

    sources: IntArray
    targets: IntArray
    weights: FloatArray
    indptr: IntArray


@dataclass(frozen=True)
class GraphEvidence:
    """Both graphs, the seed links, and which entities the rows of the pools are.

    Attributes:
        source, target: of all entities of either graph.
        seeds: (L, 2) links that are known to be right.
        source_pool, target_pool: (n,), (m,) entities.
    """

    source: Incidence
    target: Incidence
    seeds: IntArray
    source_pool: IntArray
    target_pool: IntArray

    @classmethod
    def of(cls, source: KnowledgeGraph, target: KnowledgeGraph, seeds: IntArray) -> GraphEvidence:
        """With all entities as the pools."""
        incidences = [Incidence.of(graph.triples, graph.num_entities) for graph in (source, target)]
        pools = [np.arange(graph.num_entities, dtype=np.int64) for graph in (source, target)]
        return cls(incidences[0], incidences[1], np.asarray(seeds, dtype=np.int64).reshape(-1, 2), pools[0], pools[1])

    def within(self, source_pool: IntArray, target_pool: IntArray) -> GraphEvidence:
        """The same for other pools."""
        return GraphEvidence(self.source, self.target, self.seeds, source_pool, target_pool)

    @property
    def degrees(self) -> tuple[IntArray, IntArray]:
        """(n,) and (m,) number of triples of the pools' entities."""
        return self.source.degrees[self.source_pool], self.target.degrees[self.target_pool]

    @cached_property
    def _seeded(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Entities of either graph that are in a seed link."""
        masks = tuple(np.zeros(len(graph.norms), dtype=np.bool_) for graph in (self.source, self.target))
        for mask, linked in zip(masks, self.seeds.T, strict=True):
            mask[linked] = True
        return masks[0], masks[1]

    def anchors(self, candidates: Candidates, weights: FloatArray) -> Anchors:
        """Seed links, with weight 1, and the candidate pairs that weigh enough and do not contradict them."""
        kept = weights > LEAST_WEIGHT
        kept &= ~self._seeded[0][self.source_pool][candidates.sources]
        kept &= ~self._seeded[1][self.target_pool][candidates.targets]
        left, right = self.source_pool[candidates.sources[kept]], self.target_pool[candidates.targets[kept]]
        sources = np.concatenate([self.seeds[:, 0], left])
        order = np.argsort(sources, kind="stable")
        return Anchors(
            sources[order],
            np.concatenate([self.seeds[:, 1], right])[order],
            np.concatenate([np.ones(len(self.seeds)), np.minimum(weights[kept], 1.0)])[order],
            row_pointers(sources, len(self.source.norms)),
        )

    def affinity(self, anchors: Anchors) -> npt.NDArray[np.float32]:
        """(relations of the source, relations of the target) from 0 on: how often the two lead from a matched pair to another."""
        trusted = anchors.weights > TRUSTED_WEIGHT
        together = np.zeros((self.source.num_relations, self.target.num_relations), dtype=np.float32)
        alone = np.zeros(self.source.num_relations), np.zeros(self.target.num_relations)
        matched = [
            np.minimum(np.bincount(ends, anchors.weights, minlength=len(graph.norms)), 1.0)
            for ends, graph in ((anchors.sources, self.source), (anchors.targets, self.target))
        ]
        pairs = anchors.sources[trusted], anchors.targets[trusted], anchors.weights[trusted]
        graphs = self.source.equally_rare, self.target.equally_rare
        count_relation_pairs(*pairs, *graphs, lists_of(anchors), matched[0], matched[1], self._room(anchors), together, *alone)
        divide_by_expected(together, *alone, PRIOR_COUNT)
        return together

    def agreement(self, candidates: Candidates, weights: FloatArray) -> FloatArray:
        """(P,) from 0 on: how much of the two entities' neighbourhoods match, given the (P,) weights of all pairs."""
        anchors = self.anchors(candidates, weights)
        found = np.zeros(len(candidates))
        arrays = (
            *(candidates.by_source.indptr, candidates.targets, self.source_pool, self.target_pool),
            *(self.source.arrays, self.target.arrays, lists_of(anchors), self.affinity(anchors), self._room(anchors), len(self.target.norms), found),
        )
        spread(lambda start, stop: agreement_of_pairs(start, stop, *arrays), len(self.source_pool), 8 * len(candidates))
        norms = self.source.norms[self.source_pool], self.target.norms[self.target_pool]
        for part in cut(len(candidates), PAIRS_AT_ONCE):
            scale = norms[0][candidates.sources[part]] * norms[1][candidates.targets[part]]
            found[part] = np.where(scale > 0, found[part] / np.sqrt(np.where(scale > 0, scale, 1.0)), 0.0)
        return found

    def _room(self, anchors: Anchors) -> int:
        """The most matches that one source entity's neighbours have."""
        matches = np.diff(anchors.indptr)[self.source.neighbours]
        before = row_starts(matches)
        return int((before[self.source.indptr[1:]] - before[self.source.indptr[:-1]]).max(initial=0))


def lists_of(anchors: Anchors) -> tuple[IntArray, IntArray, FloatArray]:
    return anchors.indptr, anchors.targets, anchors.weights
