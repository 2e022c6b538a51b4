"""Draws of one-to-one matchings: against all matchings of small graphs, and that they find what deciding pair by pair does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding import Candidates, GraphEvidence, PropagationDecoder
from engine.decoding.base import NONE, best_pairs
from engine.decoding.matchings import Matchings
from engine.errors import ConfigError
from engine.training.semi import sure_choices
from engine.util.arrays import FloatArray, IntArray
from tests.decoding.cases import from_copies, from_table, identity
from tests.decoding.test_propagation import Triples, graph, small_graphs, twin_graphs
from tests.effort import examples
from tests.reference import graph_evidence as evidence_reference
from tests.reference import matchings as reference


def nothing(candidates: Candidates) -> IntArray:
    return np.full(candidates.shape[0], NONE, dtype=np.int64)


def exact(source: Triples, target: Triples, seeds: list[tuple[int, int]], candidates: Candidates, pools: tuple[list[int], list[int]]) -> FloatArray:
    """(P,) by going through all matchings, at the temperature of the draws."""
    pairs = [(pools[0][i], pools[1][j]) for i, j in zip(candidates.sources, candidates.targets, strict=True)]
    worth = {pair: Matchings.similarity / 2 * float(csls) for pair, csls in zip(pairs, candidates.csls, strict=True)}
    table = evidence_reference.affinity(source, target, dict.fromkeys(seeds, 1.0), 0.5, 5.0)
    together = {key: min(value, 1.0) for key, value in table.items()}
    listed = {i: [j for k, j in pairs if k == i] for i in pools[0]}
    found, whole = dict.fromkeys(pairs, 0.0), 0.0
    for matching in reference.matchings(pools[0], listed):
        chance = math.exp(reference.energy(source, target, {**matching, **dict(seeds)}, worth, together) / Matchings.temperature)
        whole += chance
        for pair in matching.items():
            found[pair] += chance
    return np.array([found[pair] for pair in pairs]) / whole


@given(source=small_graphs(), target=small_graphs(), data=st.data())
@settings(max_examples=examples(25), deadline=None)
def test_probabilities_are_those_of_all_matchings(source: tuple[Triples, int], target: tuple[Triples, int], data: st.DataObject) -> None:
    n, m = source[1], target[1]
    seeds = data.draw(st.sampled_from([[], [(0, 0)], [(n - 1, 0)]]))
    pools = [i for i in range(n) if i not in dict(seeds)], [j for j in range(m) if j not in dict(seeds).values()]
    shape = len(pools[0]), len(pools[1])
    values = data.draw(st.lists(st.sampled_from([-0.1, -0.02, 0.0, 0.05, 0.1]), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    candidates = from_table(np.array(values).reshape(shape), top=data.draw(st.sampled_from([None, 2])))
    evidence = GraphEvidence.of(graph(*source), graph(*target), np.array(seeds, dtype=np.int64))
    within = evidence.within(*(np.array(pool, dtype=np.int64) for pool in pools))
    found = Matchings(within, proposals=60_000).probabilities(candidates, nothing(candidates))
    np.testing.assert_allclose(found, exact(source[0], target[0], seeds, candidates, pools), atol=0.06)


@pytest.mark.parametrize("seed", range(6))
def test_probabilities_are_those_of_all_matchings_where_many_facts_are_shared(seed: int) -> None:
    """With values that differ a lot, so that pairs are proposed unequally often, and facts that outweigh them."""
    random = np.random.default_rng(seed)
    triples = [tuple(random.integers(0, (6, 2, 6)).tolist()) for _ in range(14)]
    source = [*triples, (0, 0, 1), (0, 1, 5)]
    pool, links = [1, 2, 3, 4, 5], [(0, 0)]
    candidates = from_table(random.choice([-0.3, 0.0, 0.1, 0.3], size=(5, 5)), top=[None, 3][seed % 2])
    evidence = GraphEvidence.of(graph(source, 6), graph(source, 6), np.array(links, dtype=np.int64)).within(np.array(pool), np.array(pool))
    expected = exact(source, source, links, candidates, (pool, pool))
    found = Matchings(evidence, proposals=200_000).probabilities(candidates, nothing(candidates), seed)
    np.testing.assert_allclose(found, expected, atol=0.03)
    assert np.ptp(expected) > 0.3


def test_hubs_are_matched_by_their_many_facts() -> None:
    each = 600  # too many to compare the facts of two hubs one by one
    triples = [(hub, 0, 2 + hub * each + at) for hub in range(2) for at in range(each)]
    triples += [(2 + at, 0, 3 + at) for at in range(each)]  # what the relation means is seen here
    whole, seeds = graph(triples, 2 + 2 * each), np.arange(2, 2 + 2 * each)
    evidence = GraphEvidence.of(whole, whole, np.stack([seeds, seeds], axis=1)).within(np.arange(2), np.arange(2))
    candidates = from_table(np.array([[-2.0, 0.2], [0.2, -2.0]]))
    found = Matchings(evidence).probabilities(candidates, nothing(candidates))
    np.testing.assert_allclose(found, [1, 0, 0, 1], atol=0.05)


SEEDS, POOL = 60, 240


def twins() -> tuple[GraphEvidence, Candidates, IntArray]:
    """Two parts of one graph, similarities that say little, and what propagation makes of them with a fifth of all links as seeds."""
    source, target = twin_graphs(SEEDS + POOL)
    pool = np.arange(SEEDS, SEEDS + POOL)
    evidence = GraphEvidence.of(source, target, identity(SEEDS)).within(pool, pool)
    candidates = from_copies(POOL, POOL, noise=1.0, top=30)
    decoding = PropagationDecoder(evidence).decode(candidates)
    agreed = np.where(np.isin(decoding.chosen_by_source, decoding.chosen_by_target), decoding.chosen_by_source, NONE)
    return evidence, candidates, agreed


def selected(candidates: Candidates, probabilities: FloatArray, threshold: float) -> IntArray:
    """Positions of the pairs that a round would take."""
    by_source, by_target = (best_pairs(lists, probabilities)[0] for lists in (candidates.by_source, candidates.by_target))
    chosen = sure_choices(by_source, by_target, probabilities, threshold)
    return chosen[chosen != NONE]


def right_of(candidates: Candidates, positions: IntArray) -> int:
    return int((candidates.sources[positions] == candidates.targets[positions]).sum())


def test_whole_matchings_find_more_than_pairs_decided_one_by_one() -> None:
    evidence, candidates, agreed = twins()
    probabilities = Matchings(evidence).probabilities(candidates, agreed)
    drawn = selected(candidates, probabilities, 0.5)
    before = agreed[agreed != NONE]
    assert right_of(candidates, drawn) > 1.4 * right_of(candidates, before)
    assert right_of(candidates, drawn) / len(drawn) > 0.75 > 0.5 > right_of(candidates, before) / len(before)


def test_probabilities_are_shares_of_one_to_one_matchings_and_the_same_again() -> None:
    evidence, candidates, agreed = twins()
    drawing = Matchings(evidence, proposals=50)
    found = drawing.probabilities(candidates, agreed, seed=3)
    for ends, size in ((candidates.sources, POOL), (candidates.targets, POOL)):
        assert (np.bincount(ends, found, minlength=size) <= 1 + 1e-9).all()
    assert np.array_equal(found, drawing.probabilities(candidates, agreed, seed=3))
    assert not np.array_equal(found, drawing.probabilities(candidates, agreed, seed=4))


def test_pools_without_candidates_have_no_probabilities() -> None:
    evidence = GraphEvidence.of(graph([(0, 0, 1)], 2), graph([(0, 0, 1)], 2), np.empty((0, 2), dtype=np.int64))
    for pool in (np.empty(0, dtype=np.int64), np.arange(2)):
        candidates = from_table(np.zeros((len(pool), len(pool)))).kept(np.zeros(len(pool) ** 2, dtype=np.bool_))
        assert not len(Matchings(evidence.within(pool, pool)).probabilities(candidates, nothing(candidates)))


def test_pairs_with_a_rival_as_probable_or_below_the_threshold_are_left_out() -> None:
    candidates = from_table(np.zeros((3, 3)))
    probabilities = np.array([0.6, 0.4, 0.0, 0.4, 0.3, 0.2, 0.0, 0.3, 0.31])
    assert selected(candidates, probabilities, 0.25).tolist() == [0, 8]
    assert selected(candidates, probabilities, 0.5).tolist() == [0]


def test_of_pairs_that_are_as_probable_an_entity_gets_one() -> None:
    assert selected(from_table(np.zeros((2, 2))), np.array([0.5, 0.5, 0.5, 0.5]), 0.3).tolist() == [0]


@pytest.mark.parametrize("wrong", [{"temperature": 0.0}, {"begin": 0.5}, {"proposals": 0}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    evidence, candidates, agreed = twins()
    with pytest.raises(ConfigError, match="temperature above 0"):
        Matchings(evidence, **wrong).probabilities(candidates, agreed)  # type: ignore[arg-type]
