"""What only a browser can show: the address bar, clicks, the way back. Skipped where there is no Chromium."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from app.pages import PAGES
from app.pages import Page as AppPage
from tests.run_fixture import analysed, sample_run, write_run

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
EXPECTED = "/_stcore/"  # Streamlit looks for its own address beneath the page's, and finds nothing there
PATIENCE = 90_000  # milliseconds, for a machine that is busy

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app's address, with one run in its models folder."""
    models = tmp_path_factory.mktemp("models")
    write_run(analysed(sample_run()), models, "towns", "basic-s0")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.address", "127.0.0.1", "--server.port", str(port)]
    environment = {**os.environ, "DUAL_AMN_MODELS": str(models)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/_stcore/health", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(240):
        assert process.poll() is None, "the app ended at once"
        try:
            with urllib.request.urlopen(address, timeout=1):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.25)
    raise TimeoutError(address)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"], timeout=PATIENCE
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 1900})
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()


def entity_path(number: int) -> str:
    return "/entity?" + urlencode({"run": "towns/basic-s0", "side": "source", "entity": f"http://one.example/resource/Entity_{number}"})


def heading(page: Page, label: str) -> None:
    """Wait until the page is about this entity."""
    expect(page.locator("h3").first).to_contain_text(label, timeout=PATIENCE)


def asked(page: Page) -> dict[str, str]:
    """The parameters in the address bar."""
    return {name: values[0] for name, values in parse_qs(urlsplit(str(page.evaluate("location.href"))).query).items()}


def test_home_leads_to_the_run(page: Page, app: str) -> None:
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.goto(app)
    page.get_by_text("Open", exact=True).click()
    page.get_by_text("start with one of the best connected").wait_for()
    assert asked(page) == {"run": "towns/basic-s0"}
    assert not [url for url in failed if not url.startswith(app)], "nothing is fetched from elsewhere"


@pytest.mark.parametrize("asked_page", PAGES, ids=lambda page: page.name)
def test_every_page_opens_by_the_navigation_keeps_the_run_and_leaves_the_console_clean(page: Page, app: str, asked_page: AppPage[Any]) -> None:
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" and EXPECTED not in str(message.location) else None)
    page.goto(app + "/entity?run=towns%2Fbasic-s0")
    page.get_by_text("start with one of the best connected").wait_for()
    page.locator(".st-key-navigation a", has_text=asked_page.title).click()
    title = f"{asked_page.title} · towns/basic-s0 · " if asked_page.least else f"{asked_page.title} · "
    expect(page).to_have_title(re.compile(re.escape(title)), timeout=PATIENCE)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    assert asked(page) == {"run": "towns/basic-s0"}
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.set_viewport_size({"width": 390, "height": 900})
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth <= window.innerWidth"), "nothing sticks out on a phone"
    assert not problems


def test_search_opens_an_entity_the_address_follows_and_back_leads_back(page: Page, app: str) -> None:
    page.goto(app + entity_path(5))
    heading(page, "City 5")
    page.get_by_label("Search by label, id or URI").press_sequentially("city 15")
    page.locator("[data-testid=stPageLink-NavLink]", has_text="City 15").first.click()
    heading(page, "City 15")
    assert asked(page)["entity"] == "http://one.example/resource/Entity_15"
    page.go_back()
    heading(page, "City 5")


def test_a_click_on_a_neighbour_opens_it(page: Page, app: str) -> None:
    page.goto(app + entity_path(0))
    heading(page, "Germany")
    figure = page.locator("[data-testid^=stECharts]").first
    figure.locator("canvas").first.wait_for()
    page.wait_for_timeout(1500)
    box = figure.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 0.27 * box["width"], box["y"] + 17)
    heading(page, "City 4")


def test_a_hostile_label_runs_no_script(page: Page, app: str) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(app + entity_path(10))
    heading(page, "<script>alert(1)</script>")
    page.goto(app + entity_path(11))
    heading(page, "**bold** [link](javascript:alert(1)) :red[x] $x^2$")
    assert not dialogs
    assert page.locator("a[href^=javascript]").count() == 0
