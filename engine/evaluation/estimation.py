"""How likely a predicted pair is right where no links are known: estimated from how predictions look that cannot be right.

Pairs that are each other's best match are a mixture of right and wrong ones. What wrong ones look like can be seen without knowing any link: the
counterparts of some of these entities are removed from the pool, and whatever then becomes a mutual best match of them is wrong. The share of
wrong ones among all pairs is how often pairs are as dissimilar as most of the wrong ones are, compared with the wrong ones themselves (mixture
proportion estimation, as in learning from negative and unlabelled examples: Elkan and Noto, KDD 2008; Ramaswamy et al., ICML 2016). Right pairs
whose names differ are as dissimilar as wrong ones and would all count as wrong; but there cannot be more wrong pairs than entities without a
counterpart produce. How often these find a mutual best match is seen in the same experiment, and how many there may be at most from the entities
that have no such match; the smaller of the two figures counts.

Only the similarity is looked at. Ranks, margins and the neighbours' alignment change as soon as counterparts are removed, and would reveal which
pairs are the removed ones. Where nearly all entities lack a counterpart, wrong pairs are more similar than this shows, and the
probabilities too high. Nothing is cross-validated, since there is nothing to validate with: these probabilities are estimates, and say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.decoding.base import Decoder, Decoding
from engine.decoding.candidates import Candidates
from engine.evaluation.calibration import (
    FEATURES,
    LEAST_ABOVE,
    Calibration,
    Logistic,
    Threshold,
    Uncalibrated,
    pair_features,
    thinned,
    without_counterparts,
)
from engine.util.arrays import BoolArray, FloatArray, IntArray
from engine.util.text import count

ESTIMATED_ON: Final = ("similarity",)
"""The features that an estimate depends on."""
LEAST_PAIRS: Final = 50
"""Mutual best matches, and wrong ones among them, from which on something can be estimated."""
QUANTILES: Final = np.linspace(0.2, 0.8, 13)
"""Of the wrong pairs' scores: below each, pairs and wrong pairs are counted and compared."""
PARTS: Final = 5
"""Parts of the pairs whose counterparts are removed one after the other."""
RARE: Final = 1e-6


def estimate_calibration(decoder: Decoder, candidates: Candidates, seed: int = 0) -> Calibration | Uncalibrated:
    """Probabilities of a decoder's mutual best matches, without any link.

    Args:
        decoder: whose predictions are to be judged.
        candidates: of the pool; entities of seed links should not be in it.
        seed: says whose counterparts are removed.
    """
    decoding = decoder.decode(candidates)
    positions = mutual_positions(decoding)
    if len(positions) < LEAST_PAIRS:
        return Uncalibrated(too_few_pairs(f"only {count(len(positions), 'such pair')} in this run"))
    seen = scores(decoding, positions)
    removal = remove_counterparts(decoder, candidates, positions, seed)
    wrong = removal.wrong[:, 0]
    if len(wrong) < LEAST_PAIRS:
        return Uncalibrated(too_few_pairs(f"only {count(len(wrong), 'surely wrong pair')} to compare them with"))
    share = min(wrong_share(seen[:, 0], wrong), most_wrong(removal.rates, candidates.shape, len(positions)))
    model = fitted_on_shares(seen, probability_right(seen[:, 0], wrong, share))
    expected = model.probabilities(seen)
    return Calibration(
        decoder=decoding.decoder,
        means=tuple(model.means.tolist()),
        scales=tuple(model.scales.tolist()),
        coefficients=tuple(model.coefficients.tolist()),
        intercept=model.intercept,
        links=0,
        pairs=len(positions),
        right=round(float(expected.sum())),
        dangling_share=share,
        calibration_error=None,
        curve=expected_curve(expected),
        features=ESTIMATED_ON,
        estimated=True,
    )


def too_few_pairs(what: str) -> str:
    """Why nothing can be estimated, and how the quality of the matches can be known all the same."""
    return (
        "Without validation links, probabilities are estimated from pairs of entities that are each other's best match, but there are too few: "
        f"{what} (at least {LEAST_PAIRS} are needed). To measure how many matches are correct, review a random sample on the page Review, or add "
        "known links. Scores and ranks are not affected."
    )


def mutual_positions(decoding: Decoding) -> IntArray:
    """(P,) the candidates that both of their entities are given, ascending."""
    source, target = decoding.chosen("source"), decoding.chosen("target")
    found: IntArray = np.intersect1d(source[source >= 0], target[target >= 0])
    return found


def scores(decoding: Decoding, positions: IntArray) -> FloatArray:
    """(P, len(ESTIMATED_ON)) the features of candidate pairs."""
    return pair_features(decoding, positions)[:, [FEATURES.index(name) for name in ESTIMATED_ON]]


@dataclass(frozen=True)
class Removal:
    """What entities match whose counterparts were removed.

    Attributes:
        wrong: (W, len(ESTIMATED_ON)) features of the mutual best matches that they found.
        rates: of source and of target entities, the share that found one.
    """

    wrong: FloatArray
    rates: tuple[float, float]


def remove_counterparts(decoder: Decoder, candidates: Candidates, positions: IntArray, seed: int) -> Removal:
    """Remove the counterparts of a part of the mutual best matches at a time, so that the pool stays nearly whole."""
    pairs = np.stack([candidates.sources[positions], candidates.targets[positions]], axis=1)
    part_of = np.random.default_rng(seed).permutation(len(pairs)) % PARTS
    found, matched, lonely_count = [], np.zeros(2), np.zeros(2)
    for part in range(PARTS):
        removed, lonely = without_counterparts(decoder, candidates, pairs[part_of == part], seed)
        left = mutual_positions(removed)
        is_lonely = np.stack([lonely[0][removed.candidates.sources[left]], lonely[1][removed.candidates.targets[left]]])
        found.append(scores(removed, left[is_lonely.any(axis=0)]))
        matched += is_lonely.sum(axis=1)
        lonely_count += [side.sum() for side in lonely]
    rates = matched / np.maximum(lonely_count, 1)
    return Removal(np.concatenate(found), (float(rates[0]), float(rates[1])))


def most_wrong(rates: tuple[float, float], shape: tuple[int, int], pairs: int) -> float:
    """The largest share of wrong ones among mutual best matches that entities without a counterpart can produce.

    Of D such entities, the share r finds a match and D (1 - r) do not; these are at most all entities without a match.

    Args:
        rates: of source and target entities without a counterpart, the share that finds a mutual best match.
        shape: entities of the pool.
        pairs: mutual best matches.
    """
    unmatched = np.array(shape) - pairs
    found = np.array(rates)
    return float(np.minimum((unmatched * found / np.maximum(1 - found, RARE)).sum() / pairs, 1.0))


def wrong_share(seen: FloatArray, wrong: FloatArray) -> float:
    """The share of wrong pairs: the median, over the lower part of the wrong pairs' scores, of pairs to wrong ones below each."""
    below = np.quantile(wrong, QUANTILES)
    ratios = [(seen <= score).mean() / (wrong <= score).mean() for score in below]
    return float(np.clip(np.median(ratios), 0.0, 1.0))


def probability_right(seen: FloatArray, wrong: FloatArray, share: float) -> FloatArray:
    """(P,) that each pair is right: the part of the density at its score that wrong pairs do not account for; never falling with the score."""
    from sklearn.isotonic import isotonic_regression  # takes a second to load

    both = np.concatenate([seen, wrong])
    order = np.argsort(both, kind="stable")
    is_seen = np.arange(len(both)) < len(seen)
    mass = np.where(is_seen, 1 / len(seen), 1 / len(wrong))
    smooth = np.empty(len(both))
    smooth[order] = isotonic_regression(is_seen[order].astype(np.float64), sample_weight=mass[order])
    odds = np.clip(smooth[: len(seen)], RARE, 1 - RARE)
    right: FloatArray = np.clip(1 - share * (1 - odds) / odds, 0.0, 1.0)
    return right


def fitted_on_shares(features: FloatArray, right: FloatArray) -> Logistic:
    """Logistic regression where each pair is right with a probability and wrong with the rest."""
    twice = np.concatenate([features, features])
    outcomes: BoolArray = np.arange(len(twice)) < len(features)
    return Logistic.of(twice, outcomes, np.concatenate([right, 1 - right]) + RARE)


def expected_curve(probabilities: FloatArray) -> tuple[Threshold, ...]:
    """Thresholds in descending order with the precision and recall to expect if the probabilities hold."""
    ordered = np.sort(probabilities)[::-1]
    expected = np.cumsum(ordered)
    last = thinned(ordered, min(LEAST_ABOVE, len(ordered)))
    precision, recall = expected[last] / (last + 1), expected[last] / expected[-1]
    return tuple(Threshold(*point) for point in zip(ordered[last].tolist(), precision.tolist(), recall.tolist(), strict=True))
