"""Kill -9 of the app while a training is running and somebody reviews, or stores a data set: what the page had confirmed is there, and whole."""

from __future__ import annotations

import io
import os
import random
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Timer

import pytest
from playwright.sync_api import Browser, Page

from benchmarks.served_app import QUIET, served
from engine.config import RunConfig
from engine.data import load_task
from engine.data.library import read_record
from engine.data.tabular import Layout
from engine.importing import Corrections, Role, Staged, Upload, correct, stage, store
from engine.jobs import JobQueue, read_news, trainer_alive
from engine.pipeline import train_run
from engine.runs import RunStore
from engine.util.paths import reviews_file
from tests.app.conftest import PATIENCE
from tests.app.test_browser import pytestmark
from tests.app.test_browser_own_graphs import NAME, REVIEWER, decisions, files
from tests.app.test_browser_review import KEYS, PAIR
from tests.app.test_browser_train import SMALL, epoch

__all__ = ["pytestmark"]

COLUMNS = Corrections(tables={"graph 1": Layout(header=True, columns={"head": 2, "relation": 1, "tail": 0})})
LATEST = {"review": 10.0, "store": 2.0}
"""Seconds from the first key or click on, within which the app is killed."""
LOOKED_AT = 800  # milliseconds


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Models and data, with a data set and a small run of it; a trainer that is at work is stopped at the end."""
    models, data = tmp_path / "models", tmp_path / "data"
    monkeypatch.setenv("DUAL_AMN_DATA", str(data))
    stored = store(staged().material, COLUMNS, NAME)
    train_run(stored.path, RunConfig().with_assignments(("training.epochs=1", "encoder.dim=8", "encoder.proxies=4")), RunStore(models))
    yield models, data
    queue = JobQueue(models)
    for job in queue.jobs():
        if job.active:
            queue.stop(job.id)


def staged() -> Staged:
    """Europe, uploaded and corrected."""
    roles: tuple[Role, ...] = ("graph 1", "attributes 1", "graph 2", "links")
    uploaded = [Upload(name, io.BytesIO(content.encode()), role) for role, (name, content) in zip(roles, files().values(), strict=True)]
    return correct(stage(uploaded), COLUMNS)


@contextmanager
def killed(process: int, seconds: float) -> Iterator[Event]:
    """The process ends without a message after a number of seconds; the event is set when it has."""
    over = Event()

    def kill() -> None:
        os.kill(process, signal.SIGKILL)
        over.set()

    timer = Timer(seconds, kill)
    timer.start()
    yield over
    timer.join()


@contextmanager
def tab(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 1600})
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()


def start_training(page: Page, app: str) -> str:
    """One that takes hours; the job's id."""
    page.goto(f"{app}/train?data={NAME}&{'&'.join(f'set={setting}' for setting in SMALL)}")
    page.get_by_role("button", name="Start training").click()
    page.wait_for_function("new URLSearchParams(location.search).has('job')")
    epoch(page)
    return str(page.evaluate("new URLSearchParams(location.search).get('job')"))


def review_until(page: Page, over: Event, draw: random.Random) -> list[str]:
    """Decide by keyboard until the app is dead; the verdicts after which the page showed another pair."""
    message: list[str] = []
    header = page.locator(PAIR)
    while not over.is_set():
        page.wait_for_timeout(LOOKED_AT)
        before, key = header.all_inner_texts(), draw.choice("axs")
        if not page.locator(QUIET).count() or not before:
            continue
        page.keyboard.press(key)
        while not over.is_set() and header.all_inner_texts() in (before, []):
            page.wait_for_timeout(50)
        message += [KEYS[key]] if header.all_inner_texts() not in (before, []) else []
    return message


def check_reviews(models: Path, data: Path, known: Sequence[object], message: Sequence[str]) -> None:
    """What was stored is as it was, what the page confirmed since is there in its order, and at most one decision that it did not come to confirm."""
    with closing(sqlite3.connect(reviews_file(models))) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    kept = decisions(models, data)
    assert kept[: len(known)] == known
    new = [decision.verdict for decision in kept[len(known) :]]
    assert new[: len(message)] == message
    assert len(new) - len(message) in (0, 1)
    assert len({decision.pair for decision in kept}) == len(kept), "a pair is decided once"


def check_data(folder: Path) -> None:
    assert load_task(folder).fingerprint == read_record(folder)["fingerprint"] == read_record(folder.with_name(NAME))["fingerprint"]


def press_store(page: Page, app: str, token: str, name: str) -> None:
    page.goto(f"{app}/import?staging={token}")
    field = page.get_by_role("textbox", name="Name of the data set")
    field.fill(name)
    field.press("Enter")
    page.wait_for_selector(QUIET)
    page.get_by_role("button", name="Save data set").click()


def store_again(page: Page, app: str, token: str, folder: Path) -> None:
    """What a kill interrupted: the data set is there whole, or not at all and everything that was uploaded still is."""
    if not folder.exists():
        press_store(page, app, token, folder.name)
        page.get_by_text("is saved").wait_for()
    check_data(folder)


def finished_run(models: Path) -> str:
    (found,) = (one.id for one in RunStore(models).list() if one.manifest)
    return found


def epoch_shown(models: Path, job: str) -> int:
    news = read_news(models, job)
    assert news is not None
    return news.epoch


def check_whole(models: Path, data: Path, job: str, before: int) -> None:
    """The trainer lives and has continued; the run and the data set are as they were."""
    assert trainer_alive(models)
    assert JobQueue(models).find(job).state == "running"
    assert epoch_shown(models, job) > before
    RunStore(models).find(finished_run(models)).verify()
    check_data(data / NAME)


def killed_while_storing(page: Page, app: str, process: int, seconds: float, token: str, name: str) -> None:
    press_store(page, app, token, name)
    with killed(process, seconds):
        pass


def killed_while_reviewing(page: Page, app: str, process: int, draw: random.Random, models: Path, data: Path) -> int:
    """How many decisions the page had confirmed."""
    known = decisions(models, data)
    page.goto(f"{app}/review?run={finished_run(models)}&known=yes&reviewer={REVIEWER}")
    page.locator(PAIR).wait_for()
    with killed(process, draw.uniform(0.0, LATEST["review"])) as over:
        message = review_until(page, over, draw)
    check_reviews(models, data, known, message)
    return len(message)


@pytest.mark.timeout(1200)
@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, 20])
def test_nothing_is_lost_when_the_app_is_killed(browser: Browser, folders: tuple[Path, Path], kills: int) -> None:
    models, data = folders
    draw, message = random.Random(kills), 0
    job, token, name = "", "", ""
    for number in range(kills):
        with served(models, data) as (app, process), tab(browser) as page:
            job = job or start_training(page, app)
            if token:
                store_again(page, app, token, data / name)
            before, token = epoch_shown(models, job), ""
            if number % 3 == 1:
                token, name = staged().token, f"again-{number}"
                killed_while_storing(page, app, process, draw.uniform(0.0, LATEST["store"]), token, name)
            else:
                message += killed_while_reviewing(page, app, process, draw, models, data)
        check_whole(models, data, job, before)
    assert message
