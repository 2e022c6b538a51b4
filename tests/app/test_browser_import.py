"""The import page in a browser: two files of different kinds, a wrong column, links the wrong way round, and a data set at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, FilePayload, Page, TimeoutError, expect

from benchmarks.served_app import QUIET
from engine.data import load_task
from tests.app.conftest import PATIENCE
from tests.app.test_browser import EXPECTED, pytestmark
from tests.importing.conftest import GRAPH_1, NAMES, SWAPPED

__all__ = ["pytestmark"]

ATTEMPTS = 3
TURNED = "Wohin;Woher;Art\n" + "".join(f"a:{other};a:{one};near\n" for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))
TURTLE = "".join(f"<b:{one}> <b:nah> <b:{other}> .\n" for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))


def upload(page: Page, box: str, name: str, content: str | bytes) -> None:
    """Into the uploader with this label; again where Streamlit drops the file, as it may on a busy machine while the page is drawn."""
    chosen = page.locator("[data-testid=stFileUploader]", has_text=box).first
    file = FilePayload(name=name, mimeType="application/octet-stream", buffer=content if isinstance(content, bytes) else content.encode())
    for attempt in range(1, ATTEMPTS + 1):
        chosen.locator("input[type=file]").set_input_files(file)
        try:
            chosen.get_by_text(name).wait_for(timeout=PATIENCE / ATTEMPTS)
            break
        except TimeoutError:
            if attempt == ATTEMPTS:
                raise
    page.wait_for_selector(QUIET)


def choose(page: Page, label: str, option: str) -> None:
    """In the first list of this label, at once, as a user with quick hands."""
    field = page.get_by_label(label, exact=True).first
    field.click()
    page.get_by_role("option", name=option).click()
    expect(field).to_have_value(option, timeout=PATIENCE)
    page.wait_for_selector(QUIET)


def declare_header(page: Page, first: str) -> None:
    """Of the source graph; waits until its columns are called by it. ``first``: what the first column is called then."""
    table = page.locator(".st-key-file_0")
    table.get_by_text("First row is a header").click()
    expect(table.get_by_label("Head", exact=True).first).to_have_value(f"1. {first}", timeout=PATIENCE)
    page.wait_for_selector(QUIET)


def begun(page: Page, app: str) -> None:
    """At the second step, with a column and the links wrong."""
    page.goto(f"{app}/import")
    page.get_by_text("Check files").wait_for()
    upload(page, "Source graph", "one.csv", TURNED)
    upload(page, "Target graph", "two.ttl", TURTLE)
    upload(page, "Known links", "links.csv", SWAPPED)
    page.get_by_role("button", name="Check files").click()
    page.get_by_text("Detected content").wait_for()
    page.wait_for_selector(QUIET)


def test_from_two_files_to_a_data_set(browser: Browser, app: str, app_data: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 1900})
    page.set_default_timeout(PATIENCE)
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" and EXPECTED not in str(message.location) else None)
    begun(page, app)
    declare_header(page, "Wohin")
    expect(page.get_by_text("9 entities · 8 relations · 8 triples")).to_be_visible(timeout=PATIENCE)
    choose(page, "Head", "2. Woher")
    choose(page, "Relation", "3. Art")
    page.get_by_role("button", name="Swap the links' columns").click()
    page.get_by_role("button", name="Save data set").wait_for()
    page.reload()
    expect(page.get_by_text("8 entities · 1 relation · 8 triples")).to_have_count(2, timeout=PATIENCE)
    name = page.get_by_role("textbox", name="Name of the data set")
    name.fill("cities")
    name.press("Enter")
    page.wait_for_selector(QUIET)
    page.get_by_role("button", name="Save data set").click()
    page.get_by_text("is saved").wait_for()
    task = load_task(app_data / "cities")
    straight = {tuple(line.split(",")) for line in GRAPH_1.split("\n")[1:-1]}
    assert {
        (task.source.entities[head], task.source.relations[relation], task.source.entities[tail]) for head, relation, tail in task.source.triples
    } == straight
    assert [path.name for path in app_data.iterdir() if not path.name.startswith(".")] == ["cities"]
    assert not problems
    page.close()


@pytest.mark.slow  # test_sniffing has the sentence, and the path above has the uploaders
def test_a_binary_file_is_refused_in_a_sentence(browser: Browser, app: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{app}/import")
    page.get_by_text("Check files").wait_for()
    upload(page, "Source graph", "one.csv", b"PK\x03\x04\0\0\0\0not a table")
    upload(page, "Target graph", "two.ttl", TURTLE)
    page.get_by_role("button", name="Check files").click()
    page.get_by_text("Excel workbook").wait_for()
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth <= window.innerWidth")
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_check_has_no_serious_barrier(browser: Browser, app: str, scheme: Literal["light", "dark"]) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 3000}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    begun(page, app)
    page.wait_for_selector(QUIET)
    page.wait_for_selector("[data-testid=stSkeleton]", state="detached")
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [f"{one['id']}: {node['html'][:200]}" for one in found if one["impact"] in ("serious", "critical") for node in one["nodes"]]
    context.close()
    assert not serious
