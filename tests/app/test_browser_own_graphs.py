"""Two graphs of one's own in a browser: from files to reviewed links that are taken home."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from benchmarks.served_app import QUIET, served
from engine.data import load_task
from engine.data.library import read_record
from engine.data.links import read_links
from engine.reviews import Decision, ReviewStore, snapshot_of
from engine.util.paths import SAMPLES, reviews_file
from tests.app.conftest import PATIENCE
from tests.app.test_browser import EXPECTED, address_says, pytestmark
from tests.app.test_browser_import import choose, declare_header, upload
from tests.app.test_browser_review import KEYS, pressed, settled
from tests.app.test_browser_train import epoch
from tests.exporting.test_exporting import sssom_problems

__all__ = ["pytestmark"]

EUROPE = SAMPLES / "europe"
NAME = "countries"
REVIEWER = "Zoë"


def rows(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (EUROPE / name).read_text(encoding="utf-8").splitlines()]


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([head, *lines])
    return written.getvalue()


def files() -> dict[str, tuple[str, str]]:
    """Box on the page -> name and content: a source graph whose columns have German names and are reversed, a target graph in Turtle."""
    backwards = [(tail, relation, head) for head, relation, tail in rows("rel_triples_1")]
    edges = [f"<{head}> c:{relation} <{tail}> ." for head, relation, tail in rows("rel_triples_2")]
    values = [f'<{entity}> c:{attribute} "{value}" .' for entity, attribute, value in rows("attr_triples_2")]
    return {
        "Source graph": ("geonames.csv", table(["Ziel", "Beziehung", "Anfang"], backwards)),
        "Names and attributes of the source graph": ("names.csv", table(["entity", "attribute", "value"], rows("attr_triples_1"))),
        "Target graph": ("cldr.ttl", "\n".join(["@prefix c: <cldr:> .", *edges, *values, ""])),
        "Known links": ("links.csv", table(["source", "target"], rows("ent_links"))),
    }


@contextmanager
def tab(browser: Browser) -> Iterator[Page]:
    """A browser that has never been here, whose console stays clean."""
    problems: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" and EXPECTED not in str(message.location) else None)
    yield page
    context.close()
    assert not problems


def follow(page: Page, link: str) -> None:
    """A link on the page, not one of the navigation."""
    page.get_by_test_id("stMain").get_by_role("link", name=link).first.click()


def imported(page: Page, app: str) -> None:
    """From an empty home page to a stored data set."""
    page.goto(app)
    page.get_by_role("button", name="Train on your own graphs").click()
    page.get_by_text("Check files").wait_for()
    page.get_by_text("Names and attributes in separate files").click()
    for box, (name, content) in files().items():
        upload(page, box, name, content)
    page.get_by_role("button", name="Check files").click()
    page.get_by_text("The first row of the source graph looks like a header").wait_for()
    declare_header(page, "Ziel")
    page.get_by_text("1,510 entities · 9 relations · 4,548 triples").wait_for()
    choose(page, "Head", "3. Anfang")
    name = page.get_by_role("textbox", name="Name of the data set")
    name.fill(NAME)
    name.press("Enter")
    page.wait_for_selector(QUIET)
    page.get_by_role("button", name="Save data set").click()
    page.get_by_text("is saved").wait_for()


def asked_for(page: Page, **settings: str) -> str:
    """A training with these settings, entered in the form; the job's id."""
    if not page.get_by_label("epochs", exact=True).is_visible():
        page.get_by_text("Advanced settings").click()
    for label, value in settings.items():
        field = page.get_by_label(label.replace("_", " "), exact=True)
        field.fill(value)
        field.press("Enter")
        page.wait_for_function("told => new URLSearchParams(location.search).getAll('set').some(one => one.endsWith(told))", arg=f"{label}={value}")
        page.wait_for_selector(QUIET)
    page.get_by_role("button", name="Start training").click()
    page.wait_for_function("new URLSearchParams(location.search).has('job')")
    return str(page.evaluate("new URLSearchParams(location.search).get('job')"))


def introduced(page: Page) -> None:
    page.get_by_label("Your name").fill(REVIEWER)
    page.keyboard.press("Enter")
    settled(page)


def decisions(models: Path, data: Path) -> list[Decision]:
    """All that were ever kept of the data set."""
    with closing(ReviewStore(reviews_file(models))) as store:
        return store.history(fingerprint(data))


def fingerprint(data: Path) -> str:
    return str(read_record(data / NAME)["fingerprint"])


def downloaded(page: Page, folder: Path) -> Path:
    with page.expect_download(timeout=PATIENCE) as caught:
        page.get_by_role("button", name=re.compile("Download .* as SSSOM")).click()
    path = folder / caught.value.suggested_filename
    caught.value.save_as(path)
    return path


@pytest.mark.slow
def test_from_two_files_to_reviewed_links(browser: Browser, tmp_path: Path) -> None:
    models, data = tmp_path / "models", tmp_path / "data"
    with served(models, data) as (app, _):
        with tab(browser) as page:
            imported(page, app)
            kept = load_task(data / NAME).source
            shown = {(kept.entities[head], kept.relations[relation], kept.entities[tail]) for head, relation, tail in kept.triples}
            assert shown == {tuple(row) for row in rows("rel_triples_1")}
            follow(page, "Train on this data set")
            address_says(page, "data", NAME)
            page.wait_for_selector(QUIET)
            job = asked_for(page, epochs="20", dim="16")
            epoch(page)
        with tab(browser) as page:
            page.goto(f"{app}/train?job={job}")
            page.get_by_text("Hits@1, target to source").wait_for()
            follow(page, "Review matches")
            introduced(page)
            keys = [*"axsaxaaxsa"]
            seen = [pressed(page, key) for key in keys]
            history = decisions(models, data)
            assert [decision.verdict for decision in history] == [KEYS[key] for key in keys]
            assert len({decision.pair for decision in history}) == len(set(seen)) == 10
            assert {(decision.author, decision.withdrawn) for decision in history} == {(REVIEWER, False)}
            follow(page, "Export accepted pairs")
            page.get_by_label("Format").click()
            page.get_by_role("option", name="SSSOM").click()
            address_says(page, "format", "sssom")
            page.get_by_text("Predicate").wait_for()
            page.wait_for_selector(QUIET)
            path = downloaded(page, tmp_path)
    links = read_links(path)
    accepted = {decision.pair for decision in history if decision.verdict == "accept"}
    assert set(zip(links.sources, links.targets, strict=True)) == accepted
    assert accepted == set(snapshot_of(fingerprint(data), history).accepted)
    pytest.importorskip("sssom")
    assert sssom_problems(path) == [str(len(accepted))]
