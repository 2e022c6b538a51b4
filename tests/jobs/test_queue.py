"""What a queue promises: order, one job a training, who is alive, nothing lost."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ConfigError, JobError
from engine.jobs import Job, JobQueue, Plan, plan_training, reachable, read_news, summarise, trainer_alive
from engine.jobs.queue import AT_WORK, ENDED, STATES
from engine.pipeline import train_run
from engine.runs import RunStore
from engine.util.paths import jobs_folder, queue_file, trainer_lock
from tests.effort import examples
from tests.jobs.conftest import MakePlan


@contextmanager
def a_trainer(models: Path) -> Iterator[JobQueue]:
    """The queue, with its trainer's lock held as a live trainer does."""
    jobs_folder(models).mkdir(parents=True, exist_ok=True)
    with FileLock(trainer_lock(models)):
        yield JobQueue(models)


def states(queue: JobQueue) -> list[str]:
    return [job.state for job in queue.jobs()]


def test_first_in_first_out_with_positions_for_all_to_see(models: Path, plan: MakePlan) -> None:
    queue = JobQueue(models)
    ids = [queue.submit(plan(seed), "Ann").job.id for seed in range(3)]
    assert [(job.id, job.position, job.who) for job in JobQueue(models).jobs()] == [(ids[0], 1, "Ann"), (ids[1], 2, "Ann"), (ids[2], 3, "Ann")]
    with a_trainer(models):
        assert [job.id for job in (queue.take(), queue.take()) if job] == ids[:2]
        assert [(job.state, job.position) for job in queue.jobs()] == [("running", 0), ("running", 0), ("queued", 1)]


def test_what_was_asked_for_comes_back_as_it_was(models: Path, plan: MakePlan) -> None:
    wanted = plan(7, "semi", **{"encoder.dim": 12})
    job = JobQueue(models).submit(wanted, "Zoë\n\x1b[1m").job
    assert (job.config, job.sizes, job.data, job.name) == (wanted.config, wanted.sizes, wanted.data, wanted.name)
    assert job.who == "Zoë\\n\\x1b[1m"


def test_the_same_training_joins_its_job_until_it_has_ended(models: Path, plan: MakePlan) -> None:
    queue = JobQueue(models)
    first, again = queue.submit(plan()), queue.submit(plan())
    assert (first.joined, again.joined) == (False, True)
    assert first.job.id == again.job.id
    with a_trainer(models):
        queue.take()
        assert queue.submit(plan()).joined
        queue.end(first.job.id, "failed", message="no")
    after = queue.submit(plan())
    assert (after.joined, after.job.id, after.job.state, after.job.message) == (False, first.job.id, "queued", "")
    assert len(queue.jobs()) == 1


def test_other_threads_make_no_other_training(models: Path, plan: MakePlan) -> None:
    assert plan(**{"training.threads": 1}).name == plan(**{"training.threads": None}).name
    assert plan(**{"encoder.dim": 9}).name != plan().name


def test_a_finished_run_is_not_trained_again_but_one_that_was_deleted_is(models: Path, plan: MakePlan) -> None:
    queue, wanted = JobQueue(models), plan()
    job = queue.submit(wanted).job
    run = train_run(wanted.data, wanted.config, RunStore(models)).run
    assert run.id == wanted.name
    queue.end(job.id, "finished", run=run.id)
    with pytest.raises(JobError, match="already exists"):
        queue.submit(plan())
    RunStore(models).delete(run)
    assert queue.submit(plan()).job.state == "queued"


def submit(models: Path, data: Path, config: object, gate: object, answers: object) -> None:
    wanted = plan_training(summarise(data, config.data, config.seed), config, models)  # type: ignore[attr-defined,arg-type]
    gate.wait()  # type: ignore[attr-defined]
    submission = JobQueue(models).submit(wanted)
    answers.put((submission.job.id, submission.joined))  # type: ignore[attr-defined]


def test_two_people_who_start_the_same_training_at_once_share_a_job(models: Path, plan: MakePlan) -> None:
    wanted, context = plan(), multiprocessing.get_context("spawn")
    gate, answers = context.Barrier(2), context.Queue()
    processes = [context.Process(target=submit, args=(models, wanted.data, wanted.config, gate, answers)) for _ in range(2)]
    for process in processes:
        process.start()
    found = [answers.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert len({job_id for job_id, _ in found}) == 1
    assert sorted(joined for _, joined in found) == [False, True]
    assert len(JobQueue(models).jobs()) == 1


def test_a_trainer_that_died_is_noticed_by_whoever_looks(models: Path, plan: MakePlan) -> None:
    with a_trainer(models) as queue:
        job = queue.submit(plan()).job
        queue.take()
        assert states(queue) == ["running"]
    assert not trainer_alive(models)
    (found,) = JobQueue(models).jobs()
    assert (found.state, found.resumable) == ("lost", True)
    assert "Resume continues from the last checkpoint" in found.message
    assert queue.resume(job.id).state == "queued"


def test_asking_whether_a_trainer_lives_changes_nothing(models: Path) -> None:
    assert not trainer_alive(models)
    with a_trainer(models):
        assert all(trainer_alive(models) for _ in range(100))
    with trainer_lock(models).open("rb") as file:
        fcntl = pytest.importorskip("fcntl")
        fcntl.flock(file, fcntl.LOCK_SH)  # somebody else who asks
        assert not trainer_alive(models)


def test_stop_asks_the_trainer_and_cancels_what_waits(models: Path, plan: MakePlan) -> None:
    with a_trainer(models) as queue:
        first, second = (queue.submit(plan(seed)).job for seed in range(2))
        queue.take()
        assert not queue.asked_to_stop(first.id)
        assert queue.stop(first.id).state == "stopping"
        assert queue.stop(first.id).state == "stopping", "twice does no harm"
        assert queue.asked_to_stop(first.id)
        assert queue.stop(second.id).state == "cancelled"
        queue.end(first.id, "stopped", run="rings/x")
        assert queue.find(first.id).run == "rings/x"
        with pytest.raises(JobError, match="is stopped; only a running job can be stopped"):
            queue.stop(first.id)
        with pytest.raises(JobError, match="only a queued job can be cancelled"):
            queue.cancel(first.id)
        assert queue.resume(first.id).position == 1
        assert queue.resume(second.id).position == 2


def test_a_finished_training_cannot_be_resumed(models: Path, plan: MakePlan) -> None:
    queue = JobQueue(models)
    job = queue.submit(plan()).job
    queue.end(job.id, "finished")
    with pytest.raises(JobError, match="is finished; only a job that stopped early"):
        queue.resume(job.id)


@pytest.mark.parametrize("job_id", ["", "x", "../../x", "0" * 8, "0" * 9, "\x1b[1m", "'; DROP TABLE jobs; --", "A" * 10_000])
def test_ids_that_are_none(models: Path, plan: MakePlan, job_id: str) -> None:
    queue = JobQueue(models)
    queue.submit(plan())
    for ask in (queue.find, queue.stop, queue.cancel, queue.resume):
        with pytest.raises(JobError, match="there is no job") as caught:
            ask(job_id)
        assert "\x1b" not in str(caught.value)
        assert len(str(caught.value)) < 200
    assert states(queue) == ["queued"]


def test_runs_do_not_see_the_queue(models: Path, plan: MakePlan) -> None:
    JobQueue(models).submit(plan())
    assert RunStore(models).list() == []


def test_looking_makes_nothing(models: Path) -> None:
    assert JobQueue(models).jobs() == []
    assert not models.exists()
    assert read_news(models, "0" * 8) is None


@pytest.mark.parametrize("content", [b"", b"no database at all" * 1000])
def test_a_queue_that_is_no_database(models: Path, plan: MakePlan, content: bytes) -> None:
    wanted = plan()
    queue_file(models).parent.mkdir(parents=True)
    queue_file(models).write_bytes(content)
    if content:
        with pytest.raises(JobError, match=r"cannot be used: .*runs are not affected"):
            JobQueue(models).jobs()
    else:  # made, and killed before anything was written
        assert JobQueue(models).submit(wanted).job.state == "queued"


def test_a_queue_of_a_newer_version(models: Path, plan: MakePlan) -> None:
    JobQueue(models).submit(plan())
    with sqlite3.connect(queue_file(models)) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(JobError, match="newer version"):
        JobQueue(models).jobs()


def test_settings_of_another_version_disturb_only_their_own_job(models: Path, plan: MakePlan) -> None:
    queue = JobQueue(models)
    job = queue.submit(plan()).job
    with sqlite3.connect(queue_file(models)) as database:
        database.execute("""UPDATE jobs SET config = '{"variant": "basic", "strange": {}}'""")
    database.close()
    assert [one.id for one in queue.jobs()] == [job.id]
    with pytest.raises(ConfigError, match="strange"):
        _ = queue.find(job.id).config


@pytest.mark.parametrize("option", ["literal.names", "literal.encoder"])
def test_a_browser_cannot_name_files_of_the_server(plan: MakePlan, data: Path, tmp_path: Path, option: str) -> None:
    word = "file" if option == "literal.names" else "vectors"
    (data / "link").symlink_to(tmp_path / "elsewhere")
    base = plan(variant="literal").config
    assert reachable(base.with_values({option: f"{word}:{data}/./names.json"}), [data]) == base.with_values({option: f"{word}:{data / 'names.json'}"})
    for name in ("/etc/passwd", f"{data}/../elsewhere", f"{data}/link", "", "\0", "names.json"):
        with pytest.raises(ConfigError, match="names a file outside the folders of this server"):
            reachable(base.with_values({option: f"{word}:{name}"}), [data])


@pytest.mark.parametrize("second", ["/etc/passwd", "names.json", "{data}/../elsewhere", "{data}/link"])
def test_every_path_of_a_setting_is_guarded(plan: MakePlan, data: Path, tmp_path: Path, second: str) -> None:
    (tmp_path / "elsewhere").write_text("word 1 0\n", encoding="utf-8")
    (data / "link").symlink_to(tmp_path / "elsewhere")
    (data / "x").write_text("word 1 0\n", encoding="utf-8")
    base = plan(variant="literal").config
    for pair in (f"{data / 'x'},{second.format(data=data)}", f"{second.format(data=data)},{data / 'x'}"):
        with pytest.raises(ConfigError, match=r"literal\.encoder names a file outside the folders of this server"):
            reachable(base.with_values({"literal.encoder": f"vectors:{pair}"}), [data])
    both = base.with_values({"literal.encoder": f"vectors:{data / 'x'},{data / 'x'}"})
    assert reachable(both, [data]) == both


def test_the_trainer_opens_the_file_that_was_checked(plan: MakePlan, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It works in another folder than the app, so a relative path would mean another file there."""
    monkeypatch.chdir(data)
    base = plan(variant="literal").config
    for key, kind in (("literal.names", "file"), ("literal.encoder", "vectors"), ("literal.encoder", "sentence")):
        checked = reachable(base.with_values({key: f"{kind}:some/where"}), [data])
        assert checked == base.with_values({key: f"{kind}:{data}/some/where"})


ACTIONS = ("submit", "take", "stop", "cancel", "resume", "finish", "fail", "die")


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2)), max_size=12))
def test_whatever_is_done_every_training_has_one_job_in_a_sensible_state(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int]]
) -> None:
    models = tmp_path_factory.mktemp("models")
    queue, lock = JobQueue(models), FileLock(trainer_lock(models))
    jobs_folder(models).mkdir()
    lock.acquire()
    plans = [replace(BARE, run_id=f"basic-s{seed}") for seed in range(3)]
    submitted: dict[int, str] = {}
    for action, number in actions:
        if action == "submit":
            submitted[number] = queue.submit(plans[number]).job.id
        elif action == "take":
            if not any(job.state in AT_WORK for job in queue.jobs()):
                queue.take()
        elif action == "die":
            lock.release()
            queue.jobs()
            lock.acquire()
        elif number in submitted:
            _change(queue, action, queue.find(submitted[number]))
        found = queue.jobs()
        assert sorted(job.id for job in found) == sorted(submitted.values())
        assert [job.position for job in found if job.state == "queued"] == list(range(1, 1 + sum(job.state == "queued" for job in found)))
        assert all(bool(job.ended) == (job.state in ENDED) for job in found)
        assert sum(job.state in AT_WORK for job in found) <= 1
    lock.release()


def _change(queue: JobQueue, action: str, job: Job) -> None:
    if action in ("finish", "fail"):
        if job.state in AT_WORK:
            queue.end(job.id, "finished" if action == "finish" else "failed")
        return
    try:
        {"stop": queue.stop, "cancel": queue.cancel, "resume": queue.resume}[action](job.id)
    except JobError:
        assert queue.find(job.id).state == job.state, "refused, and nothing changed"


def _bare() -> Plan:
    from engine.config import RunConfig
    from engine.training.estimate import Sizes

    return Plan(Path("rings"), RunConfig(), "rings", "", Sizes((6, 6), (6, 6), (1, 1), (0, 0), 2, 0, 4), finished=False)


BARE = _bare()


def test_the_number_of_those_that_wait_can_be_limited(models: Path, plan: MakePlan) -> None:
    queue = JobQueue(models)
    first = queue.submit(plan(0), most_waiting=2).job
    queue.submit(plan(1), most_waiting=2)
    for _ in range(2):
        with pytest.raises(JobError, match="2 training runs are waiting"):
            queue.submit(plan(2), most_waiting=2)
    assert queue.submit(plan(1), most_waiting=2).joined
    queue.cancel(first.id)
    queue.submit(plan(2), most_waiting=2)
    with pytest.raises(JobError, match="are waiting"):
        queue.resume(first.id, most_waiting=2)
    queue.submit(plan(3))
    assert len(queue.jobs()) == 4


def test_every_state_is_over_or_not() -> None:
    assert set(ENDED) | {"queued"} | set(AT_WORK) == set(STATES)
