"""What is said of probabilities on the test links: judged where the truth is known, dangling entities included."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from engine.data.knowledge_graph import AlignmentTask, KnowledgeGraph
from engine.evaluation.assessment import judged_predictions, test_report
from engine.evaluation.calibration import FEATURES, Calibration, Threshold

judge = test_report  # pytest would take it for a test
judge.__test__ = False  # type: ignore[attr-defined]


def graph(count: int) -> KnowledgeGraph:
    return KnowledgeGraph("g", tuple(f"e{at}" for at in range(count)), ("",) * count, ("r",), np.array([[0, 0, 1]], dtype=np.int64))


@pytest.fixture
def task() -> AlignmentTask:
    """Entities 0 trained, 1 validated, 2 and 3 tested, 4 unsure, 5 dangling; the same numbers on both sides, where 6 dangles too."""
    links = {name: np.array([[at, at] for at in ends], dtype=np.int64) for name, ends in {"train": [0], "valid": [1], "test": [2, 3]}.items()}
    unsure = np.array([[4, 4]], dtype=np.int64)
    return AlignmentTask("t", "tables", graph(6), graph(7), links["train"], links["valid"], links["test"], unsure, "given", "0" * 64)


def predictions(*rows: tuple[str, int, int, float]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["graph", "entity", "match", "probability"])


ALL = predictions(
    ("source", 1, 1, 0.9),
    ("source", 2, 2, 0.9),
    ("source", 3, 2, 0.3),
    ("source", 4, 4, 0.9),
    ("source", 5, 3, 0.6),
    ("target", 2, 2, 0.9),
    ("target", 3, 5, 0.2),
    ("target", 6, 2, 0.1),
)


def test_only_entities_whose_truth_is_known_are_judged(task: AlignmentTask) -> None:
    judged = judged_predictions(ALL, task)
    found = list(zip(judged["source"], judged["target"], judged["linked"], judged["right"], strict=True))
    assert found == [
        (2, 2, True, True),
        (3, 2, True, False),
        (5, 3, False, False),  # no counterpart: whatever is predicted is wrong
        (2, 2, True, True),
        (5, 3, True, False),
        (2, 6, False, False),
    ]


def test_errors_and_threshold_are_counted_on_them(task: AlignmentTask) -> None:
    zeros = (0.0,) * len(FEATURES)
    curve = (Threshold(0.8, 0.95, 0.4), Threshold(0.5, 0.92, 0.6), Threshold(0.1, 0.4, 0.9))
    calibration = Calibration("csls", zeros, zeros, zeros, 0.0, 60, 60, 40, 0.2, 0.01, curve)
    report = judge(ALL, task, calibration, 1.0)
    assert (report["predictions"], report["linked"]) == (6, 4)
    assert report["calibration_error"] == pytest.approx((0.1 * 2 + 0.3 + 0.6 + 0.2 + 0.1) / 6)
    assert report["linked_calibration_error"] == pytest.approx((0.1 * 2 + 0.3 + 0.2) / 4)
    assert report["threshold"]["probability"] == 0.5
    assert report["threshold"]["promised"] == {"precision": 0.92, "recall": 0.6}
    assert report["threshold"]["found"]["precision"] == pytest.approx(2 / 3)
    assert report["threshold"]["found"]["recall"] == pytest.approx(1 / 2)  # (2, 2) once, though predicted from either end


@pytest.mark.parametrize("dangling", [0.0, 0.5])
def test_entities_without_a_link_weigh_as_much_as_they_are_thought_to_dangle(task: AlignmentTask, dangling: float) -> None:
    zeros = (0.0,) * len(FEATURES)
    calibration = Calibration("csls", zeros, zeros, zeros, 0.0, 60, 60, 40, 0.2, 0.01, (Threshold(0.5, 0.92, 0.6),))
    report = judge(ALL, task, calibration, dangling)
    assert report["calibration_error"] == pytest.approx((0.1 * 2 + 0.3 + 0.2 + dangling * (0.6 + 0.1)) / (4 + 2 * dangling))
    assert report["threshold"]["found"]["precision"] == pytest.approx(2 / (2 + dangling))


def test_without_a_threshold_that_keeps_the_promise_there_is_none(task: AlignmentTask) -> None:
    zeros = (0.0,) * len(FEATURES)
    calibration = Calibration("csls", zeros, zeros, zeros, 0.0, 60, 60, 40, 0.2, 0.01, (Threshold(0.1, 0.4, 0.9),))
    assert "threshold" not in judge(ALL, task, calibration, 1.0)
