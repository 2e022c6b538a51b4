"""What holds for every registered index, and for the exact one alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ConfigError, TrainingError
from engine.search import ExactIndex, FaissIndex, StructuralSimilarity, TopK, get_index, normalise_rows
from engine.search import rows as matrices
from engine.search.exact import best_of_rows
from engine.search.tiles import tiles
from tests.effort import examples
from tests.search.graphs import clustered, noisy_copies


def brute_force(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Values and indices by (value descending, index ascending)."""
    orders = [sorted(range(len(row)), key=lambda j, row=row: (-row[j], j))[:k] for row in scores]
    return np.array([[row[j] for j in order] for row, order in zip(scores, orders, strict=True)]), np.array(orders)


@pytest.mark.parametrize(("n", "m", "k"), [(40, 70, 10), (1, 1, 5), (7, 3, 10), (3, 700, 650)])
def test_finds_the_k_best_in_both_directions(index: str, device: torch.device, n: int, m: int, k: int) -> None:
    source, target = (part.to(device) for part in noisy_copies(n, m))
    scores = (source.double() @ target.double().T).cpu().numpy()
    for best, table in zip(get_index(index).search_both(StructuralSimilarity(source, target), k), (scores, scores.T), strict=True):
        values, indices = brute_force(table, k)
        assert best.values.device.type == device.type
        assert best.values.shape == best.indices.shape == values.shape
        np.testing.assert_allclose(best.values.cpu(), values, atol=1e-6)
        np.testing.assert_array_equal(best.indices.cpu(), indices)


@settings(max_examples=examples(60), deadline=None)
@given(
    rows=st.integers(1, 4),
    columns=st.integers(1, 400),
    k=st.integers(1, 12),
    distinct=st.sampled_from([5, 10**6]),
    turned=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_best_of_the_best_groups_are_the_best(rows: int, columns: int, k: int, distinct: int, turned: bool, seed: int) -> None:
    """Where many values are equal, too, and where the scores are a view of turned ones."""
    drawn = torch.randint(0, distinct, (columns, rows) if turned else (rows, columns), generator=torch.Generator().manual_seed(seed)).float()
    scores, k = drawn.T if turned else drawn, min(k, columns)
    values, indices = best_of_rows(scores, k)
    assert torch.equal(values, scores.topk(k, dim=1).values)
    assert torch.equal(scores.gather(1, indices), values)
    assert all(len(set(row)) == k for row in indices.tolist())


def test_one_direction_is_the_same_as_the_first_of_both(index: str) -> None:
    source, target = noisy_copies(50, 60)
    alone, (first, _) = get_index(index).top_k(source, target, 7), get_index(index).search_both(StructuralSimilarity(source, target), 7)
    assert torch.equal(alone.indices, first.indices)


def test_empty_pools_give_empty_answers(index: str) -> None:
    some, none = noisy_copies(3, 3, 4)[0], torch.empty(0, 4)
    of_some, of_none = get_index(index).search_both(StructuralSimilarity(some, none), 5)
    assert of_some.indices.shape == (3, 0)
    assert of_none.indices.shape == (0, 3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_values_that_are_not_finite_are_refused(index: str, bad: float) -> None:
    source, target = noisy_copies(5, 5)
    target[3, 2] = bad
    with pytest.raises(TrainingError, match=r"not finite \(first in row 3\)"):
        get_index(index).top_k(source, target, 2)


def test_unknown_index_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'annoy'; choose one of exact, faiss"):
        get_index("annoy")


def test_mismatched_operands_show_both_shapes(index: str) -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\) and keys \(2, 4\)"):
        get_index(index).top_k(torch.zeros(2, 3), torch.zeros(2, 4), 1)


@settings(deadline=None)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 400),
    k=st.integers(1, 30),
    budget=st.integers(1, 4000),
    levels=st.integers(1, 6),
    seed=st.integers(0, 2**16),
)
def test_exact_search_does_not_depend_on_tiles_and_breaks_ties_by_index(n: int, m: int, k: int, budget: int, levels: int, seed: int) -> None:
    """Small whole numbers: their products are exact in float32, and many are equal."""
    rng = np.random.default_rng(seed)
    source, target = (torch.from_numpy(rng.integers(0, levels, size=(size, 3)).astype(np.float32)) for size in (n, m))
    scores = (source @ target.T).numpy()
    for best, table in zip(ExactIndex(budget).search_both(StructuralSimilarity(source, target), k), (scores, scores.T), strict=True):
        values, indices = brute_force(table, k)
        np.testing.assert_array_equal(best.values, values)
        np.testing.assert_array_equal(best.indices, indices)


@settings(deadline=None)
@given(n=st.integers(0, 50), m=st.integers(0, 50), budget=st.integers(1, 3000))
def test_tiles_cover_the_matrix_once_within_the_budget(n: int, m: int, budget: int) -> None:
    source, target = torch.rand(n, 2), torch.rand(m, 2)
    seen = torch.zeros(n, m)
    for tile in tiles(source, target, budget):
        height, width = tile.scores.shape
        assert tile.scores.nbytes <= max(budget, 4)
        seen[tile.top : tile.top + height, tile.left : tile.left + width] += 1
        part = source[tile.top : tile.top + height] @ target[tile.left : tile.left + width].T
        torch.testing.assert_close(tile.scores, part)
    assert bool((seen == 1).all())


def test_several_threads_select_the_same() -> None:
    source, target = noisy_copies(900, 1500, 8)
    threads = torch.get_num_threads()
    found: list[tuple[TopK, TopK]] = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append(ExactIndex().search_both(StructuralSimilarity(source, target), 10))
    finally:
        torch.set_num_threads(threads)
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one.values, other.values)


def recall(found: torch.Tensor, true: torch.Tensor) -> float:
    """Share of the true neighbours that were found."""
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found.numpy(), true.numpy(), strict=True)]))


def test_inverted_lists_find_nearly_all_neighbours_of_clustered_embeddings() -> None:
    source, target = clustered(6000)
    exact, approximate = ExactIndex().top_k(source[:500], target, 10), FaissIndex(approximate_from=1000).top_k(source[:500], target, 10)
    assert recall(approximate.indices, exact.indices) > 0.97
    assert recall(approximate.indices[:, :1], exact.indices[:, :1]) > 0.99
    assert not torch.equal(approximate.values, exact.values), "the lists were not used: this test compares exact with exact"


def test_inverted_lists_never_return_fewer_than_k() -> None:
    source, target = clustered(400, clusters=3)
    found = FaissIndex(approximate_from=100).top_k(source, target, 390)
    assert found.indices.min() >= 0
    assert all(len(set(row)) == 390 for row in found.indices.tolist())


@pytest.mark.parametrize("values", [1, 7, 10**6])
def test_rows_looked_at_some_at_a_time_are_the_same(values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.randn(23, 5, generator=torch.Generator().manual_seed(0))
    expected, finite = normalise_rows(rows), torch.full((23, 5), 3e38)  # whose sum is not finite in float32
    monkeypatch.setattr(matrices, "BLOCK_VALUES", values)
    assert torch.equal(normalise_rows(rows), expected)
    assert torch.equal(normalise_rows(rows.clone(), in_place=True), expected)
    assert matrices.is_finite(finite)
    assert matrices.is_finite(rows[:0])
    for value in ("nan", "inf", "-inf"):
        damaged = rows.clone()
        damaged[17, 2], damaged[18, 2] = float(value), -float(value)
        assert not matrices.is_finite(damaged)
        with pytest.raises(TrainingError, match=r"not finite \(first in row 17\)"):
            normalise_rows(damaged)


def test_normalised_rows_have_unit_length_and_zero_rows_stay() -> None:
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e30, 1e30], [3e38, 3e38], [1e-30, 0.0], [-2.0, 0.0]])
    expected = torch.tensor([[0.6, 0.8], [0.0, 0.0], [0.5**0.5, 0.5**0.5], [0.5**0.5, 0.5**0.5], [1.0, 0.0], [-1.0, 0.0]])
    torch.testing.assert_close(normalise_rows(rows), expected)
    torch.testing.assert_close(normalise_rows(rows.double()), expected)


def test_normalising_values_that_are_not_finite_names_the_row() -> None:
    with pytest.raises(TrainingError, match="row 1"):
        normalise_rows(torch.tensor([[1.0, 0.0], [float("nan"), 0.0]]))
