"""A training in a browser: asked for, watched, left alone, found again, stopped, resumed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from benchmarks.served_app import QUIET, served
from engine.config import RunConfig
from engine.jobs import JobQueue, plan_training, summarise, trainer_alive
from engine.util.paths import SAMPLES
from tests.app.conftest import PATIENCE, of_other_data
from tests.app.test_browser import pytestmark
from tests.run_fixture import analysed, sample_run, write_run

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
    """A models folder whose trainer, if there is one, is stopped at the end."""
    yield tmp_path
    queue = JobQueue(tmp_path)
    for job in queue.jobs():
        if job.active:
            queue.stop(job.id)


def new_page(browser: Browser) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 1600}).new_page()
    page.set_default_timeout(PATIENCE)
    return page


def epoch(page: Page) -> int:
    """The epoch that the page shows."""
    found = page.get_by_text(re.compile(r"Epoch [\d,]+ of")).first
    found.wait_for()
    number = re.search(r"Epoch ([\d,]+) of", found.inner_text())
    assert number is not None
    return int(number[1].replace(",", ""))


@pytest.mark.slow
def test_a_training_is_watched_left_alone_found_again_stopped_and_resumed(browser: Browser, models: Path) -> None:
    with served(models) as (address, _):
        page = new_page(browser)
        page.goto(f"{address}/train?data=europe&{'&'.join(f'set={setting}' for setting in SMALL)}")
        page.get_by_role("button", name="Start training").click()
        page.wait_for_function("new URLSearchParams(location.search).has('job')")
        job = page.evaluate("new URLSearchParams(location.search).get('job')")
        before = epoch(page)
        page.wait_for_function(f"!document.body.innerText.includes('Epoch {before:,} of')")
        page.context.close()  # no page is open any more
    assert trainer_alive(models), "the app is gone, the trainer is not"
    with served(models) as (address, _):
        page = new_page(browser)
        page.goto(f"{address}/train?job={job}")
        assert epoch(page) > before
        page.locator("[data-testid=stPlotlyChart]").first.wait_for()
        page.get_by_role("button", name="Stop training").click()
        page.get_by_text("the progress is kept as a run").first.wait_for()
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("button", name="Stop training").wait_for()
        page.goto(address)
        page.get_by_role("link", name="Show progress").click()
        page.wait_for_function(f"new URLSearchParams(location.search).get('job') === '{job}'")
        expect(page.locator("[data-testid=stException]")).to_have_count(0)
        page.get_by_role("button", name="Stop training").click()
        page.get_by_role("button", name="Resume").wait_for()
        page.wait_for_selector(QUIET)
        page.context.close()


def watched(page: Page) -> Locator:
    """The card of the job that the page is about."""
    return page.locator(".st-key-watched_job")


@pytest.mark.slow
def test_every_link_of_the_queue_is_an_address_and_a_dead_trainer_is_said_and_resumed(browser: Browser, models: Path) -> None:
    """The queue is redrawn every other second while something is trained, and its links are in that part of the page."""
    config, queue = RunConfig().with_assignments(SMALL), JobQueue(models)
    data = summarise((SAMPLES / "europe").resolve(), config.data, 0)
    jobs = {seed: queue.submit(plan_training(data, replace(config, seed=seed), models)).job.id for seed in range(3)}
    for job in (jobs[1], jobs[2]):
        queue.cancel(job)
    with served(models) as (address, _):
        page = new_page(browser)
        page.goto(f"{address}/train?job={jobs[0]}")
        page.get_by_role("button", name="Start worker").click()
        epoch(page)
        for seed in (1, 2, 0, 2, 0):
            page.locator("[data-testid=stPageLink-NavLink]", has_text=f"seed {seed}").first.click()
            page.wait_for_function(f"new URLSearchParams(location.search).get('job') === '{jobs[seed]}'")
            expect(watched(page)).to_contain_text(f"seed {seed} ", timeout=PATIENCE)
        page.reload()
        expect(watched(page)).to_contain_text("seed 0 ", timeout=PATIENCE)

        page.locator("[data-testid=stPageLink-NavLink]", has_text="seed 1").first.click()
        expect(watched(page)).to_contain_text("seed 1 ", timeout=PATIENCE)
        page.locator("[data-testid=stPageLink-NavLink]", has_text="seed 0").first.click()
        epoch(page)
        kill_trainer(models)
        expect(watched(page)).to_contain_text("The worker was killed (SIGKILL)", timeout=PATIENCE)
        assert f"job={jobs[0]}" in page.url
        watched(page).get_by_role("button", name="Resume").click()
        epoch(page)
        expect(watched(page).get_by_role("button", name="Stop training")).to_be_visible(timeout=PATIENCE)
        assert f"job={jobs[0]}" in page.url
        page.get_by_role("button", name="Stop training").click()
        page.get_by_role("button", name="Resume").wait_for()
        page.context.close()


def kill_trainer(models: Path) -> None:
    """Without a word, as the machine does when it has no memory left."""
    mine = str(models.resolve()).encode()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = place.read_bytes().split(b"\0")
            if b"engine.jobs" in words and mine in words:
                os.kill(int(place.parent.name), signal.SIGKILL)


@pytest.mark.slow
def test_on_a_phone_no_button_of_a_figure_covers_an_entry_of_its_legend(browser: Browser, app: str, app_models: Path) -> None:
    """The buttons of a figure are there after a touch."""
    run = of_other_data(analysed(sample_run()), "phone", "5" * 64)
    names = [write_run(run, app_models, "phone", f"{name}-s0-with-a-rather-long-name", variant=name) for name in ("semi", "basic")]
    page = browser.new_page(viewport={"width": 390, "height": 1400})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{app}/degree?{urlencode({'run': names}, doseq=True)}")
    page.locator("[data-testid=stPlotlyChart] .legend .traces").first.wait_for()
    page.wait_for_selector(QUIET)
    covered = page.evaluate(
        """() => [...document.querySelectorAll('[data-testid=stPlotlyChart]')].flatMap(chart => {
            const box = one => one.getBoundingClientRect()
            const buttons = [...chart.querySelectorAll('.modebar-btn')].map(box)
            const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
            const entries = [...chart.querySelectorAll('.legend .traces')]
            if (!buttons.length || !entries.length) throw new Error('nothing to compare')
            return entries.filter(entry => buttons.some(button => meets(box(entry), button))).map(entry => entry.textContent)
        })"""
    )
    page.close()
    assert not covered
