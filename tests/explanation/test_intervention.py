"""Removing evidence: the whole encoder on the smaller graph, all else held fixed; and whether evidence is what it is said to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import RunConfig
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError, EntityError, EvidenceError
from engine.explanation import Experiment, Explainer, Triple, evidence_items, faithfulness, flipping_set, intervene, named_evidence, triples_of
from engine.explanation.faithfulness import items_of, rank_correlation, removal_agreement
from engine.explanation.intervention import mean_of_best
from engine.explanation.removal import by_pairs, hidden_without
from engine.explanation.report import removal_sentence
from engine.explanation.value_evidence import ValueFact, pair_values
from engine.runs.view import RowScores
from engine.search import TIE_TOLERANCE, tie_tolerance
from tests.analysis.worlds import random_task
from tests.explanation.runs import CSLS_K, SMALL, VALUE_WEIGHT, drawn_model, drawn_run, explainer_of, lonely_task
from tests.explanation.test_frozen import OPTIONS, frozen, retold, settings_of


def by_hand(
    explainer: Explainer, source: int, target: int, final: np.ndarray, pool: str, gone: frozenset[ValueFact] = frozenset()
) -> tuple[float, float, int, int]:
    """Cosine, CSLS and both ranks with two new vectors, without some values, and all else as stored: the definition, candidate by candidate."""
    view, weight = explainer.view, getattr(explainer.view.similarity, "weight", 0.0)
    new = [row / np.linalg.norm(row) for row in final.reshape(2, -1)]
    stored = [view.run.tensor("embeddings", side).astype(np.float64) for side in SIDES]
    names = [view.run.tensor("names", side).astype(np.float64) for side in SIDES] if weight else None
    members = [np.flatnonzero(~np.isnan(view.hubness(side, pool))).tolist() for side in SIDES]
    values = [rows.toarray().astype(np.float64) for rows in (view.similarity.values.source, view.similarity.values.target)] if weight else None
    for fact in gone:
        values[0][source, fact.feature] = values[1][target, fact.feature] = 0

    def similarity(s: int, t: int) -> float:
        cosine = float((new[0] if s == source else stored[0][s]) @ (new[1] if t == target else stored[1][t]))
        if names is None:
            return cosine
        known = names[0][s].any() and names[1][t].any()
        named = cosine + weight * (float(names[0][s] @ names[1][t]) if known else cosine)
        return named + VALUE_WEIGHT * float(values[0][s] @ values[1][t])

    row, column = {t: similarity(source, t) for t in members[1]}, {s: similarity(s, target) for s in members[0]}
    own = [np.mean(sorted(values.values())[-CSLS_K:]) for values in (row, column)]
    theirs = [view.hubness(side, pool) for side in SIDES]
    pair = 2 * row[target] - own[0] - own[1]
    ahead = (
        [2 * row[t] - own[0] - theirs[1][t] for t in members[1] if t != target],
        [2 * column[s] - own[1] - theirs[0][s] for s in members[0] if s != source],
    )
    ranks = [1 + sum(score >= pair - tie_tolerance(view.similarity) for score in scores) for scores in ahead]
    return float(new[0] @ new[1]), float(pair), ranks[0], ranks[1]


@pytest.mark.parametrize("variant", ["basic", "literal"])
@pytest.mark.parametrize("pool", ["all", "test"])
def test_equal_to_a_full_recomputation_with_all_others_fixed(variant: str, pool: str) -> None:
    seed, options = 3, {"variant": variant}
    rng = np.random.default_rng(seed)
    task = random_task(rng)
    explainer = explainer_of(drawn_run(seed, task=task, **options))
    config = RunConfig.from_dict({"encoder": SMALL})
    model = drawn_model(task, config, seed)
    members = [np.flatnonzero(~np.isnan(explainer.view.hubness(side, pool))) for side in SIDES]
    for draw in range(12):
        source, target = (int(rng.choice(part)) for part in members)
        pair = [source, task.source.num_entities + target]
        around = [triple for entity in pair for triple in explainer.encoder.graph.triples(entity)]
        anywhere = [Triple(*row) for row in task.stacked_triples().tolist()]
        edges = around if draw % 2 and around else anywhere
        removed = {edges[at] for at in rng.integers(0, len(edges), 1 + draw % 3)}
        facts = frozenset(map(ValueFact, range(draw % 4))) if variant == "literal" else frozenset()
        found = intervene(explainer, source, target, removed | facts, pool)
        cosine, csls, first, second = by_hand(explainer, source, target, retold(task, config, model, removed)[pair], pool, facts)
        assert found.after.cosine == pytest.approx(cosine, abs=1e-5)
        assert found.after.csls == pytest.approx(csls, abs=1e-5)
        assert (found.after.rank_from_source, found.after.rank_from_target) == (first, second)
        assert found.flips("source") == ((found.before.rank_from_source == 1) != (first == 1))
        assert len(found.removed) == len(removed)


@pytest.mark.parametrize("variant", ["basic", "semi", "literal"])
def test_removing_nothing_changes_nothing(variant: str) -> None:
    explainer = explainer_of(drawn_run(2, variant=variant))
    for source, target in ((0, 0), (4, 7), (13, 16)):
        found, shown = intervene(explainer, source, target, ()), explainer.view.pair(source, target)
        assert (found.before.csls, found.before.cosine) == (shown.csls, shown.cosine)
        assert (found.before.rank_from_source, found.before.rank_from_target) == (shown.rank_from_source, shown.rank_from_target)
        assert found.after.csls == pytest.approx(found.before.csls, abs=1e-5)
        assert not found.flips("source")
        assert not found.flips("target")
        best = explainer.view.matches("source", source, 2)
        expected = next(one for one in best if one.entity != target)
        assert found.before.rival_of_target is not None
        assert found.before.rival_of_target.csls == pytest.approx(expected.csls)
        assert found.before.margin() == pytest.approx(shown.csls - expected.csls)


def test_hubness_is_the_mean_of_the_best_or_of_all() -> None:
    values = np.array([0.1, 0.9, 0.5, 0.7])
    assert mean_of_best(values, 2) == pytest.approx(0.8)
    assert mean_of_best(values, 10) == pytest.approx(0.55)
    assert mean_of_best(values[:0], 3) == 0


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_estimate_is_the_removal_with_all_other_vectors_held(options: dict[str, object], seed: int) -> None:
    """With one layer nothing is left out but layer 0 of the neighbours, which layer 0 of the entity itself does not see: there it is exact."""
    rng = np.random.default_rng(seed)
    task, config = random_task(rng), settings_of({**options, "layers": 0})
    encoder = frozen(task, config, drawn_model(task, config, seed))
    entity = int(rng.integers(task.source.num_entities))
    snapshot = encoder.snapshot([entity])
    neighbours = tuple(sorted(set(encoder.graph.row(entity).senders.tolist()) - {entity}))
    estimated = hidden_without(snapshot, entity, neighbours)
    for at, neighbour in enumerate(neighbours):
        removed = [triple for triple in encoder.graph.triples(entity) if neighbour in (triple.head, triple.tail)]
        np.testing.assert_allclose(estimated[at], encoder.snapshot([entity], removed).hidden[0], atol=1e-9)


def test_the_estimate_orders_neighbours_nearly_as_removal_does() -> None:
    found = []
    for seed in range(3):
        explainer = explainer_of(drawn_run(seed, task=random_task(np.random.default_rng(seed), triples=90)))
        experiments = [Experiment(explainer, source, explainer.view.best["source"][source]) for source in range(4)]
        found += [removal_agreement(one, items_of(one)).estimated for one in experiments]
    known = [value for value in found if value is not None]
    assert len(known) > 8
    assert np.median(known) > 0.7


def test_items_are_the_neighbours_with_all_their_triples() -> None:
    for unit in ("triple", "edge"):
        explainer = explainer_of(drawn_run(3, message_unit=unit))
        items = evidence_items(explainer, 2, 5)
        centres = {"source": 2, "target": 5 + explainer.sizes[0]}
        for side, centre in centres.items():
            loops = {Triple(centre, triple.relation, centre) for triple in explainer.encoder.graph.triples(centre)}
            own = [item for item in items if item.side == side]
            assert triples_of(own) == set(explainer.encoder.graph.triples(centre)) - loops
            assert len({item.neighbour for item in own}) == len(own)
        assert [item.cost for item in items] == sorted((item.cost for item in items), reverse=True)
        assert sorted(map(hash, by_pairs(explainer, 2, 5, items))) == sorted(map(hash, items))


@pytest.mark.parametrize("limit", [0, 4])
def test_the_flipping_set_flips_and_none_of_it_can_stay(limit: int) -> None:
    explainer, flipped = explainer_of(drawn_run(2)), []
    for source in range(8):
        experiment = Experiment(explainer, source, explainer.view.best["source"][source])
        found = flipping_set(experiment, limit=limit)
        assert len(found.items) <= limit
        assert found.evaluations <= limit * (3 + limit)
        assert found.flips == (experiment.standing(triples_of(found.items)).rank_from_source > 1)
        flipped.append(found.flips)
        for item in found.items if found.flips else ():
            assert experiment.standing(triples_of([one for one in found.items if one is not item])).rank_from_source == 1
    assert any(flipped) == (limit > 0)


def test_a_pair_that_is_no_match_has_no_flipping_set() -> None:
    explainer = explainer_of(drawn_run(0))
    best = explainer.view.best["source"][0]
    found = flipping_set(Experiment(explainer, 0, (best + 1) % 17))
    assert not found.items
    assert not found.flips


def test_faithfulness_counts_and_draws_as_many() -> None:
    explainer = explainer_of(drawn_run(1))
    found = faithfulness(Experiment(explainer, 3, explainer.view.best["source"][3]), share=0.3, draws=4)
    assert len(found.needed) == len(found.enough) == int(np.ceil(0.3 * found.total))
    assert found.sparsity == pytest.approx(1 - len(found.needed) / found.total)
    assert found.random_necessity.share in (0, 0.25, 0.5, 0.75, 1)
    assert found.necessity.share in (0, 1)
    assert found.agreement.compared <= found.agreement.total == found.total
    again = faithfulness(Experiment(explainer, 3, explainer.view.best["source"][3]), share=0.3, draws=4)
    assert again == found


def test_faithfulness_without_any_neighbour() -> None:
    explainer = explainer_of(drawn_run(0, task=lonely_task()))
    found = faithfulness(Experiment(explainer, 0, 0), draws=2)
    assert (found.total, found.sparsity, found.agreement.carried) == (0, 0.0, None)
    assert not found.agreement.warning


def test_rank_correlation_of_few_or_equal_values_is_none() -> None:
    assert rank_correlation([1, 2, 3], [1, 2, 3]) is None
    assert rank_correlation([1, 1, 1, 1], [1, 2, 3, 4]) is None
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)


def test_evidence_in_words() -> None:
    explainer = explainer_of(drawn_run(3))
    graph, view = explainer.encoder.graph, explainer.view
    triple = next(one for one in graph.triples(2) if one.head != one.tail)
    other = triple.tail if triple.head == 2 else triple.head
    label, relation = view.entity("source", other).label, explainer.relation(triple.relation)
    between = {one for one in graph.triples(2) if other in (one.head, one.tail)}
    words = [view.entity("source", triple.head).uri, relation, view.entity("source", triple.tail).uri]
    assert named_evidence(explainer, 2, 5, words) == {triple}
    assert named_evidence(explainer, 2, 5, [f"source:{label}"]) == between
    along = {one for one in between if one.relation == triple.relation}
    assert named_evidence(explainer, 2, 5, [f"source:{label}", relation]) == along
    inverse = {one for one in along if one.tail == 2}
    if inverse:
        assert named_evidence(explainer, 2, 5, [f"source:{label}", f"^{relation}"]) == inverse
    everywhere = {one for one in (*graph.triples(2), *graph.triples(5 + explainer.sizes[0])) if one.relation == triple.relation}
    assert named_evidence(explainer, 2, 5, [f"relation:{relation}"]) == everywhere
    assert named_evidence(explainer, 2, 5, ["top:1"]) <= set(graph.triples(2)) | set(graph.triples(5 + explainer.sizes[0]))


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["nobody"], EvidenceError, "is no neighbour of"),
        (["source:nobody"], EvidenceError, "no edge to remove"),
        (["a 0", "no such relation", "a 1"], EvidenceError, "has no triple"),
        (["a 0", "a relation 0", "nobody"], EntityError, "does not have an entity"),
        (["relation:unheard of"], EvidenceError, "neither entity has a triple with the relation"),
        (["top:0"], ConfigError, "whole number"),
        (["top:many"], ConfigError, "whole number"),
        (["a", "b", "c", "d"], ConfigError, "expects NEIGHBOUR"),
        ([""], ConfigError, "expects NEIGHBOUR"),
    ],
)
def test_evidence_that_is_not_there(words: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        named_evidence(explainer_of(drawn_run(3)), 2, 5, words)


def test_top_evidence_of_lonely_entities() -> None:
    with pytest.raises(EvidenceError, match="no evidence to remove"):
        named_evidence(explainer_of(drawn_run(0, task=lonely_task())), 0, 0, ["top:3"])


def test_evidence_is_named_by_identifiers_and_relations_as_they_are() -> None:
    """Neighbours 'n' and 'n ', by the relations 'r' and 'r ': they differ by a blank at the end."""
    task = random_task(np.random.default_rng(3))
    triples = np.array([[0, 0, 1], [0, 1, 2], [3, 0, 0], [3, 1, 4]])
    entities = ("c", "n", "n ", *task.source.entities[3:])
    graph = replace(task.source, entities=entities, labels=("",) * len(entities), relations=("r", "r ", *task.source.relations[2:]), triples=triples)
    explainer = explainer_of(drawn_run(task=replace(task, source=graph)))

    def removed(*words: str) -> set[tuple[int, int, int]]:
        return {(one.head, one.relation, one.tail) for one in named_evidence(explainer, 0, 0, words)}

    assert removed("source:n") == {(0, 0, 1)}
    assert removed("source:n ") == {(0, 1, 2)}
    assert removed("c", "r ", "n ") == {(0, 1, 2)}
    assert removed("relation:r ") == {(0, 1, 2)}
    assert {triple for triple in removed("relation:r") if 0 in (triple[0], triple[2])} >= {(0, 0, 1), (3, 0, 0)}
    assert (0, 1, 2) not in removed("relation:r")


@pytest.mark.parametrize("variant", ["basic", "literal"])
def test_a_tie_stays_a_tie_after_a_removal(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = explainer_of(drawn_run(2, variant=variant, weight=3.0))
    experiment = Experiment(explainer, 4, 7)
    rows: list[RowScores] = []
    monkeypatch.setattr(Experiment, "_standing", lambda _, found, __: rows.extend(found.values()) or experiment.before)
    experiment.standing(explainer.encoder.graph.triples(4)[:1])
    assert len(rows) == 2
    assert {row.tolerance for row in rows} == {tie_tolerance(explainer.view.similarity)}
    assert (rows[0].tolerance > TIE_TOLERANCE) == (variant == "literal"), "more than the tolerance of structure alone, so that the test can fail"


@pytest.mark.parametrize("side", ["source", "target"])
def test_evidence_is_ordered_by_the_lead_over_the_rival_of_the_side(side: Side) -> None:
    explainer = explainer_of(drawn_run(4))
    experiment = Experiment(explainer, 2, 5)
    items = items_of(experiment, side)
    lost = [experiment.before.margin(side) - experiment.standing(item.triples).margin(side) for item in items]
    assert rank_correlation([item.cost for item in items], lost) > 0.5  # type: ignore[operator]
    assert {(item.side, item.neighbour.index) for item in items} == {(item.side, item.neighbour.index) for item in items_of(experiment)}
    assert [item.cost for item in items_of(experiment, "source")] != [item.cost for item in items_of(experiment, "target")]


def test_a_flipping_set_of_the_targets_decision() -> None:
    explainer = explainer_of(drawn_run(0))
    flipped = 0
    for target, source in explainer.view.best["target"].items():
        found = flipping_set(Experiment(explainer, source, target), "target")
        if found.flips:
            flipped += 1
            assert found.result.flips("target")
            assert "; the best match of the target changes." in removal_sentence(found.result, "target")
    assert flipped


def test_shared_values_add_up_and_can_be_removed_by_name() -> None:
    explainer = explainer_of(drawn_run(4, variant="literal"))
    seen = 0
    for source in range(14):
        for target in range(0, 17, 3):
            pair, shared = explainer.view.pair(source, target), pair_values(explainer, source, target)
            assert pair.values is not None
            assert sum(one.value for one in shared) == pytest.approx(2 * VALUE_WEIGHT * pair.values, abs=1e-6)
            assert list(shared) == sorted(shared, key=lambda one: -one.value)
            for one in shared:
                seen += 1
                assert one.source_text == one.target_text == f"V{one.source_attribute[1:]}"
                assert named_evidence(explainer, source, target, [f"value:{one.target_attribute}"]) == frozenset(one.facts)
                found = intervene(explainer, source, target, one.facts)
                assert found.values == (one,)
                assert f"{one.source_attribute}: {one.source_text}" in one.words
                assert "Removing 1 shared value" in removal_sentence(found)
    assert seen > 20
    with pytest.raises(EvidenceError, match="share no value of 'height'"):
        named_evidence(explainer, 0, 0, ["value:height"])


def test_a_run_that_compares_no_values_shares_none() -> None:
    explainer = explainer_of(drawn_run(4, variant="semi"))
    assert pair_values(explainer, 0, 0) == ()
    with pytest.raises(EvidenceError, match="share no value"):
        named_evidence(explainer, 0, 0, ["value:s1"])
