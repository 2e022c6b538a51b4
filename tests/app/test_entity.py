"""The entity page: deep links good and bad, search, hostile names."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import text
from engine.explore.neighbourhood import AttentionPart, IncidentTriples, facing, standings
from engine.runs import RunStore
from engine.runs.view import RunView
from tests.app.conftest import OpenPage, PutRun, assert_no_crash, links, words
from tests.app.conftest import tables as all_tables
from tests.run_fixture import HOSTILE_LABELS, MemoryRun, assemble, graph_tables, sample_run, write_run

CITY_5 = "http://one.example/resource/Entity_5"


def tables(app: AppTest) -> dict[str, pd.DataFrame]:
    """The page's tables by their first column."""
    return {str(table.columns[0]): table for table in all_tables(app)}


@pytest.fixture
def view(run: str, models: Path) -> RunView:
    return RunView(RunStore(models).find(run))


def test_without_runs_it_points_home(open_page: OpenPage) -> None:
    app = open_page("entity")
    assert_no_crash(app)
    assert "No runs yet" in words(app)
    assert links(app)


def test_without_an_entity_it_offers_some(run: str, open_page: OpenPage) -> None:
    app = open_page("entity")
    assert_no_crash(app)
    assert "start with one of the entities with the most triples" in words(app)
    assert len(links(app)) == 12


def test_a_deep_link_shows_the_entity_its_matches_and_the_pair(run: str, view: RunView, open_page: OpenPage) -> None:
    app = open_page("entity", run=run, side="source", entity=CITY_5)
    assert_no_crash(app)
    assert "City 5" in words(app)
    expected = view.matches("source", 5, top=10)
    shown = tables(app)["match"]
    assert list(shown.columns) == ["match", "CSLS", "verdict"], "this run has no probabilities; the rest is shown on request"
    assert shown["CSLS"].tolist() == [match.csls for match in expected]
    assert shown["verdict"].fillna("").tolist() == ["⚓ seed", *[""] * 9], "what no link confirms has none"
    header = words(app).replace("\u2068", "").replace("\u2069", "")
    assert f"**CSLS {expected[0].csls:.3f}** · margin +{expected[0].csls - expected[1].csls:.3f} · cosine {expected[0].cosine:.3f} · " in header
    assert f"rank {expected[0].rank} of 84 from GeoOne, " in header
    assert "of 84 entities of GeoTwo" in words(app), "the pool is named"
    next(toggle for toggle in app.toggle if toggle.label == "More columns").set_value(True).run()
    shown = tables(app)["match"]
    assert shown["rank"].tolist() == [match.rank for match in expected]
    assert shown["cosine"].tolist() == [match.cosine for match in expected]


def test_the_values_of_entity_and_match_are_next_to_each_other(run: str, view: RunView, open_page: OpenPage) -> None:
    match = view.entity("target", view.matches("source", 5, 1)[0].entity)
    app = open_page("entity", run=run, side="source", entity=CITY_5)
    assert_no_crash(app)
    assert "Values side by side" in [one.value for one in app.subheader]
    values = next(table for table in all_tables(app) if "comparison" in table.columns)
    first = values.iloc[0].str.replace("\\", "").str.strip("\u2068\u2069")
    assert first.tolist()[:3] == ["name", "City 5", match.title]


def test_a_link_to_a_pair_shows_that_pair(run: str, view: RunView, open_page: OpenPage) -> None:
    other = view.matches("source", 5, top=3)[2]
    app = open_page("entity", run=run, side="source", entity=CITY_5, match=other.uri)
    assert_no_crash(app)
    assert f"**CSLS {text.score(other.csls)}**" in words(app)
    assert "rank 3 of 84 from " in words(app)
    assert "incorrect: contradicts a known link" in words(app)


def test_the_target_side_works_the_same(run: str, view: RunView, open_page: OpenPage) -> None:
    target = view.entity("target", next(iter(view.counterparts("source", 5))))
    app = open_page("entity", run=run, side="target", entity=target.uri)
    assert_no_crash(app)
    pair = view.pair(5, target.index)
    assert f"**CSLS {text.score(pair.csls)}**" in words(app)
    assert f"cosine {text.score(pair.cosine)}" in words(app)


def test_a_test_entity_can_be_ranked_in_the_published_pool(run: str, view: RunView, open_page: OpenPage) -> None:
    uri = view.entity("source", 20).uri
    app = open_page("entity", run=run, side="source", entity=uri, pool="test")
    assert_no_crash(app)
    assert "of 30 test entities of GeoTwo" in words(app)
    assert tables(app)["match"]["CSLS"].tolist() == [match.csls for match in view.matches("source", 20, 10, "test")]


def test_a_pool_that_the_entity_is_not_in_is_explained(run: str, open_page: OpenPage) -> None:
    app = open_page("entity", run=run, side="source", entity=CITY_5, pool="test")
    assert_no_crash(app)
    assert "not a test entity" in words(app)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"run": "towns/none"}, "There is no run"),
        ({"run": "../../etc/passwd"}, "There is no run"),
        ({"run": "\0"}, "There is no run"),
        ({"side": "left"}, "Expected 'source' or 'target'"),
        ({"pool": "both"}, "Expected 'all' or 'test'"),
        ({"entity": "http://nowhere.example/x"}, "neither graph has an entity"),
        ({"entity": "Germny", "side": "source"}, "similar: 'Germany'"),
        ({"entity": "Germany"}, "names 2 entities"),
        ({"entity": "http://two.example/q/Q1", "side": "source"}, "the source graph does not have"),
        ({"entity": CITY_5, "match": "http://nowhere.example/x"}, "the target graph does not have"),
        ({"entity": "x" * 30_000}, "longer than any identifier"),
        ({"entity": HOSTILE_LABELS[1] + "?"}, "neither graph has an entity"),
    ],
)
def test_bad_addresses_get_a_sentence_and_a_way_on(run: str, open_page: OpenPage, parameters: dict[str, str], message: str) -> None:
    app = open_page("entity", **parameters)
    assert_no_crash(app)
    assert len(app.error) == 1
    assert message in app.error[0].value.replace("\\", "")
    assert links(app)


@pytest.mark.parametrize("index", range(10, 15))
def test_hostile_labels_are_shown_as_text(run: str, open_page: OpenPage, index: int) -> None:
    app = open_page("entity", run=run, side="source", entity=f"http://one.example/resource/Entity_{index}")
    assert_no_crash(app)
    message = words(app)
    for raw in ("<script>", "**bold**", ":red[x]", "](javascript:", "x" * 500):
        assert raw not in message
    assert app.subheader[0].value


def test_an_entity_without_a_label_shows_its_id(run: str, open_page: OpenPage) -> None:
    app = open_page("entity", run=run, side="source", entity="http://one.example/resource/Entity_7")
    assert_no_crash(app)
    assert "Entity\\_7" in app.subheader[0].value
    assert "no label, so its ID is shown" in words(app)


def test_of_an_entity_without_a_label_its_type_a_value_and_a_neighbour_are_shown(models: Path, open_page: OpenPage) -> None:
    sample = sample_run()
    entities, triples = sample.tables["entities"], sample.tables["triples"]
    mine = triples[(triples["graph"] == "source") & ((triples["head"] == 7) | (triples["tail"] == 7))]
    assert len(mine)
    attributes = pd.DataFrame({"graph": "source", "entity": [7, 7], "attribute": ["rdf:type", "http://x/population"], "value": ["City", '"1200"']})
    others = sample.tables["attributes"].query("not (graph == 'source' and entity == 7)")
    sample.tables = {**sample.tables, "attributes": pd.concat([others, attributes], ignore_index=True)}
    assert not entities.query("graph == 'source' and entity == 7")["label"].iloc[0]
    run = write_run(sample, models)
    app = open_page("entity", run=run, side="source", entity="http://one.example/resource/Entity_7")
    assert_no_crash(app)
    shown = words(app).replace("\\", "").replace("\u2068", "")
    assert "City · population 1200 · " in shown
    target = next(iter(RunView(sample).counterparts("source", 7)))
    app = open_page("entity", run=run, side="target", entity=RunView(sample).entity("target", target).uri)
    row = next(cell for cell in tables(app)["match"]["match"] if cell.startswith("Entity_7"))
    assert row.startswith("Entity_7 (City, population 1200")


def test_search_results_come_from_the_server_at_most_fifty(run: str, open_page: OpenPage) -> None:
    app = open_page("entity", run=run)
    app.text_input[0].set_value("germany").run()
    assert_no_crash(app)
    assert "2 results" in words(app)
    app.text_input[0].set_value("t").run()
    assert "First 50 results" in words(app)
    app.text_input[0].set_value("<no such thing>").run()
    assert_no_crash(app)
    assert "No entity matches" in words(app)


def test_a_run_that_breaks_while_the_app_is_open_is_reported(run: str, models: Path, open_page: OpenPage) -> None:
    (models / run / "entities.parquet").write_bytes(b"x" * (models / run / "entities.parquet").stat().st_size)
    app = open_page("entity", run=run)
    assert_no_crash(app)
    assert "checksum differs" in app.error[0].value


@pytest.fixture
def learned(whole_run: MemoryRun, models: Path, put_run: PutRun) -> str:
    """A run with a model, so with attention."""
    return put_run(whole_run, models)


def test_the_table_of_all_neighbours_is_that_of_the_engine(learned: str, models: Path, open_page: OpenPage) -> None:
    adjacency = IncidentTriples(RunView(RunStore(models).find(learned)))
    germany = "http://one.example/resource/Entity_0"
    target = next(iter(adjacency.view.counterparts("source", 0)))
    for options, part in (({}, AttentionPart()), ({"layer": "2", "channel": "relation"}, AttentionPart(2, "relation"))):
        app = open_page("entity", run=learned, side="source", entity=germany, listed="source", **options)
        assert_no_crash(app)
        assert not app.error
        expected = standings(adjacency, "source", 0, target, part)
        shown = next(frame.value for frame in app.dataframe if "with" in frame.value.columns)
        assert shown["attention"].tolist() == [None if one.neighbour.attention is None else round(one.neighbour.attention, 3) for one in expected]
        assert shown["neighbour"].str[:20].tolist() == [one.neighbour.entity.title[:20] for one in expected]
        message = "layer 2, the relation channel" if options else "the mean of 2 layers, the mean of 2 channels"
        assert message in words(app), "the legend says whose attention it is"


def test_hops_and_caps_are_kept_in_the_address(learned: str, models: Path, open_page: OpenPage) -> None:
    adjacency = IncidentTriples(RunView(RunStore(models).find(learned)))
    target = next(iter(adjacency.view.counterparts("source", 20)))
    app = open_page("entity", run=learned, side="source", entity="http://one.example/resource/Entity_20", hops="2", drawn="10")
    assert_no_crash(app)
    expected = facing(adjacency, 20, target, 10, 2)
    assert f"{len(expected.far)} more pair" in words(app)
    assert app.query_params["hops"] == "2"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"layer": "9"}, "there is no layer 9"),
        ({"layer": "-1"}, "there is no layer -1"),
        ({"hops": "3"}, "Expected '1' or '2'"),
        ({"drawn": "5000"}, "Expected '10', '20' or '40'"),
        ({"listed": "all"}, "Expected 'drawn', 'source' or 'target'"),
        ({"expand": "nobody"}, "neither graph has an entity"),
        ({"expand": "left:x" * 50}, "neither graph has an entity"),
    ],
)
def test_figures_that_cannot_be_are_explained(learned: str, open_page: OpenPage, parameters: dict[str, str], message: str) -> None:
    app = open_page("entity", run=learned, side="source", entity=CITY_5, **parameters)
    assert_no_crash(app)
    assert message in app.error[0].value.replace("\\", "")
    assert links(app)


def test_expanded_neighbours_have_figures_of_their_own_and_can_be_closed(learned: str, open_page: OpenPage) -> None:
    wanted = [f"source:http://one.example/resource/Entity_{number}" for number in (1, 6)]
    app = open_page("entity", run=learned, side="source", entity=CITY_5, expand=wanted)
    assert_no_crash(app)
    assert not app.error
    close = [button for button in app.button if button.label == "Close"]
    assert len(close) == 2
    close[0].click().run()
    assert_no_crash(app)
    assert app.query_params["expand"] == wanted[1]


def test_the_other_open_runs_say_what_they_make_of_the_pair(learned: str, models: Path, open_page: OpenPage) -> None:
    other = sample_run(seed=0)
    vectors = np.random.default_rng(9).standard_normal(other.tensors["embeddings"]["source"].shape).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    other.tensors = {**other.tensors, "embeddings": {**other.tensors["embeddings"], "source": vectors}}
    second = write_run(other, models, run_id="semi-s0", variant="semi")
    app = open_page("entity", run=[learned, second], side="source", entity=CITY_5)
    assert_no_crash(app)
    view = RunView(RunStore(models).find(second))
    match = RunView(RunStore(models).find(learned)).matches("source", 5, 1)[0]
    pair = view.pair(5, match.entity)
    (line,) = [link for link in app.get("page_link") if link.proto.label.startswith("in **")]
    assert line.proto.label.startswith("in **\u2068semi\u2069**")
    assert f"rank {pair.rank_from_source:,}, " in line.proto.label
    assert f"CSLS {text.score(pair.csls)}" in line.proto.label
    best = view.matches("source", 5, 1)[0]
    assert best.entity != match.entity
    assert "best match " in line.proto.label
    assert line.proto.query_string.startswith("run=towns%2Fsemi-s0&run=towns%2Fbasic"), "the other run comes first, the first stays open"
    assert "match=" in line.proto.query_string
    alone = open_page("entity", run=learned, side="source", entity=CITY_5)
    assert "other open runs" not in words(alone)


def test_links_within_the_page_keep_all_runs(learned: str, whole_run: MemoryRun, models: Path, put_run: PutRun, open_page: OpenPage) -> None:
    second = put_run(whole_run, models, run_id="semi-s0", variant="semi")
    app = open_page("entity", run=[learned, second], side="source", entity=CITY_5)
    found = links(app)
    assert found
    assert all("run=towns%2Fbasic" in link and "run=towns%2Fsemi-s0" in link for link in found)
    assert any(link.startswith("proxies?") and "source=" in link and "target=" in link for link in found)


def hub(leaves: int = 5000) -> MemoryRun:
    """Two hubs (entity 0) with thousands of leaves, each with its counterpart."""
    size = leaves + 1
    vectors = np.random.default_rng(0).standard_normal((size, 8)).astype(np.float32)
    tables = [
        graph_tables(
            side, [f"http://{side}.example/{i}" for i in range(size)], [f"n{i}" for i in range(size)], [(i, 0, 0) for i in range(1, size)], ["in"]
        )
        for side in ("source", "target")
    ]
    near = assemble(*(graph_tables(side, ["a"], [""], [], []) for side in ("source", "target")), [], (vectors[:1], vectors[:1]))
    entities = np.arange(size)
    best = [
        pd.DataFrame({"graph": side, "entity": entities, "rank": 1, "match": entities, "cosine": 1.0, "csls": 0.0}) for side in ("source", "target")
    ]
    links = pd.DataFrame({"source": entities[:9], "target": entities[:9], "role": "train"})
    joined = {name: pd.concat([tables[0][name], tables[1][name]], ignore_index=True) for name in tables[0]}
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    terms = {
        f"{side}_{pool}": np.full(size, 0.5 if pool == "all" else np.nan, dtype=np.float32)
        for side in ("source", "target")
        for pool in ("all", "test")
    }
    whole = {**near.tables, **joined, "links": links, "matches": pd.concat(best, ignore_index=True)}
    return MemoryRun(near.manifest, near.metrics, whole, {"embeddings": {"source": unit, "target": unit}, "hubness": terms})


@pytest.mark.parametrize("options", [{}, {"hops": "2"}, {"listed": "source"}], ids=str)
def test_a_hub_of_five_thousand_is_quick_and_complete(models: Path, open_page: OpenPage, options: dict[str, str]) -> None:
    run = write_run(hub(), models)
    address = {"run": run, "side": "source", "entity": "http://source.example/0", **options}
    open_page("entity", **address)
    start = time.process_time()
    app = open_page("entity", **address)
    spent = time.process_time() - start
    assert_no_crash(app)
    assert not app.error
    assert "Of 5,000 neighbours of the source and 5,000 of the target, **5,000 pairs**" in words(app)
    assert spent < 2, "seconds of computing, the frame's first page included"
    if options.get("listed"):
        assert 5000 in [len(frame.value) for frame in app.dataframe]
    else:
        assert any("Show all 5,000" in link.proto.label for link in app.get("page_link"))


def test_an_entity_of_one_neighbour(models: Path, open_page: OpenPage) -> None:
    run = write_run(hub(3), models)
    app = open_page("entity", run=run, side="source", entity="http://source.example/2", hops="2")
    assert_no_crash(app)
    assert not app.error
    assert "Of 1 neighbour of the source and 1 of the target, **1 pair** is aligned" in words(app)


def test_an_entity_without_neighbours_says_what_that_means(models: Path, open_page: OpenPage) -> None:
    sample = sample_run()
    sample.tables = {**sample.tables, "triples": sample.tables["triples"].iloc[:0]}
    run = write_run(sample, models)
    app = open_page("entity", run=run, side="source", entity=CITY_5)
    assert_no_crash(app)
    assert "This entity has no triples" in words(app)
    assert "Neither entity has a neighbour" in words(app)
