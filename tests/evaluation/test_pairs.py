"""Precision, recall and F1 of an alignment as pairs, beside a slow count; ranks where entities have several counterparts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.evaluation.metrics import evaluate_links
from engine.evaluation.pairs import AlignmentFigures, alignment_figures, figures_sentence
from tests.effort import examples

N, M = 7, 6
links = st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, M - 1)), max_size=12, unique=True)
NONE = np.empty((0, 2), dtype=np.int64)


def rows(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def slow_figures(
    forward: list[int], backward: list[int], train: list[tuple[int, int]], test: list[tuple[int, int]], strong: set[tuple[str, int]]
) -> tuple[int, int]:
    """(judged pairs, right ones), pair by pair."""
    several_targets = any(a == c and b != d for a, b in train for c, d in train)
    several_sources = any(b == d and a != c for a, b in train for c, d in train)
    predicted = set()
    for source, target in ((source, target) for source in range(N) for target in range(M)):
        from_source = forward[source] == target and ("source", source) in strong
        from_target = backward[target] == source and ("target", target) in strong
        if (from_source and from_target) or (from_source and several_sources) or (from_target and several_targets):
            predicted.add((source, target))
    judged = [pair for pair in predicted if pair not in train and any(pair[0] == a or pair[1] == b for a, b in test)]
    return len(judged), sum(pair in test for pair in judged)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.integers(0, M - 1), min_size=N, max_size=N), st.lists(st.integers(0, N - 1), min_size=M, max_size=M), links, links, st.data())
def test_pairs_are_counted_as_the_slow_way_counts_them(
    forward: list[int], backward: list[int], train: list[tuple[int, int]], test: list[tuple[int, int]], data: st.DataObject
) -> None:
    test = [pair for pair in test if pair not in train]
    chance = data.draw(st.lists(st.sampled_from([0.2, 0.9]), min_size=N + M, max_size=N + M))
    entities = [("source", one) for one in range(N)] + [("target", one) for one in range(M)]
    matches = pd.DataFrame(
        {"graph": [side for side, _ in entities], "entity": [one for _, one in entities], "match": [*forward, *backward], "probability": chance}
    )
    task = SimpleNamespace(
        train_links=rows(train), valid_links=NONE, test_links=rows(test), unsure_links=NONE, target=SimpleNamespace(num_entities=M)
    )
    for threshold in (None, 0.5):
        strong = {entity for entity, value in zip(entities, chance, strict=True) if threshold is None or value >= threshold}
        found = alignment_figures(matches, task, threshold)  # type: ignore[arg-type]
        assert (found.predicted, found.correct) == slow_figures(forward, backward, train, test, strong)
        assert found.links == len(test)
        for name, (low, high) in found.intervals.items():
            assert 0 <= low <= getattr(found, name) + 1e-12
            assert getattr(found, name) <= high + 1e-12


def test_the_figures_of_a_small_alignment() -> None:
    found = AlignmentFigures(8, 6, 10, 0.5, True)
    assert (found.precision, found.recall, found.f1) == (0.75, 0.6, 12 / 18)
    assert "precision 0.750" in figures_sentence(found.to_dict())
    assert "8 pairs of probability 0.50 or more against 10 test links" in figures_sentence(found.to_dict())
    empty = AlignmentFigures(0, 0, 0).to_dict()
    assert empty["f1"] is None


@settings(deadline=None, max_examples=examples(60))
@given(links.filter(len), st.integers(0, 1000))
def test_the_rank_is_that_of_the_best_counterpart_and_the_others_are_no_rivals(pairs: list[tuple[int, int]], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    source, target = (torch.nn.functional.normalize(torch.randn(size, 5, generator=generator), dim=1) for size in (N, M))
    found = evaluate_links(source, target, rows(pairs), k=2, pool="all", bootstrap=0)
    cosine = (source @ target.T).double().numpy()
    near = [np.sort(part, axis=1)[:, -2:].mean(axis=1) for part in (cosine, cosine.T)]
    csls = 2 * cosine - near[0][:, None] - near[1]
    for direction, scores, ends in ((found.source_to_target, csls, pairs), (found.target_to_source, csls.T, [(b, a) for a, b in pairs])):
        for query, rank in zip(direction.queries.tolist(), direction.ranks.tolist(), strict=True):
            true = {other for one, other in ends if one == query}
            best = max(scores[query, one] for one in true)
            rivals = sum(scores[query, one] > best - 1e-6 for one in range(scores.shape[1]) if one not in true)
            assert rank == 1 + rivals
