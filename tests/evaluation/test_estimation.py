"""Probabilities without any link: near the truth where right and wrong pairs differ, withheld where nothing can be said."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import torch

from engine.data.knowledge_graph import AlignmentTask, empty_links
from engine.decoding import find_candidates, get_decoder
from engine.evaluation.assessment import match_probabilities
from engine.evaluation.calibration import Calibration, Uncalibrated, expected_calibration_error, pair_features
from engine.evaluation.estimation import estimate_calibration, expected_curve, most_wrong, mutual_positions, wrong_share
from engine.search import StructuralSimilarity, normalise_rows
from tests.analysis.worlds import random_graph


def drawn(linked: int, alone: int, noise: float, seed: int = 0, width: int = 24) -> StructuralSimilarity:
    """Entities with a counterpart, then entities without one: the first of either side belong together."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((linked, width))
    sides = [
        np.concatenate([shared + noise * rng.standard_normal(shared.shape), rng.standard_normal((alone, width))]).astype(np.float32) for _ in range(2)
    ]
    return StructuralSimilarity(*(normalise_rows(torch.from_numpy(rows)) for rows in sides))


@pytest.mark.parametrize(("linked", "alone"), [(800, 200), (600, 400), (500, 500)])
def test_near_the_truth_whatever_share_of_entities_has_a_counterpart(linked: int, alone: int) -> None:
    candidates = find_candidates(drawn(linked, alone, 0.55), top=10)
    decoder = get_decoder("csls")
    found = estimate_calibration(decoder, candidates)
    assert isinstance(found, Calibration)
    assert found.estimated
    assert found.calibration_error is None
    decoding = decoder.decode(candidates)
    positions = mutual_positions(decoding)
    right = (candidates.sources[positions] == candidates.targets[positions]) & (candidates.sources[positions] < linked)
    probability = found.probabilities(pair_features(decoding, positions))
    assert expected_calibration_error(probability, right) < 0.1
    assert abs(found.dangling_share - (~right).mean()) < 0.12
    threshold = found.balanced_threshold()
    assert threshold is not None
    kept = probability >= threshold.probability
    f1 = 2 * (kept & right).sum() / (kept.sum() + linked)
    best = max(2 * right[np.argsort(-probability)][:n].sum() / (n + linked) for n in range(1, len(right)))
    assert f1 > best - 0.03
    assert abs(right[kept].mean() - threshold.precision) < 0.1
    assert Calibration.from_dict(found.to_dict()) == found


def test_too_few_pairs_are_not_judged() -> None:
    cases = (
        (drawn(30, 5, 0.1), r"only \d\d such pairs in this run"),
        (drawn(1, 0, 0.1), "only 1 such pair in this run"),
        (drawn(60, 0, 0.1), r"only \d+ surely wrong pairs? to compare them with"),
    )
    for similarity, words in cases:
        found = estimate_calibration(get_decoder("csls"), find_candidates(similarity, top=10))
        assert isinstance(found, Uncalibrated)
        assert re.search(rf"{words} \(at least 50 are needed\)\. .* review a random sample on the page Review, or add known links", found.reason)


def test_the_share_of_wrong_pairs_is_that_of_the_mixture() -> None:
    rng = np.random.default_rng(1)
    for share in (0.1, 0.5, 0.9):
        wrong = rng.normal(0, 1, 4000)
        seen = np.concatenate([rng.normal(0, 1, int(4000 * share)), rng.normal(5, 1, int(4000 * (1 - share)))])
        assert wrong_share(seen, wrong) == pytest.approx(share, abs=0.03)


def test_right_pairs_as_dissimilar_as_wrong_ones_do_not_all_count_as_wrong() -> None:
    """Half of the right pairs are nearly as dissimilar as chance, but hardly any entity is left that could lack a counterpart."""
    rng = np.random.default_rng(3)
    linked, alone = 1000, 40
    shared = rng.standard_normal((linked, 64))
    noise = np.where(np.arange(linked) % 2, 0.3, 1.1)[:, None]
    sides = [
        np.concatenate([shared + noise * rng.standard_normal(shared.shape), rng.standard_normal((alone, 64))]).astype(np.float32) for _ in range(2)
    ]
    similarity = StructuralSimilarity(*(normalise_rows(torch.from_numpy(rows)) for rows in sides))
    candidates, decoder = find_candidates(similarity, top=10), get_decoder("csls")
    found = estimate_calibration(decoder, candidates)
    assert isinstance(found, Calibration)
    decoding = decoder.decode(candidates)
    positions = mutual_positions(decoding)
    right = (candidates.sources[positions] == candidates.targets[positions]) & (candidates.sources[positions] < linked)
    assert expected_calibration_error(found.probabilities(pair_features(decoding, positions)), right) < 0.03
    assert found.dangling_share < 0.09


def test_no_more_wrong_pairs_than_unmatched_entities_suggest() -> None:
    assert most_wrong((0.5, 0.2), (110, 120), 100) == pytest.approx((10 + 20 / 4) / 100)
    assert most_wrong((0.5, 0.2), (100, 100), 100) == 0.0
    assert most_wrong((1.0, 0.2), (200, 100), 100) == 1.0


def test_the_curve_is_what_the_probabilities_promise() -> None:
    probabilities = np.linspace(0, 1, 101)
    for point in expected_curve(probabilities):
        kept = probabilities[probabilities >= point.probability]
        assert point.precision == pytest.approx(kept.mean())
        assert point.recall == pytest.approx(kept.sum() / probabilities.sum())


def test_a_run_without_links_has_probabilities_for_mutual_best_matches() -> None:
    rng = np.random.default_rng(2)
    graphs = [random_graph(rng, name, 700, 3, 900) for name in "ab"]
    none = empty_links()
    links = np.stack([np.arange(500)] * 2, axis=1)
    task = AlignmentTask("drawn", "drawn", graphs[0], graphs[1], none, none, links, none, split="drawn", fingerprint="0" * 64)
    similarity = drawn(500, 200, 0.4)
    found = match_probabilities(similarity, task, 10, "exact", 0)
    assert isinstance(found.calibration, Calibration)
    assert found.calibration.estimated
    source, target = (found.table[found.table["graph"] == side].set_index("entity")["match"] for side in ("source", "target"))
    assert len(source) == len(target) > 400
    assert (target.loc[source].to_numpy() == source.index).all()
    assert found.test is not None
    assert found.to_dict()["suggested"]["precision"] > 0.8
    benchmark = dataclasses.replace(task, train_links=links[:100], test_links=links[100:])
    assert isinstance(match_probabilities(similarity, benchmark, 10, "exact", 0).calibration, Uncalibrated)
    own = dataclasses.replace(benchmark, own_links=True)
    assert isinstance(match_probabilities(similarity, own, 10, "exact", 0).calibration, Calibration)


@pytest.mark.parametrize("held_out", [49, 60])
def test_links_of_a_users_own_that_were_held_out_are_fitted_on(held_out: int) -> None:
    """Too few of them, and the probabilities are estimated; on a benchmark the test links stay untouched."""
    rng = np.random.default_rng(5)
    graphs = [random_graph(rng, name, 700, 3, 900) for name in "ab"]
    links = np.stack([np.arange(500)] * 2, axis=1)
    seeds, valid, test = links[: 500 - held_out], links[500 - held_out : 510 - held_out], links[510 - held_out :]
    task = AlignmentTask("drawn", "drawn", *graphs, seeds, valid, test, empty_links(), split="drawn", fingerprint="0" * 64, own_links=True)
    similarity = drawn(500, 200, 0.9)
    found = match_probabilities(similarity, task, 10, "exact", 0)
    assert isinstance(found.calibration, Calibration)
    assert (found.calibration.estimated, found.calibration.on_test_links) == (held_out < 50, held_out >= 50)
    assert Calibration.from_dict(found.calibration.to_dict()) == found.calibration
    if held_out >= 50:
        assert found.test is None, "nothing is left to judge by"
        assert found.calibration.links == held_out
        assert found.calibration.calibration_error is not None
    benchmark = dataclasses.replace(task, own_links=False)
    assert isinstance(match_probabilities(similarity, benchmark, 10, "exact", 0).calibration, Uncalibrated)


def test_a_run_that_trained_on_its_own_pairs_gets_no_estimate() -> None:
    """Wrong pairs that were trained on are as similar as right ones: the similarity of such a run says nothing."""
    rng = np.random.default_rng(2)
    graphs = [random_graph(rng, name, 700, 3, 900) for name in "ab"]
    none, links = empty_links(), np.stack([np.arange(500)] * 2, axis=1)
    task = AlignmentTask("drawn", "drawn", *graphs, none, none, none, none, split="drawn", fingerprint="0" * 64)
    found = match_probabilities(drawn(500, 200, 0.4), task, 10, "exact", 0, self_trained=True)
    assert isinstance(found.calibration, Uncalibrated)
    assert "trained on their own selected pairs" in found.calibration.reason
    assert found.table.empty
    held_out = dataclasses.replace(task, train_links=links[:400], test_links=links[400:], own_links=True)
    assert isinstance(match_probabilities(drawn(500, 200, 0.4), held_out, 10, "exact", 0, self_trained=True).calibration, Calibration)
