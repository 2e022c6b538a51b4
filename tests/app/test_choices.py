"""What can be chosen stays what it is: over all pages, no widget depends on the time, the time zone, or on what else there is.

A browser holds the text of what is chosen and sends it back with every click on the page. Where the same widget has other texts by then, Streamlit
takes the text for a new choice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import cache, text
from app.pages import PAGES, Page
from tests.app.conftest import OpenPage, PutRun, assert_no_crash, links, words
from tests.run_fixture import MemoryRun

ENTITY = "http://one.example/resource/Entity_5"
MINUTE, DAY = 60, 86_400
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)

Widget = tuple[tuple[str, ...], str]
"""Options, and what is chosen at first."""


@pytest.fixture
def runs(whole_run: MemoryRun, models: Path, put_run: PutRun) -> list[str]:
    """Three runs of the same data that were made a moment ago, as seen from the clock below."""
    return [put_run(whole_run, models, run_id=f"{one}-s0", variant=one, created="2026-11-01T11:59:30+00:00") for one in ("basic", "semi", "literal")]


def at(monkeypatch: pytest.MonkeyPatch, seconds: int, zone: str) -> None:
    """From now on, for the app, it is so long after noon of the day on which the runs were made, on a machine elsewhere."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls.fromtimestamp(datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp() + seconds, tz)

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    for name, module in list(sys.modules.items()):
        if name.startswith("app.") and hasattr(module, "datetime"):
            monkeypatch.setattr(module, "datetime", Clock)


@pytest.fixture(autouse=True)
def zone_as_it_was() -> Iterator[None]:
    yield
    time.tzset()


def widgets(app: AppTest) -> dict[str, Widget]:
    """All that can be chosen or entered on a page, by the id that a browser sends it under."""
    found: dict[str, Widget] = {}
    for element in app._tree:
        proto: Any = getattr(element, "proto", None)
        if (id := getattr(proto, "id", "")) and hasattr(proto, "DESCRIPTOR"):
            options = tuple(str(getattr(one, "content", one)) for one in getattr(proto, "options", ()))
            found[id] = options, str(getattr(proto, "default", ""))
    return found


def shown(open_page: OpenPage, page: Page[Any], runs: list[str]) -> dict[str, Widget]:
    app = open_page(page.name, run=runs, side="source", entity=ENTITY, source=ENTITY)
    assert_no_crash(app)
    return widgets(app)


@every_page
def test_no_widget_depends_on_the_time_or_the_place(page: Page[Any], runs: list[str], open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for seconds, zone in ((0, "UTC"), (17 * MINUTE, "Asia/Kathmandu"), (40 * DAY, "America/St_Johns")):
        at(monkeypatch, seconds, zone)
        seen.append(shown(open_page, page, runs))
    assert seen[0] == seen[1] == seen[2]
    assert page.name in ("home", "import") or seen[0]


def test_the_clock_of_these_tests_is_the_apps_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 17 * MINUTE, "UTC")
    assert text.age("2026-11-01T11:59:30+00:00") == "17 minutes ago"


@every_page
def test_a_widget_that_has_other_options_by_now_is_another_widget(
    page: Page[Any], whole_run: MemoryRun, models: Path, put_run: PutRun, runs: list[str], open_page: OpenPage
) -> None:
    """Other data under the same name, the same data under another name with runs of the same ids, and another run."""
    before = shown(open_page, page, runs)
    put_run(whole_run, models, "towns", "elsewhere-s0", data={**whole_run.manifest["data"], "fingerprint": "1" * 64})
    put_run(whole_run, models, "copy", "basic-s0")
    put_run(whole_run, models, "towns", "basic-s1")
    after = shown(open_page, page, runs)
    assert {id: after[id] for id in before if id in after} == {id: before[id] for id in before if id in after}


@every_page
def test_no_two_options_look_alike(
    page: Page[Any], whole_run: MemoryRun, models: Path, put_run: PutRun, runs: list[str], open_page: OpenPage
) -> None:
    """A browser could not say which one is meant."""
    for dataset in ("copy", "a" * 99 + "b", "a" * 99 + "c"):
        put_run(whole_run, models, dataset, "basic-s0", data={**whole_run.manifest["data"], "fingerprint": "0" * 64})
        put_run(whole_run, models, dataset, "elsewhere-s0", data={**whole_run.manifest["data"], "fingerprint": "1" * 64})
    for options, _ in shown(open_page, page, runs).values():
        assert len(set(options)) == len(options), options


@pytest.mark.parametrize("page", ["entity", "compare"])
def test_what_is_no_option_any_more_chooses_nothing(page: str, runs: list[str], open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that sends a text of before, such as a page that was left open while the program was updated."""
    app = open_page(page, run=runs)
    for box in app.selectbox:
        monkeypatch.setattr(type(box), "index", property(lambda self: 0))
        box.options[0] = "towns · 17 minutes ago"
    app.run()
    assert_no_crash(app)
    assert app.query_params["run"] == runs


# Runs of the same id


@pytest.fixture
def twins(whole_run: MemoryRun, models: Path, put_run: PutRun) -> list[str]:
    """Two data sets of the same content, each with a run of the same id."""
    return [put_run(whole_run, models, dataset, "basic-s0") for dataset in ("staff", "people")]


def test_runs_of_the_same_id_are_named_with_their_data_set(twins: list[str], open_page: OpenPage) -> None:
    app = open_page("compare", run=twins)
    names = [option.partition(" ·")[0] for option in app.sidebar.multiselect[0].options]
    assert sorted(names) == ["people: basic", "staff: basic"]
    assert app.sidebar.multiselect[0].value == twins
    app.sidebar.multiselect[0].set_value(twins[::-1]).run()
    assert_no_crash(app)
    assert app.query_params["run"] == twins[::-1], "none is dropped"
    assert "people/basic" in words(app).replace("\\", "")


def test_each_data_set_has_its_own_place_in_the_lists(twins: list[str], open_page: OpenPage) -> None:
    app = open_page("entity", run=twins[:1])
    assert sorted(app.sidebar.selectbox[0].options) == ["people", "staff"]
    assert [option.partition(" ·")[0] for option in app.sidebar.selectbox[1].options] == ["basic"]
    app.sidebar.selectbox[0].set_value(f"people/{'0' * 64}").run()
    assert app.query_params["run"] == twins[1]


def test_home_puts_each_data_set_under_its_own_name(twins: list[str], open_page: OpenPage) -> None:
    app = open_page("home")
    message = [header.value for header in app.header]
    assert any("people" in one for one in message)
    assert any("staff" in one for one in message)
    assert "same content as" in words(app)
    assert "compare?run=people%2Fbasic-s0&run=staff%2Fbasic-s0" in links(app), "they can be compared all the same"


def test_different_data_of_one_name_are_distinguished_on_home(
    whole_run: MemoryRun, twins: list[str], models: Path, put_run: PutRun, open_page: OpenPage
) -> None:
    put_run(whole_run, models, "staff", "basic-s1", data={**whole_run.manifest["data"], "fingerprint": "1" * 64})
    named = " ".join(header.value for header in open_page("home").header).replace("\\", "")
    assert "staff (000000)" in named
    assert "staff (111111)" in named


def test_names_that_differ_in_what_is_cut_off_are_distinguished() -> None:
    assert text.distinct_labels({"b": "x", "a": "x", "c": "y"}) == {"a": "x (1)", "b": "x (2)", "c": "y"}
    assert text.distinct_labels({"b": "x", "a": "x", "c": "x (1)"}) == {"a": "x (2)", "b": "x (3)", "c": "x (1)"}
    assert text.distinct_labels({"a": "x", "b": "x"}) == text.distinct_labels({"b": "x", "a": "x"}), "by what they are, not by their order"


def test_names_of_runs(whole_run: MemoryRun, models: Path, put_run: PutRun) -> None:
    for dataset in ("a" * 99 + "b", "a" * 99 + "c"):
        put_run(whole_run, models, dataset, "basic-s0")
    cards = cache.list_runs(models).cards
    assert len(set(cache.run_names(cards))) == 2
    assert cache.run_names(cards[:1]) == ["basic-s0"]
