"""The mining kernels against numpy: what is kept, what is left out, and how hard the hardest is."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.losses import NegativeCandidates, NormalizedHardSampleMining, kernels
from engine.model.losses.nhsm import Kept, LossRows, mine_block
from tests.effort import examples

SCALE = 30.0


def mined(products: npt.NDArray[np.float32], tail_mass: float, pair: tuple[int, int] = (-1, -1), most: int = 10**9) -> tuple[Kept, list[list[int]]]:
    """Statistics and kept columns of each row, where every candidate has length 0 and the margin is 0: x is twice the product."""
    rows, columns = products.shape
    zeros = np.zeros(rows, np.float32)
    found = LossRows(zeros, np.zeros(columns, np.float32), zeros, np.full(rows, pair[0]), np.full(rows, pair[1]))
    loss = NormalizedHardSampleMining(NegativeCandidates(columns, 0), margin=0.0, scale=SCALE, tail_mass=tail_mass, most_kept=most)
    kept = mine_block(products, found, loss)
    return kept, [list(kept.columns[start:stop]) for start, stop in itertools.pairwise(kept.offsets)]


@settings(deadline=None, max_examples=examples(40))
@given(seed=st.integers(0, 10**6), columns=st.integers(2, 1500), tail_mass=st.sampled_from([1e-4, 1e-2, 0.3]), skew=st.sampled_from([1, 3, 9]))
def test_what_is_left_out_weighs_no_more_than_was_granted(seed: int, columns: int, tail_mass: float, skew: int) -> None:
    random = np.random.default_rng(seed)
    products = (np.sign(random.normal(size=(3, columns))) * np.abs(random.normal(size=(3, columns))) ** skew).astype(np.float32)
    pair = (0, columns - 1)
    statistics, kept = mined(products, tail_mass, pair)
    x = 2 * products.astype(np.float64)
    x[:, list(pair)] = 0
    factor = SCALE / np.sqrt(np.maximum(x.var(1), 1e-12))
    weights = np.exp(factor[:, None] * (x - x.max(1, keepdims=True)))
    assert statistics.mean == pytest.approx(x.mean(1), abs=1e-5)
    assert statistics.factor == pytest.approx(factor, rel=1e-5)
    assert statistics.highest == pytest.approx(x.max(1), rel=1e-6)
    for row, columns_kept in enumerate(kept):
        left_out = np.delete(weights[row], columns_kept)
        assert columns_kept == sorted(set(columns_kept))
        assert int(x[row].argmax()) in columns_kept
        assert left_out.sum() <= max(tail_mass, columns * np.exp(-kernels.LEVELS)) * weights[row].sum() * 1.001 + 1e-9
        assert statistics.left_out[row] == pytest.approx(left_out.sum(), rel=1e-3, abs=1e-6)
        assert not len(left_out) or left_out.max() <= weights[row, columns_kept].min() * 1.001


def test_the_smallest_level_that_is_enough_is_taken() -> None:
    """One nat less would leave out too much."""
    products = np.random.default_rng(0).normal(size=(4, 3000)).astype(np.float32)
    statistics, kept = mined(products, 0.01)
    x = 2 * products.astype(np.float64)
    for row, (factor, highest) in enumerate(zip(statistics.factor, statistics.highest, strict=True)):
        nats = factor * (highest - x[row])
        weights = np.exp(-nats)
        level = int(nats[kept[row]].max()) + 1  # that much lay within it
        assert level == 1 or weights[nats > level - 1].sum() > 0.01 * weights.sum()


def test_equal_candidates_are_all_kept() -> None:
    _, kept = mined(np.full((2, 700), 0.25, dtype=np.float32), 0.01)
    assert kept == [list(range(700))] * 2


@pytest.mark.parametrize("values", [[-3, -1, -2], [1, 3, 2], [-1, 0, 2], [-0.0, -5, -np.inf]])
@pytest.mark.parametrize("columns", [3, 600])
def test_the_highest_is_found_whatever_its_sign(values: list[float], columns: int) -> None:
    products = np.resize(np.array(values, dtype=np.float32), (1, columns))
    products[np.isinf(products)] = -1e30
    statistics, _ = mined(products, 0.01)
    assert statistics.highest[0] == 2 * products.max()


def test_what_is_not_a_number_shows_in_the_statistics() -> None:
    products = torch.randn(2, 600).numpy()
    products[1, 77] = np.nan
    statistics, _ = mined(products, 0.01)
    for found in (statistics.mean, statistics.factor, statistics.highest):
        assert np.isfinite(found[0])
        assert np.isnan(found[1])


@pytest.mark.parametrize("most", [1, 40, 10**6])
def test_a_flat_row_keeps_its_hardest_up_to_the_limit(most: int) -> None:
    """Whole nats, from the hardest downwards, and what they leave out is known."""
    products = np.random.default_rng(3).normal(size=(3, 4000)).astype(np.float32) * np.float32(0.01)
    full, _ = mined(products, 0.001)
    limited, kept = mined(products, 0.001, most=most)
    x = 2 * products.astype(np.float64)
    for row, columns in enumerate(kept):
        weights = np.exp(full.factor[row] * (x[row] - full.highest[row]))
        assert len(columns) <= max(most, (weights > np.exp(-1)).sum())
        assert limited.left_out[row] == pytest.approx(np.delete(weights, columns).sum(), rel=1e-3, abs=1e-6)
        assert np.delete(weights, columns).max() <= weights[columns].min() * 1.001


@pytest.mark.parametrize(("size", "tail_mass"), [(0.001, 0.01), (0.3, 0.01), (1.0, 1e-5), (1.0, 0.3)])
def test_what_lies_far_below_is_summed_as_if_it_were_sorted_into_levels(size: float, tail_mass: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flat rows, which have to be looked at down to the last level, and rows of which the nearest few nats decide."""
    random = np.random.default_rng(5)
    products = (random.normal(size=(6, 3000)) ** 3 * np.geomspace(size, 1, 6)[:, None]).astype(np.float32)
    near, columns = mined(products, tail_mass)
    monkeypatch.setattr(kernels, "NEAR", kernels.LEVELS)
    deep, all_columns = mined(products, tail_mass)
    assert columns == all_columns
    assert near.left_out == pytest.approx(deep.left_out, rel=1e-5, abs=1e-9)
