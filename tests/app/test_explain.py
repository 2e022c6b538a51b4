"""The explain page: parts, evidence, removal, rivals; names and evidence that are not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from engine.explanation import Experiment, explain, flipping_set, items_of, triples_of
from tests.app.conftest import OpenPage, assert_no_crash, links, words
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
    return [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]


def metric(app: AppTest, label: str) -> Any:
    """The last metric of a name: the header has one as well."""
    return [one for one in app.metric if one.label.startswith(label)][-1]


def test_the_waterfall_ends_at_the_score(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "source", 3), target=uri(drawn, "target", 5))
    assert_no_crash(app)
    found = explain(explainer_of(drawn), 3, 5)
    (trace,) = charts(app)[0]["data"]
    assert trace["measure"][-1] == "total"
    assert trace["x"][-1] == pytest.approx(found.pair.csls, abs=1e-5)
    assert sum(trace["x"][:-1]) == pytest.approx(found.pair.csls, abs=1e-3)
    assert f"{found.pair.csls:.3f}" in words(app)


def test_evidence_that_is_drawn_is_the_strongest(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "source", 3), target=uri(drawn, "target", 5))
    supporting, opposing = explain(explainer_of(drawn), 3, 5).neighbours.supporting, explain(explainer_of(drawn), 3, 5).neighbours.opposing
    for chart, pairs in zip(charts(app)[1:3], (supporting, opposing), strict=True):
        lines = [trace for trace in chart["data"] if trace["mode"].startswith("lines")]
        assert len(lines) == min(len(pairs), 12)
        widths = [line["line"]["width"] for line in lines]
        assert widths == sorted(widths, reverse=True)
        assert f"{pairs[0].value:+.3f}" in lines[0]["hovertemplate"]


def test_evidence_is_taken_away_and_put_back(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    explainer = explainer_of(drawn)
    experiment = Experiment(explainer, 3, 5)
    item = items_of(experiment)[0]
    reference = f"{item.side}:{item.neighbour.uri}"
    ends = {"source": uri(drawn, "source", 3), "target": uri(drawn, "target", 5)}
    app = open_page("explain", run=written(drawn, models), **ends, without=reference)
    assert_no_crash(app)
    after = experiment.without(triples_of([item])).after
    assert metric(app, "CSLS").value == f"{after.csls:.3f}"
    assert metric(app, "CSLS").delta == f"{after.csls - experiment.before.csls:+.3f}"
    next(button for button in app.button if button.label == "Put all back").click().run()
    assert_no_crash(app)
    assert "without" not in app.query_params
    assert metric(app, "CSLS").value == f"{experiment.before.csls:.3f}"


def test_the_smallest_set_that_flips_goes_into_the_address(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    explainer, run = explainer_of(drawn), written(drawn, models)
    for source, target in explainer.view.best["source"].items():
        found = flipping_set(Experiment(explainer, source, target))
        if found.flips:
            break
    app = open_page("explain", run=run, source=uri(drawn, "source", source))
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
    (trace,) = charts(app)[3]["data"]
    assert trace["x"][-1] == pytest.approx(difference, abs=1e-5)
    assert any(link.startswith("explain?") and "against" not in link for link in links(app))


def test_how_far_it_can_be_trusted_is_computed_when_asked(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models), source=uri(drawn, "source", 3))
    assert "that should count most" not in words(app)
    app.toggle[0].set_value(True).run()
    assert_no_crash(app)
    assert "that should count most" in words(app)


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"source": "nobody at all"}, "nobody at all"),
        ({"target": "<script>alert(1)</script>"}, "script"),
        ({"without": "source:http://no.example/where"}, "no neighbour of this pair"),
        ({"against": "nobody at all"}, "nobody at all"),
        ({"pool": "some"}, "pool=some"),
    ],
)
def test_what_is_not_there_is_told(drawn: MemoryRun, models: Path, parameters: dict[str, str], told: str, open_page: OpenPage) -> None:
    given = {} if {"source", "target"} & set(parameters) else {"source": uri(drawn, "source", 3)}
    app = open_page("explain", run=written(drawn, models), **given, **parameters)
    assert_no_crash(app)
    assert told in "".join(error.value for error in app.error).replace("\\", "")


@pytest.mark.parametrize("side", ["source", "target"])
def test_two_entities_of_one_graph_are_told_with_a_way_on(side: str, drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
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
    assert metric(app, "CSLS").value == f"{explain(explainer_of(drawn), 3, 5).pair.csls:.3f}"


def test_without_a_pair_there_are_some_to_begin_with(drawn: MemoryRun, models: Path, open_page: OpenPage) -> None:
    app = open_page("explain", run=written(drawn, models))
    assert_no_crash(app)
    assert "Which pair?" in words(app)
    assert sum(link.startswith("explain?") for link in links(app)) == 6


def test_entities_without_triples(models: Path, open_page: OpenPage) -> None:
    run = drawn_run(task=lonely_task())
    app = open_page("explain", run=written(run, models), source=uri(run, "source", 0), target=uri(run, "target", 0))
    assert_no_crash(app)
    assert "no triples" in words(app)
    assert "Neither entity has a triple that could be taken away" in words(app)


@pytest.mark.parametrize("variant", ["semi", "literal"])
def test_other_variants_and_other_runs(variant: str, models: Path, open_page: OpenPage) -> None:
    run = drawn_run(variant=variant)
    first = written(run, models)
    second = written(drawn_run(variant=variant), models, run_id=f"{variant}-s1-0123abcd")
    app = open_page("explain", run=first, source=uri(run, "source", 1), target=uri(run, "target", 2))
    assert_no_crash(app)
    assert "Used as a training pair in round 1" in words(app)
    assert any(link.startswith("explain?") and second.rpartition("/")[2] in link for link in links(app))


def test_a_run_without_weights_says_so(models: Path, run: str, open_page: OpenPage) -> None:
    app = open_page("explain", run=run, source="Österreich")
    assert_no_crash(app)
    assert "no stored weights" in "".join(error.value for error in app.error)
