"""The way out of the app in a browser: from filtered pairs to a file that other tools read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchmarks.served_app import QUIET
from engine.data.links import read_links
from tests.app.conftest import PATIENCE
from tests.app.test_browser import address_says, page, pytestmark

__all__ = ["page", "pytestmark"]


@pytest.mark.slow
def test_pairs_are_filtered_then_taken_home_as_sssom(page: Page, app: str, tmp_path: Path) -> None:
    page.goto(app + "/pairs?run=towns%2Fbasic-s0&known=right")
    page.get_by_role("link", name="Export this selection").first.click()
    page.wait_for_url("**/export?*known=right*")
    expect(page.get_by_role("button", name="✓ correct")).to_be_visible(timeout=PATIENCE)
    page.get_by_label("Format").click()
    page.get_by_role("option", name="SSSOM").click()
    address_says(page, "format", "sssom")
    page.get_by_text("Predicate").first.wait_for()
    page.wait_for_selector(QUIET)
    page.get_by_role("radio", name="owl:sameAs").click()
    address_says(page, "predicate", "owl:sameAs")
    expect(page.locator("[data-testid=stCode]").first).to_contain_text("#curie_map:", timeout=PATIENCE)
    page.wait_for_selector(QUIET)
    button = page.get_by_role("button", name=re.compile(r"Download \d+ pairs as SSSOM"))
    shown = re.search(r"(\d+) pairs", button.inner_text())
    assert shown is not None
    with page.expect_download(timeout=PATIENCE) as caught:
        button.click()
    path = tmp_path / caught.value.suggested_filename
    caught.value.save_as(path)
    assert path.name == "links-towns-basic-s0.sssom.tsv"
    assert len(read_links(path).sources) == int(shown[1]) > 0
    assert "\towl:sameAs\t" in path.read_text(encoding="utf-8")
