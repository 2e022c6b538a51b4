"""What the processes do that are killed. Each acknowledges a part of its work once the call for it has returned."""

from __future__ import annotations

import io
import itertools
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.kills.victims import READY, Connection
from engine.api import export
from engine.errors import JobError
from engine.importing import Corrections, Upload, correct, folder_material, stage, understand, write
from engine.jobs import JobQueue, Plan
from engine.jobs.trainer import work
from engine.reviews import Choice, ReviewStore
from engine.runs import RunStore
from engine.runs.cleanup import back_up
from engine.util.paths import reviews_file

CHOICES = 20
"""Decisions of one click."""


def no_successor(models: Path) -> None:
    """No successor: the study starts trainers itself."""


def train_next(models: Path, pipe: Connection) -> None:
    """A trainer: takes a job of the queue."""
    pipe.send(READY)
    work(models, successor=no_successor)


def import_one_after_the_other(folder: Path, data: Path, first: int, pipe: Connection) -> None:
    """Upload, correct and store a data set, again and again."""
    os.environ["DUAL_AMN_DATA"] = str(data)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    material = folder_material(folder)
    pipe.send(READY)
    for number in itertools.count(first):
        staged = stage([Upload(name, io.BytesIO(content)) for name, content in files.items()])
        pipe.send(("staged", staged.token))
        correct(staged, Corrections(swap_links=False))
        pipe.send(("corrected", staged.token))
        pipe.send(("stored", write(understand(material, Corrections()), material, Corrections(), f"graphs-{number}").name))


def review(models: Path, author: str, data: str, turn: int, pipe: Connection) -> None:
    """Take pairs, decide on some with each click, and undo every fifth click."""
    store, pairs = ReviewStore(reviews_file(models)), [(f"s{number}", f"t{number}") for number in range(1000)]
    pipe.send(READY)
    for number in itertools.count():
        click = f"{author}-{turn}-{number}"
        if number % 5 == 4:
            pipe.send(("undone", store.undo(data, author, click)[0].click))
            continue
        if number % 7 == 3:
            store.claim(data, author, pairs, 3)
        store.decide(data, [Choice(f"{click}-{place}", "t", "accept") for place in range(CHOICES)], author, click)
        pipe.send(("decided", click))


def ask_and_ask(models: Path, plans: Sequence[Plan], seed: int, pipe: Connection) -> None:
    """What an app does, as fast as it can: submit a training, then cancel, resume or stop it."""
    draw, queue = random.Random(seed), JobQueue(models)
    pipe.send(READY)
    while True:
        job = queue.submit(draw.choice(plans)).job
        pipe.send((job.id, job.state))
        change: Callable[[str], object] = draw.choice([queue.cancel, queue.resume, queue.stop])
        try:
            change(job.id)
        except JobError:
            continue
        pipe.send((job.id, "queued" if change == queue.resume else "cancelled"))


def export_one_after_the_other(models: Path, run: str, folder: Path, formats: Sequence[str], first: int, pipe: Connection) -> None:
    """Write the run's alignment in one format after the other, at first to new files, then over them."""
    pipe.send(READY)
    for number in itertools.count(first):
        name = formats[number % len(formats)]
        path = folder / f"links-{number % (2 * len(formats))}-{name}"
        export(run, path, format=name, models=models, force=path.exists())
        pipe.send((path.name, name))


def back_up_one_after_the_other(models: Path, data: Path, folder: Path, first: int, pipe: Connection) -> None:
    """Write one archive after the other."""
    pipe.send(READY)
    for number in itertools.count(first):
        back_up(models, data, folder / f"backup-{number}.tar")
        pipe.send(f"backup-{number}.tar")


def delete_all(models: Path, pipe: Connection) -> None:
    """Delete one run after the other."""
    store = RunStore(models)
    runs = [one for one in store.list() if one.manifest is not None]
    pipe.send(READY)
    for one in runs:
        store.delete(one)
        pipe.send(one.id)
