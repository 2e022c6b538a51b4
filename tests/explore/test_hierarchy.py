"""Matches against class hierarchies: equal to the definition, cycles and empty hierarchies included, and repaired by dropping the weaker pair."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.explore.hierarchy import Contradiction, Hierarchy, contradicting_rows, contradictions, relation_kind, repaired_pairs
from tests.effort import examples

RELATIONS = ["http://www.w3.org/2000/01/rdf-schema#subClassOf", "skos:narrower", "owl:disjointWith", "partOf"]
SIZE = 6
Rows = list[tuple[int, int, int]]
triples = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, 3), st.integers(0, SIZE - 1)), max_size=12)


def hierarchy(rows: Rows) -> Hierarchy:
    return Hierarchy(np.array(rows, dtype=np.int64).reshape(-1, 3), RELATIONS)


def closure(rows: Rows) -> np.ndarray:
    """(SIZE, SIZE) whether one entity is strictly above the other, by repeated multiplication."""
    step = np.zeros((SIZE, SIZE), dtype=bool)
    for head, relation, tail in rows:
        if relation == 0:
            step[head, tail] = True
        elif relation == 1:
            step[tail, head] = True
    reach = step.copy()
    for _ in range(SIZE):
        reach |= (reach.astype(int) @ step.astype(int)) > 0
    return reach & ~reach.T


@settings(max_examples=examples(150), deadline=None)
@given(
    source=triples, target=triples, pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6, unique=True), seed=st.integers(0, 99)
)
def test_crosswise_pairs_are_those_of_the_definition(source: Rows, target: Rows, pairs: list[tuple[int, int]], seed: int) -> None:
    above = closure(source), closure(target)
    score = np.random.default_rng(seed).random(len(pairs))
    found = {"source": hierarchy(source), "target": hierarchy(target)}
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    listed = contradictions(found, ends[:, 0], ends[:, 1], score)
    crosswise = {frozenset((one.weaker, one.stronger)) for one in listed if one.reason == "crosswise"}
    expected = {
        frozenset((i, j))
        for i, j in combinations(range(len(pairs)), 2)
        for a, b in ((i, j), (j, i))
        if above[0][pairs[a][0], pairs[b][0]] and above[1][pairs[b][1], pairs[a][1]]
    }
    assert crosswise == expected
    assert all(score[one.weaker] <= score[one.stronger] for one in listed)
    kept = repaired_pairs(listed, len(pairs))
    left = contradictions(found, ends[kept, 0], ends[kept, 1], score[kept])
    assert not [one for one in left if one.reason == "crosswise"]


def test_disjoint_classes_are_not_merged() -> None:
    # source: dog < animal, fern < plant; the target declares Tier and Pflanze disjoint, and puts Farn below Tier
    source = hierarchy([(0, 0, 1), (2, 0, 3)])
    target = hierarchy([(0, 0, 1), (2, 0, 1), (1, 2, 3)])
    pairs = np.array([(0, 0), (1, 1), (2, 2), (3, 3)])
    listed = contradictions({"source": source, "target": target}, pairs[:, 0], pairs[:, 1], np.array([0.9, 0.8, 0.1, 0.7]))
    assert listed == [Contradiction("disjoint", 2, 2)]
    assert repaired_pairs(listed, 4).tolist() == [True, True, False, True]
    assert contradicting_rows(listed, 4).tolist() == [False, False, True, False]


def test_cycles_and_self_loops_contradict_nothing() -> None:
    loop = hierarchy([(0, 0, 1), (1, 0, 0), (2, 0, 2)])
    assert loop.ancestors(0) == frozenset()
    assert loop.ancestors(2) == frozenset()
    straight = hierarchy([(0, 0, 1)])
    pairs = np.array([(0, 1), (1, 0)])
    assert contradictions({"source": straight, "target": loop}, pairs[:, 0], pairs[:, 1], np.zeros(2)) == []
    assert len(contradictions({"source": straight, "target": straight}, pairs[:, 0], pairs[:, 1], np.zeros(2))) == 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [("rdfs:subClassOf", "below"), ("is_a", "below"), ("skos:broader", "below"), ("skos:narrower", "above"), ("part_of", ""), ("", "")],
)
def test_relations_of_hierarchies_are_recognised(name: str, kind: str) -> None:
    assert relation_kind(name) == kind
