"""The page of the data set: counts, findings, relations, samples, odd data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from engine.evaluation import paper
from engine.explore.data_profile import dangling_entities, inspect_run
from engine.runs.view import RunView
from tests.app.conftest import OpenPage, assert_no_crash, links, tables, words
from tests.run_fixture import HOSTILE_LABELS, sample_run, write_run


def table_with(app: Any, column: str) -> pd.DataFrame:
    found: pd.DataFrame = next(table for table in tables(app) if column in table.columns)
    return found


def test_sizes_links_and_findings_are_those_of_the_stored_tables(run: str, open_page: OpenPage) -> None:
    app = open_page("dataset", run=run)
    assert_no_crash(app)
    found = inspect_run(sample_run())
    sizes = table_with(app, "what").set_index("what")
    assert sizes.loc["entities"].tolist() == [found.source.entities, found.target.entities]
    assert sizes.loc["… without a link"].tolist() == [found.source.dangling, found.target.dangling]
    assert sizes.loc["largest degree"].tolist() == [found.source.degrees["max"], found.target.degrees["max"]]
    roles = table_with(app, "links").set_index("links")["number"].to_dict()
    assert roles == {"seed": 12, "validation": 4, "test": 30, "probable": 4}
    titles = [expander.label.replace("\\", "") for expander in app.expander]
    assert len(titles) == len({finding.code for finding in found.findings}) > 0, "one for each cause"
    assert all(any(finding.message.partition(":")[0][:40] in title for title in titles) for finding in found.findings)
    assert "No data set of the paper" in words(app)


def test_the_papers_data_set_is_recognised(run: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    found = inspect_run(sample_run())
    source, target = ((graph.entities, graph.triples) for graph in (found.source, found.target))
    monkeypatch.setitem(paper.SIZES, "DBP15K ZH-EN", (source, target))
    app = open_page("dataset", run=run)
    assert_no_crash(app)
    assert "the graphs of **DBP15K ZH-EN** in the paper: same number of entities and triples" in words(app)
    assert table_with(app, "variant")["Hits@1"].tolist() == [0.731, 0.808, 0.861]


@pytest.mark.parametrize(
    ("parameters", "shown"),
    [({}, 0), ({"relation": "Hauptstadt"}, 3), ({"side": "target"}, 3), ({"search": "x"}, 3), ({"tab": "degrees"}, 1)],
)
def test_a_link_opens_the_tab_that_it_is_about(run: str, open_page: OpenPage, parameters: dict[str, str], shown: int) -> None:
    app = open_page("dataset", run=run, **parameters)
    assert_no_crash(app)
    tabs: Any = app.get("tab_container")[0]
    assert [tab.label for tab in tabs.children.values()] == ["Sizes and links", "Degrees", "Sample triples", "One graph in detail"]
    assert [bool(tab.children) for tab in tabs.children.values()].index(True) == shown
    assert sum(bool(tab.children) for tab in tabs.children.values()) == 1, "the others are not computed"


def test_relations_are_counted_and_searched(run: str, open_page: OpenPage) -> None:
    app = open_page("dataset", run=run, tab="detail")
    triples = sample_run().tables["triples"].query("graph == 'source'")
    shown = table_with(app, "functionality")
    assert dict(zip(shown["name"], shown["triples"], strict=True)) == {
        name: int((triples["relation"] == number).sum()) for number, name in enumerate(["inCountry", "near", "hasCapital"])
    }
    app.text_input[0].set_value("CAPITAL").run()
    assert_no_crash(app)
    assert table_with(app, "functionality")["name"].tolist() == ["hasCapital"]
    assert app.query_params["search"] == "CAPITAL"
    app.text_input[0].set_value("nowhere").run()
    assert "No relations match" in words(app)


def test_a_relation_of_the_address_shows_its_triples_and_leads_to_its_pairs(run: str, open_page: OpenPage) -> None:
    app = open_page("dataset", run=run, side="target", relation="Hauptstadt")
    assert_no_crash(app)
    assert "Hauptstadt" in words(app)
    assert f"pairs?run={run.replace('/', '%2F')}&side=target&relation=Hauptstadt" in links(app)


def test_a_relation_that_is_not_there(run: str, open_page: OpenPage) -> None:
    app = open_page("dataset", run=run, relation="**no**")
    assert_no_crash(app)
    assert "has no relation" in words(app)
    assert "“**no**”" not in words(app)


def test_entities_without_a_link_are_listed_best_connected_first(run: str, open_page: OpenPage) -> None:
    app = open_page("dataset", run=run, side="target")
    view = RunView(sample_run())
    alone = dangling_entities(view, sample_run().tables["links"], "target")
    assert f"without a known link ({len(alone)})" in [tab.label for tab in app.tabs]
    shown = table_with(app, "uri")
    assert shown["uri"].tolist() == [view.graphs["target"].uris[index] for index in alone]


def test_samples_link_to_their_entities(run: str, open_page: OpenPage) -> None:
    entities = {tab: [one for one in links(open_page("dataset", run=run, tab=tab)) if one.startswith("entity?")] for tab in ("samples", "detail")}
    assert [sum(f"side={side}" in link for link in entities["samples"]) for side in ("source", "target")] == [2 * 5, 2 * 5]
    assert [sum(f"side={side}" in link for link in entities["detail"]) for side in ("source", "target")] == [2 * 5, 0], (
        "of the most frequent relation"
    )


def test_hostile_names_stay_text(models: Path, open_page: OpenPage) -> None:
    run = sample_run()
    run.tables["relations"]["name"] = [HOSTILE_LABELS[1], HOSTILE_LABELS[0], "x" * 5000] * 2
    data = run.manifest["data"]
    data["source"]["name"] = data["split"] = HOSTILE_LABELS[1]
    data["findings"] = [{"code": "<i>", "severity": "warning", "message": HOSTILE_LABELS[1], "examples": [HOSTILE_LABELS[0]], "advice": "[a](b)"}]
    app = open_page("dataset", run=write_run(run, models), tab="detail")
    assert_no_crash(app)
    markdown = [element.value for kind in (app.markdown, app.caption, app.info) for element in kind] + [expander.label for expander in app.expander]
    assert not [line for line in markdown if HOSTILE_LABELS[1] in line or HOSTILE_LABELS[0] in line or "[a](b)" in line]
    assert max(map(len, table_with(app, "functionality")["name"])) <= 200


def test_data_without_links_and_triples(models: Path, open_page: OpenPage) -> None:
    run = sample_run()
    run.tables = {name: table if name in ("entities", "relations", "matches") else table.iloc[:0] for name, table in run.tables.items()}
    run.tables["entities"]["degree"] = 0
    run.metrics = None
    name = write_run(run, models)
    said = {tab: open_page("dataset", run=name, tab=tab) for tab in ("overview", "degrees", "samples", "detail")}
    for app in said.values():
        assert_no_crash(app)
    assert "There are no known links." in words(said["overview"])
    assert "; split" not in words(said["overview"])
    assert "No triples" in words(said["degrees"])
    assert "No triples" in words(said["samples"])
    assert "without a triple (64)" in [tab.label for tab in said["detail"].tabs]
