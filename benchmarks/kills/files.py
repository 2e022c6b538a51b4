"""Kills of those who write files: imports, exports, backups, and deletions of runs."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.kills.trainings import SMALL
from benchmarks.kills.victims import Tally, Victim, half_written, turns
from benchmarks.kills.works import back_up_one_after_the_other, delete_all, export_one_after_the_other, import_one_after_the_other
from engine.api import export
from engine.config import RunConfig
from engine.data import load_task
from engine.data.library import StoredDataSet, data_sets
from engine.errors import DataImportError
from engine.exporting import FORMATS
from engine.importing import Corrections, clean_up, find_staged, folder_material, store
from engine.importing.staging import PARTIAL, STAGING
from engine.pipeline import train_run
from engine.reviews import Choice, ReviewStore
from engine.runs import Run, RunStore
from engine.runs.cleanup import back_up, delete
from engine.runs.manifest import TRASH
from engine.util.files import sha256_of
from engine.util.paths import reviews_file

RUNS = 40
"""Runs that a process deletes one after the other."""


# Imports


@contextmanager
def data_kept_in(folder: Path) -> Iterator[None]:
    """Imported data sets are in this folder."""
    before = os.environ.get("DUAL_AMN_DATA")
    os.environ["DUAL_AMN_DATA"] = str(folder)
    try:
        yield
    finally:
        os.environ.pop("DUAL_AMN_DATA")
        os.environ.update({} if before is None else {"DUAL_AMN_DATA": before})


def kill_imports(data: Path, folder: Path, kills: int, draw: random.Random) -> Tally:
    """A data set that was acknowledged is there and is the data; no other is listed unless it is whole; uploads that were acknowledged are whole."""
    tally, place = Tally(), folder / "data"
    with data_kept_in(place):
        started = time.monotonic()
        first = store(folder_material(data), Corrections(), "first")
        seconds = time.monotonic() - started
        for turn in turns(tally, kills):
            victim = Victim(import_one_after_the_other, data, place, turn)
            sign = half_written(place, f"{PARTIAL}*") if turn % 2 else None
            if victim.kill(draw.uniform(0.0, 0.5 * seconds if sign else 1.5 * seconds), sign):
                tally.moments[_where_of_import(place)] += 1
            tally.acknowledged += len(victim.said)
            _look_at_imports(victim, first, place, tally)
            again = store(folder_material(data), Corrections(), "again")
            tally.check(again.fingerprint == first.fingerprint, "an import after a kill gave other data.")
            _clear_imports(place, tally)
    return tally


def _where_of_import(place: Path) -> str:
    if any(place.glob(f"{PARTIAL}*")):
        return "storing"
    return "uploading" if any(not (one / "staging.json").exists() for one in place.glob(f"{STAGING}*")) else "reading"


def _look_at_imports(victim: Victim, first: StoredDataSet, place: Path, tally: Tally) -> None:
    listed = {one.name: one for one in data_sets() if one.path.parent == place and one.name != first.name}
    stored = {name for what, name in victim.said if what == "stored"}
    tally.check(stored <= set(listed), "a data set that was acknowledged is not there.")
    tally.check(len(listed) <= len(stored) + 1, "data sets are listed that no one stored.")
    for one in listed.values():
        whole = one.fingerprint == first.fingerprint == load_task(one.path).fingerprint
        tally.check(whole, f"{one.name} is listed and is not the data that was stored.")
    tokens = {token for what, token in victim.said if what != "stored"}
    sizes = {token: sum(file.size for file in find_staged(token).material.files) for token in tokens}
    tally.check(len(set(sizes.values())) <= 1, "an upload that was acknowledged is there in part.")
    for folder in place.glob(f"{STAGING}*"):
        if (token := folder.name.removeprefix(STAGING)) not in tokens:
            try:
                found = find_staged(token)
            except DataImportError:
                continue
            size = sum(file.size for file in found.material.files)
            tally.check(size in sizes.values() or not sizes, "an upload that was not acknowledged is there in part.")


def _clear_imports(place: Path, tally: Tally) -> None:
    for folder in place.iterdir():
        if not folder.name.startswith(".") and folder.name != "first":
            shutil.rmtree(folder)
    clean_up(older_than=0.0)
    left = [one.name for one in place.iterdir() if one.name != "first"]
    tally.check(not left, f"the next import leaves what a killed one began: {', '.join(left)}.")


# Exports and backups of a run with reviews


def reviewed_run(data: Path, models: Path) -> Run:
    """A small run, and some pairs of it that a reviewer accepted."""
    run = train_run(data, RunConfig().with_values(SMALL), RunStore(models)).run
    task, reviews = load_task(data), ReviewStore(reviews_file(models))
    for source, target in task.test_links[:10].tolist():
        choice = Choice(task.source.entities[source], task.target.entities[target], "accept")
        reviews.decide(task.fingerprint, choice, "Ann", f"click-{source}")
    reviews.close()
    return run


def kill_exports(data: Path, folder: Path, kills: int, draw: random.Random) -> Tally:
    """Every file that is visible has the bytes of an unbroken export, whether it is new or replaces another one."""
    tally, models, place, formats = Tally(), folder / "models", folder / "exports", list(FORMATS)
    run = reviewed_run(data, models)
    place.mkdir()
    started = time.monotonic()
    for name in formats:
        export(run.id, folder / name, format=name, models=models)
    seconds, expected = time.monotonic() - started, {name: sha256_of(folder / name) for name in formats}
    for turn in turns(tally, kills):
        first = draw.randrange(2 * len(formats))
        victim = Victim(export_one_after_the_other, models, run.id, place, formats, first)
        sign = half_written(place, ".*.tmp") if turn % 2 else None
        if victim.kill(draw.uniform(0.0, 0.01 if sign else 1.5 * seconds), sign):
            tally.moments["writing" if any(place.glob(".*.tmp")) else "reading"] += 1
        number = (first + len(victim.said)) % (2 * len(formats))
        tally.acknowledged += len(victim.said)
        visible = {path.name: path for path in place.iterdir() if not path.name.startswith(".")}
        tally.check({name for name, _ in victim.said} <= set(visible), "a file that was acknowledged is not there.")
        for name, path in visible.items():
            tally.check(sha256_of(path) == expected[name.split("-", 2)[2]], f"{name} is there and is not whole.")
        _make_old(place)
        name = formats[number % len(formats)]
        export(run.id, place / f"links-{number}-{name}", format=name, models=models, force=True)
        tally.check(not any(place.glob(".*")), f"the next export to the same file leaves what the killed one began ({name}).")
    return tally


def _make_old(place: Path) -> None:
    """Files in the making count as abandoned when they are a little older than those of a study."""
    for path in place.glob(".*"):
        os.utime(path, (1, 1))


def kill_backups(data: Path, folder: Path, kills: int, draw: random.Random) -> Tally:
    """Every archive that is visible can be restored: runs with all checksums, databases, data sets."""
    tally, models, place = Tally(), folder / "models", folder / "backups"
    reviewed_run(data, models)
    with data_kept_in(folder / "data"):
        store(folder_material(data), Corrections(), "stored")
    place.mkdir()
    started = time.monotonic()
    back_up(models, folder / "data", folder / "unbroken.tar")
    seconds = time.monotonic() - started
    for turn in turns(tally, kills):
        victim = Victim(back_up_one_after_the_other, models, folder / "data", place, 0)
        sign = half_written(place, ".*.tmp") if turn % 2 else None
        if victim.kill(draw.uniform(0.0, seconds if sign else 3.0 * seconds), sign):
            tally.moments["writing" if any(place.glob(".*.tmp")) else "reading"] += 1
        tally.acknowledged += len(victim.said)
        visible = {path.name for path in place.iterdir() if not path.name.startswith(".")}
        tally.check(set(victim.said) <= visible, "an archive that was acknowledged is not there.")
        for name in visible:
            _restore(place / name, tally)
        _make_old(place)
        back_up(models, folder / "data", place / f"backup-{len(victim.said)}.tar", force=True)
        tally.check(not any(place.glob(".*")), "the next backup leaves what the killed one began.")
        for archive in place.iterdir():
            archive.unlink()
    return tally


def _restore(archive: Path, tally: Tally) -> None:
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(archive) as file:
            file.extractall(place, filter="data")
        restored = RunStore(Path(place) / "models")
        runs = [restored.find(one.id) for one in restored.list()]
        for run in runs:
            run.verify()
        with closing(sqlite3.connect(reviews_file(restored.root))) as database:
            decisions = database.execute("SELECT count(*) FROM decisions").fetchone()[0]
        sets = [load_task(one) for one in (Path(place) / "data").iterdir()]
    tally.check((len(runs), decisions, len(sets)) == (1, 10, 1), f"{archive.name} does not hold everything.")


# Deletion of runs


def kill_deletions(data: Path, folder: Path, kills: int, draw: random.Random) -> Tally:
    """A run whose deletion was acknowledged is gone; every other one is whole, or gone; the next deletion clears up."""
    tally, runs = Tally(), RunStore(folder)
    _fill(runs)
    started = time.monotonic()
    for one in runs.list():
        runs.delete(one)
    seconds = 0.7 * (time.monotonic() - started)
    for turn in turns(tally, kills):
        _fill(runs)
        before = {one.id for one in runs.list()}
        victim = Victim(delete_all, folder)
        sign = half_written(folder, f"*/{TRASH}*") if turn % 2 else None
        if victim.kill(draw.uniform(0.0, 0.002 if sign else seconds), sign):
            tally.moments["deleting" if any(folder.glob(f"*/{TRASH}*")) else "between two runs"] += 1
        tally.acknowledged += len(victim.said)
        after = {one.id: one for one in runs.list()}
        tally.check(not set(victim.said) & set(after), "a run that was reported as deleted is there.")
        tally.check(len(before - set(after)) <= len(victim.said) + 1, "runs are gone that no one deleted.")
        for one in after.values():
            tally.check(one.state == "finished", f"{one.id} is {one.state} after a deletion was killed.")
            runs.find(one.id).verify()
        delete(runs, [])
        tally.check(not any(folder.glob(f"*/{TRASH}*")), "the next deletion leaves files of the killed one.")
    return tally


def _fill(runs: RunStore) -> None:
    """Small runs up to a number."""
    there = {one.run_id for one in runs.list()}
    for number in range(RUNS):
        if (run_id := f"run-{number}") not in there:
            with runs.create("deleted", run_id) as writer:
                for name in ("entities", "matches", "links", "relations"):
                    writer.write_table(name, pd.DataFrame({"entity": np.arange(2000)}))
                writer.write_tensors("embeddings", {"source": np.zeros((2000, 16), dtype=np.float32)})
                writer.finish({"variant": "basic", "status": "finished", "created": "2026-11-01T12:00:00+00:00"})
