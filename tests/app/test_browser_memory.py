"""What a browser keeps between visits: recent entities and that the tour is over; and what a forged cookie does."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
import streamlit as st

from app import browser_memory
from app.quick_search import RECENT, Visited, read, written
from tests.app.conftest import OpenPage, assert_no_crash, sidebar_links, words

DATA = "0" * 64
TOWN = "http://one.example/resource/Entity_5"


class Context:
    """A browser's first message with these cookies."""

    url = None

    def __init__(self, **cookies: str) -> None:
        self.headers: dict[str, str] = {}
        self.cookies = {f"dual_amn_{name}": value for name, value in cookies.items()}


@pytest.fixture
def cookies(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Those that the browser sends; a test may add some."""
    context = Context()
    monkeypatch.setattr(st, "context", context)
    return context.cookies


def test_entities_of_an_earlier_visit_are_listed(run: str, open_page: OpenPage, cookies: dict[str, str]) -> None:
    cookies["dual_amn_recent"] = quote(json.dumps([[DATA, "source", TOWN, "<b>Town</b>"], ["1" * 64, "source", "elsewhere", "of other data"]]))
    app = open_page("degree", run=run)
    assert_no_crash(app)
    assert "Recent entities" in words(app)
    (link,) = [link for link in sidebar_links(app) if "Entity_5" in link]
    assert link.startswith("entity?")
    assert not [link for link in sidebar_links(app) if "elsewhere" in link]
    assert "<b>" not in "".join(one.proto.label for one in app.sidebar.get("page_link"))


@pytest.mark.parametrize(
    "value",
    ["", "no JSON", "[" * 5000, "7", "null", '{"a": 1}', '[["a"]]', '[["a", "b", 3, "d"]]', '[["a", "middle", "c", "d"]]', "%ff%00", "x" * 9000],
)
def test_forged_cookies_are_no_crash(value: str, run: str, open_page: OpenPage, cookies: dict[str, str]) -> None:
    cookies["dual_amn_recent"] = cookies["dual_amn_browser"] = cookies["dual_amn_tour"] = quote(value)
    app = open_page("entity", run=run)
    assert_no_crash(app)
    assert not app.error
    assert "Recent entities" not in words(app)


def test_what_is_kept_fits_into_a_cookie_and_comes_back() -> None:
    short = [Visited(DATA, "source", f"http://x/{number}", "Ä; b=c") for number in range(2 * RECENT)]
    assert read(written(short)) == short[:RECENT]
    long = [Visited(DATA, "target", "http://ü/" * 60, "x") for _ in range(RECENT)]
    kept = read(written(long))
    assert 0 < len(kept) < RECENT
    assert len(quote(written(long))) <= browser_memory.LONGEST


def test_a_tour_that_is_over_is_not_offered_to_this_browser_again(run: str, open_page: OpenPage, cookies: dict[str, str]) -> None:
    assert "New here?" in words(open_page("home", run=run))
    cookies["dual_amn_tour"] = "seen"
    assert "New here?" not in words(open_page("home", run=run))
