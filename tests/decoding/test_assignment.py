"""The cheapest matching, against a solver that looks at every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from engine.decoding.assignment import cheapest_matching
from tests.effort import examples


@settings(max_examples=examples(150), deadline=None)
@given(n=st.integers(0, 9), m=st.integers(1, 9), density=st.floats(0, 1), levels=st.sampled_from([2, 5, 1000]), seed=st.integers(0, 2**16))
def test_no_matching_is_cheaper(n: int, m: int, density: float, levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, levels, (n, m)).astype(np.float64)
    known = rng.random((n, m)) < density
    alone = 1.0 + costs.max(initial=0.0)
    indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(known)[1].astype(np.int64)
    chosen = cheapest_matching(indptr, columns, costs[known], alone, m)
    rows = np.flatnonzero(chosen >= 0)
    assert all(indptr[row] <= chosen[row] < indptr[row + 1] for row in rows)
    taken = columns[chosen[rows]]
    assert len(set(taken.tolist())) == len(taken)
    whole = np.concatenate([np.where(known, costs, 1e6), np.where(np.eye(n, dtype=bool), alone, 1e6)], axis=1)
    best = whole[linear_sum_assignment(whole)].sum()
    assert costs[rows, taken].sum() + alone * (n - len(rows)) == pytest.approx(best)
