"""What axe finds on every page and tab, in both themes: no violation of WCAG 2.2 at levels A and AA that is ours. Skipped without Chromium."""

from __future__ import annotations

from typing import Any, Literal, get_args
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from app.pages import COMPARE, DEGREE, PAGES, PROXIES, RELATIONS
from app.pages import Page as AppPage
from app.state import CompareTab, DegreeTab, ProxiesTab, RelationsTab, RelationsView
from benchmarks.served_app import QUIET
from tests.app.conftest import PATIENCE
from tests.app.test_browser import TOWN, pytestmark

__all__ = ["pytestmark"]

Scheme = Literal["light", "dark"]
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
WHITE = "Streamlit writes white on the primary colour here and the primary colour on the ground elsewhere: on a dark ground no colour does for both"
STREAMLITS = {"[data-tag]": WHITE, "[data-testid=stBaseButton-primary]": WHITE}
"""Violations of Streamlit's own markup, which no page can change: selector -> why."""
FAST = ((COMPARE, "dark"),)  # test_browser_pairs looks at Pairs in light
PARTS: dict[AppPage[Any], list[dict[str, str]]] = {
    COMPARE: [{"tab": tab} for tab in get_args(CompareTab)],
    DEGREE: [{"tab": tab} for tab in get_args(DegreeTab)],
    RELATIONS: [*({"view": view} for view in get_args(RelationsView)), *({"tab": tab} for tab in get_args(RelationsTab)[1:])],
    PROXIES: [{"tab": tab} for tab in get_args(ProxiesTab)],
}


def violations(page: Page) -> list[str]:
    """Rule and element of each violation, those of Streamlit's own markup left out."""
    found = Axe().run(page, options={"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": LEVELS}}).response["violations"]
    ours = f"node => !{list(STREAMLITS)}.some(selector => node.closest(selector))"
    return [
        f"{one['id']}: {node['html'][:300]} ({node['failureSummary'][:200]})"
        for one in found
        for node in one["nodes"]
        if page.locator(str(node["target"][0])).first.evaluate(ours)
    ]


def asked(shown: AppPage[Any], part: dict[str, str]) -> str:
    pair = {"source": [TOWN]} if shown is not PROXIES or part.get("tab") == "pair" else {}
    parameters = {"run": ["towns/basic-s0", "towns/semi-s0"], "entity": [TOWN], **pair, **part}
    return f"{'' if shown.name == 'home' else shown.name}?{urlencode(parameters, doseq=True)}"


@pytest.mark.parametrize(
    ("shown", "scheme"),
    [
        pytest.param(shown, scheme, id=f"{shown.name}-{scheme}", marks=() if (shown, scheme) in FAST else pytest.mark.slow)
        for shown in PAGES
        for scheme in get_args(Scheme)
    ],
)
def test_axe_finds_nothing_that_is_ours(browser: Browser, app: str, shown: AppPage[Any], scheme: Scheme) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 1600}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    found = []
    for part in PARTS.get(shown, [{}]) if (shown, scheme) not in FAST else [{}]:
        page.goto(f"{app}/{asked(shown, part)}")
        page.wait_for_selector(QUIET)
        page.wait_for_selector("[data-testid=stSkeleton]", state="detached")
        page.evaluate("document.querySelectorAll('[data-testid=stExpander] details:not([open]) > summary').forEach(one => one.click())")
        page.wait_for_timeout(500)
        found += [f"{part}: {one}" for one in violations(page)]
    context.close()
    assert not found
