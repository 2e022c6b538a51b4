"""Probabilities must mean what they say, on links that the fit has not seen; and where that cannot be, it must be said."""

from __future__ import annotations

import itertools
import json
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
import torch

from engine.data.knowledge_graph import KnowledgeGraph
from engine.decoding import DECODERS, Candidates, GraphEvidence, find_candidates, get_decoder
from engine.errors import ConfigError, RunDamagedError
from engine.evaluation.calibration import (
    FEATURES,
    LEAST_LINKS,
    Calibration,
    Logistic,
    Uncalibrated,
    expected_calibration_error,
    fit_calibration,
    pair_features,
    share_to_hold_out,
    threshold_curve,
)
from engine.search import StructuralSimilarity, normalise_rows
from engine.util.arrays import IntArray
from tests.decoding.cases import from_copies, from_table, identity

COUNT = 1200


def graph_of(count: int, edges: list[tuple[int, int]]) -> KnowledgeGraph:
    triples = np.array([(head, 0, tail) for head, tail in edges], dtype=np.int64).reshape(-1, 3)
    return KnowledgeGraph("graph", tuple(f"e{index}" for index in range(count)), ("",) * count, ("r",), triples)


VALID, TEST = identity(COUNT)[:500], identity(COUNT)[500:]


@cache
def crowd() -> Candidates:
    """Pairs of which some are easy to find and some are not, as entities of high and low degree are."""
    rng = np.random.default_rng(3)
    base, noise = rng.standard_normal((COUNT, 24)), rng.uniform(0.2, 1.8, (COUNT, 1))
    parts = (torch.from_numpy((base + noise * rng.standard_normal(base.shape)).astype(np.float32)) for _ in range(2))
    return find_candidates(StructuralSimilarity(*(normalise_rows(part) for part in parts)), top=30)


@cache
def calibration(decoder: str) -> Calibration:
    found = fit_calibration(get_decoder(decoder), crowd(), VALID)
    assert isinstance(found, Calibration)
    return found


def unseen(decoder: str, links: IntArray = TEST) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Probabilities of what is predicted for the links' source entities, and whether it is right."""
    decoding = get_decoder(decoder).decode(crowd())
    chosen = decoding.chosen("source")[links[:, 0]]
    positions = chosen[chosen >= 0]
    right = crowd().sources[positions] == crowd().targets[positions]
    return calibration(decoder).probabilities(pair_features(decoding, positions)), right


@pytest.mark.parametrize("decoder", sorted(DECODERS))
def test_probabilities_come_true_on_unseen_links(decoder: str) -> None:
    probabilities, right = unseen(decoder)
    assert 0.1 < right.mean() < 0.98
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert expected_calibration_error(probabilities, right) < 0.07
    assert calibration(decoder).calibration_error < 0.07
    assert probabilities[right].mean() > probabilities[~right].mean() + 0.15


@pytest.mark.parametrize("decoder", sorted(DECODERS))
def test_a_threshold_keeps_its_promise(decoder: str) -> None:
    threshold = calibration(decoder).suggest_threshold(0.9)
    assert threshold is not None
    assert threshold.precision >= 0.9
    probabilities, right = unseen(decoder)
    kept = probabilities >= threshold.probability
    assert right[kept].mean() == pytest.approx(threshold.precision, abs=0.05)
    assert right[kept].sum() / len(TEST) == pytest.approx(threshold.recall, abs=0.06)


def test_thresholds_fall_as_less_precision_is_asked_for() -> None:
    wanted = [0.99, 0.95, 0.9, 0.8, 0.7]
    found = [threshold for precision in wanted if (threshold := calibration("csls").suggest_threshold(precision))]
    assert len(found) >= 3
    assert all(high.probability >= low.probability and high.recall <= low.recall for high, low in itertools.pairwise(found))
    curve = calibration("csls").curve
    assert all(high.precision >= low.precision - 1e-12 for high, low in itertools.pairwise(curve))


def test_no_threshold_promises_the_impossible() -> None:
    right = np.tile([True, False], 100)
    curve = threshold_curve(np.linspace(1, 0, 200), right, np.ones(200), 200)
    assert max(threshold.precision for threshold in curve) < 0.6
    hopeless = Calibration.from_dict({**calibration("csls").to_dict(), "curve": [vars(threshold) for threshold in curve]})
    assert hopeless.suggest_threshold(0.9) is None


@pytest.mark.parametrize("precision", [0.0, -1.0, 1.5, float("nan")])
def test_the_wanted_precision_is_checked(precision: float) -> None:
    with pytest.raises(ConfigError, match="precision"):
        calibration("csls").suggest_threshold(precision)


def test_dangling_entities_get_a_low_probability() -> None:
    """Of half of the test links the target is gone: with their share given, probabilities hold for the whole; without, they promise too much."""
    lonely = TEST[::2, 1]
    pool = crowd().kept(~np.isin(crowd().targets, lonely))
    share = len(lonely) / COUNT
    decoding = get_decoder("csls").decode(pool)
    asked = TEST[:, 0]
    positions = decoding.chosen("source")[asked]
    right = pool.sources[positions] == pool.targets[positions]
    features = pair_features(decoding, positions)
    aware, unaware = (fit_calibration(get_decoder("csls"), pool, VALID, dangling_share=given) for given in (share, 0.0))
    assert isinstance(aware, Calibration)
    assert isinstance(unaware, Calibration)
    dangling = np.isin(asked, lonely)
    with_share, without = aware.probabilities(features), unaware.probabilities(features)
    assert with_share[dangling].mean() < 0.15
    assert with_share[dangling].mean() < without[dangling].mean()
    assert with_share[~dangling].mean() > 3 * with_share[dangling].mean()
    assert with_share.mean() == pytest.approx(right.mean(), abs=0.02)
    assert expected_calibration_error(with_share, right) < expected_calibration_error(without, right)
    assert aware.dangling_share == share
    assert right[dangling].sum() == 0


def test_a_pair_has_one_probability_from_either_end() -> None:
    decoding = get_decoder("sinkhorn").decode(crowd())
    both = np.intersect1d(decoding.chosen("source"), decoding.chosen("target"))
    fitted = calibration("sinkhorn")
    alone = [fitted.probabilities(pair_features(decoding, both[i : i + 1]))[0] for i in range(5)]
    np.testing.assert_allclose(alone, fitted.probabilities(pair_features(decoding, both))[:5], rtol=1e-12)


def test_it_is_kept_as_plain_json() -> None:
    fitted = calibration("sinkhorn")
    again = Calibration.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again == fitted
    assert fitted.to_dict()["calibrated"] is True


def test_a_calibration_of_an_older_version_still_gives_its_probabilities() -> None:
    older = FEATURES[:9]  # as of version 1: without the neighbourhood
    fitted = calibration("csls")
    numbers = {name: list(getattr(fitted, name)[:9]) for name in ("means", "scales", "coefficients")}
    again = Calibration.from_dict(json.loads(json.dumps(fitted.to_dict() | numbers | {"features": older})))
    assert again.features == older
    rows = np.random.default_rng(0).standard_normal((5, len(FEATURES)))
    kept = Logistic(*(np.array(numbers[name]) for name in ("means", "scales", "coefficients")), again.intercept)
    np.testing.assert_allclose(again.probabilities(rows), kept.probabilities(rows[:, :9]))
    assert again.to_dict()["features"] == list(older)


def test_contributions_add_up_to_the_log_odds() -> None:
    fitted = calibration("csls")
    rows = pair_features(get_decoder("csls").decode(crowd()), np.arange(7))
    odds = fitted.contributions(rows).sum(axis=1) + fitted.intercept
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), fitted.probabilities(rows))


def test_aligned_neighbours_make_a_pair_more_probable() -> None:
    """Two pools of equal similarities; only the graphs, of which every pair shares some edges, say which pairs are right."""
    rng = np.random.default_rng(5)
    edges = rng.integers(0, COUNT, (4 * COUNT, 2))
    source, target = (graph_of(COUNT, [tuple(edge) for edge in edges[rng.random(len(edges)) < 0.9].tolist()]) for _ in range(2))
    evidence = GraphEvidence.of(source, target, np.empty((0, 2), dtype=np.int64))
    aware, unaware = (fit_calibration(get_decoder("csls"), crowd(), VALID, given) for given in (evidence, None))
    assert isinstance(aware, Calibration)
    assert isinstance(unaware, Calibration)
    decoding = get_decoder("csls").decode(crowd())
    positions = decoding.chosen("source")[TEST[:, 0]]
    right = crowd().sources[positions] == crowd().targets[positions]
    losses = []
    for fit, given in ((aware, evidence), (unaware, None)):
        probability = np.clip(fit.probabilities(pair_features(decoding, positions, given)), 1e-9, 1 - 1e-9)
        losses.append(-np.log(np.where(right, probability, 1 - probability)).mean())
    assert losses[0] < 0.9 * losses[1]
    assert aware.coefficients[FEATURES.index("aligned share")] + aware.coefficients[FEATURES.index("aligned neighbours")] > 0


@pytest.mark.parametrize(
    "damage",
    [
        {"coefficients": [1.0]},
        {"means": None},
        {"curve": [{"probability": 1.0}]},
        {"features": ["csls"]},
        {"features": [*FEATURES[:-1], "of a later version"]},
        {"features": [FEATURES[0]] * len(FEATURES)},
        {"scales": ["x"] * len(FEATURES)},
    ],
)
def test_a_damaged_calibration_is_reported(damage: dict[str, object]) -> None:
    with pytest.raises(RunDamagedError, match="train the run again"):
        Calibration.from_dict({**calibration("csls").to_dict(), **damage})
    with pytest.raises(RunDamagedError):
        Calibration.from_dict({})


@pytest.mark.parametrize(("count", "words"), [(0, "There are no validation links"), (7, "only 7 validation links")])
def test_too_few_links_are_explained(count: int, words: str) -> None:
    found = fit_calibration(get_decoder("csls"), crowd(), VALID[:count])
    assert isinstance(found, Uncalibrated)
    assert words in found.reason
    assert "data.valid_ratio" in found.reason
    assert found.to_dict() == {"calibrated": False, "reason": found.reason}


def test_what_to_hold_out_gives_enough_links_and_no_more_than_a_fifth() -> None:
    for seeds in range(1, 2000):
        share = share_to_hold_out(seeds)
        assert (share is None) == (seeds < 5 * LEAST_LINKS)
        assert share is None or (round(share * seeds) >= LEAST_LINKS and 0.1 <= share <= 0.2)


def test_links_that_are_all_right_teach_nothing() -> None:
    found = fit_calibration(get_decoder("csls"), from_copies(LEAST_LINKS, LEAST_LINKS, noise=0.05), identity(LEAST_LINKS))
    assert isinstance(found, Uncalibrated)
    assert "50 are correct and 0 incorrect" in found.reason


def test_an_empty_pool_is_explained() -> None:
    assert isinstance(fit_calibration(get_decoder("sinkhorn"), from_copies(0, 5), identity(0)), Uncalibrated)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_the_dangling_share_is_checked(share: float) -> None:
    with pytest.raises(ConfigError, match="without a counterpart"):
        fit_calibration(get_decoder("csls"), crowd(), VALID, dangling_share=share)


def test_the_fit_is_deterministic() -> None:
    assert fit_calibration(get_decoder("csls"), crowd(), VALID) == calibration("csls")


def test_features_by_hand() -> None:
    candidates = from_table([[0.5, 0.2], [0.4, 0.1]])
    decoding = get_decoder("csls").decode(candidates)
    source, target = graph_of(2, [(1, 1)]), graph_of(2, [(0, 1), (1, 1), (1, 0)])
    features = pair_features(decoding, np.array([0, 3]), GraphEvidence.of(source, target, np.empty((0, 2), dtype=np.int64)))
    columns = dict(zip(FEATURES, features.T, strict=True))
    np.testing.assert_allclose(columns["csls"], [0.5, 0.1], rtol=1e-6)
    np.testing.assert_allclose(columns["source margin"], [0.3, -0.3], rtol=1e-6)
    np.testing.assert_allclose(columns["target margin"], [0.1, -0.1], rtol=1e-5)
    np.testing.assert_allclose(columns["source rank"], np.log([1, 2]))
    np.testing.assert_allclose(columns["target rank"], np.log([1, 2]))
    np.testing.assert_allclose(columns["source degree"], np.log1p([0, 2]))
    np.testing.assert_allclose(columns["target degree"], np.log1p([2, 4]))


def test_a_pair_without_rivals_has_the_largest_margin() -> None:
    features = pair_features(get_decoder("csls").decode(from_table([[0.5]])), np.array([0]))
    assert features[0, FEATURES.index("source margin")] == 1.0


def test_calibration_error_by_hand() -> None:
    promised, right = np.array([0.95, 0.95, 0.15, 0.15]), np.array([True, False, False, False])
    assert expected_calibration_error(promised, right) == pytest.approx((2 * 0.45 + 2 * 0.15) / 4)
    assert expected_calibration_error(promised[:0], right[:0]) == 0.0
