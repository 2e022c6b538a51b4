"""No number in a table is cut, on a screen and on a phone: what is drawn in each cell against the cell's own room, measured in the browser.

Tables are drawn on a canvas, so that a cut number cannot be found in the page. What the grid draws is listened to instead: the text of each cell, how
wide it is, and the part of the canvas that the grid allows its column.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from benchmarks.served_app import QUIET
from tests.app.conftest import PATIENCE, of_other_data
from tests.app.test_browser import pytestmark
from tests.run_fixture import analysed, jolted, sample_run, write_run

__all__ = ["pytestmark"]

LISTEN = """
(() => {
  const drawn = (window.__drawn = []);
  const proto = CanvasRenderingContext2D.prototype;
  const {save, restore, rect, clip, beginPath, fillText} = proto;
  proto.save = function () { (this.__clips = this.__clips || []).push(this.__clip); return save.call(this); };
  proto.restore = function () { this.__clip = (this.__clips || []).pop(); return restore.call(this); };
  proto.beginPath = function () { this.__rect = null; return beginPath.call(this); };
  proto.rect = function (x, y, w, h) { this.__rect = [x, x + w]; return rect.call(this, x, y, w, h); };
  proto.clip = function (...rest) {
    if (this.__rect) {
      const old = this.__clip || [-Infinity, Infinity];
      this.__clip = [Math.max(old[0], this.__rect[0]), Math.min(old[1], this.__rect[1])];
    }
    return clip.apply(this, rest);
  };
  proto.fillText = function (text, x, y, ...rest) {
    const width = this.measureText(text).width;
    const left = this.textAlign === 'right' || this.textAlign === 'end' ? x - width : this.textAlign === 'center' ? x - width / 2 : x;
    const grid = this.canvas.closest && this.canvas.closest('[data-testid=stDataFrame]');
    if (grid && this.__clip) {
      this.canvas.__number = this.canvas.__number || (window.__canvases = (window.__canvases || 0) + 1);
      const scroller = grid.querySelector('.dvn-scroller');
      const place = left + (scroller ? scroller.scrollLeft : 0);
      const row = `${this.canvas.__number} ${Math.round(y)} ${text}`;
      drawn.push({text, row, place, left, right: left + width, from: this.__clip[0], to: this.__clip[1]});
    }
    return fillText.call(this, text, x, y, ...rest);
  };
})();
"""
NUMBER = re.compile(r"[+\-−]?[\d.,]+ ?%?(?: \([^)]*\))?|[+\-−]?\d[\d.,–]*")
SHIFT = 12  # pixels by which a column may move when the table is made a little wider
PAGES = {
    "compare relation": {"side": "source", "tab": "relation"},
    "compare changed": {"side": "source", "tab": "changed", "flip": "lost"},
    "degree": {},
    "degree entities": {"tab": "entities", "show": "all", "bucket": "25+"},
    "pairs": {"wide": "yes"},
    "relations": {},
    "relations all": {"view": "all"},
    "dataset": {"tab": "detail"},
    "review": {"kind": "sure", "threshold": "0", "reviewer": "Ann"},
}
"""Pages, some with the part of them that is open, and what their addresses say."""
HEADS = ("relations", "pairs", "degree")
"""Pages of which heads are measured, too."""
HEAD_LINE = 35  # pixels


@pytest.fixture(scope="session")
def runs(app_models: Path) -> list[str]:
    """Two runs of large numbers: of triples, of test entities, of flips."""
    found = []
    for amount, seed, name in ((0.15, 3, "semi-s0"), (0.9, 4, "basic-s0")):
        run = analysed(jolted(sample_run(), amount, seed))
        for table, column in (("degree", "queries"), ("relation_hits", "queries"), ("entities", "degree")):
            run.tables[table][column] = run.tables[table][column] * 1_234_567  # type: ignore[index]
        found.append(write_run(of_other_data(run, "large", "2" * 64), app_models, "large", name, variant=name.partition("-")[0]))
    return found[::-1]


def cut(page: Page) -> set[str]:
    """Numbers that were never drawn whole: wider than the room of their column wherever the table was scrolled to."""
    drawn: list[dict[str, Any]] = page.evaluate("window.__drawn")
    numbers = [one for one in drawn if NUMBER.fullmatch(one["text"].strip())]
    assert numbers, "a page without any number measures nothing"
    whole: dict[str, list[float]] = {}
    for one in numbers:
        if one["left"] >= one["from"] - 0.5 and one["right"] <= one["to"] + 0.5:
            whole.setdefault(one["row"], []).append(one["place"])
    return {one["row"] for one in numbers if not any(abs(one["place"] - place) < SHIFT for place in whole.get(one["row"], ()))}


def cut_heads(page: Page) -> set[str]:
    """Heads that were never drawn whole; a head of the data, such as a graph's name, is no matter."""
    drawn: list[dict[str, Any]] = page.evaluate("window.__drawn")
    heads = [one for one in drawn if float(one["row"].split(" ")[1]) < HEAD_LINE and re.match(r"[a-zA-ZΔ]", one["text"])]
    assert heads
    whole = {one["text"] for one in heads if one["left"] >= one["from"] - 0.5 and one["right"] <= one["to"] + 0.5}
    return {one["text"] for one in heads} - whole


def listening(browser: Browser, width: int) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 6000})
    page.set_default_timeout(PATIENCE)
    page.add_init_script(LISTEN)
    return page


def test_what_is_measured_is_found(browser: Browser) -> None:
    """The measure itself: a number in a column that is too narrow counts as cut, and the same number in a wide one does not."""
    page = listening(browser, 600)
    page.set_content("<div data-testid=stDataFrame><canvas width=300 height=40></canvas></div>")
    draw = """([width, y]) => {
      const canvas = document.querySelector('canvas').getContext('2d');
      canvas.save(); canvas.beginPath(); canvas.rect(0, 0, width, 40); canvas.clip(); canvas.fillText('+791', 4, y); canvas.restore();
    }"""
    page.evaluate(LISTEN)
    page.evaluate(draw, [12, 10])
    assert cut(page) == {"1 10 +791"}
    page.evaluate(draw, [100, 10])
    assert not cut(page)
    page.close()


def swept(page: Page, width: int, pause: int) -> None:
    """All tables scrolled from the left to the right: what lies beyond the edge of a narrow screen is drawn when it is scrolled to."""
    for step in range(12):
        move = "one.scrollLeft = 0" if step == 0 else "one.scrollBy(110, 0)"
        page.evaluate(f"document.querySelectorAll('[data-testid=stDataFrame] .dvn-scroller').forEach(one => {move})")
        page.set_viewport_size({"width": width - 3 * ((step + 1) % 2), "height": 6000})  # another size, or only the part is drawn that came into view
        page.wait_for_timeout(pause)


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [name if name == "relations" else pytest.param(name, marks=pytest.mark.slow) for name in PAGES])
def test_no_number_in_a_table_is_cut(browser: Browser, app: str, runs: list[str], name: str, width: int) -> None:
    page = listening(browser, width)
    page.goto(f"{app}/{name.split()[0]}?{urlencode({'run': runs, **PAGES[name]}, doseq=True)}")
    page.wait_for_selector(QUIET)
    page.wait_for_selector("[data-testid=stSkeleton]", state="detached")
    for summary in page.locator("[data-testid=stExpander] summary").all():
        summary.click()
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    page.wait_for_timeout(1500)
    tabs = page.locator("[data-testid=stMain] [role=tab]").all() if name == "dataset" else []  # other pages' tabs are addresses of their own
    for tab in tabs or [None]:
        if tab is not None:
            tab.click()
            page.wait_for_timeout(500)
        for pause in (150, 400, 1000):  # a machine that is busy draws late
            if not tabs:
                page.evaluate("window.__drawn.length = 0")  # what was drawn while the page was still growing counts no more
            swept(page, width, pause)
            if not cut(page):
                break
    assert not cut(page)
    if name.startswith(HEADS):
        assert not cut_heads(page)
    assert page.evaluate("[...document.querySelectorAll('[data-testid=stMetricValue]')].every(one => one.scrollWidth <= one.clientWidth + 1)")
    page.close()
