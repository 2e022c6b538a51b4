"""What only a browser can show: the address bar, clicks, the way back. Skipped where there is no Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from app.pages import ENTITY, PAGES, REVIEW
from app.pages import Page as AppPage
from benchmarks.served_app import QUIET
from tests.app.conftest import CHROMIUM, PATIENCE

EXPECTED = "/_stcore/"  # Streamlit looks for its own address below the page's, and finds nothing there
TABLE_ROW = 35  # pixels
TOWN = "http://one.example/resource/Entity_5"
WALKED_TO = (REVIEW,)

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 1900})
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()


every_page = pytest.mark.parametrize(
    "asked_page", [page if page in WALKED_TO else pytest.param(page, marks=pytest.mark.slow) for page in PAGES], ids=lambda page: page.name
)
"""Some by default, all by the slow tests."""


def entity_path(number: int) -> str:
    return "/entity?" + urlencode({"run": "towns/basic-s0", "side": "source", "entity": f"http://one.example/resource/Entity_{number}"})


def heading(page: Page, label: str) -> None:
    """Wait until the page is about this entity."""
    expect(page.locator("h3").first).to_contain_text(label, timeout=PATIENCE)


def asked(page: Page) -> dict[str, str]:
    """The parameters in the address bar."""
    return {name: values[0] for name, values in parse_qs(urlsplit(str(page.evaluate("location.href"))).query).items()}


def address_says(page: Page, name: str, value: str) -> None:
    """Wait until the address bar has this value: it follows the page a moment later."""
    page.wait_for_function("([name, value]) => new URLSearchParams(location.search).get(name) === value", arg=[name, value])


@pytest.mark.slow  # the analyst's path begins so
def test_home_leads_to_the_run(page: Page, app: str) -> None:
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.goto(app)
    page.wait_for_selector(QUIET)
    page.wait_for_timeout(1500)
    table = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    assert table is not None
    page.mouse.click(table["x"] + table["width"] - TABLE_ROW, table["y"] + 2.5 * TABLE_ROW)  # at the end of the second row
    page.get_by_text("start with one of the entities with the most triples").wait_for()
    assert asked(page) == {"run": "towns/semi-s0"}
    assert not [url for url in failed if not url.startswith(app)], "nothing is fetched from elsewhere"


@every_page
def test_every_page_opens_by_the_navigation_keeps_the_run_and_leaves_the_console_clean(page: Page, app: str, asked_page: AppPage[Any]) -> None:
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" and EXPECTED not in str(message.location) else None)
    page.goto(app + "/entity?run=towns%2Fbasic-s0")
    page.get_by_text("start with one of the entities with the most triples").wait_for()
    page.locator(".st-key-navigation a", has_text=asked_page.title).click()
    title = f"{asked_page.title} · towns/basic-s0 · " if asked_page.least else f"{asked_page.title} · "
    expect(page).to_have_title(re.compile(re.escape(title)), timeout=PATIENCE)
    page.wait_for_selector(QUIET)
    expect(page.locator(".st-key-navigation a[aria-current=page]")).to_have_text(re.compile(f"{asked_page.title}$"), timeout=PATIENCE)
    assert asked(page) == {"run": "towns/basic-s0"}
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollWidth <= window.innerWidth", timeout=PATIENCE)  # on a phone
    assert not problems


def test_search_opens_an_entity_the_address_follows_and_back_leads_back(page: Page, app: str) -> None:
    page.goto(app + entity_path(5))
    heading(page, "City 5")
    page.get_by_label("Search by label, ID or URI").press_sequentially("city 15")
    page.locator("[data-testid=stPageLink-NavLink]", has_text="City 15").first.click()
    heading(page, "City 15")
    address_says(page, "entity", "http://one.example/resource/Entity_15")
    page.go_back()
    heading(page, "City 5")


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0, 2000], ids=["at once", "when the result is shown"])
def test_enter_opens_the_only_result(page: Page, app: str, pause: int) -> None:
    page.goto(app + entity_path(5))
    heading(page, "City 5")
    page.wait_for_selector(QUIET)
    box = page.get_by_label("Search by label, ID or URI")
    box.press_sequentially("city 1")
    page.locator("[data-testid=stPageLink-NavLink]", has_text="City 15").first.wait_for()
    box.press("Enter")  # several results: nothing is opened
    page.wait_for_timeout(1000)
    heading(page, "City 5")
    box.press_sequentially("5")
    page.wait_for_timeout(pause)
    page.get_by_text("◆", exact=False).first.wait_for()
    box.press("Enter")
    heading(page, "City 15")
    address_says(page, "entity", "http://one.example/resource/Entity_15")


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])  # test_browser_newcomer searches by keys on a phone
def test_keys_lead_to_the_search_and_enter_opens_what_it_finds(page: Page, app: str, width: int) -> None:
    """On a narrow screen the sidebar is folded, and opens for it."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{app}/degree?run=towns%2Fbasic-s0")
    page.get_by_role("tab", name="Accuracy").wait_for()
    page.wait_for_selector(QUIET)
    page.locator(".st-key-navigation a[aria-current=page]").wait_for(state="attached")  # by the script that the keys belong to
    box = page.get_by_label("Find an entity")
    for key in ("Control+k", "/"):
        page.keyboard.press(key)
        expect(box).to_be_focused(timeout=PATIENCE)
        box.press("Tab")
        expect(box).not_to_be_focused(timeout=PATIENCE)
    page.keyboard.press("/")
    expect(box).to_be_focused(timeout=PATIENCE)
    page.keyboard.type("a/b")
    expect(box).to_have_value("a/b", timeout=PATIENCE)
    box.fill("")
    box.press_sequentially("city 15")
    page.locator(".st-key-quick_results").get_by_text("City 15").wait_for()
    box.press("Enter")
    heading(page, "City 15")
    assert asked(page)["run"] == "towns/basic-s0"


@pytest.mark.slow
def test_what_is_shared_follows_the_page(page: Page, app: str) -> None:
    """A choice inside of a part that is drawn alone is in the link as well."""
    page.goto(app + entity_path(5))
    heading(page, "City 5")
    page.wait_for_selector(QUIET)
    page.get_by_role("radiogroup", name="Hops").get_by_text("2", exact=True).click()
    address_says(page, "hops", "2")
    page.wait_for_selector(QUIET)
    page.get_by_role("button", name="Share").click()
    link = page.locator("[data-testid=stPopoverBody] [data-testid=stCode]").first
    expect(link).to_contain_text("hops=2", timeout=PATIENCE)
    assert link.inner_text().strip() == page.url.replace("%20", "+")


def test_an_identifier_is_shown_as_it_is_and_copied(browser: Browser, app: str) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 1900}, permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(app + entity_path(5))
        heading(page, "City 5")
        expect(page.locator("code").first).to_have_text(TOWN, timeout=PATIENCE)
        copy = page.get_by_role("button", name="Copy the identifier of City 5").first
        copy.click()
        expect(copy).to_have_text("Copied", timeout=PATIENCE)
        assert page.evaluate("navigator.clipboard.readText()") == TOWN


def click_a_neighbour(page: Page) -> None:
    """Some neighbour in the facing figure, whose boxes are drawn and are no elements: column by column until one answers."""
    page.get_by_text("Neighbourhood comparison").first.scroll_into_view_if_needed()
    page.mouse.wheel(0, 600)  # it is drawn once it is scrolled to
    figure = page.locator("[data-testid^=stECharts]").first
    figure.locator("canvas").first.wait_for()
    page.wait_for_selector(QUIET)
    page.wait_for_timeout(1500)
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    assert box is not None
    offer = page.get_by_role("button", name="Expand here")
    for across in (0.365, 0.06, 0.94):
        for down in range(17, int(box["height"]), 15):
            page.mouse.click(box["x"] + across * box["width"], box["y"] + down)
            page.wait_for_timeout(400)
            page.wait_for_selector(QUIET)
            if offer.count():
                return
    raise AssertionError("no neighbour answers a click")


def choose_row(page: Page, heading: str, row: int) -> None:
    """A row of the first table below a heading, by the box in front of it; the first row is 0."""
    table = page.locator(f"xpath=//h3[contains(., '{heading}')]/following::*[@data-testid='stDataFrame'][1]")
    table.locator("canvas").first.wait_for()
    page.wait_for_selector(QUIET)
    page.wait_for_timeout(1500)  # figures above it grow
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 18, box["y"] + (row + 1.5) * TABLE_ROW)


def main_part(page: Page) -> str:
    """The text of the page below the navigation and the choice of runs, once it is complete, times of day left out."""
    page.wait_for_selector(QUIET)
    page.get_by_text("Neighbours as a table").wait_for()
    page.wait_for_selector("[data-testid=stSkeleton]", state="detached")
    page.wait_for_timeout(1500)
    shown = page.locator("[data-testid=stMain]").inner_text()
    return re.sub(r"\d+ \w+ ago|just now", "", shown.partition(ENTITY.question)[2])


def test_tabs_are_in_the_address_and_the_way_back_leads_through_them(page: Page, app: str) -> None:
    page.goto(f"{app}/degree?run=towns%2Fbasic-s0")
    page.get_by_role("figure", name=re.compile(r"Hits@1 .* Data: graph target, bucket")).wait_for()
    page.get_by_role("tab", name="Misses and hits").click()
    address_says(page, "tab", "entities")
    page.get_by_label("Search in this list").wait_for()
    expect(page.locator("[data-testid=stPlotlyChart]")).to_have_count(0, timeout=PATIENCE)
    page.go_back()
    page.locator("[data-testid=stPlotlyChart]").first.wait_for()
    expect(page.get_by_role("tab", name="Accuracy")).to_have_attribute("aria-selected", "true", timeout=PATIENCE)


@pytest.mark.slow
def test_a_click_on_a_neighbour_offers_it_and_nothing_moves(page: Page, app: str) -> None:
    page.goto(app + entity_path(20))
    heading(page, "City 20")
    figure = page.locator("[data-testid^=stECharts]").first
    click_a_neighbour(page)
    opens = page.get_by_role("link", name="Open").first
    opens.wait_for()
    before = figure.bounding_box()
    page.get_by_role("button", name="Expand here").click()
    page.get_by_role("button", name="Close").wait_for()
    assert asked(page)["expand"].startswith("source:http://one.example/resource/Entity_")
    assert figure.bounding_box() == before, "the figure stays where it is"
    wanted = asked(page)["expand"].removeprefix("source:")
    opens.click()
    address_says(page, "entity", wanted)


@pytest.mark.slow
def test_an_analysts_path(browser: Browser, page: Page, app: str) -> None:
    """Home, a run, a name in Chinese, a match, a neighbour, two runs beside each other, a flipped entity, the same again in a fresh browser."""
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" and EXPECTED not in str(message.location) else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: None if request.url.startswith(app) else problems.append(f"fetched from elsewhere: {request.url}"))
    page.goto(app)
    page.get_by_role("link", name="Open best run").first.click()
    page.get_by_text("start with one of the entities with the most triples").wait_for()

    page.get_by_label("Search by label, ID or URI").press_sequentially("北京")
    page.locator("[data-testid=stPageLink-NavLink]", has_text="北京市").first.click()
    heading(page, "北京市")

    page.get_by_role("table", name="Table: matches").locator("tbody tr").nth(1).click()
    page.wait_for_function("new URLSearchParams(location.search).has('match')")
    page.get_by_text("incorrect: contradicts a known link").first.wait_for()
    click_a_neighbour(page)
    page.get_by_role("link", name="Open").first.click()
    page.wait_for_function("!new URLSearchParams(location.search).get('entity').endsWith('Entity_13')")

    page.locator("[data-testid=stPageLink-NavLink]", has_text="Compare").first.click()
    together = page.locator("[data-testid=stPageLink-NavLink]", has_text="semi-s0")
    together.click()
    page.wait_for_function("new URLSearchParams(location.search).getAll('run').length === 2")
    page.wait_for_selector(QUIET)

    page.get_by_role("tab", name="Changed predictions").click()
    address_says(page, "tab", "changed")
    page.get_by_text(re.compile(r"^lost · \d")).click()
    address_says(page, "flip", "lost")
    choose_row(page, "Correct in", 0)
    page.wait_for_url("**/entity?*")
    page.get_by_text("This entity in the other open runs").wait_for()
    assert "rank" in page.locator("[data-testid=stPageLink-NavLink]", has_text="CSLS").first.inner_text()

    shown = main_part(page)
    assert "Neighbourhood comparison" in shown
    fresh = browser.new_context(viewport={"width": 1280, "height": 1900})
    again = fresh.new_page()
    again.set_default_timeout(PATIENCE)
    again.goto(page.url)
    again.get_by_text("This entity in the other open runs").wait_for()
    assert main_part(again) == shown
    fresh.close()
    assert not problems


def test_a_hostile_label_runs_no_script(page: Page, app: str) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(app + entity_path(10))
    heading(page, "<script>alert(1)</script>")
    page.goto(app + entity_path(11))
    heading(page, "**bold** [link](javascript:alert(1)) :red[x] $x^2$")
    assert not dialogs
    assert page.locator("a[href^=javascript]").count() == 0
