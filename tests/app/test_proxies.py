"""The proxies page: spread, use, what is near a proxy, pairs; runs that have less."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app import text
from engine.explore.proxies import ProxyView
from engine.runs.view import RunView
from tests.app.conftest import OpenPage, PutRun, assert_no_crash, figures, links, words
from tests.run_fixture import MemoryRun, write_run

CITY_5 = "http://one.example/resource/Entity_5"


@pytest.fixture
def whole(whole_run: MemoryRun, models: Path, put_run: PutRun) -> str:
    return put_run(whole_run, models)


def charts(app: AppTest) -> list[dict[str, Any]]:
    return figures(app)


def numbers(values: Any) -> list[float]:
    """A trace's coordinates, which may be packed."""
    if isinstance(values, dict):
        return [float(one) for one in np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])]
    return [float(one) for one in values]


def entity_links(app: AppTest) -> list[dict[str, list[str]]]:
    return [parse_qs(link.partition("?")[2]) for link in links(app) if link.startswith("entity?")]


def test_what_is_near_a_proxy(whole: str, whole_run: MemoryRun, open_page: OpenPage) -> None:
    app = open_page("proxies", run=whole, proxy="2", channel="relation")
    assert_no_crash(app)
    found = entity_links(app)
    for side in ("source", "target"):
        rows = whole_run.tables["proxy_top"].query("channel == 'relation' and proxy == 2 and graph == @side").sort_values("rank")
        uris = whole_run.tables["entities"].query("graph == @side").set_index("entity")["uri"]
        assert [link["entity"][0] for link in found if link["side"] == [side]] == [uris[entity] for entity in rows["entity"]]
    assert "highest cosine to proxy 2" in words(app)


def test_a_proxy_is_chosen_from_a_list(whole: str, open_page: OpenPage) -> None:
    app = open_page("proxies", run=whole, tab="nearest")
    chooser = next(box for box in app.selectbox if "Proxy" in box.label)
    chooser.select(int(chooser.options[-1])).run()
    assert_no_crash(app)
    assert app.query_params["proxy"] == chooser.options[-1]
    assert f"highest cosine to proxy {chooser.options[-1]}" in words(app)


@pytest.mark.parametrize("proxy", ["4", "-1", "999999999999999999999"])
def test_a_proxy_that_is_not_there(whole: str, proxy: str, open_page: OpenPage) -> None:
    app = open_page("proxies", run=whole, proxy=proxy)
    assert_no_crash(app)
    assert f"There is no proxy {proxy}. The entity channel has proxies 0 to 3" in app.error[0].value
    assert entity_links(app)


TABS = {"agreement": "heatmap", "divergence": "scatter", "usage": "heatmap", "nearest": None, "cosine": "scatter"}


def test_three_numbers_first_and_only_the_open_tab(whole: str, whole_run: MemoryRun, open_page: OpenPage) -> None:
    links_known = whole_run.tables["links"].query("role != 'unsure'")
    assert f"of the {len(links_known)} known links have the same nearest proxy" in words(open_page("proxies", run=whole))
    view = ProxyView(RunView(whole_run), whole_run.table, whole_run.tensor)
    agreement, divergences = view.agreement("entity"), view.known_divergence("entity")["divergence"]
    for tab, kind in TABS.items():
        app = open_page("proxies", run=whole, tab=tab)
        assert_no_crash(app)
        assert {trace["type"] for chart in charts(app) for trace in chart["data"]} == ({kind} if kind else set())
        assert {metric.label: metric.value for metric in app.metric} == {
            "Nearest-proxy agreement": f"{agreement.same:.0%}",
            "Random pairs": f"{agreement.chance:.1%}",
            "Median divergence ratio": f"{np.median(view.drawn_divergence('entity')) / divergences.median():.1f}×",
        }
        assert bool(entity_links(app)) == (tab == "nearest")


def test_old_links_open_what_they_ask_for(whole: str, open_page: OpenPage) -> None:
    assert entity_links(open_page("proxies", run=whole, proxy="2"))
    app = open_page("proxies", run=whole, use="attention")
    assert "times uniform" in words(app)
    next(group for group in app.button_group if group.label == "Measure").set_value("nearest").run()
    assert_no_crash(app)
    assert "Most used: proxy" in words(app), "the tab stays open"
    app = open_page("proxies", run=whole, tab="pair")
    assert_no_crash(app)
    assert "have the same nearest proxy" in words(app), "no pair, no tab of it"


def test_curves_have_room_above_them(whole: str, open_page: OpenPage) -> None:
    for tab in ("divergence", "cosine"):
        (chart,) = charts(open_page("proxies", run=whole, tab=tab))
        highest = max(max(numbers(trace["y"])) for trace in chart["data"])
        assert chart["layout"]["yaxis"]["range"] == pytest.approx([0, 1.1 * highest])
        assert len({trace["line"]["dash"] for trace in chart["data"]}) == 2, "distinguishable in grey"


def test_choices_go_into_the_address(whole: str, open_page: OpenPage) -> None:
    app = open_page("proxies", run=whole, tab="usage")
    for label, value in (("Channel", "relation"), ("Measure", "attention")):
        next(group for group in app.button_group if group.label == label).set_value(value).run()
        assert_no_crash(app)
    assert (app.query_params["channel"], app.query_params["use"]) == ("relation", "attention")
    assert "times uniform" in words(app)


def test_a_pair(whole: str, whole_run: MemoryRun, open_page: OpenPage) -> None:
    row = whole_run.tables["pair_divergence"].query("channel == 'entity' and role == 'test'").iloc[0]
    view = RunView(whole_run)
    source, target = view.entity("source", int(row["source"])), view.entity("target", int(row["target"]))
    app = open_page("proxies", run=whole, source=source.uri, target=target.uri)
    assert_no_crash(app)
    known = whole_run.tables["pair_divergence"].query("channel == 'entity' and role in ['train', 'valid', 'test']")["divergence"]
    assert f"Divergence: {row['divergence'] * 1e6:.1f} × 10⁻⁶ bit" in words(app)
    assert f"It is lower for **{(known < row['divergence']).mean():.0%}** of the {len(known)} known links" in words(app)
    pair = view.pair(source.index, target.index)
    assert f"**CSLS {text.score(pair.csls)}**" in words(app), "the same header as everywhere"
    assert f"cosine {text.score(pair.cosine)}" in words(app)
    attention = charts(app)[0]["data"]
    assert len(attention) == 2
    assert (source.uri, target.uri) in {(link["entity"][0], link["match"][0]) for link in entity_links(app) if "match" in link}


def test_of_one_entity_alone_with_its_best_match(whole: str, whole_run: MemoryRun, open_page: OpenPage) -> None:
    best = RunView(whole_run).best["source"][5]
    app = open_page("proxies", run=whole, source=CITY_5)
    assert_no_crash(app)
    opened = next(link for link in entity_links(app) if link["entity"] == [CITY_5] and "match" in link)
    assert opened["match"] == [RunView(whole_run).entity("target", best).uri]


@pytest.mark.parametrize("name", ["nobody at all", "<b>x</b>", "../../etc/passwd"])
def test_a_pair_that_is_not_there(whole: str, name: str, open_page: OpenPage) -> None:
    app = open_page("proxies", run=whole, source=name, target=name)
    assert_no_crash(app)
    assert "the source graph does not have" in app.error[0].value
    assert "<b>" not in words(app)
    assert len(charts(app)) == 1, "the rest of the page is there"


def test_without_a_pair_some_are_offered(whole: str, open_page: OpenPage) -> None:
    app = open_page("proxies", run=whole, tab="divergence")
    offered = [button for button in app.button if "↔" in button.label]
    assert len(offered) == 2 * 4
    offered[0].click().run()
    assert_no_crash(app)
    assert {"source", "target"} <= set(app.query_params)
    assert "Proxy attention" in words(app)
    next(button for button in app.button if button.label == "Close pair").click().run()
    assert_no_crash(app)
    assert set(app.query_params) == {"run"}


def test_hostile_labels_are_text(whole: str, open_page: OpenPage) -> None:
    for number in range(10, 15):
        app = open_page("proxies", run=whole, source=f"http://one.example/resource/Entity_{number}")
        assert_no_crash(app)
        assert not app.error
        assert "<script>" not in words(app)
        assert "](javascript" not in words(app)
        assert "<script>" not in json.dumps(figures(app))


def test_without_links(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    divergence = whole_run.tables["pair_divergence"].assign(role="")
    tables = {**whole_run.tables, "links": whole_run.tables["links"].iloc[:0], "pair_divergence": divergence}
    run = write_run(replace(whole_run, tables=tables), models)
    for parameters in ({}, {"source": CITY_5}):
        app = open_page("proxies", run=run, **parameters)
        assert_no_crash(app)
        assert ("The data set has no known links" in words(app)) == (not parameters)
        assert app.metric[0].value == "—"


def test_without_proxies(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    tables = {name: table.iloc[:0] if name in ("proxy_top", "pair_divergence") else table for name, table in whole_run.tables.items()}
    tensors = {name: value for name, value in whole_run.tensors.items() if name != "proxies"}
    app = open_page("proxies", run=write_run(replace(whole_run, tables=tables, tensors=tensors), models), source=CITY_5)
    assert_no_crash(app)
    assert "No proxies" in words(app)


def test_a_model_of_one_channel(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    tables = {**whole_run.tables, "proxy_top": whole_run.tables["proxy_top"].query("channel == 'relation'")}
    app = open_page("proxies", run=write_run(replace(whole_run, tables=tables), models))
    assert_no_crash(app)
    assert "This model has only the relation channel" in words(app)
