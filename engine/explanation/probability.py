"""What raised and lowered a pair's calibrated probability: the parts of its log odds, from what the run has stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.data.knowledge_graph import SIDES
from engine.evaluation.calibration import FEATURE_COLUMNS, FEATURES, Calibration, logistic
from engine.runs.numbers import check_numbers
from engine.runs.view import RunView

RANKS = ("source rank", "target rank", "plan weight")
"""Features that are plain logarithms."""
COUNTS = ("source degree", "target degree", "aligned neighbours")
"""Features that are logarithms of 1 + a count."""


@dataclass(frozen=True)
class ProbabilityPart:
    """What one feature does to a probability.

    Attributes:
        feature: its name, of ``FEATURES``.
        value: of this pair.   usual: of the predictions that the calibration was fitted on, on average. Neither is a logarithm, so the usual
            rank, degree, count or weight is a geometric mean.
        log_odds: what the difference adds to the log odds.
    """

    feature: str
    value: float
    usual: float
    log_odds: float


@dataclass(frozen=True)
class ProbabilityParts:
    """A pair's probability, and what it is made of.

    Attributes:
        probability: as the run has stored it.
        average: probability of a pair that is average in all features.
        parts: the largest effect first. The log odds of ``average`` plus theirs are those of ``probability``.
    """

    probability: float
    average: float
    parts: tuple[ProbabilityPart, ...]


def probability_parts(view: RunView, calibration: Mapping[str, Any], source: int, target: int) -> ProbabilityParts | None:
    """The parts of a pair's probability; None where the run gives it none, or was made by a version that stored no features.

    Args:
        view: of the run.
        calibration: what the run has stored as ``calibration``.
        source, target: the pair.

    Raises:
        RunDamagedError: the calibration or the table cannot be read.
    """
    if not view.has("probabilities") or not dict(calibration.get("fit") or {}).get("calibrated"):
        return None
    for side, entity, match in zip(SIDES, (source, target), (target, source), strict=True):
        table = view.run.table("probabilities", where={"graph": side, "entity": entity})
        row = table[table["match"] == match]
        if len(row) and set(FEATURE_COLUMNS) <= set(row.columns):
            check_numbers(view.run, row, ("probability", *FEATURE_COLUMNS), "probabilities")
            fit = Calibration.from_dict(calibration["fit"])
            features = row[list(FEATURE_COLUMNS)].to_numpy(dtype=np.float64)[:1]
            return ProbabilityParts(float(row["probability"].iloc[0]), float(logistic(np.array(fit.intercept))), feature_parts(fit, features))
    return None


def feature_parts(fit: Calibration, features: Any) -> tuple[ProbabilityPart, ...]:
    """Of one pair, (1, F)."""
    effects = fit.contributions(features)[0].tolist()
    values = dict(zip(FEATURES, features[0].tolist(), strict=True))
    parts = [
        ProbabilityPart(name, plain_value(name, values[name]), plain_value(name, usual), effect)
        for name, usual, effect in zip(fit.features, fit.means, effects, strict=True)
    ]
    return tuple(sorted(parts, key=lambda part: -abs(part.log_odds)))


def plain_value(feature: str, value: float) -> float:
    """A feature's value as a person knows it: a rank, a degree, a count, and not its logarithm."""
    if feature in RANKS:
        return float(np.exp(value))
    return float(np.expm1(value)) if feature in COUNTS else value
