"""The compare page: figures and flips as the engine has them, words that claim no more, the address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import text
from app.rate_figures import lead_words, net_words
from app.state import CompareTab
from engine.explore.comparison import Comparison, Difference, compare
from engine.runs import RunStore
from engine.runs.entities import short_id
from engine.runs.view import RunView
from tests.app.conftest import OpenPage, PutRun, assert_no_crash, figures, links, words
from tests.app.conftest import tables as all_tables
from tests.run_fixture import MemoryRun, analysed, jolted, sample_run, write_run

TABS = get_args(CompareTab)


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
    for table in all_tables(app):
        found.setdefault(str(table.columns[0]), table)
    return found


def costs(app: AppTest) -> pd.DataFrame:
    return tables(app)["cost"].set_index("cost")


def measures(app: AppTest) -> pd.DataFrame:
    """The figures of the runs: a row per measure, a column per run."""
    return tables(app)["measure"].set_index("measure")


def control(app: AppTest, label: str) -> Any:
    return next(group for group in app.button_group if group.label == label)


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def message(app: AppTest) -> str:
    return words(app).replace("\\", "").replace("\u2068", "").replace("\u2069", "")


@pytest.mark.parametrize("decoder", ["csls", "sinkhorn"])
def test_flips_metrics_and_lists_are_the_engines(runs: list[str], models: Path, open_page: OpenPage, decoder: str) -> None:
    app = open_page("compare", run=runs[:2], decoder=decoder)
    assert_no_crash(app)
    found = compared(models, runs[0], runs[1], decoder)
    test, lead = found.mcnemar(), found.difference("hits@1")
    assert metrics(app)["Gained"] == str(test.gained)
    assert metrics(app)["Lost"] == str(test.lost)
    assert test.gained > 0
    shown = measures(app)
    assert lead.interval is not None
    low, high = (text.signed(end) for end in lead.interval)
    assert list(shown.columns) == ["semi (main run)", "basic (reference)"]
    assert shown.loc["Δ Hits@1 vs reference"].tolist() == [f"{text.signed(lead.value)} ({low} to {high})", "—"]
    stored = RunStore(models).find(runs[1]).json("decoders")[decoder]["target_to_source"]
    if decoder != "csls":  # the fixture's metrics are made up
        assert shown.loc["Hits@10"].iloc[1] == f"{stored['hits@10']:.3f}"
    app = open_page("compare", run=runs[:2], decoder=decoder, flip="lost")
    assert_no_crash(app)
    assert control(app, "Show").options == [f"gained · {test.gained}", f"lost · {test.lost}"]
    uris = RunStore(models).find(runs[0]).table("entities").query("graph == 'target'").set_index("entity")["uri"]
    lost = {short_id(uri) for uri in uris.loc[found.queries[found.lost]]}
    assert (set(tables(app)["entity"]["id"]) if lost else set()) == lost
    assert "Correct in basic, incorrect in semi" in message(app)
    assert f"changes?run={runs[0]}&run={runs[1]}&old={runs[1]}".replace("/", "%2F") in links(app), "all matches, against the reference run"


def test_only_the_open_tab_is_there(runs: list[str], open_page: OpenPage) -> None:
    """And an address without a tab opens the one that it asks something of."""
    first = {tab: list(tables(open_page("compare", run=runs[:2], tab=tab))) for tab in TABS}
    assert first == {
        "summary": ["measure"],
        "changed": ["entity"],
        "degree": [],  # a chart; its table is drawn when it is opened
        "relation": ["relation"],
        "settings": ["setting", "cost"],
    }
    for asked, summary in (({}, True), ({"bucket": "2"}, False), ({"search": "city"}, False), ({"bucket": "2", "tab": "summary"}, True)):
        app = open_page("compare", run=runs[:2], **asked)
        assert_no_crash(app)
        assert ("measure" in tables(app)) == summary
        assert ("Correct in semi, incorrect in basic" in message(app)) != summary
    app = open_page("compare", run=runs[:2], tab="all")
    assert "Expected 'summary', 'changed'" in app.error[0].value.replace("\\", "")


def test_figures_are_one_bar_chart_of_gains_and_losses_and_the_chart_of_the_page_degree(runs: list[str], models: Path, open_page: OpenPage) -> None:
    app = open_page("compare", run=runs[:2], tab="degree")
    assert_no_crash(app)
    flips, rates = figures(app)
    assert [trace["name"] for trace in flips["data"]] == ["gained", "lost"]
    found = compared(models, runs[0], runs[1])
    table = found.by_degree(RunView(RunStore(models).find(runs[0])).graphs["target"].degrees).query("queries > 0")
    assert [one.lstrip("+") or "0" for one in flips["data"][0]["text"]] == [str(count) for count in table["gained"]]
    assert flips["layout"]["yaxis"]["title"]["text"] == "share of the test entities"
    of_degree = figures(open_page("degree", run=runs[:2]))[0]
    assert rates == of_degree
    assert [trace["name"] for trace in rates["data"][:2]] == ["semi", "basic"], "variants and not run ids"
    assert len({trace["line"]["dash"] for trace in rates["data"][:2]}) == 2, "can be distinguished in grey"
    relation = figures(open_page("compare", run=runs[:2], tab="relation"))
    assert len(relation) == 1


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


def test_any_other_run_can_be_the_reference_run(runs: list[str], models: Path, open_page: OpenPage) -> None:
    app = open_page("compare", run=runs, against=runs[2])
    assert_no_crash(app)
    assert metrics(app)["Lost"] == str(compared(models, runs[0], runs[2]).mcnemar().lost)
    assert "semi against literal" in message(app)
    shown, leads = measures(app), compared(models, runs[1], runs[2]).difference("mrr")
    assert list(shown.columns) == ["semi (main run)", "basic", "literal (reference)"]
    assert shown.loc["Δ MRR vs reference"].iloc[1].partition(" ")[0] == text.signed(leads.value), "of every run, not of the main one alone"
    assert shown.loc["run"].tolist() == ["semi-s0", "basic-s0", "literal-s0"]
    app.button[0].click().run()
    assert_no_crash(app)
    assert app.query_params == {"run": [runs[2], runs[0], runs[1]]}
    assert "literal against semi" in message(app)
    app = open_page("compare", run=runs, against="towns/gone")
    assert_no_crash(app)
    assert "towns/gone" in message(app)
    assert "semi against basic" in message(app)


def test_flips_are_narrowed_by_degree_relation_and_search(runs: list[str], models: Path, open_page: OpenPage) -> None:
    whole = tables(open_page("compare", run=runs[:2], side="source", tab="changed"))["entity"]
    relations = tables(open_page("compare", run=runs[:2], side="source", tab="relation"))["relation"]
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
    assert [button.label for button in bucket.button] == ["Swap", "2 triples"]
    bucket.button[1].click().run()
    assert bucket.query_params == {"run": runs[:2], "side": "source", "search": "entity", "tab": "changed"}
    bucket.text_input[0].set_value("").run()
    assert_no_crash(bucket)
    assert "Correct in semi, incorrect in basic" in message(bucket), "the list stays open"


def test_another_graph_forgets_the_relation_of_the_first(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("compare", run=runs[:2], side="source", relation="near")
    control(app, "Test entities of").set_value("target").run()
    assert_no_crash(app)
    assert not app.error
    assert app.query_params == {"run": runs[:2], "tab": "changed"}


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
    app = open_page("compare", run=runs[:2], tab="settings")
    assert tables(app)["setting"].to_numpy().tolist() == [["variant", "semi", "basic"]]
    assert costs(app).loc["whole run"].tolist() == ["1 min 2 s"] * 2
    app.toggle[0].set_value(False).run()
    assert_no_crash(app)
    assert app.query_params["differences"] == "no"
    every = tables(app)["setting"].set_index("setting")
    assert every.loc["seed"].nunique() == 1
    assert every.loc["variant"].tolist() == ["semi", "basic"]


def test_the_training_of_a_structure_differs_from_the_runs_own(better: MemoryRun, models: Path, put_run: PutRun, open_page: OpenPage) -> None:
    """Otherwise a part would take longer than the whole."""
    semi = put_run(better, models, run_id="semi-s0", variant="semi", seconds=75.0, training={"seconds": 70.0})
    training = {"seconds": 70.0, "structure_run": semi}
    literal = put_run(better, models, run_id="literal-s0", variant="literal", seconds=4.0, training=training)
    shown = costs(open_page("compare", run=[literal, semi], tab="settings"))
    assert shown.loc["whole run"].tolist() == ["4 s", "1 min 15 s"]
    assert shown.loc["training"].tolist() == ["1 min 10 s (structure run)", "1 min 10 s"]


def test_runs_without_test_links_say_so(models: Path, open_page: OpenPage) -> None:
    sample = sample_run()
    known = sample.tables["links"]
    bare = analysed(replace(sample, tables={**sample.tables, "links": known[known["role"] != "test"]}, metrics=None))
    names = [write_run(bare, models, run_id="a"), write_run(bare, models, run_id="b")]
    for tab in TABS[:-1]:
        app = open_page("compare", run=names, tab=tab)
        assert_no_crash(app)
        assert "There are no test links, so accuracy is not measured." in message(app)
        assert not {"Test entities of", "Decoder"} & {group.label for group in app.button_group}
        assert any("kind=sample" in link for link in links(app))
        assert any("changes" in link and "old=" in link for link in links(app)), "what differs can be listed without knowing which run is better"
        assert not app.error, "nothing went wrong"
    assert measures(open_page("compare", run=names)).index.tolist() == ["run", "variant"], "no row without a value"
    app = open_page("compare", run=names, tab="settings")
    assert_no_crash(app)
    assert "settings that differ" in message(app).lower()
    names.append(write_run(analysed(sample), models, run_id="c"))
    app = open_page("compare", run=[names[0], names[2]])
    assert_no_crash(app)
    assert not app.error
    shown = measures(app)
    assert shown.loc["95% interval"].iloc[0] == "no test links"
    assert shown.loc["Hits@1"].iloc[0] == "—"
    assert shown.loc["Hits@1"].iloc[1] != "—"
    assert "Δ Hits@1 vs reference" not in shown.index, "neither run has one"
    assert "a has no test links, so it cannot be compared by accuracy" in message(app)


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
    app = open_page("compare", run=[first, second], tab="settings")
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
