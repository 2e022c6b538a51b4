"""The order of a review queue, what is left for which reviewer, and taking pairs from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from engine.explore.alignment import alignments
from engine.explore.review_queue import ReviewQueue, choice_on, take
from engine.reviews import ReviewStore
from engine.runs.view import RunView
from tests.run_fixture import MemoryRun, sample_run


def queue_of(run: MemoryRun) -> ReviewQueue:
    view = RunView(run)
    return ReviewQueue(view, alignments(view)["source"])


def calibrated(run: MemoryRun) -> MemoryRun:
    """The run with a probability for every second source's best match."""
    first = run.tables["matches"].query("graph == 'source' and rank == 1 and entity % 2 == 0")
    probability = np.random.default_rng(0).random(len(first))
    table = pd.DataFrame({"graph": "source", "entity": first["entity"], "match": first["match"], "probability": probability})
    return MemoryRun({**run.manifest, "files": {"probabilities.parquet": {}}}, run.metrics, {**run.tables, "probabilities": table}, run.tensors)


def contested_run() -> MemoryRun:
    """Targets that two, three and four sources have as their best match, some of them seed links of another source."""
    run = sample_run()
    matches = run.tables["matches"].copy()
    best = matches["graph"].eq("source") & matches["rank"].eq(1)
    for winner, others in ((50, [51]), (52, [53, 54]), (2, [55, 56, 57])):
        taken = matches.loc[best & matches["entity"].eq(winner), "match"].iloc[0]
        matches.loc[best & matches["entity"].isin(others), "match"] = taken
    return replace(run, tables={**run.tables, "matches": matches})


def contradicting_run() -> MemoryRun:
    """Cities are classes below their country in one graph and above it in the other, so that matched ones contradict the match of their country."""
    run = sample_run()
    relations, triples = run.tables["relations"].copy(), run.tables["triples"].copy()
    relations.loc[relations["relation"].eq(0), "name"] = "http://x.org/subClassOf"
    turned = triples["graph"].eq("target") & triples["relation"].eq(0)
    triples.loc[turned, ["head", "tail"]] = triples.loc[turned, ["tail", "head"]].to_numpy()
    return replace(run, tables={**run.tables, "relations": relations, "triples": triples})


@pytest.fixture(params=["calibrated", "plain"])
def queue(request: pytest.FixtureRequest) -> ReviewQueue:
    run = contested_run()
    return queue_of(calibrated(run) if request.param == "calibrated" else run)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReviewStore]:
    store = ReviewStore(tmp_path / "reviews.sqlite3")
    yield store
    store.close()


def test_the_fixture_has_what_the_tests_need() -> None:
    assert queue_of(calibrated(contested_run())).alignment.calibrated
    assert not queue_of(contested_run()).alignment.calibrated
    assert len(queue_of(contested_run()).order("conflicts")) == 8


def test_seed_links_are_never_asked_about(queue: ReviewQueue) -> None:
    verdicts = queue.alignment.rows["verdict"].to_numpy()
    for kind in ("uncertain", "conflicts", "hierarchy", "sure", "second"):
        assert "seed link" not in verdicts[queue.order(kind)]  # type: ignore[arg-type]
    assert len(queue.order("uncertain")) == int((verdicts != "seed link").sum())


def test_known_pairs_are_asked_about_on_request_only(queue: ReviewQueue) -> None:
    left = queue.left([], "Ann")
    verdicts = queue.alignment.rows["verdict"].to_numpy()
    assert set(verdicts[queue.open_rows("uncertain", left)]) <= {"unknown", "probable pair"}
    assert "known test link" in verdicts[queue.open_rows("uncertain", left, known=True)]


def test_the_uncertain_come_first(queue: ReviewQueue) -> None:
    rows = queue.order("uncertain")
    message = ~np.isnan(queue.probability[rows])
    doubt = np.abs(queue.probability[rows][message] - 0.5)
    assert (np.diff(doubt) >= 0).all()
    assert not message[message.sum() :].any(), "what has no probability comes last"
    assert (np.diff(queue.margin[rows][~message]) >= 0).all()


def test_claims_on_a_target_come_together_the_best_first_and_the_closest_contest_before_others(queue: ReviewQueue) -> None:
    rows = queue.order("conflicts")
    targets, csls = queue.ends[1], queue.alignment.rows["csls"].to_numpy()
    assert set(rows) == {row for row in queue.order("uncertain") if Counter(targets.tolist())[int(targets[row])] > 1}
    blocks = [list(block) for block in np.split(rows, np.flatnonzero(np.diff(targets[rows])) + 1)]
    assert len({int(targets[block[0]]) for block in blocks}) == len(blocks)
    contests = []
    for block in blocks:
        assert csls[block].tolist() == sorted(csls[block], reverse=True)
        claims = np.sort(csls[targets == targets[block[0]]])[::-1]
        contests.append(claims[0] - claims[1])
    assert contests == sorted(contests)


def test_contradictions_begin_with_what_loses_the_most_of_them() -> None:
    queue = queue_of(contradicting_run())
    found, rows = queue.alignment.contradictions, queue.order("hierarchy")
    lost = Counter(one.weaker for one in found)
    seeds = {row for row, verdict in enumerate(queue.alignment.rows["verdict"]) if verdict == "seed link"}
    assert len(rows)
    assert set(rows.tolist()) == {row for one in found for row in (one.weaker, one.stronger)} - seeds
    keys = [(-lost[row], queue.alignment.rows["csls"].to_numpy()[row]) for row in rows.tolist()]
    assert keys == sorted(keys)
    for row in rows.tolist():
        expected = sorted((one.weaker + one.stronger - row, one.reason) for one in found if row in (one.weaker, one.stronger))
        assert sorted(queue.contradicted_by(row)) == expected


def test_without_a_hierarchy_nothing_contradicts_it(queue: ReviewQueue) -> None:
    assert not len(queue.order("hierarchy"))
    assert list(queue.contradicted_by(0)) == []


def test_sure_pairs_are_mutual_and_say_how_many_are_wrong(queue: ReviewQueue) -> None:
    left = queue.left([], "Ann")
    found = queue.sure_pairs(left, 0.2, known=True)
    assert len(found.rows)
    assert queue.alignment.rows["mutual"].to_numpy()[found.rows].all()
    assert len(np.unique(queue.ends[1][found.rows])) == len(found.rows)
    if queue.alignment.calibrated:
        assert (queue.probability[found.rows] >= 0.2).all()
        assert found.expected_wrong == pytest.approx(sum(1 - queue.probability[row] for row in found.rows))
        assert (np.diff(queue.probability[found.rows]) <= 0).all()
    else:
        assert found.expected_wrong is None
        assert (queue.margin[found.rows] >= 0.2).all()
    assert not len(queue.sure_pairs(left, 1e9).rows)


def test_what_is_left_depends_on_who_asks(queue: ReviewQueue, store: ReviewStore) -> None:
    one, two, three = queue.order("uncertain")[:3].tolist()
    data = queue.fingerprint
    store.decide(data, queue.choice(one, "accept"), "Ann", "1")
    store.decide(data, queue.choice(two, "skip"), "Ann", "2")
    store.decide(data, queue.choice(three, "reject"), "Bob", "3")
    ann, bob = (queue.left(store.standing(data), author) for author in ("Ann", "Bob"))
    rows = {name: queue.open_rows("uncertain", left, known=True).tolist() for name, left in (("Ann", ann), ("Bob", bob))}
    assert not {one, two, three} & set(rows["Ann"])
    assert {one, two, three} & set(rows["Bob"]) == {two}
    assert queue.open_rows("second", ann, known=True).tolist() == [three]
    assert queue.open_rows("second", bob, known=True).tolist() == [one]
    store.undo(data, "Ann", "undo")
    assert two in queue.open_rows("uncertain", queue.left(store.standing(data), "Ann"), known=True)


def test_reviewers_take_different_pairs_and_keep_theirs(queue: ReviewQueue, store: ReviewStore) -> None:
    rows = queue.order("uncertain")
    assert take(store, queue, "Ann", rows, 2) == rows[:2].tolist()
    assert take(store, queue, "Bob", rows, 2) == rows[2:4].tolist()
    assert take(store, queue, "Ann", rows, 2) == rows[:2].tolist()
    assert take(store, queue, "Ann", rows, 2, first=queue.pair(int(rows[7]))) == [rows[7], rows[0]]
    assert take(store, queue, "Ann", rows, 1, first=("nobody", "nobody")) == [rows[0]]
    assert take(store, queue, "Ann", rows[20:], 1) == [rows[20]], "what is held elsewhere is not offered"


def test_a_choice_holds_what_the_run_says(queue: ReviewQueue) -> None:
    uncontested = [row for row in queue.order("uncertain").tolist() if row not in queue.order("conflicts")]
    for row in uncontested[:4]:
        source, target = queue.indices(row)
        pair = queue.view.pair(source, target)
        found, other = queue.choice(row, "accept", "note"), choice_on(pair, queue.run, "accept", "note")
        assert found.pair == other.pair == queue.pair(row) == (pair.source.uri, pair.target.uri)
        assert (found.run, found.note) == (other.run, "note")
        assert found.probability == pytest.approx(other.probability)
        assert found.csls == pytest.approx(other.csls, abs=1e-5)
        assert queue.row(found.pair) == row
    assert queue.row(("nobody", "nobody")) is None
    assert queue.title("source", "nobody") == "nobody"
