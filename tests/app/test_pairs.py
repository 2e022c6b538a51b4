"""The page of pairs: what the table shows, filters in the address, odd runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from app import state
from engine.explore.alignment import PairFilter, alignments
from engine.runs.view import UNCHECKED, RunView
from tests.app.conftest import OpenPage, assert_no_crash, figures, words
from tests.run_fixture import HOSTILE_LABELS, MemoryRun, graph_tables, sample_run, write_run


def table(app: Any) -> pd.DataFrame:
    frame: pd.DataFrame = app.dataframe[0].value
    return frame


def facet(app: Any, label: str) -> Any:
    return next(group for group in app.button_group if group.label == label)


def chips(app: Any) -> list[str]:
    return [button.label.replace("\\", "").replace("\u2068", "").replace("\u2069", "") for button in app.button]


def knowing() -> MemoryRun:
    """The sample run with probabilities, fitted on held-out links, and a round."""
    run = sample_run()
    run.documents = {**run.documents, "calibration": {"fit": {"calibrated": True, "estimated": False}}}
    best = run.tables["matches"].query("rank == 1 and entity >= 12")[["graph", "entity", "match"]]
    rounds = best[best["graph"] == "source"].head(3)
    run.tables = {
        **run.tables,
        "probabilities": best.assign(probability=np.linspace(0.02, 0.98, len(best))),
        "selections": pd.DataFrame({"round": 1, "source": rounds["entity"], "target": rounds["match"], "score": 0.5}).reset_index(drop=True),
    }
    return run


@pytest.mark.parametrize("estimated", [True, False])
def test_an_estimated_probability_is_called_so(models: Path, open_page: OpenPage, estimated: bool) -> None:
    run = replace(knowing(), documents={"calibration": {"fit": {"calibrated": True, "estimated": estimated}}})
    app = open_page("pairs", run=write_run(run, models), probability_from="0.1")
    assert_no_crash(app)
    assert chips(app) == ["estimated probability ≥ 0.1" if estimated else "probability ≥ 0.1"]
    orders = next(box for box in app.selectbox if box.label == "Order")
    assert ("estimated probability" in orders.options) == estimated
    assert (UNCHECKED in orders.help) == estimated
    assert ("Median estimated probability" in words(app)) == estimated
    assert ("Median probability" in words(app)) != estimated
    slider = app.slider[0]
    assert slider.label == ("Estimated probability" if estimated else "Probability")
    assert (UNCHECKED in slider.help) == estimated
    assert ("estimated probability" in app.dataframe[0].proto.columns) == estimated


def test_probabilities_are_numbers_in_sight_on_a_narrow_screen(models: Path, open_page: OpenPage) -> None:
    """A bar fills its column, whose right end with the number is off the screen of a phone."""
    app = open_page("pairs", run=write_run(knowing(), models))
    columns = json.loads(app.dataframe[0].proto.columns)
    assert columns["probability"]["type_config"] == {"type": "number", "format": "percent"}
    assert columns["probability"]["alignment"] == "left"
    assert columns["entity"]["width"] + columns["match"]["width"] <= 250, "with the boxes to select rows, 280 of about 325 pixels"


def test_worst_decided_first_as_the_stored_tables_have_it(run: str, open_page: OpenPage) -> None:
    app = open_page("pairs", run=run, wide="yes")
    assert_no_crash(app)
    alignment = alignments(RunView(sample_run()))["source"]
    positions = alignment.ordered(alignment.select(PairFilter()))
    shown = table(app)
    assert len(shown) == len(positions) == 64
    assert shown["margin"].tolist() == pytest.approx(alignment.rows["margin"].iloc[positions].tolist())
    assert shown["degree"].tolist() == alignment.rows["degree"].iloc[positions].tolist()
    assert not {"probability", "names", "added"} & set(shown.columns), "this run knows none of them"
    precision = alignment.precision(positions)
    message = f"**{precision.share:.1%}** correct where a link is known ({precision.right} of {precision.judged};"
    assert f"All 64** pairs, one per source entity. {message}" in words(app)
    assert "12 seed pairs not counted" in words(app)
    assert not chips(app)


def test_filters_of_the_address_are_applied_and_are_shown_as_chips(models: Path, open_page: OpenPage) -> None:
    run = write_run(knowing(), models)
    asked: dict[str, Any] = {
        "side": "target",
        "known": ["right", "wrong"],
        "probability_from": "0.25",
        "degree_to": "3",
        "order": "label",
        "reverse": "yes",
    }
    app = open_page("pairs", run=run, **asked)
    assert_no_crash(app)
    shown = table(app)
    assert len(shown)
    assert shown["verdict"].str.contains("correct").all()
    assert (shown["probability"] >= 0.25).all()
    assert (shown["degree"] <= 3).all()
    labels = shown["entity"].str.casefold().tolist()
    assert labels == sorted(labels, reverse=True)
    assert chips(app) == ["✓ correct or × incorrect", "probability ≥ 0.25", "degree ≤ 3", "Remove all filters"]
    assert "precision is not shown" in words(app)
    assert {name: app.query_params[name] for name in asked if name != "known"} == {name: asked[name] for name in asked if name != "known"}


def test_taking_filters_away(models: Path, open_page: OpenPage) -> None:
    app = open_page("pairs", run=write_run(knowing(), models), degree_to="3", added="yes", page="7", wide="yes")
    assert len(table(app)) <= 3
    assert "added" in table(app).columns
    app.button[1].click().run()
    assert "added" not in app.query_params
    assert "page" not in app.query_params, "other rows start at the first page"
    assert chips(app) == ["degree ≤ 3"]


def test_widgets_write_the_address(models: Path, open_page: OpenPage) -> None:
    app = open_page("pairs", run=write_run(knowing(), models), page="2")
    app.text_input[0].set_value("österreich").run()
    assert app.query_params["search"] == "österreich"
    assert table(app)["entity"].tolist() == ["Österreich"]
    assert "page" not in app.query_params
    app.text_input[0].set_value("").run()
    assert "search" not in app.query_params
    app.slider[0].set_value((0.2, 1.0)).run()
    assert app.query_params["probability_from"] == "0.2"
    assert "probability_to" not in app.query_params
    assert (table(app)["probability"] >= 0.2).all()
    facet(app, "Only pairs with").set_value(["conflicts"]).run()
    assert_no_crash(app)
    assert app.query_params["conflicts"] == "yes"
    assert chips(app)[:2] == ["probability ≥ 0.2", "conflicts"]
    facet(app, "Only pairs with").set_value([]).run()
    assert "conflicts" not in app.query_params
    facet(app, "Margin").set_value("0.1–0.3").run()
    assert_no_crash(app)
    assert (app.query_params["margin_from"], app.query_params["margin_to"]) == ("0.1", "0.3")
    assert chips(app)[:2] == ["probability ≥ 0.2", "margin 0.1–0.3"]
    assert table(app)["margin"].between(0.1, 0.3).all()
    facet(app, "Margin").set_value(None).run()
    assert "margin_from" not in app.query_params


def test_a_facet_counts_the_pairs_that_all_other_filters_leave(models: Path, open_page: OpenPage) -> None:
    alignment = alignments(RunView(knowing()))["target"]
    rows = alignment.rows
    app = open_page("pairs", run=write_run(knowing(), models), side="target", known="right", degree_to="3")
    assert_no_crash(app)
    few = (rows["degree"] <= 3).to_numpy()
    right = rows["verdict"].isin(["known test link", "known validation link"]).to_numpy()
    unknown = (rows["verdict"] == "unknown").to_numpy()
    conflicts = (rows["claims"] > 1).to_numpy()
    assert conflicts.any()
    assert f"? unknown · {(few & unknown).sum()}" in facet(app, "Verdict").options, "not of the verdict itself"
    assert facet(app, "Only pairs with").options[0] == f"conflicts · {(few & right & conflicts).sum()}"
    assert facet(app, "Margin").options[-1] == f"over 0.3 · {(few & right & (rows['margin'] >= 0.3)).sum()}"
    (relation,) = [box for box in app.selectbox if box.label == "Relation of the entity"]
    triples = sample_run().tables["triples"].query("graph == 'target'")
    names = sample_run().tables["relations"].query("graph == 'target'").set_index("relation")["name"]
    chosen = set(rows["entity"][few & right])
    number = {name: len(chosen & set(triples.loc[triples["relation"] == one, ["head", "tail"]].to_numpy().ravel())) for one, name in names.items()}
    listed = sorted((-count, name) for name, count in number.items() if count)
    assert relation.options == [f"{name} · {-count}" for count, name in listed]
    spec = figures(app)[0]
    assert spec["layout"]["yaxis"]["type"] == "log"
    counted = sum(int(hover.partition(": ")[2].split()[0]) for hover in spec["data"][0]["hovertext"])
    assert counted == (few & right & (rows["entity"] >= 12)).sum() > 0, "all that have a probability"


def test_further_columns_on_request(models: Path, open_page: OpenPage) -> None:
    app = open_page("pairs", run=write_run(knowing(), models))
    assert list(table(app).columns) == ["entity", "match", "probability", "verdict", "margin", "degree"]
    next(toggle for toggle in app.toggle if toggle.label == "All columns").set_value(True).run()
    assert app.query_params["wide"] == "yes"
    assert {"added", "CSLS", "cosine", "match degree", "competing"} <= set(table(app).columns)


def open_row(app: Any, run: str, row: int) -> Any:
    """As if this row had been chosen."""
    key = state.widget_key(state.PAIR_TABLE, state.PairsAddress((run,)), 1)
    app.session_state[key] = {"selection": {"rows": [row], "columns": [], "cells": []}}
    app.session_state[state.OPEN_PAIR] = key, row
    app.run()
    assert_no_crash(app)
    return app


def test_a_row_opens_beside_the_list(models: Path, open_page: OpenPage) -> None:
    run = write_run(knowing(), models)
    app = open_page("pairs", run=run)
    listed = table(app)
    assert "Row 1 of" not in words(app)
    app = open_row(app, run, 2)
    assert table(app).equals(listed), "the list stays as it is"
    for label in listed.loc[2, ["entity", "match"]]:
        assert str(label) in words(app).replace("\\", "")
    assert f"Row 3 of {len(listed)}" in words(app)
    assert "Values side by side" not in words(app)
    assert {link.proto.page for link in app.get("page_link")} >= {"explain", "entity", "review", "export"}
    next(button for button in app.button if button.label == "Next").click().run()
    assert_no_crash(app)
    assert f"Row 4 of {len(listed)}" in words(app)
    assert str(listed.loc[3, "match"]) in words(app).replace("\\", "")


def test_the_ends_of_the_list_and_hostile_labels_in_the_drawer(models: Path, open_page: OpenPage) -> None:
    run = write_run(sample_run(), models)
    app = open_page("pairs", run=run)
    listed = table(app)
    app = open_row(app, run, 0)
    assert next(button for button in app.button if button.label == "Previous").disabled
    app = open_row(app, run, len(listed) - 1)
    assert next(button for button in app.button if button.label == "Next").disabled
    app = open_row(app, run, listed["entity"].tolist().index(HOSTILE_LABELS[1]))
    assert HOSTILE_LABELS[1] not in words(app)


def test_any_margin_of_the_address_is_a_chip(run: str, open_page: OpenPage) -> None:
    app = open_page("pairs", run=run, margin_to="0.5")
    assert_no_crash(app)
    assert chips(app) == ["margin ≤ 0.5"]
    assert (table(app)["margin"] <= 0.5).all()


def test_a_relation_keeps_its_entities(run: str, open_page: OpenPage) -> None:
    app = open_page("pairs", run=run, relation="hasCapital")
    assert_no_crash(app)
    assert sorted(table(app)["entity"]) == ["City 4", "City 8", "Germany"]
    assert chips(app) == ["relation: hasCapital"]


def test_a_relation_that_is_not_there_can_be_removed(run: str, open_page: OpenPage) -> None:
    app = open_page("pairs", run=run, relation="<b>../x</b>")
    assert_no_crash(app)
    assert "has no relation" in app.error[0].value
    app.button[0].click().run()
    assert not app.error
    assert len(table(app)) == 64


@pytest.mark.parametrize(("page", "first"), [("2", 100), ("999999999999", 100), ("-3", 0), ("0", 0)])
def test_pages_of_a_long_table(models: Path, open_page: OpenPage, page: str, first: int) -> None:
    run = write_run(sample_run(cities=130), models)
    app = open_page("pairs", run=run, page=page, order="degree", wide="yes")
    assert_no_crash(app)
    alignment = alignments(RunView(sample_run(cities=130)))["source"]
    positions = alignment.ordered(alignment.select(PairFilter()), "degree")[first : first + 100]
    assert table(app)["CSLS"].tolist() == pytest.approx(alignment.rows["csls"].iloc[positions].tolist())
    assert f"Rows {first + 1} to {first + len(positions)} of 134" in words(app)


def test_nothing_fits(run: str, open_page: OpenPage) -> None:
    app = open_page("pairs", run=run, search="no such thing", csls_from="-1e300", degree_from="9" * 300)
    assert_no_crash(app)
    assert "No pairs match the filters" in words(app)
    assert len(chips(app)) == 4


def test_ends_in_the_wrong_order_are_no_crash(models: Path, open_page: OpenPage) -> None:
    app = open_page("pairs", run=write_run(knowing(), models), probability_from="7", probability_to="-2", csls_from="1e300", degree_from="-5")
    assert_no_crash(app)
    assert "No pairs match the filters" in words(app)


def test_hostile_labels_stay_text(models: Path, open_page: OpenPage) -> None:
    run = write_run(sample_run(), models)
    app = open_page("pairs", run=run, search=HOSTILE_LABELS[1])
    assert_no_crash(app)
    assert HOSTILE_LABELS[1] not in words(app)
    assert HOSTILE_LABELS[1] not in [button.label for button in app.button]
    assert HOSTILE_LABELS[1] in table(app)["entity"].tolist()
    app = open_page("pairs", run=run, search="xxxxxxxx")
    assert table(app)["entity"].str.len().max() <= 200


def test_a_run_without_known_links_says_so(models: Path, open_page: OpenPage) -> None:
    run = sample_run()
    run.tables = {**run.tables, "links": run.tables["links"].iloc[:0]}
    run.metrics = None
    app = open_page("pairs", run=write_run(run, models))
    assert_no_crash(app)
    assert "precision is not known" in words(app)
    assert set(table(app)["verdict"]) == {"? unknown"}


def test_a_run_with_an_empty_graph(models: Path, open_page: OpenPage) -> None:
    run = sample_run()
    nothing = graph_tables("target", [], [], [], [])
    tables = {name: pd.concat([run.tables[name].query("graph == 'source'"), nothing[name]], ignore_index=True) for name in nothing}
    run.tables = {**run.tables, **tables, "links": run.tables["links"].iloc[:0], "matches": run.tables["matches"].iloc[:0]}
    app = open_page("pairs", run=write_run(run, models))
    assert_no_crash(app)
    assert "No pairs" in words(app)
