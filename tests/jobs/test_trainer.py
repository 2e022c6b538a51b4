"""The process that trains: what it leaves behind however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from benchmarks.kills.trainings import same_bits
from engine.config import RunConfig
from engine.data import load_task
from engine.jobs import Job, JobQueue, plan_training, read_news, start_trainer, summarise, trainer_alive, why_refused
from engine.jobs.progress import MOST_POINTS, Reporter
from engine.jobs.trainer import work
from engine.pipeline import Phase, train_run
from engine.reviews import Choice, ReviewStore, snapshot_of
from engine.runs import RunStore
from engine.training.estimate import estimate_training
from engine.training.trainer import Progress
from engine.util.arrays import IntArray
from engine.util.paths import jobs_folder, reviews_file, trainer_lock
from tests.jobs.conftest import SETTINGS, MakePlan
from tests.training.test_estimate import MACHINE, SIZES

PATIENCE = 120  # seconds


def none(models: Path) -> None:
    """No successor: what waits keeps waiting."""


def wait_for(condition: Callable[[], Any]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.01)


def test_a_training_from_the_queue_is_the_run_that_train_makes(models: Path, tmp_path: Path, plan: MakePlan) -> None:
    wanted = plan(variant="literal")
    job = JobQueue(models).submit(wanted).job
    assert work(models, successor=none) is not None
    done = JobQueue(models).find(job.id)
    assert (done.state, done.run, done.message) == ("finished", wanted.name, "")
    direct = train_run(wanted.data, wanted.config, RunStore(tmp_path / "direct")).run
    queued = RunStore(models).find(done.run)
    assert queued.run_id == direct.run_id
    assert (queued.tensor("embeddings", "source") == direct.tensor("embeddings", "source")).all()
    news = read_news(models, job.id)
    assert news is not None
    assert [point.epoch for point in news.points] == list(range(1, news.epochs + 1))
    assert [one.number for one in news.rounds] == [0, 1]
    assert not trainer_alive(models)


def test_decisions_are_those_of_the_moment_of_asking(data: Path, models: Path) -> None:
    config = RunConfig().with_values(SETTINGS)
    task = load_task(data, config.data, config.seed)
    models.mkdir()
    store = ReviewStore(reviews_file(models))

    def accept(link: IntArray) -> None:
        pair = task.source.entities[link[0]], task.target.entities[link[1]]
        store.decide(task.fingerprint, Choice(*pair, "accept"), "Ann", f"click-{link[0]}")

    accept(task.test_links[0])
    summary = summarise(data, config.data, config.seed, lambda fingerprint: snapshot_of(fingerprint, store.standing(fingerprint)))
    wanted, without = (plan_training(one, config, models) for one in (summary, summarise(data, config.data, config.seed)))
    assert wanted.run_id != without.run_id
    assert wanted.sizes.train == without.sizes.train + 1
    queue = JobQueue(models)
    job = queue.submit(wanted).job
    accept(task.test_links[1])
    store.close()
    work(models, successor=none)
    assert queue.find(job.id).run == wanted.name
    run = RunStore(models).find(wanted.name)
    assert run.manifest["reviews"]["accepted"] == 1
    assert run.table("reviews")["source_uri"].tolist() == [task.source.entities[task.test_links[0][0]]]


def test_a_trainer_takes_one_job_and_leaves_the_others_to_its_successor(models: Path, plan: MakePlan) -> None:
    queue = JobQueue(models)
    for seed in range(2):
        queue.submit(plan(seed))
    successors: list[Path] = []
    work(models, successor=successors.append)
    assert successors == [models]
    work(models, successor=successors.append)
    assert len(successors) == 1
    assert [job.state for job in queue.jobs()] == ["finished", "finished"]
    assert work(models, successor=successors.append) is None


def test_one_trainer_at_a_time(models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.jobs.trainer.LOCK_SECONDS", 0.1)
    queue = JobQueue(models)
    queue.submit(plan())
    with FileLock(trainer_lock(models)):
        assert work(models, successor=none) is None
        assert not start_trainer(models)
    assert [job.state for job in queue.jobs()] == ["queued"]


def stop_at(monkeypatch: pytest.MonkeyPatch, models: Path, epoch: int) -> None:
    """Somebody presses Stop when this epoch is done."""
    event = Reporter.event
    monkeypatch.setattr("engine.jobs.trainer.ASK_SECONDS", 0.0)

    def watched(self: Reporter, shown: object) -> None:
        event(self, shown)  # type: ignore[arg-type]
        if (isinstance(shown, Progress) and shown.epoch == epoch) or (epoch == 0 and isinstance(shown, Phase) and shown.name == "train"):
            JobQueue(models).stop(self.job_id)

    monkeypatch.setattr(Reporter, "event", watched)


def test_stop_keeps_a_run_and_resume_ends_where_unbroken_training_does(
    models: Path, tmp_path: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, queue = plan(), JobQueue(models)
    job = queue.submit(wanted).job
    with monkeypatch.context() as patched:
        stop_at(patched, models, 3)
        work(models, successor=none)
    stopped = queue.find(job.id)
    assert stopped.state == "stopped"
    assert stopped.run.startswith(f"{wanted.name}-e3")
    assert RunStore(models).find(stopped.run).manifest["status"] == "stopped"
    queue.resume(job.id)
    work(models, successor=none)
    assert queue.find(job.id).run == wanted.name
    news = read_news(models, job.id)
    assert news is not None
    assert [point.epoch for point in news.points] == [1, 2, 3, 4, 5, 6]
    assert same_bits(RunStore(models).find(wanted.name), train_run(wanted.data, wanted.config, RunStore(tmp_path / "unbroken")).run)


def test_stopped_before_there_is_anything_to_keep(models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    job = JobQueue(models).submit(plan()).job
    Reporter(models, job.id).event(Progress(6, 40, 5.0, 1.0, 2.0))  # of a trainer that was killed before its first checkpoint
    stop_at(monkeypatch, models, 0)
    work(models, successor=none)
    after = JobQueue(models).find(job.id)
    assert (after.state, after.run) == ("stopped", "")
    assert "there is no run yet" in after.message
    assert read_news(models, job.id) is None, "a curve of epochs that are lost"


def test_users_mistakes_and_our_own_are_distinguished(
    models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    queue = JobQueue(models)
    mistake = queue.submit(plan(**{"training.patience": 1})).job
    work(models, successor=none)
    shown = queue.find(mistake.id)
    assert shown.state == "failed"
    assert shown.message.startswith("training.patience needs validation links")

    def broken(*_: object, **__: object) -> None:
        raise KeyError("secret detail")

    for error, words in ((KeyError("secret"), "a defect of the program"), (MemoryError(), "out of memory")):
        monkeypatch.setattr("engine.jobs.trainer.train_run", lambda *_, error=error, **__: (_ for _ in ()).throw(error))
        job = queue.submit(plan(5)).job
        work(models, successor=none)
        after = queue.find(job.id)
        assert (after.state, words in after.message, "secret" in after.message) == ("failed", True, False)
    assert "Traceback" in capfd.readouterr().err


@pytest.mark.parametrize(("variant", "start", "reason"), [("basic", "auto", "trains only on known links"), ("semi", "triples", "needs known links")])
def test_without_links_a_refused_training_leaves_no_folder(variant: str, start: str, reason: str, data: Path, models: Path, plan: MakePlan) -> None:
    for links in [data / "ent_links", *data.glob("721_5fold/*/*_links")]:
        links.unlink(missing_ok=True)
    for folder in sorted(data.glob("721_5fold/**"), reverse=True):
        folder.rmdir()
    queue = JobQueue(models)
    asked = plan(variant=variant, **{"semi.start": start})
    assert reason in why_refused(data, asked.config)
    job = queue.submit(asked).job
    work(models, successor=none)
    shown = queue.find(job.id)
    assert shown.state == "failed"
    assert reason in shown.message
    assert RunStore(models).list() == []


def test_data_that_are_gone(models: Path, plan: MakePlan) -> None:
    wanted = plan()
    job = JobQueue(models).submit(wanted).job
    wanted.data.rename(wanted.data.with_name("elsewhere"))
    work(models, successor=none)
    assert "there is no such folder" in JobQueue(models).find(job.id).message


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_trainer_outlives_who_started_it_and_ends_well_on_a_signal(models: Path, plan: MakePlan) -> None:
    """The app dies by kill -9; the trainer continues, and keeps its state when the machine shuts down."""
    queue = JobQueue(models)
    job = queue.submit(plan(**{"training.epochs": 100_000})).job
    words = "import sys, time; from pathlib import Path; from engine.jobs import start_trainer; start_trainer(Path(sys.argv[1])); time.sleep(600)"
    app = subprocess.Popen([sys.executable, "-c", words, str(models)], env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        wait_for(lambda: trainer_alive(models))
    finally:
        app.kill()
        app.wait()
    wait_for(lambda: (news := read_news(models, job.id)) is not None and news.epoch > 2)
    assert queue.find(job.id).state == "running"
    queue.stop(job.id)
    wait_for(lambda: not trainer_alive(models))
    after = queue.find(job.id)
    assert after.state == "stopped"
    assert RunStore(models).find(after.run).manifest["status"] == "stopped"


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ended_by_the_machine_it_keeps_its_state_and_takes_no_other(
    number: signal.Signals, models: Path, plan: MakePlan, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may have been started with nohup
    request.addfinalizer(lambda: signal.signal(signal.SIGHUP, before))
    queue = JobQueue(models)
    job, other = (queue.submit(plan(seed)).job for seed in range(2))
    successors: list[Path] = []
    event = Reporter.event

    def terminated(self: Reporter, shown: object) -> None:
        event(self, shown)  # type: ignore[arg-type]
        if isinstance(shown, Progress) and shown.epoch == 2:
            signal.raise_signal(number)

    monkeypatch.setattr(Reporter, "event", terminated)
    work(models, successor=successors.append)
    after = queue.find(job.id)
    assert after.state == "stopped"
    assert (
        after.message == "the worker was terminated from outside, for example by a shutdown; the progress is kept, and Resume continues from there."
    )
    assert queue.find(other.id).state == "queued"
    assert not successors


def test_news_are_whole_whenever_they_are_read_and_a_resumed_curve_continues(models: Path) -> None:
    jobs_folder(models).mkdir(parents=True)
    now = [100.0]
    estimate = estimate_training(SIZES, RunConfig().with_values({"training.epochs": 20}), MACHINE)
    reporter = Reporter(models, "0" * 8, estimate, clock=lambda: now[0])
    for epoch in range(1, 6):
        reporter.event(Progress(epoch, 20, float(epoch), 45.0 + 2.0 * epoch, 0.0, None, None if epoch == 1 else 2.0))
        if epoch == 1:  # it compiled the kernels, which says nothing of the others
            begun = read_news(models, "0" * 8)
            assert begun is not None
            assert begun.remaining == pytest.approx(estimate.training * 19 / 20 + estimate.after)
    news = read_news(models, "0" * 8)
    assert news is not None
    assert news.remaining == pytest.approx(30.0 + estimate.after)
    again = Reporter(models, "0" * 8, estimate, clock=lambda: now[0], steady=lambda: now[0])
    again.event(Progress(3, 20, 30.0, 6.0, 0.0))
    resumed = read_news(models, "0" * 8)
    assert resumed is not None
    assert [(point.epoch, point.loss) for point in resumed.points] == [(1, 1.0), (2, 2.0), (3, 30.0)]
    now[0] += 10
    again.step()
    after = read_news(models, "0" * 8)
    assert after is not None
    assert (after.step, after.at) == (1, 110.0)
    for epoch in range(4, MOST_POINTS + 10):
        again.news = again.news
        again._progress(Progress(epoch, 2000, 1.0, 1.0, 1.0))
    again.write()
    long = read_news(models, "0" * 8)
    assert long is not None
    assert len(long.points) == MOST_POINTS


@pytest.mark.parametrize("content", ["", "{", "[]", '{"at": 1}', '{"at": 1, "points": [{"x": 1}], "rounds": [], "notes": []}', "\x00"])
def test_news_that_are_none(models: Path, content: str) -> None:
    jobs_folder(models).mkdir(parents=True)
    (jobs_folder(models) / "00000000.json").write_text(content, encoding="utf-8")
    assert read_news(models, "0" * 8) is None


def test_a_job_is_what_the_queue_says(models: Path, plan: MakePlan) -> None:
    job = JobQueue(models).submit(plan()).job
    assert isinstance(job, Job)
    assert (job.active, job.resumable, job.variant, job.seed) == (True, False, "basic", 0)
