"""Reviewing by keyboard in a browser: some pairs, a note, a key pressed in haste, two reviewers. Skipped where there is no Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from app.reviewing import LEAST_SECONDS
from benchmarks.served_app import QUIET
from engine.reviews import ReviewStore
from engine.util.paths import reviews_file
from tests.app.conftest import PATIENCE, of_other_data
from tests.app.test_browser import EXPECTED, TABLE_ROW, pytestmark
from tests.explore.test_review_queue import calibrated, queue_of
from tests.run_fixture import analysed, sample_run, write_run

__all__ = ["pytestmark"]

DATA, SURE_DATA = "3" * 64, "4" * 64
PAIR = ".st-key-pair_card h5"
BURST = """() => { for (let i = 0; i < 5; i++) document.dispatchEvent(new KeyboardEvent("keydown", {key: "a", code: "KeyA", bubbles: true})) }"""
KEYS = {"a": "accept", "x": "reject", "s": "skip"}


@pytest.fixture(scope="session")
def reviewed(app_models: Path) -> str:
    """A run of data that these tests alone review, as in an address."""
    return quote(write_run(of_other_data(analysed(sample_run()), "reviewed", DATA), app_models, "reviewed", "basic-s0"), safe="")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 1200})
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()


def settled(page: Page) -> str:
    """The pair that is shown when the page has come to rest, long enough to have been looked at."""
    page.get_by_role("button", name="Accept").wait_for()  # drawn last
    page.wait_for_selector(QUIET)
    page.wait_for_timeout(round(LEAST_SECONDS * 1000) + 100)
    return page.locator(PAIR).inner_text()


def pressed(page: Page, key: str) -> str:
    """Press a key and wait for another pair."""
    before = settled(page)
    page.keyboard.press(key)
    expect(page.locator(PAIR)).not_to_have_text(before, timeout=PATIENCE)
    return before


def test_pairs_by_keyboard(page: Page, app: str, app_models: Path, reviewed: str) -> None:
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" and EXPECTED not in str(message.location) else None)
    page.goto(f"{app}/review?run={reviewed}&known=yes")
    page.get_by_label("Your name").fill("Zoë")
    page.keyboard.press("Enter")
    keys = [*"axsa"]
    seen = [pressed(page, key) for key in keys]
    assert len(set(seen)) == 4
    last = settled(page)
    page.keyboard.press("u")
    expect(page.locator(PAIR)).to_have_text(seen[-1], timeout=PATIENCE)
    settled(page)
    note = page.get_by_label("Note")
    note.click()
    note.press_sequentially("sax: a, x, s and u are letters here")
    assert settled(page) == seen[-1], "keys are letters in the note"
    note.press("Enter")
    page.wait_for_selector(QUIET)
    page.get_by_role("button", name="Accept").click()
    expect(page.locator(PAIR)).to_have_text(last, timeout=PATIENCE)
    store = ReviewStore(reviews_file(app_models))
    kept = store.history(DATA)
    store.close()
    assert [decision.verdict for decision in kept] == [KEYS[key] for key in keys] + ["accept"]
    assert [decision.withdrawn for decision in kept] == [False] * 3 + [True, False]
    assert kept[-1].choice.note == "sax: a, x, s and u are letters here"
    assert kept[-1].pair == kept[-2].pair
    assert {decision.author for decision in kept} == {"Zoë"}
    assert not problems


def test_a_key_that_is_pressed_in_haste_decides_once(page: Page, app: str, app_models: Path, reviewed: str) -> None:
    page.goto(f"{app}/review?run={reviewed}&known=yes&reviewer=Held")
    settled(page)
    page.evaluate(BURST)
    settled(page)
    store = ReviewStore(reviews_file(app_models))
    mine = [decision for decision in store.history(DATA) if decision.author == "Held"]
    store.close()
    assert len(mine) == 1


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.slow) for kind in ("uncertain", "sure", "sample", "decided")])
def test_no_serious_barrier_while_reviewing(browser: Browser, app: str, reviewed: str, kind: str, scheme: Literal["light", "dark"]) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 1600}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{app}/review?run={reviewed}&known=yes&reviewer=Axe&kind={kind}&threshold=0.1")
    page.get_by_text("Reviewing as").first.wait_for()
    page.wait_for_selector(QUIET)
    page.wait_for_selector("[data-testid=stSkeleton]", state="detached")
    page.wait_for_timeout(1500)  # what has just been drawn fades in
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    context.close()
    assert not [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in ("serious", "critical")]


@pytest.mark.slow
def test_two_reviewers_are_shown_different_pairs(browser: Browser, app: str, reviewed: str) -> None:
    shown = []
    for name in ("One", "Two"):
        page = browser.new_page(viewport={"width": 390, "height": 900})
        page.set_default_timeout(PATIENCE)
        page.goto(f"{app}/review?run={reviewed}&known=yes&reviewer={name}")
        shown.append(settled(page))
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth <= window.innerWidth")
        page.close()
    assert shown[0] != shown[1]


def settle(page: Page) -> str:
    """The label of the button below the list when the page has come to rest."""
    page.wait_for_timeout(300)
    page.wait_for_selector(QUIET)
    page.wait_for_timeout(900)
    return accept(page).inner_text()


def accept(page: Page) -> Locator:
    """The button below the list."""
    return page.get_by_test_id("stBaseButton-secondary").filter(has_text=re.compile(r"Accept \d"))


def tick(page: Page, row: int) -> None:
    """Click the box in front of a row of the list."""
    box = page.locator("[data-testid=stDataFrame] canvas").first.bounding_box()
    assert box
    page.mouse.click(box["x"] + 20, box["y"] + TABLE_ROW * (row + 1.5))


@pytest.mark.slow
def test_bulk_keeps_what_is_on_the_screen_while_another_reviewer_decides(browser: Browser, app: str, app_models: Path) -> None:
    run = of_other_data(calibrated(sample_run()), "sure", SURE_DATA)
    queue = queue_of(run)
    offered = [queue.pair(row) for row in queue.sure_pairs(queue.left([], "Ann"), 0.2).rows.tolist()]
    name = quote(write_run(run, app_models, "sure", "basic-s0"), safe="")
    store = ReviewStore(reviews_file(app_models))
    ann, bob = (browser.new_page(viewport={"width": 1280, "height": 1400}) for _ in range(2))
    for page in (ann, bob):
        page.set_default_timeout(PATIENCE)
    ann.goto(f"{app}/review?run={name}&reviewer=Ann&kind=sure&threshold=0.2")
    ann.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    assert f"Accept {len(offered)} pairs" in settle(ann)
    tick(ann, 0)
    assert f"Accept {len(offered) - 1} pairs" in settle(ann)
    source, target = (quote(one, safe="") for one in offered[2])
    bob.goto(f"{app}/review?run={name}&reviewer=Bob&source={source}&target={target}")
    settled(bob)
    bob.keyboard.press("a")
    expect(bob.get_by_text("1 decided by you")).to_be_visible(timeout=PATIENCE)
    tick(ann, 1)
    assert f"Accept {len(offered) - 3} pairs" in settle(ann), "two that Ann took out, and the one that Bob has decided"
    assert "has been decided since" in ann.inner_text("[data-testid=stMain]")
    accept(ann).click()
    assert "Accept 0 pairs" in settle(ann)
    assert {one.pair for one in store.standing(SURE_DATA) if one.author == "Ann"} == set(offered) - {offered[0], offered[1], offered[2]}
    assert {one.pair for one in store.standing(SURE_DATA) if one.author == "Bob"} == {offered[2]}
    assert accept(ann).is_disabled()
    for page in (ann, bob):
        page.close()
    store.close()
