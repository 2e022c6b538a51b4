"""A pair in a few lines: what they say is what the numbers say."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from engine.data.knowledge_graph import SIDES
from engine.explanation import PairValue, explain
from engine.explanation.rivals import runner_up
from engine.explanation.summary import FEW, GROUPS, MISSING, grouped_parts, match_words, score_groups, summary_lines
from engine.explanation.verdict import CLOSE, verdict_line
from engine.explore.neighbourhood import IncidentTriples, facing
from tests.explanation.runs import drawn_run, explainer_of, lonely_task


@pytest.mark.parametrize("variant", ["basic", "semi", "literal"])
def test_groups_add_up_to_the_score(variant: str) -> None:
    explainer = explainer_of(drawn_run(3, variant=variant))
    for source, target in ((0, 0), (1, 2), (4, 7)):
        found = explain(explainer, source, target)
        groups = score_groups(found)
        assert sum(group.value for group in groups) == pytest.approx(found.pair.csls, abs=0.005)
        names = [group.name for group in groups]
        assert names == [name for name in GROUPS if name in names], "in the order in which they are shown, the hubness correction last"
        assert names[-1] == "hubness correction"
        assert bool({"names and values", MISSING} & set(names)) == (variant == "literal")
        assert (MISSING in names) == (variant == "literal" and found.pair.names is None)
        own = sum(group.value for group in groups if group.name == "own relations")
        assert own == pytest.approx(found.neighbours.own_relations, abs=FEW)


def test_structure_in_place_of_a_missing_name_does_not_count_as_a_name() -> None:
    explainer = explainer_of(drawn_run(3, variant="literal"))
    found = explain(explainer, 0, 2)
    found = replace(found, pair=replace(found.pair, values=0.0), values=())
    assert found.pair.names is None
    assert {line.label: line.text for line in summary_lines(found)}["Values"] == "No compared value is shared."
    kinds = {group.name: {part.kind for part in group.parts} for group in score_groups(found)}
    assert kinds[MISSING] == {"no name"}
    assert kinds["names and values"] == {"values"}
    named = explain(explainer, 1, 2)
    named = replace(named, pair=replace(named.pair, values=0.0), values=())
    assert {line.label: line.text for line in summary_lines(named)}["Values"] == "Besides the names, no compared value is shared."


def test_the_parts_of_groups_are_those_of_the_score() -> None:
    found = explain(explainer_of(drawn_run(3, variant="literal")), 1, 2)
    parts = [part for group in grouped_parts(found.decomposition.parts) for part in group.parts]
    assert sorted(part.name for part in parts) == sorted(part.name for part in found.decomposition.parts)


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
    pairs = faced.total_pairs
    assert f"{pairs} of {faced.total_source} of the source and {pairs} of {faced.total_target} of the target" in lines["Neighbours"]
    assert rival is not None
    assert f"CSLS {rival.csls:.3f}, " in lines["Runner-up"]
    assert lines["Runner-up"].endswith(" for the source.")
    both = summary_lines(found, faced, rival, runner_up(explainer, 1, 2, side="target"))
    assert next(line.text for line in both if line.label == "Runner-up").endswith(" for the target.")
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
    assert all(" Probability 50%" in words for words in forms.values())


@pytest.mark.parametrize(
    ("attribute", "other", "shown"),
    [
        ("population", "67787", "65228 = 67787"),
        ("population (within 10 %)", "67787", "65228 ≈ 67787"),
        ("population (within 10 %)", "65228", "65228 = 65228"),
    ],
)
def test_values_that_are_only_near_each_other_are_not_called_equal(attribute: str, other: str, shown: str) -> None:
    assert shown in PairValue(attribute, attribute, "65228", other, 1, 1, 0.1, ()).words


def test_the_match_line_says_where_a_probability_is_estimated() -> None:
    pair = replace(explain(explainer_of(drawn_run(3)), 1, 2).pair, probability=0.5)
    assert "Estimated probability 50%" in match_words(replace(pair, estimated=True))
    assert "stimated" not in match_words(pair)


def verdict_of(source: int, target: int, variant: str = "basic", rivals: bool = True, **changed: Any) -> str:
    """The verdict of a drawn pair, some of whose numbers are changed."""
    explainer = explainer_of(drawn_run(3, variant=variant))
    found = explain(explainer, source, target)
    found = replace(found, pair=replace(found.pair, **changed))
    candidates = [runner_up(explainer, source, target, side=side) for side in SIDES] if rivals else []
    return verdict_line(found, facing(IncidentTriples(explainer.view), source, target), [one for one in candidates if one is not None]).text


@pytest.mark.parametrize(
    ("probability", "level"),
    [(0.97, "Very likely the same"), (0.8, "Probably the same"), (0.5, "Uncertain"), (0.2, "Probably different"), (0.01, "Very likely different")],
)
def test_the_verdict_follows_the_probability(probability: float, level: str) -> None:
    assert verdict_of(1, 2, probability=probability, verdict="unknown").startswith(f"{level}: ")


def test_without_a_probability_ranks_and_margin_decide_and_never_very() -> None:
    best = {"rank_from_source": 1, "rank_from_target": 1, "verdict": "unknown"}
    far, near = verdict_of(1, 2, csls=9.0, **best), verdict_of(1, 2, csls=rival_score() + CLOSE / 2, **best)
    assert far.startswith("Probably the same: ")
    assert far.endswith("no close rival.")
    for added in (0, 3):
        assert "trained on this pair" in verdict_of(1, 2, csls=9.0, added=added, **best), "it looks right whether it is or not"
        assert verdict_of(1, 2, csls=9.0, added=added, **{**best, "verdict": "known test link"}).startswith("Probably the same: ")
        assert verdict_of(1, 2, probability=0.8, added=added, **best).startswith("Probably the same: ")
    assert near.startswith("Uncertain: ")
    assert "is a close rival (margin +0.025)" in near
    assert verdict_of(1, 2, csls=9.0, **{**best, "rank_from_target": 2}).startswith("Uncertain: ")
    assert verdict_of(1, 2, rank_from_source=3, rank_from_target=2, verdict="unknown").startswith("Probably different: ")
    assert "scores higher by" in verdict_of(1, 2, csls=-9.0, **best)
    assert "no other candidate" in verdict_of(1, 2, rivals=False, **best)


def rival_score() -> float:
    explainer = explainer_of(drawn_run(3))
    return max(found.csls for side in SIDES if (found := runner_up(explainer, 1, 2, side=side)) is not None)


def test_the_verdict_counts_neighbours_and_says_what_links_confirm() -> None:
    explainer = explainer_of(drawn_run(3))
    faced = facing(IncidentTriples(explainer.view), 1, 2)
    words = verdict_of(1, 2, probability=0.97, verdict="known test link")
    assert f"{faced.total_pairs} of {faced.total_source}" in words
    assert words.endswith("A test link confirms the pair.")
    assert "so this is an error of the run" in verdict_of(1, 2, probability=0.01, verdict="known validation link")
    assert "has another counterpart" in verdict_of(1, 2, verdict="contradicts a known link")
    assert verdict_of(1, 2, verdict="seed link").startswith("Known to be the same (seed link): ")
    assert verdict_of(0, 0, variant="literal", names=0.5).count("name similarity 0.50") == 1
