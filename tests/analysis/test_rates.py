"""Accuracy by degree and by relation, and the intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from engine.analysis.entities import degree_table, grouped_rates
from engine.analysis.relations import relation_hits_table
from engine.analysis.schema import RATES
from engine.data.knowledge_graph import SIDES
from engine.evaluation.metrics import DirectionMetrics, Evaluation, wilson_interval
from tests.analysis.worlds import random_world
from tests.effort import examples
from tests.reference import analysis as reference


def asked(evaluation: Evaluation, side: str) -> dict[int, int]:
    direction: DirectionMetrics = evaluation.source_to_target if side == "source" else evaluation.target_to_source
    return dict(zip(direction.queries.tolist(), direction.ranks.tolist(), strict=True))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=examples(20), deadline=None)
def test_degree_buckets_follow_the_definition(seed: int) -> None:
    world = random_world(seed)
    table = degree_table(world.task, world.evaluation).set_index(["graph", "bucket"])
    for side in SIDES:
        graph, ranks = world.task.graph(side), asked(world.evaluation, side)
        triples = [tuple(row) for row in graph.triples.tolist()]
        bucket = {entity: reference.bucket_of(reference.degree_of(entity, triples)) for entity in range(graph.num_entities)}
        for name, row in table.loc[side].iterrows():
            inside = [ranks[entity] for entity in ranks if bucket[entity] == name]
            assert row["entities"] == sum(one == name for one in bucket.values())
            assert row["queries"] == len(inside)
            if inside:
                assert row[list(RATES)].tolist() == pytest.approx(reference.rates(inside))
            else:
                assert row[list(RATES)].isna().all()


def test_buckets_lie_side_by_side() -> None:
    world = random_world()
    table = degree_table(world.task, world.evaluation)
    assert table["graph"].tolist() == ["source"] * 10 + ["target"] * 10
    for bucket, low in zip(table["bucket"], table["least_degree"], strict=True):
        assert reference.bucket_of(low) == bucket
        assert low == 0 or reference.bucket_of(low - 1) != bucket


@given(seed=st.integers(0, 10_000))
@settings(max_examples=examples(20), deadline=None)
def test_relation_rates_follow_the_definition(seed: int) -> None:
    world = random_world(seed)
    found = {(row["graph"], row["relation"], row["role"]): row for _, row in relation_hits_table(world.task, world.evaluation).iterrows()}
    for side in SIDES:
        graph, ranks = world.task.graph(side), asked(world.evaluation, side)
        triples = [tuple(row) for row in graph.triples.tolist()]
        for relation in range(graph.num_relations):
            for role in ("any", "head", "tail"):
                inside = [ranks[entity] for entity in reference.entities_with(relation, role, triples) if entity in ranks]
                row = found.pop((side, relation, role), None)
                assert (row is None) == (not inside)
                if row is not None:
                    assert row["queries"] == len(inside)
                    assert row[list(RATES)].tolist() == pytest.approx(reference.rates(inside))
    assert not found


@pytest.mark.parametrize(("hits", "count"), [(0, 1), (1, 1), (0, 7), (3, 7), (999, 1000), (40, 54)])
def test_intervals_of_shares_are_wilsons(hits: int, count: int) -> None:
    expected = binomtest(hits, count).proportion_ci(0.95, method="wilson")
    low, high = wilson_interval(np.array([hits / count]), np.array([count]))
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("count", [1, 2, 5, 30, 300])
def test_intervals_of_mrr_hold_the_truth_as_often_as_they_say(count: int) -> None:
    """Groups drawn from ranks as a run gives them; the interval must hold the mean of all in at least 95 % of the draws, save for chance."""
    population = np.repeat([1, 2, 3, 5, 20, 400], [70, 8, 5, 6, 7, 4])
    truth, draws = (1 / population).mean(), 2000
    ranks = np.random.default_rng(count).choice(population, (draws, count))
    columns = grouped_rates(np.repeat(np.arange(draws), count), ranks.ravel(), draws)
    held = (columns["mrr_low"] <= truth) & (truth <= columns["mrr_high"])
    assert held.mean() > (0.93 if count > 2 else 0.69)  # one or two coins cannot do better with any interval that is not all of [0, 1]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 50)), max_size=40))
@settings(deadline=None)
def test_intervals_enclose_their_rates(pairs: list[tuple[int, int]]) -> None:
    groups, ranks = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    columns = grouped_rates(groups, ranks, 6)
    for name in RATES:
        low, value, high = columns[f"{name}_low"], columns[name], columns[f"{name}_high"]
        empty = columns["queries"] == 0
        assert np.isnan([low[empty], value[empty], high[empty]]).all()
        assert ((low >= 0) & (low <= value + 1e-12) & (value <= high + 1e-12) & (high <= 1))[~empty].all()
        assert (high > low)[~empty].all()
