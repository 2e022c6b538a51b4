"""What a probability is made of adds up to it; runs without the parts have none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.errors import RunDamagedError
from engine.evaluation.calibration import FEATURES
from engine.explanation import probability_parts
from engine.explanation.decomposition import plain_value
from engine.runs.view import RunView
from tests.explanation.probabilities import with_probability
from tests.explanation.runs import drawn_run
from tests.run_fixture import MemoryRun


@pytest.fixture(scope="module")
def run() -> MemoryRun:
    return with_probability(drawn_run())


def test_the_parts_add_up(run: MemoryRun) -> None:
    found = probability_parts(RunView(run), run.documents["calibration"], 3, 5)
    assert found is not None
    assert {part.feature for part in found.parts} == set(FEATURES)
    effects = [part.log_odds for part in found.parts]
    assert effects == sorted(effects, key=abs, reverse=True)
    odds = np.log(found.average / (1 - found.average)) + sum(effects)
    assert 1 / (1 + np.exp(-odds)) == pytest.approx(found.probability, abs=1e-6)
    share = next(part for part in found.parts if part.feature == "aligned share")
    assert share.log_odds == pytest.approx((1.6 - 0.5) / 2.0 * -1.0, abs=1e-6)
    assert (share.value, share.usual) == (pytest.approx(1.6), 0.5)


def test_other_pairs_and_other_runs_have_none(run: MemoryRun) -> None:
    assert probability_parts(RunView(run), run.documents["calibration"], 5, 3) is None
    assert probability_parts(RunView(run), {}, 3, 5) is None
    assert probability_parts(RunView(run), {"fit": {"calibrated": False, "reason": "too few"}}, 3, 5) is None
    assert probability_parts(RunView(drawn_run()), run.documents["calibration"], 3, 5) is None


def test_a_run_of_an_older_version_keeps_its_probability_and_has_no_parts() -> None:
    older = with_probability(drawn_run(), stored=False)
    view = RunView(older)
    assert view.probability("target", 5, 3) == older.tables["probabilities"]["probability"].iloc[0]
    assert probability_parts(view, older.documents["calibration"], 3, 5) is None


def test_damaged_numbers_are_reported(run: MemoryRun) -> None:
    table = run.tables["probabilities"].assign(csls=np.float32(np.nan))
    with pytest.raises(RunDamagedError, match="csls"):
        probability_parts(RunView(replace(run, tables={**run.tables, "probabilities": table})), run.documents["calibration"], 3, 5)
    with pytest.raises(RunDamagedError, match="train the run again"):
        probability_parts(RunView(run), {"fit": {"calibrated": True}}, 3, 5)


def test_values_are_ranks_and_counts() -> None:
    assert plain_value("source rank", 0.0) == 1.0
    assert plain_value("aligned neighbours", np.log1p(12)) == pytest.approx(12.0)
    assert plain_value("csls", -0.3) == -0.3
