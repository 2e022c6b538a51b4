"""One-to-one decoders where entities have several counterparts: against brute force, and unchanged where none has."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding import NONE, AssignmentDecoder, Candidates, Capacity, Decoding, StableDecoder, capacity_of, get_decoder
from engine.evaluation.decoders import evaluate_decoding
from tests.decoding.cases import Array, from_copies, from_table, tables
from tests.effort import examples

CAPACITIES = [Capacity(1, 2), Capacity(3, 1), Capacity(2, 2), Capacity(2, 3)]
ONE_TO_ONE = ["assignment", "stable"]


def pairs_of(decoding: Decoding) -> list[tuple[int, int]]:
    candidates, taken = decoding.candidates, decoding.pairs()
    return list(zip(candidates.sources[taken].tolist(), candidates.targets[taken].tolist(), strict=True))


def within(pairs: list[tuple[int, int]], capacity: Capacity) -> bool:
    return all(max(np.unique([pair[side] for pair in pairs], return_counts=True)[1], default=0) <= most for side, most in enumerate(capacity))


def worth(candidates: Candidates, positions: list[int]) -> float:
    """The sum of CSLS, counted from one below the lowest: more pairs are better than fewer."""
    return float(sum(candidates.csls[at].astype(np.float64) - float(candidates.csls.min()) + 1 for at in positions))


def best_worth(candidates: Candidates, capacity: Capacity) -> float:
    """Over all sets of pairs that the capacity allows."""
    ends = list(zip(candidates.sources.tolist(), candidates.targets.tolist(), strict=True))
    sets = (chosen for size in range(len(ends) + 1) for chosen in combinations(range(len(ends)), size))
    return max(worth(candidates, list(chosen)) for chosen in sets if within([ends[at] for at in chosen], capacity))


def greedily(candidates: Candidates, capacity: Capacity) -> set[tuple[int, int]]:
    """The best pair of two entities that still have room, again and again."""
    room: list[dict[int, int]] = [{}, {}]
    taken = set()
    for at in np.argsort(-candidates.csls, kind="stable").tolist():
        pair = int(candidates.sources[at]), int(candidates.targets[at])
        if all(room[side].get(end, most) > 0 for side, (end, most) in enumerate(zip(pair, capacity, strict=True))):
            taken.add(pair)
            for side, end in enumerate(pair):
                room[side][end] = room[side].get(end, capacity[side]) - 1
    return taken


@settings(max_examples=examples(60), deadline=None)
@given(table=tables(largest=3), top=st.sampled_from([None, 1, 2]), capacity=st.sampled_from(CAPACITIES))
def test_no_assignment_is_worth_more(table: Array, top: int | None, capacity: Capacity) -> None:
    candidates = from_table(table, top)
    decoding = AssignmentDecoder(capacity).decode(candidates)
    assert within(pairs_of(decoding), capacity)
    assert worth(candidates, decoding.pairs().tolist()) == pytest.approx(best_worth(candidates, capacity), abs=1e-5)


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("top", [None, 4])
def test_the_stable_matching_takes_the_best_that_have_room(capacity: Capacity, top: int | None) -> None:
    table = np.random.default_rng(3).permutation(110).reshape(10, 11) / 110  # without ties
    candidates = from_table(table, top)
    decoding = StableDecoder(capacity).decode(candidates)
    assert set(pairs_of(decoding)) == greedily(candidates, capacity)


@settings(max_examples=examples(60), deadline=None)
@given(table=tables(), top=st.sampled_from([None, 1, 2]), capacity=st.sampled_from(CAPACITIES))
def test_no_two_entities_would_rather_have_each_other(table: Array, top: int | None, capacity: Capacity) -> None:
    candidates = from_table(table, top)
    decoding = StableDecoder(capacity).decode(candidates)
    taken = pairs_of(decoding)
    scores = dict(zip(zip(candidates.sources.tolist(), candidates.targets.tolist(), strict=True), candidates.csls.tolist(), strict=True))
    assert within(taken, capacity)
    for pair, score in scores.items():
        held = [[scores[other] for other in taken if other[side] == pair[side]] for side in range(2)]
        assert pair in taken or any(len(one) == most and min(one) >= score for one, most in zip(held, capacity, strict=True))


@pytest.mark.parametrize("name", ONE_TO_ONE)
@pytest.mark.parametrize("capacity", CAPACITIES)
def test_decided_pairs_come_first_and_each_entity_has_its_best(name: str, capacity: Capacity) -> None:
    candidates = from_copies(30, 20, noise=1.0, top=6)
    decoding = {"stable": StableDecoder, "assignment": AssignmentDecoder}[name](capacity).decode(candidates)
    taken = decoding.pairs()
    others = np.setdiff1d(np.arange(len(candidates)), taken)
    assert np.isfinite(decoding.scores).all()
    assert decoding.scores[taken].min() > decoding.scores[others].max()
    for ends, chosen in ((candidates.sources, decoding.chosen_by_source), (candidates.targets, decoding.chosen_by_target)):
        for entity, position in enumerate(chosen.tolist()):
            own = taken[ends[taken] == entity]
            assert (position == NONE) == (not len(own))
            assert position == NONE or candidates.csls[position] == candidates.csls[own].max()


@pytest.mark.parametrize("name", ONE_TO_ONE)
@pytest.mark.parametrize("top", [5, 100])
def test_with_links_that_are_one_to_one_nothing_changes(name: str, top: int) -> None:
    candidates = from_copies(60, 50, noise=1.0, top=top)
    seeds = np.array([(0, 3), (0, 3), (1, 1), (2, 0)])
    plain, learned = get_decoder(name).decode(candidates), get_decoder(name, seeds=seeds).decode(candidates)
    for field in ("scores", "chosen_by_source", "chosen_by_target"):
        np.testing.assert_array_equal(getattr(plain, field), getattr(learned, field))
    assert learned.taken is None
    assert get_decoder(name, seeds=seeds).one_to_one


@pytest.mark.parametrize(
    ("links", "capacity"),
    [
        ([], (1, 1)),
        ([(0, 0), (1, 1)], (1, 1)),
        ([(0, 0), (0, 0)], (1, 1)),
        ([(0, 0), (0, 1), (1, 2)], (2, 1)),
        ([(0, 0), (1, 0), (2, 0), (3, 1)], (1, 3)),
        ([(0, 0), (0, 1), (1, 1)], (2, 2)),
        ([*((number, number) for number in range(100)), *((0, number) for number in range(100, 120))], (1, 1)),
        ([(number // 2, number) for number in range(100)], (2, 1)),
    ],
)
def test_what_known_links_say(links: list[tuple[int, int]], capacity: tuple[int, int]) -> None:
    assert capacity_of(np.array(links)) == capacity


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_two_counterparts_are_both_found(name: str) -> None:
    table = np.full((4, 8), 0.1)
    links = np.array([(number // 2, number) for number in range(8)])
    table[links[:, 0], links[:, 1]] = np.linspace(0.9, 0.6, 8)
    candidates, pools = from_table(table), (np.arange(4), np.arange(8))
    one, several = (get_decoder(name, seeds=seeds).decode(candidates) for seeds in (None, links[:4]))
    assert len(one.pairs()) == 4
    np.testing.assert_array_equal(several.predicted("target"), np.arange(8) // 2)
    found = evaluate_decoding(several, links, *pools, bootstrap=0)
    assert (found.source_to_target.hits_at_1, found.target_to_source.hits_at_1) == (1.0, 1.0)
    assert found.protocol.startswith(f"decoder {name} with up to 2 counterparts per source and 1 per target over all pairs")
    assert " with up to" not in evaluate_decoding(one, links, *pools, bootstrap=0).protocol
