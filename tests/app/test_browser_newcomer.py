"""What somebody who has read only the README wants first, in a browser: what matches and why, the rival, two runs, reviews, a link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from app.reviewing import LEAST_SECONDS
from benchmarks.served_app import QUIET
from engine.reviews import ReviewStore
from engine.util.paths import reviews_file
from tests.analysis.worlds import random_task
from tests.app.conftest import PATIENCE, of_other_data
from tests.app.test_browser import EXPECTED, TABLE_ROW, address_says, asked, heading, pytestmark
from tests.app.test_explain import written
from tests.explanation.runs import drawn_run
from tests.run_fixture import analysed, sample_run, write_run

__all__ = ["pytestmark"]

DATA, DRAWN_DATA = "5" * 64, "6" * 64
ENTITY, MATCH, RIVAL = "b 7", "a 4", "a 6"  # of a run with weights, so that it can be explained
RUN, OTHER_RUN = "newcomer/basic-s0-0000drawn", "newcomer/basic-s1-0000drawn"
OTHER_MATCH = "a 12"
CITY, CITY_MATCH, CITY_MISTAKE = "Stadt 30", "City 30", "City 22"  # of the runs that can be compared
PAIR = ".st-key-pair_card h5"


@pytest.fixture(scope="session")
def explainable(app_models: Path) -> str:
    """Two runs with weights of the same data, of which the first has a pair right that the second has wrong; the first as in an address."""
    runs = drawn_run(5), drawn_run(6, task=random_task(np.random.default_rng(5)))
    for seed, run in enumerate(runs):
        named = replace(run, manifest={**run.manifest, "data": {"fingerprint": DRAWN_DATA}, "seed": seed})
        written(named, app_models, dataset="newcomer", run_id=f"basic-s{seed}-0000drawn", created="2026-10-01T12:00:00+00:00")
    return quote(RUN, safe="")


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Of somebody who has never opened the app, on a laptop."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page on which nothing may go wrong unseen."""
    problems: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" and EXPECTED not in str(message.location) else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    assert page.locator("[data-testid=stException]").count() == 0
    assert not problems


def main(page: Page) -> Locator:
    return page.locator("[data-testid=stMain]")


def find(page: Page, name: str) -> None:
    """Search from wherever one is, by keyboard alone."""
    page.get_by_label("Find an entity").wait_for(state="attached")
    page.wait_for_selector(QUIET)
    page.wait_for_timeout(300)  # the script of the keys is there a moment after the page
    page.keyboard.press("/")
    expect(page.get_by_label("Find an entity")).to_be_focused(timeout=PATIENCE)
    page.keyboard.type(name)
    page.locator(".st-key-quick_results a").first.wait_for()
    page.keyboard.press("Enter")
    heading(page, name)


def explained(page: Page) -> str:
    """From the entity to its explanation; the verdict."""
    main(page).get_by_role("link", name="Explain score").first.click()
    page.get_by_role("tab", name="Alternatives").wait_for()
    page.wait_for_selector(QUIET)
    return main(page).locator("h4").first.inner_text()


def spoken(page: Page) -> str:
    """What the page says, without the marks that keep names in their own direction of writing."""
    return main(page).inner_text().replace("\u2068", "").replace("\u2069", "")


def cells(table: Locator, column: str) -> list[str]:
    """A column of a table, as a screen reader has it."""
    table.locator("[role=gridcell]").first.wait_for(state="attached")
    heads = [one.strip() for one in table.locator("[role=columnheader]").all_text_contents()]
    place = table.locator("[role=columnheader]").nth(heads.index(column)).get_attribute("aria-colindex")
    return table.locator(f"[role=gridcell][aria-colindex='{place}']").all_text_contents()


def test_what_matches_why_and_which_is_the_rival(page: Page, app: str, explainable: str) -> None:
    page.goto(f"{app}/?run={explainable}")
    find(page, ENTITY)
    expect(main(page).get_by_text("correct: test link").first).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("table", name="Table: matches").locator("tbody td").first).to_have_text(MATCH, timeout=PATIENCE)
    verdict = explained(page)
    assert re.search(rf"\d of \d neighbours match, '{RIVAL}' is a close rival", verdict)
    assert "A test link confirms the pair." in verdict
    said = spoken(page)
    assert f"'{MATCH}' and '{ENTITY}' are each other's best match" in said
    assert re.search(r"Neighbours: \d+ of \d+ of the source and \d+ of \d+ of the target are aligned with each other", said)
    assert re.search(rf"Runner-up: .*'{RIVAL}' \(CSLS \S+, margin \S+\) for the target", said)
    page.get_by_role("tab", name="Alternatives").click()
    address_says(page, "tab", "alternatives")
    expect(main(page).get_by_text("Other candidates of").nth(1)).to_be_visible(timeout=PATIENCE)
    page.wait_for_selector(QUIET)
    assert cells(page.get_by_test_id("stDataFrame").nth(1), "candidate")[0] == RIVAL
    page.get_by_role("tab", name="Other runs").click()
    address_says(page, "tab", "other-runs")
    page.wait_for_selector(QUIET)
    runs = page.get_by_test_id("stDataFrame").first
    best = dict(zip(cells(runs, "run"), zip(cells(runs, "best match"), cells(runs, "verdict"), strict=True), strict=True))
    assert best[RUN] == (MATCH, "✓ correct (test)")
    assert best[OTHER_RUN] == (OTHER_MATCH, "× incorrect")


@pytest.mark.slow  # test_compare has the list and its links
def test_a_pair_that_one_run_has_right_and_the_other_wrong(page: Page, app: str) -> None:
    page.goto(f"{app}/?run=towns%2Fsemi-s0")
    main(page).get_by_role("link", name=re.compile("Compare 2 runs")).first.click()
    main(page).get_by_role("button", name="Swap").click()
    expect(main(page).get_by_role("radio", name="basic")).to_be_checked(timeout=PATIENCE)
    page.get_by_role("tab", name="Changed predictions").click()
    expect(main(page).locator("h3").first).to_contain_text(", incorrect in", timeout=PATIENCE)
    page.get_by_label("Search in this list").fill(CITY)
    page.keyboard.press("Enter")
    expect(main(page).get_by_text("1 entity. Select a row")).to_be_visible(timeout=PATIENCE)
    page.wait_for_selector(QUIET)
    table = page.get_by_test_id("stDataFrame").first
    assert cells(table, "counterpart") == [CITY_MATCH]
    table.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 18, box["y"] + 1.5 * TABLE_ROW)
    heading(page, CITY)
    other = main(page).get_by_text("best match").filter(has_text=CITY_MISTAKE)
    expect(other.first).to_contain_text("× incorrect", timeout=PATIENCE)


@pytest.fixture(scope="session")
def judged(app_models: Path) -> str:
    """A run of data that this test alone reviews, as in an address."""
    return quote(write_run(of_other_data(analysed(sample_run()), "judged", DATA), app_models, "judged", "basic-s0"), safe="")


def decided(page: Page, key: str) -> str:
    """Decide the pair on the screen by a key; which one it was."""
    before = looked_at(page)
    page.keyboard.press(key)
    expect(page.locator(PAIR)).not_to_have_text(before, timeout=PATIENCE)
    return before


def looked_at(page: Page) -> str:
    page.get_by_role("button", name="Accept").wait_for()
    page.wait_for_selector(QUIET)
    page.wait_for_timeout(round(LEAST_SECONDS * 1000) + 100)
    return page.locator(PAIR).inner_text()


def test_pairs_by_keyboard_while_a_colleague_reviews(page: Page, browser: Browser, app: str, app_models: Path, judged: str) -> None:
    other = browser.new_context(viewport={"width": 1280, "height": 800})
    other.set_default_timeout(PATIENCE)
    colleague = other.new_page()
    for one, name in ((page, "Newcomer"), (colleague, "Colleague")):
        one.goto(f"{app}/review?run={judged}&known=yes")
        one.get_by_label("Your name").fill(name)
        one.keyboard.press("Enter")
    seen: dict[str, list[str]] = {"Newcomer": [], "Colleague": []}
    for number, key in enumerate("axax"):
        if number < 2:  # in turn: each has the next pair on the screen while the other decides
            seen["Colleague"].append(decided(colleague, "a"))
        seen["Newcomer"].append(decided(page, key))
    expect(page.get_by_text("4 decided by you")).to_be_visible(timeout=PATIENCE)
    expect(main(page)).to_contain_text("6 by all", timeout=PATIENCE)
    other.close()
    everything = [*seen["Newcomer"], *seen["Colleague"]]
    assert len(set(everything)) == len(everything) == 6
    store = ReviewStore(reviews_file(app_models))
    kept = store.history(DATA)
    store.close()
    assert len({decision.pair for decision in kept}) == len(kept) == 6
    assert [one.verdict for one in kept if one.author == "Newcomer"] == ["accept", "reject"] * 2


def test_a_link_shows_a_colleague_the_same_view(page: Page, browser: Browser, app: str, explainable: str) -> None:
    page.goto(f"{app}/explain?run={explainable}&target={quote(ENTITY)}&side=target")
    page.get_by_role("tab", name="Alternatives").click()
    address_says(page, "tab", "alternatives")
    page.wait_for_selector(QUIET)
    page.get_by_role("button", name="Share").click()
    shared = page.locator("[data-testid=stPopoverBody] [data-testid=stCode]")
    expect(shared.nth(1)).to_contain_text("Data fingerprint", timeout=PATIENCE)
    link = shared.first.inner_text().replace("\n", "").strip()
    assert link.startswith(app)
    other = browser.new_context(viewport={"width": 1280, "height": 800})
    colleague = other.new_page()
    colleague.set_default_timeout(PATIENCE)
    colleague.goto(link)
    for place in ("h3", "h4", "[role=tab][aria-selected=true]"):
        expect(main(colleague).locator(place).first).to_have_text(main(page).locator(place).first.inner_text(), timeout=PATIENCE)
    colleague.wait_for_selector(QUIET)
    assert asked(colleague) == asked(page)
    other.close()


def test_on_a_phone_the_sidebar_makes_way_for_what_was_found(page: Page, app: str, explainable: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{app}/?run={explainable}")
    find(page, ENTITY)
    sidebar = page.locator("[data-testid=stSidebar]")
    expect(sidebar).to_have_attribute("data-collapsed", "true", timeout=PATIENCE)
    page.locator("[data-testid=stExpandSidebarButton]").click()
    expect(sidebar).to_have_attribute("data-collapsed", "false", timeout=PATIENCE)
    page.locator(".st-key-navigation a", has_text="Explain").click()
    expect(sidebar).to_have_attribute("data-collapsed", "true", timeout=PATIENCE)
    expect(main(page).locator("h4").first).to_contain_text("neighbours match", timeout=PATIENCE)
