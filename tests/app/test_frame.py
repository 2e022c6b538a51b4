"""What all pages have in common, over all pages there are: navigation, choice of runs, missing and broken things."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import streamlit as st

from app.pages import PAGES, Page
from engine.runs import RunStore
from tests.app.conftest import OpenPage, PutRun, assert_no_crash, links, sidebar_links, words
from tests.run_fixture import MemoryRun

OF_RUNS = [page for page in PAGES if page.least]
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
every_page_of_runs = pytest.mark.parametrize("page", OF_RUNS, ids=lambda page: page.name)
VARIANTS = ("basic", "semi", "literal")


@pytest.fixture
def runs(whole_run: MemoryRun, models: Path, put_run: PutRun) -> list[str]:
    """One run of each variant, the literal one the newest."""
    return [
        put_run(whole_run, models, run_id=f"{variant}-s0", variant=variant, created=f"2026-11-0{day}T00:00:00+00:00")
        for day, variant in enumerate(VARIANTS, start=1)
    ]


def message(app: Any) -> str:
    """The one error of the page, without its escapes."""
    assert len(app.error) == 1
    return str(app.error[0].value).replace("\\", "")


def navigation(app: Any) -> list[str]:
    return sidebar_links(app)[: len(PAGES)]


@every_page
def test_without_runs_every_page_says_what_to_do(page: Page[Any], open_page: OpenPage) -> None:
    app = open_page(page.name)
    assert_no_crash(app)
    assert not app.error
    assert re.search("no runs? yet", words(app).lower())
    assert page.least == 0 or links(app)


@every_page
def test_one_run_is_shown_without_being_asked_for(page: Page[Any], whole_run: MemoryRun, models: Path, put_run: PutRun, open_page: OpenPage) -> None:
    run = put_run(whole_run, models)
    app = open_page(page.name)
    assert_no_crash(app)
    assert not app.error
    assert page.least == 0 or app.query_params["run"] == run
    assert page.least < 2 or "Another run is needed" in words(app)


@every_page
def test_several_runs_are_carried_along_by_every_link_of_the_navigation(page: Page[Any], runs: list[str], open_page: OpenPage) -> None:
    chosen = [runs[1], runs[0]]
    app = open_page(page.name, run=chosen)
    assert_no_crash(app)
    assert not app.error
    assert app.query_params["run"] == chosen, "in this order"
    carried = "run=towns%2Fsemi-s0&run=towns%2Fbasic-s0"
    assert all(link.endswith(f"?{carried}") for link in navigation(app))


@every_page_of_runs
def test_a_page_of_several_runs_starts_with_one_of_each_variant(page: Page[Any], runs: list[str], open_page: OpenPage) -> None:
    app = open_page(page.name)
    assert app.query_params["run"] == (runs[::-1] if page.most > 1 else runs[-1])


@every_page
def test_a_damaged_run_is_explained_and_others_can_be_chosen(page: Page[Any], runs: list[str], models: Path, open_page: OpenPage) -> None:
    (models / runs[0] / "manifest.json").write_bytes(b"{oops")
    app = open_page(page.name, run=runs[0])
    assert_no_crash(app)
    if page.least:
        assert "cannot be opened" in message(app)
        assert "not valid JSON" in message(app)
        assert links(app)
        app.sidebar.selectbox[1].set_value(runs[1]).run()
        assert_no_crash(app)
        assert not app.error
        assert app.query_params["run"] == runs[1]


@every_page_of_runs
def test_runs_that_are_not_there_or_elsewhere_are_refused(page: Page[Any], run: str, open_page: OpenPage) -> None:
    for wrong in ("towns/none", "../../etc/passwd", "/etc", "towns/../towns/basic-s0", "\0", "<b>x</b>", "x" * 30_000):
        app = open_page(page.name, run=wrong)
        assert_no_crash(app)
        assert message(app), wrong
        assert "<b>" not in words(app)
        assert not any("run=" in link for link in navigation(app)), "what is wrong is not carried along"
        assert links(app)


@every_page_of_runs
def test_a_run_that_lacks_tables_says_so(page: Page[Any], run: str, open_page: OpenPage) -> None:
    app = open_page(page.name, run=[run])
    assert_no_crash(app)
    assert not app.error or "because an older version made it; train again" in message(app)


@every_page_of_runs
def test_a_run_of_a_newer_version_is_explained(page: Page[Any], runs: list[str], models: Path, open_page: OpenPage) -> None:
    manifest = models / runs[0] / "manifest.json"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace('"format_version": 1', '"format_version": 99'), encoding="utf-8")
    app = open_page(page.name, run=runs[0])
    assert_no_crash(app)
    assert "update Dual-AMN Explorer" in message(app)


@every_page_of_runs
def test_a_run_that_disappears_while_it_is_open(page: Page[Any], runs: list[str], models: Path, open_page: OpenPage) -> None:
    app = open_page(page.name, run=runs)
    assert not app.error
    shutil.rmtree(models / runs[0])
    app = open_page(page.name, run=runs)
    st.cache_data.clear()  # the list of runs is a few seconds old at most
    app.run()
    assert_no_crash(app)
    assert "There is no run" in message(app)


@every_page_of_runs
def test_runs_of_different_data_are_not_mixed(
    page: Page[Any], whole_run: MemoryRun, models: Path, put_run: PutRun, runs: list[str], open_page: OpenPage
) -> None:
    other = put_run(whole_run, models, run_id="other", data={**whole_run.manifest["data"], "fingerprint": "1" * 64})
    app = open_page(page.name, run=[runs[0], other])
    assert_no_crash(app)
    assert "were trained on different data" in message(app)
    assert len(app.sidebar.selectbox[0].options) == 2, "the data set can be chosen"


@every_page_of_runs
def test_too_many_runs(page: Page[Any], runs: list[str], open_page: OpenPage) -> None:
    app = open_page(page.name, run=[*runs, "a/b", "c/d"])
    assert_no_crash(app)
    assert "selects 5 runs; at most 4" in message(app)


def test_choosing_another_run_keeps_the_others_open(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("entity", run=runs[:2])
    app.sidebar.selectbox[1].set_value(runs[1]).run()
    assert app.query_params["run"] == [runs[1], runs[0]]
    app.sidebar.selectbox[1].set_value(runs[2]).run()
    assert app.query_params["run"] == [runs[2], runs[0]]


def test_the_list_of_runs_names_them_by_what_differs(
    runs: list[str], whole_run: MemoryRun, models: Path, put_run: PutRun, open_page: OpenPage
) -> None:
    again = put_run(whole_run, models, run_id="basic-again", variant="basic", created="2026-11-09T08:30:00+00:00")
    app = open_page("entity", run=runs[0])
    options = app.sidebar.selectbox[1].options
    assert options[0] == "basic · seed 0 · 11-09 08:30"
    assert options[-1] == "basic · seed 0 · 11-01 00:00"
    assert all(re.fullmatch(r"(semi|literal) · seed 0 · \d+\.\d%", option) for option in options[1:-1])
    assert max(map(len, options)) <= 31, "as wide as the sidebar"
    assert "basic-s0" in words(app).replace("\\", ""), "the whole id is below the list"
    app.sidebar.selectbox[1].set_value(again).run()
    assert app.query_params["run"] == again


def test_choosing_other_data_starts_again(whole_run: MemoryRun, models: Path, put_run: PutRun, runs: list[str], open_page: OpenPage) -> None:
    other = put_run(whole_run, models, "villages", "basic-s0", data={**whole_run.manifest["data"], "fingerprint": "1" * 64})
    app = open_page("entity", run=runs[:2], side="source", entity="http://one.example/resource/Entity_5")
    app.sidebar.selectbox[0].set_value(f"villages/{'1' * 64}").run()
    assert app.query_params == {"run": other}


def test_runs_of_a_page_of_several_can_be_added_and_removed(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("degree", run=runs[:1])
    app.sidebar.multiselect[0].set_value([runs[0], runs[2]]).run()
    assert_no_crash(app)
    assert app.query_params["run"] == [runs[0], runs[2]]


def test_home_compares_the_runs_of_the_same_data(runs: list[str], open_page: OpenPage) -> None:
    compare = [link for link in links(open_page("home")) if link.startswith("compare?")]
    assert compare == ["compare?run=towns%2Fliteral-s0&run=towns%2Fsemi-s0&run=towns%2Fbasic-s0"]


def test_runs_in_the_making_say_so(runs: list[str], models: Path, open_page: OpenPage) -> None:
    RunStore(models).create("towns", "basic-s1").close()
    app = open_page("entity", run="towns/basic-s1")
    assert "interrupted; the same train command resumes" in message(app)


TOWN, STADT = "http://one.example/resource/Entity_5", "http://two.example/q/Q7"
PAIR = {"source": TOWN, "target": STADT}


def parameters(app: Any, page: str) -> dict[str, list[str]]:
    """Of the navigation's link to a page."""
    return parse_qs(next(link for link in navigation(app) if link.startswith(f"{page}?")).partition("?")[2])


@pytest.mark.parametrize(
    ("page", "asked", "to_entity"),
    [
        ("entity", {"side": "source", "entity": TOWN, "match": STADT}, {"side": "source", "entity": TOWN, "match": STADT}),
        (
            "entity",
            {"side": "target", "entity": STADT, "match": TOWN, "pool": "test"},
            {"side": "target", "entity": STADT, "match": TOWN, "pool": "test"},
        ),
        ("explain", PAIR, {"side": "source", "entity": TOWN, "match": STADT}),
        ("proxies", PAIR, {"side": "source", "entity": TOWN, "match": STADT}),
        ("review", {**PAIR, "reviewer": "Ann"}, {"side": "source", "entity": TOWN, "match": STADT}),
    ],
)
def test_the_navigation_carries_the_entity_and_the_pair(
    page: str, asked: dict[str, str], to_entity: dict[str, str], runs: list[str], open_page: OpenPage
) -> None:
    app = open_page(page, run=runs[:1], **asked)
    assert_no_crash(app)
    pool = {"pool": ["test"]} if "pool" in asked and page == "entity" else {}
    pair = {name: [value] for name, value in PAIR.items()}
    expected = {"entity": {name: [value] for name, value in to_entity.items()}, "explain": pair | pool, "proxies": pair}
    for name, wanted in expected.items():
        if name == page:
            wanted = {}  # its link leads to its beginning
        assert parameters(app, name) == {"run": runs[:1], **wanted}, name
    assert parameters(app, "degree") == parameters(app, "review") == {"run": runs[:1]}
    app.query_params.clear()
    for page_between in ("degree", "home"):
        app.query_params["run"] = runs[:1]
        app.switch_page(f"views/{page_between}.py").run()
        assert_no_crash(app)
        assert parameters(app, "explain") == {"run": runs[:1], **pair, **pool}, "a page that cannot show it passes it on"


def test_what_was_open_of_other_data_is_not_carried(
    whole_run: MemoryRun, models: Path, put_run: PutRun, runs: list[str], open_page: OpenPage
) -> None:
    other = put_run(whole_run, models, "villages", "basic-s0", data={**whole_run.manifest["data"], "fingerprint": "1" * 64})
    app = open_page("explain", run=runs[:1], **PAIR)
    app.query_params.clear()
    app.query_params["run"] = other
    app.switch_page("views/degree.py").run()
    assert parameters(app, "explain") == {"run": [other]}


def test_the_beginning_of_the_entity_page_forgets_what_was_open(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("entity", run=runs[:1], side="source", entity=TOWN)
    app.query_params.clear()
    app.query_params["run"] = runs[:1]
    app.run()
    app.switch_page("views/degree.py").run()
    assert parameters(app, "explain") == {"run": runs[:1]}
