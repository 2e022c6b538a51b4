"""How fast are the app's pages in a browser, and what do many sessions cost?

    python -m benchmarks.pages [--models DIR] [--run RUN] [--entity NAME] [--repeats 5] [--sessions 20] [--out FILE]

Starts the app by itself, opens every page once so that the server is warm, and then measures in Chromium:

- first view: from the navigation until the script has ended, no skeleton is left and every Plotly figure is drawn; in a browser that has
  never seen the app and must fetch, parse and compile all of its code, and in a new tab of a browser that has;
- interaction: from the click on a choice that is not chosen until the script has ended again, for each choice of the page;
- sessions: pages open at once, in browsers of their own, and the growth of the server's resident memory by session (Linux).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Error, Page, ViewportSize, sync_playwright

from benchmarks.machine import resident_mib
from benchmarks.served_app import BROWSER_OPTIONS, PROJECT, QUIET, addresses, served
from benchmarks.tables import markdown, print_report

VIEWPORT: ViewportSize = {"width": 1280, "height": 900}
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
# A script that is very fast may come and go between two frames, so that no state is ever drawn; its last change of the page is taken then.
DONE = """still => {
    const end = window.ended || (performance.now() - window.changed > still ? window.changed : 0);
    return window.changed > 0 && end > 0 ? end - window.began : null;
}"""
STILL = 1500  # milliseconds
OPTIONS = "[data-testid=stMain] [data-testid=stButtonGroup] button[aria-checked=false]"


@dataclass(frozen=True)
class Timing:
    """Seconds of a page's first views in fresh browsers and in new tabs, and of its interactions."""

    fresh: Sequence[float]
    tab: Sequence[float]
    interactions: Sequence[float]


PARTS: tuple[Callable[[Timing], Sequence[float]], ...] = (attrgetter("fresh"), attrgetter("tab"), attrgetter("interactions"))


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)
    return print_report(lambda: study(parsed), parsed.out)


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
        timings = {name: timed(browser, name, base + address, parsed.repeats) for name, address in pages.items()}
        sessions = many(browser, [base + address for address in pages.values()], parsed.sessions, process) if parsed.sessions else ""
        browser.close()
    return f"{timing_table(timings)}\n\n{sessions}".rstrip()


def timed(browser: Browser, name: str, address: str, repeats: int) -> Timing:
    fresh = [first_view(browser, address) for _ in range(repeats)]
    with closing(browser.new_context(viewport=VIEWPORT)) as context:
        tabs = [view(context, address) for _ in range(repeats + 1)][1:]
    timing = Timing(fresh, tabs, interactions(browser, address))
    print(f"{name}: first view {seconds(fresh)}, new tab {seconds(tabs)}, interaction {seconds(timing.interactions)}", file=sys.stderr, flush=True)
    return timing


def first_view(browser: Browser, address: str) -> float:
    """Seconds until a page is complete in a browser that has never seen the app."""
    with closing(browser.new_context(viewport=VIEWPORT)) as context:
        return view(context, address)


def view(context: BrowserContext, address: str) -> float:
    """Seconds until a page is complete in a new tab."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    started = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_function(COMPLETE, arg=QUIET)
    taken = time.perf_counter() - started
    page.close()
    return taken


def interactions(browser: Browser, address: str) -> list[float]:
    """Seconds from a click on each of a page's choices to the end of the script."""
    context = browser.new_context(viewport=VIEWPORT)
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
        context = browser.new_context(viewport=VIEWPORT)
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
    """Resident memory of a process in MiB; nan where the system does not report it."""
    found = resident_mib(process)
    return float("nan") if found is None else found


def timing_table(timings: Mapping[str, Timing]) -> str:
    """Medians by page, and of all pages together."""
    rows = [[name, seconds(one.fresh), seconds(one.tab), seconds(one.interactions), str(len(one.interactions))] for name, one in timings.items()]
    together = Timing(*([value for one in timings.values() for value in part(one)] for part in PARTS))
    rows.append(["all", *(seconds(part(together)) for part in PARTS), str(len(together.interactions))])
    return markdown(["page", "first view in a fresh browser, s", "in a new tab, s", "interaction, s", "interactions"], rows)


def seconds(values: Sequence[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else "-"


if __name__ == "__main__":
    sys.exit(main())
