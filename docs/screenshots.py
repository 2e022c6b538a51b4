"""Takes the pictures of every page: ``python docs/screenshots.py``, from the project's folder, with at least one run in the models folder.

Starts the app by itself on a free port, opens each page in Chromium at two widths, light and dark, and writes ``docs/screenshots/*.png``. Pages of
several runs show one run of each variant of the same data. Fails when a page shows an error or the browser's console does: it is a check as well.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.served_app import BROWSER_OPTIONS, QUIET, addresses, served  # noqa: E402  (the folder has to be on the path first)

SIZES: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1280, "light"), (1280, "dark"), (390, "light"))
TALLEST = 3200
PATIENCE = 90_000  # milliseconds, for a machine that is busy
EXPECTED = "/_stcore/"  # Streamlit looks for its own address below the page's, and finds nothing there


def main() -> int:
    """Take the pictures; returns the exit code."""
    parsed = arguments().parse_args()
    parsed.out.mkdir(parents=True, exist_ok=True)
    pages = {name: address for name, address in addresses(parsed.models, parsed.run, parsed.entity).items() if name in (parsed.pages or [name])}
    with served(parsed.models) as (base, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=parsed.browser, args=list(BROWSER_OPTIONS))
        problems = [problem for name, address in pages.items() for problem in pictures(browser, base + address, parsed.out, name)]
        browser.close()
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Take pictures of every page of the app.")
    parser.add_argument("--models", type=Path, default=PROJECT / "models", help="folder with runs")
    parser.add_argument("--run", help="run to show; default: the newest")
    parser.add_argument("--entity", default="Bavaria", help="entity to show, by label, id or URI; default: %(default)s, or else the best connected")
    parser.add_argument("--pages", nargs="+", metavar="PAGE", help="only these; default: all")
    parser.add_argument("--out", type=Path, default=PROJECT / "docs" / "screenshots", help="where the pictures go")
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"), help="Chromium's program file")
    return parser


def pictures(browser: Browser, address: str, folder: Path, name: str) -> list[str]:
    """One page at every size; returns what went wrong."""
    problems: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and EXPECTED not in str(message.location):
            problems.append(f"{name}: console: {message.text}")

    for width, scheme in SIZES:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", note)
        page.goto(address)
        settle(page)
        grow(page, width)
        problems += [f"{name}: {alert}" for alert in page.locator("[data-testid=stException]").all_inner_texts()]
        page.screenshot(path=folder / f"{name}-{scheme}-{width}.png")
        context.close()
    return problems


def settle(page: Page) -> None:
    """Until the page is complete and its charts are drawn."""
    page.wait_for_selector(QUIET)
    page.wait_for_timeout(2_500)


def grow(page: Page, width: int) -> None:
    """Make the window as tall as the page, which scrolls within it."""
    height = int(page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight"))
    page.set_viewport_size({"width": width, "height": min(max(height + 40, 600), TALLEST)})
    page.wait_for_timeout(1_200)


if __name__ == "__main__":
    sys.exit(main())
