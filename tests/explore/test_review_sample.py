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
from engine.explore.alignment import KNOWN
from engine.explore.review_queue import ReviewQueue, sampling_order
from engine.explore.review_sample import SampleEstimate, estimate_from_sample
from engine.reviews import Choice, ReviewStore
from engine.reviews.decisions import BULK_NOTE
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


def test_the_drawn_are_those_before_the_first_that_nobody_looked_at(queue: ReviewQueue, store: ReviewStore) -> None:
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
    assert "Of the first 4 pairs drawn at random 3 were accepted and 1 rejected" in found.sentence()


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
    empty = queue_of(sample_run())
    empty.alignment.rows = empty.alignment.rows.iloc[:0]
    found = estimated(store, empty)
    assert (found.population, found.drawn, found.interval) == (0, 0, None)
    assert "known links settle all" in found.sentence()
