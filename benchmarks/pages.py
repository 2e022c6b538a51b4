"""How fast are the app's pages in a browser, and what do many sessions cost?

    python -m benchmarks.pages [--models DIR] [--run RUN] [--entity NAME] [--repeats 5] [--sessions 20] [--out FILE]

Starts the app by itself, opens every page once so that the server is warm, and then measures in Chromium:

- first view: from the navigation until the script has ended, no skeleton is left and every figure and small table is drawn; in a browser that has
  never seen the app and must fetch, parse and compile all of its code, and in a new tab of a browser that has;
- what a first view is made of: the server's share, measured by a session without a browser; requests, bytes and seconds of scripts in the browser;
- interaction: from the click on a choice that is not chosen until the script has ended again, for each choice of the page;
- sessions: pages open at once, in browsers of their own, and the growth of the server's resident memory by session (Linux).
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Error, Page, ViewportSize, WebSocket, sync_playwright

from benchmarks.machine import resident_mib
from benchmarks.served_app import BROWSER_OPTIONS, PROJECT, QUIET, addresses, served
from benchmarks.tables import markdown, print_report
from engine.errors import ConfigError

VIEWPORT: ViewportSize = {"width": 1280, "height": 900}
PATIENCE = 60_000  # milliseconds
MOST_CLICKS = 4
COMPLETE = """quiet => {
    const all = selector => [...document.querySelectorAll(selector)];
    return document.querySelector(quiet) !== null && document.querySelector('h1') !== null
        && all('[data-testid=stSkeleton]').length === 0
        && all('[data-testid=stPlotlyChart]').every(chart => chart.querySelector('.main-svg') !== null)
        && all('*').flatMap(one => one.shadowRoot ? [...one.shadowRoot.querySelectorAll('.frame')] : [])
            .every(part => part.dataset.drawn === 'yes');
}"""
LOADED = "performance.getEntriesByType('resource').map(one => one.decodedBodySize)"
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
HEADER = (
    "page",
    "first view in a fresh browser, s",
    "in a new tab, s",
    "server, s",
    "interaction, s",
    "interactions",
    "requests",
    "MB",
    "kB of messages",
    "scripts, s",
)
OPTIONS = "[data-testid=stMain] [data-testid=stButtonGroup] button[aria-checked=false]"


@dataclass(frozen=True)
class Load:
    """What a first view loads: requests, their bytes as they are used, those of the session's messages, and seconds of scripts."""

    requests: int
    bytes: int
    messages: int
    scripts: float

    def cells(self) -> list[str]:
        return [str(self.requests), f"{self.bytes / 1e6:.2f}", f"{self.messages / 1e3:.0f}", f"{self.scripts:.2f}"]


@dataclass(frozen=True)
class Timing:
    """Seconds of a page's first views in fresh browsers and in new tabs, and of its interactions; the server's share; what the browser loads."""

    fresh: Sequence[float]
    tab: Sequence[float]
    interactions: Sequence[float]
    server: Sequence[float]
    load: Load


PARTS: tuple[Callable[[Timing], Sequence[float]], ...] = tuple(map(attrgetter, ("fresh", "tab", "server", "interactions")))


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
    with served(parsed.models) as (base, process):
        shares = {name: server_shares(base, address, parsed.repeats) for name, address in pages.items()}  # warms the server, too
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=parsed.browser, args=list(BROWSER_OPTIONS))
            timings = {name: timed(browser, name, base + address, shares[name]) for name, address in pages.items()}
            sessions = many(browser, [base + address for address in pages.values()], parsed.sessions, process) if parsed.sessions else ""
            browser.close()
    return f"{timing_table(timings)}\n\n{sessions}".rstrip()


def server_shares(base: str, address: str, repeats: int) -> list[float]:
    """Seconds that the server takes for a page, connection included, with no browser beside it; after a first view that warms it."""
    from benchmarks.crowd.tab import Tab  # whose package looks at pages as this module does

    page, _, query = address.lstrip("/").partition("?")

    async def once() -> float:
        tab = Tab(base)
        taken = await tab.open(page, query)
        await tab.close()
        if tab.problems:
            raise ConfigError(f"the page {page or 'home'} shows an exception: {tab.problems[0]}")
        return taken

    return [asyncio.run(once()) for _ in range(repeats + 1)][1:]


def timed(browser: Browser, name: str, address: str, server: Sequence[float]) -> Timing:
    """``server``: the server's shares; as many views are timed."""
    fresh = [first_view(browser, address) for _ in server]
    with closing(browser.new_context(viewport=VIEWPORT)) as context:
        tabs = [view(context, address) for _ in range(len(server) + 1)][1:]
        load = loaded(context, address)
    timing = Timing(fresh, tabs, interactions(browser, address), server, load)
    print(f"{name}: first view {seconds(fresh)}, new tab {seconds(tabs)}, interaction {seconds(timing.interactions)}", file=sys.stderr, flush=True)
    return timing


def loaded(context: BrowserContext, address: str) -> Load:
    """What a page loads in a new tab; bytes count whether they come from the server or from the browser's cache."""
    page, messages = context.new_page(), [0]

    def count(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: messages.append(len(frame)))

    page.on("websocket", count)
    page.set_default_timeout(PATIENCE)
    measures = context.new_cdp_session(page)
    measures.send("Performance.enable")
    page.goto(address, wait_until="commit")
    page.wait_for_function(COMPLETE, arg=QUIET)
    sizes: list[int] = page.evaluate(LOADED)
    found = {one["name"]: float(one["value"]) for one in measures.send("Performance.getMetrics")["metrics"]}
    page.close()
    return Load(len(sizes), sum(sizes), sum(messages), found["ScriptDuration"])


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
    rows = [[name, *(seconds(part(one)) for part in PARTS), str(len(one.interactions)), *one.load.cells()] for name, one in timings.items()]
    together = [[value for one in timings.values() for value in part(one)] for part in PARTS]
    rows.append(["all", *map(seconds, together), str(len(together[-1])), *[""] * 4])
    return markdown(HEADER, rows)


def seconds(values: Sequence[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" if values else "-"


if __name__ == "__main__":
    sys.exit(main())
