"""Matches from the facts of two graphs alone: the probabilistic fixed point of PARIS (Suchanek, Abiteboul and Senellart, VLDB 2011).

Two entities match as surely as their facts lead to matching nodes over relations that correspond and that determine them:

    P(x = x') = 1 - product over r(x, y), r'(x', y') of (1 - P(r' in r) f(r) P(y = y')) (1 - P(r in r') f'(r') P(y = y')),

where f(r) says how much y determines x by r (inverse functionality). Relations correspond as often as their facts between matched nodes coincide:

    P(r in r') = matched r(x, y) with r'(x', y') / matched r(x, y),

with a prior for relations of which little is known. Both are computed in turn until the matches no longer change. A relation read in the other
direction is a relation of its own, so one that runs the other way in the other graph is found as well. Values may be nodes: they match where they are
equal.

Unlike PARIS, an entity keeps only a counterpart that it is itself the best counterpart of, where neither of the two has an equal alternative; and
iteration continues for as long as matches are added, so that a few seed links reach distant parts of the graphs.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from engine.data.knowledge_graph import empty_links
from engine.decoding.fixed_point_kernels import FactArrays, TableArray, count_implied, match_entities
from engine.util.arrays import BoolArray, FloatArray, IntArray, row_pointers
from engine.util.threads import run_parts, spread

MOST_RELATIONS = 4096
"""Relations of a graph, directions counted separately, that have a correspondence of their own; rarer ones share one."""
PRIOR = 0.1
"""Probability that a relation implies another where nothing is known (PARIS's theta)."""
PRIOR_COUNT = 1.0
"""Matched facts that the prior counts for."""
LEAST_BELIEF = 0.1
"""Matches below this probability are no evidence for others."""
LEAST_EVIDENCE = 1e-3
"""What two facts must add to the probability of a match to be counted."""
MOST_FACTS = 2000
"""Of two matched nodes with more facts than this each only the strong evidence is followed."""
CANDIDATES = 2
"""Of each entity: the best, and the one that could be as good."""
TIE = 1e-5
"""Relative difference below which two scores are the same but for rounding."""
MOST_ITERATIONS = 60
SETTLED = 0.003
"""Share of the matches that may still differ from those of the iteration before, or of the one before that, at the end."""


@dataclass(frozen=True)
class Facts:
    """One graph's facts by node: entities first, then values.

    Attributes:
        num_entities: how many nodes are entities.
        num_relations: relations and attributes, one direction only.
        names: (2 x kept relations,) relation of each number that the arrays use, its direction by ``num_relations``; -1 for the rare ones together.
        arrays: of the compiled loops.
    """

    num_entities: int
    num_relations: int
    names: IntArray
    arrays: FactArrays
    reverse: IntArray = field(repr=False)

    @property
    def num_nodes(self) -> int:
        return len(self.arrays[0]) - 1

    @classmethod
    def of(cls, triples: IntArray, num_entities: int, values: IntArray | None = None, num_nodes: int | None = None) -> Facts:
        """Of a graph.

        Args:
            triples: (T, 3) head, relation, tail.
            num_entities: E.
            values: (V, 3) entity, attribute, value node; attributes are numbered on from the relations, value nodes on from the entities.
            num_nodes: E and the value nodes.
        """
        nodes = num_entities if num_nodes is None else num_nodes
        facts = triples if values is None or not len(values) else np.concatenate([triples, values])
        head, relation, tail = facts.T if len(facts) else np.zeros((3, 0), dtype=np.int64)
        relations = int(relation.max(initial=-1)) + 1
        kept, names, reverse = kept_relations(relation, relations)
        entities, neighbours = np.concatenate([head, tail]), np.concatenate([tail, head])
        kinds = np.concatenate([kept[relation], reverse[kept[relation]]])
        order = np.lexsort((kinds, neighbours, entities))
        entities, neighbours, kinds = entities[order], neighbours[order], kinds[order]
        indptr = row_pointers(entities, nodes)
        determined = determination(neighbours, kinds, entities, len(names), num_entities)
        determines = determination(entities, kinds, neighbours, len(names), num_entities)
        return cls(num_entities, relations, names, (indptr, kinds.astype(np.int64), neighbours.astype(np.int64), determined, determines), reverse)


def kept_relations(relation: IntArray, relations: int) -> tuple[IntArray, IntArray, IntArray]:
    """Numbers of the relations (outgoing), what each number names, and the number of the other direction."""
    most = MOST_RELATIONS // 2
    counts = np.bincount(relation, minlength=relations)
    common = np.sort(np.argsort(-counts, kind="stable")[: most - 1]) if relations > most else np.arange(relations)
    size = len(common) + (relations > most)
    kept = np.full(relations, size - 1, dtype=np.int64)
    kept[common] = np.arange(len(common))
    forward = np.concatenate([common, [-1]]) if relations > most else common
    names = np.concatenate([forward, np.where(forward < 0, -1, forward + relations)]).astype(np.int64)
    return kept, names, np.concatenate([np.arange(size) + size, np.arange(size)]).astype(np.int64)


def determination(by: IntArray, kinds: IntArray, what: IntArray, relations: int, num_entities: int) -> FloatArray:
    """(n,) how much each fact's node ``by`` determines the node ``what`` over its relation.

    Between entities that is the relation's inverse functionality, the same for all of its facts: distinct nodes by facts (PARIS's harmonic mean).
    A value counts by itself, by how many share it: few people are called Ada Lovelace, many are called John Smith.
    """
    _, place, counts = np.unique(by * relations + kinds, return_inverse=True, return_counts=True)
    facts = np.bincount(kinds, minlength=relations)
    distinct = np.zeros(relations)
    np.add.at(distinct, kinds, 1.0 / counts[place])
    valued = (by >= num_entities) | (what >= num_entities)
    return np.where(valued, 1.0 / counts[place], (distinct / np.maximum(facts, 1))[kinds])


@dataclass(frozen=True)
class Implications:
    """How relations correspond.

    Attributes:
        forward, backward: (R1, R2) probability that a relation of the source implies one of the target, and the other way round.
        support: (R1, R2) matched facts in which the two coincide.
    """

    forward: TableArray
    backward: TableArray
    support: TableArray


@dataclass(frozen=True)
class FixedPoint:
    """What the facts say.

    Attributes:
        pairs: (n, 2) matches that are no seed links: source and target entity.
        probabilities: (n,) of each.
    """

    pairs: IntArray
    probabilities: FloatArray


def fixed_point(
    source: Facts,
    target: Facts,
    seeds: IntArray,
    *,
    equal_values: IntArray | None = None,
    rejected: IntArray | None = None,
    pool: tuple[IntArray, IntArray] | None = None,
) -> FixedPoint:
    """Match the entities of two graphs.

    Args:
        source, target: the graphs' facts.
        seeds: (L, 2) links that are known to be right; may be empty where values give a start.
        equal_values: (n, 2) value nodes of the two graphs that are the same value.
        rejected: (n, 2) pairs that are known to be no links.
        pool: entities that may be matched besides the seed links'; None: all.
    """
    fixed = np.concatenate([seeds, empty_links() if equal_values is None else equal_values])
    free = (_free(source, seeds[:, 0], None if pool is None else pool[0]), _free(target, seeds[:, 1], None if pool is None else pool[1]))
    no_links = pair_codes(empty_links() if rejected is None else rejected, target.num_entities)
    match, belief = certain_matches(source, fixed)
    before = match[: source.num_entities]
    for _ in range(MOST_ITERATIONS):
        earlier, before = before, match[: source.num_entities]
        relations = mutual_implications(source, target, match, belief)
        chosen, probability = matched_entities(source, target, match, belief, relations, free, no_links)
        match, belief = certain_matches(source, fixed, chosen, probability)
        if settled(before, match[: source.num_entities]) or settled(earlier, match[: source.num_entities]):  # some matches may alternate for ever
            break
    found = np.flatnonzero((match[: source.num_entities] >= 0) & free[0])
    return FixedPoint(np.stack([found, match[found]], axis=1), belief[found])


def _free(facts: Facts, seeds: IntArray, pool: IntArray | None) -> BoolArray:
    """(E,) the entities that may be matched."""
    mask = np.ones(facts.num_entities, dtype=np.bool_)
    if pool is not None:
        mask[:] = False
        mask[pool] = True
    mask[seeds] = False
    return mask


def certain_matches(
    source: Facts, fixed: IntArray, chosen: IntArray | None = None, probability: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """(nodes,) the target node that each node of the source matches, -1 for none, and how surely.

    Args:
        source: whose nodes.
        fixed: (n, 2) pairs of nodes that are certain.
        chosen, probability: (E,) of the entities that are in none of them.
    """
    match, belief = np.full(source.num_nodes, -1, dtype=np.int64), np.zeros(source.num_nodes)
    if chosen is not None and probability is not None:
        match[: len(chosen)], belief[: len(chosen)] = chosen, probability
    match[fixed[:, 0]], belief[fixed[:, 0]] = fixed[:, 1], 1.0
    return match, belief


def matched_entities(
    source: Facts,
    target: Facts,
    match: IntArray,
    belief: FloatArray,
    relations: Implications,
    free: tuple[BoolArray, BoolArray],
    no_links: IntArray,
) -> tuple[IntArray, FloatArray]:
    """(E1,) the target entity that each free entity of the source matches by what its neighbours match, -1 for none, and its probability."""
    size = source.num_entities
    targets, scores = np.full((size, CANDIDATES), -1, dtype=np.int64), np.zeros((size, CANDIDATES))
    arguments = (
        *(source.arrays, target.arrays, match, belief, relations.forward, relations.backward, target.reverse),
        *(LEAST_EVIDENCE, MOST_FACTS, free, no_links, targets, scores),
    )
    claims, lock = np.zeros((2, target.num_entities)), threading.Lock()

    def match_part(start: int, stop: int) -> None:
        own = np.zeros_like(claims)
        match_entities(start, stop, *arguments, own)
        with lock:
            claims[:] = np.sort(np.concatenate([claims, own]), axis=0)[:1:-1]

    spread(match_part, size, 8 * len(source.arrays[1]))
    return unrivalled_pairs(targets, scores, claims)


def settled(before: IntArray, after: IntArray) -> bool:
    """Whether too few matches changed for another iteration."""
    return int((before != after).sum()) <= SETTLED * max(int((after >= 0).sum()), 1)


def mutual_implications(source: Facts, target: Facts, match: IntArray, belief: FloatArray) -> Implications:
    """How relations correspond by the matches of the source's nodes."""
    matched = np.flatnonzero(match >= 0)
    back, certainty = np.full(target.num_nodes, -1, dtype=np.int64), np.zeros(target.num_nodes)
    back[match[matched]], certainty[match[matched]] = matched, belief[matched]
    directions = (source, target, match, belief), (target, source, back, certainty)
    found: dict[int, tuple[TableArray, TableArray]] = {}
    run_parts(lambda direction: found.update({direction: implications(*directions[direction])}), len(directions))
    (forward, support), (backward, _) = found[0], found[1]
    return Implications(forward, np.ascontiguousarray(backward.T), support)


def implications(source: Facts, target: Facts, match: IntArray, belief: FloatArray) -> tuple[TableArray, TableArray]:
    """(R1, R2) probability that a relation of the first graph implies one of the second; and matched facts in which the two coincide."""
    coincide, whole = np.zeros((len(source.names), len(target.names)), dtype=np.float32), np.zeros(len(source.names))
    count_implied(source.arrays, target.arrays, match, belief, coincide, whole)
    return ((coincide + np.float32(PRIOR * PRIOR_COUNT)) / (whole[:, None] + PRIOR_COUNT)).astype(np.float32), coincide


def relation_implications(source: Facts, target: Facts, pairs: IntArray) -> Implications:
    """How relations correspond where the (n, 2) pairs of nodes, each node in one of them at most, are right."""
    return mutual_implications(source, target, *certain_matches(source, pairs))


def pair_codes(pairs: IntArray, num_targets: int) -> IntArray:
    """Pairs as ascending numbers."""
    codes: IntArray = np.unique(pairs[:, 0] * num_targets + pairs[:, 1]).astype(np.int64)
    return codes


def unrivalled_pairs(targets: IntArray, scores: FloatArray, claims: FloatArray) -> tuple[IntArray, FloatArray]:
    """(E1,) target of each source entity where the two are each other's best and no other is as good, else -1; and its probability.

    Args:
        targets, scores: (E1, 2 or more) of each source entity, the best first.
        claims: (2, E2) the best and the second-best score of each target.
    """
    best, score, runner = targets[:, 0], scores[:, 0], scores[:, 1]
    column = np.maximum(best, 0)
    probability = -np.expm1(-score)
    certain = score * (1 - TIE)
    kept = (best >= 0) & (probability > LEAST_BELIEF) & (certain > runner) & (certain > claims[1, column]) & (score >= claims[0, column])
    return np.where(kept, best, -1), np.where(kept, probability, 0.0)
