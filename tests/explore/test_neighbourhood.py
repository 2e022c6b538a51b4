"""Neighbourhoods, and which neighbours of a pair are aligned with each other."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import EntityError, RunDamagedError, RunError
from engine.explore.neighbourhood import (
    PER_PAIR,
    AttentionPart,
    Edge,
    IncidentTriples,
    aligned_elsewhere,
    facing,
    highest_attention,
    neighbourhood,
    standings,
)
from engine.runs.view import RunView
from tests.run_fixture import MemoryRun, analysed, assemble, graph_tables, sample_run


def star(leaves: int, links: list[tuple[int, int, str]], agree: bool = True) -> IncidentTriples:
    """Two hubs (entity 0) with ``leaves`` leaves each; where they agree, leaf i matches leaf i."""
    size = leaves + 1
    vectors = np.random.default_rng(0).standard_normal((size, 24)).astype(np.float32)
    other = vectors if agree else np.roll(vectors, 1, axis=0)
    tables = [
        graph_tables(side, [f"{side}:{i}" for i in range(size)], [f"n{i}" for i in range(size)], [(0, 0, i) for i in range(1, size)], ["has"])
        for side in ("source", "target")
    ]
    return IncidentTriples(RunView(assemble(tables[0], tables[1], links, (vectors, other))))


@pytest.fixture(scope="module")
def towns() -> IncidentTriples:
    return IncidentTriples(RunView(sample_run()))


def test_edges_have_relation_and_direction(towns: IncidentTriples) -> None:
    found = {neighbour.entity.index: neighbour.edges for neighbour in neighbourhood(towns, "source", 4).neighbours}
    assert set(found[0]) == {Edge("inCountry", "out"), Edge("hasCapital", "in")}
    assert found[5] == (Edge("near", "out"),)


def test_a_self_loop_is_a_neighbour(towns: IncidentTriples) -> None:
    found = {neighbour.entity.index: neighbour.edges for neighbour in neighbourhood(towns, "source", 1).neighbours}
    assert set(found[1]) == {Edge("near", "out"), Edge("near", "in")}


def test_every_neighbour_is_shown_or_counted(towns: IncidentTriples) -> None:
    triples = towns.view.run.table("triples")
    rows = triples[triples["graph"] == "source"]
    expected = set(rows[rows["head"] == 2]["tail"]) | set(rows[rows["tail"] == 2]["head"])
    whole, part = neighbourhood(towns, "source", 2, cap=1000), neighbourhood(towns, "source", 2, cap=3)
    assert {neighbour.entity.index for neighbour in whole.neighbours} == expected
    assert part.neighbours == whole.neighbours[:3]
    assert part.hidden == len(expected) - 3


def test_nameless_neighbours_come_last(towns: IncidentTriples) -> None:
    named = [bool(neighbour.entity.label) for neighbour in neighbourhood(towns, "source", 0, cap=1000).neighbours]
    assert named == sorted(named, reverse=True)
    assert not all(named)


def test_seed_links_come_before_evaluation_links_and_predictions() -> None:
    links = [(0, 0, "train"), (1, 1, "test"), (2, 2, "train"), (3, 3, "valid")]
    found = facing(star(6, links), 0, 0)
    assert [(pair.source.entity.index, pair.target.entity.index) for pair in found.pairs[:1]] == [(2, 2)]
    assert {pair.source.entity.index: pair.evidence for pair in found.pairs} == {
        1: "known test link",
        2: "seed link",
        3: "known validation link",
        4: "predicted",
        5: "predicted",
        6: "predicted",
    }
    assert [pair.evaluation_only for pair in found.pairs] == [False, True, True, False, False, False]
    assert all(pair.mutual for pair in found.pairs)
    assert found.count("predicted") == 3


def test_a_link_beats_a_prediction_and_no_entity_is_paired_twice() -> None:
    found = facing(star(5, [(1, 2, "train"), (2, 1, "unsure")]), 0, 0)
    pairs = {(pair.source.entity.index, pair.target.entity.index) for pair in found.pairs}
    assert (1, 2) in pairs
    assert (1, 1) not in pairs
    assert (2, 1) not in pairs, "a probable pair is no evidence"
    assert len({one for one, _ in pairs}) == len({two for _, two in pairs}) == len(pairs)


@pytest.mark.parametrize("cap", [1, 5, 40])
def test_a_hub_of_five_thousand_is_capped_and_counted(cap: int) -> None:
    leaves = 5000
    vectors = np.eye(1, 4, dtype=np.float32).repeat(leaves + 1, axis=0)
    tables = [
        graph_tables(side, [f"{side}:{i}" for i in range(leaves + 1)], [""] * (leaves + 1), [(i, 0, 0) for i in range(1, leaves + 1)], ["in"])
        for side in ("source", "target")
    ]
    run = assemble(tables[0], tables[1], [(i, i, "train") for i in range(3)], (vectors[:1], vectors[:1]))
    found = facing(IncidentTriples(RunView(run)), 0, 0, cap)
    for side_only, hidden in ((found.source_only, found.hidden_source), (found.target_only, found.hidden_target)):
        assert len(found.pairs) + len(side_only) == cap
        assert len(found.pairs) + len(side_only) + hidden == leaves
    assert found.total_pairs == 2


def test_entities_without_or_with_one_neighbour() -> None:
    vectors = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    tables = [graph_tables(side, [f"{side}:{i}" for i in range(3)], ["a", "b", "alone"], [(0, 0, 1)], ["r"]) for side in ("source", "target")]
    adjacency = IncidentTriples(RunView(assemble(tables[0], tables[1], [(1, 1, "train")], (vectors, vectors))))
    lone = facing(adjacency, 2, 2)
    assert (lone.pairs, lone.source_only, lone.target_only, lone.hidden_source, lone.hidden_target) == ((), (), (), 0, 0)
    single = facing(adjacency, 0, 0)
    assert [(pair.source.entity.index, pair.target.entity.index, pair.evidence) for pair in single.pairs] == [(1, 1, "seed link")]
    mixed = facing(adjacency, 0, 2)
    assert (len(mixed.source_only), len(mixed.target_only)) == (1, 0)
    assert neighbourhood(adjacency, "target", 2).total == 0


def test_graphs_without_triples() -> None:
    vectors = np.ones((1, 2), dtype=np.float32)
    tables = [graph_tables(side, [f"{side}:0"], [""], [], []) for side in ("source", "target")]
    assert facing(IncidentTriples(RunView(assemble(tables[0], tables[1], [], (vectors, vectors)))), 0, 0).total_source == 0


def test_unpaired_neighbours_say_where_they_are_aligned(towns: IncidentTriples) -> None:
    view = towns.view
    counterpart, relation = next(iter(view.counterparts("source", 5).items()))
    assert relation == "seed link"
    assert aligned_elsewhere(view, "source", 5) == (view.entity("target", counterpart), "seed link")
    predicted = aligned_elsewhere(view, "source", 60)
    assert predicted is not None
    assert (predicted[0].index, predicted[1]) == (view.matches("source", 60, top=1)[0].entity, "predicted")


@pytest.mark.parametrize("index", [-1, 10**9])
def test_unknown_entities_are_reported(towns: IncidentTriples, index: int) -> None:
    with pytest.raises(EntityError, match="has no entity"):
        neighbourhood(towns, "source", index)
    with pytest.raises(EntityError, match="has no entity"):
        facing(towns, 0, index)


# Attention


@pytest.fixture(scope="module")
def learned() -> IncidentTriples:
    """The towns with the parameters of an encoder."""
    return IncidentTriples(RunView(analysed(sample_run())))


def stored(adjacency: IncidentTriples, entity: int) -> dict[tuple[str, str], list[float]]:
    """Scores v . r of a source entity's triples by relation and direction, worked out by hand: layer 1, entity channel."""
    run = adjacency.view.run
    vector, features = run.tensor("model", "attention")[0, 0], run.tensor("model", "relation_features").astype(np.float64)
    triples, names = run.table("triples"), run.table("relations")
    own = triples[triples["graph"] == "source"]
    found: dict[tuple[str, str], list[float]] = {}
    for end, direction, shift in (("head", "out", 0), ("tail", "in", len(features) // 2)):
        for relation in own.loc[own[end] == entity, "relation"].tolist():
            row = features[relation + shift]
            found.setdefault((names["name"].iloc[relation], direction), []).append(float(np.exp(vector @ row / np.linalg.norm(row))))
    return found


@pytest.mark.parametrize("entity", [1, 4, 20])
def test_edges_carry_the_attention_of_the_entity_in_the_middle(learned: IncidentTriples, entity: int) -> None:
    scores = stored(learned, entity)
    total = sum(sum(values) for values in scores.values())
    edges = [edge for one in learned.neighbours("source", entity, part=AttentionPart(1, "entity")).values() for edge in one.edges]
    assert len(edges) == sum(len(values) for values in scores.values())
    for edge in edges:
        assert edge.attention == pytest.approx(scores[edge.relation, edge.direction][0] / total, rel=1e-5)


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_an_entity_attends_to_sums_to_one_and_comes_in_order(learned: IncidentTriples, side: str) -> None:
    found = neighbourhood(learned, side, 3, cap=1000).neighbours  # type: ignore[arg-type]
    shares = [one.attention or 0.0 for one in found]
    assert sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True) or max(a - b for a, b in zip(shares[1:], shares, strict=False)) < 1e-8


def test_nothing_moves_when_another_part_of_the_attention_is_shown(learned: IncidentTriples) -> None:
    mean, part = (facing(learned, 0, 0, 10, 2, part) for part in (AttentionPart(), AttentionPart(2, "relation")))
    for one, two in ((mean.pairs, part.pairs), (tuple(far.pair for far in mean.far), tuple(far.pair for far in part.far))):
        assert [(pair.source.entity, pair.target.entity) for pair in one] == [(pair.source.entity, pair.target.entity) for pair in two]
    assert [one.entity for one in mean.source_only] == [one.entity for one in part.source_only]
    assert mean != part


def test_the_neighbour_with_the_highest_attention(learned: IncidentTriples, towns: IncidentTriples) -> None:
    for part in (AttentionPart(), AttentionPart(1, "entity")):
        found = highest_attention(learned, "source", 3, part)
        assert found is not None
        assert found.attention == max(one.attention or 0.0 for one in learned.neighbours("source", 3, part=part).values())
    assert highest_attention(towns, "source", 3) is None


def test_a_layer_that_the_model_lacks_is_reported(learned: IncidentTriples) -> None:
    with pytest.raises(RunError, match="there is no layer 9"):
        facing(learned, 0, 0, part=AttentionPart(9))


def test_runs_without_a_model_have_no_attention(towns: IncidentTriples) -> None:
    assert towns.attention is None
    assert all(one.attention is None for one in neighbourhood(towns, "source", 0).neighbours)


def test_a_model_of_other_relations_is_damage(learned: IncidentTriples) -> None:
    run = learned.view.run
    assert isinstance(run, MemoryRun)
    tables = {**run.tables, "relations": run.tables["relations"].iloc[:-1]}
    with pytest.raises(RunDamagedError, match="differ from its table"):
        facing(IncidentTriples(RunView(MemoryRun(run.manifest, None, tables, run.tensors))), 0, 0)


def test_a_model_that_does_not_fit_its_settings_is_damage(learned: IncidentTriples) -> None:
    run = learned.view.run
    assert isinstance(run, MemoryRun)
    with pytest.raises(RunDamagedError, match="does not match its settings"):
        facing(IncidentTriples(RunView(MemoryRun({**run.manifest, "config": {"encoder": {"odd": 1}}}, None, run.tables, run.tensors))), 0, 0)


# Two hops, and every neighbour


def test_two_hops_show_what_is_aligned_behind_the_aligned_neighbours(learned: IncidentTriples) -> None:
    target = next(iter(learned.view.counterparts("source", 20)))
    found = facing(learned, 20, target, 10, hops=2)
    assert found.far
    near = {pair.source.entity.index for pair in found.pairs}
    sources = [far.pair.source.entity.index for far in found.far]
    assert len(set(sources)) == len(sources)
    assert not set(sources) & (near | {20})
    for place in {far.through for far in found.far}:
        assert sum(far.through == place for far in found.far) <= PER_PAIR
    for far in found.far:
        between = found.pairs[far.through]
        for side, one, middle in (("source", far.pair.source, between.source), ("target", far.pair.target, between.target)):
            assert one == learned.neighbours(side, middle.entity.index)[one.entity.index]  # type: ignore[index]
    assert facing(learned, 20, target, 10).far == ()
    assert facing(learned, 20, target, 10).pairs == found.pairs


@pytest.mark.parametrize("cap", [1, 2, 5])
def test_two_hops_keep_the_cap(learned: IncidentTriples, cap: int) -> None:
    target = next(iter(learned.view.counterparts("source", 0)))
    found = facing(learned, 0, target, cap, hops=2)
    assert len(found.pairs) <= cap
    assert len(found.far) <= cap


def test_every_neighbour_says_where_it_is_aligned(learned: IncidentTriples) -> None:
    target = next(iter(learned.view.counterparts("source", 0)))
    whole = facing(learned, 0, target, 10_000)
    for side, index, across in (("source", 0, target), ("target", target, 0)):
        found = standings(learned, side, index, across)  # type: ignore[arg-type]
        here = {one.neighbour.entity.index for one in found if one.here}
        assert here == {(pair.source if side == "source" else pair.target).entity.index for pair in whole.pairs}
        assert [one.neighbour for one in found] == list(neighbourhood(learned, side, index, 10_000).neighbours)  # type: ignore[arg-type]
        for one in found:
            if not one.here:
                elsewhere = aligned_elsewhere(learned.view, side, one.neighbour.entity.index)  # type: ignore[arg-type]
                assert elsewhere == (None if one.counterpart is None else (one.counterpart, one.evidence))


def test_every_pair_gets_its_strongest_before_any_gets_a_second(learned: IncidentTriples) -> None:
    target = next(iter(learned.view.counterparts("source", 0)))
    found = facing(learned, 0, target, 8, hops=2)
    behind = [sum(far.through == place for far in found.far) for place in range(len(found.pairs))]
    assert len(found.far) == 8
    assert sum(count > 0 for count in behind) > 8 / PER_PAIR, "spread over more pairs than would use it up"
