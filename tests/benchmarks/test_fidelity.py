"""The study of explanations: what it removes and keeps, how it ranks, what it prints."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fidelity import METHODS, average, by_alignment, by_attention, by_cost, by_value, case_of, drawn_pairs, main, outcome
from engine.explanation import Experiment, triples_of
from engine.explanation.evidence import aligned_with
from tests.explanation.runs import drawn_run, explainer_of
from tests.run_fixture import write_run

SHARE = 0.2


@pytest.fixture(scope="module")
def experiments() -> list[Experiment]:
    found = drawn_pairs(explainer_of(drawn_run()), 1000, np.random.default_rng(0))
    assert found
    return found


def test_drawn_pairs_are_test_links_that_are_matched_right(experiments: list[Experiment]) -> None:
    links = drawn_run().tables["links"]
    test = {(row.source, row.target) for row in links[links["role"] == "test"].itertuples()}
    right = [one for one in experiments if one.before.rank("source") == 1]
    assert len(right) == len(experiments)
    pairs = [(one.source, one.target) for one in experiments]
    assert set(pairs) <= test
    assert len(set(pairs)) == len(pairs)
    everyone = {pair for pair in test if Experiment(experiments[0].explainer, *pair, "test").before.rank("source") == 1}
    assert set(pairs) == everyone  # the drawn graphs have no entity without triples


def test_outcome_is_removal_and_keeping_of_the_first_share(experiments: list[Experiment]) -> None:
    case = case_of(experiments[0], np.random.default_rng(0))
    found = outcome(case, case.items, SHARE)
    first = triples_of(case.items[: math.ceil(SHARE * len(case.items))])
    removed = case.experiment.standing(first)
    alone = case.experiment.standing(triples_of(case.items) - first)
    assert found.fall == pytest.approx(case.experiment.before.margin() - removed.margin())
    assert found.flipped == (removed.rank("source") > 1)
    assert found.kept == (alone.rank("source") == 1)
    assert found.kept_margin == pytest.approx(alone.margin())


@pytest.mark.parametrize("name", METHODS)
def test_each_ranking_has_all_evidence_once(name: str, experiments: list[Experiment]) -> None:
    case = case_of(experiments[0], np.random.default_rng(0))
    ranked = METHODS[name](case)
    assert len(ranked) == len(case.items)
    assert set(ranked) == set(case.items)


def test_rankings_go_by_what_they_are_called_after(experiments: list[Experiment]) -> None:
    case = case_of(experiments[0], np.random.default_rng(0))
    assert [item.value for item in by_value(case)] == sorted((item.value for item in case.items), reverse=True)
    assert [item.attention for item in by_attention(case)] == sorted((item.attention for item in case.items), reverse=True)
    first = by_cost(case)[0]
    costs = [case.experiment.before.margin() - case.experiment.standing(item.triples).margin() for item in case.items]
    assert case.experiment.before.margin() - case.experiment.standing(first.triples).margin() == pytest.approx(max(costs))


def test_aligned_neighbours_come_first(experiments: list[Experiment]) -> None:
    for experiment in experiments:
        case = case_of(experiment, np.random.default_rng(0))
        view = experiment.explainer.view
        theirs = {side: [item for item in case.items if item.side == side] for side in ("source", "target")}
        ties = {"seed", "added", "predicted"}
        faced = {
            item
            for one in theirs["source"]
            for two in theirs["target"]
            if aligned_with(view, one.neighbour.index, two.neighbour.index) in ties
            for item in (one, two)
        }
        assert set(by_alignment(case)[: len(faced)]) == faced


def test_average_is_of_each_figure(experiments: list[Experiment]) -> None:
    case = case_of(experiments[0], np.random.default_rng(0))
    one, two = outcome(case, case.items, SHARE), outcome(case, case.items[::-1], SHARE)
    assert average([one, two]).fall == pytest.approx((one.fall + two.fall) / 2)


def test_the_table_has_every_method_and_the_draws_are_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], experiments: list[Experiment]
) -> None:
    run = write_run(drawn_run(), tmp_path)
    printed = []
    for _ in range(2):
        assert main([run, "--models", str(tmp_path), "--pairs", "4", "--out", str(tmp_path / "table.md")]) == 0
        printed.append(capsys.readouterr().out.splitlines()[:-1])  # the last line is the time
    assert printed[0] == printed[1]
    rows = [line for line in printed[0] if line.startswith("| ")]
    assert len(rows) == 2 + len(METHODS)
    assert f"{min(len(experiments), 4)} test pairs" in printed[0][0]
    assert (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()[0] == printed[0][0]


def test_a_run_that_is_not_there_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["towns/nothing", "--models", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
