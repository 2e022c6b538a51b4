"""A run's report in a browser: nothing is requested, nothing is wider than a phone, and every element is accessible, in light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe

import engine
from tests.app.conftest import CHROMIUM
from tests.explore.test_review_queue import calibrated, contested_run
from tests.run_fixture import analysed, write_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's report in a file."""
    folder = tmp_path_factory.mktemp("report")
    name = write_run(calibrated(analysed(contested_run())), folder / "models")
    (folder / "report.html").write_text(engine.open_run(name, folder / "models").report(), encoding="utf-8")
    return folder / "report.html"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_page_as_a_file(browser: Browser, report: Path, scheme: str, width: int) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})  # type: ignore[arg-type]
    page = context.new_page()
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(report.as_uri())
    assert requests == [report.as_uri()]
    assert not complaints
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()
    context.close()
