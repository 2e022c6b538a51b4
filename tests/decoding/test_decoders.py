"""Every decoder against brute force on tiny tables, and what must hold of all of them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding import (
    DECODERS,
    NONE,
    AssignmentDecoder,
    CslsDecoder,
    Decoding,
    MutualDecoder,
    SinkhornDecoder,
    StableDecoder,
    find_candidates,
    get_decoder,
    log_plan,
)
from engine.decoding.one_to_one import dense_assignment, sparse_assignment
from engine.errors import ConfigError, TrainingError
from engine.search import TIE_TOLERANCE, StructuralSimilarity
from tests.decoding.cases import Array, from_copies, from_table, pools, tables
from tests.effort import examples
from tests.reference import csls as csls_reference
from tests.reference import sinkhorn as reference


@pytest.fixture(params=sorted(DECODERS))
def decoder(request: pytest.FixtureRequest) -> str:
    """The name of each registered decoder in turn."""
    return str(request.param)


def matched(decoding: Decoding) -> dict[int, int]:
    """Source -> target of a one-to-one decoding, which must look the same from both ends."""
    forward, backward = decoding.predicted("source"), decoding.predicted("target")
    pairs = {i: int(j) for i, j in enumerate(forward) if j != NONE}
    assert pairs == {int(i): j for j, i in enumerate(backward) if i != NONE}
    return pairs


def total(table: Array, pairs: dict[int, int]) -> float:
    return float(sum(np.float64(np.float32(table[i, j])) for i, j in pairs.items()))


def best_total(table: Array) -> float:
    """Of all ways to match every entity of the smaller side."""
    rows = table if len(table) <= table.shape[1] else table.T
    exact = rows.astype(np.float32).astype(np.float64)
    return max(sum(exact[i, j] for i, j in enumerate(chosen)) for chosen in permutations(range(rows.shape[1]), len(rows)))


# All decoders


@given(table=tables(), name=st.sampled_from(sorted(DECODERS)), top=st.sampled_from([None, 1, 2]))
@settings(max_examples=examples(150), deadline=None)
def test_a_decoding_is_well_formed(table: Array, name: str, top: int | None) -> None:
    candidates = from_table(table, top)
    chosen = get_decoder(name)
    decoding = chosen.decode(candidates)
    pairs = set(zip(candidates.sources.tolist(), candidates.targets.tolist(), strict=True))
    for side, size in (("source", table.shape[0]), ("target", table.shape[1])):
        predicted = decoding.predicted(side)  # type: ignore[arg-type]
        assert predicted.shape == (size,)
        for entity, other in enumerate(predicted.tolist()):
            ids, scores = decoding.ranking(side, entity)  # type: ignore[arg-type]
            assert (np.diff(scores) <= 0).all()
            assert len(set(ids.tolist())) == len(ids)
            if other != NONE:
                assert ((entity, other) if side == "source" else (other, entity)) in pairs
                assert scores[ids.tolist().index(other)] == scores[0]
    if chosen.one_to_one:
        matched(decoding)
    if not chosen.abstains and not chosen.one_to_one:
        assert (decoding.predicted("source") != NONE).all()


def test_the_same_candidates_give_the_same_decoding(decoder: str) -> None:
    candidates = from_copies(60, 50, noise=1.0)
    first, second = (get_decoder(decoder).decode(candidates) for _ in range(2))
    np.testing.assert_array_equal(first.scores, second.scores)
    for side in ("source", "target"):
        np.testing.assert_array_equal(first.predicted(side), second.predicted(side))  # type: ignore[arg-type]


def test_clear_counterparts_are_found(decoder: str) -> None:
    decoding = get_decoder(decoder).decode(from_copies(80, 80, noise=0.1, top=10))
    np.testing.assert_array_equal(decoding.predicted("source"), np.arange(80))
    np.testing.assert_array_equal(decoding.predicted("target"), np.arange(80))


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (2, 3)])
def test_tiny_pools(decoder: str, n: int, m: int) -> None:
    decoding = get_decoder(decoder).decode(from_copies(n, m, top=100))
    assert decoding.predicted("source").shape == (n,)
    assert decoding.predicted("target").shape == (m,)
    if min(n, m) == 0:
        assert not len(decoding.pairs())
    else:
        assert len(decoding.pairs()) >= 1


def test_an_entity_without_candidates_gets_none(decoder: str) -> None:
    candidates = from_table([[0.9, 0.1, 0.2], [0.3, 0.8, 0.1], [0.2, 0.1, 0.7]])
    decoding = get_decoder(decoder).decode(candidates.kept((candidates.sources != 1) & (candidates.targets != 2)))
    assert decoding.predicted("source")[1] == NONE
    assert decoding.predicted("target")[2] == NONE
    assert decoding.predicted("source")[0] == 0


def test_constant_scores_are_no_hits(decoder: str) -> None:
    """Where candidates are indistinguishable, equal indices must not count as hits."""
    count = 200
    candidates = from_table(np.full((count, count), 0.5))
    decoding = get_decoder(decoder).decode(candidates)
    right = candidates.sources == candidates.targets
    ranks = decoding.ranks("source", np.arange(count), right)
    assert (ranks == 1).mean() < 0.05


def test_unknown_decoder() -> None:
    with pytest.raises(ConfigError, match="choose one of csls, mutual, stable"):
        get_decoder("hungry")


# One by one


@given(table=tables())
@settings(max_examples=examples(60), deadline=None)
def test_csls_takes_the_largest_and_mutual_what_agrees_without_a_tie(table: Array) -> None:
    candidates = from_table(table)
    nearest = CslsDecoder().decode(candidates)
    np.testing.assert_array_equal(nearest.predicted("source"), table.astype(np.float32).argmax(axis=1))
    np.testing.assert_array_equal(nearest.predicted("target"), table.astype(np.float32).argmax(axis=0))
    expected = {}
    for i, j in np.ndindex(*table.shape):
        rivals = [*np.delete(table[i], j), *np.delete(table[:, j], i)]
        if all(table[i, j] > rival + TIE_TOLERANCE for rival in rivals):
            expected[i] = j
    assert matched(MutualDecoder().decode(candidates)) == expected


@given(table=tables())
@settings(max_examples=examples(60), deadline=None)
def test_a_stable_matching_has_no_blocking_pair(table: Array) -> None:
    pairs = matched(StableDecoder().decode(from_table(table)))
    assert len(pairs) == min(table.shape)
    partners = {j: i for i, j in pairs.items()}
    for i, j in np.ndindex(*table.shape):
        happier_source = i not in pairs or table[i, j] > table[i, pairs[i]]
        happier_target = j not in partners or table[i, j] > table[partners[j], j]
        assert not (happier_source and happier_target)


@given(table=tables(5))
@settings(max_examples=examples(60), deadline=None)
def test_the_assignment_is_the_best_of_all(table: Array) -> None:
    candidates = from_table(table)
    for solve in (dense_assignment, sparse_assignment):
        positions = solve(candidates)
        pairs = dict(zip(candidates.sources[positions].tolist(), candidates.targets[positions].tolist(), strict=True))
        assert len(pairs) == len(positions) == min(table.shape)
        assert total(table, pairs) == pytest.approx(best_total(table), abs=1e-6)


def test_an_assignment_on_lists_leaves_out_who_has_no_candidate_left() -> None:
    """Both rows list only the first column: one of them must go without."""
    table = np.array([[0.9, -5.0, -5.0], [0.8, -5.0, -5.0]])
    candidates = from_table(table)
    decoding = AssignmentDecoder().decode(candidates.kept(candidates.csls > -1))
    assert matched(decoding) == {0: 0}


def test_an_assignment_on_lists_is_nearly_the_one_on_all_pairs() -> None:
    whole, lists = (from_copies(120, 100, noise=1.2, top=top) for top in (120, 25))
    assert len(lists) < len(whole) / 2
    dense, sparse = (AssignmentDecoder().decode(candidates) for candidates in (whole, lists))
    reached, possible = (decoding.candidates.csls[decoding.pairs()].sum() for decoding in (sparse, dense))
    assert len(sparse.pairs()) == 100
    assert possible - 0.01 <= reached <= possible + 1e-3


@given(table=tables(), temperature=st.sampled_from([0.02, 0.1, 1.0]), rounds=st.integers(1, 10))
@settings(max_examples=examples(60), deadline=None)
def test_sinkhorn_equals_the_dense_twin(table: Array, temperature: float, rounds: int) -> None:
    table = (table / 8).astype(np.float32).astype(np.float64)  # within what a dense matrix can hold without underflow
    candidates = from_table(table)
    weights = np.exp(log_plan(candidates, temperature, rounds).astype(np.float64)).reshape(table.shape)
    np.testing.assert_allclose(weights, reference.plan(table, temperature, rounds), rtol=2e-4, atol=1e-7)


@given(table=tables(), top=st.integers(1, 3), temperature=st.sampled_from([1e-4, 0.02, 1.0]), rounds=st.integers(1, 40))
@settings(max_examples=examples(60), deadline=None)
def test_sinkhorn_on_lists_equals_the_one_with_logarithms(table: Array, top: int, temperature: float, rounds: int) -> None:
    """Also where weights differ by more than a number can hold, and where no plan has the sums that are asked for."""
    candidates = from_table(table, top)
    similarity = np.full(table.shape, -np.inf)
    similarity[candidates.sources, candidates.targets] = candidates.similarity / np.float32(temperature)
    expected = reference.log_plan(similarity, rounds)[candidates.sources, candidates.targets]
    np.testing.assert_allclose(log_plan(candidates, temperature, rounds), expected, rtol=1e-5, atol=1e-4)


def test_sinkhorn_on_lists_is_nearly_the_one_on_all_pairs() -> None:
    source, target = pools(150, 150)
    similarity = StructuralSimilarity(source, target)
    cosines = csls_reference.cosine_matrix(source.double().numpy(), target.double().numpy())
    dense = reference.plan(cosines, 0.02, 10)
    decoding = SinkhornDecoder().decode(find_candidates(similarity, top=40))
    assert not decoding.candidates.complete
    sparse = np.zeros_like(dense)
    sparse[decoding.candidates.sources, decoding.candidates.targets] = np.exp(decoding.scores)
    np.testing.assert_allclose(sparse, dense, atol=0.01)
    np.testing.assert_array_equal(decoding.predicted("target"), dense.argmax(axis=0))


def test_sinkhorn_does_not_overflow() -> None:
    scores = log_plan(from_table([[100.0, -100.0], [-100.0, 100.0]]), temperature=0.001)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(np.exp(scores[[0, 3]]), 1.0)


def test_sinkhorn_resolves_what_the_nearest_leaves_ambiguous() -> None:
    """Both sources are nearest to the first target; only one of them has another choice."""
    decoding = SinkhornDecoder().decode(from_table([[0.90, 0.10], [0.88, 0.80]]))
    assert decoding.predicted("source").tolist() == [0, 1]


@pytest.mark.parametrize(("temperature", "rounds"), [(0.0, 10), (-1.0, 10), (float("nan"), 10), (0.02, 0)])
def test_sinkhorn_settings_are_checked(temperature: float, rounds: int) -> None:
    with pytest.raises(ConfigError, match="temperature above 0"):
        SinkhornDecoder(temperature, rounds).decode(from_table([[1.0]]))


# Ranks


@given(table=tables(), name=st.sampled_from(["csls", "sinkhorn"]))
@settings(max_examples=examples(60), deadline=None)
def test_ranks_count_ties_against_us(table: Array, name: str) -> None:
    candidates = from_table(table)
    decoding = get_decoder(name).decode(candidates)
    count = min(table.shape)
    right = candidates.sources == candidates.targets
    scores = decoding.scores.reshape(table.shape).astype(np.float64)
    expected = [1 + sum(scores[i, j] >= scores[i, i] - decoding.tolerance for j in range(table.shape[1]) if j != i) for i in range(count)]
    assert decoding.ranks("source", np.arange(count), right).tolist() == expected


def test_no_counterpart_comes_first_where_a_decoder_abstains() -> None:
    candidates = from_table([[0.9, 0.2], [0.8, 0.1]])  # target 0 prefers source 0, so source 1 gets none
    decoding = MutualDecoder().decode(candidates)
    right = candidates.sources == candidates.targets
    assert decoding.predicted("source").tolist() == [0, NONE]
    assert decoding.ranks("source", np.array([0, 1]), right).tolist() == [1, 3]


def test_a_decided_pair_comes_first_in_both_lists() -> None:
    candidates = from_table([[0.90, 0.85], [0.88, 0.10]])
    decoding = AssignmentDecoder().decode(candidates)
    assert matched(decoding) == {0: 1, 1: 0}
    assert decoding.ranking("source", 0)[0].tolist() == [1, 0]
    assert decoding.ranking("target", 0)[0].tolist() == [1, 0]


# Candidates


@pytest.mark.parametrize(("n", "m", "top"), [(30, 20, 5), (20, 30, 5), (6, 4, 100), (1, 1, 1)])
def test_lists_hold_the_best_of_either_side(n: int, m: int, top: int) -> None:
    source, target = pools(n, m)
    candidates = find_candidates(StructuralSimilarity(source, target), 3, top)
    scores = csls_reference.csls_matrix(source.double().numpy(), target.double().numpy(), 3)
    of_rows = {(i, int(j)) for i in range(n) for j in np.argsort(-scores[i])[:top]}
    expected = of_rows | {(int(i), j) for j in range(m) for i in np.argsort(-scores[:, j])[:top]}
    found = list(zip(candidates.sources.tolist(), candidates.targets.tolist(), strict=True))
    assert found == sorted(expected)
    np.testing.assert_allclose(candidates.csls, [scores[pair] for pair in found], atol=1e-5)
    assert candidates.complete == (len(expected) == n * m)


def test_bad_candidates_are_reported() -> None:
    source, target = pools(5, 5)
    with pytest.raises(ConfigError, match="at least 1; got 0"):
        find_candidates(StructuralSimilarity(source, target), top=0)
    source[2, 3] = torch.nan
    with pytest.raises(TrainingError, match="not finite"):
        find_candidates(StructuralSimilarity(source, target))


def test_lists_of_both_sides_are_the_same_pairs() -> None:
    candidates = from_copies(40, 30, top=4)
    for side, own in (("source", candidates.sources), ("target", candidates.targets)):
        lists = candidates.lists(side)  # type: ignore[arg-type]
        assert sorted(lists.edges.tolist()) == list(range(len(candidates)))
        for entity in range(candidates.shape[0 if side == "source" else 1]):
            assert set(own[lists.edges[lists.indptr[entity] : lists.indptr[entity + 1]]].tolist()) <= {entity}
