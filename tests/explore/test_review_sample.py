"""Accuracy from a reviewed random sample: the order of the drawing, what counts as drawn, and the interval."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.evaluation.metrics import rate_interval
from engine.explore.review_queue import ReviewQueue, SampleEstimate, estimate_from_sample, sampling_order, take
from engine.reviews import Choice, ReviewStore
from engine.reviews.decisions import BULK_NOTE
from engine.runs.verdicts import KNOWN
from tests.explore.test_review_queue import queue_of
from tests.run_fixture import sample_run


@pytest.fixture(scope="module")
def queue() -> ReviewQueue:
    return queue_of(sample_run())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReviewStore]:
    store = ReviewStore(tmp_path / "reviews.sqlite3")
    yield store
    store.close()


def decide(store: ReviewStore, queue: ReviewQueue, row: int, verdict: str, author: str = "Ann", note: str = "") -> None:
    store.decide(queue.fingerprint, Choice(*queue.pair(row), verdict, note), author, f"{author} {row} {verdict} {note}")  # type: ignore[arg-type]


def estimated(store: ReviewStore, queue: ReviewQueue) -> SampleEstimate:
    return estimate_from_sample(queue, store.standing(queue.fingerprint))


def test_all_that_no_known_link_settles_is_drawn_once(queue: ReviewQueue) -> None:
    order = queue.order("sample")
    settled = np.isin(queue.alignment.known, [KNOWN.index(one) for one in ("seed", "right", "wrong")])
    assert sorted(order.tolist()) == np.flatnonzero(~settled).tolist()
    assert len(order) > 10
    assert settled.any()


PAIRS = st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), unique=True, max_size=30)


@given(PAIRS, st.randoms())
def test_the_order_depends_on_run_and_pair_alone(pairs: list[tuple[str, str]], random: object) -> None:
    drawn = [pairs[place] for place in sampling_order("basic-s0", pairs)]
    mixed = list(pairs)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert [mixed[place] for place in sampling_order("basic-s0", mixed)] == drawn
    fewer = drawn[::2]
    assert [fewer[place] for place in sampling_order("basic-s0", fewer)] == fewer


@pytest.mark.slow
def test_another_process_draws_alike_and_another_run_otherwise() -> None:
    pairs = [(f"a{number}", f"b{number}") for number in range(40)]
    code = "from engine.explore.review_queue import sampling_order\nprint(sampling_order('r', [(f'a{n}', f'b{n}') for n in range(40)]).tolist())"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == str(sampling_order("r", pairs).tolist())
    assert sampling_order("r", pairs).tolist() != sampling_order("q", pairs).tolist()


def test_every_beginning_is_a_fair_sample() -> None:
    """Over many runs each pair is among the first five of twenty a quarter of the time."""
    pairs = [(f"a{number}", f"b{number}") for number in range(20)]
    counts = np.zeros(20)
    for run in range(2000):
        counts[sampling_order(f"run {run}", pairs)[:5]] += 1
    assert np.abs(counts / 2000 - 0.25).max() < 0.05  # five standard deviations


def test_the_drawn_are_those_before_the_first_that_no_one_reviewed(queue: ReviewQueue, store: ReviewStore) -> None:
    order = queue.order("sample").tolist()
    found = estimated(store, queue)
    assert (found.drawn, found.interval, found.population) == (0, None, len(order))
    for place in (0, 1, 3):
        decide(store, queue, order[place], "accept")
    assert (estimated(store, queue).drawn, estimated(store, queue).right) == (2, 2)
    decide(store, queue, order[2], "reject")
    found = estimated(store, queue)
    assert (found.drawn, found.right, found.wrong, found.unsettled) == (4, 3, 1, 0)
    assert found.interval == pytest.approx(rate_interval(0.75, 4))
    assert "Of the first 4 pairs of the random sample, 3 were accepted and 1 rejected" in found.sentence()


def test_skips_and_disputes_widen_the_interval(queue: ReviewQueue, store: ReviewStore) -> None:
    order = queue.order("sample").tolist()
    for place, verdict in enumerate(["accept", "accept", "skip", "accept"]):
        decide(store, queue, order[place], verdict)
    decide(store, queue, order[3], "reject", "Bob")
    found = estimated(store, queue)
    assert (found.drawn, found.right, found.wrong, found.unsettled) == (4, 2, 0, 2)
    assert found.interval == pytest.approx((rate_interval(0.5, 4)[0], rate_interval(1.0, 4)[1]))
    assert "2 skipped or disputed" in found.sentence()


def test_what_was_accepted_in_bulk_is_asked_again(queue: ReviewQueue, store: ReviewStore) -> None:
    order = queue.order("sample").tolist()
    for row in order[:3]:
        decide(store, queue, row, "accept", note=BULK_NOTE)
    assert estimated(store, queue).drawn == 0
    left = queue.left(store.standing(queue.fingerprint), "Ann")
    assert queue.open_rows("sample", left).tolist() == order
    assert not set(order[:3]) & set(queue.open_rows("uncertain", left).tolist())
    decide(store, queue, order[0], "reject")
    assert (estimated(store, queue).drawn, estimated(store, queue).wrong) == (1, 1)


def test_a_withdrawn_decision_counts_no_more(queue: ReviewQueue, store: ReviewStore) -> None:
    row = int(queue.order("sample")[0])
    decide(store, queue, row, "accept")
    store.undo(queue.fingerprint, "Ann", "undone")
    assert estimated(store, queue).drawn == 0


def test_all_may_be_drawn_or_nothing_be_there(queue: ReviewQueue, store: ReviewStore) -> None:
    for row in queue.order("sample").tolist():
        decide(store, queue, row, "accept")
    found = estimated(store, queue)
    assert found.drawn == found.right == found.population
    assert found.interval == (1.0, 1.0), "nothing is left to chance"
    assert "are reviewed" in found.sentence()
    assert "Precision: 100.0%" in found.sentence()
    decide(store, queue, int(queue.order("sample")[0]), "skip")
    found = estimated(store, queue)
    assert found.interval == pytest.approx(((found.population - 1) / found.population, 1.0))
    empty = queue_of(sample_run())
    empty.alignment.rows = empty.alignment.rows.iloc[:0]
    found = estimated(store, empty)
    assert (found.population, found.drawn, found.interval) == (0, 0, None)
    assert "known links decide all" in found.sentence()


@pytest.mark.parametrize("pairs", [[("a\0", "b"), ("a", "\0b")], [("", "ab"), ("a", "b")], [("\ud800", "x"), ("\udc00", "x")]])
def test_identifiers_that_read_alike_when_joined_have_places_of_their_own(pairs: list[tuple[str, str]]) -> None:
    drawn = [pairs[place] for place in sampling_order("r", pairs)]
    turned = pairs[::-1]
    assert [turned[place] for place in sampling_order("r", turned)] == drawn


@pytest.mark.parametrize("author", ["Ann", "Bob"])
def test_what_was_accepted_in_bulk_is_offered_again_to_everybody(queue: ReviewQueue, store: ReviewStore, author: str) -> None:
    order = queue.order("sample").tolist()
    decide(store, queue, order[0], "accept", note=BULK_NOTE)
    left = queue.left(store.standing(queue.fingerprint), author)
    assert take(store, queue, author, queue.open_rows("sample", left), 2, kind="sample") == order[:2]
    decide(store, queue, order[0], "reject", author)
    assert (estimated(store, queue).drawn, estimated(store, queue).wrong) == (1, 1)
    left = queue.left(store.standing(queue.fingerprint), author)
    assert take(store, queue, author, queue.open_rows("sample", left), 1, kind="sample") == order[1:2]


def test_pairs_held_from_another_list_do_not_come_first(queue: ReviewQueue, store: ReviewStore) -> None:
    order = queue.order("sample").tolist()
    assert take(store, queue, "Ann", np.array(order[5:]), 2) == order[5:7]
    rows = queue.open_rows("sample", queue.left([], "Ann"))
    assert take(store, queue, "Ann", rows, 2, kind="sample") == order[:2]
    assert take(store, queue, "Bob", rows, 2, kind="sample") == order[2:4]
    assert take(store, queue, "Bob", rows, 1, first=queue.pair(order[9]), kind="sample") == [order[9]], "what was undone comes first"


def test_what_does_not_count_yet_and_what_is_not_drawn_is_said(queue: ReviewQueue, store: ReviewStore) -> None:
    order, verdicts = queue.order("sample").tolist(), queue.alignment.all_counts
    for place in (0, 2, 5):
        decide(store, queue, order[place], "accept")
    found = estimated(store, queue)
    assert (found.drawn, found.out_of_turn) == (1, 2)
    assert (found.confirmed, found.contradicted) == (verdicts["right"], verdicts["wrong"])
    assert found.confirmed
    message = " ".join(found.notes())
    assert "2 further pairs were reviewed out of order" in message
    assert f"{found.confirmed:,} matches that validation or test links confirm" in message
    decide(store, queue, order[1], "reject")
    assert (estimated(store, queue).drawn, estimated(store, queue).out_of_turn) == (3, 1)
    assert found.to_dict()["out_of_turn"] == 2


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """400 samples of 40 of 200 matches, of which 150 are right."""
    pairs = [(f"a{number}", f"b{number}") for number in range(200)]
    covered = 0
    for run in range(400):
        right = int((sampling_order(f"run {run}", pairs)[:40] < 150).sum())
        low, high = rate_interval(right / 40, 40)
        covered += low <= 0.75 <= high
    assert covered >= 370
