"""What is around every page: links and citations to take along, the search for entities, recent ones, the tour."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import cache, state, tour
from app.pages import PAGES, Page
from app.sharing import citation, link_to
from engine import __version__
from tests.app.conftest import OpenPage, PutRun, assert_no_crash, sidebar_links, words
from tests.run_fixture import HOSTILE_LABELS, MemoryRun, sample_run, write_run

TOWN, STADT = "http://one.example/resource/Entity_5", "http://two.example/q/Q7"


@pytest.fixture
def runs(whole_run: MemoryRun, models: Path, put_run: PutRun) -> list[str]:
    return [put_run(whole_run, models, run_id=f"{variant}-s0", variant=variant) for variant in ("basic", "semi")]


def shared(app: AppTest) -> list[str]:
    """The link and the citation, once the popover is open."""
    before = [code.value for code in app.code]
    app.session_state[state.SHARE] = True
    shown = [code.value for code in app.run().code]
    assert len(shown) == len(before) + 2
    return shown[:2]


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_has_its_link_and_its_citation(page: Page[Any], runs: list[str], open_page: OpenPage) -> None:
    app = open_page(page.name, run=runs)
    assert_no_crash(app)
    link, cited = shared(app)
    assert link == f"{'/' if page.name == 'home' else f'/{page.name}'}?run=towns%2Fbasic-s0&run=towns%2Fsemi-s0"
    assert cited.splitlines()[0] == f'Dual-AMN Explorer {__version__}, view "{page.title}".'
    assert cited.splitlines()[-1] == link
    named = re.findall(r"^Run (\S+) \(", cited, re.M)
    assert named == (runs[: page.most] if page.least else [])
    card = cache.list_runs(cache.models_folder()).find(runs[0])
    assert (f"Data fingerprint {card.fingerprint}." in cited) == bool(page.least)


def test_a_citation_names_the_version_that_made_a_run(models: Path) -> None:
    run = write_run(sample_run(), models, versions={"engine": "9.8.7"})
    card = cache.list_runs(models).find(run)
    cited = citation(PAGES[1], [card], "http://host/entity")
    assert f"Run {run} (engine 9.8.7, " in cited


def test_a_link_says_all_that_is_chosen(runs: list[str], open_page: OpenPage) -> None:
    app = open_page("entity", run=runs[:1], side="source", entity=TOWN, match=STADT, hops="2")
    link = shared(app)[0]
    assert link.startswith("/entity?run=towns%2Fbasic-s0&side=source&entity=http%3A%2F%2Fone.example%2Fresource%2FEntity_5&match=")
    assert "hops=2" in link
    assert link_to(PAGES[0], {}) == "/"


def search(app: AppTest, words: str) -> AppTest:
    return next(box for box in app.sidebar.text_input if box.label == "Find an entity").set_value(words).run()


@pytest.mark.parametrize("page", ["home", "degree", "train", "entity"])
def test_an_entity_is_found_from_every_page(page: str, runs: list[str], open_page: OpenPage) -> None:
    app = search(open_page(page, run=runs[:1]), "city 15")
    assert_no_crash(app)
    assert "entity?run=towns%2Fbasic-s0&side=source&entity=http%3A%2F%2Fone.example%2Fresource%2FEntity_15" in sidebar_links(app)
    app = search(app, "no such <b>thing</b>")
    assert "No entity matches" in words(app)
    assert "<b>" not in words(app)


def test_without_runs_there_is_nothing_to_search(open_page: OpenPage) -> None:
    assert not open_page("home").sidebar.text_input


def test_a_search_in_a_damaged_run_is_an_error_in_its_place(runs: list[str], models: Path, open_page: OpenPage) -> None:
    app = open_page("home", run=runs[:1])
    for table in (models / runs[0]).glob("*.parquet"):
        table.write_bytes(b"")
    app = search(app, "city")
    assert_no_crash(app)
    assert app.sidebar.error


def test_recent_entities_are_those_of_the_same_data_without_the_open_one(
    whole_run: MemoryRun, runs: list[str], models: Path, put_run: PutRun, open_page: OpenPage
) -> None:
    app = open_page("entity", run=runs[:1], side="source", entity=TOWN)
    assert len(sidebar_links(app)) == len(PAGES), "nothing was open before"
    app.query_params["entity"] = "http://one.example/resource/Entity_6"
    app.run()
    app.query_params["entity"] = "no such entity"
    app.run()
    assert len(sidebar_links(app)[len(PAGES) :]) == 2, "what is not there was not open"
    app.query_params.clear()
    app.query_params["run"] = runs[:1]
    app.switch_page("views/degree.py").run()
    assert_no_crash(app)
    recent = sidebar_links(app)[len(PAGES) :]
    assert [link.rpartition("Entity_")[2] for link in recent] == ["6", "5"], "the last one first"
    other = put_run(whole_run, models, "villages", "basic-s0", data={**whole_run.manifest["data"], "fingerprint": "1" * 64})
    app.query_params["run"] = other
    app.run()
    assert len(sidebar_links(app)) == len(PAGES)


def test_hostile_names_of_recent_entities_stay_text(models: Path, open_page: OpenPage) -> None:
    run = write_run(sample_run(), models)
    uri = "http://one.example/resource/Entity_10"
    app = open_page("entity", run=run, side="source", entity=uri)
    app.query_params.clear()
    app.query_params["run"] = run
    app.switch_page("views/degree.py").run()
    label = app.sidebar.get("page_link")[len(PAGES)].proto.label
    assert HOSTILE_LABELS[0] not in label
    assert "script" in label


def test_the_tour_has_four_steps_and_ends(runs: list[str], open_page: OpenPage) -> None:
    app = press(open_page("home"), "Start tour")
    assert_no_crash(app)
    assert app.query_params["run"] in runs
    assert app.query_params["match"], "a pair to look at"
    for number, step in enumerate(tour.STEPS, start=1):
        app.switch_page(step.page.script).run()  # where a browser is by now
        assert app.title[0].value == step.page.title
        assert f"Tour {number} of 4: {step.title}." in words(app)
        if number < len(tour.STEPS):
            app = press(app, f"Next: {tour.STEPS[number].page.title}")
            assert_no_crash(app)
    app = press(app, "End tour")
    assert "Tour" not in words(app)
    app.switch_page("views/home.py").run()
    assert "New here?" not in words(app)


def test_the_tour_waits_where_it_was_left_and_is_offered_on_home_alone(runs: list[str], open_page: OpenPage) -> None:
    assert "New here?" not in words(open_page("entity", run=runs[:1]))
    app = press(open_page("home"), "Start tour")
    app.switch_page("views/degree.py").run()
    assert "step 1 of 4 is on the page Entity" in words(app)
    app = press(app, "Continue tour")
    assert_no_crash(app)
    assert app.query_params["entity"]


def test_the_tour_is_refused_with_one_click(runs: list[str], open_page: OpenPage) -> None:
    app = press(open_page("home"), "No, thanks")
    assert "New here?" not in words(app)
    assert "New here?" not in words(app.run())


def test_without_runs_there_is_no_tour(open_page: OpenPage) -> None:
    assert "New here?" not in words(open_page("home"))
