"""Importance, realised attention and twins of relations against their slow versions."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.analysis.relations import realised_attention, relation_importance_table, relation_twins_table, row_softmax, seed_agreement
from engine.data.knowledge_graph import AlignmentTask, KnowledgeGraph
from engine.model.dual_amn import DualAMN
from tests.analysis.worlds import random_model, random_task
from tests.effort import examples
from tests.reference import analysis as reference


def importance_of(task: AlignmentTask) -> pd.DataFrame:
    model = random_model(task)
    return relation_importance_table(task, model, realised_attention(model))


def stacked(task: AlignmentTask) -> list[tuple[int, int, int]]:
    return [tuple(row) for row in task.stacked_triples().tolist()]


def directed(table: pd.DataFrame, task: AlignmentTask) -> np.ndarray:
    """Number of each row's directed relation in the stacked graph."""
    shift = np.where(table["graph"] == "target", task.source.num_relations, 0) + np.where(table["direction"] == "inverse", task.num_relations, 0)
    return table["relation"].to_numpy() + shift


@given(seed=st.integers(0, 10_000), unit=st.sampled_from(["triple", "edge"]), channels=st.sampled_from(["both", "entity", "relation"]))
@settings(max_examples=examples(25), deadline=None)
def test_importance_and_attention_follow_the_formulas(seed: int, unit: str, channels: str) -> None:
    task = random_task(np.random.default_rng(seed), triples=25)
    model = random_model(task, message_unit=unit, channels=channels)
    table = relation_importance_table(task, model, realised_attention(model))
    table["directed"] = directed(table, task)
    used = {relation for _, relation, _ in stacked(task)}
    relations = model.relation_features.detach().double()
    for layer in range(2):
        for c, channel in enumerate(model.channels):
            v = model.attention[layer, c].detach().double()
            expected = reference.mean_attention(stacked(task), task.num_entities, task.num_relations, relations, v, unit)
            rows = table[(table["layer"] == layer + 1) & (table["channel"] == channel)].set_index("directed")
            assert set(rows.index) == {one + shift for one in used for shift in (0, task.num_relations)} == set(expected)
            for relation, row in rows.iterrows():
                vector = relations[relation]
                assert row["importance"] == pytest.approx(float(v @ vector / vector.norm()), abs=1e-9)
                assert (row["attention"], row["relative_attention"]) == pytest.approx(expected[relation], rel=1e-5)


def test_counts_of_relations() -> None:
    task = random_task(np.random.default_rng(4))
    table = importance_of(task)
    for _, row in table.iterrows():
        triples = [one for one in task.graph(row["graph"]).triples.tolist() if one[1] == row["relation"]]
        assert row["frequency"] == len(triples)
        assert row["functionality"] == pytest.approx(len({head for head, _, _ in triples}) / len(triples))
        assert row["inverse_functionality"] == pytest.approx(len({tail for _, _, tail in triples}) / len(triples))


def test_ranks_and_bands_follow_importance() -> None:
    task = random_task(np.random.default_rng(5))
    table = importance_of(task)
    for _, rows in table.groupby(["layer", "channel"]):
        ordered = rows.sort_values("rank")
        assert ordered["rank"].tolist() == list(range(1, len(rows) + 1))
        assert ordered["importance"].is_monotonic_decreasing
        sizes = ordered["band"].value_counts(sort=False)
        assert sizes.index.tolist() == ["high", "medium", "low"]
        assert sizes.max() - sizes.min() <= 1


def test_one_entry_gets_all_the_attention_and_extreme_scores_do_not_overflow() -> None:
    weights = row_softmax(np.array([-1e4, 5000.0, 4990.0]), np.array([0, 1, 1, 3]))
    assert weights == pytest.approx([1, 1 / (1 + math.exp(-10)), 1 / (1 + math.exp(10))])


@given(seed=st.integers(0, 10_000))
@settings(max_examples=examples(20), deadline=None)
def test_twins_follow_the_definition(seed: int) -> None:
    task = random_task(np.random.default_rng(seed), triples=18)
    model = random_model(task)
    table = relation_twins_table(task, model)
    sides = (("source", "target", task.train_links), ("target", "source", task.train_links[:, ::-1]))
    for side, across, links in sides:
        own, other = task.graph(side), task.graph(across)
        triples, far = ([tuple(row) for row in graph.triples.tolist()] for graph in (own, other))
        pairs = [tuple(row) for row in links.tolist()]
        for relation in {one for _, one, _ in triples}:
            options = [(twin, turned) for turned in (False, True) for twin in sorted({one for _, one, _ in far})]
            cosine = {option: mean_cosine(model, task, side, relation, *option) for option in options}
            rows = table[(table["graph"] == side) & (table["relation"] == relation)]
            assert rows["rank"].tolist() == list(range(1, min(5, len(options)) + 1))
            assert rows["cosine"].tolist() == pytest.approx(sorted(cosine.values(), reverse=True)[:5], abs=1e-5)
            for _, row in rows.iterrows():
                assert row["cosine"] == pytest.approx(cosine[row["twin"], row["turned"]], abs=1e-5)
                support, agreeing = reference.agreement(triples, far, pairs, relation, row["twin"], row["turned"])
                assert row["seed_triples"] == support
                assert row["agreement"] == pytest.approx(agreeing / support if support else math.nan, nan_ok=True)
    assert set(zip(table["graph"], table["relation"], strict=True)) == {
        (side, relation) for side, _, _ in sides for relation in task.graph(side).triples[:, 1].tolist()
    }


def mean_cosine(model: DualAMN, task: AlignmentTask, side: str, relation: int, twin: int, turned: bool) -> float:
    """Of forward with forward and inverse with inverse, or crosswise."""
    first, count = task.source.num_relations, task.num_relations
    own = relation + (0 if side == "source" else first)
    far = twin + (first if side == "source" else 0)
    features = model.relation_features.detach().double()
    partners = ((own, far + count), (own + count, far)) if turned else ((own, far), (own + count, far + count))
    return sum(float(torch.cosine_similarity(features[one], features[two], dim=0)) for one, two in partners) / 2


def test_a_copied_graph_finds_its_own_relations_and_turned_ones_turned() -> None:
    """Features that two graphs share, those of one relation exchanged: every first twin is right, and the seed links agree with it."""
    task = random_task(np.random.default_rng(6), sizes=(14, 14), relations=(3, 3))
    triples = task.source.triples.copy()
    last = triples[:, 1] == 2
    triples[last] = triples[last][:, ::-1] * [1, 0, 1] + [0, 2, 0]
    everyone = np.stack([np.arange(14)] * 2, axis=1)
    target = type(task.source)("b", task.source.entities, task.source.labels, task.source.relations, triples)
    task = AlignmentTask("copy", "drawn", task.source, target, everyone, everyone[:0], everyone[:0], everyone[:0], "drawn", "0" * 64)
    model = random_model(task)
    with torch.no_grad():
        features = model.relation_features  # forward source 0-2, forward target 3-5, inverse source 6-8, inverse target 9-11
        features[[3, 4, 5, 9, 10, 11]] = features[[0, 1, 8, 6, 7, 2]]
    best = relation_twins_table(task, model).query("rank == 1")
    assert best["twin"].tolist() == best["relation"].tolist() == [0, 1, 2, 0, 1, 2]
    assert best["turned"].tolist() == [False, False, True] * 2
    assert best["cosine"].tolist() == pytest.approx([1.0] * 6, abs=1e-6)
    assert best["agreement"].tolist() == [1.0] * 6


def test_a_triple_with_several_counterparts_agrees_once() -> None:
    """Two links at the head lead to two triples of the twin: still one triple that agrees, of two that could."""
    names = ("0", "1", "2")
    own = KnowledgeGraph("a", names, names, ("r",), np.array([[0, 0, 1], [1, 0, 0]]))
    across = KnowledgeGraph("b", names, names, ("s",), np.array([[0, 0, 2], [1, 0, 2]]))
    support, agreeing = seed_agreement(own, across, np.array([[0, 0], [0, 1], [1, 2], [1, 2]]))
    assert support.to_dict("list") == {"relation": [0], "seed_triples": [2]}
    assert agreeing.to_dict("list") == {"relation": [0, 0], "twin": [0, 0], "turned": [False, True], "agreeing": [1, 1]}
