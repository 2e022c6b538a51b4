"""Parts add up to the score that the run shows, whatever carries it and however it is cut."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import EntityError, RunDamagedError, RunError
from engine.explanation import Explanation, explain
from engine.explanation.decomposition import Products, Sent, by_neighbour
from engine.explanation.evidence import aligned_with, neighbour_products
from engine.runs.view import RunView
from tests.explanation.runs import drawn_run, explainer_of, lonely_task
from tests.explanation.test_frozen import OPTIONS
from tests.run_fixture import sample_run

TOLERANCE = 1e-5


def check_sums(found: Explanation, view: RunView) -> None:
    csls = view.pair(found.pair.source.index, found.pair.target.index, found.pair.pool).csls
    assert sum(part.value for part in found.decomposition.parts) == pytest.approx(csls, abs=TOLERANCE)
    assert len({part.name for part in found.decomposition.parts}) == len(found.decomposition.parts)
    assert found.decomposition.total("multi-hop", "proxies") == pytest.approx(2 * found.pair.cosine, abs=TOLERANCE)
    multi_hop = found.decomposition.total("multi-hop")
    neighbours, relations = found.neighbours, found.relations
    assert neighbours.total == pytest.approx(multi_hop, abs=1e-9)
    assert relations.total == pytest.approx(multi_hop, abs=1e-9)
    assert neighbours.positive + neighbours.negative + neighbours.own_relations == pytest.approx(multi_hop, abs=1e-9)
    for side, hidden in ((neighbours.source, neighbours.hidden_source), (neighbours.target, neighbours.hidden_target)):
        if not hidden:
            assert sum(one.value for one in side) + neighbours.own_relations == pytest.approx(multi_hop, abs=1e-9)


@pytest.mark.parametrize("variant", ["basic", "semi", "literal"])
@pytest.mark.parametrize("pool", ["all", "test"])
def test_parts_sum_to_the_shown_score(variant: str, pool: str) -> None:
    run = drawn_run(3, variant=variant)
    explainer, rng = explainer_of(run), np.random.default_rng(0)
    inside = [
        np.flatnonzero([explainer.view.in_pool(side, i, pool) for i in range(len(explainer.view.graphs[side]))]) for side in ("source", "target")
    ]
    for _ in range(60):
        source, target = (int(rng.choice(pool_of_side)) for pool_of_side in inside)
        check_sums(explain(explainer, source, target, pool, top=int(rng.integers(0, 6))), explainer.view)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_parts_sum_whatever_the_encoder(options: dict[str, object]) -> None:
    explainer = explainer_of(drawn_run(5, **options))
    for source, target in ((0, 0), (3, 9), (13, 16)):
        check_sums(explain(explainer, source, target, top=2), explainer.view)


def test_literal_parts_hold_the_names_or_say_that_there_are_none() -> None:
    explainer = explainer_of(drawn_run(3, variant="literal", weight=0.7))
    named, nameless = explain(explainer, 1, 2), explain(explainer, 0, 2)
    names = [part for part in named.decomposition.parts if part.kind == "names"]
    assert [part.value for part in names] == pytest.approx([2 * 0.7 * named.pair.names])
    assert nameless.pair.names is None
    assert nameless.decomposition.total("no name") == pytest.approx(1.4 * nameless.pair.cosine, abs=TOLERANCE)
    assert any("no name" in note for note in nameless.notes)
    assert not any("no name" in note for note in named.notes)


def test_an_entity_without_triples_carries_its_score_alone() -> None:
    explainer = explainer_of(drawn_run(0, task=lonely_task()))
    found = explain(explainer, 0, 0)
    assert [one.itself for one in found.neighbours.source] == [True]
    assert found.neighbours.source[0].edges == ()
    assert any("no triples" in note for note in found.notes)
    check_sums(found, explainer.view)


def test_entries_are_ordered_and_counted_whatever_the_size_of_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    sent = [Sent(tuple(range(count)), rng.standard_normal((count, 5)), np.zeros(count)) for count in (23, 31)]
    products = Products(sent[0], sent[1], 0.5)
    whole = sent[0].vectors @ sent[1].vectors.T * 0.5
    for cells in (1, 70, 1 << 21):
        monkeypatch.setattr("engine.explanation.decomposition.CELLS", cells)
        for sign in (1, -1):
            found = products.strongest(40, sign)
            assert [value for _, _, value in found] == pytest.approx(sign * np.sort(-sign * whole.ravel())[:40] * -1)
            assert all(value == pytest.approx(whole[row, column]) for row, column, value in found)
        assert products.positive_and_negative() == pytest.approx((whole.clip(min=0).sum(), whole.clip(max=0).sum()))
    assert products.total == pytest.approx(whole.sum())
    np.testing.assert_allclose(products.source_totals(), whole.sum(axis=1))
    np.testing.assert_allclose(products.target_totals(), whole.sum(axis=0))


def test_a_pair_of_neighbours_is_worth_the_products_of_its_messages() -> None:
    """The definition, entry by entry, straight from the messages."""
    explainer = explainer_of(drawn_run(3))
    snapshot = explainer.snapshot(2, 5)
    products, (source, target) = neighbour_products(snapshot), snapshot.entities
    expected = np.zeros((len(products.source.keys), len(products.target.keys)))
    for layer in range(3):
        for channel in range(2):
            if (layer, channel) == (0, 1):
                continue
            one, two = (snapshot.received(entity, layer, channel) for entity in (source, target))
            ratio = [np.tanh(part.messages.sum(axis=0)) / part.messages.sum(axis=0) for part in (one, two)]
            for k, sender in enumerate(one.senders.tolist()):
                for m, other in enumerate(two.senders.tolist()):
                    value = (one.messages[k] * ratio[0]) @ (two.messages[m] * ratio[1])
                    expected[products.source.keys.index(sender), products.target.keys.index(other)] += value * products.scale
    found = [[products.value(row, column) for column in range(expected.shape[1])] for row in range(expected.shape[0])]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert by_neighbour(snapshot, source).weights.sum() == pytest.approx(1)


def test_aligned_by_seed_by_round_by_prediction() -> None:
    run = drawn_run(3, variant="semi")
    view = RunView(run)
    links = run.table("links")
    seed = links[links["role"] == "train"].iloc[0]
    assert aligned_with(view, int(seed["source"]), int(seed["target"])) == "seed"
    assert aligned_with(view, 1, 2) in ("added", "seed")
    best = view.best["source"]
    predicted = next(pair for pair in best.items() if pair[1] not in view.counterparts("source", pair[0]) and view.added(*pair) is None)
    assert aligned_with(view, *predicted) == "predicted"
    test = links[links["role"] == "test"]
    unseen = [(int(s), int(t)) for s, t in zip(test["source"], test["target"], strict=True) if best[int(s)] != t and view.best["target"][int(t)] != s]
    free = [pair for pair in unseen if view.counterparts("source", pair[0])[pair[1]] == "known test link" and view.added(*pair) is None]
    assert {aligned_with(view, *pair) for pair in free} == {"elsewhere"}


def test_what_cannot_be_explained_is_one_sentence() -> None:
    explainer = explainer_of(drawn_run(0))
    with pytest.raises(EntityError, match="no entity 99"):
        explain(explainer, 99, 0)
    without = sample_run()
    with pytest.raises(RunError, match="no stored weights"):
        explain(explainer_of(without), 0, 0)


def test_weights_of_another_training_are_noticed() -> None:
    run, other = drawn_run(0), drawn_run(0)
    other.tensors["model"]["proxies"][:] *= -30  # type: ignore[index]
    with pytest.raises(RunDamagedError, match="train it again"):
        explain(explainer_of(other), 1, 1)
    run.tensors["model"]["proxies"] = run.tensors["model"]["proxies"][:, :-1]  # type: ignore[index]
    with pytest.raises(RunDamagedError, match="do not fit its graph"):
        explain(explainer_of(run), 1, 1)
