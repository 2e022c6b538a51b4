"""Lists in order, values that are held, and terms that are added on the way."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.search import ExactIndex, StructuralSimilarity, best_in_columns, held, hubness, true_ranks
from engine.search.faiss import as_inner_products
from engine.search.tiles import HeapBest, HeldSimilarity, RecordingSimilarity, Tile, descending, recording, tiles
from tests.effort import examples
from tests.search.graphs import noisy_copies


@settings(max_examples=examples(60), deadline=None)
@given(n=st.integers(0, 5), m=st.integers(1, 150), k=st.integers(1, 12), levels=st.integers(1, 60), seed=st.integers(0, 2**16))
def test_lists_are_in_order_and_equals_by_index(n: int, m: int, k: int, levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = torch.from_numpy(rng.integers(0, levels, (n, m)).astype(np.float32))
    terms = torch.from_numpy(rng.integers(-3, 4, n).astype(np.float32))
    columns = torch.from_numpy(rng.integers(-3, 4, m).astype(np.float32))
    best = HeapBest(n, min(k, m))
    best.take_rows(Tile(0, 0, scores, torch.zeros(n), columns))
    found = best.result(terms)
    table = scores + columns + terms[:, None]
    expected = np.lexsort((np.broadcast_to(np.arange(m), (n, m)), -table.numpy()), axis=1)[:, :k]
    np.testing.assert_array_equal(found.indices, expected)
    np.testing.assert_array_equal(found.values, np.take_along_axis(table.numpy(), expected, axis=1))
    turned = best_in_columns(table.T, k)
    np.testing.assert_array_equal(turned.indices, expected)
    shuffled = torch.from_numpy(rng.permuted(np.broadcast_to(np.arange(m), (n, m)), axis=1))
    order = descending(table.gather(1, shuffled).double(), shuffled)
    np.testing.assert_array_equal(shuffled.gather(1, order)[:, :k], expected)


def test_what_is_held_is_the_same_and_stays_so() -> None:
    plain = StructuralSimilarity(*noisy_copies(1100, 90, 8))
    kept = held(plain)
    assert isinstance(kept, HeldSimilarity)
    assert held(kept) is kept
    assert kept.values is not None
    before = kept.values.clone()
    links = torch.arange(90)[:, None].expand(90, 2)
    terms = hubness(plain, 5)
    for one, other in zip(ExactIndex().search_both(kept, 7), ExactIndex().search_both(plain, 7), strict=True):
        torch.testing.assert_close(one.values, other.values)
    assert torch.equal(hubness(kept, 5).source, terms.source)
    shifted = kept.shifted(torch.ones(1100), torch.ones(90))
    torch.testing.assert_close(shifted.block(slice(3, 5), slice(0, 90)), before[3:5] + 2)
    assert torch.equal(true_ranks(kept, links, terms).target_to_source.ranks, true_ranks(plain, links, terms).target_to_source.ranks)
    assert torch.equal(kept.values, before), "a shifted block was written into what is held"
    kept.forget()
    torch.testing.assert_close(kept.block(slice(0, 1100), slice(0, 90)), before)
    torch.testing.assert_close(hubness(kept, 5).target, terms.target)


@pytest.mark.parametrize(("n", "m", "fits"), [(10, 10, True), (10, 11, False), (0, 5, False)])
def test_only_what_fits_the_budget_is_held(n: int, m: int, fits: bool) -> None:
    plain = StructuralSimilarity(torch.rand(n, 3), torch.rand(m, 3))
    assert isinstance(held(plain, 400), HeldSimilarity) is fits


def test_terms_become_columns_for_indexes_that_have_inner_products_only() -> None:
    plain = StructuralSimilarity(*noisy_copies(6, 5, 4))
    shifted = held(plain).shifted(torch.arange(6.0), -torch.arange(5.0))
    rows = as_inner_products(shifted)
    assert rows is not None
    everything = slice(0, 6), slice(0, 5)
    torch.testing.assert_close(rows.block(*everything), shifted.block(*everything))


def test_whole_rows_are_cut_from_above_only() -> None:
    source, target = noisy_copies(50, 70, 4)
    found = list(tiles(StructuralSimilarity(source, target), 4 * 70 * 8, whole_rows=True))
    assert [(tile.top, tile.left, tile.scores.shape[1]) for tile in found] == [(top, 0, 70) for top in range(0, 50, 8)]


@pytest.mark.parametrize("budget", [4 * 40 * 7, 4 * 11 * 3, 2**20])
def test_a_pool_is_recorded_while_everything_is_searched(budget: int) -> None:
    plain = StructuralSimilarity(*noisy_copies(60, 40, 8))
    rows, columns = torch.tensor([0, 1, 7, 30, 59]), torch.tensor([2, 3, 39])
    listening = recording(plain, rows, columns)
    assert isinstance(listening, RecordingSimilarity)
    assert not isinstance(listening.select(rows, columns), HeldSimilarity), "before anything was computed"
    one, other = (ExactIndex(budget).search_both(similarity, 4) for similarity in (listening, plain))
    assert torch.equal(one[0].values, other[0].values)
    pool = listening.select(rows, columns)
    assert isinstance(pool, HeldSimilarity)
    torch.testing.assert_close(pool.values, plain.select(rows, columns).block(slice(0, 5), slice(0, 3)), atol=1e-6, rtol=0)
    assert not isinstance(listening.select(rows, columns), HeldSimilarity), "handed over already"
    torch.testing.assert_close(one[1].values, other[1].values)


def test_what_was_not_searched_is_not_known() -> None:
    plain = StructuralSimilarity(*noisy_copies(20, 20, 8))
    listening = recording(plain, torch.arange(10), torch.arange(5))
    listening.block(slice(0, 20), slice(2, 20))  # not from the first column on
    listening.block(slice(0, 9), slice(0, 20))  # a row is missing
    assert not isinstance(listening.select(torch.arange(10), torch.arange(5)), HeldSimilarity)
    assert not isinstance(listening.select(torch.arange(9), torch.arange(5)), HeldSimilarity), "another pool"
    listening.block(slice(9, 20), slice(0, 20))
    pool = listening.select(torch.arange(10), torch.arange(5))
    torch.testing.assert_close(pool.block(slice(0, 10), slice(0, 5)), plain.block(slice(0, 10), slice(0, 5)))
    assert recording(plain, torch.arange(10), torch.arange(5), budget=199) is plain
