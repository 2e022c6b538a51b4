"""The page What changed: the engine's counts, filters in the address, rows that lead to Explain in the run that has them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from engine.api import open_run
from engine.runs.view import UNCHECKED
from tests.app.conftest import OpenPage, assert_no_crash, links, words
from tests.explore.versions import SOURCES, version
from tests.run_fixture import HOSTILE_LABELS, write_run

SWAPPED = {"s1": "t2", "s2": "t1"}
OTHER_DATA = "1" * 64


@pytest.fixture
def runs(models: Path) -> tuple[str, str]:
    """A run and the one that it was updated from, whose data has one entity more."""
    old = write_run(version(labels={"s1": HOSTILE_LABELS[1]}), models, "d", "old", created="2026-10-01T12:00:00+00:00")
    new = version(sources=[name for name in SOURCES if name != "s4"], matches=SWAPPED, labels={"s1": HOSTILE_LABELS[1]})
    data = {**new.manifest["data"], "fingerprint": OTHER_DATA}
    return write_run(new, models, "d", "new", data=data, parent={"run": old, "fingerprint": "0" * 64}), old


def shown(app: AppTest) -> pd.DataFrame:
    (table,) = app.dataframe
    found: pd.DataFrame = table.value
    return found


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def pills(app: AppTest, label: str) -> Any:
    return next(group for group in app.button_group if group.label == label)


def message(app: AppTest) -> str:
    return words(app).replace("\\", "").replace("\u2068", "").replace("\u2069", "")


def select_row(app: AppTest, row: int) -> AppTest:
    """As a click on a row of the table."""
    key = next(element.key for element in app.dataframe)
    app.session_state[key] = {"selection": {"rows": [row], "columns": [], "cells": []}}
    return app.run()


def test_a_run_is_compared_with_the_one_that_it_was_updated_from(runs: tuple[str, str], models: Path, open_page: OpenPage) -> None:
    app = open_page("changes", run=runs[0])
    assert_no_crash(app)
    assert not app.error
    assert metrics(app) == {"Kept": "5", "Changed": "2", "Gained": "0", "Lost": "1"}
    assert "7 entities in both versions, 0 added, 1 removed" in message(app)
    assert "no probabilities, so all best matches are compared" in message(app)
    table = shown(app)
    assert table["change"].tolist() == ["→ changed", "→ changed", "− lost"], "what was kept is not listed unless it is asked for"
    assert table["now"].tolist()[-1] == "—"
    assert table["reason"].tolist()[-1] == "entity removed"
    expected = open_run(runs[0], models).changes().query("change != 'kept'")
    scored = [f"{label} · {csls:.3f}" for label, csls in zip(expected["old_match_label"], expected["old_csls"], strict=True)]
    assert [cell.replace("−", "-") for cell in table["before"]] == scored


def test_kinds_reasons_and_a_search_narrow_the_list_and_are_in_the_address(runs: tuple[str, str], open_page: OpenPage) -> None:
    app = open_page("changes", run=runs[0])
    assert pills(app, "Show").options == ["→ changed · 2", "+ gained · 0", "− lost · 1", "= kept · 5"]
    assert pills(app, "Reason").options == ["entity removed · 1", "training only · 2"]
    pills(app, "Reason").set_value(["training"]).run()
    assert_no_crash(app)
    assert app.query_params["cause"] in ("training", ["training"])
    assert len(shown(app)) == 2
    pills(app, "Show").set_value(["lost", "kept"]).run()
    assert app.query_params["change"] == ["lost", "kept"]
    assert "Nothing fits the filters" in words(app), "what is kept has no reason"
    app = open_page("changes", run=runs[0], cause="review")
    assert "review decision · 0" in pills(app, "Reason").options, "a link is obeyed although no row has this reason"
    assert "Nothing fits the filters" in words(app)
    assert "is not a valid value" in message(open_page("changes", run=runs[0], cause="magic"))
    app = open_page("changes", run=runs[0], change="kept", search="S3")
    assert shown(app)["entity"].tolist() == ["S3"]
    app = open_page("changes", run=runs[0], side="target")
    assert_no_crash(app)
    assert metrics(app)["Changed"] == "3", "what was the match of s4 has another one"


def test_a_row_leads_to_explain_in_the_run_that_has_the_pair(runs: tuple[str, str], open_page: OpenPage) -> None:
    app = select_row(open_page("changes", run=runs[0]), 2)
    assert_no_crash(app)
    assert [link for link in links(app) if link.startswith("explain?")] == [
        "explain?run=d%2Fold&source=http%3A%2F%2Fx%2Fs4&target=http%3A%2F%2Fx%2Ft4"
    ], "what was lost is explained by the run that had it"
    app = select_row(open_page("changes", run=runs[0]), 0)
    explained = [link for link in links(app) if link.startswith("explain?")]
    assert len(explained) == 2
    assert explained[0].startswith("explain?run=d%2Fnew&")
    assert explained[1].startswith("explain?run=d%2Fold&")


def test_labels_are_harmless(runs: tuple[str, str], open_page: OpenPage) -> None:
    app = open_page("changes", run=runs[0], search="bold")
    assert len(shown(app)) == 1
    app = select_row(app, 0)
    assert_no_crash(app)
    assert "](javascript" not in words(app)


def test_another_run_can_be_chosen_and_one_that_is_not_there_is_refused(runs: tuple[str, str], models: Path, open_page: OpenPage) -> None:
    third = write_run(version(matches={"s5": "t6", "s6": "t5"}), models, "d", "third", created="2026-10-02T12:00:00+00:00")
    app = open_page("changes", run=runs[0])
    box = next(box for box in app.main.selectbox if box.label == "Compared with")
    assert [option.partition(" ")[0] for option in box.options] == [runs[1], third], "the one that it was updated from is first"
    box.set_value(third).run()
    assert_no_crash(app)
    assert app.query_params["old"] == third
    assert metrics(app)["Changed"] == "4"
    for asked, sentence in (("d/gone", "There is no run"), ("../../etc", "There is no run"), ("<b>x</b>", "There is no run"), (runs[0], "itself")):
        app = open_page("changes", run=runs[0], old=asked)
        assert_no_crash(app)
        assert sentence in message(app)
        assert "<b>" not in words(app)
        assert next(box for box in app.main.selectbox if box.label == "Compared with").value is None


def test_runs_that_have_nothing_in_common_are_refused_with_numbers(runs: tuple[str, str], models: Path, open_page: OpenPage) -> None:
    strange = version(sources=[f"s{number}" for number in range(20, 32)], triples=(), values=(), seeds=())
    data = {**strange.manifest["data"], "fingerprint": "2" * 64}
    other = write_run(strange, models, "e", "other", data=data)
    app = open_page("changes", run=runs[0], old=other)
    assert_no_crash(app)
    assert "0 of 7 entities (0.0%) of the source graph are in both" in message(app)
    assert any(box.label == "Compared with" for box in app.main.selectbox), "another one can be chosen"


SURE = dict.fromkeys(SOURCES[1:7], 0.9)
CHECKED, ESTIMATED = ({"calibration": {"fit": {"calibrated": True, "estimated": estimated}}} for estimated in (False, True))


def test_a_minimum_probability_decides_what_is_a_match(models: Path, open_page: OpenPage) -> None:
    first, second = version(probabilities=SURE), version(probabilities=SURE | {"s3": 0.3})
    old = write_run(replace(first, documents=CHECKED), models, "d", "old", created="2026-10-01T12:00:00+00:00")
    new = write_run(replace(second, documents=CHECKED), models, "d", "new")
    app = open_page("changes", run=new, old=old)
    assert_no_crash(app)
    assert metrics(app)["Lost"] == "1"
    assert shown(app)["before"].tolist() == ["T3 · 90%"]
    assert shown(app)["now"].tolist() == ["(T3 · 30%)"], "what does not count"
    pills(app, "Minimum probability").set_value(0.0).run()
    assert_no_crash(app)
    assert app.query_params["least"] == "0.0"
    assert metrics(app)["Lost"] == "0"
    for least in ("7", "nan", "x"):
        assert_no_crash(open_page("changes", run=new, old=old, least=least))


@pytest.mark.parametrize(("now", "before"), [(True, True), (True, False), (False, True), (False, False)])
def test_an_estimated_probability_is_called_so(models: Path, open_page: OpenPage, now: bool, before: bool) -> None:
    old = replace(version(probabilities=SURE), documents=ESTIMATED if before else CHECKED)
    new = replace(version(probabilities=SURE, matches=SWAPPED), documents=ESTIMATED if now else CHECKED)
    first = write_run(old, models, "d", "old", created="2026-10-01T12:00:00+00:00")
    app = open_page("changes", run=write_run(new, models, "d", "new"), old=first)
    assert_no_crash(app)
    least = pills(app, "Minimum estimated probability" if now or before else "Minimum probability")
    assert (UNCHECKED in least.help) == (now or before)
    columns = json.loads(app.dataframe[0].proto.columns)
    for column, estimated in (("now", now), ("before", before)):
        assert ("Then its estimated probability." in columns[column]["help"]) == estimated
        assert ("Then its probability." in columns[column]["help"]) != estimated


def test_long_lists_have_pages(models: Path, open_page: OpenPage) -> None:
    sources, targets = ([f"{letter}{number}" for number in range(130)] for letter in "st")
    order = {f"s{number}": f"t{number ^ 1}" for number in range(130)}
    old = write_run(version(sources=sources, targets=targets), models, "d", "old", created="2026-10-01T12:00:00+00:00")
    new = write_run(version(sources=sources, targets=targets, matches=order), models, "d", "new")
    app = open_page("changes", run=new, old=old)
    assert_no_crash(app)
    assert len(shown(app)) == 100
    assert "Rows 1 to 100 of 130" in message(app)
    for page, rows in (("2", 30), ("99", 30), ("-1", 100)):
        assert len(shown(open_page("changes", run=new, old=old, page=page))) == rows


def test_with_one_run_alone_the_page_says_what_is_needed(models: Path, open_page: OpenPage) -> None:
    run = write_run(version(), models, "d", "only")
    app = open_page("changes", run=run)
    assert_no_crash(app)
    assert "Another run is needed" in words(app)
    assert any(link.startswith("train?") for link in links(app))
