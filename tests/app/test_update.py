"""The form on Train that starts from a run on an earlier version of the data: what it says, what it queues, what becomes of it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.cli.queue import job_line
from engine.config import RunConfig
from engine.data import load_task
from engine.errors import DataError
from engine.jobs import JobQueue, plan_training, plan_update, summarise, summarise_update
from engine.jobs.queue import SCHEMA, TABLE
from engine.jobs.trainer import work
from engine.pipeline import train_run, update_config, update_run
from engine.reviews import Choice, ReviewStore
from engine.runs import RunStore
from engine.util.paths import data_folder, queue_file, reviews_file
from tests.app.conftest import OpenPage, assert_no_crash, links, words
from tests.data.writers import Sample, write_openea
from tests.jobs.conftest import SETTINGS


def write_towns(folder: Path, numbers: Sequence[int], seeds: int = 5) -> Path:
    """Two rings of the same towns, all of them linked; the first ones are seeds, the others test links."""
    rings = [
        tuple((f"{word}{one}", "near", f"{word}{numbers[(at + step) % len(numbers)]}") for at, one in enumerate(numbers) for step in (1, 3))
        for word in ("left", "right")
    ]
    linked = tuple((f"left{one}", f"right{one}") for one in numbers)
    write_openea(folder, Sample(rings[0], rings[1], linked, linked[:seeds]))
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``towns``, 16 of them, and ``models``, which has a run on these."""
    folder = tmp_path_factory.mktemp("versions")
    train_run(write_towns(folder / "towns", range(16)), RunConfig().with_values(SETTINGS), RunStore(folder / "models"))
    return folder


@pytest.fixture
def parent(trained: Path, models: Path) -> str:
    """The run in the app's models folder; among the data sets ``towns_june`` has another town, and ``others`` other towns."""
    shutil.copytree(trained / "models", models)
    write_towns(data_folder() / "towns_june", [*range(15), 16])
    write_towns(data_folder() / "others", range(100, 116))
    return RunStore(models).list()[0].id


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """No trainer is started; where one would have been."""
    found: list[Path] = []
    for place in ("engine.jobs.start_trainer", "engine.jobs.launch.start_trainer"):
        monkeypatch.setattr(place, lambda models: found.append(models) or True)
    return found


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


def start_box(app: AppTest) -> Any:
    return next((box for box in app.main.selectbox if box.label == "Earlier run to start from"), None)


def message(app: AppTest) -> str:
    return words(app).replace("\\", "").replace("\u2068", "").replace("\u2069", "")


def test_what_a_training_starts_from_is_a_choice(parent: str, open_page: OpenPage) -> None:
    app = open_page("train", data="towns_june")
    assert_no_crash(app)
    box = start_box(app)
    assert [option.partition(" ·")[0] for option in box.options] == ["none (new training)", parent]
    assert "Start training" in [button.label for button in app.button]
    box.set_value(parent).run()
    assert_no_crash(app)
    assert app.query_params["start"] == parent
    shown = message(app)
    assert shown.count("**15** entities carried over, 1 new, 1 removed") == 2, "of each graph"
    assert "Variant **basic**, random seed 0" in shown
    assert "5 seed links, 0 validation and 11 test links" in shown, "links keep their part"
    assert not [group for group in app.radio if group.label == "Variant"], "which is the run's own"
    start_box(app).set_value("").run()
    assert "start" not in app.query_params


def test_without_runs_on_other_data_there_is_no_choice(open_page: OpenPage) -> None:
    assert start_box(open_page("train", data="europe")) is None


def test_an_update_is_queued_followed_and_leads_to_what_changed(parent: str, models: Path, open_page: OpenPage, started: list[Path]) -> None:
    app = press(open_page("train", data="towns_june", start=parent, set=["training.epochs=2"]), "Start update")
    assert_no_crash(app)
    (job,) = JobQueue(models).jobs()
    assert (job.parent, job.dataset, job.config.training.epochs, job.state) == (parent, "towns_june", 2, "queued")
    assert started == [models]
    assert "is already in the queue" in message(open_page("train", data="towns_june", start=parent, set=["training.epochs=2"]))
    assert f"{job.name}  update of {parent}  number 1" in job_line(job, None)
    watched = message(open_page("train", job=job.id))
    assert f"update of {parent}" in watched
    assert work(models, successor=lambda folder: None) is not None
    done = JobQueue(models).find(job.id)
    assert (done.state, done.run) == ("finished", job.name), "the run that the plan said"
    assert RunStore(models).find(done.run).manifest["parent"]["run"] == parent
    app = open_page("train", job=job.id)
    assert_no_crash(app)
    (changed,) = [link for link in links(app) if link.startswith("changes?")]
    assert done.run.replace("/", "%2F") in changed
    app = open_page("changes", run=done.run)
    assert_no_crash(app)
    assert "15 entities in both versions, 1 added, 1 removed" in message(app)
    assert parent in next(box for box in app.main.selectbox if box.label == "Compared with").value
    again = open_page("train", data="towns_june", start=parent, set=["training.epochs=2"])
    assert "already exists" in message(again)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"data": "others"}, "0 of 16 entities (0%)"),
        ({"start": "towns/gone"}, "There is no run"),
        ({"start": "../../etc"}, "There is no run"),
        ({"start": "<b>x</b>"}, "There is no run"),
        ({"set": "encoder.dim=16"}, "encoder"),
        ({"set": "nothing.here=1"}, "unknown option"),
        ({"set": "training.epochs=0"}, "must"),
    ],
)
def test_what_cannot_be_updated_is_refused_in_a_sentence(
    parent: str, models: Path, open_page: OpenPage, parameters: dict[str, str], sentence: str
) -> None:
    app = open_page("train", **{"data": "towns_june", "start": parent, **parameters})
    assert_no_crash(app)
    assert sentence in " ".join(str(error.value) for error in app.error).replace("\\", "")
    assert "<b>" not in words(app)
    assert "Start update" not in [button.label for button in app.button]
    assert start_box(app) is not None, "another run can be chosen"
    assert not JobQueue(models).jobs()


def test_the_plan_names_the_run_that_the_update_makes(trained: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    shutil.copytree(trained / "models", models)
    run = RunStore(models).find(RunStore(models).list()[0].id)
    later = write_towns(tmp_path / "later", [*range(14), 20, 21])
    config = update_config(run, later, epochs=1)
    plan = plan_update(summarise_update(run, later, config, models), config, models)
    assert (plan.parent, plan.finished) == (run.id, False)
    assert update_run(run, later, config, RunStore(models)).run.id == plan.name
    assert plan_update(summarise_update(run, later, config, models), config, models).finished
    with pytest.raises(DataError, match="needs at least 50%"):
        summarise_update(run, write_towns(tmp_path / "strange", range(50, 66)), config, models)


def test_the_plan_counts_the_reviews_that_the_parent_was_trained_with(tmp_path: Path) -> None:
    models, towns = tmp_path / "models", write_towns(tmp_path / "towns", range(16))
    models.mkdir()
    store = ReviewStore(reviews_file(models))
    store.decide(load_task(towns).fingerprint, Choice("left9", "right9", "accept"), "Ann", "click")
    store.close()
    run = train_run(towns, RunConfig().with_values(SETTINGS), RunStore(models), reviews=reviews_file(models)).run
    later = write_towns(tmp_path / "later", [*range(14), 20, 21])
    config = update_config(run, later, epochs=1)
    update = summarise_update(run, later, config, models)
    assert update.data.sizes.train == 6
    assert update_run(run, later, config, RunStore(models)).run.id == plan_update(update, config, models).name


def test_an_update_whose_parent_was_deleted_fails_with_a_sentence(parent: str, models: Path, open_page: OpenPage) -> None:
    press(open_page("train", data="towns_june", start=parent), "Start update")
    shutil.rmtree(models / parent)
    work(models, successor=lambda folder: None)
    (job,) = JobQueue(models).jobs()
    assert job.state == "failed"
    assert f"there is no run {parent}" in job.message


def test_a_queue_of_an_older_version_is_read_and_extended(models: Path, tmp_path: Path) -> None:
    path = queue_file(models)
    path.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(f"{TABLE}PRAGMA user_version = 1;")
    assert len(SCHEMA.migrations) == 2
    assert JobQueue(models).jobs() == []
    data = write_towns(tmp_path / "towns", range(16))
    config = RunConfig()
    job = JobQueue(models).submit(plan_training(summarise(data, config.data, 0), config, models)).job
    assert job.parent == ""
