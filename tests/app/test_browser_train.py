"""A training in a browser: asked for, watched, left alone, found again, stopped, resumed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.served_app import BROWSER_OPTIONS, QUIET, served
from engine.jobs import JobQueue, trainer_alive
from tests.app.test_browser import CHROMIUM, PATIENCE, pytestmark

__all__ = ["pytestmark"]

SMALL = (
    "training.epochs=100000",
    "encoder.dim=8",
    "encoder.proxies=4",
    "data.valid_ratio=0.2",
    "training.checkpoint_seconds=0",
    "training.threads=1",
)


@pytest.fixture
def models(tmp_path: Path) -> Iterator[Path]:
    """A models folder whose trainer, if there is one, is told to stop at the end."""
    yield tmp_path
    queue = JobQueue(tmp_path)
    for job in queue.jobs():
        if job.active:
            queue.stop(job.id)


def new_page(browser: object) -> Page:
    page: Page = browser.new_context(viewport={"width": 1280, "height": 1600}).new_page()  # type: ignore[attr-defined]
    page.set_default_timeout(PATIENCE)
    return page


def epoch(page: Page) -> int:
    """The epoch that the page tells of."""
    found = page.get_by_text(re.compile(r"Epoch [\d,]+ of")).first
    found.wait_for()
    number = re.search(r"Epoch ([\d,]+) of", found.inner_text())
    assert number is not None
    return int(number[1].replace(",", ""))


def test_a_training_is_watched_left_alone_found_again_stopped_and_resumed(models: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(BROWSER_OPTIONS), timeout=PATIENCE)
        with served(models) as (address, _):
            page = new_page(browser)
            page.goto(f"{address}/train?data=europe&{'&'.join(f'set={setting}' for setting in SMALL)}")
            page.get_by_role("button", name="Start training").click()
            page.wait_for_function("new URLSearchParams(location.search).has('job')")
            job = page.evaluate("new URLSearchParams(location.search).get('job')")
            before = epoch(page)
            page.wait_for_function(f"!document.body.innerText.includes('Epoch {before:,} of')")
            page.context.close()  # nobody watches any more
        assert trainer_alive(models), "the app is gone, the trainer is not"
        with served(models) as (address, _):
            page = new_page(browser)
            page.goto(f"{address}/train?job={job}")
            assert epoch(page) > before
            page.locator("[data-testid=stPlotlyChart]").first.wait_for()
            page.get_by_role("button", name="Stop training").click()
            page.get_by_text("what was learned so far is kept as a run").first.wait_for()
            page.get_by_role("button", name="Resume").click()
            page.get_by_role("button", name="Stop training").wait_for()
            page.goto(address)
            page.get_by_role("link", name="Watch").click()
            page.wait_for_function(f"new URLSearchParams(location.search).get('job') === '{job}'")
            expect(page.locator("[data-testid=stException]")).to_have_count(0)
            page.get_by_role("button", name="Stop training").click()
            page.get_by_role("button", name="Resume").wait_for()
            page.wait_for_selector(QUIET)
        browser.close()
