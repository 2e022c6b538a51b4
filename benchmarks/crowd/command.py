"""A crowd at the app: sessions over its WebSocket and real browsers on all pages at once, reviewing, exporting and training.

    python -m benchmarks.crowd MODELS [--sessions 50] [--browsers 5] [--minutes 10] [--pause 3 10] [--seed 0] [--out FILE]

Of the sessions, some are real browsers. All begin at the newest runs of MODELS, which is copied first, without the reviews in it. Before, one visitor
opens every page of each run, so that the server has imported its code and opened the runs. The report has what took how long, what went wrong, the
server's memory, and whether each decision that a page confirmed is stored once and on the pair that was shown.
The exit code is 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from playwright.async_api import async_playwright

from app.pages import HOME, PAGES
from benchmarks.crowd.browsers import BrowserPerson
from benchmarks.crowd.people import Habits, Person
from benchmarks.crowd.record import Record
from benchmarks.crowd.report import GOALS, Outcome, missed, report
from benchmarks.crowd.server import Server, watched
from benchmarks.crowd.tab import Tab
from benchmarks.served_app import BROWSER_OPTIONS, served
from benchmarks.tables import print_report
from engine.errors import JobError
from engine.jobs import JobQueue, is_starting, trainer_alive
from engine.reviews import ReviewStore
from engine.runs import RunStore
from engine.runs.view import RunView
from engine.util.paths import reviews_file

RUNS = 3
SEARCHED = 200
END_SECONDS = 120.0
LONGEST_LABEL = 20
"""Of what is typed into the search box."""


@dataclass(frozen=True)
class Crowd:
    """Who comes.

    Attributes:
        sessions: all of them.
        browsers: those in real browsers.
        pause: seconds between an answer and the next click, at least and at most.
    """

    sessions: int = 50
    browsers: int = 5
    minutes: float = 10.0
    pause: tuple[float, float] = (3.0, 10.0)
    seed: int = 0
    chromium: str | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)
    crowd = Crowd(parsed.sessions, min(parsed.browsers, parsed.sessions), parsed.minutes, tuple(parsed.pause), parsed.seed, parsed.browser)
    outcomes = list[Outcome]()

    def study() -> str:
        outcomes.append(gather(parsed.models, crowd))
        return report(outcomes[0])

    code = print_report(study, parsed.out)
    return code or int(bool(missed(outcomes[0])))


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crowd", description=f"A crowd at the app. Goals: {GOALS}.")
    parser.add_argument("models", type=Path, help="folder with runs; it is copied")
    parser.add_argument("--sessions", type=int, default=Crowd.sessions)
    parser.add_argument("--browsers", type=int, default=Crowd.browsers, help="of the sessions, those in real browsers")
    parser.add_argument("--minutes", type=float, default=Crowd.minutes)
    parser.add_argument("--pause", type=float, nargs=2, default=Crowd.pause, metavar=("LEAST", "MOST"), help="seconds from an answer to a click")
    parser.add_argument("--seed", type=int, default=Crowd.seed)
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"), help="Chromium's program file")
    parser.add_argument("--out", type=Path, help="also write the report here")
    return parser


def gather(models: Path, crowd: Crowd) -> Outcome:
    """The crowd comes, does what it does, and leaves; everything that was noted."""
    with tempfile.TemporaryDirectory() as folder:
        copy, data, log = Path(folder) / "models", Path(folder) / "data", Path(folder) / "log"
        copy_runs(models, copy)
        data.mkdir()
        runs = [summary.id for summary in RunStore(copy).list() if summary.manifest][:RUNS]
        habits = Habits(crowd.pause, crowd.minutes * 60, labels(copy, runs[0]))
        with log.open("wb") as errors, served(copy, data, errors) as (base, process):
            warm = asyncio.run(warm_up(base, runs))
            with watched(process) as server:
                record = asyncio.run(live(base, runs, crowd, habits))
            end_trainings(copy)
        return outcome(copy, crowd, warm, record, server, log.read_text(encoding="utf-8", errors="replace"))


def end_trainings(models: Path) -> None:
    """Before the folder goes: those that wait are cancelled, the one that is under way is stopped."""
    queue, until = JobQueue(models), time.monotonic() + END_SECONDS
    for job in queue.jobs():
        with suppress(JobError):  # it has just ended, or just begun
            if job.state == "queued":
                queue.cancel(job.id)
            elif job.active:
                queue.stop(job.id)
    while (trainer_alive(models) or is_starting(models)) and time.monotonic() < until:
        time.sleep(0.2)


def copy_runs(models: Path, copy: Path) -> None:
    """The finished runs alone: neither reviews nor the queue."""
    for summary in RunStore(models).list():
        if summary.manifest:
            shutil.copytree(summary.path, copy / summary.id)


def labels(models: Path, run: str) -> Sequence[str]:
    """Of well-known entities, to search for."""
    view = RunView(RunStore(models).find(run))
    return [entity.title[:LONGEST_LABEL] for entity in view.well_connected("source", SEARCHED)]


async def warm_up(base: str, runs: Sequence[str]) -> float:
    """One visitor opens every page of each run, as whoever looks whether the app is up; returns the seconds that took."""
    began = time.perf_counter()
    for page in PAGES:
        for run in runs:
            tab = Tab(base)
            await tab.open("" if page is HOME else page.name, urlencode({"run": run, "reviewer": "Visitor"}))
            await tab.close()
    return time.perf_counter() - began


async def live(base: str, runs: Sequence[str], crowd: Crowd, habits: Habits) -> Record:
    """All people at once."""
    record = Record()
    draws = [random.Random(f"{crowd.seed} {number}") for number in range(crowd.sessions)]
    names = [f"Reviewer {number:02}" for number in range(crowd.sessions)]
    people = [
        Person(names[number], runs[number % len(runs)], base, record, habits, draws[number], trains=number == crowd.browsers)
        for number in range(crowd.browsers, crowd.sessions)
    ]
    if not crowd.browsers:
        await asyncio.gather(*(person.live() for person in people))
        return record
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=crowd.chromium, args=list(BROWSER_OPTIONS))
        others = [BrowserPerson(names[one], runs[one % len(runs)], base, record, habits, draws[one]) for one in range(crowd.browsers)]
        await asyncio.gather(*(person.live() for person in people), *(other.live(browser) for other in others))
        await browser.close()
    return record


def outcome(models: Path, crowd: Crowd, warm: float, record: Record, server: Server, log: str) -> Outcome:
    """With what the store has of the decisions."""
    fingerprints = {str(summary.manifest["data"]["fingerprint"]) for summary in RunStore(models).list() if summary.manifest}
    store = ReviewStore(reviews_file(models))
    history = sorted((one for data in fingerprints for one in store.history(data)), key=lambda one: one.number)
    store.close()
    return Outcome(crowd.sessions, crowd.browsers, crowd.pause, crowd.seed, warm, record, server, log, history, os.getloadavg())
