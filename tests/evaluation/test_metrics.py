"""Figures against the obvious computation, the pools, links that are not one-to-one, and confidence intervals."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from engine.errors import DataError, TrainingError
from engine.evaluation.metrics import METRICS, confidence_intervals, evaluate_links, rate_interval, stored_interval
from engine.search import TIE_TOLERANCE
from tests.reference.csls import csls_matrix
from tests.reference.ranks import best_ranks, hits, mean_reciprocal_rank


def drawn(n: int = 60, m: int = 70, noise: float = 0.8, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings of two graphs; entity i belongs to entity i. Not normalised."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((max(n, m), 12))
    source, target = (torch.from_numpy(((base + noise * rng.standard_normal(base.shape)) * 3)[:size].astype(np.float32)) for size in (n, m))
    return source, target


def diagonal(start: int, stop: int) -> np.ndarray:
    return np.stack([np.arange(start, stop)] * 2, axis=1)


@pytest.mark.parametrize("pool", ["test", "all"])
def test_figures_follow_the_definition(pool: str) -> None:
    source, target = drawn()
    links = np.array([(i, (i * 7) % 40 + 20) for i in range(20, 55)] + [(20, 21), (21, 21), (21, 21)])
    result = evaluate_links(source, target, links, k=5, pool=pool)  # type: ignore[arg-type]
    rows, columns = (np.unique(links[:, side]) if pool == "test" else np.arange(len(emb)) for side, emb in enumerate((source, target)))
    scores = csls_matrix(source.double().numpy()[rows], target.double().numpy()[columns], 5)
    pairs = [(int(np.searchsorted(rows, s)), int(np.searchsorted(columns, t))) for s, t in links]
    for direction, table, known, pooled in (
        (result.source_to_target, scores, pairs, rows),
        (result.target_to_source, scores.T, [(t, s) for s, t in pairs], columns),
    ):
        expected = best_ranks(table, known, TIE_TOLERANCE)
        assert dict(zip(direction.queries.tolist(), direction.ranks.tolist(), strict=True)) == {int(pooled[q]): r for q, r in expected.items()}
        ranks = list(expected.values())
        assert direction.hits_at_1 == pytest.approx(hits(ranks, 1))
        assert direction.hits_at_5 == pytest.approx(hits(ranks, 5))
        assert direction.hits_at_10 == pytest.approx(hits(ranks, 10))
        assert direction.mrr == pytest.approx(mean_reciprocal_rank(ranks))
        assert direction.mean_rank == pytest.approx(sum(ranks) / len(ranks))


def test_directions_are_exchanged_with_the_graphs() -> None:
    source, target = drawn()
    links = diagonal(10, 60)
    there, back = evaluate_links(source, target, links), evaluate_links(target, source, links)
    assert there.source_to_target.to_dict() == back.target_to_source.to_dict()
    assert there.target_to_source.to_dict() == back.source_to_target.to_dict()
    assert there.source_to_target.to_dict() != there.target_to_source.to_dict()


def test_the_pool_of_all_entities_is_harder() -> None:
    source, target = drawn(400, 400)
    links = diagonal(0, 60)
    small, large = evaluate_links(source, target, links), evaluate_links(source, target, links, pool="all")
    assert small.target_to_source.mean_rank < large.target_to_source.mean_rank  # type: ignore[operator]
    assert small.source_pool.tolist() == list(range(60))
    assert len(large.source_pool) == len(large.hubness.source) == 400


def test_length_of_the_embeddings_does_not_matter() -> None:
    source, target = drawn()
    scale = torch.linspace(0.01, 100, len(source))[:, None]
    assert evaluate_links(source * scale, target, diagonal(0, 60)).to_dict() == evaluate_links(source, target, diagonal(0, 60)).to_dict()


def test_a_collapsed_encoder_scores_nothing() -> None:
    """All entities the same: every rank is the last one, no tie counts as a hit."""
    same = torch.ones(50, 600) / 7
    result = evaluate_links(same, same, diagonal(0, 50))
    for direction in (result.source_to_target, result.target_to_source):
        assert direction.ranks.tolist() == [50] * 50
        assert direction.hits_at_10 == 0


def test_protocol_names_pool_and_sizes() -> None:
    source, target = drawn()
    assert (
        evaluate_links(source, target, diagonal(0, 60), k=7).protocol
        == "CSLS k=7, pool: 60 test entities a side, published direction target to source, ties are no hits"
    )
    several = evaluate_links(source, target, np.array([(0, 0), (0, 1)]), links_name="validation").protocol
    assert "pool: 1 source and 2 target validation entities" in several
    assert "60 source and 70 target entities (all)" in evaluate_links(source, target, diagonal(0, 5), pool="all").protocol
    assert "neighbours by faiss" in evaluate_links(source, target, diagonal(0, 5), index="faiss").protocol
    assert evaluate_links(source, target, diagonal(0, 5), k=6).protocol.startswith("CSLS k=6 (more than the pool has, so all of it), pool: 5 ")
    assert evaluate_links(source, target, diagonal(0, 5), k=5).protocol.startswith("CSLS k=5, pool: 5 ")


@pytest.mark.parametrize("pool", ["test", "all"])
def test_without_links_there_are_no_figures(pool: str) -> None:
    source, target = drawn()
    result = evaluate_links(source, target, np.empty((0, 2), dtype=np.int64), pool=pool)  # type: ignore[arg-type]
    assert result.to_dict()["source_to_target"] == {**dict.fromkeys(METRICS), "queries": 0, "intervals": {}}
    assert len(result.target_to_source.ranks) == 0


def test_one_link() -> None:
    source, target = drawn()
    result = evaluate_links(source, target, np.array([[3, 3]])).source_to_target
    assert (result.hits_at_1, result.mrr, result.intervals["hits@1"]) == (1.0, 1.0, pytest.approx((0.2065, 1.0), abs=5e-5)), (
        "one hit of one is no certainty"
    )


def test_figures_are_plain_json() -> None:
    source, target = drawn()
    figures = evaluate_links(source, target, diagonal(0, 60)).to_dict()
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert list(figures) == ["source_to_target", "target_to_source", "pool", "protocol"]


def test_rates_have_score_intervals_wherever_they_are_shown() -> None:
    source, _ = drawn()
    figures = evaluate_links(source, source, diagonal(0, 8)).target_to_source
    low, high = figures.intervals["hits@1"]
    assert figures.hits_at_1 == 1.0
    assert (low, high) == pytest.approx((0.6756, 1.0), abs=5e-5), "Wilson for 8 of 8"
    stored = figures.to_dict()
    assert stored_interval(stored, "hits@1", 99) == ((low, high), 8)
    older = {**stored, "intervals": {"hits@1": [1.0, 1.0]}}
    del older["queries"]
    assert stored_interval(older, "hits@1", 8) == ((low, high), 8), "a run of an older version, which stored a bootstrap's"
    assert stored_interval({"hits@1": None}, "hits@1", 0) is None
    assert np.isnan(rate_interval(float("nan"), 0)).all()


def test_intervals_are_close_to_those_of_resampled_queries() -> None:
    ranks = np.random.default_rng(1).geometric(0.4, size=400)
    found = confidence_intervals(*np.unique(ranks, return_counts=True), resamples=4000, seed=0)
    resampled = np.random.default_rng(2).choice(ranks, size=(4000, len(ranks)))
    for name, values in (
        ("hits@1", (resampled <= 1).mean(axis=1)),
        ("hits@5", (resampled <= 5).mean(axis=1)),
        ("hits@10", (resampled <= 10).mean(axis=1)),
        ("mrr", (1 / resampled).mean(axis=1)),
    ):
        np.testing.assert_allclose(found[name], np.quantile(values, [0.025, 0.975]), atol=0.008)


def test_intervals_are_seeded_and_can_be_left_out() -> None:
    source, target = drawn()
    first, same, other, none = (
        evaluate_links(source, target, diagonal(0, 60), bootstrap=count, seed=seed).source_to_target
        for count, seed in ((200, 0), (200, 0), (200, 1), (0, 0))
    )
    assert first.intervals == same.intervals != other.intervals
    assert none.intervals == {}
    low, high = first.intervals["mrr"]
    assert first.mrr is not None
    assert low < first.mrr < high


def test_a_link_without_embedding_is_named() -> None:
    source, target = drawn()
    with pytest.raises(DataError, match=r"link 3 - 70 names an entity that has no embedding \(there are 60 source and 70 target"):
        evaluate_links(source, target, np.array([[0, 0], [3, 70]]))


def test_embeddings_that_are_not_finite_are_refused() -> None:
    source, target = drawn()
    source[4, 4] = float("nan")
    with pytest.raises(TrainingError, match="not finite"):
        evaluate_links(source, target, diagonal(0, 60))
