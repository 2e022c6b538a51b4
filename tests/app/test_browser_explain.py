"""Explain in a browser: tabs that the address keeps, evidence that is removed by a click, a picture with its title and source."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from benchmarks.served_app import QUIET
from tests.app.conftest import PATIENCE
from tests.app.test_browser import TABLE_ROW, address_says, asked, page, pytestmark
from tests.app.test_explain import uri, written
from tests.explanation.runs import drawn_run
from tests.run_fixture import MemoryRun

__all__ = ["page", "pytestmark"]


@pytest.fixture(scope="module")
def drawn() -> MemoryRun:
    return drawn_run(3)


@pytest.fixture(scope="module")
def pair(drawn: MemoryRun, app_models: Path) -> str:
    """Query of a pair's page; its run is older than those that the shared app begins with, and of other data."""
    run = written(drawn, app_models, dataset="drawn", run_id="basic-s0-0000drawn", created="2026-10-01T12:00:00+00:00")
    return urlencode({"run": run, "source": uri(drawn, "source", 3), "target": uri(drawn, "target", 5)})


@pytest.mark.slow
def test_tabs_are_kept_in_the_address_and_only_the_open_one_is_computed(page: Page, app: str, pair: str) -> None:
    page.goto(f"{app}/explain?{pair}")
    figures, tables = page.locator(".js-plotly-plot"), page.locator("[data-testid=stDataFrame]")
    expect(figures).to_have_count(1, timeout=PATIENCE)
    assert "tab" not in asked(page)
    page.get_by_role("tab", name="Evidence").click()
    address_says(page, "tab", "evidence")
    expect(figures).to_have_count(0, timeout=PATIENCE)
    expect(tables).to_have_count(1, timeout=PATIENCE)
    page.get_by_role("tab", name="What if").click()
    address_says(page, "tab", "what-if")
    page.get_by_text("Find a minimal flipping set").or_(page.get_by_text("Faithfulness check")).first.wait_for()
    page.wait_for_selector(QUIET)
    page.wait_for_timeout(1000)
    box = tables.first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 18, box["y"] + 1.5 * TABLE_ROW)
    page.wait_for_function("new URLSearchParams(location.search).has('without')")
    page.get_by_text("Removing 1 triple").or_(page.get_by_text("Removing 2 triples")).first.wait_for()
    page.get_by_role("tab", name="Overview").click()
    address_says(page, "tab", "overview")
    expect(figures).to_have_count(1, timeout=PATIENCE)
    page.go_back()
    expect(page.get_by_role("tab", name="What if")).to_have_attribute("aria-selected", "true", timeout=PATIENCE)


@pytest.mark.slow
def test_a_picture_names_the_figure_and_its_source(page: Page, app: str, pair: str, tmp_path: Path) -> None:
    page.goto(f"{app}/explain?{pair}")
    page.locator(".js-plotly-plot").first.wait_for()
    page.wait_for_selector(QUIET)
    page.get_by_role("button", name="Download").first.click()
    page.get_by_role("radio", name="SVG").click()
    page.wait_for_selector(QUIET)
    page.keyboard.press("Escape")
    page.wait_for_timeout(1000)
    page.locator(".js-plotly-plot").first.hover()
    with page.expect_download(timeout=PATIENCE) as caught:
        page.locator(".modebar-btn[data-title*='ownload']").first.click()
    path = tmp_path / caught.value.suggested_filename
    caught.value.save_as(path)
    assert path.name == "explanation-groups.svg"
    picture = path.read_text(encoding="utf-8")
    assert "Score breakdown: " in picture
    assert "Data set drawn, run basic-s0-0000drawn" in picture
