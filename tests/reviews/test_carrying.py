"""Decisions on a new version of the data: copied, marked, set aside, and nothing of them lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.data.knowledge_graph import KnowledgeGraph, Side
from engine.data.versions import Renaming, Versions
from engine.reviews import Choice, ReviewStore, Snapshot, carried_snapshot, carry_decisions, mark_pairs, reason_words
from engine.reviews.snapshot import ReviewedPair
from tests.data.test_versions import Facts, graph

OLD, NEW, NEXT = "a" * 64, "b" * 64, "c" * 64
LEFT: Facts = [("s0", "r", "s1"), ("s1", "r", "s2"), ("s2", "r", "s3"), ("s3", "r", "s4")]
RIGHT: Facts = [("t0", "r", "t1"), ("t1", "r", "t2"), ("t2", "r", "t3"), ("t3", "r", "t4")]


def graphs(left: Facts, right: Facts, values: Facts | None = None) -> dict[Side, KnowledgeGraph]:
    return {"source": graph(left, values), "target": graph(right)}


def without(facts: Facts, entity: str) -> Facts:
    return [fact for fact in facts if entity not in (fact[0], fact[2])]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reviews.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[ReviewStore]:
    """Ann has decided s0 = t0, s1 = t1 and s4 = t4, and Bob against s0 = t0; Ann's first decision on s1 is withdrawn."""
    store = ReviewStore(path)
    for number in (0, 1, 4):
        store.decide(OLD, Choice(f"s{number}", f"t{number}", "accept", f"note {number}", "d/run", 0.5, 0.9), "Ann", f"a{number}")
    store.decide(OLD, Choice("s0", "t0", "reject"), "Bob", "b0")
    store.decide(OLD, Choice("s2", "t2", "accept"), "Ann", "a2")
    store.undo(OLD, "Ann", "u2")
    yield store
    store.close()


def versions(values: Facts | None = None) -> Versions:
    """In the later version s4 is gone, and s0 has perhaps other values; s3 has lost a triple by that."""
    return Versions.of(graphs(LEFT, RIGHT), graphs(without(LEFT, "s4"), RIGHT, values), Renaming({}))


def test_decisions_that_count_are_copied_with_author_note_and_time(path: Path, store: ReviewStore) -> None:
    found = carry_decisions(path, OLD, NEW, versions())
    assert found is not None
    assert (found.decisions, found.inactive, found.again) == (3, 1, 0)
    before = {(one.pair, one.author): one for one in store.standing(OLD)}
    after = store.standing(NEW)
    assert [(one.pair, one.author, one.verdict) for one in after] == [
        (("s0", "t0"), "Ann", "accept"),
        (("s1", "t1"), "Ann", "accept"),
        (("s0", "t0"), "Bob", "reject"),
    ]
    for one in after:
        same = before[one.pair, one.author]
        assert (one.choice, one.time) == (same.choice, same.time)
    assert [(one.pair, gone) for one, gone in store.inactive(NEW)] == [(("s4", "t4"), "source")]
    assert len(before) == 4, "the old version keeps all of its own"
    assert store.inactive(OLD) == []


def test_carrying_twice_copies_nothing_twice_and_own_decisions_stay(path: Path, store: ReviewStore) -> None:
    store.decide(NEW, Choice("s1", "t1", "reject"), "Ann", "own")
    for _ in range(2):
        carry_decisions(path, OLD, NEW, versions())
    assert [(one.pair, one.author, one.verdict) for one in store.standing(NEW)] == [
        (("s1", "t1"), "Ann", "reject"),
        (("s0", "t0"), "Ann", "accept"),
        (("s0", "t0"), "Bob", "reject"),
    ]
    store.decide(OLD, Choice("s1", "t1", "skip"), "Cleo", "c1")
    store.decide(OLD, Choice("s0", "t0", "accept"), "Bob", "b1")
    carry_decisions(path, OLD, NEW, versions())
    assert {(one.pair, one.author, one.verdict) for one in store.standing(NEW)} == {
        (("s1", "t1"), "Ann", "reject"),
        (("s0", "t0"), "Ann", "accept"),
        (("s0", "t0"), "Bob", "accept"),
        (("s1", "t1"), "Cleo", "skip"),
    }, "what was decided on the old version since follows"


def test_undo_takes_back_what_was_decided_on_this_data_alone(path: Path, store: ReviewStore) -> None:
    carry_decisions(path, OLD, NEW, versions())
    assert store.undo(NEW, "Ann", "first") == []
    store.decide(NEW, Choice("s0", "t0", "reject"), "Ann", "own")
    assert [one.verdict for one in store.undo(NEW, "Ann", "second")] == ["reject"]
    assert [one.verdict for one in store.on_pair(NEW, ("s0", "t0")) if one.author == "Ann"] == ["accept"]


def test_changed_evidence_is_marked_until_somebody_decides_again(path: Path, store: ReviewStore) -> None:
    carry_decisions(path, OLD, NEW, versions([("s0", "name", "Zero")]))
    mark_pairs(path, NEW, lambda pairs: [pair for pair in pairs if pair == ("s1", "t1")])
    marked = store.look_again(NEW)
    assert marked == {("s0", "t0"): ("source values",), ("s1", "t1"): ("neighbours",)}
    assert reason_words(marked["s0", "t0"]) == "values of the source changed"
    store.decide(NEW, Choice("s0", "t0", "skip"), "Ann", "skip")
    assert set(store.look_again(NEW)) == {("s0", "t0"), ("s1", "t1")}, "a skip is no decision"
    assert set(store.look_again(NEW, "Ann")) == {("s1", "t1")}
    assert store.claim(NEW, "Ann", [("s0", "t0"), ("s1", "t1")], 2, again=True) == [("s1", "t1")]
    assert store.claim(NEW, "Bob", [("s0", "t0"), ("s1", "t1")], 2, again=True) == [("s0", "t0")], "Ann holds the other one"
    assert store.claim(NEW, "Bob", [("s0", "t0")]) == [], "in other lists it is decided"
    store.decide(NEW, Choice("s0", "t0", "accept"), "Bob", "again")
    assert set(store.look_again(NEW)) == {("s1", "t1")}
    carry_decisions(path, OLD, NEW, versions([("s0", "name", "Zero")]))
    assert set(store.look_again(NEW)) == {("s1", "t1")}, "updating once more marks nothing that was decided"
    store.withdraw(NEW, store.on_pair(NEW, ("s1", "t1"))[0].number, "Ann", "w")
    assert store.look_again(NEW) == {}, "without a decision there is nothing to look at again"


def test_marks_and_vanished_entities_survive_a_further_version(path: Path, store: ReviewStore) -> None:
    later = graphs(without(LEFT, "s4"), RIGHT, [("s0", "name", "Zero")])
    carry_decisions(path, OLD, NEW, versions([("s0", "name", "Zero")]))
    next_one = Versions.of(later, graphs(LEFT, RIGHT, [("s0", "name", "Zero")]), Renaming({}))
    found = carry_decisions(path, NEW, NEXT, next_one)
    assert found is not None
    assert (found.decisions, found.inactive) == (4, 0)
    assert store.inactive(NEXT) == [], "s4 is back"
    assert store.look_again(NEXT) == {("s0", "t0"): ("source values",), ("s4", "t4"): ("source triples", "source values")}


def test_renamed_entities_keep_their_decisions(path: Path, store: ReviewStore) -> None:
    facts = [tuple("x" if one == "s0" else one for one in fact) for fact in LEFT]
    renamed = Versions.of(graphs(LEFT, RIGHT), graphs(facts, RIGHT), Renaming({"source": (("s0", "x"),), "target": ()}))  # type: ignore[arg-type]
    carry_decisions(path, OLD, NEW, renamed)
    assert {one.pair for one in store.standing(NEW)} == {("x", "t0"), ("s1", "t1"), ("s4", "t4")}
    assert store.look_again(NEW) == {}
    pairs = (ReviewedPair("s0", "t0", 1, 0), ReviewedPair("s1", "t1", 0, 2))
    assert [one.pair for one in carried_snapshot(Snapshot(OLD, pairs), NEW, renamed).pairs] == [("s1", "t1"), ("x", "t0")]


def test_without_reviews_nothing_is_made(path: Path) -> None:
    assert carry_decisions(path, OLD, NEW, versions()) is None
    mark_pairs(path, NEW, lambda pairs: pairs)
    assert not path.exists()
