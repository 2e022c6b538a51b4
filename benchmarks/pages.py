"""How fast are the app's pages in a browser, and what do many sessions cost?

    python -m benchmarks.pages [--models DIR] [--run RUN] [--entity NAME] [--repeats 5] [--sessions 20] [--out FILE]

Starts the app by itself, opens every page once so that the server is warm, and then measures in Chromium:

- first view: from the navigation in a fresh browser (nothing cached) until the script has ended, no skeleton is left and every Plotly
  figure is drawn;
- interaction: from the click on a choice that is not chosen until the script has ended again, for each choice of the page;
- sessions: pages open at once, in browsers of their own, and the growth of the server's resident memory by session (Linux).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, sync_playwright

from benchmarks.served_app import BROWSER_OPTIONS, PROJECT, QUIET, addresses, served
from benchmarks.tables import markdown, told

PATIENCE = 60_000  # milliseconds
MOST_CLICKS = 4
COMPLETE = """quiet => {
    const all = selector => [...document.querySelectorAll(selector)];
    return document.querySelector(quiet) !== null && document.querySelector('h1') !== null
        && all('[data-testid=stSkeleton]').length === 0
        && all('[data-testid=stPlotlyChart]').every(chart => chart.querySelector('.main-svg') !== null);
}"""
WATCH = """() => {
    const app = document.querySelector('[data-testid=stApp]');
    new MutationObserver(records => {
        window.changed = performance.now();
        const states = records.filter(record => record.attributeName === 'data-test-script-state' && record.target === app);
        if (states.length > 0 && app.dataset.testScriptState === 'notRunning') window.ended = window.changed;
    }).observe(app, {attributes: true, childList: true, characterData: true, subtree: true});
}"""
CLICK = """button => { window.ended = window.changed = 0; window.began = performance.now(); button.click(); }"""
# A script that is very fast may come and go between two frames, so that no state is ever drawn; its last change of the page tells then.
DONE = """still => {
    const end = window.ended || (performance.now() - window.changed > still ? window.changed : 0);
    return window.changed > 0 && end > 0 ? end - window.began : null;
}"""
STILL = 1500  # milliseconds
OPTIONS = "[data-testid=stMain] [data-testid=stButtonGroup] button[aria-checked=false]"


@dataclass(frozen=True)
class Timing:
    """Seconds of a page's first views and of its interactions."""

    first: Sequence[float]
    interactions: Sequence[float]


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)
    return told(lambda: study(parsed), parsed.out)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description="Time the app's pages in a browser.")
    parser.add_argument("--models", type=Path, default=PROJECT / "models", help="folder with runs")
    parser.add_argument("--run", help="run to show; default: the newest")
    parser.add_argument("--entity", default="Bavaria", help="entity to show, or else the best connected")
    parser.add_argument("--repeats", type=int, default=5, help="first views of each page")
    parser.add_argument("--sessions", type=int, default=20, help="pages open at once; 0: none")
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"), help="Chromium's program file")
    parser.add_argument("--out", type=Path, help="also write the table here")
    return parser


def study(parsed: argparse.Namespace) -> str:
    """All measurements, as Markdown."""
    pages = addresses(parsed.models, parsed.run, parsed.entity)
    with served(parsed.models) as (base, process), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=parsed.browser, args=list(BROWSER_OPTIONS))
        for address in pages.values():  # warms the server
            first_view(browser, base + address)
        timings = {name: timed(browser, base + address, parsed.repeats) for name, address in pages.items()}
        sessions = many(browser, [base + address for address in pages.values()], parsed.sessions, process) if parsed.sessions else ""
        browser.close()
    return f"{timing_table(timings)}\n\n{sessions}".rstrip()


def timed(browser: Browser, address: str, repeats: int) -> Timing:
    first = [first_view(browser, address) for _ in range(repeats)]
    return Timing(first, interactions(browser, address))


def first_view(browser: Browser, address: str) -> float:
    """Seconds until a page is complete in a browser that has never seen it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    started = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_function(COMPLETE, arg=QUIET)
    seconds = time.perf_counter() - started
    context.close()
    return seconds


def interactions(browser: Browser, address: str) -> list[float]:
    """Seconds from a click on each of a page's choices to the end of the script."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.wait_for_function(COMPLETE, arg=QUIET)
    page.evaluate(WATCH)
    found = []
    for number in range(MOST_CLICKS):
        if page.locator(OPTIONS).count() <= number:  # what is chosen decides what else can be
            break
        found.append(click(page, number))
        page.wait_for_timeout(300)
    context.close()
    return found


def click(page: Page, number: int) -> float:
    """Choose the ``number``-th of what is not chosen."""
    page.locator(OPTIONS).nth(number).evaluate(CLICK)
    milliseconds: float = page.wait_for_function(DONE, arg=STILL).json_value()
    return milliseconds / 1000


def many(browser: Browser, addresses: Sequence[str], sessions: int, process: int) -> str:
    """Many pages at once: what went wrong, and what they cost in memory."""
    before, contexts, failed = resident(process), [], 0
    for number in range(sessions):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 5)
        page.goto(addresses[number % len(addresses)], wait_until="commit")
        contexts.append((context, page))
    for _, page in contexts:
        try:
            page.wait_for_function(COMPLETE, arg=QUIET)
            failed += page.locator("[data-testid=stException]").count() > 0
        except Error:
            failed += 1
    growth = (resident(process) - before) / sessions
    for context, _ in contexts:
        context.close()
    return f"{sessions} sessions at once: {failed} failed; the server's resident memory grew by {growth:.1f} MiB a session."


def resident(process: int) -> float:
    """Resident memory of a process in MiB; nan where the system does not tell."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def timing_table(timings: Mapping[str, Timing]) -> str:
    """Medians by page, and of all pages together."""
    rows = [[name, seconds(one.first), seconds(one.interactions), str(len(one.interactions))] for name, one in timings.items()]
    firsts = [value for one in timings.values() for value in one.first]
    clicks = [value for one in timings.values() for value in one.interactions]
    rows.append(["all", seconds(firsts), seconds(clicks), str(len(clicks))])
    return markdown(["page", "first view, s", "interaction, s", "interactions"], rows)


def seconds(values: Sequence[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else "-"


if __name__ == "__main__":
    sys.exit(main())
