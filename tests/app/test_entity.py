"""The entity page: deep links good and bad, search, hostile names."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from engine.matching import RunView
from engine.run_store import RunStore
from tests.app.conftest import OpenPage, assert_no_crash, links, words
from tests.run_fixture import HOSTILE_LABELS, sample_run, write_run

CITY_5 = "http://one.example/resource/Entity_5"


def tables(app: AppTest) -> dict[str, pd.DataFrame]:
    """The page's tables by their first column."""
    return {str(element.value.columns[0]): element.value for element in app.dataframe}


@pytest.fixture
def view(run: str, models: Path) -> RunView:
    return RunView(RunStore(models).find(run))


def test_without_runs_it_points_home(open_page: OpenPage) -> None:
    app = open_page("entity")
    assert_no_crash(app)
    assert "No run to look into yet" in words(app)
    assert links(app)


def test_without_an_entity_it_offers_some(run: str, open_page: OpenPage) -> None:
    app = open_page("entity")
    assert_no_crash(app)
    assert "start with one of the best connected" in words(app)
    assert len(links(app)) == 12


def test_a_deep_link_shows_the_entity_its_matches_and_the_pair(run: str, view: RunView, open_page: OpenPage) -> None:
    app = open_page("entity", run=run, side="source", entity=CITY_5)
    assert_no_crash(app)
    assert "City 5" in words(app)
    expected = view.matches("source", 5, top=10)
    shown = tables(app)["rank"]
    assert shown["rank"].tolist() == [match.rank for match in expected]
    assert shown["CSLS"].tolist() == [match.csls for match in expected]
    assert shown["cosine"].tolist() == [match.cosine for match in expected]
    assert shown["verdict"].tolist()[0] == "⚓ seed"
    metrics = {metric.label.replace("\u2068", "").replace("\u2069", ""): metric.value for metric in app.metric}
    assert metrics["CSLS"] == f"{expected[0].csls:.3f}"
    assert metrics["Cosine"] == f"{expected[0].cosine:.3f}"
    assert metrics["Rank from GeoOne"] == f"{expected[0].rank} of 84"
    assert "of 84 entities of GeoTwo" in words(app), "the pool is named"


def test_a_link_to_a_pair_shows_that_pair(run: str, view: RunView, open_page: OpenPage) -> None:
    other = view.matches("source", 5, top=3)[2]
    app = open_page("entity", run=run, side="source", entity=CITY_5, match=other.uri)
    assert_no_crash(app)
    metrics = [metric.value for metric in app.metric]
    assert metrics[0] == f"{other.csls:.3f}"
    assert metrics[2] == "3 of 84"
    assert "wrong: another link is known" in words(app)


def test_the_target_side_works_the_same(run: str, view: RunView, open_page: OpenPage) -> None:
    target = view.entity("target", next(iter(view.counterparts("source", 5))))
    app = open_page("entity", run=run, side="target", entity=target.uri)
    assert_no_crash(app)
    pair = view.pair(5, target.index)
    assert [metric.value for metric in app.metric][:2] == [f"{pair.csls:.3f}", f"{pair.cosine:.3f}"]


def test_a_test_entity_can_be_ranked_in_the_published_pool(run: str, view: RunView, open_page: OpenPage) -> None:
    uri = view.entity("source", 20).uri
    app = open_page("entity", run=run, side="source", entity=uri, pool="test")
    assert_no_crash(app)
    assert "of 30 test entities of GeoTwo" in words(app)
    assert tables(app)["rank"]["CSLS"].tolist() == [match.csls for match in view.matches("source", 20, 10, "test")]


def test_a_pool_that_the_entity_is_not_in_is_explained(run: str, open_page: OpenPage) -> None:
    app = open_page("entity", run=run, side="source", entity=CITY_5, pool="test")
    assert_no_crash(app)
    assert "no test entity" in words(app)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"run": "towns/none"}, "there is no run"),
        ({"run": "../../etc/passwd"}, "there is no run"),
        ({"run": "\0"}, "there is no run"),
        ({"side": "left"}, "expected 'source' or 'target'"),
        ({"pool": "both"}, "expected 'all' or 'test'"),
        ({"entity": "http://nowhere.example/x"}, "neither graph has an entity"),
        ({"entity": "Germny", "side": "source"}, "near it: 'Germany'"),
        ({"entity": "Germany"}, "names 2 entities"),
        ({"entity": "http://two.example/q/Q1", "side": "source"}, "the source graph does not have"),
        ({"entity": CITY_5, "match": "http://nowhere.example/x"}, "the target graph does not have"),
        ({"entity": "x" * 30_000}, "more than any identifier"),
        ({"entity": HOSTILE_LABELS[1] + "?"}, "neither graph has an entity"),
    ],
)
def test_bad_addresses_get_a_sentence_and_a_way_on(run: str, open_page: OpenPage, parameters: dict[str, str], told: str) -> None:
    app = open_page("entity", **parameters)
    assert_no_crash(app)
    assert len(app.error) == 1
    assert told in app.error[0].value.replace("\\", "")
    assert links(app)


@pytest.mark.parametrize("index", range(10, 15))
def test_hostile_labels_are_shown_as_text(run: str, open_page: OpenPage, index: int) -> None:
    app = open_page("entity", run=run, side="source", entity=f"http://one.example/resource/Entity_{index}")
    assert_no_crash(app)
    told = words(app)
    for raw in ("<script>", "**bold**", ":red[x]", "](javascript:", "x" * 500):
        assert raw not in told
    assert app.subheader[0].value


def test_an_entity_without_a_label_shows_its_id(run: str, open_page: OpenPage) -> None:
    app = open_page("entity", run=run, side="source", entity="http://one.example/resource/Entity_7")
    assert_no_crash(app)
    assert "Entity\\_7" in app.subheader[0].value
    assert "has no label" in words(app)


def test_search_results_come_from_the_server_at_most_fifty(run: str, open_page: OpenPage) -> None:
    app = open_page("entity", run=run)
    app.text_input[0].set_value("germany").run()
    assert_no_crash(app)
    assert "2 results" in words(app)
    app.text_input[0].set_value("t").run()
    assert "The first 50 that fit" in words(app)
    app.text_input[0].set_value("<no such thing>").run()
    assert_no_crash(app)
    assert "Nothing fits" in words(app)


def test_a_run_that_breaks_while_the_app_is_open_is_told(run: str, models: Path, open_page: OpenPage) -> None:
    (models / run / "entities.parquet").write_bytes(b"x" * (models / run / "entities.parquet").stat().st_size)
    app = open_page("entity", run=run)
    assert_no_crash(app)
    assert "checksum differs" in app.error[0].value


def test_an_entity_without_neighbours_says_what_that_means(models: Path, open_page: OpenPage) -> None:
    sample = sample_run()
    sample.tables = {**sample.tables, "triples": sample.tables["triples"].iloc[:0]}
    run = write_run(sample, models)
    app = open_page("entity", run=run, side="source", entity=CITY_5)
    assert_no_crash(app)
    assert "No triple touches this entity" in words(app)
    assert "Neither entity has a neighbour" in words(app)
