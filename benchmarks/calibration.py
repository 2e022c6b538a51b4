"""Whether the probabilities of matches keep their word on the test links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.plan import Plan, Report
from benchmarks.runs import Experiment, Result
from benchmarks.tables import NOTHING, by_group, markdown, seeds, spread

DEFAULTS = ("data.valid_ratio=0.1",)
HEADER = (
    *("data", "variant", "seeds", "validation links", "calibration error", "cross-validated", "of test links alone", "unlinked that dangle"),
    *("threshold", "precision promised", "found", "difference", "recall promised", "found"),
)
NOTE = (
    "calibration error: expected calibration error (10 bins) of the predictions for entities of test links, and for entities of no link at all, "
    "which count as wrong with the weight of the share of them that is estimated to have no counterpart; then what cross-validation on the "
    "validation links said, and the error among entities of test links alone. threshold: the lowest at which cross-validation promises a precision "
    "of .9; what was found is counted on the same predictions as the error."
)


def experiments(plan: Plan) -> list[Experiment]:
    return plan.experiments({"": ()}, DEFAULTS)


def table(results: Sequence[Result]) -> str:
    """A line per data set and variant, and below it why runs without probabilities have none."""
    rows, notes = [], [NOTE]
    for group in by_group(results).values():
        reports = [one.run.json("calibration") for one in group]
        calibrated = [report for report in reports if report["test"] is not None]
        notes += [f"{one.run.id}: {why_not(report)}" for one, report in zip(group, reports, strict=True) if report["test"] is None]
        if calibrated:
            rows.append([*group[0].group[:2], seeds(group), *figures(calibrated)])
    return "\n\n".join([markdown(HEADER, rows), *notes])


def why_not(report: dict[str, Any]) -> str:
    reason: str = report["fit"].get("reason") or "There are no test links to keep a word on."
    return reason


def figures(reports: Sequence[dict[str, Any]]) -> list[str]:
    """Of one data set and variant over the seeds."""
    fits, tests = [report["fit"] for report in reports], [report["test"] for report in reports]
    cells = [
        " ".join(str(fit["links"]) for fit in fits),
        spread([test["calibration_error"] for test in tests]),
        spread([fit["calibration_error"] for fit in fits]),
        spread([test["linked_calibration_error"] for test in tests]),
        spread([report["unlinked_dangling"] for report in reports]),
    ]
    thresholds = [test["threshold"] for test in tests if test.get("threshold") and test["threshold"]["found"]["precision"] is not None]
    if not thresholds:
        return [*cells, *[NOTHING] * 6]
    promised, found = ([one[kind] for one in thresholds] for kind in ("promised", "found"))
    return [
        *cells,
        spread([one["probability"] for one in thresholds]),
        spread([one["precision"] for one in promised]),
        spread([one["precision"] for one in found]),
        spread([kept["precision"] - word["precision"] for word, kept in zip(promised, found, strict=True)], "+"),
        spread([one["recall"] for one in promised]),
        spread([one["recall"] for one in found]),
    ]


REPORT = Report("calibration of the probabilities on the test links", experiments, table)
