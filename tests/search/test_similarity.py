"""Structure, names, and both: blocks against pairs against the definition, and one score for a pair wherever it is asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from engine.errors import ConfigError, TrainingError
from engine.evaluation.metrics import evaluate_links
from engine.search import (
    INDEXES,
    LiteralSimilarity,
    NameSimilarity,
    Similarity,
    SparseSimilarity,
    StructuralSimilarity,
    UnscaledEmbeddings,
    csls_query,
    csls_topk,
    get_index,
    hubness,
    normalise_rows,
    pair_csls,
    tie_tolerance,
    true_ranks,
)
from engine.search.base import zero_term
from engine.search.tiles import tiles
from tests.effort import examples
from tests.reference.csls import unknown_lowest
from tests.reference.ranks import best_ranks
from tests.reference.similarity import csls, structure_and_names

KINDS = ("structure", "sparse", "dense and structure", "sparse and structure", "sparse and structure and values")
VALUE_WEIGHT = 0.4


def drawn_rows(n: int, width: int, rng: np.random.Generator, nameless: float) -> torch.Tensor:
    """Unit rows, about half of their values zero, and a share of rows that are all zero."""
    rows = rng.standard_normal((n, width)) * (rng.random((n, width)) < 0.5)
    rows[rng.random(n) < nameless] = 0
    return normalise_rows(torch.from_numpy(rows.astype(np.float32)))


def drawn(kind: str, n: int, m: int, seed: int = 0, weight: float = 0.7, nameless: float = 0.3) -> tuple[Similarity, np.ndarray]:
    """A similarity of each kind, and what it should be, (n, m) in float64."""
    rng = np.random.default_rng(seed)
    structure = StructuralSimilarity(drawn_rows(n, 6, rng, 0), drawn_rows(m, 6, rng, 0))
    rows = drawn_rows(n, 9, rng, nameless), drawn_rows(m, 9, rng, nameless)
    s = structure.source.double().numpy() @ structure.target.double().numpy().T
    vectors = rows[0].double().numpy(), rows[1].double().numpy()
    if kind == "structure":
        return structure, s
    as_sparse = SparseSimilarity(*(sparse.csr_array(part.numpy()) for part in rows))
    if kind == "sparse":
        return as_sparse, vectors[0] @ vectors[1].T
    names: NameSimilarity = as_sparse if kind.startswith("sparse") else StructuralSimilarity(*rows)
    both = structure_and_names(s, *vectors, weight)
    if not kind.endswith("values"):
        return LiteralSimilarity(structure, names, weight), both
    own = [0.9 * drawn_rows(size, 7, rng, 0.5).abs() for size in (n, m)]
    values = SparseSimilarity(*(sparse.csr_array(part.numpy()) for part in own))
    return LiteralSimilarity(structure, names, weight, values, VALUE_WEIGHT), both + VALUE_WEIGHT * (own[0].double() @ own[1].double().T).numpy()


def all_pairs(n: int, m: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(n).repeat_interleave(m), torch.arange(m).repeat(n)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@settings(max_examples=examples(80), deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 9),
    m=st.integers(1, 9),
    weight=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    nameless=st.sampled_from([0.0, 0.4, 1.0]),
    seed=st.integers(0, 2**16),
    data=st.data(),
)
def test_blocks_and_pairs_follow_the_definition(kind: str, n: int, m: int, weight: float, nameless: float, seed: int, data: st.DataObject) -> None:
    similarity, expected = drawn(kind, n, m, seed, weight, nameless)
    assert similarity.shape == (n, m)
    found = similarity.pairs(*all_pairs(n, m)).view(n, m)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.abs(expected).max() <= similarity.largest + 1e-6

    top, left = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, m - 1))
    rows, columns = slice(top, data.draw(st.integers(top + 1, n + 2))), slice(left, data.draw(st.integers(left + 1, m + 2)))
    part = expected[rows, columns]
    block = similarity.block(rows, columns)
    assert block.dtype == torch.float32
    np.testing.assert_allclose(block, part, atol=2e-6)
    buffer = torch.full(part.shape, torch.nan)
    assert similarity.block(rows, columns, buffer).data_ptr() == buffer.data_ptr()
    assert torch.equal(buffer, block)


def test_pairs_are_the_same_to_the_last_bit_from_both_sides_and_in_a_pool(kind: str) -> None:
    similarity, _ = drawn(kind, 30, 40)
    left, right = all_pairs(30, 40)
    whole = similarity.pairs(left, right)
    assert similarity.transposed().shape == (40, 30)
    assert torch.equal(similarity.transposed().pairs(right, left), whole)
    rows, columns = torch.tensor([3, 7, 7, 29]), torch.tensor([0, 39, 5])
    pool = similarity.select(rows, columns)
    assert pool.shape == (4, 3)
    assert torch.equal(pool.pairs(*all_pairs(4, 3)).view(4, 3), whole.view(30, 40)[rows][:, columns])
    assert torch.equal(similarity.pairs(left[17:18], right[17:18]), whole[17:18])


def test_shifts_add_up(kind: str) -> None:
    similarity, expected = drawn(kind, 8, 5)
    rows, columns = torch.linspace(-1, 1, 8), torch.linspace(0, 3, 5)
    shifted = similarity.shifted(rows, columns)
    twice = shifted.shifted(rows, columns)
    everything = slice(0, 8), slice(0, 5)
    for found, times in ((shifted, 1), (twice, 2)):
        table = expected + times * (rows.double()[:, None] + columns.double()).numpy()
        np.testing.assert_allclose(found.block(*everything), table, atol=4e-6)
        np.testing.assert_allclose(found.transposed().block(slice(0, 5), slice(0, 8)), table.T, atol=4e-6)
        np.testing.assert_allclose(found.select(torch.tensor([6]), torch.tensor([1, 2])).block(slice(0, 1), slice(0, 2)), table[6:7, 1:3], atol=4e-6)


@pytest.mark.parametrize(("n", "m", "k"), [(20, 30, 10), (4, 3, 10), (1, 1, 1)])
def test_matches_and_ranks_follow_the_definition(kind: str, n: int, m: int, k: int) -> None:
    similarity, expected = drawn(kind, n, m, seed=5)
    zeros = similarity.zero_rows()[0].numpy(), similarity.zero_rows()[1].numpy()
    scores = csls(expected, k, zeros, zero_term(similarity))
    found = csls_topk(similarity, k, 4)
    for matches, table in ((found.source_to_target, scores), (found.target_to_source, scores.T)):
        best = np.sort(table, axis=1)[:, ::-1][:, :4]
        np.testing.assert_allclose(matches.csls, best, atol=5e-6)
        np.testing.assert_allclose(np.take_along_axis(table, matches.indices.numpy(), axis=1), best, atol=5e-6)
    zero_rows, zero_columns = (part[:, None].double().numpy() for part in similarity.zero_rows())
    scores = unknown_lowest(scores, 1 - zero_rows, 1 - zero_columns)
    links = torch.stack([torch.arange(min(n, m))] * 2, dim=1)
    tolerance = tie_tolerance(similarity)
    for budget in (4, 64, 2**20):
        ranks = true_ranks(similarity, links, found.hubness, budget)
        for side, table in ((ranks.source_to_target, scores), (ranks.target_to_source, scores.T)):
            assert dict(zip(side.queries.tolist(), side.ranks.tolist(), strict=True)) == best_ranks(table, links.tolist(), tolerance)


def test_a_pair_has_the_same_scores_everywhere(kind: str) -> None:
    similarity, _ = drawn(kind, 60, 50, nameless=0.1)
    found = csls_topk(similarity, 10, 5)
    terms, matches, back = found.hubness, found.source_to_target, found.target_to_source
    pairs = torch.stack([torch.arange(60).repeat_interleave(5), matches.indices.flatten()], dim=1)
    scores = pair_csls(similarity, pairs, terms)
    assert torch.equal(scores.csls, matches.csls.flatten())
    assert torch.equal(scores.cosine, matches.cosine.flatten())

    alone = csls_query(similarity.select(torch.tensor([7]), torch.arange(50)), terms.source[7:8], terms.target, 5)
    assert torch.equal(alone.csls[0], matches.csls[7])
    assert torch.equal(alone.indices[0], matches.indices[7])
    reverse = csls_query(similarity.transposed(), terms.target, terms.source, 5)
    assert torch.equal(reverse.csls, back.csls)

    links = np.stack([np.arange(50)] * 2, axis=1)
    evaluation = evaluate_links(similarity, links, pool="all", bootstrap=0)
    assert torch.equal(evaluation.hubness.source, terms.source)
    every = csls_topk(similarity, 10, 60).source_to_target
    at = (every.indices[:50] == torch.arange(50)[:, None]).nonzero()[:, 1]
    clear = (every.csls[:50].sort(dim=1).values.diff(dim=1) > 1e-5).all(dim=1)
    rows, columns = similarity.zero_rows()
    clear &= ~rows[:50] & ~columns[:50]
    if kind != "sparse":  # names alone: entities without one tie with everything
        assert clear.any()
        assert torch.equal(torch.from_numpy(evaluation.source_to_target.ranks)[clear], at[clear] + 1)


def test_without_names_a_pair_keeps_its_place_by_structure() -> None:
    similarity, _ = drawn("sparse and structure", 12, 9, weight=2.0, nameless=0.5)
    assert isinstance(similarity, LiteralSimilarity)
    left, right = all_pairs(12, 9)
    structure, names, _ = similarity.parts(left, right)
    nameless = ~(similarity.named[0][left] & similarity.named[1][right])
    assert nameless.any()
    assert (~nameless).any()
    assert torch.equal(names.isnan(), nameless)
    assert torch.equal(similarity.pairs(left, right)[nameless], structure[nameless] + 2.0 * structure[nameless])


def test_weight_zero_is_structure_alone() -> None:
    similarity, _ = drawn("sparse and structure", 40, 50, weight=1.0)
    assert isinstance(similarity, LiteralSimilarity)
    zero = csls_topk(similarity.with_weight(0.0), 10, 5)
    alone = csls_topk(similarity.structure, 10, 5)
    assert torch.equal(zero.source_to_target.indices, alone.source_to_target.indices)
    assert torch.equal(zero.target_to_source.csls, alone.target_to_source.csls)


@pytest.mark.parametrize("copies", [3, 17, 1001])
@pytest.mark.parametrize("weight", [0.5, 4.0])
def test_ties_do_not_count_as_hits(copies: int, weight: float) -> None:
    rng = np.random.default_rng(0)
    structure = normalise_rows(torch.from_numpy(rng.standard_normal((5, 600)).astype(np.float32)))
    names = drawn_rows(5, 80, rng, 0)
    similarity = LiteralSimilarity(
        StructuralSimilarity(structure, structure[:1].repeat(copies, 1)),
        SparseSimilarity(sparse.csr_array(names.numpy()), sparse.csr_array(names[:1].repeat(copies, 1).numpy())),
        weight,
    )
    terms = hubness(similarity)
    for target in range(0, copies, max(copies // 5, 1)):
        assert true_ranks(similarity, torch.tensor([[0, target]]), terms).source_to_target.ranks.tolist() == [copies]


def test_tiles_stay_within_the_budget() -> None:
    similarity, expected = drawn("sparse and structure", 50, 70)
    seen = np.zeros((50, 70))
    for tile in tiles(similarity, 1000):
        height, width = tile.scores.shape
        assert tile.scores.nbytes <= 1000
        np.testing.assert_allclose(tile.scores, expected[tile.top : tile.top + height, tile.left : tile.left + width], atol=2e-6)
        seen[tile.top : tile.top + height, tile.left : tile.left + width] += 1
    assert (seen == 1).all()


def test_several_threads_compute_the_same() -> None:
    similarity, _ = drawn("sparse and structure", 700, 900)
    threads, blocks = torch.get_num_threads(), []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            blocks.append(similarity.block(slice(0, 700), slice(0, 900)))
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(*blocks, atol=2e-6, rtol=0)


def test_indexes_search_a_similarity_or_say_that_they_cannot(index: str, kind: str) -> None:
    similarity, expected = drawn(kind, 20, 30)
    if index != "exact" and kind != "structure":
        with pytest.raises(ConfigError, match=f"search.index={index} .* use search.index=exact"):
            csls_topk(similarity, index=index)
        return
    forward, backward = get_index(index).search_both(similarity, 3)
    np.testing.assert_allclose(forward.values, np.sort(expected, axis=1)[:, :-4:-1], atol=2e-6)
    np.testing.assert_allclose(backward.values, np.sort(expected.T, axis=1)[:, :-4:-1], atol=2e-6)
    assert "exact" in INDEXES


def test_embeddings_and_the_similarity_made_of_them_are_evaluated_alike() -> None:
    similarity, _ = drawn("structure", 40, 50)
    assert isinstance(similarity, StructuralSimilarity)
    links = np.stack([np.arange(30)] * 2, axis=1)
    assert evaluate_links(similarity, links).to_dict() == evaluate_links(similarity.source, similarity.target, links).to_dict()


def test_a_search_by_rounded_products_finds_nearly_the_same_and_scores_it_exactly() -> None:
    rows = [torch.from_numpy(np.random.default_rng(side).standard_normal((300, 64)).astype(np.float32)) for side in range(2)]
    pool = torch.arange(20, 300)
    exact, rounded = (UnscaledEmbeddings(*rows, rounded=rounded).select(pool, pool) for rounded in (False, True))
    found = csls_topk(rounded, 10, 5).source_to_target
    wanted = csls_topk(exact, 10, 5).source_to_target
    shared = (found.indices[:, :, None] == wanted.indices[:, None, :]).any(dim=2)
    assert shared.double().mean() > 0.95
    assert not torch.equal(rounded.block(slice(0, 9), slice(0, 9)), exact.block(slice(0, 9), slice(0, 9)))
    pairs = torch.stack([torch.arange(280).repeat_interleave(5), found.indices.flatten()])
    assert torch.equal(rounded.pairs(*pairs), exact.pairs(*pairs))
    assert torch.equal(found.cosine.flatten(), exact.pairs(*pairs).float())


@pytest.mark.parametrize("side", ["structure", "names"])
def test_values_that_are_not_finite_are_refused(side: str) -> None:
    rows = torch.eye(4)
    bad = rows.clone()
    bad[2, 2] = torch.nan
    structure = StructuralSimilarity(bad if side == "structure" else rows, rows)
    names = SparseSimilarity(sparse.csr_array((bad if side == "names" else rows).numpy()), sparse.csr_array(rows.numpy()))
    with pytest.raises(TrainingError, match="not finite"):
        hubness(LiteralSimilarity(structure, names))


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_a_weight_that_cannot_be_one_is_refused(weight: float) -> None:
    structure = StructuralSimilarity(torch.eye(3), torch.eye(3))
    with pytest.raises(ConfigError, match="at least 0"):
        LiteralSimilarity(structure, structure, weight)


def test_what_does_not_go_together_is_a_defect_of_the_caller() -> None:
    three, four = torch.eye(3), torch.eye(4)
    with pytest.raises(ValueError, match="same entities"):
        LiteralSimilarity(StructuralSimilarity(three, three), StructuralSimilarity(four, four))
    with pytest.raises(ValueError, match="differ in width"):
        SparseSimilarity(sparse.csr_array(three.numpy()), sparse.csr_array(four.numpy()))


def test_sparse_rows_are_taken_in_any_form_and_left_as_they_are() -> None:
    doubled = sparse.csr_array((np.array([0.5, 0.5, 0.0, 1.0]), np.array([2, 2, 1, 0]), np.array([0, 3, 4])), shape=(2, 3))
    before = doubled.indices.copy()
    similarity = SparseSimilarity(doubled, sparse.csc_matrix(np.eye(3)))
    np.testing.assert_array_equal(similarity.block(slice(0, 2), slice(0, 3)), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(doubled.indices, before)
    assert similarity.named()[0].tolist() == [True, True]
    assert SparseSimilarity(sparse.csr_array((2, 3)), doubled).named()[0].tolist() == [False, False]
