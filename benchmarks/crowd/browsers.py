"""The same in real browsers: clicks, keys and downloads in Chromium, with everything that its console reports."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlencode

from playwright.async_api import Browser, ConsoleMessage, Error, Page

from app.pages import EXPLAIN, EXPORT, PAGES, REVIEW
from app.reviewing import LEAST_SECONDS
from benchmarks.crowd.people import CHOICES, DECISIONS, UNDONE, VERDICTS, Habits
from benchmarks.crowd.record import Answer, Look, Record, button_name
from benchmarks.pages import CLICK, COMPLETE, DONE, OPTIONS, PATIENCE, STILL, VIEWPORT, WATCH
from benchmarks.served_app import QUIET
from engine.reviews import Verdict

EXPECTED: Final = "/_stcore/"  # Streamlit looks for its own address below the page's, and finds nothing there
KEYS: Final[dict[Verdict, str]] = {"accept": "a", "reject": "x", "skip": "s"}
LINK: Final = ".st-key-navigation a"
BEGIN: Final = "() => { window.ended = window.changed = 0; window.began = performance.now(); }"
PAIR: Final = """() => {
    const card = document.querySelector('.st-key-pair_card');
    const accept = card && [...card.querySelectorAll('[class*=st-key-review_button] button')].find(one => /Accept/.test(one.innerText));
    if (!accept) return null;
    const words = [...card.querySelectorAll('[data-testid=stMarkdownContainer]')].slice(0, 8).map(one => one.innerText).join('\\n');
    return [accept.closest('[class*=st-key-review_button]').className, words];
}"""


class BrowserPerson:
    """Somebody with a browser of their own.

    Args:
        name: under which they review.
        run: that they begin with.
    """

    def __init__(self, name: str, run: str, base: str, record: Record, habits: Habits, draw: random.Random) -> None:
        self.name, self.run, self.record, self.habits, self.draw, self._base = name, run, record, habits, draw, base
        self._page_name = REVIEW.name
        self._look: Look | None = None
        self._activities: dict[Callable[[Page], Awaitable[None]], float] = {
            self.review: 3.0,
            self.look_around: 4.0,
            self.explain: 2.0,
            self.export: 1.0,
        }

    async def live(self, browser: Browser) -> None:
        """Do one thing after the other, until it is time to stop; whoever gets no answer opens the app again."""
        while self._is_time:
            context = await browser.new_context(viewport=VIEWPORT)
            page = await context.new_page()
            page.set_default_timeout(PATIENCE)
            page.on("console", self._console)
            page.on("pageerror", lambda error: self.record.problems.append(f"{self.name} on {self._page_name}: script error: {error}"))
            try:
                await self._visit(page)
            except Error as error:
                self.record.problems.append(f"{self.name} on {self._page_name}: {str(error)[:200]}")
            finally:
                self.record.leave(self._look)
                await context.close()

    async def _visit(self, page: Page) -> None:
        began = time.perf_counter()
        await page.goto(f"{self._base}/{REVIEW.name}?{urlencode({'run': self.run, 'reviewer': self.name})}")
        await page.wait_for_function(COMPLETE, arg=QUIET)
        self.record.add(self._page_name, "page", time.perf_counter() - began, browser=True)
        await page.evaluate(WATCH)
        await self._decide_some(page)
        while self._is_time:
            (activity,) = self.draw.choices(list(self._activities), list(self._activities.values()))
            await activity(page)

    @property
    def _is_time(self) -> bool:
        return self.record.now < self.habits.until

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and EXPECTED not in str(message.location):
            self.record.problems.append(f"{self.name} on {self._page_name}: console: {message.text[:200]}")

    async def _pause(self) -> None:
        await asyncio.sleep(self.draw.uniform(*self.habits.pause))

    async def _done(self, page: Page, kind: str) -> None:
        """Wait until the page has followed a click, and note how long that took."""
        result = await page.wait_for_function(DONE, arg=STILL)
        self.record.add(self._page_name, kind, await result.json_value() / 1000, browser=True)
        if await page.locator("[data-testid=stException]").count():
            self.record.problems.append(f"{self.name} on {self._page_name}: an exception is shown")

    async def _go(self, page: Page, link: Any, name: str) -> None:
        self._page_name = name
        await link.evaluate(CLICK)
        await self._done(page, "page")
        await self._pause()

    async def look_around(self, page: Page) -> None:
        """Some page, and some of its choices."""
        number = self.draw.randrange(len(PAGES))
        if PAGES[number] is not REVIEW:
            await self._go(page, page.locator(LINK).nth(number), PAGES[number].name)
            await self._choose_some(page)

    async def explain(self, page: Page) -> None:
        """A pair that the page links to; else one that Explain offers."""
        links = page.locator(f"[data-testid=stMain] a[href*='/{EXPLAIN.name}?'][href*='source=']")
        if not await links.count():
            await self._go_to(page, EXPLAIN.name)
        if count := await links.count():
            await self._go(page, links.nth(self.draw.randrange(count)), EXPLAIN.name)
        await self._choose_some(page)

    async def _go_to(self, page: Page, name: str) -> None:
        number = next(number for number, one in enumerate(PAGES) if one.name == name)
        await self._go(page, page.locator(LINK).nth(number), name)

    async def export(self, page: Page) -> None:
        """Another format, and the file."""
        await self._go_to(page, EXPORT.name)
        button = page.locator("[data-testid=stMain] .st-key-export_card [data-testid=stDownloadButton] button")
        if not await button.count():
            return
        began = time.perf_counter()
        async with page.expect_download() as download:
            await button.first.click()
        await (await download.value).path()
        self.record.add(self._page_name, "download", time.perf_counter() - began, browser=True)
        self.record.downloads += 1
        await self._pause()

    async def _choose_some(self, page: Page) -> None:
        for _ in range(self.draw.randint(*CHOICES)):
            options = page.locator(f"{OPTIONS}, [data-testid=stMain] [role=tab][aria-selected=false]")
            count = await options.count()
            if not count or not self._is_time:
                return
            await options.nth(self.draw.randrange(count)).evaluate(CLICK)
            await self._done(page, "choice")
            await self._pause()

    # Reviewing

    async def review(self, page: Page) -> None:
        """Some decisions in a row."""
        await self._go_to(page, REVIEW.name)
        await self._decide_some(page)

    async def _decide_some(self, page: Page) -> None:
        for _ in range(self.draw.randint(*DECISIONS)):
            look = await self._pair(page)
            if look is None or not self._is_time:
                self.record.leave(look)
                return
            await self._decide(page, look)

    async def _decide(self, page: Page, look: Look) -> None:
        (verdict,) = self.draw.choices(list(VERDICTS), list(VERDICTS.values()))
        await asyncio.sleep(LEAST_SECONDS)
        await self._pause()
        undo = self.draw.random() < UNDONE and bool(self.record.answers[self.name])
        self.record.leave(look)
        await page.evaluate(BEGIN)
        await page.keyboard.press("u" if undo else KEYS[verdict])
        await self._done(page, "decision")
        made = self.record.answers[self.name]
        if undo:
            made.append(Answer(look, None))
            return
        now = await page.evaluate(PAIR)
        if now is not None and button_name(now[0]) == look.name:
            self.record.problems.append(f"{self.name}: a decision was not taken: {look.words[:80]}")
        else:
            made.append(Answer(look, verdict))

    async def _pair(self, page: Page) -> Look | None:
        """The pair on the screen, when the page has come to rest."""
        await page.wait_for_function(COMPLETE, arg=QUIET)
        found = await page.evaluate(PAIR)
        self._look = None if found is None else self.record.look(self.name, button_name(found[0]), found[1])
        return self._look
