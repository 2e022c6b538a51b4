"""k-occurrence from stored matches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import skew

from engine.analysis.entities import hubness_tables, summary
from tests.analysis.worlds import random_matches, random_task, random_world
from tests.effort import examples


@given(seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=examples(20))
def test_counts_follow_the_definition(seed: int) -> None:
    world = random_world(seed)
    counts, summaries = hubness_tables(world.task, world.matches)
    rows = list(world.matches.itertuples())
    for row in counts.itertuples():
        for k, found in ((1, row.n_1), (10, row.n_10)):
            assert found == sum(one.graph != row.graph and one.match == row.entity and one.rank <= k for one in rows)
    for row in summaries.itertuples():
        column = counts.loc[counts["graph"] == row.graph, f"n_{row.k}"]
        assert (row.entities, row.largest) == (len(column), column.max())
        assert (row.mean, row.never) == pytest.approx((column.mean(), (column == 0).mean()))
        assert row.skewness == pytest.approx(skew(column) if column.nunique() > 1 else 0.0)
    assert len(summaries) == 4


def test_lists_that_are_too_short_count_first_matches_only() -> None:
    world = random_world(top=4)
    counts, summaries = hubness_tables(world.task, world.matches)
    assert counts.columns.tolist() == ["graph", "entity", "n_1"]
    assert summaries["k"].tolist() == [1, 1]


def test_lists_of_all_candidates_are_long_enough() -> None:
    rng = np.random.default_rng(1)
    task = random_task(rng, sizes=(3, 25))
    counts, _ = hubness_tables(task, random_matches(rng, 3, 25))
    source = counts[counts["graph"] == "source"]
    assert source["n_10"].tolist() == [25, 25, 25]  # every target entity lists all three


def test_equal_counts_are_not_skewed_and_one_hub_is() -> None:
    assert summary(np.array([2, 2, 2]))["skewness"] == 0
    assert summary(np.array([0] * 99 + [100]))["skewness"] > 5
