"""Values as evidence: which attributes correspond, and what equal values under them say."""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import LiteralConfig
from engine.names.value_similarity import LEAST_AGREEING, LEAST_AGREEMENT, PRIOR, name_attributes, value_evidence, value_leaks
from engine.names.values import keyed_values
from tests.effort import examples
from tests.names.graphs import graph_with
from tests.names.tasks import task

Fact = tuple[int, str, str]
SIZES = 7, 9


def facts(names: str) -> st.SearchStrategy[list[Fact]]:
    texts = st.sampled_from(["red", "blue", "1912-06-23", "1912-01-01", "1000", "1004", "NA", "Q-12"])
    return st.lists(st.tuples(st.integers(0, SIZES[0] - 1), st.sampled_from(names), texts), max_size=40)


def slowly(source: list[Fact], target: list[Fact], known: list[tuple[int, int]]) -> np.ndarray:
    """(E1, E2) by the definition, value by value."""
    tables = [keyed_values(graph_with(size, rows)) for size, rows in zip(SIZES, (source, target), strict=True)]
    said = [defaultdict(set) for _ in range(2)]
    for own, table in zip(said, tables, strict=True):
        for entity, attribute, key in table.itertuples(index=False):
            own[entity, attribute].add(key)
    counts = []
    for a, b in product(sorted(set(tables[0]["attribute"])), sorted(set(tables[1]["attribute"]))):
        both = [(s, t) for s, t in sorted(set(known)) if (s, a) in said[0] and (t, b) in said[1]]
        equal = sum(bool(said[0][s, a] & said[1][t, b]) for s, t in both)
        agreement = equal / (len(both) + PRIOR)
        if equal >= LEAST_AGREEING and agreement >= LEAST_AGREEMENT:
            counts.append((-equal * agreement, a, b, agreement))
    pairs: list[tuple[str, str, float]] = []
    for _, a, b, agreement in sorted(counts):
        if all(a != one and b != two for one, two, _ in pairs):
            pairs.append((a, b, agreement))
    rows = [np.zeros((size, 0)) for size in SIZES]
    lengths = [np.zeros(size) for size in SIZES]
    for pair in pairs:
        keys = [
            {key for (_, attribute), found in own.items() if attribute == name for key in found} for own, name in zip(said, pair[:2], strict=True)
        ]
        for key in sorted(keys[0] | keys[1]):
            holders = [[e for e in range(size) if key in own.get((e, name), ())] for own, name, size in zip(said, pair[:2], SIZES, strict=True)]
            weight = np.sqrt(pair[2] / max(map(len, holders)))
            for side in range(2):
                column = np.zeros(SIZES[side])
                column[holders[side]] = weight
                lengths[side] += column**2
                if holders[0] and holders[1]:
                    rows[side] = np.column_stack([rows[side], column])
    scaled = [one / np.maximum(np.sqrt(length), 1)[:, None] for one, length in zip(rows, lengths, strict=True)]
    return scaled[0] @ scaled[1].T


@settings(max_examples=examples(60), deadline=None)
@given(source=facts("ab"), target=facts("cd"), known=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8)), min_size=2, max_size=12))
def test_equal_to_the_definition(source: list[Fact], target: list[Fact], known: list[tuple[int, int]]) -> None:
    graphs = graph_with(SIZES[0], source), graph_with(SIZES[1], target)
    found = value_evidence(task(*graphs), np.array(known))
    similarity = (found.similarity.source @ found.similarity.target.T).toarray()
    np.testing.assert_allclose(similarity, slowly(source, target, known), atol=1e-6)
    assert similarity.max(initial=0) <= 1 + 1e-6


def people(count: int, noise: int = 0) -> tuple[list[Fact], list[Fact]]:
    """Birth dates, a country that half share, and a code; of the first ``noise`` the dates differ."""
    dates = [f"19{i % 90 + 10}-0{i % 9 + 1}-{i % 20 + 10}" for i in range(count)]
    source = [(i, "born", date) for i, date in enumerate(dates)] + [(i, "country", f"c{i % 2}") for i in range(count)]
    target = [(i, "geboren", "1900-01-01" if i < noise else date) for i, date in enumerate(dates)] + [(i, "Land", f"C{i % 2}") for i in range(count)]
    return source, target


def test_attributes_are_paired_by_their_values_and_a_rare_value_says_more() -> None:
    source, target = people(40, noise=5)
    found = value_evidence(task(graph_with(40, source), graph_with(40, target)), np.stack([np.arange(20)] * 2, axis=1))
    pairs = found.attributes.set_index("source")
    assert dict(zip(found.attributes["source"], found.attributes["target"], strict=True)) == {
        "born": "geboren",
        "born (year)": "geboren (year)",
        "country": "Land",
    }
    assert pairs.loc["born", ["support", "compared"]].tolist() == [15, 20]
    assert pairs.loc["born", "agreement"] == pytest.approx(15 / 22)
    whole = (found.similarity.source @ found.similarity.target.T).toarray()
    assert whole[30].argmax() == 30
    assert whole[30, 30] > 5 * whole[30, 32] > 0
    assert whole[2].argmax() != 2 or whole[2, 2] < 0.2


def test_names_and_excluded_attributes_are_not_compared() -> None:
    source = [(i, name, f"{name} {i}") for i in range(9) for name in ("label", "altLabel", "code")]
    graphs = graph_with(9, source), graph_with(9, source)
    known = np.stack([np.arange(9)] * 2, axis=1)
    assert value_evidence(task(*graphs), known).attributes["source"].tolist() == ["code"]
    nothing = value_evidence(task(*graphs), known, frozenset({"code"}))
    assert not len(nothing.features)
    assert nothing.similarity.pairs(torch.arange(9), torch.arange(9)).tolist() == [0] * 9
    config = LiteralConfig(names="attribute:http://x.org/title", names_target="attribute:Titel")
    assert name_attributes(config) == {"http://x.org/title", "Titel"}


def test_a_shared_identifier_is_reported() -> None:
    source, target = people(40)
    source += [(i, "isbn", f"isbn-{i}") for i in range(40)]
    target += [(i, "ISBN", f"ISBN-{i}") for i in range(40)]
    known = np.stack([np.arange(40)] * 2, axis=1)
    found = value_evidence(task(graph_with(40, source), graph_with(40, target)), known)
    leaks = [finding.message for finding in value_leaks(found)]
    assert [message for message in leaks if "'isbn' and 'ISBN'" in message]
    assert not [message for message in leaks if "country" in message]
    assert not value_leaks(value_evidence(task(graph_with(40, source), graph_with(40, target)), known[:10]))


def test_values_that_everybody_has_cost_nothing_and_say_nothing() -> None:
    size = 3000
    rows = [(i, "type", "thing") for i in range(size)] + [(i, "code", f"x-{i}") for i in range(size)]
    graphs = graph_with(size, rows), graph_with(size, rows)
    begin = time.perf_counter()
    found = value_evidence(task(*graphs), np.stack([np.arange(size)] * 2, axis=1))
    assert time.perf_counter() - begin < 10
    assert set(found.features["source"]) == {"code"}
    assert not len(value_evidence(task(graph_with(3, []), graph_with(3, rows[:2])), np.zeros((0, 2), dtype=np.int64)).features)
    assert isinstance(found.attributes, pd.DataFrame)
