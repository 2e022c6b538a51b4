"""The degree page: figures as stored, a bucket's entities as ranked, the address."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.state import AS_TABLE
from engine.analysis.entities import bucket_names, degree_buckets
from engine.explore.comparison import bucket_ranks, outcomes
from engine.runs import RunStore
from engine.runs.entities import short_id
from tests.app.conftest import OpenPage, assert_no_crash, figures, links, with_open, words
from tests.run_fixture import HOSTILE_LABELS, MemoryRun, analysed, jolted, sample_run, write_run

CHOSEN = "1"


def uneven(run: MemoryRun) -> MemoryRun:
    """The sample with every other city no longer near another one: test entities of one triple and of two."""
    triples = run.tables["triples"]
    triples = triples[(triples["relation"] != 1) | (triples["head"] % 4 == 0)]
    entities = run.tables["entities"].copy()
    for side in ("source", "target"):
        inside, ends = entities["graph"] == side, triples.loc[triples["graph"] == side, ["head", "tail"]]
        entities.loc[inside, "degree"] = np.bincount(ends.to_numpy().ravel(), minlength=int(inside.sum()))
    return replace(run, tables={**run.tables, "triples": triples, "entities": entities})


@pytest.fixture(scope="module")
def first_run() -> MemoryRun:
    return analysed(jolted(uneven(sample_run()), 0.25, seed=4))


@pytest.fixture(scope="module")
def second_run() -> MemoryRun:
    return analysed(jolted(uneven(sample_run()), 0.15, seed=5))


@pytest.fixture
def runs(first_run: MemoryRun, second_run: MemoryRun, models: Path) -> list[str]:
    return [write_run(first_run, models, run_id="semi-s0", variant="semi"), write_run(second_run, models, run_id="basic-s0")]


def listed(app: AppTest) -> pd.DataFrame:
    """The list of entities."""
    return next(element.value for element in app.dataframe if "entity" in element.value.columns)


def control(app: AppTest, label: str) -> Any:
    return next(group for group in app.button_group if group.label == label)


def figure(app: AppTest) -> dict[str, Any]:
    return dict(figures(app)[0])


def numbers(values: Any) -> list[float]:
    """A trace's coordinates, which may be packed."""
    if isinstance(values, dict):
        return [float(one) for one in np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])]
    return [float(one) for one in values]


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("rate", ["hits@1", "mrr"])
def test_the_figure_holds_what_the_runs_store(runs: list[str], models: Path, open_page: OpenPage, side: str, rate: str) -> None:
    app = open_page("degree", run=runs, side=side, rate=rate)
    assert_no_crash(app)
    traces = figure(app)["data"]
    for run, trace in zip(runs, traces, strict=False):
        table = RunStore(models).find(run).table("degree").query("graph == @side and queries > 0").sort_values("least_degree")
        assert numbers(trace["y"]) == pytest.approx(table[rate].tolist())
        assert trace["name"] == run.partition("/")[2].partition("-")[0], "the variant"
        assert run.partition("/")[2] in trace["hovertemplate"], "and the run itself in the hint"
    assert [int(one.replace(",", "")) for one in traces[-1]["text"]] == table["queries"].tolist(), "the bars count test entities"
    assert sum(table["queries"]) == 30


@pytest.mark.parametrize("show", ["misses", "hits", "all"])
def test_a_bucket_lists_its_entities_with_every_runs_rank(runs: list[str], models: Path, open_page: OpenPage, show: Any) -> None:
    app = open_page("degree", run=runs, side="source", bucket=CHOSEN, show=show)
    assert_no_crash(app)
    assert app.query_params["bucket"] == CHOSEN
    opened = [RunStore(models).find(run) for run in runs]
    entities = opened[0].table("entities").query("graph == 'source'").set_index("entity")
    expected = bucket_ranks([outcomes(run, "source") for run in opened], entities["degree"].to_numpy(), CHOSEN, show)
    assert len(expected) > 1
    shown = listed(app)
    assert shown["id"].tolist() == [short_id(uri) for uri in entities.loc[expected["entity"], "uri"]]
    assert shown["rank in semi"].tolist() == expected[0].tolist()
    assert shown["rank in basic"].tolist() == expected[1].tolist()
    assert set(degree_buckets(shown["triples"].to_numpy())) == {bucket_names().index(CHOSEN)}


def test_the_list_is_searched_and_the_address_says_so(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("degree", run=runs, side="source", bucket=CHOSEN, show="all")
    everybody = listed(app)
    wanted = everybody["id"].iloc[0]
    app.text_input[0].set_value(wanted.lower()).run()
    assert_no_crash(app)
    assert app.query_params["search"] == wanted.lower()
    assert wanted in listed(app)["id"].tolist()
    assert len(listed(app)) < len(everybody)
    app.text_input[0].set_value("nobody is called so").run()
    assert "No entity in this list matches" in words(app)


def test_choices_are_kept_in_the_address(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("degree", run=runs, tab="entities")
    for label, value in (("Measure", "mrr"), ("Test entities of", "source"), ("Triples · test entities", "2"), ("Show", "hits")):
        control(app, label).set_value(value).run()
        assert_no_crash(app)
    assert app.query_params == {"run": runs, "rate": "mrr", "side": "source", "bucket": "2", "show": "hits", "tab": "entities"}


def test_an_address_without_a_tab_opens_the_list_where_it_asks_something_of_it(runs: list[str], open_page: OpenPage) -> None:
    """Links from before there were tabs stay valid."""
    for asked, charts in (({}, 1), ({"bucket": "2"}, 0), ({"show": "all"}, 0), ({"bucket": "2", "tab": "chart"}, 1)):
        app = open_page("degree", run=runs, **asked)
        assert_no_crash(app)
        assert len(figures(app)) == charts
        assert any("id" in element.value.columns for element in app.dataframe) != bool(charts)


def test_choices_within_the_list_stay_in_it(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("degree", run=runs, show="hits")
    control(app, "Show").set_value("misses").run()
    assert_no_crash(app)
    assert app.query_params == {"run": runs, "tab": "entities"}
    assert not figures(app)


def test_two_runs_of_a_variant_are_named_by_their_ids(runs: list[str], second_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    again = write_run(second_run, models, run_id="basic-s1")
    traces = figure(open_page("degree", run=[*runs, again]))["data"]
    assert [trace["name"] for trace in traces[:3]] == ["semi", "basic-s0", "basic-s1"]


def test_hostile_labels_are_listed_as_text(runs: list[str], models: Path, open_page: OpenPage) -> None:
    sample = uneven(sample_run())
    labels = sample.tables["entities"].copy()
    labels["label"] = [HOSTILE_LABELS[number % len(HOSTILE_LABELS)] for number in range(len(labels))]
    run = write_run(analysed(replace(sample, tables={**sample.tables, "entities": labels})), models, run_id="hostile")
    app = open_page("degree", run=run, side="source", bucket=CHOSEN, show="all")
    assert_no_crash(app)
    assert max(len(label) for label in listed(app)["entity"]) <= 200
    assert "<script>" not in words(app)


def test_a_bucket_that_there_is_not(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("degree", run=runs, bucket="<b>many</b>")
    assert_no_crash(app)
    assert "Choose one of: 0, 1, 2" in app.error[0].value.replace("\\", "")
    app = open_page("degree", run=runs, bucket="25+", side="source", show="hits")
    assert_no_crash(app)
    assert not app.error


def test_without_test_links_there_is_nothing_to_measure(models: Path, open_page: OpenPage) -> None:
    sample = sample_run()
    known = sample.tables["links"]
    run = write_run(analysed(replace(sample, tables={**sample.tables, "links": known[known["role"] != "test"]}, metrics=None)), models)
    app = open_page("degree", run=run)
    assert_no_crash(app)
    assert "no test links" in words(app)
    assert any("review" in link and "kind=sample" in link for link in links(app)), "there is a way to an accuracy all the same"


def test_a_run_of_an_older_version_is_ranked_again(whole_run: MemoryRun, models: Path, open_page: OpenPage) -> None:
    tables = {name: table for name, table in whole_run.tables.items() if name != "query_ranks"}
    new, old = write_run(whole_run, models, run_id="new"), write_run(replace(whole_run, tables=tables), models, run_id="old")
    lists = [listed(open_page("degree", run=run, side="source", bucket="2", show="all")) for run in (new, old)]
    pd.testing.assert_frame_equal(lists[0].set_axis(range(6), axis=1), lists[1].set_axis(range(6), axis=1))


def test_intervals_are_a_table_too(run: str, models: Path, open_page: OpenPage) -> None:
    app = with_open(open_page("degree", run=write_run(analysed(sample_run()), models, run_id="whole-s0")), AS_TABLE, "hits@1")
    assert_no_crash(app)
    (shown,) = [frame.value for frame in app.dataframe if "from" in frame.value.columns]
    stored = RunStore(models).find("towns/whole-s0").table("degree")
    stored = stored[(stored["graph"] == "target") & (stored["queries"] > 0)].sort_values("least_degree")
    assert shown["triples"].tolist() == stored["bucket"].tolist()
    for column, name in (("test entities", "queries"), ("Hits@1", "hits@1"), ("from", "hits@1_low"), ("to", "hits@1_high")):
        assert shown[column].tolist() == stored[name].tolist()
