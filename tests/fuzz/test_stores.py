"""Databases, run folders and files of new entities whose bytes were changed: what was written, or an error in one sentence."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import RunConfig
from engine.errors import EngineError, JobError, ReviewError, RunError
from engine.explanation.new_entities import read_new_entities
from engine.explore.alignment import alignments
from engine.jobs import JobQueue, plan_training, summarise
from engine.reviews import Choice, ReviewStore
from engine.runs import RunStore
from engine.runs.view import RunView
from engine.util.paths import queue_file
from tests.data.writers import small_sample, write_openea
from tests.fuzz.effort import cases, in_time
from tests.fuzz.mutators import Change, changed, changes
from tests.fuzz.oracles import a_folder, assert_sentence
from tests.reviews.reviewers import DATA
from tests.run_fixture import analysed, sample_run, write_run

flips = st.lists(st.tuples(st.integers(0, 10**6 - 1), st.integers(1, 255)), min_size=1, max_size=6)
Flips = list[tuple[int, int]]


def flipped(content: bytes, several: Flips) -> bytes:
    """Bytes anywhere in the file, given in millionths of it, are others."""
    found = bytearray(content)
    for share, mask in several:
        found[len(found) * share // 10**6] ^= mask
    return bytes(found)


# Reviews


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with decisions that were taken, undone and carried."""
    path = tmp_path_factory.mktemp("reviews") / "reviews.sqlite3"
    store = ReviewStore(path)
    for number in range(12):
        choices = [Choice(f"http://a/{number}-{place}", f"http://b/{place}", "accept" if place else "reject", "a note") for place in range(3)]
        store.decide(DATA, choices, ("Ann", "Zo\u00eb")[number % 2], f"click-{number}")
    store.undo(DATA, "Ann", "undo")
    store.claim(DATA, "Ann", [("s", "t")])
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


def changed_cell(path: Path, statement: str, value: object, number: int, before: Sequence[str] = ()) -> bool:
    """Whether SQLite takes another value in one cell of a database; ``before``: statements that lift what forbids it."""
    with closing(sqlite3.connect(path)) as connection:
        for one in before:
            connection.execute(one)
        try:
            connection.execute(statement, (value, number))
            connection.commit()
        except sqlite3.Error:
            return False
    return True


def use_reviews(path: Path) -> None:
    """Everything that pages ask for, each time with a store of its own."""
    uses = (
        lambda store: store.history(DATA),
        lambda store: store.standing(DATA),
        lambda store: store.on_pair(DATA, ("http://a/0-0", "http://b/0")),
        lambda store: store.leased(DATA, "Ann"),
        lambda store: store.carried_pairs(DATA),
        lambda store: store.claim(DATA, "Ann", [("http://a/0-0", "http://b/0")]),
        lambda store: store.decide(DATA, Choice("http://a/new", "http://b/new", "accept"), "Ann", "new"),
        lambda store: store.undo(DATA, "Ann", "again"),
    )
    for use in uses:
        store = ReviewStore(path)
        try:
            for one in use(store):
                assert repr(one)
        except ReviewError as error:
            assert_sentence(error)
        finally:
            store.close()


@pytest.mark.timeout(1800)
@cases(12)
@given(several=flips)
def test_flipped_bytes_of_reviews(reviews: Path, several: Flips) -> None:
    with a_folder() as folder:
        (folder / "reviews.sqlite3").write_bytes(flipped(reviews.read_bytes(), several))
        with in_time():
            use_reviews(folder / "reviews.sqlite3")


@pytest.mark.timeout(1800)
@cases(10)
@given(several=changes())
def test_changed_reviews(reviews: Path, several: list[Change]) -> None:
    with a_folder() as folder:
        (folder / "reviews.sqlite3").write_bytes(changed(reviews.read_bytes(), several, reviews.read_bytes()))
        with in_time():
            use_reviews(folder / "reviews.sqlite3")


@pytest.mark.timeout(1800)
@cases(12)
@given(data=st.data())
def test_reviews_with_other_values(reviews: Path, data: st.DataObject) -> None:
    """Rows that SQLite takes and no version has ever written."""
    column = data.draw(
        st.sampled_from(
            ["source", "target", "author", "time", "verdict", "note", "run", "csls", "probability", "click", "place", "withdraws", "data_set"]
        )
    )
    value = data.draw(st.sampled_from([None, "", "x" * 10_000, "\0", b"\xff", -1, 2**62, 1e308, float("inf"), "nan", 1, 3, "\ud7ff", "accept"]))
    number = data.draw(st.integers(1, 36))
    with a_folder() as folder:
        path = folder / "reviews.sqlite3"
        shutil.copyfile(reviews, path)
        before = ("DROP TRIGGER decisions_are_not_changed", "PRAGMA ignore_check_constraints = ON")
        if changed_cell(path, f"UPDATE decisions SET {column} = ? WHERE number = ?", value, number, before):
            use_reviews(path)


# The queue


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("queue")
    write_openea(folder / "rings", small_sample())
    for seed, variant in enumerate(("basic", "semi", "basic")):
        config = RunConfig.from_dict({"variant": variant, "seed": seed})
        JobQueue(folder / "models").submit(plan_training(summarise(folder / "rings", config.data, seed), config, folder / "models"), "Ann")
    jobs = JobQueue(folder / "models")
    jobs.cancel(jobs.jobs()[1].id)
    return queue_file(folder / "models")


def use_queue(models: Path, content: bytes) -> None:
    path = queue_file(models)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    uses = (
        lambda jobs: [(one.name, one.config, one.variant, one.seed, one.resumable) for one in jobs.jobs()],
        lambda jobs: [jobs.resume(one.id) for one in jobs.jobs() if one.resumable],
        lambda jobs: [jobs.cancel(one.id) for one in jobs.jobs()],
        lambda jobs: jobs.find("01234567"),
        lambda jobs: jobs.take(),
        lambda jobs: jobs.settle(),
    )
    for use in uses:
        try:
            assert repr(use(JobQueue(models)))
        except EngineError as error:
            assert_sentence(error)


@pytest.mark.timeout(1800)
@cases(12)
@given(several=flips)
def test_flipped_bytes_of_the_queue(queue: Path, several: Flips) -> None:
    with a_folder() as folder, in_time():
        use_queue(folder, flipped(queue.read_bytes(), several))


@pytest.mark.timeout(1800)
@cases(12)
@given(data=st.data())
def test_a_queue_with_other_values(queue: Path, data: st.DataObject) -> None:
    column = data.draw(
        st.sampled_from(["id", "place", "data", "dataset", "run_id", "config", "sizes", "who", "submitted", "message", "run", "reviews", "parent"])
    )
    values = [
        "",
        "{}",
        "[]",
        "null",
        '{"variant": 3}',
        '{"entities": 1}',
        "x",
        "../..",
        "\0",
        "9" * 400,
        '{"seed": 1e999}',
        "\u202e",
        "[" * 5000,
        '{"training": 3}',
    ]
    value, number = data.draw(st.sampled_from(values)), data.draw(st.integers(1, 3))
    with a_folder() as folder:
        path = folder / "queue"
        shutil.copyfile(queue, path)
        if changed_cell(path, f"UPDATE jobs SET {column} = ? WHERE rowid = ?", value, number):
            use_queue(folder / "models", path.read_bytes())


# Runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_run(analysed(sample_run()), folder)
    return folder


def use_run(models: Path) -> tuple[object, ...]:
    """What pages and commands read of a run."""
    store = RunStore(models)
    store.list()
    run = store.find("towns/basic-s0-0123abcd")
    view = RunView(run)
    matches = [(one.entity, round(one.csls, 5)) for side in ("source", "target") for one in view.matches(side, 3)]  # type: ignore[arg-type]
    table = alignments(view)
    found = (view.entity("source", 1).label, view.entity("target", 5).uri, matches, repr(run.metrics), repr(table)[:2000])
    for name in run.files:
        run.content(name)
    return found


@pytest.mark.timeout(1800)
@cases(30)
@given(victim=st.integers(0, 999), several=flips, kind=changes(), simple=st.booleans())
def test_changed_runs(runs: Path, victim: int, several: Flips, kind: list[Change], simple: bool) -> None:
    """Every change of any file is noticed where the file is read as a whole or verified; before that, it is a sentence or a number."""
    files = sorted(path for path in runs.rglob("*") if path.is_file() and path.suffix in (".json", ".parquet", ".safetensors"))
    path = files[victim % len(files)]
    whole = path.read_bytes()
    content = flipped(whole, several) if simple else changed(whole, kind, files[(victim + 1) % len(files)].read_bytes())
    try:
        path.write_bytes(content)
        try:
            with in_time(), np.errstate(all="ignore"):
                use_run(runs)
        except EngineError as error:
            assert_sentence(error)
        if content != whole:
            try:
                RunStore(runs).find("towns/basic-s0-0123abcd").verify()
            except RunError as error:
                assert_sentence(error)
            else:
                assert path.name == "manifest.json"
                assert json.loads(content) == json.loads(whole)
    finally:
        path.write_bytes(whole)


def test_the_run_is_valid_at_first(runs: Path) -> None:
    assert use_run(runs)
    RunStore(runs).find("towns/basic-s0-0123abcd").verify()


def test_the_databases_are_valid_at_first(reviews: Path, queue: Path, tmp_path: Path) -> None:
    (tmp_path / "reviews.sqlite3").write_bytes(reviews.read_bytes())
    assert len(ReviewStore(tmp_path / "reviews.sqlite3").history(DATA)) == 36
    queue_file(tmp_path).parent.mkdir(parents=True, exist_ok=True)
    queue_file(tmp_path).write_bytes(queue.read_bytes())
    assert len(JobQueue(tmp_path).jobs()) == 3
    with pytest.raises(JobError):
        JobQueue(tmp_path).find("01234567")


# New entities

ENTITIES = """{"id": "x", "label": "N\u00e4me", "triples": [["x", "near", "http://left.org/Rome"]], "values": [["year", "1999"]]}
{"id": "y", "triples": [["Paris", "near", "y"]]}
{"id": "z", "names": ["one", "two \\u00e9"], "triples": []}
"""


@pytest.mark.timeout(1800)
@cases(30)
@given(several=changes())
def test_changed_new_entities(several: list[Change]) -> None:
    with a_folder() as folder:
        path = folder / "new.jsonl"
        path.write_bytes(changed(ENTITIES.encode(), several, ENTITIES.encode()))
        try:
            with in_time():
                found = read_new_entities(path)
        except EngineError as error:
            assert_sentence(error, str(path))
            return
        records = [{"id": one.id, "label": one.label, "names": one.names, "triples": one.triples, "values": one.values} for one in found]
        path.write_text("".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in records), encoding="utf-8", newline="")
        assert read_new_entities(path) == found


def test_a_copy_of_a_run_that_lacks_a_file(runs: Path, tmp_path: Path) -> None:
    for path in sorted((runs / "towns" / "basic-s0-0123abcd").iterdir()):
        models = tmp_path / path.name
        shutil.copytree(runs, models)
        (models / path.relative_to(runs)).unlink()
        if path.suffix in (".json", ".parquet", ".safetensors"):
            with pytest.raises(RunError) as caught:
                use_run(models)
            assert_sentence(caught.value)
