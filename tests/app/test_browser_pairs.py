"""Pairs in a browser: a row opens beside the list, by keyboard to the next one and back; and what the browser keeps for the next visit."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from benchmarks.served_app import QUIET
from tests.app.conftest import PATIENCE
from tests.app.test_browser import TABLE_ROW, asked, entity_path, heading, page, pytestmark
from tests.app.test_browser_accessibility import violations

__all__ = ["page", "pytestmark"]


def test_a_row_opens_in_a_drawer_and_the_list_is_kept(page: Page, app: str) -> None:
    page.goto(f"{app}/pairs?run=towns%2Fbasic-s0&known=unknown")
    page.wait_for_selector(QUIET)
    table = page.locator("[data-testid=stDataFrame]").first
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 1.5 * TABLE_ROW)
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_text("Row 1 of")).to_be_visible(timeout=PATIENCE)
    expect(drawer.get_by_role("link", name="Open in Explain")).to_be_visible(timeout=PATIENCE)
    page.wait_for_selector(QUIET)
    page.wait_for_timeout(500)
    assert not violations(page)
    first = drawer.locator("h3").inner_text()
    drawer.get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    expect(drawer.get_by_text("Row 2 of")).to_be_visible(timeout=PATIENCE)
    expect(drawer.locator("h3")).not_to_have_text(first, timeout=PATIENCE)
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0, timeout=PATIENCE)
    assert table.is_visible()
    assert asked(page)["known"] == "unknown", "with its filters"
    page.wait_for_selector(QUIET)
    assert drawer.count() == 0, "it does not come back with the next drawing"


@pytest.mark.slow  # test_around has the list of recent entities, test_browser_memory the cookie
def test_recent_entities_are_there_on_the_next_visit_and_look_like_any_link(page: Page, app: str) -> None:
    for number in (5, 15):
        page.goto(app + entity_path(number))
        heading(page, f"City {number}")
        page.wait_for_selector(QUIET)
        page.wait_for_function("number => document.cookie.includes(`Entity_${number}`)", arg=number, timeout=PATIENCE)
    recent = page.locator(".st-key-recent a")
    expect(recent).to_contain_text(["City 5"], timeout=PATIENCE)
    expect(recent.first.locator("span:has(> [data-testid=stMarkdownContainer])")).to_have_css("white-space", "normal")  # long labels wrap
    page.mouse.move(700, 20)
    expect(recent.first).to_have_css("background-color", "rgba(0, 0, 0, 0)", timeout=PATIENCE)
    current = page.locator(".st-key-navigation a[aria-current=page]")
    expect(current).not_to_have_css("background-color", "rgba(0, 0, 0, 0)", timeout=PATIENCE)  # the open page is marked there alone
