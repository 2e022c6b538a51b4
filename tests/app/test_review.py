"""The review page: who reviews, one pair after the other, in bulk, what was decided; and its effect on Compare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app import browser_memory, components, reviewing
from app.state import REVIEW_DETAILS, REVIEW_FILTER
from engine.data.knowledge_graph import SIDES
from engine.reviews import Choice, ReviewStore
from engine.reviews.decisions import BULK_NOTE
from engine.reviews.store import CarriedChoice
from engine.runs import RunStore
from engine.runs.verdicts import status_sentence
from engine.runs.view import UNCHECKED, RunView
from engine.util.paths import reviews_file
from tests.app.conftest import OpenPage, assert_no_crash, links, tables, with_open, words
from tests.explanation.runs import drawn_run
from tests.explore.test_review_queue import calibrated, contested_run, contradicting_run, queue_of
from tests.run_fixture import BLANK_ENDS, MemoryRun, blank_ended_run, jolted, sample_run, write_run

DATA = "0" * 64


@pytest.fixture
def store(models: Path) -> Iterator[ReviewStore]:
    store = ReviewStore(reviews_file(models))
    yield store
    store.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's clicks come faster than a reviewer's."""
    monkeypatch.setattr(reviewing, "LEAST_SECONDS", 0.0)


def press(app: AppTest, label: str) -> AppTest:
    app = next(button for button in app.button if button.label.startswith(label)).click().run()
    assert_no_crash(app)
    return app


def shown(app: AppTest) -> str:
    """The pair that is to be decided."""
    return next(str(one.value) for one in app.markdown if str(one.value).startswith("##### "))


def test_a_name_is_asked_for_first(run: str, open_page: OpenPage) -> None:
    app = open_page("review", run=run)
    assert_no_crash(app)
    assert "Every decision is stored with its reviewer" in words(app)
    assert not [button for button in app.button if button.label == "Accept"]
    app.text_input[0].set_value("Ann").run()
    assert_no_crash(app)
    assert app.query_params["reviewer"] in ("Ann", ["Ann"])
    assert [button.label for button in app.button if button.label in ("Accept", "Reject", "Skip", "Undo")] == ["Accept", "Reject", "Skip", "Undo"]


@pytest.mark.parametrize(
    ("name", "expected"), [("x" * 81, "at most 80"), ("a\u202eb", "invisible characters"), ("boss@example.org", "looks like an account")]
)
def test_names_that_cannot_be_one(run: str, open_page: OpenPage, name: str, expected: str) -> None:
    app = open_page("review", run=run, reviewer=name)
    assert_no_crash(app)
    assert expected in "".join(error.value for error in app.error)
    assert "Every decision is stored with its reviewer" in words(app)


def test_who_is_signed_in_reviews_under_that_name_whatever_the_address_says(run: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    account = {"is_logged_in": True, "email": "ann@example.org", "name": "Bob"}
    monkeypatch.setattr(st, "user", account)
    app = open_page("review", run=run, reviewer="Bob")
    assert_no_crash(app)
    assert r"ann\@example\.org" in words(app)
    assert "Bob" not in words(app)
    assert "Change" not in [button.label for button in app.button]


def test_decisions_are_kept_and_the_next_pair_follows(run: str, open_page: OpenPage, store: ReviewStore) -> None:
    queue = queue_of(sample_run())
    expected = [queue.pair(row) for row in queue.open_rows("uncertain", queue.left([], "Ann")).tolist()]
    app, seen = open_page("review", run=run, reviewer="Ann"), []
    assert_no_crash(app)
    for label, verdict in (("Accept", "accept"), ("Reject", "reject"), ("Skip", "skip")):
        seen.append(shown(app))
        if verdict == "reject":
            next(field for field in app.text_input if field.label == "Note").set_value("*not* <b>this</b>").run()
        press(app, label)
    assert len({*seen, shown(app)}) == 4
    kept = store.standing(DATA)
    assert [(decision.pair, decision.verdict) for decision in kept] == list(zip(expected[:3], ("accept", "reject", "skip"), strict=True))
    assert {(decision.author, decision.choice.run) for decision in kept} == {("Ann", run)}
    assert [decision.choice.note for decision in kept] == ["", "*not* <b>this</b>", ""]
    assert all(decision.choice.csls is not None for decision in kept)
    press(app, "Undo")
    assert shown(app) == seen[2], "what was undone is shown again"
    assert len(store.standing(DATA)) == 2
    press(app, "Accept")
    assert [decision.verdict for decision in store.standing(DATA)] == ["accept", "reject", "accept"]


def test_a_click_that_comes_too_soon_decides_nothing(run: str, open_page: OpenPage, store: ReviewStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewing, "LEAST_SECONDS", 1000.0)
    app = open_page("review", run=run, reviewer="Ann")
    before = shown(app)
    press(app, "Accept")
    assert shown(app) == before
    assert store.standing(DATA) == []
    too_soon = ["Too soon: this pair had only just appeared, so that key or click was not stored. Decide again."]
    assert [toast.value for toast in app.toast] == too_soon
    press(app, "Accept")
    assert [toast.value for toast in app.toast] == too_soon, "it stays as long as the pair"
    assert store.standing(DATA) == []
    monkeypatch.setattr(reviewing, "LEAST_SECONDS", 0.0)
    press(app, "Accept")  # from the drawing that the key before began
    press(app, "Accept")
    assert shown(app) != before
    assert not app.toast
    assert len(store.standing(DATA)) >= 1


def test_a_key_that_comes_twice_from_one_drawing_decides_once_and_says_so(store: ReviewStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "session_state", {})
    monkeypatch.setattr(reviewing.state, "set_parameters", lambda parameters: None)
    reviewing.shown((1, 2))
    for _ in range(3):
        reviewing.decide(DATA, [Choice("s", "t", "accept")], "Ann", "one drawing")
    assert len(store.history(DATA)) == 1
    assert reviewing.was_ignored((3, 4)), "of the pair that follows"
    assert reviewing.was_ignored((3, 4))
    reviewing.shown((3, 4))
    reviewing.decide(DATA, [Choice("s", "u", "accept")], "Ann", "the next drawing")
    assert not reviewing.was_ignored((5, 6))
    assert len(store.history(DATA)) == 2


def test_two_sessions_of_one_name_get_different_pairs_and_a_warning(run: str, open_page: OpenPage, store: ReviewStore) -> None:
    first = open_page("review", run=run, reviewer="Ann")
    assert "Also reviewing as" not in words(first)
    second = open_page("review", run=run, reviewer="Ann")
    assert_no_crash(second)
    assert shown(first) != shown(second)
    for app in (first.run(), second):
        (warning,) = app.warning
        assert "Also reviewing as" in warning.value
        assert "If that is not you, change your name." in warning.value
    assert "Also reviewing as" not in words(open_page("review", run=run, reviewer="Bob"))


def test_a_browser_that_is_known_keeps_its_pair(run: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_memory, "kept", lambda name: "a" * 32 if name == "browser" else None)
    before = shown(open_page("review", run=run, reviewer="Ann"))
    again = open_page("review", run=run, reviewer="Ann")
    assert shown(again) == before
    assert not again.warning


@pytest.mark.parametrize("kind", ["uncertain", "sure"])
def test_a_queue_is_filtered_by_relation_and_degree(kind: str, models: Path, open_page: OpenPage) -> None:
    run = write_run(calibrated(sample_run()), models)
    app = open_page("review", run=run, reviewer="Ann", kind=kind, threshold="0", known="yes")
    assert "Relation of the source" not in [box.label for box in app.selectbox], "drawn although it is closed"
    app = with_open(app, REVIEW_FILTER)
    every = left_here(app)
    assert every > 3
    box = next(box for box in app.selectbox if box.label == "Relation of the source")
    app = box.set_value("near").run()
    assert_no_crash(app)
    assert app.query_params["relation"] in ("near", ["near"])
    assert left_here(app) == every, "all that are no seed links have it"
    assert "Filter (1)" in [one.proto.popover.label for one in app.get("popover")]
    with_open(app, REVIEW_FILTER)
    app = next(box for box in app.number_input if box.label == "Triples of the source, from").set_value(3).run()
    assert_no_crash(app)
    alignment = queue_of(calibrated(sample_run())).alignment
    seeds = (alignment.rows["verdict"] == "seed link").to_numpy()
    several = (alignment.rows["degree"] >= 3).to_numpy()
    assert left_here(app) <= (several & ~seeds).sum() < every
    with_open(app, REVIEW_FILTER)
    app = next(box for box in app.selectbox if box.label == "Relation of the source").set_value("hasCapital").run()
    assert left_here(app) == 0
    assert ("No pair passes the filter" if kind == "uncertain" else "No undecided pair is above the threshold") in words(app)
    press(with_open(app, REVIEW_FILTER), "Remove filter")
    assert left_here(app) == every
    assert not {"relation", "degree_from"} & set(app.query_params)


def left_here(app: AppTest) -> int:
    """How many pairs the queue has."""
    return int(re.search(r"\*\*([\d,]+)\*\* left here", words(app))[1].replace(",", ""))  # type: ignore[index]


def test_a_relation_that_is_not_there_is_named_and_the_sample_is_never_filtered(run: str, open_page: OpenPage) -> None:
    app = open_page("review", run=run, reviewer="Ann", relation="<b>none</b>")
    assert_no_crash(app)
    assert "has no relation" in app.error[0].value
    sizes = [left_here(open_page("review", run=run, reviewer="Ann", kind="sample", **more)) for more in ({}, {"degree_from": "1000"})]
    assert sizes[0] == sizes[1] > 0


def test_two_reviewers_see_different_pairs(run: str, open_page: OpenPage) -> None:
    ann, bob = (open_page("review", run=run, reviewer=name) for name in ("Ann", "Bob"))
    assert shown(ann) != shown(bob)


def test_a_certain_pair_can_be_decided(run: str, open_page: OpenPage, store: ReviewStore) -> None:
    pair = ("http://one.example/resource/Entity_20", "http://two.example/q/Q3")
    app = open_page("review", run=run, reviewer="Ann", source=pair[0], target=pair[1])
    assert_no_crash(app)
    press(app, "Reject")
    assert [decision.pair for decision in store.standing(DATA)] == [pair]
    assert "source" not in app.query_params
    app = open_page("explain", run=run, source=pair[0], target=pair[1])
    assert "rejected by review" not in words(app), "a run without weights has no header there"
    app = open_page("entity", run=run, side="source", entity=pair[0], match=pair[1])
    assert_no_crash(app)
    assert "rejected by review" in words(app)


@pytest.mark.parametrize("identifier", BLANK_ENDS)
def test_a_decision_is_kept_of_the_identifiers_that_were_asked_for(identifier: str, models: Path, open_page: OpenPage, store: ReviewStore) -> None:
    run = write_run(blank_ended_run(), models)
    app = open_page("review", run=run, reviewer="Ann", source=identifier, target=identifier)
    assert_no_crash(app)
    press(app, "Reject")
    assert [decision.pair for decision in store.standing(DATA)] == [(identifier, identifier)]


@pytest.mark.parametrize("identifier", ["Bonn  ", "bonn", "City 5"])
def test_nothing_is_decided_of_an_entity_that_is_only_like_the_one_asked_for(
    identifier: str, models: Path, open_page: OpenPage, store: ReviewStore
) -> None:
    app = open_page("review", run=write_run(blank_ended_run(), models), reviewer="Ann", source=identifier, target="Bonn")
    assert_no_crash(app)
    assert "no entity with the identifier" in "".join(error.value for error in app.error).replace("\\", "")


def test_sure_pairs_are_accepted_together_and_undone_together(models: Path, open_page: OpenPage, store: ReviewStore) -> None:
    run = write_run(calibrated(sample_run()), models)
    app = open_page("review", run=run, reviewer="Ann", kind="sure", threshold="0.2")
    assert_no_crash(app)
    queue = queue_of(calibrated(sample_run()))
    found = queue.sure_pairs(queue.left([], "Ann"), 0.2)
    assert f"**{len(found.rows)} pair" in words(app)
    assert f"about {found.expected_wrong:.1f}" in words(app)
    press(app, "Accept")
    assert {decision.pair for decision in store.standing(DATA)} == {queue.pair(row) for row in found.rows.tolist()}
    assert "No undecided pair is above the threshold" in words(app)
    assert f"**0** left here · **{len(found.rows)}** decided by you" in words(app), "what the click did is told"
    press(app, "Undo")
    assert store.standing(DATA) == []


@pytest.mark.parametrize("estimated", [True, False])
def test_estimated_probabilities_are_called_so(models: Path, open_page: OpenPage, estimated: bool) -> None:
    run = replace(calibrated(sample_run()), documents={"calibration": {"fit": {"calibrated": True, "estimated": estimated}}})
    name = write_run(run, models)
    assert ("** estimated probability" in words(open_page("review", run=name, reviewer="Ann"))) == estimated
    app = open_page("review", run=name, reviewer="Ann", kind="sure", threshold="0.2")
    assert_no_crash(app)
    assert (f"estimated errors. {UNCHECKED}" in words(app)) == estimated
    assert ("expected errors (by the probabilities)" in words(app)) != estimated
    assert bulk_button(app).label.endswith("errors estimated)" if estimated else "errors expected)")
    assert [field.label for field in app.number_input] == ["Minimum estimated probability" if estimated else "Minimum probability"]


@pytest.mark.parametrize("probabilities", [True, False])
def test_no_pair_of_many_is_called_certain(models: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, probabilities: bool) -> None:
    monkeypatch.setattr(reviewing, "AT_ONCE", 1)
    name = write_run(calibrated(sample_run()) if probabilities else sample_run(), models)
    app = open_page("review", run=name, reviewer="Ann", kind="sure", threshold="0.0")
    assert_no_crash(app)
    assert f"pairs with the highest {'estimated probability' if probabilities else 'CSLS margin'} are listed" in words(app)
    assert "certain pairs" not in words(app)


def sure_run(models: Path) -> tuple[str, list[tuple[str, str]]]:
    """A run, and the pairs that it offers in bulk."""
    queue = queue_of(calibrated(sample_run()))
    return write_run(calibrated(sample_run()), models), [queue.pair(row) for row in queue.sure_pairs(queue.left([], "Ann"), 0.2).rows.tolist()]


def bulk_button(app: AppTest) -> Any:
    return next(button for button in app.button if button.label.startswith("Accept"))


def test_what_was_unticked_stays_so_when_another_reviewer_decides(models: Path, open_page: OpenPage, store: ReviewStore) -> None:
    run, pairs = sure_run(models)
    app = open_page("review", run=run, reviewer="Ann", kind="sure", threshold="0.2")
    assert bulk_button(app).label.startswith(f"Accept {len(pairs)} pairs")
    app.session_state["review_click:unticked"] = {(DATA, "Ann"): {pairs[0]}}  # what the table's callback keeps
    app.run()
    assert bulk_button(app).label.startswith(f"Accept {len(pairs) - 1} pairs")
    store.decide(DATA, Choice(*pairs[2], "accept"), "Bob", "bob")
    app.session_state["review_click:unticked"] = {(DATA, "Ann"): {pairs[0], pairs[3]}}
    app.run()
    assert bulk_button(app).label.startswith(f"Accept {len(pairs) - 3} pairs")
    press(app, "Accept")
    assert {decision.pair for decision in store.standing(DATA) if decision.author == "Ann"} == set(pairs) - {pairs[0], pairs[2], pairs[3]}
    assert bulk_button(app).label.startswith("Accept 0 pairs")
    assert bulk_button(app).disabled, "what was taken out comes back without its tick"


@pytest.fixture
def sheet(monkeypatch: pytest.MonkeyPatch, models: Path) -> list[Choice]:
    """A session in which three pairs are on the screen, all of them ticked."""
    choices = [Choice("s", f"t{number}", "accept") for number in range(3)]
    monkeypatch.setattr(st, "session_state", {"table": {"selection": {"rows": [0, 1, 2]}}})
    monkeypatch.setattr(reviewing.state, "set_parameters", lambda parameters: None)
    reviewing.sheet("basis", lambda: [choice.pair for choice in choices])
    return choices


def test_what_is_ticked_when_the_key_is_pressed_is_kept(sheet: list[Choice], store: ReviewStore) -> None:
    st.session_state["table"] = {"selection": {"rows": [0, 2]}}  # after the button was drawn
    reviewing.accept_ticked(DATA, sheet, "table", "Ann", "click")
    assert [decision.pair for decision in store.standing(DATA)] == [("s", "t0"), ("s", "t2")]
    assert reviewing.unticked(DATA, "Ann") == {("s", "t1")}
    assert reviewing.problem() is None
    assert reviewing.notice() is None


def test_pairs_that_others_decided_meanwhile_are_left_as_they_are(sheet: list[Choice], store: ReviewStore) -> None:
    store.decide(DATA, Choice("s", "t1", "reject"), "Bob", "bob")
    store.decide(DATA, Choice("s", "t2", "skip"), "Bob", "skipped")
    reviewing.accept_ticked(DATA, sheet, "table", "Ann", "click")
    assert [(one.pair[1], one.author) for one in store.standing(DATA) if one.verdict != "skip"] == [("t1", "Bob"), ("t0", "Ann"), ("t2", "Ann")]
    assert "1 pair had been decided by then and was left as decided: s – t1." in str(reviewing.notice())


def test_a_list_that_is_not_on_the_screen_is_not_accepted(sheet: list[Choice], store: ReviewStore, monkeypatch: pytest.MonkeyPatch) -> None:
    reviewing.accept_ticked(DATA, sheet[:2], "table", "Ann", "another list")
    assert "the list changed" in str(reviewing.problem())
    reviewing.accept_ticked(DATA, sheet, "table", "Ann", "no list any more")
    assert "the list changed" in str(reviewing.problem())
    reviewing.sheet("basis", lambda: [choice.pair for choice in sheet])
    reviewing.accept_ticked(DATA, sheet, "another table", "Ann", "no table")
    assert "the list changed" in str(reviewing.problem())
    monkeypatch.setattr(reviewing, "LEAST_SECONDS", 1000.0)
    reviewing.sheet("basis", lambda: [choice.pair for choice in sheet])
    reviewing.accept_ticked(DATA, sheet, "table", "Ann", "the second of a double click")
    assert "only just appeared" in str(reviewing.problem())
    assert store.standing(DATA) == []


def test_entities_of_the_same_label_can_be_distinguished(models: Path, open_page: OpenPage, store: ReviewStore) -> None:
    alike = calibrated(sample_run())
    run = write_run(replace(alike, tables={**alike.tables, "entities": alike.tables["entities"].assign(label="Springfield")}), models)
    app = open_page("review", run=run, reviewer="Ann", kind="sure", threshold="0.2")
    table = app.dataframe[0].value
    assert set(table["source"]) == {"Springfield"}
    assert table["source id"].is_unique
    assert table["target id"].is_unique
    press(app, "Accept")
    table = open_page("review", run=run, reviewer="Ann", kind="decided").dataframe[0].value
    assert table["source id"].is_unique


def test_a_random_sample_is_reviewed_and_says_what_it_measures(run: str, models: Path, open_page: OpenPage, store: ReviewStore) -> None:
    queue = queue_of(RunStore(models).find(run))
    order = queue.order("sample").tolist()
    app = open_page("review", run=run, reviewer="Ann", kind="sample", known="yes")
    assert_no_crash(app)
    assert "No pair of the random sample has been reviewed yet" in words(app)
    assert not app.toggle, "the population of the sample cannot be changed"
    app = press(app, "Accept")
    app = press(app, "Reject")
    assert [decision.pair for decision in store.standing(DATA)] == [queue.pair(row) for row in order[:2]]
    assert "9.5% to 90.5% (95% interval, n = 2)" in words(app).replace("\\", "")


def test_all_queues_are_in_sight_on_a_phone(run: str, open_page: OpenPage) -> None:
    app = open_page("review", run=run, reviewer="Ann")
    assert next(group for group in app.button_group if group.label == "Queue").proto.wrap


@pytest.mark.parametrize(("kind", "said"), [("sample", False), ("uncertain", True)])
def test_the_sample_does_not_show_that_a_round_trained_on_the_pair(models: Path, open_page: OpenPage, kind: str, said: bool) -> None:
    run = sample_run()
    best = run.tables["matches"].query("graph == 'source' and rank == 1")
    rounds = pd.DataFrame({"round": 1, "source": best["entity"], "target": best["match"], "score": 0.5})
    name = write_run(replace(run, tables={**run.tables, "selections": rounds.reset_index(drop=True)}), models)
    app = open_page("review", run=name, reviewer="Ann", kind=kind)
    assert_no_crash(app)
    assert ("added in round 1" in words(app)) == said


def test_the_sample_keeps_its_order_after_other_lists_and_bulk(run: str, models: Path, open_page: OpenPage, store: ReviewStore) -> None:
    queue = queue_of(RunStore(models).find(run))
    order = queue.order("sample").tolist()
    store.decide(DATA, queue.choice(order[0], "accept", BULK_NOTE), "Ann", "bulk")
    store.decide(DATA, queue.choice(order[3], "accept"), "Bob", "elsewhere")
    assert_no_crash(open_page("review", run=run, reviewer="Ann"))  # two pairs of another list are kept for her
    app = open_page("review", run=run, reviewer="Ann", kind="sample")
    assert_no_crash(app)
    assert "1 further pair was reviewed out of order" in words(app)
    press(app, "Accept")
    assert store.standing(DATA)[-1].pair == queue.pair(order[0]), "what was accepted in bulk is asked again, in its turn"
    assert "of the random sample" in words(app)


@pytest.mark.parametrize("kind", ["conflicts", "hierarchy", "second", "sure", "sample", "decided"])
def test_every_kind_has_something_to_say_when_it_is_empty(run: str, open_page: OpenPage, kind: str) -> None:
    app = open_page("review", run=run, reviewer="Ann", kind=kind, threshold="99")
    assert_no_crash(app)
    assert any(
        message in words(app) for message in ("No second opinion", "No undecided pair is above the threshold", "Nothing decided yet", "left here")
    )


def test_what_was_decided_is_listed_filtered_and_undone(run: str, open_page: OpenPage, store: ReviewStore) -> None:
    pairs = [(f"http://one.example/resource/Entity_{number}", f"http://two.example/q/Q{number}") for number in (50, 51)]
    for author in ("Ann", "<b>Bob</b>"):
        store.decide(DATA, [Choice(*pair, "accept") for pair in pairs], author, author)
    store.decide(DATA, Choice(*pairs[0], "reject", "[no](http://evil)"), "Ann", "changed")
    app = open_page("review", run=run, reviewer="Ann", kind="decided")
    assert_no_crash(app)
    (table,) = app.dataframe
    assert len(table.value) == 4
    assert "agreement 50%" in words(app)
    app = open_page("review", run=run, reviewer="Ann", kind="decided", decided="disputed")
    assert len(app.dataframe[0].value) == 2
    app = open_page("review", run=run, reviewer="Ann", kind="decided", author="Ann", decided="accept")
    assert app.dataframe[0].value["reviewer"].tolist() == ["Ann"]
    app = open_page("review", run=run, reviewer="Ann", kind="decided", author="nobody")
    assert "No decision passes" in words(app)


def test_a_damaged_database_is_reported_in_one_sentence(run: str, open_page: OpenPage, models: Path) -> None:
    reviews_file(models).write_bytes(b"no database" * 1000)
    app = open_page("review", run=run, reviewer="Ann")
    assert_no_crash(app)
    assert "the file is damaged" in "".join(error.value for error in app.error)
    app = open_page("entity", run=run, side="source", entity="Österreich")
    assert_no_crash(app)
    assert not app.error, "other pages do without"


def test_the_explanation_is_shown_beside_the_pair(models: Path, open_page: OpenPage) -> None:
    run = drawn_run()
    missing = {name: value for name, value in sample_run().manifest.items() if name not in run.manifest}
    written = write_run(run, models, **{**missing, "data": {**sample_run().manifest["data"], **run.manifest["data"]}})
    app = open_page("review", run=written, reviewer="Ann", known="yes")
    assert_no_crash(app)
    assert "Supporting evidence" not in words(app), "computed and sent although it is closed"
    with_open(app, REVIEW_DETAILS)
    assert_no_crash(app)
    assert "Supporting evidence" in words(app)
    assert any(link.startswith("explain?") for link in links(app))


def test_what_favours_the_closest_other_candidate_is_named_but_not_in_a_sample(models: Path, open_page: OpenPage) -> None:
    drawn = drawn_run()
    missing = {name: value for name, value in sample_run().manifest.items() if name not in drawn.manifest}
    run = write_run(drawn, models, **{**missing, "data": {**sample_run().manifest["data"], **drawn.manifest["data"]}})
    app = open_page("review", run=run, reviewer="Ann", known="yes")
    assert_no_crash(app)
    (shown,) = [one.value for one in app.caption if one.value.startswith("Closest other candidate")]
    assert "CSLS). In its favour: " in shown or shown.endswith("No neighbour favours it.")
    sample = open_page("review", run=run, reviewer="Ann", kind="sample")
    assert "Closest other candidate" not in words(sample)


def test_compare_shows_what_reviews_went_in(models: Path, open_page: OpenPage) -> None:
    runs = [write_run(jolted(run, 0.1, 1), models, run_id=name, **more) for run, name, more in reviewed_and_plain()]
    app = open_page("compare", run=runs)
    assert_no_crash(app)
    assert "5 decisions by 2 reviewers used, 3 pairs accepted (2 new as seed links) and 1 rejected" in words(app)


def reviewed_and_plain() -> list[tuple[MemoryRun, str, dict[str, object]]]:
    reviews = {"votes": 5, "authors": 2, "accepted": 3, "rejected": 1, "new_seeds": 2, "test_to_seeds": 1, "test_set_aside": 0}
    plain = sample_run()
    links = plain.tables["links"]
    roles = links["role"].where(links.index != 20, "train")
    reviewed = replace(plain, tables={**plain.tables, "links": links.assign(role=roles)})
    return [(reviewed, "semi-s0-reviewed", {"reviews": reviews}), (plain, "semi-s0-plain", {})]


def test_skips_are_no_decisions(run: str, open_page: OpenPage, store: ReviewStore) -> None:
    for number, verdict in enumerate(("accept", "reject", "skip", "skip")):
        store.decide(DATA, Choice(f"http://one.example/resource/Entity_{50 + number}", "http://two.example/q/Q1", verdict), "Ann", f"{number}")  # type: ignore[arg-type]
    store.decide(DATA, Choice("http://one.example/resource/Entity_50", "http://two.example/q/Q1", "accept"), "Bob", "bob")
    message = words(open_page("review", run=run, reviewer="Ann", kind="decided"))
    assert "**2** decided by you · **2** by all" in message
    assert "3 decisions on 2 pairs, and 2 skips" in message


def test_a_pair_that_a_link_asks_for_is_kept_from_others(models: Path, open_page: OpenPage, store: ReviewStore) -> None:
    run = write_run(calibrated(sample_run()), models)
    queue = queue_of(RunStore(models).find(run))
    first, second = (queue.pair(row) for row in queue.order("uncertain")[:2].tolist())
    app = open_page("review", run=run, reviewer="Ann", source=second[0], target=second[1])
    assert_no_crash(app)
    assert "reserved for another reviewer" not in words(app)
    assert second in store.leased(queue.fingerprint, "Ann", app.session_state["browser"])
    app = open_page("review", run=run, reviewer="Bob", source=second[0], target=second[1])
    assert_no_crash(app)
    assert "reserved for another reviewer" in words(app)
    assert store.leased(queue.fingerprint, "Bob", app.session_state["browser"])
    assert not set(store.leased(queue.fingerprint, "Bob", app.session_state["browser"])) & {first, second}


def test_a_claim_is_shown_beside_its_rivals(models: Path, open_page: OpenPage, store: ReviewStore) -> None:
    contested = contested_run()
    run, queue = write_run(contested, models), queue_of(contested)
    row = int(queue.order("conflicts")[0])
    source, target = queue.pair(row)
    rivals = [queue.pair(one)[0] for one in queue.claims(queue.indices(row)[1]).tolist()]
    assert len(rivals) > 1
    store.decide(DATA, Choice(next(one for one in rivals if one != source), target, "reject"), "Bob", "bob")
    app = open_page("review", run=run, reviewer="Ann", kind="conflicts", known="yes", source=source, target=target)
    assert_no_crash(app)
    table = next(table for table in tables(app) if "source id" in table.columns)
    assert table["source id"].tolist() == rivals
    assert table[""].tolist().count("this pair") == 1
    assert table.loc[table["source id"] == source, ""].item() == "this pair"
    assert "rejected" in table["review"].tolist()
    assert f"this target is the best match of {len(rivals) - 1} other" in words(app)
    alone = next(queue.pair(one) for one in queue.order("uncertain").tolist() if len(queue.claims(queue.indices(one)[1])) == 1)
    assert "Competing sources" not in words(open_page("review", run=run, reviewer="Ann", source=alone[0], target=alone[1]))


def test_contradictions_are_a_queue_of_their_own_and_each_leads_to_its_other_pair(models: Path, open_page: OpenPage) -> None:
    contradicting = contradicting_run()
    run, queue = write_run(contradicting, models), queue_of(contradicting)
    app = open_page("review", run=run, reviewer="Ann", kind="hierarchy", known="yes")
    assert_no_crash(app)
    (first, *_) = queue.order("hierarchy").tolist()
    one, two = (queue.view.entity(side, entity) for side, entity in zip(SIDES, queue.indices(first), strict=True))
    assert shown(app) == f"##### {components.entity_label(one)} ↔ {components.entity_label(two)}"
    assert "**Contradictions**: the class hierarchies rule out" in words(app)
    others = [queue.pair(row) for row, _ in queue.contradicted_by(first)]
    asked = [(parse_qs(link)["source"], parse_qs(link)["target"]) for link in links(app) if link.startswith("review?") and "source=" in link]
    assert others
    assert set(others[:6]) <= {(source, target) for (source,), (target,) in asked}
    assert "Contradictions" in next(group for group in app.button_group if group.label == "Queue").options


def test_a_run_without_a_hierarchy_has_no_queue_of_contradictions(run: str, open_page: OpenPage) -> None:
    app = open_page("review", run=run, reviewer="Ann")
    assert "Contradictions" not in next(group for group in app.button_group if group.label == "Queue").options


@pytest.mark.parametrize("end", ["source", "target"])
def test_probable_links_of_either_entity_are_shown(run: str, open_page: OpenPage, end: str) -> None:
    view = RunView(sample_run())
    links = view.run.table("links")
    probable = links[links["role"] == "unsure"].iloc[0]
    free = {side: max(set(range(len(view.graphs[side]))) - set(links[side].tolist())) for side in ("source", "target")}
    pair = {**free, end: int(probable[end])}
    assert view.verdict(pair["source"], pair["target"]) == "unknown"
    uris = {side: view.graphs[side].uris[index] for side, index in pair.items()}  # type: ignore[index]
    app = open_page("review", run=run, reviewer="Ann", **uris)
    assert_no_crash(app)
    labels = [link.proto.label for link in app.get("page_link") if link.proto.label.startswith("Probable link: ")]
    assert len(labels) == 1
    assert "No known link touches" not in " ".join(status_sentence(verdict, None) for verdict in components.VERDICTS)
    alone = {side: view.graphs[side].uris[index] for side, index in free.items()}  # type: ignore[index]
    app = open_page("review", run=run, reviewer="Ann", **alone)
    assert not [link for link in app.get("page_link") if link.proto.label.startswith("Probable link")]


def test_another_candidate_is_accepted_and_the_pair_rejected_with_one_key(run: str, open_page: OpenPage, store: ReviewStore) -> None:
    view = RunView(sample_run())
    app = open_page("review", run=run, reviewer="Ann")
    source, target = queue_of(sample_run()).pair(int(queue_of(sample_run()).open_rows("uncertain", queue_of(sample_run()).left([], "Ann"))[0]))
    matches = view.matches("source", view.graphs["source"].index[source], 6)
    other = next(one for one in matches if one.uri != target)
    before = shown(app)
    key = next(button for button in app.button if button.proto.shortcut == "1")
    app = key.click().run()
    assert_no_crash(app)
    assert {(one.pair, one.verdict) for one in store.standing(DATA)} == {((source, other.uri), "accept"), ((source, target), "reject")}
    assert shown(app) != before
    press(app, "Undo")
    assert store.standing(DATA) == []


def test_none_of_the_candidates_rejects_all_that_are_listed(run: str, open_page: OpenPage, store: ReviewStore) -> None:
    app = open_page("review", run=run, reviewer="Ann")
    listed = sum(button.proto.shortcut.isdecimal() for button in app.button)
    press(app, "None of these")
    kept = store.standing(DATA)
    assert len(kept) == listed
    assert {one.verdict for one in kept} == {"reject"}
    assert len({one.pair[0] for one in kept}) == 1


def test_a_sample_is_judged_without_the_scores(run: str, open_page: OpenPage) -> None:
    app = open_page("review", run=run, reviewer="Ann", kind="sample")
    assert_no_crash(app)
    assert shown(app)
    assert "CSLS" not in words(app).replace("CSLS then", "")
    assert not [one for one in app.expander if one.label.startswith("Details")]
    assert any("comparison" in table.columns for table in tables(app))


def carried_over(store: ReviewStore, pairs: list[tuple[str, str]], reasons: dict[tuple[str, str], tuple[str, ...]], gone: str = "") -> None:
    """Decisions of Ann on an earlier version of the data, as an update carries them over."""
    for number, pair in enumerate(pairs):
        store.decide("e" * 64, Choice(*pair, "accept", run="towns/old"), "Ann", f"old {number}")
    earlier = store.standing("e" * 64)
    aside = [(one, "target") for one in earlier if one.choice.target == gone]
    store.carry(DATA, [CarriedChoice(one, one.pair) for one in earlier if one.choice.target != gone], aside, reasons)


def test_decisions_with_changed_evidence_are_a_queue_with_reasons(run: str, open_page: OpenPage, store: ReviewStore) -> None:
    queue = queue_of(sample_run())
    pairs = [queue.pair(row) for row in queue.order("uncertain")[:3].tolist()]
    assert "Look again" not in str(open_page("review", run=run, reviewer="Bob").get("button_group"))
    carried_over(store, pairs, {pairs[0]: ("source triples", "neighbours"), pairs[1]: ("target values",)})
    app = open_page("review", run=run, reviewer="Ann", kind="again")
    assert_no_crash(app)
    found = words(app)
    assert "**2** left here" in found
    assert "triples of the source changed, matching neighbours changed" in found
    assert "accepted by" in found
    press(app, "Reject")
    assert "values of the target changed" in words(app)
    press(app, "Accept")
    assert "Nothing to look at again" in words(app)
    assert {one.pair: one.verdict for one in store.standing(DATA)} == {pairs[0]: "reject", pairs[1]: "accept", pairs[2]: "accept"}


def test_decided_lists_what_to_look_at_again_and_what_has_no_effect(run: str, open_page: OpenPage, store: ReviewStore) -> None:
    queue = queue_of(sample_run())
    pairs = [queue.pair(row) for row in queue.order("uncertain")[:2].tolist()]
    carried_over(store, [*pairs, (pairs[0][0], "<b>gone</b>")], {pairs[1]: ("target triples",)}, gone="<b>gone</b>")
    app = open_page("review", run=run, reviewer="Bob", kind="decided", decided="again")
    assert_no_crash(app)
    assert "1 decision without effect" in app.expander[0].label
    inactive, decided = (one.value for one in app.dataframe[:2])
    assert inactive["gone"].tolist() == ["target is gone"]
    assert decided["look again"].tolist() == ["triples of the target changed"]
    assert len(decided) == 1
