"""How likely a predicted pair is right: logistic regression on what can be seen without knowing the answer, fitted on links that were held out from
training: validation links, or on data of a user's own with too few of them, the test links as well.

What makes the probability carry over from the validation links to others:

- Both compete in one pool. Decode the pool that the probabilities are for, with the validation entities in it, and fit on those rows of the very same
  decoding. CSLS, margins and Sinkhorn weights all depend on who else is there; a pool of validation entities alone is smaller and easier, and
  a model fitted in it would promise too much.
- The links must be hold-out links: a pair that was trained on is always near. Choosing the best epoch by them is harmless, training on them is not.
- Validation entities have counterparts, others may not (dangling entities). Where the pool holds such entities, say what share of it they are:
  the validation entities are then shown a second time with their counterparts taken out of the pool, as dangling entities would appear, and
  whatever is predicted for them counts as wrong, with that share's weight.
- A pair has one probability, from whichever end it was predicted: features describe source and target, not of query and answer.

What a neighbourhood shows counts as well: how many neighbours of the two entities are aligned to each other, by seed links and by clear mutual best
pairs of the decoding at hand (:mod:`engine.decoding.neighbour_agreement`), wherever probabilities are fitted, estimated or given.

Every figure about the fit (calibration error, precision, recall) is cross-validated over the links.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from engine.decoding.base import NONE, Decoder, Decoding, best_pairs
from engine.decoding.candidates import Candidates, Lists
from engine.decoding.graph_evidence import GraphEvidence
from engine.decoding.kernels import places_in_list
from engine.decoding.neighbour_agreement import aligned_neighbours
from engine.decoding.sinkhorn import log_plan
from engine.errors import ConfigError, RunDamagedError
from engine.util.arrays import BoolArray, FloatArray, IntArray

FEATURES = (
    "similarity",
    "csls",
    "source margin",
    "target margin",
    "source rank",
    "target rank",
    "plan weight",
    "source degree",
    "target degree",
    "aligned neighbours",
    "aligned share",
)
"""What a probability is fitted on. A stored calibration names its own features, so a name must keep its meaning: what is computed in another way
gets a new one, and what is no longer fitted on stays computable as long as stored calibrations are to be applied."""
FEATURE_COLUMNS = tuple(name.replace(" ", "_") for name in FEATURES)
"""Their names in a run's table of probabilities."""
MAX_MARGIN = 1.0
"""Lead over the runner-up in CSLS that counts as none in sight."""
LATER_FIELDS = ("estimated", "on_test_links")
"""Which older stored calibrations do not have; false there."""
LEAST_LOG_WEIGHT = -20.0
LEAST_LINKS = 50
MOST_HELD_OUT = 0.2
LEAST_OF_EACH = 10
LEAST_ABOVE = 20
"""Predictions that a threshold must leave to be suggested: the precision of fewer is anyone's guess."""
FOLDS = 5
CURVE_POINTS = 200
BINS = 10


@dataclass(frozen=True)
class Uncalibrated:
    """Why there are no probabilities, in a sentence for the user."""

    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"calibrated": False, "reason": self.reason}


@dataclass(frozen=True)
class Threshold:
    """Keep pairs of at least this probability, and expect this.

    Attributes:
        precision: share of the kept pairs that are right.
        recall: share of the links that are among them.
    """

    probability: float
    precision: float
    recall: float


@dataclass(frozen=True)
class Calibration:
    """A fitted model of P(a predicted pair is right); plain numbers, so that it can be kept as JSON.

    Attributes:
        decoder: whose predictions it is for.
        means, scales, coefficients: one for each of ``features``, which are standardised first.
        intercept: log odds of an average pair.
        links: validation links that it was fitted on.   pairs: predicted pairs that these gave.   right: right ones among them.
        dangling_share: share of entities without a counterpart that was assumed.
        calibration_error: expected calibration error, cross-validated; None where the probabilities are estimated without links.
        curve: thresholds in descending order, with what is to be expected of each, cross-validated where there are links.
        features: names of what it was fitted on, all among ``FEATURES``; older calibrations have fewer.
        estimated: no links were known (:mod:`engine.evaluation.estimation`); then ``right`` is what is expected, and only mutual best matches have
            probabilities.
        on_test_links: whether ``links`` are test links as well; nothing but the cross-validated figures then says how good the probabilities are.
    """

    decoder: str
    means: tuple[float, ...]
    scales: tuple[float, ...]
    coefficients: tuple[float, ...]
    intercept: float
    links: int
    pairs: int
    right: int
    dangling_share: float
    calibration_error: float | None
    curve: tuple[Threshold, ...]
    features: tuple[str, ...] = FEATURES
    estimated: bool = False
    on_test_links: bool = False

    def probabilities(self, features: FloatArray) -> FloatArray:
        """(P,) probabilities of pairs with (P, F) features from :func:`pair_features`."""
        return logistic(self.contributions(features).sum(axis=1) + self.intercept)

    def contributions(self, features: FloatArray) -> FloatArray:
        """(P, len(features of the fit)) what each feature adds to the log odds of an average pair, which are ``intercept``."""
        own = features[:, [FEATURES.index(name) for name in self.features]]
        contributions: FloatArray = (own - np.array(self.means)) / np.array(self.scales) * np.array(self.coefficients)
        return contributions

    def suggest_threshold(self, precision: float) -> Threshold | None:
        """The lowest threshold at which this precision is to be expected, None if none promises it.

        Raises:
            ConfigError: not a share.
        """
        if not 0 < precision <= 1:
            raise ConfigError(f"the precision must be above 0 and at most 1; got {precision:g}.")
        fitting = [threshold for threshold in self.curve if threshold.precision >= precision]
        return fitting[-1] if fitting else None

    def balanced_threshold(self) -> Threshold | None:
        """The threshold with the best F1 to be expected; None where there is none."""
        return max(self.curve, key=lambda point: point.precision * point.recall / max(point.precision + point.recall, 1e-12), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the inverse of :meth:`from_dict`."""
        return {"calibrated": True, **asdict(self), "features": list(self.features)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """
        Raises:
            RunDamagedError: not what :meth:`to_dict` gave, or made with features that this version cannot compute.
        """
        try:
            parts = {spec.name: values[spec.name] for spec in fields(cls) if spec.name not in LATER_FIELDS}
            parts |= {name: bool(values.get(name, False)) for name in LATER_FIELDS}
            parts["features"] = tuple(parts["features"])
            if len(set(parts["features"])) != len(parts["features"]) or not set(parts["features"]) <= set(FEATURES):
                raise RunDamagedError("the calibration uses features that this version does not have; train the run again.")
            for name in ("means", "scales", "coefficients"):
                parts[name] = tuple(float(value) for value in parts[name])
                if len(parts[name]) != len(parts["features"]):
                    raise ValueError(name)
            parts["curve"] = tuple(Threshold(**point) for point in parts["curve"])
            return cls(**parts)
        except (KeyError, TypeError, ValueError) as error:
            raise RunDamagedError(f"the stored calibration cannot be read (at {error}); train the run again.") from None


def pair_features(decoding: Decoding, positions: IntArray, evidence: GraphEvidence | None = None) -> FloatArray:
    """(P, F) what can be seen of candidate pairs, in the order of ``FEATURES``.

    Args:
        decoding: of the pool.
        positions: (P,) of the pairs among the decoding's candidates.
        evidence: the graphs around the pool's entities and the seed links, where they are known.
    """
    candidates = decoding.candidates
    left, right = candidates.sources[positions], candidates.targets[positions]
    plan = log_plan(candidates)[positions] if len(candidates) else np.zeros(0)
    columns: list[npt.NDArray[Any]] = [
        candidates.similarity[positions],
        candidates.csls[positions],
        margins(candidates, candidates.by_source, positions, left),
        margins(candidates, candidates.by_target, positions, right),
        log_ranks(candidates, candidates.by_source, positions, left),
        log_ranks(candidates, candidates.by_target, positions, right),
        np.maximum(plan, LEAST_LOG_WEIGHT),
        *graph_features(candidates, positions, evidence),
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def graph_features(candidates: Candidates, positions: IntArray, evidence: GraphEvidence | None) -> list[FloatArray]:
    """What the graphs say of candidate pairs; 0 without them."""
    if evidence is None:
        return [np.zeros(len(positions))] * 4
    degrees = evidence.degrees
    around = aligned_neighbours(evidence, candidates, positions)
    return [
        np.log1p(degrees[0][candidates.sources[positions]]),
        np.log1p(degrees[1][candidates.targets[positions]]),
        np.log1p(around.count),
        around.share,
    ]


def margins(candidates: Candidates, lists: Lists, positions: IntArray, entities: IntArray) -> FloatArray:
    """(P,) how far each pair's CSLS lies above the best other one in its entity's list; negative where it is not the best."""
    best, second = (part[entities] for part in best_pairs(lists, candidates.csls))
    rival = np.where(best == positions, second, best)
    lead = np.full(len(positions), MAX_MARGIN)
    rivalled = rival != NONE
    lead[rivalled] = candidates.csls[positions[rivalled]].astype(np.float64) - candidates.csls[rival[rivalled]]
    clipped: FloatArray = np.clip(lead, -MAX_MARGIN, MAX_MARGIN)
    return clipped


def log_ranks(candidates: Candidates, lists: Lists, positions: IntArray, entities: IntArray) -> FloatArray:
    """(P,) logarithm of each pair's rank by CSLS in its entity's list."""
    ranks = np.zeros(len(positions), dtype=np.int64)
    places_in_list(lists.indptr, lists.edges, candidates.csls, positions, entities, ranks)
    logarithms: FloatArray = np.log(np.maximum(ranks, 1))
    return logarithms


def fit_calibration(
    decoder: Decoder,
    candidates: Candidates,
    links: IntArray,
    evidence: GraphEvidence | None = None,
    dangling_share: float = 0.0,
    seed: int = 0,
) -> Calibration | Uncalibrated:
    """Fit probabilities for a decoder's predictions; see the head of this module for what pool and links to give.

    Args:
        decoder: whose predictions are to be judged.
        candidates: of the pool.
        links: (L, 2) validation links, as rows of the pool.
        evidence: the graphs around the pool's entities and the seed links, where they are known.
        dangling_share: share of the pool's entities that have no counterpart.
        seed: divides the links into folds.

    Returns:
        The calibration, or why there cannot be one.

    Raises:
        ConfigError: a share that is not one.
    """
    if not 0 <= dangling_share < 1:
        raise ConfigError(f"the share of entities without a counterpart must be at least 0 and below 1; got {dangling_share:g}.")
    links = np.unique(np.asarray(links, dtype=np.int64).reshape(-1, 2), axis=0)
    if len(links) < LEAST_LINKS:
        return Uncalibrated(too_few(len(links)))
    decoding = decoder.decode(candidates)
    rows = observed_rows(decoding, links, evidence)
    if reason := one_sided(rows):
        return Uncalibrated(reason)
    if dangling_share:
        rows = rows.joined(dangling_rows(decoder, candidates, links, evidence, seed), dangling_share)
    return fitted(decoding.decoder, rows, links, dangling_share, seed)


def share_to_hold_out(seeds: int) -> float | None:
    """The share of a number of seed links, a multiple of .05, that makes validation links enough; None where it would be more than a fifth."""
    share = max(math.ceil(20 * LEAST_LINKS / max(seeds, 1)) / 20, 0.1)
    return share if share <= MOST_HELD_OUT else None


MORE_LINKS: Final = (
    "Hold out some seed links (for example data.valid_ratio=0.1) and train again. With few seed links, add known links, "
    "or review pairs on the page Review and train with the decisions"
)
"""How a run gets probabilities."""


def too_few(count: int) -> str:
    have = "There are no validation links" if not count else f"There are only {count} validation links"
    return f"{have}, so probabilities cannot be calibrated (at least {LEAST_LINKS} are needed). Scores and ranks are not affected. {MORE_LINKS}."


@dataclass(frozen=True)
class CalibrationRows:
    """Predicted pairs to learn from.

    Attributes:
        features: (N, F).   right: (N,) whether the pair is a link.   weights: (N,).
        link: (N,) index of the validation link that it comes from: what cross-validation must not tear apart.
    """

    features: FloatArray
    right: BoolArray
    weights: FloatArray
    link: IntArray

    def joined(self, dangling: CalibrationRows, share: float) -> CalibrationRows:
        """With rows of dangling entities that make up a share of the whole weight."""
        factor = self.weights.sum() * share / (1 - share) / max(dangling.weights.sum(), 1)
        return CalibrationRows(
            np.concatenate([self.features, dangling.features]),
            np.concatenate([self.right, dangling.right]),
            np.concatenate([self.weights, factor * dangling.weights]),
            np.concatenate([self.link, dangling.link]),
        )


def observed_rows(decoding: Decoding, links: IntArray, evidence: GraphEvidence | None) -> CalibrationRows:
    """Every predicted pair that touches a validation entity.

    A right pair has both of its ends among them or neither, a wrong one mostly just one, so wrong pairs are met twice as often as they are in the
    pool: half a pair's weight comes with each end.
    """
    positions = decoding.pairs()
    candidates = decoding.candidates
    left, right = candidates.sources[positions], candidates.targets[positions]
    of_source, of_target = (first_link(links[:, side], candidates.shape[side]) for side in range(2))
    link = np.where(of_source[left] != NONE, of_source[left], of_target[right])
    touched = link != NONE
    weights = ((of_source[left] != NONE).astype(np.float64) + (of_target[right] != NONE))[touched] / 2
    correct = np.isin(candidates.codes[positions], links[:, 0] * candidates.shape[1] + links[:, 1])
    features = pair_features(decoding, positions[touched], evidence)
    return CalibrationRows(features, correct[touched], weights, link[touched])


def first_link(linked: IntArray, count: int) -> IntArray:
    """(count,) index of a link of each entity, -1 for none."""
    found = np.full(count, NONE, dtype=np.int64)
    found[linked[::-1]] = np.arange(len(linked), dtype=np.int64)[::-1]
    return found


def dangling_rows(decoder: Decoder, candidates: Candidates, links: IntArray, evidence: GraphEvidence | None, seed: int) -> CalibrationRows:
    """What is predicted for validation entities whose counterparts are taken out of the pool."""
    decoding, lonely = without_counterparts(decoder, candidates, links, seed)
    rows = observed_rows(decoding, links, evidence)
    positions = decoding.pairs()
    left, right = decoding.candidates.sources[positions], decoding.candidates.targets[positions]
    touched = np.isin(left, links[:, 0]) | np.isin(right, links[:, 1])
    kept = (lonely[0][left] | lonely[1][right])[touched] & ~rows.right
    return CalibrationRows(rows.features[kept], rows.right[kept], rows.weights[kept], rows.link[kept])


def without_counterparts(decoder: Decoder, candidates: Candidates, links: IntArray, seed: int) -> tuple[Decoding, tuple[BoolArray, BoolArray]]:
    """The pool without the targets of half of the links and the sources of the others, decoded; and which entities of either side lost theirs."""
    lonely_source = np.random.default_rng(seed).permutation(len(links)) % 2 == 0
    gone, lonely = ([np.zeros(count, dtype=np.bool_) for count in candidates.shape] for _ in range(2))
    for side, mask in enumerate((lonely_source, ~lonely_source)):
        lonely[side][links[mask, side]] = True
        gone[1 - side][links[mask, 1 - side]] = True
    decoding = decoder.decode(candidates.kept(~gone[0][candidates.sources] & ~gone[1][candidates.targets]))
    return decoding, (lonely[0], lonely[1])


def one_sided(rows: CalibrationRows) -> str | None:
    """Why these rows teach nothing, if so."""
    right = int(rows.right.sum())
    wrong = len(rows.right) - right
    if min(right, wrong) >= LEAST_OF_EACH:
        return None
    return (
        f"Of the predictions for entities of held-out links, {right:,} are correct and {wrong:,} incorrect. "
        f"Probabilities need at least {LEAST_OF_EACH} "
        "of each. Hold out more links with data.valid_ratio, or use ranks and margins."
    )


def fitted(decoder: str, rows: CalibrationRows, links: IntArray, dangling_share: float, seed: int) -> Calibration:
    """The model of all rows, with figures from models that did not see the rows in question."""
    held_out = np.zeros(len(rows.right))
    for inside, outside in folds(rows, len(links), seed):
        model = Logistic.of(rows.features[inside], rows.right[inside], rows.weights[inside])
        held_out[outside] = model.probabilities(rows.features[outside])
    model = Logistic.of(rows.features, rows.right, rows.weights)
    return Calibration(
        decoder=decoder,
        means=tuple(model.means.tolist()),
        scales=tuple(model.scales.tolist()),
        coefficients=tuple(model.coefficients.tolist()),
        intercept=model.intercept,
        links=len(links),
        pairs=len(rows.right),
        right=int(rows.right.sum()),
        dangling_share=dangling_share,
        calibration_error=expected_calibration_error(held_out, rows.right, rows.weights),
        curve=threshold_curve(held_out, rows.right, rows.weights, len(links)),
    )


def folds(rows: CalibrationRows, links: int, seed: int) -> Iterator[tuple[BoolArray, BoolArray]]:
    """(fit, hold out) masks; both kinds of pairs are in every fit."""
    fold_of_link = np.random.default_rng(seed).permutation(links) % FOLDS
    for fold in range(FOLDS):
        outside = fold_of_link[rows.link] == fold
        if outside.any() and 0 < rows.right[~outside].sum() < (~outside).sum():
            yield ~outside, outside


@dataclass(frozen=True)
class Logistic:
    """Logistic regression on standardised features."""

    means: FloatArray
    scales: FloatArray
    coefficients: FloatArray
    intercept: float

    @classmethod
    def of(cls, features: FloatArray, right: BoolArray, weights: FloatArray) -> Logistic:
        from sklearn.linear_model import LogisticRegression  # takes a second to load, which a run without validation links need not wait for

        means, deviations = features.mean(axis=0), features.std(axis=0)
        scales = np.where(deviations > 1e-9, deviations, 1.0)
        model = LogisticRegression(max_iter=1000).fit((features - means) / scales, right, weights)
        return cls(means, scales, model.coef_[0].astype(np.float64), float(model.intercept_[0]))

    def probabilities(self, features: FloatArray) -> FloatArray:
        return logistic((features - self.means) / self.scales @ self.coefficients + self.intercept)


def logistic(log_odds: FloatArray) -> FloatArray:
    values: FloatArray = 0.5 * (1.0 + np.tanh(0.5 * log_odds))
    return values


def threshold_curve(probabilities: FloatArray, right: BoolArray, weights: FloatArray, links: int) -> tuple[Threshold, ...]:
    """Thresholds in descending order with the precision and recall to expect.

    The rows' outcomes are first smoothed to rise with the probability (isotonic regression): the precision above a threshold then falls steadily
    with it, and a lucky run of right pairs is not mistaken for a good threshold.
    """
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(-probabilities, kind="stable")
    smooth = isotonic_regression(right[order].astype(np.float64), sample_weight=weights[order], increasing=False)
    precision = np.cumsum(smooth * weights[order]) / np.cumsum(weights[order])
    recall = np.minimum(np.cumsum(right[order]) / links, 1.0)
    chosen = thinned(probabilities[order], min(LEAST_ABOVE, len(order)))
    return tuple(
        Threshold(p, min(q, 1.0), r)
        for p, q, r in zip(probabilities[order][chosen].tolist(), precision[chosen].tolist(), recall[chosen].tolist(), strict=True)
    )


def thinned(ordered: FloatArray, least: int) -> IntArray:
    """Places of at most ``CURVE_POINTS`` thresholds among descending probabilities, each at the last of equal ones, with ``least`` above it."""
    last = np.flatnonzero(np.append(np.diff(ordered) < 0, True))
    last = last[last >= least - 1]
    chosen: IntArray = last[np.unique(np.linspace(0, len(last) - 1, CURVE_POINTS).astype(np.int64))]
    return chosen


def expected_calibration_error(probabilities: FloatArray, right: BoolArray, weights: FloatArray | None = None, bins: int = BINS) -> float:
    """Mean distance of what was promised from what came true, over bins of equal width (Naeini et al., AAAI 2015); 0 if there is nothing."""
    if not len(probabilities):
        return 0.0
    weights = np.ones(len(probabilities)) if weights is None else weights
    which = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(which, weights * (probabilities - right), minlength=bins)
    return float(np.abs(gaps).sum() / weights.sum())
