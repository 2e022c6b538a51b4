"""A pair in a few lines: what they say is what the numbers say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from engine.explanation import explain
from engine.explanation.rivals import runner_up
from engine.explanation.summary import match_words, score_groups, summary_lines
from engine.explore.neighbourhood import IncidentTriples, facing
from tests.explanation.runs import drawn_run, explainer_of, lonely_task


@pytest.mark.parametrize("variant", ["basic", "semi", "literal"])
def test_groups_add_up_to_the_score(variant: str) -> None:
    explainer = explainer_of(drawn_run(3, variant=variant))
    for source, target in ((0, 0), (1, 2), (4, 7)):
        found = explain(explainer, source, target)
        groups = score_groups(found)
        assert sum(group.value for group in groups) == pytest.approx(found.pair.csls, abs=0.005)
        assert [group.name for group in groups][-1] == "hubness correction"
        assert ("names" in [group.name for group in groups]) == (
            variant == "literal" and found.pair.names is not None and abs(found.pair.names) > 0.01
        )


def test_lines_say_what_the_numbers_say() -> None:
    run = drawn_run(3, variant="literal")
    explainer = explainer_of(run)
    found, rival = explain(explainer, 1, 2), runner_up(explainer, 1, 2)
    faced = facing(IncidentTriples(explainer.view), 1, 2)
    lines = {line.label: line.text for line in summary_lines(found, faced, rival)}
    assert f"CSLS {found.pair.csls:.3f}." in lines["Match"]
    shares = [float(share) for share in re.findall(r"(\d+)% of the positive evidence", lines["Basis"])]
    assert len(shares) == 1
    assert 0 < shares[0] <= 100
    assert f"{faced.total_pairs} of {faced.total_source} and {faced.total_pairs} of {faced.total_target}" in lines["Neighbours"]
    assert rival is not None
    assert f"CSLS {rival.csls:.3f}" in lines["Runner-up"]
    assert "Values" in lines
    assert all(len(line.split(". ")) <= 4 for line in lines.values())


def test_lines_without_content_are_left_out() -> None:
    explainer = explainer_of(drawn_run(3, task=lonely_task()))
    lines = {line.label: line.text for line in summary_lines(explain(explainer, 0, 0), facing(IncidentTriples(explainer.view), 0, 0))}
    assert lines["Neighbours"] == "Neither entity has a neighbour."
    assert not {"Values", "Runner-up"} & set(lines)


def test_the_match_line_has_a_form_for_each_place() -> None:
    pair = explain(explainer_of(drawn_run(3)), 1, 2).pair
    forms = {
        ranks: match_words(replace(pair, rank_from_source=ranks[0], rank_from_target=ranks[1], probability=0.5))
        for ranks in ((1, 1), (1, 2), (3, 1), (3, 2))
    }
    assert len(set(forms.values())) == 4
    assert "each other's best match" in forms[1, 1]
    assert all("probability 50%" in words for words in forms.values())
