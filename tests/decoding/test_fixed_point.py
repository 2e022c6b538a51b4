"""The probabilistic fixed point against a slow reference, and what it must not do."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from engine.decoding.fixed_point import PRIOR, PRIOR_COUNT, Facts, fixed_point, implications, kept_relations, relation_implications, unrivalled_pairs
from engine.decoding.fixed_point_kernels import match_entities
from engine.util.arrays import IntArray

Match = dict[int, tuple[int, float]]


def random_triples(rng: np.random.Generator, entities: int, relations: int, count: int) -> IntArray:
    rows = np.stack([rng.integers(entities, size=count), rng.integers(relations, size=count), rng.integers(entities, size=count)], axis=1)
    return np.unique(rows, axis=0).astype(np.int64)


def both_directions(triples: IntArray, relations: int) -> set[tuple[int, int, int]]:
    """(x, r, y): r from x to y; r + relations from tail to head."""
    return {(h, r, t) for h, r, t in triples.tolist()} | {(t, r + relations, h) for h, r, t in triples.tolist()}


def slow_implication(
    mine: set[tuple[int, int, int]], theirs: set[tuple[int, int, int]], match: dict[int, tuple[int, float]], r: int, s: int
) -> float:
    """P(r in s) by the definition."""
    whole = coincide = 0.0
    for x, relation, y in mine:
        if relation == r and x in match and y in match:
            weight = match[x][1] * match[y][1]
            whole += weight
            coincide += weight * ((match[x][0], s, match[y][0]) in theirs)
    return (coincide + PRIOR * PRIOR_COUNT) / (whole + PRIOR_COUNT)


def inverse_functionality(facts: set[tuple[int, int, int]], relation: int) -> float:
    """Distinct y by pairs (x, y)."""
    pairs = [(x, y) for x, r, y in facts if r == relation]
    return len({y for _, y in pairs}) / len(pairs)


@pytest.mark.parametrize("seed", range(8))
class TestAgainstTheDefinition:
    ENTITIES, RELATIONS = 12, 3

    def graphs(self, seed: int) -> tuple[IntArray, IntArray, dict[int, tuple[int, float]]]:
        rng = np.random.default_rng(seed)
        source, target = (random_triples(rng, self.ENTITIES, self.RELATIONS, 30) for _ in range(2))
        matched = rng.permutation(self.ENTITIES)[:6]
        partners = rng.permutation(self.ENTITIES)[:6]
        beliefs = rng.uniform(0.3, 1.0, 6)
        return source, target, {int(x): (int(y), float(p)) for x, y, p in zip(matched, partners, beliefs, strict=True)}

    def test_relations(self, seed: int) -> None:
        source, target, match = self.graphs(seed)
        facts = [Facts.of(triples, self.ENTITIES) for triples in (source, target)]
        targets, belief = np.full(self.ENTITIES, -1), np.zeros(self.ENTITIES)
        for x, (y, p) in match.items():
            targets[x], belief[x] = y, p
        found, _ = implications(facts[0], facts[1], targets, belief)
        sizes = [int(triples[:, 1].max()) + 1 for triples in (source, target)]
        mine, theirs = (both_directions(triples, size) for triples, size in zip((source, target), sizes, strict=True))
        expected = [[slow_implication(mine, theirs, match, r, s) for s in range(2 * sizes[1])] for r in range(2 * sizes[0])]
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_entities(self, seed: int) -> None:
        source, target, match = self.graphs(seed)
        facts = [Facts.of(triples, self.ENTITIES) for triples in (source, target)]
        sizes = [len(one.names) // 2 for one in facts]
        rng = np.random.default_rng(seed + 100)
        forward, backward = (rng.uniform(0, 1, (2 * sizes[0], 2 * sizes[1])).astype(np.float32) for _ in range(2))
        targets, belief = np.full(self.ENTITIES, -1), np.zeros(self.ENTITIES)
        for x, (y, p) in match.items():
            targets[x], belief[x] = y, p
        out, scores = np.full((self.ENTITIES, self.ENTITIES), -1), np.zeros((self.ENTITIES, self.ENTITIES))
        free = np.ones(self.ENTITIES, dtype=np.bool_), np.ones(self.ENTITIES, dtype=np.bool_)
        match_entities(
            *(0, self.ENTITIES, facts[0].arrays, facts[1].arrays, targets, belief, forward, backward, facts[1].reverse),
            *(0.0, 1000, free, np.zeros(0, dtype=np.int64), out, scores, np.zeros((2, self.ENTITIES))),
        )
        mine, theirs = (both_directions(triples, size) for triples, size in zip((source, target), sizes, strict=True))
        left: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
        for x, r, y in mine:
            if y in match:
                other, p = match[y]
                for x2, s, y2 in theirs:
                    if y2 == other:
                        left[x, x2] *= (1 - float(backward[r, s]) * inverse_functionality(mine, r) * p) * (
                            1 - float(forward[r, s]) * p * inverse_functionality(theirs, s)
                        )
        for x in range(self.ENTITIES):
            found = {int(t): 1 - float(np.exp(-score)) for t, score in zip(out[x], scores[x], strict=True) if t >= 0}
            expected = {x2: 1 - rest for (one, x2), rest in left.items() if one == x}
            assert found == pytest.approx(expected, abs=1e-6)


def test_seeds_spread_over_a_chain_and_relations_are_learned() -> None:
    """Each entity follows from its predecessor; in the other graph the relation has another number and runs the other way round."""
    size = 40
    chain = np.array([[i, 0, i + 1] for i in range(size - 1)], dtype=np.int64)
    permuted = np.random.default_rng(0).permutation(size)
    other = np.array([[permuted[i + 1], 1, permuted[i]] for i in range(size - 1)] + [[permuted[0], 0, permuted[20]]], dtype=np.int64)
    seeds = np.array([[0, permuted[0]], [1, permuted[1]], [2, permuted[2]]], dtype=np.int64)
    found = fixed_point(Facts.of(chain, size), Facts.of(other, size), seeds)
    assert dict(found.pairs.tolist()) == {i: int(permuted[i]) for i in range(3, size)}
    relations = relation_implications(Facts.of(chain, size), Facts.of(other, size), np.concatenate([seeds, found.pairs]))
    turned = relations.forward[0, 1 + 2]  # relation 1 of two, read from tail to head
    assert turned > 0.9
    assert turned > 3 * relations.forward[0, 1]


def test_no_seeds_and_no_values_give_nothing() -> None:
    triples = random_triples(np.random.default_rng(0), 20, 2, 40)
    found = fixed_point(Facts.of(triples, 20), Facts.of(triples, 20), np.zeros((0, 2), dtype=np.int64))
    assert len(found.pairs) == 0


def test_equal_counterparts_are_no_matches() -> None:
    """Two leaves of one hub cannot be distinguished from each other."""
    star = np.array([[0, 0, 1], [0, 0, 2]], dtype=np.int64)
    found = fixed_point(Facts.of(star, 3), Facts.of(star, 3), np.array([[0, 0]]))
    assert len(found.pairs) == 0


def test_rejected_pairs_and_entities_outside_of_the_pool_are_never_matched() -> None:
    chain = np.array([[i, 0, i + 1] for i in range(9)], dtype=np.int64)
    facts = Facts.of(chain, 10)
    seeds = np.array([[0, 0], [1, 1]])
    found = fixed_point(facts, facts, seeds, rejected=np.array([[4, 4]]))
    assert [4, 4] not in found.pairs.tolist()
    assert [3, 3] in found.pairs.tolist()
    pool = np.array([2, 3]), np.array([2, 3])
    assert fixed_point(facts, facts, seeds, pool=pool).pairs.tolist() == [[2, 2], [3, 3]]


@pytest.mark.parametrize("seed", range(12))
def test_exchanging_the_graphs_mirrors_the_matches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    source = random_triples(rng, 60, 4, 200)
    order = rng.permutation(60)
    target = np.stack([order[source[:, 0]], source[:, 1], order[source[:, 2]]], axis=1)[rng.uniform(size=len(source)) < 0.8]
    seeds = np.stack([np.arange(8), order[:8]], axis=1)
    there = fixed_point(Facts.of(source, 60), Facts.of(target, 60), seeds)
    back = fixed_point(Facts.of(target, 60), Facts.of(source, 60), seeds[:, ::-1])
    assert {(a, b) for a, b in there.pairs.tolist()} == {(a, b) for b, a in back.pairs.tolist()}
    assert len(there.pairs) > 10


def test_values_are_nodes_that_match() -> None:
    """No triple and no seed link: two values, one of them shared by two entities."""
    nothing = np.zeros((0, 3), dtype=np.int64)
    values = np.array([[0, 0, 3], [1, 0, 4], [2, 0, 4]], dtype=np.int64)
    facts = Facts.of(nothing, 3, values, 5)
    found = fixed_point(facts, facts, np.zeros((0, 2), dtype=np.int64), equal_values=np.array([[3, 3], [4, 4]]))
    assert found.pairs.tolist() == [[0, 0]]


def test_rare_relations_share_a_number() -> None:
    relation = np.concatenate([np.repeat(np.arange(3), 5), np.arange(3, 5000)]).astype(np.int64)
    kept, names, reverse = kept_relations(relation, 5000)
    assert len(names) == 4096
    assert (names[kept[[0, 1, 2]]] == [0, 1, 2]).all()
    assert names[kept[4999]] == -1
    assert (reverse[reverse] == np.arange(4096)).all()


def test_a_tie_between_claims_is_no_match() -> None:
    targets, scores = np.array([[0, 1], [0, -1], [2, -1]]), np.array([[2.0, 1.0], [2.0, 0.0], [1.0, 0.0]])
    chosen, probability = unrivalled_pairs(targets, scores, np.array([[2.0, 1.0, 1.0], [2.0, 0.0, 0.0]]))
    assert chosen.tolist() == [-1, -1, 2]
    assert probability[2] == pytest.approx(1 - np.exp(-1.0))


def test_implications_of_known_pairs() -> None:
    triples = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3]], dtype=np.int64)
    facts = Facts.of(triples, 4)
    found = relation_implications(facts, facts, np.stack([np.arange(4)] * 2, axis=1))
    assert found.forward[0, 0] == pytest.approx((3 + PRIOR) / 4)
    assert found.support[0, 0] == 3
    assert found.support[0, 1] == 0
