"""Beside a rival, in conflict, in context, in words."""

from __future__ import annotations

import typing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.config import SemiConfig, choices
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError, EntityError, RunError
from engine.explanation import (
    Experiment,
    PairRound,
    compare_rival,
    compare_with,
    conflict,
    context,
    explain,
    intervene,
    removal_sentence,
    resolve_pair,
    resolve_rival,
    runner_up,
    sentence,
    sibling_runs,
)
from engine.explanation.report import SELECTION_SCORES, rounds_words
from engine.explore.alignment import stored_candidates
from engine.runs import RunStore
from engine.runs.entities import other
from engine.runs.view import Pool, RunView
from engine.search import tie_tolerance
from tests.explanation.runs import drawn_run, explainer_of
from tests.run_fixture import write_run


@pytest.mark.parametrize("variant", ["basic", "literal"])
@pytest.mark.parametrize("side", ["target", "source"])
def test_differences_add_up_to_the_difference_of_the_scores(variant: str, side: str) -> None:
    explainer = explainer_of(drawn_run(3, variant=variant))
    for rival in (0, 4, 8):  # named and nameless ones
        found = compare_rival(explainer, 2, 5, explainer.view.entity(side, rival))
        other = explainer.view.pair(2, rival) if side == "target" else explainer.view.pair(rival, 5)
        assert found.rival == other
        assert sum(part.value for part in found.differences) == pytest.approx(found.pair.csls - other.csls, abs=1e-5)
        assert len({part.name for part in found.differences}) == len(found.differences)
        assert [abs(one.value) for one in found.neighbours] == sorted((abs(one.value) for one in found.neighbours), reverse=True)
        own = explain(explainer, 2, 5).neighbours
        carried = {one.entity: one.value for one in (own.source if found.shared == "source" else own.target)}
        assert all(one.pair == pytest.approx(carried[one.entity], abs=1e-9) for one in found.neighbours)


def test_the_runner_up_is_the_best_other_target() -> None:
    explainer = explainer_of(drawn_run(1))
    first, second = explainer.view.matches("source", 3, 2)
    assert runner_up(explainer, 3, first.entity) == second
    assert runner_up(explainer, 3, second.entity) == first
    found = compare_with(explainer, 3, first.entity)
    assert found is not None
    assert found.rival.target.index == second.entity
    assert found.total >= 0
    with pytest.raises(EntityError, match="own entity"):
        compare_rival(explainer, 3, first.entity, explainer.view.entity("target", first.entity))


@pytest.mark.parametrize("side", SIDES)
def test_conflicts_name_all_claimants_and_give_the_entity_to_one_at_most(side: Side) -> None:
    explainer = explainer_of(drawn_run(2))
    across = other(side)
    best = explainer.view.best[across]
    given = []
    for index in range(len(explainer.view.graphs[side])):
        found = conflict(explainer, index, side=side)
        assert (found.entity.side, found.entity.index) == (side, index)
        assert {claim.entity.index for claim in found.claims} == {claimant for claimant, match in best.items() if match == index}
        assert {claim.entity.side for claim in found.claims} <= {across}
        assert [claim.csls for claim in found.claims] == sorted((claim.csls for claim in found.claims), reverse=True)
        for claim in found.claims:
            pair = (claim.entity.index, index) if side == "target" else (index, claim.entity.index)
            assert claim.csls == pytest.approx(explainer.view.pair(*pair).csls)
            if found.winner == claim.entity:
                assert claim.decided == found.entity
        if found.winner is not None:
            given.append(found.winner.index)
    assert len(given) == len(set(given)) > 5
    with pytest.raises(ConfigError, match="unknown decoder"):
        conflict(explainer, 0, "no such decoder")


def test_context_has_rounds_and_the_same_pair_in_other_runs(tmp_path: Path) -> None:
    runs = {variant: write_run(drawn_run(3, variant=variant), tmp_path, run_id=f"{variant}-s0-01234567") for variant in ("semi", "literal")}
    write_run(drawn_run(3), tmp_path, run_id="basic-s0-foreign0", data={"fingerprint": "another"})
    store = RunStore(tmp_path)
    explainer = explainer_of(store.find(runs["semi"]))  # type: ignore[arg-type]
    others = sibling_runs(store, runs["semi"], "0" * 64)
    assert [run for run, _ in others] == [runs["literal"]]
    found = context(explainer, 1, 2, others)
    assert [(one.number, one.score) for one in found.rounds] == [(1, pytest.approx(0.9))]
    assert found.runs[0].pair == RunView(store.find(runs["literal"])).pair(1, 2)
    assert context(explainer, 0, 0).rounds == ()


def test_a_run_without_weights_says_so(tmp_path: Path) -> None:
    run = drawn_run(0)
    del run.tensors["model"]  # type: ignore[attr-defined]
    store, name = RunStore(tmp_path), write_run(run, tmp_path)
    with pytest.raises(RunError, match="no stored weights"):
        explain(explainer_of(store.find(name)), 0, 0)  # type: ignore[arg-type]


def test_the_sentence_says_the_numbers_and_adds_up() -> None:
    explainer = explainer_of(drawn_run(3, variant="literal"))
    found = explain(explainer, 1, 2)
    text = sentence(found)
    assert f"score {found.pair.csls:.3f}" in text
    assert f"{found.pair.rank_from_source} of 17" in text or "best match" in text
    sums = text.split(": ", 1)[1].split(";")[0]
    assert sum(float(part.rsplit(" ", 1)[1]) for part in sums.split(", ")) == pytest.approx(found.pair.csls, abs=0.004)
    assert "because" not in text
    removed = removal_sentence(intervene(explainer, 1, 2, explainer.encoder.graph.triples(1)[:1]))
    assert removed.startswith("Removing 1 triple ")
    assert "held fixed" in removed


def test_the_sentence_singles_out_no_pair_that_carries_next_to_nothing() -> None:
    found = explain(explainer_of(drawn_run(3)), 1, 2)
    strongest = found.neighbours.supporting[0]
    assert "the largest contribution of a pair of neighbours is" in sentence(found)
    many = replace(found, neighbours=replace(found.neighbours, positive=200 * strongest.value))
    assert "the largest contribution of a pair of neighbours is" not in sentence(many)
    assert f"each of them little, at most {strongest.value:+.3f}" in sentence(many)
    none = replace(found, neighbours=replace(found.neighbours, supporting=()))
    assert "pairs of neighbours" not in sentence(none)


def test_pairs_by_what_was_typed() -> None:
    view = RunView(drawn_run(0))
    assert resolve_pair(view, "a 3", "b 4") == (3, 4)
    assert resolve_pair(view, "b 4", "a 3") == (3, 4)
    assert resolve_pair(view, "source:a 3", "target:b 4") == (3, 4)
    for pair in (("a 3", "a 4"), ("b 3", "b 4")):
        with pytest.raises(EntityError, match="one entity of each graph"):
            resolve_pair(view, *pair)
    with pytest.raises(EntityError, match="does not have an entity 'nobody'"):
        resolve_pair(view, "nobody", "b 4")
    with pytest.raises(EntityError, match="does not have an entity 'nobody'"):
        resolve_pair(view, "a 3", "nobody")
    assert resolve_rival(view, "b 4").side == "target"
    assert resolve_rival(view, "a 4").side == "source"
    with pytest.raises(EntityError, match="neither graph has"):
        resolve_rival(view, "nobody")


@pytest.mark.parametrize("pool", ["all", "test"])
def test_the_same_pair_in_other_runs_is_ranked_among_the_same_candidates(pool: Pool, tmp_path: Path) -> None:
    runs = {variant: write_run(drawn_run(3, variant=variant), tmp_path, run_id=f"{variant}-s0-01234567") for variant in ("semi", "literal")}
    store = RunStore(tmp_path)
    explainer = explainer_of(store.find(runs["semi"]))  # type: ignore[arg-type]
    others = sibling_runs(store, runs["semi"], "0" * 64)
    source, target = (int(np.flatnonzero(~np.isnan(explainer.view.hubness(side, "test")))[1]) for side in SIDES)
    (seen,) = context(explainer, source, target, others, pool).runs
    assert seen.pair is not None
    assert seen.pair.pool == pool
    assert seen.pair == RunView(store.find(runs["literal"])).pair(source, target, pool)


def test_a_pair_outside_of_another_runs_test_entities_says_so(tmp_path: Path) -> None:
    name = write_run(drawn_run(3), tmp_path)
    explainer, view = explainer_of(drawn_run(3)), RunView(RunStore(tmp_path).find(name))
    outside = next(index for index in range(len(view.graphs["source"])) if not view.in_pool("source", index, "test"))
    (seen,) = context(explainer, outside, 0, [(name, view)], "test").runs
    assert seen.pair is None
    assert "is not a test entity" in seen.reason


@pytest.mark.parametrize("variant", ["basic", "literal"])
def test_from_the_target_the_rivals_are_sources(variant: str) -> None:
    explainer = explainer_of(drawn_run(3, variant=variant))
    best = explainer.view.matches("target", 5, 2)
    source = 2
    expected = next(one.entity for one in best if one.entity != source)
    found = compare_with(explainer, source, 5, side="target")
    assert found is not None
    assert found.shared == "target"
    assert found.rival.source.index == expected
    rival = Experiment(explainer, source, 5).before.rival("target")
    assert rival is not None
    assert rival.entity.index == expected, "the runner-up of a comparison and of a removal are the same"


def test_a_rival_of_both_graphs_is_looked_for_where_the_candidates_are() -> None:
    view = explainer_of(drawn_run(3)).view
    for graph in view.graphs.values():
        graph.labels[7] = "the same"
    assert resolve_rival(view, "the same").side == "target"
    assert resolve_rival(view, "the same", "source").side == "source"


def test_each_way_to_select_pairs_says_what_its_scores_are() -> None:
    assert set(SELECTION_SCORES) == set(choices(typing.get_type_hints(SemiConfig)["selection"]))


def test_rounds_say_what_their_score_is() -> None:
    rounds = [PairRound(number, 1.0) for number in (1, 2, 3, 4)]
    assert rounds_words(rounds, "propagation").startswith(
        "Used as a training pair in rounds 1–4. Selection score 1.000: the pair's share, from 0 to 1"
    )
    assert "rounds 1 and 3. Selection score 0.400, 0.500 in this order: the pair's CSLS" in rounds_words(
        [PairRound(1, 0.4), PairRound(3, 0.5)], "mutual"
    )
    assert "in round 2. Selection score 0.700: the score of the rule" in rounds_words([PairRound(2, 0.7)], "")


def test_conflicts_count_ties_as_the_run_does() -> None:
    explainer = explainer_of(drawn_run(3, variant="literal"))
    tolerance = stored_candidates(explainer.view).tolerance
    assert tolerance == tie_tolerance(explainer.view.similarity) > tie_tolerance(explainer_of(drawn_run(3)).view.similarity)
