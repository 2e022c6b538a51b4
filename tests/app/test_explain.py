"""The explain page: parts, evidence, removal, rivals; names and evidence that are not there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import components, text
from engine.cli.main import main
from engine.data.knowledge_graph import SIDES
from engine.explanation import Experiment, Explainer, explain, flipping_set, items_of, pair_values, triples_of
from engine.explanation.decomposition import feature_parts
from engine.explanation.evidence import aligned_with
from engine.explanation.summary import score_groups
from engine.explore.neighbourhood import tied
from engine.runs.verdicts import status_sentence
from engine.runs.view import RowScores, RunView
from tests.app.conftest import OpenPage, assert_no_crash, figures, links, words
from tests.explanation.probabilities import VALUES, fit, with_probability
from tests.explanation.runs import drawn_run, explainer_of, lonely_task
from tests.run_fixture import MemoryRun, sample_run, write_run


def written(run: MemoryRun, models: Path, **names: str) -> str:
    """A drawn run with a manifest that the app can list."""
    missing = {name: value for name, value in sample_run().manifest.items() if name not in {**run.manifest, **names}}
    data = {**sample_run().manifest["data"], **run.manifest["data"]}
    return write_run(run, models, **names, **{**missing, "data": data})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def drawn() -> MemoryRun:
    return drawn_run()


def uri(run: MemoryRun, side: str, index: int) -> str:
    table = run.tables["entities"]
    found: str = table[(table["graph"] == side) & (table["entity"] == index)]["uri"].iloc[0]
    return found


def charts(app: AppTest) -> list[dict[str, Any]]:
    return figures(app)


def states(app: AppTest) -> pd.DataFrame:
    """The pair before and after a removal, by measure."""
    table: pd.DataFrame = next(one.value for one in app.table if "before" in one.value.columns)
    return table.set_index(table.columns[0])


def open_tab(app: AppTest) -> str:
    """The tab that has any content; the others are not computed."""
    (found,) = [tab.label for tab in app.tabs if tab.children]
    return found


@pytest.mark.parametrize("tab", ["overview", "score"])
def test_the_waterfall_ends_at_the_score(tab: str, drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "source", 3), target=uri(drawn, "target", 5), tab=tab)
    assert_no_crash(app)
    found = explain(explainer_of(drawn), 3, 5)
    (trace,) = charts(app)[0]["data"]
    assert trace["base"][-1] == 0
    assert trace["x"][-1] == pytest.approx(found.pair.csls, abs=1e-5)
    assert sum(trace["x"][:-1]) == pytest.approx(found.pair.csls, abs=5e-3)
    steps = [base + value for base, value in zip(trace["base"], trace["x"], strict=True)]
    assert trace["base"][1:-1] == pytest.approx(steps[:-2], abs=1e-6), "each bar begins where the one before it ends"
    assert f"**CSLS {text.score(found.pair.csls)}**" in words(app)
    spoken = app.get("plotly_chart")[0].proto.alt
    assert all(f" {value:+.3f}".replace("-", "−") in spoken for value in trace["x"]), "the same numbers for those who do not see the figure"
    assert len(trace["x"]) == 1 + (len(found.decomposition.parts) if tab == "score" else len(score_groups(found)))


def test_the_search_boxes_show_labels_and_identifiers_only_of_labels_that_several_have(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    entities = drawn.tables["entities"]
    ends = {"source": uri(drawn, "source", 3), "target": uri(drawn, "target", 5)}
    label = {side: entities.loc[(entities["graph"] == side) & (entities["uri"] == one), "label"].iloc[0] for side, one in ends.items()}
    app = open_page("explain", run=written(drawn, models), **ends)
    boxes = {side: next(box for box in app.main.text_input if box.label.endswith(f"Entity of the {side}")) for side in ends}
    assert {side: box.value for side, box in boxes.items()} == {side: label[side] or ends[side] for side in ends}
    assert app.query_params["source"] in (ends["source"], [ends["source"]]), "the address names entities by their identifiers"
    alike = entities.assign(label="Springfield")
    run = written(replace(drawn, tables={**drawn.tables, "entities": alike}), models, run_id="alike")
    app = open_page("explain", run=run, **ends)
    assert [box.value for box in app.main.text_input if "Entity of the" in box.label] == list(ends.values())


def test_a_group_of_the_breakdown_opens_into_its_parts(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "source", 3), target=uri(drawn, "target", 5))
    groups = score_groups(explain(explainer_of(drawn), 3, 5))
    (pills,) = [one for one in app.button_group if one.label == "Open into channels and hops"]
    pills.set_value(["hubness correction"]).run()
    assert_no_crash(app)
    (trace,) = charts(app)[0]["data"]
    assert trace["y"][-3:-1] == ["Hubness of the source", "Hubness of the target"]
    assert len(trace["y"]) == len(groups) + 2


def test_the_verdict_comes_first_and_the_command_line_says_the_same(
    drawn: MemoryRun, models: Path, open_page: OpenPage, capsys: pytest.CaptureFixture[str]
) -> None:
    run = written(drawn, models)
    ends = uri(drawn, "source", 3), uri(drawn, "target", 5)
    app = open_page("explain", run=run, source=ends[0], target=ends[1])
    shown = words(app).replace("\\", "").replace("\u2068", "").replace("\u2069", "").replace("−", "-").replace("**", "")
    assert main(["explain", run, *ends, "--models", str(models), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert summary[0]["label"] == "Verdict"
    assert f"#### {summary[0]['text']}" in shown
    assert all(f"{line['label']}: {line['text']}" in shown for line in summary[1:])


@pytest.mark.parametrize(
    ("parameters", "tab"),
    [
        ({}, "Overview"),
        ({"tab": "evidence"}, "Evidence"),
        ({"tab": "other-runs"}, "Other runs"),
        ({"against": "7"}, "Alternatives"),
        ({"without": "item"}, "What if"),
        ({"without": "item", "tab": "score"}, "Score"),
    ],
)
def test_the_tab_is_in_the_address_and_older_links_open_what_they_showed(
    drawn: MemoryRun, models: Path, open_page: OpenPage, parameters: dict[str, str], tab: str
) -> None:
    item = items_of(Experiment(explainer_of(drawn), 3, 5))[0]
    values = {"item": f"{item.side}:{item.neighbour.uri}", "7": uri(drawn, "target", 7)}
    asked = {name: values.get(value, value) for name, value in parameters.items()}
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "source", 3), target=uri(drawn, "target", 5), **asked)
    assert_no_crash(app)
    assert not app.error
    assert open_tab(app) == tab
    assert {name: app.query_params[name] for name in asked} == asked


@pytest.mark.parametrize("stored", [True, False])
def test_a_probability_is_broken_down_where_the_run_stores_its_parts(drawn: MemoryRun, models: Path, open_page: OpenPage, stored: bool) -> None:
    run = with_probability(drawn, stored)
    names = {"source": uri(drawn, "source", 3), "target": uri(drawn, "target", 5), "tab": "score"}
    app = open_page("explain", run=written(run, models), **names)
    assert_no_crash(app)
    tables = [table.value for table in app.dataframe if "log odds" in table.value.columns]
    assert len(tables) == stored
    if stored:
        expected = {part.feature: part.log_odds for part in feature_parts(fit(), VALUES[None])}
        assert sorted(tables[0]["log odds"]) == pytest.approx(sorted(expected.values()), abs=1e-5)
        assert "aligned neighbours" in set(tables[0]["feature"])
        assert "What the probability of" in words(app)


def evidence_of(app: AppTest) -> pd.DataFrame:
    table: pd.DataFrame = next(one.value for one in app.dataframe if "why aligned" in one.value.columns)
    return table


@pytest.mark.parametrize("shown", ["supporting", "opposing", "aligned"])
def test_the_evidence_is_a_table_with_the_strongest_pair_first(shown: str, drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    ends = {"source": uri(drawn, "source", 3), "target": uri(drawn, "target", 5)}
    app = open_page("explain", run=written(drawn, models), **ends, tab="evidence", evidence=shown)
    assert_no_crash(app)
    neighbours = explain(explainer_of(drawn), 3, 5).neighbours
    listed = {"supporting": neighbours.supporting, "opposing": neighbours.opposing}.get(shown)
    if listed is None:
        both = (*neighbours.supporting, *neighbours.opposing)
        listed = tuple(sorted((pair for pair in both if pair.aligned != "elsewhere"), key=lambda pair: -abs(pair.value)))
    table = evidence_of(app)
    assert table["contribution"].tolist() == pytest.approx([pair.value for pair in listed])
    assert table["● neighbour"].tolist() == [pair.source.title for pair in listed]
    assert table["◆ neighbour"].tolist() == [pair.target.title for pair in listed]
    assert all(relation == "itself" or relation[0] in "→←" for relation in (*table["● relation"], *table["◆ relation"]))
    whole = [neighbours.positive if pair.value >= 0 else neighbours.negative for pair in listed]
    assert table["share"].tolist() == pytest.approx([pair.value / total for pair, total in zip(listed, whole, strict=True)], abs=6e-4)
    assert not charts(app)


def test_attention_weights_and_the_graph_are_shown_on_request(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "source", 3), target=uri(drawn, "target", 5), tab="evidence")
    assert "attention ●" not in evidence_of(app).columns
    next(one for one in app.toggle if one.label == "Attention weights").set_value(True).run()
    assert {"attention ●", "attention ◆"} <= set(evidence_of(app).columns)
    (choice,) = [one for one in app.segmented_control if one.label == "Pairs of neighbours"]
    choice.set_value("graph").run()
    assert_no_crash(app)
    assert app.query_params["evidence"] == "graph"
    assert len(app.get("echarts_chart")) == 1


def test_evidence_is_removed_and_put_back(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    explainer = explainer_of(drawn)
    experiment = Experiment(explainer, 3, 5)
    item = items_of(experiment)[0]
    reference = f"{item.side}:{item.neighbour.uri}"
    ends = {"source": uri(drawn, "source", 3), "target": uri(drawn, "target", 5)}
    app = open_page("explain", run=written(drawn, models), **ends, without=reference)
    assert_no_crash(app)
    after = experiment.without(triples_of([item])).after
    shown = states(app).loc["CSLS"]
    assert shown["before"] == text.score(experiment.before.csls)
    assert shown["after"] == text.score(after.csls)
    assert shown["change"] == f"{after.csls - experiment.before.csls:+.3f}".replace("-", "−")
    next(button for button in app.button if button.label == "Put all back").click().run()
    assert_no_crash(app)
    assert "without" not in app.query_params
    assert open_tab(app) == "What if", "the tab that the removal suggested stays open"
    assert states(app).loc["CSLS"].tolist() == [text.score(experiment.before.csls), "–", "–"]


def test_one_of_several_triples_of_a_neighbour_can_be_removed(models: Path, open_page: OpenPage) -> None:
    run = drawn_run(3)
    explainer = explainer_of(run)
    pairs = ((source, target) for source in range(14) for target in range(17))
    experiment, item = next(
        (experiment, item)
        for source, target in pairs
        for experiment in [Experiment(explainer, source, target)]
        for item in items_of(experiment)
        if len(item.triples) > 1 and len({one.relation for one in item.triples}) == len(item.triples)
    )
    triple = item.triples[0]
    named = explainer.named([triple])[0]
    arrow = "→" if named.tail.index == item.neighbour.index else "←"
    ends = {"source": uri(run, "source", experiment.source), "target": uri(run, "target", experiment.target)}
    reference = f"{item.side}:{item.neighbour.uri} {arrow} {named.relation}"
    app = open_page("explain", run=written(run, models), **ends, without=reference)
    assert_no_crash(app)
    assert not app.error
    assert states(app).loc["CSLS", "after"] == text.score(experiment.without([triple]).after.csls)
    listed = next(frame.value for frame in app.dataframe if "estimated loss" in frame.value.columns)
    assert listed["evidence"].str.endswith("this triple only").sum() >= 2
    assert "Removing 1 triple" in words(app)


def test_the_smallest_set_that_flips_goes_into_the_address(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    explainer, run = explainer_of(drawn), written(drawn, models)
    for source, target in explainer.view.best["source"].items():
        found = flipping_set(Experiment(explainer, source, target))
        if found.flips:
            break
    app = open_page("explain", run=run, source=uri(drawn, "source", source), tab="what-if")
    next(button for button in app.button if button.label == "Find a minimal flipping set").click().run()
    assert_no_crash(app)
    asked = app.query_params["without"]
    assert sorted([asked] if isinstance(asked, str) else asked) == sorted(f"{item.side}:{item.neighbour.uri}" for item in found.items)


def test_a_rival_that_is_named(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    ends = {"source": uri(drawn, "source", 3), "target": uri(drawn, "target", 5)}
    app = open_page("explain", run=written(drawn, models), **ends, against=uri(drawn, "target", 7))
    assert_no_crash(app)
    explainer = explainer_of(drawn)
    difference = explainer.view.pair(3, 5).csls - explainer.view.pair(3, 7).csls
    (trace,) = charts(app)[0]["data"]
    assert trace["x"][-1] == pytest.approx(difference, abs=1e-5)
    assert any(link.startswith("explain?") and "against" not in link for link in links(app))


def test_the_rivals_of_both_sides_are_listed(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    ends = {"source": uri(drawn, "source", 3), "target": uri(drawn, "target", 5)}
    app = open_page("explain", run=written(drawn, models), **ends, tab="alternatives")
    assert_no_crash(app)
    view = explainer_of(drawn).view
    own = view.pair(3, 5).csls
    tables = [one.value for one in app.dataframe if "margin" in one.value.columns]
    for table, side, entity, across in zip(tables, SIDES, (3, 5), (5, 3), strict=True):
        rivals = [one for one in view.matches(side, entity, 6) if one.entity != across][:5]
        assert table["candidate"].tolist() == [one.label or one.uri for one in rivals]
        assert table["CSLS"].tolist() == pytest.approx([one.csls for one in rivals])
        assert table["margin"].tolist() == pytest.approx([own - one.csls for one in rivals])
    summary = next(one.value for one in app.table if "rival" in one.value.columns).set_index("measure")
    assert summary.loc["CSLS", "this pair"] == text.score(own)
    assert summary.loc["CSLS", "rival"] == text.score(rivals_best(view, 3, 5))


def rivals_best(view: RunView, source: int, target: int) -> float:
    return next(one.csls for one in view.matches("source", source, 2) if one.entity != target)


def test_how_far_it_can_be_trusted_is_computed_when_asked(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "source", 3), tab="what-if")
    assert "largest estimated loss" not in words(app)
    next(one for one in app.toggle if one.label.startswith("Compare with removing")).set_value(True).run()
    assert_no_crash(app)
    assert "**Necessity.** Removing" in words(app)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"source": "nobody at all"}, "nobody at all"),
        ({"target": "<script>alert(1)</script>"}, "script"),
        ({"without": "source:http://no.example/where"}, "neither a neighbour of this pair nor a value"),
        ({"against": "nobody at all"}, "nobody at all"),
        ({"pool": "some"}, "pool=some"),
        ({"tab": "<b>"}, "tab=<b>"),
        ({"evidence": "none"}, "Expected 'supporting', 'opposing', 'aligned' or 'graph'"),
    ],
)
def test_what_is_not_there_is_reported(drawn: MemoryRun, models: Path, parameters: dict[str, str], message: str, open_page: OpenPage) -> None:
    given = {} if {"source", "target"} & set(parameters) else {"source": uri(drawn, "source", 3)}
    app = open_page("explain", run=written(drawn, models), **given, **parameters)
    assert_no_crash(app)
    assert message in "".join(error.value for error in app.error).replace("\\", "")


@pytest.mark.parametrize("side", ["source", "target"])
def test_two_entities_of_one_graph_are_reported_with_a_way_on(side: str, drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    first, second = uri(drawn, side, 3), uri(drawn, side, 5)
    app = open_page("explain", run=written(drawn, models), source=first, target=second)
    assert_no_crash(app)
    (error,) = app.error
    assert f"is an entity of the {side} graph, as is the other one; a pair needs one entity of each graph" in error.value.replace("\\", "")
    offered = [parse_qs(link.partition("?")[2]) for link in links(app) if link.startswith("explain?")]
    assert [pair[side] for pair in offered[:2]] == [[first], [second]], "each with its best match"
    assert not charts(app)


def test_a_pair_the_wrong_way_round_is_understood(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "target", 5), target=uri(drawn, "source", 3))
    assert_no_crash(app)
    assert not app.error
    assert f"**CSLS {text.score(explain(explainer_of(drawn), 3, 5).pair.csls)}**" in words(app)


def test_without_a_pair_there_are_some_to_begin_with(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models))
    assert_no_crash(app)
    assert "Which pair?" in words(app)
    assert sum(link.startswith("explain?") for link in links(app)) == 6


def test_entities_without_triples(models: Path, open_page: OpenPage) -> None:
    run = drawn_run(task=lonely_task())
    app = open_page("explain", run=written(run, models), source=uri(run, "source", 0), target=uri(run, "target", 0), tab="what-if")
    assert_no_crash(app)
    assert "no triples" in words(app)
    assert "Neither entity has a triple that could be removed" in words(app)


@pytest.mark.parametrize("tab", ["overview", "score", "evidence", "what-if", "alternatives", "other-runs"])
def test_hostile_labels_are_text_in_every_tab(tab: str, models: Path, open_page: OpenPage) -> None:
    run = drawn_run(4, variant="literal")
    entities = run.tables["entities"]
    labels = "<script>alert(1)</script> **b** :red[x] [a](javascript:b) $x$ " + entities["entity"].astype(str)
    run = replace(run, tables={**run.tables, "entities": entities.assign(label=labels)})
    app = open_page("explain", run=written(run, models), source=uri(run, "source", 3), target=uri(run, "target", 5), tab=tab)
    assert_no_crash(app)
    assert not app.error
    cells = [str(cell) for table in app.table for cell in table.value.to_numpy().ravel()]  # those that are read as Markdown
    shown = "\n".join([words(app), *cells, *(link.proto.label for link in app.get("page_link")), *(one.label for one in app.toggle)])
    for raw in ("<script>", "**b**", ":red[x]", "](javascript:", " $x$"):
        assert raw not in shown, raw
    assert not any(raw in json.dumps(figures(app)) for raw in ("<script>", "$x$"))


def test_of_an_entity_without_a_label_its_neighbour_is_named(models: Path, open_page: OpenPage) -> None:
    run = drawn_run(3)
    entities = run.tables["entities"]
    entities = entities.assign(label=entities["label"].where((entities["graph"] != "source") | (entities["entity"] != 3), ""))
    run = replace(run, tables={**run.tables, "entities": entities})
    app = open_page("explain", run=written(run, models), source=uri(run, "source", 3), target=uri(run, "target", 5))
    assert_no_crash(app)
    (note,) = [one.value for one in app.caption if "has no label. Known facts: " in one.value]
    assert "→" in note or "←" in note


@pytest.mark.parametrize("variant", ["semi", "literal"])
def test_other_variants_and_other_runs(variant: str, models: Path, open_page: OpenPage) -> None:
    run = drawn_run(variant=variant)
    first = written(run, models)
    second = written(drawn_run(variant=variant), models, run_id=f"{variant}-s1-0123abcd")
    app = open_page("explain", run=first, source=uri(run, "source", 1), target=uri(run, "target", 2), tab="other-runs")
    assert_no_crash(app)
    assert "Used as a training pair in round 1" in words(app)
    assert any(link.startswith("explain?") and second.rpartition("/")[2] in link for link in links(app))
    (table,) = [one.value for one in app.dataframe if "random seed" in one.value.columns]
    assert table["run"].tolist() == [first, second], "a row for each run, the open one first"
    view = explainer_of(run).view
    best = view.matches("source", 1, 1)[0]
    assert table["best match"].tolist() == [best.label or best.uri] * 2, "of the source in each run, whatever the pair"
    assert table["verdict"].tolist() == [components.verdict_cell(best.verdict)] * 2
    score = f"**CSLS {text.score(table['CSLS'].iloc[0])}**"
    assert score in words(app)


def test_a_run_without_weights_says_so(models: Path, run: str, open_page: OpenPage) -> None:
    app = open_page("explain", run=run, source="Österreich")
    assert_no_crash(app)
    assert "no stored weights" in "".join(error.value for error in app.error)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Every pass over a graph's embeddings that scores a row, as (side, entity, pool)."""
    passes: list[tuple[object, ...]] = []
    scored = RunView._scored

    def count(view: RunView, *row: Any) -> RowScores:
        passes.append(row)
        return scored(view, *row)

    monkeypatch.setattr(RunView, "_scored", count)
    return passes


@pytest.mark.parametrize("pool", ["all", "test"])
@pytest.mark.parametrize("variant", ["basic", "literal"])
def test_the_first_view_scores_at_most_three_rows(
    variant: str, pool: str, models: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = drawn_run(variant=variant)
    view = explainer_of(run).view
    source, target = (next(i for i in range(9) if view.in_pool(side, i, "test")) for side in SIDES)
    name = written(run, models)
    passes = counted(monkeypatch)
    app = open_page("explain", run=name, source=uri(run, "source", source), target=uri(run, "target", target), pool=pool)
    assert_no_crash(app)
    assert charts(app)
    assert 2 <= len(passes) <= 3
    assert len(set(passes)) == len(passes), "none is scored twice"
    assert {row[2] for row in passes} == {pool}


def test_the_entity_page_scores_the_rows_of_the_two_entities_once(
    drawn: MemoryRun, models: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = written(drawn, models)
    passes = counted(monkeypatch)
    app = open_page("entity", run=name, side="source", entity=uri(drawn, "source", 3))
    assert_no_crash(app)
    assert sorted({row[0] for row in passes}) == ["source", "target"]
    assert len(passes) == 2


def test_from_the_target_its_rival_is_shown_and_the_other_is_one_click_away(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    ends = {"source": uri(drawn, "source", 3), "target": uri(drawn, "target", 5)}
    before = Experiment(explainer_of(drawn), 3, 5).before
    rivals = {side: before.rival(side) for side in SIDES}
    app = open_page("explain", run=written(drawn, models), **ends, side="target", tab="alternatives")
    assert_no_crash(app)
    (choice,) = [one for one in app.segmented_control if one.label == "Runner-up"]
    assert choice.value == "target"
    for option, side in zip(choice.options, SIDES, strict=True):
        assert rivals[side].entity.title in option.replace("\\", "")  # type: ignore[union-attr]
    (trace,) = charts(app)[0]["data"]
    assert trace["x"][-1] == pytest.approx(before.margin("target"), abs=1e-5)
    choice.set_value("source").run()
    assert_no_crash(app)
    assert "side" not in app.query_params
    (trace,) = charts(app)[0]["data"]
    assert trace["x"][-1] == pytest.approx(before.margin("source"), abs=1e-5)


def test_the_side_travels_from_an_entity_to_its_explanation(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("entity", run=written(drawn, models), side="target", entity=uri(drawn, "target", 5))
    (why,) = [link for link in links(app) if link.startswith("explain?")]
    assert parse_qs(why.partition("?")[2])["side"] == ["target"]


def test_the_pool_can_be_chosen_and_all_numbers_are_of_it(models: Path, open_page: OpenPage) -> None:
    run = drawn_run(3)
    other = drawn_run(5)
    view, elsewhere = explainer_of(run).view, explainer_of(other).view
    source, target = (next(i for i in range(9) if view.in_pool(side, i, "test") and elsewhere.in_pool(side, i, "test")) for side in SIDES)
    first = written(run, models)
    written(other, models, run_id="basic-s1-0123abcd")
    app = open_page("explain", run=first, source=uri(run, "source", source), target=uri(run, "target", target), tab="other-runs")
    (choice,) = [one for one in app.segmented_control if one.label == "Candidates"]
    choice.set_value("test").run()
    assert_no_crash(app)
    assert app.query_params["pool"] in ("test", ["test"])
    assert f"**CSLS {text.score(view.pair(source, target, 'test').csls)}**" in words(app)
    (table,) = [one.value for one in app.dataframe if "random seed" in one.value.columns]
    expected = [one.pair(source, target, "test").csls for one in (view, elsewhere)]
    assert table["CSLS"].tolist() == pytest.approx(expected)


def test_a_pair_outside_of_the_test_entities_is_ranked_among_all(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    view = explainer_of(drawn).view
    outside = next(i for i in range(len(view.graphs["source"])) if not view.in_pool("source", i, "test"))
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "source", outside), target=uri(drawn, "target", 5), pool="test")
    assert_no_crash(app)
    assert not app.error
    assert "can only be ranked among all entities" in words(app)
    assert not [one for one in app.segmented_control if one.label == "Candidates"]


def test_the_list_of_evidence_begins_with_the_strongest_pairs(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "source", 3), target=uri(drawn, "target", 5), tab="what-if")
    found = explain(explainer_of(drawn), 3, 5).neighbours.supporting
    removable = {(item.side, item.neighbour.index): item.neighbour.title for item in items_of(Experiment(explainer_of(drawn), 3, 5))}
    drawn_first = [removable[one.side, one.index] for pair in found for one in (pair.source, pair.target) if (one.side, one.index) in removable]
    listed = next(frame.value for frame in app.dataframe if "estimated loss" in frame.value.columns)["evidence"].tolist()
    assert listed[0].endswith(drawn_first[0])


def test_a_pair_that_is_held_out_and_was_added_is_described_alike_everywhere(models: Path, open_page: OpenPage) -> None:
    run = drawn_run(variant="semi")
    source, target = 1, 2  # selected by the drawn run's round
    known = run.tables["links"]
    known = known[(known["source"] != source) & (known["target"] != target)]
    held_out = pd.DataFrame([{"source": source, "target": target, "role": "test"}])
    run = replace(run, tables={**run.tables, "links": pd.concat([known, held_out], ignore_index=True)})
    name = written(run, models)
    message = status_sentence("known test link", 1)
    app = open_page("explain", run=name, source=uri(run, "source", source), target=uri(run, "target", target))
    assert_no_crash(app)
    assert message in words(app).replace("\\", "")
    around = facing_evidence(explainer_of(run), source, target)
    assert around == ("added in a round", "added")


def facing_evidence(explainer: Explainer, source: int, target: int) -> tuple[str, str]:
    """What the Entity page's figure and the Explain page's figure say of two neighbours."""
    return tied(explainer.view, "source", source, target), aligned_with(explainer.view, source, target)


def test_shared_values_are_listed_and_can_be_removed(models: Path, open_page: OpenPage) -> None:
    run = drawn_run(4, variant="literal")
    explainer = explainer_of(run)
    source, target = max(((s, t) for s in range(14) for t in range(17)), key=lambda pair: len(pair_values(explainer, *pair)))
    shared = pair_values(explainer, source, target)
    names = {"source": uri(run, "source", source), "target": uri(run, "target", target)}
    first = shared[0]
    run_id = written(run, models)
    app = open_page("explain", run=run_id, **names, without=f"value:{first.source_attribute}={first.source_text}")
    assert_no_crash(app)
    after = Experiment(explainer, source, target).without(first.facts).after
    assert float(states(app).loc["CSLS", "after"].replace("−", "-")) == pytest.approx(after.csls, abs=1e-3)
    assert "Removing 1 shared value" in words(app)

    app = open_page("explain", run=run_id, **names, tab="score")
    listed = next(frame.value for frame in app.dataframe if "source value" in frame.value.columns)
    assert listed["value"].tolist() == pytest.approx([one.value for one in shared])
