"""The relations page: which importance it shows, searching and choosing, one relation at a time, runs that have less."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.state import AS_TABLE
from tests.app.conftest import OpenPage, PutRun, assert_no_crash, figures, links, with_open, words
from tests.run_fixture import HOSTILE_LABELS, MemoryRun, write_run


@pytest.fixture
def whole(whole_run: MemoryRun, models: Path, put_run: PutRun) -> str:
    return put_run(whole_run, models)


def ranking(app: AppTest) -> pd.DataFrame:
    return next(element.value for element in app.dataframe if {"relation", "importance"} <= set(element.value.columns))


def bars(app: AppTest) -> list[dict[str, Any]]:
    spec = figures(app)[0]
    return [trace for trace in spec["data"] if trace["type"] == "bar"]


def stored(run: MemoryRun, layer: int = 1, channel: str = "entity", direction: str = "forward") -> pd.DataFrame:
    table = run.tables["relation_importance"]
    return table[(table["layer"] == layer) & (table["channel"] == channel) & (table["direction"] == direction)].sort_values("rank")


def without(run: MemoryRun, *names: str) -> MemoryRun:
    return replace(run, tables={name: table.iloc[:0] if name in names else table for name, table in run.tables.items()})


def test_it_says_which_importance_it_ranks(whole: str, whole_run: MemoryRun, open_page: OpenPage) -> None:
    app = open_page("relations", run=whole)
    assert_no_crash(app)
    assert "Layer 1, entity channel, forward (messages from tail to head)" in words(app)
    expected = stored(whole_run)
    assert list(ranking(app).columns) == ["relation", "importance", "triples", "Hits@1"]
    assert ranking(app)["importance"].tolist() == expected["importance"].tolist()
    app = open_page("relations", run=whole, view="chart")
    assert_no_crash(app)
    assert sum(len(trace["text"]) for trace in bars(app)) == len(expected)
    assert len({trace["marker"]["pattern"]["shape"] for trace in bars(app)}) == 2, "the graphs can be distinguished in grey"
    app = open_page("relations", run=whole, view="all")
    assert_no_crash(app)
    assert ranking(app)["importance"].tolist() == expected["importance"].tolist()
    assert ranking(app)["rank"].tolist() == expected["rank"].tolist()
    assert ranking(app)["band"].tolist() == expected["band"].tolist()
    assert ranking(app)["functionality"].tolist() == expected["functionality"].tolist()


def test_the_address_chooses_another_one(whole: str, whole_run: MemoryRun, open_page: OpenPage) -> None:
    app = open_page("relations", run=whole, layer="2", channel="relation", direction="inverse")
    assert_no_crash(app)
    assert "Layer 2, relation channel, inverse" in words(app)
    assert ranking(app)["importance"].tolist() == stored(whole_run, 2, "relation", "inverse")["importance"].tolist()


def test_choices_go_into_the_address(whole: str, open_page: OpenPage) -> None:
    app = open_page("relations", run=whole)
    for label, value in (("Layer", 2), ("Channel", "relation"), ("Direction", "inverse"), ("Graph", "target"), ("Minimum triples", 10)):
        next(group for group in app.button_group if group.label == label).set_value(value).run()
        assert_no_crash(app)
    asked = {name: app.query_params[name] for name in ("layer", "channel", "direction", "graph", "least")}
    assert asked == {"layer": "2", "channel": "relation", "direction": "inverse", "graph": "target", "least": "10"}
    assert set(ranking(app)["relation"]) == {"◆ liegtIn", "◆ nahe"}


def test_a_layer_that_the_run_lacks(whole: str, open_page: OpenPage) -> None:
    app = open_page("relations", run=whole, layer="7")
    assert_no_crash(app)
    assert "This run has no layer 7; layer 1 is shown" in words(app)


def test_searching_on_the_server(whole: str, open_page: OpenPage) -> None:
    app = open_page("relations", run=whole)
    app.text_input[0].set_value("LIEGT").run()
    assert app.query_params["search"] == "LIEGT"
    assert ranking(app)["relation"].tolist() == ["◆ liegtIn"]
    app.text_input[0].set_value("nothing like it").run()
    assert_no_crash(app)
    assert "No relations match" in words(app)
    del app.query_params["search"]
    app.run()
    assert app.text_input[0].value == "", "the box follows the address"
    assert len(ranking(app)) == 6


def test_one_relation(whole: str, whole_run: MemoryRun, open_page: OpenPage) -> None:
    app = with_open(open_page("relations", run=whole, side="target", relation="nahe"), AS_TABLE, 1, "target")
    assert_no_crash(app)
    rows = whole_run.tables["relation_importance"].query("graph == 'target' and relation == 1")
    metrics = {metric.label: metric.value for metric in app.metric}
    assert metrics["Triples"] == str(rows["frequency"].iloc[0])
    assert metrics["Functionality"] == f"{rows['functionality'].iloc[0]:.3f}"
    everywhere = next(element.value for element in app.dataframe if "of" in element.value)
    assert everywhere["importance"].tolist() == rows["importance"].tolist()
    hits = whole_run.tables["relation_hits"].query("graph == 'target' and relation == 1 and role == 'any'").iloc[0]
    assert f"{hits['hits@1']:.3f}" in words(app)
    assert f"of {hits['queries']} test entities that have the relation" in words(app)


def test_its_counterparts_and_examples_can_be_opened(whole: str, whole_run: MemoryRun, open_page: OpenPage) -> None:
    app = open_page("relations", run=whole, side="target", relation="nahe", layer="2", tab="counterparts")
    stored = whole_run.tables["relation_twins"].query("graph == 'target' and relation == 1").sort_values("rank")
    names = whole_run.tables["relations"].query("graph == 'source'").set_index("relation")["name"]
    expected = [names[twin] for twin in stored["twin"]]
    assert [button.label.partition("**")[2].partition("**")[0].strip("\u2068\u2069") for button in app.button] == expected
    app.button[1].click().run()
    assert_no_crash(app)
    asked = {"side": "source", "relation": expected[1], "layer": "2", "tab": "counterparts"}
    assert {name: app.query_params[name] for name in asked} == asked
    found = links(open_page("relations", run=whole, side="target", relation="nahe", tab="examples"))
    entities = [link for link in found if link.startswith("entity?")]
    assert len(entities) == 2 * 8
    assert all("side=target" in link for link in entities)


def test_only_the_open_tab_is_there(whole: str, open_page: OpenPage) -> None:
    for tab, charts in (("importance", 1), ("counterparts", 0), ("examples", 0)):
        app = open_page("relations", run=whole, tab=tab)
        assert_no_crash(app)
        assert len(figures(app)) == charts
        assert bool([link for link in links(app) if link.startswith("entity?")]) == (tab == "examples")


def test_without_a_choice_the_first_of_the_list_is_looked_at(whole: str, whole_run: MemoryRun, open_page: OpenPage) -> None:
    app = open_page("relations", run=whole)
    first = stored(whole_run).iloc[0]
    assert {metric.label: metric.value for metric in app.metric}["Triples"] == str(first["frequency"])
    assert "first of the list" in words(app)
    assert "relation" not in app.query_params


@pytest.mark.parametrize("name", ["nothing", "<script>alert(1)</script>", "../../x"])
def test_a_relation_that_is_not_there(whole: str, name: str, open_page: OpenPage) -> None:
    app = open_page("relations", run=whole, relation=name)
    assert_no_crash(app)
    assert "Neither graph has a relation" in app.error[0].value
    assert "<script>" not in words(app)
    assert len(ranking(app)) == 6, "the list is there to choose from"


def test_hostile_names_are_text(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    hostile = ["<b>{x}</b> $y$ %{z}", "**a** [b](javascript:alert(1))", HOSTILE_LABELS[4], "علاقة", "e\x00\u202ef", "=1+1"]
    tables = {**whole_run.tables, "relations": whole_run.tables["relations"].assign(name=hostile)}
    run = write_run(replace(whole_run, tables=tables), models)
    for name, asked in itertools.product(hostile[:4], ({}, {"view": "chart"}, {"view": "all"}, {"tab": "counterparts"}, {"tab": "examples"})):
        app = open_page("relations", run=run, relation=name, **asked)
        assert_no_crash(app)
        assert not app.error
        markdown = words(app).replace(app.code[0].value, "") if app.code else words(app)  # code is shown as it is
        assert "<b>" not in markdown
        assert "](javascript" not in markdown
        assert not [button.label for button in app.button if "<b>" in button.label or "](javascript" in button.label]
        drawn = json.dumps(figures(app))
        assert "<b>{x}" not in drawn
        assert "%{z}" not in drawn
    assert max(map(len, ranking(app)["relation"])) <= 82


def test_without_test_links_there_is_no_accuracy(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("relations", run=write_run(without(whole_run, "relation_hits"), models))
    assert_no_crash(app)
    assert "no test links" in words(app)
    assert any("review" in link and "kind=sample" in link for link in links(app)), "there is a way to an accuracy all the same"
    assert "No test entity has this relation" in words(app)
    assert "Hits@1" not in ranking(app)


@pytest.mark.parametrize(
    ("table", "message"),
    [("relation_importance", "No relation importance"), ("relation_twins", "None: this model does not use relation vectors")],
)
def test_without_attention_or_twins(table: str, message: str, whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("relations", run=write_run(without(whole_run, table), models), tab="counterparts")
    assert_no_crash(app)
    assert message in words(app)


def test_a_relation_without_triples(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    relations = pd.concat([whole_run.tables["relations"], pd.DataFrame({"graph": ["target"], "relation": [3], "name": ["unused"]})])
    run = write_run(replace(whole_run, tables={**whole_run.tables, "relations": relations}), models)
    app = open_page("relations", run=run, relation="unused")
    assert_no_crash(app)
    assert "No triple has this relation" in words(app)


def test_corresponding_relations_are_listed_and_their_names_are_text(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    rows = {
        "kind": ["relation", "attribute"],
        "source": [HOSTILE_LABELS[4], "born"],
        "target": ["=1+1", "birth date"],
        "turned": [True, False],
        "source_implies_target": [0.9, 0.5],
        "target_implies_source": [0.25, 0.75],
        "support": [12.0, 3.0],
    }
    run = write_run(replace(whole_run, tables={**whole_run.tables, "correspondences": pd.DataFrame(rows)}), models)
    app = open_page("relations", run=run, view="correspondences")
    assert_no_crash(app)
    table = next(element.value for element in app.dataframe if "facts" in element.value)
    assert table["direction"].tolist() == ["reversed", "same"]
    assert table["facts"].tolist() == [12, 3]
    assert table["source implies target"].tolist() == [0.9, 0.5]


def test_runs_of_older_versions_have_no_correspondences(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    tables = {name: table for name, table in whole_run.tables.items() if name != "correspondences"}
    app = open_page("relations", run=write_run(replace(whole_run, tables=tables), models), view="correspondences")
    assert_no_crash(app)
    assert not [element for element in app.dataframe if "facts" in element.value]
    assert "Correspondences" not in [tab.label for tab in app.tabs]
    assert len(ranking(app)) == 6, "the list in its place"
