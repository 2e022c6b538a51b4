"""The compare page: figures and flips as the engine has them, words that claim no more, the address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import text
from app.rate_figures import lead_words, net_words
from engine.explore.comparison import Comparison, Difference, compare
from engine.runs import RunStore
from engine.runs.entities import short_id
from engine.runs.view import RunView
from tests.app.conftest import OpenPage, PutRun, assert_no_crash, links, words
from tests.run_fixture import MemoryRun, analysed, jolted, sample_run, write_run


@pytest.fixture(scope="module")
def better() -> MemoryRun:
    return analysed(jolted(sample_run(), 0.15, seed=3))


@pytest.fixture(scope="module")
def worse() -> MemoryRun:
    return analysed(jolted(sample_run(), 0.3, seed=4))


@pytest.fixture
def runs(better: MemoryRun, worse: MemoryRun, whole_run: MemoryRun, models: Path, put_run: PutRun) -> list[str]:
    made = (("semi", better), ("basic", worse), ("literal", whole_run))
    return [put_run(run, models, run_id=f"{variant}-s0", variant=variant) for variant, run in made]


def compared(models: Path, main: str, other: str, decoder: str = "csls", side: str = "target") -> Comparison:
    store = RunStore(models)
    return compare(store.find(main), store.find(other), side, decoder)  # type: ignore[arg-type]


def tables(app: AppTest) -> dict[str, pd.DataFrame]:
    """The page's tables by their first column; the first of each."""
    found: dict[str, pd.DataFrame] = {}
    for element in app.dataframe:
        found.setdefault(str(element.value.columns[0]), element.value)
    return found


def control(app: AppTest, label: str) -> Any:
    return next(group for group in app.button_group if group.label == label)


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def message(app: AppTest) -> str:
    return words(app).replace("\\", "").replace("\u2068", "").replace("\u2069", "")


@pytest.mark.parametrize("decoder", ["csls", "sinkhorn"])
def test_flips_metrics_and_lists_are_the_engines(runs: list[str], models: Path, open_page: OpenPage, decoder: str) -> None:
    app = open_page("compare", run=runs[:2], decoder=decoder, flip="lost")
    assert_no_crash(app)
    found = compared(models, runs[0], runs[1], decoder)
    test, lead = found.mcnemar(), found.difference("hits@1")
    assert metrics(app)["Gained"] == str(test.gained)
    assert metrics(app)["Lost"] == str(test.lost)
    assert test.gained > 0
    shown = tables(app)
    assert lead.interval is not None
    low, high = (text.signed(-end) for end in reversed(lead.interval))
    expected = f"{text.signed(-lead.value)} ({low} to {high})"
    assert shown["run"]["Δ Hits@1 vs main run"].tolist() == ["—", expected]
    stored = RunStore(models).find(runs[1]).json("decoders")[decoder]["target_to_source"]
    if decoder != "csls":  # the fixture's metrics are made up
        assert shown["run"]["Hits@10"].iloc[1] == stored["hits@10"]
    assert control(app, "Show").options == [f"gained · {test.gained}", f"lost · {test.lost}"]
    uris = RunStore(models).find(runs[0]).table("entities").query("graph == 'target'").set_index("entity")["uri"]
    lost = {short_id(uri) for uri in uris.loc[found.queries[found.lost]]}
    assert (set(shown["entity"]["id"]) if lost else set()) == lost


def test_the_test_is_put_into_words_that_fit(runs: list[str], models: Path, open_page: OpenPage) -> None:
    """A better run, one that is hardly another, and the same twice."""
    again = write_run(analysed(jolted(sample_run(), 0.15, seed=3)), models, run_id="again")
    for pair in ((runs[0], runs[1]), (runs[2], runs[0]), (runs[0], again)):
        app = open_page("compare", run=list(pair))
        assert_no_crash(app)
        p_value = compared(models, *pair).mcnemar().p_value
        if p_value is None:
            assert metrics(app)["McNemar"] == "no changes"
            assert "does not prove that they are equally good" in message(app)
        elif p_value < 0.05:
            assert "statistically significant" in message(app)
            assert "covers these two runs only" in message(app)
        else:
            assert "not statistically significant" in message(app)
    assert compared(models, runs[0], runs[1]).mcnemar().p_value < 0.05  # type: ignore[operator]
    assert compared(models, runs[0], again).mcnemar().p_value is None


def test_one_of_several_runs_is_held_against_the_first(runs: list[str], models: Path, open_page: OpenPage) -> None:
    app = open_page("compare", run=runs, against=runs[2])
    assert_no_crash(app)
    assert metrics(app)["Lost"] == str(compared(models, runs[0], runs[2]).mcnemar().lost)
    assert "semi-s0 against literal-s0" in message(app)
    app = open_page("compare", run=runs, against="towns/gone")
    assert_no_crash(app)
    assert "towns/gone" in message(app)
    assert "semi-s0 against basic-s0" in message(app)


def test_flips_are_narrowed_by_degree_relation_and_search(runs: list[str], models: Path, open_page: OpenPage) -> None:
    app = open_page("compare", run=runs[:2], side="source")
    whole, relations = tables(app)["entity"], tables(app)["relation"]
    found = compared(models, runs[0], runs[1], side="source")
    assert len(whole) == found.gained.sum()
    view, listed = RunView(RunStore(models).find(runs[0])), whole
    for uri, right in zip(listed["id"], listed["counterpart"], strict=True):
        entity = view.resolve(uri, "source")
        (true,) = [one for one, known in view.counterparts("source", entity.index).items() if known == "known test link"]
        assert right == text.cell(view.graphs["target"].title(true)), "the right one, beside the wrong answer"
    name = relations["relation"].iloc[0]
    narrowed = open_page("compare", run=runs[:2], side="source", relation=name)
    assert_no_crash(narrowed)
    assert len(tables(narrowed)["entity"]) == relations["gained"].iloc[0]
    bucket = open_page("compare", run=runs[:2], side="source", bucket="2", search="entity")
    assert_no_crash(bucket)
    assert set(tables(bucket)["entity"]["triples"]) == {2}
    assert [button.label for button in bucket.button] == ["2 triples"]
    bucket.button[0].click().run()
    assert bucket.query_params == {"run": runs[:2], "side": "source", "search": "entity"}


def test_another_graph_forgets_the_relation_of_the_first(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("compare", run=runs[:2], side="source", relation="near")
    control(app, "Test entities of").set_value("target").run()
    assert_no_crash(app)
    assert not app.error
    assert app.query_params == {"run": runs[:2]}


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"decoder": "best"}, "These runs have csls"),
        ({"decoder": "<b>x</b>"}, "These runs have csls"),
        ({"bucket": "1-2"}, "Choose one of: 0, 1, 2"),
        ({"relation": "](javascript:alert(1))"}, "has no relation"),
        ({"flip": "both"}, "Expected 'gained' or 'lost'"),
    ],
)
def test_senseless_addresses(runs: list[str], open_page: OpenPage, parameters: dict[str, str], sentence: str) -> None:
    app = open_page("compare", run=runs, **parameters)
    assert_no_crash(app)
    assert sentence in app.error[0].value.replace("\\", "")


def test_settings_that_differ_and_costs(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("compare", run=runs[:2])
    assert tables(app)["setting"].to_numpy().tolist() == [["variant", "semi", "basic"]]
    costs = app.dataframe[-1].value
    assert costs["whole run"].tolist() == ["1 min 2 s"] * 2


def test_the_training_of_a_structure_differs_from_the_runs_own(better: MemoryRun, models: Path, put_run: PutRun, open_page: OpenPage) -> None:
    """Otherwise a part would take longer than the whole."""
    semi = put_run(better, models, run_id="semi-s0", variant="semi", seconds=75.0, training={"seconds": 70.0})
    training = {"seconds": 70.0, "structure_run": semi}
    literal = put_run(better, models, run_id="literal-s0", variant="literal", seconds=4.0, training=training)
    costs = open_page("compare", run=[literal, semi]).dataframe[-1].value
    assert costs["whole run"].tolist() == ["4 s", "1 min 15 s"]
    assert costs["training"].tolist() == ["1 min 10 s (structure run)", "1 min 10 s"]


def test_runs_without_test_links_say_so(models: Path, open_page: OpenPage) -> None:
    sample = sample_run()
    known = sample.tables["links"]
    bare = analysed(replace(sample, tables={**sample.tables, "links": known[known["role"] != "test"]}, metrics=None))
    app = open_page("compare", run=[write_run(bare, models, run_id="a"), write_run(bare, models, run_id="b")])
    assert_no_crash(app)
    assert "has no test links" in message(app)
    assert tables(app)["run"]["95% interval"].tolist() == ["no test links"] * 2
    assert any("kind=sample" in link for link in links(app))
    assert "settings that differ" in message(app).lower()


def test_other_splits_are_compared_on_what_both_tested(
    better: MemoryRun, worse: MemoryRun, models: Path, put_run: PutRun, open_page: OpenPage
) -> None:
    links = worse.tables["links"].copy()
    links.loc[16:20, "role"] = "train"
    split = {**worse.manifest["data"], "split": "random, seed 1"}
    first = put_run(better, models, run_id="a")
    tables_left = {name: table for name, table in worse.tables.items() if name != "query_ranks"}
    second = write_run(replace(worse, tables={**tables_left, "links": links}), models, run_id="b", data=split)
    app = open_page("compare", run=[first, second])
    assert_no_crash(app)
    assert "Of 25 test entities in both runs" in message(app)
    assert "split the links differently" in message(app)
    assert tables(app)["setting"].to_numpy().tolist() == [["split", "given: 721_5fold/1", "random, seed 1"]]


@pytest.mark.parametrize(
    ("gained", "lost", "message"),
    [
        ([5, 2], [1, 4], "The largest net gain is at degree 1: 5 gained and 1 lost of 9 test entities."),
        ([1, 40], [7, 200], "No degree range has a net gain. The largest net loss is at degree 2: 40 gained and 200 lost of 300 test entities."),
        ([3, 2], [3, 2], "Gains and losses are equal in each degree range."),
        ([0, 0], [0, 0], "No prediction changed."),
    ],
)
def test_where_most_is_gained_on_balance(gained: list[int], lost: list[int], message: str) -> None:
    flips = pd.DataFrame({"bucket": ["1", "2"], "queries": [9, 300], "gained": gained, "lost": lost})
    assert net_words(flips) == message


@pytest.mark.parametrize(
    ("difference", "message"),
    [
        (Difference(0.8, 0.6, (0.1, 0.3)), "a is **0.200** ahead in Hits@1 (95% interval of the difference: +0.100 to +0.300)"),
        (Difference(0.6, 0.805, None), "a is **0.205** behind in Hits@1"),
        (Difference(0.6, 0.6, None), "Hits@1 is equal"),
    ],
)
def test_a_lead_is_never_negative(difference: Difference, message: str) -> None:
    assert lead_words(difference, "a") == message
