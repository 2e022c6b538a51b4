"""The queue of trainings of a models folder: one SQLite database in WAL mode, so that any number of tabs and terminals may ask at once.

Every change is one transaction, on the disk when the call returns. A training is known by the run it will make (data, settings, seed): asked for
twice, it is in the queue once. A trainer is alive as long as it holds its lock; a running job without it is lost, and the next reader marks it so.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, get_args

from engine.config import RunConfig
from engine.errors import JobError, printable
from engine.jobs.endings import why_lost
from engine.jobs.launch import await_note, trainer_alive
from engine.jobs.plan import Plan
from engine.reviews import Snapshot
from engine.training.estimate import Sizes
from engine.util.files import new_file
from engine.util.paths import queue_file, reviews_copy, setup_lock
from engine.util.sqlite import Database, Schema
from engine.util.text import count, one_line

# A training that somebody asked for.

State = Literal["queued", "running", "stopping", "finished", "stopped", "failed", "lost", "cancelled"]
STATES: Final[tuple[State, ...]] = get_args(State)
AT_WORK: Final[tuple[State, ...]] = ("running", "stopping")
WAITING_OR_AT_WORK: Final[tuple[State, ...]] = ("queued", *AT_WORK)
ENDED: Final[tuple[State, ...]] = ("finished", "stopped", "failed", "lost", "cancelled")
RESUMABLE: Final[tuple[State, ...]] = ("stopped", "failed", "lost", "cancelled")

JOB_ID: Final = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True)
class Job:
    """A training in the queue, at work, or over.

    Attributes:
        id: eight hexadecimal digits.
        data: the data set's folder.
        dataset, run_id: what the finished run will be called; no two jobs share both.
        settings: as :meth:`engine.config.RunConfig.to_dict` gives them.
        sizes: of the data, to estimate how long it takes.
        who: the name of the person who requested it; "" where none is given.
        state: see :data:`State`; "lost": its trainer died without a word.
        submitted, started, ended: ISO 8601, UTC; "" for what has not happened yet.
        message: one sentence on how it ended, where there is something to say; "" otherwise.
        run: ``dataset/run_id`` of the run that it left behind; "" without one.
        reviews: name of the file beside the queue that holds the reviewers' decisions to train with; "" for none.
        parent: the run that is updated to a new version of its data; "" for a training from the start.
        position: 1 for the next one that a trainer takes; 0 unless queued.
    """

    id: str
    data: Path
    dataset: str
    run_id: str
    settings: Mapping[str, Any]
    sizes: Sizes
    who: str
    state: State
    submitted: str
    started: str = ""
    ended: str = ""
    message: str = ""
    run: str = ""
    reviews: str = ""
    parent: str = ""
    position: int = 0

    @property
    def config(self) -> RunConfig:
        """All settings.

        Raises:
            ConfigError: they were written by another version and mean nothing to this one.
        """
        return RunConfig.from_dict(self.settings)

    @property
    def variant(self) -> str:
        """The variant, or the baseline that takes its place."""
        baseline = self.settings.get("baseline")
        method = str(baseline.get("method", "none")) if isinstance(baseline, Mapping) else "none"
        return str(self.settings.get("variant", "")) if method == "none" else method

    @property
    def seed(self) -> int:
        return int(self.settings.get("seed", 0))

    @property
    def active(self) -> bool:
        """Whether it waits or is worked at."""
        return self.state in WAITING_OR_AT_WORK

    @property
    def resumable(self) -> bool:
        """Whether it can be put into the queue again, to resume from its last checkpoint."""
        return self.state in RESUMABLE

    @property
    def name(self) -> str:
        """``dataset/run_id``, for people."""
        return f"{self.dataset}/{self.run_id}"


LONGEST_NAME: Final = 100

TABLE: Final = f"""
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY,
    place INTEGER NOT NULL,
    data TEXT NOT NULL,
    dataset TEXT NOT NULL,
    run_id TEXT NOT NULL,
    config TEXT NOT NULL,
    sizes TEXT NOT NULL,
    who TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ({", ".join(f"'{state}'" for state in STATES)})),
    submitted TEXT NOT NULL,
    started TEXT NOT NULL DEFAULT '',
    ended TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    run TEXT NOT NULL DEFAULT '',
    reviews TEXT NOT NULL DEFAULT '',
    UNIQUE (dataset, run_id)
) STRICT;
"""
UPDATES: Final = "ALTER TABLE jobs ADD COLUMN parent TEXT NOT NULL DEFAULT '';"
SCHEMA: Final = Schema(
    what="the training queue",
    error=JobError,
    unharmed="runs are not affected",
    damaged="move it away or restore it from a backup (runs are not affected)",
    migrations=(TABLE, UPDATES),
    patience=20.0,
)


@dataclass(frozen=True)
class Submission:
    """What became of a request: a job, and whether it was there before (``joined``)."""

    job: Job
    joined: bool


class JobQueue:
    """The queue of a models folder, which need not exist yet; it is made by the first request. Cheap to make, holds nothing open.

    All methods raise :class:`engine.errors.JobError` where the database cannot be read or written.
    """

    def __init__(self, models: Path | str) -> None:
        self.models = Path(models)
        self._database = Database(queue_file(self.models), SCHEMA, lock=setup_lock(self.models), keep_open=False)

    # For everybody

    def jobs(self) -> list[Job]:
        """All jobs: those at work, those that wait in their order, then the others, the last one first. Notices dead trainers."""
        if not queue_file(self.models).exists():
            return []
        found = self._read()
        if any(job.state in AT_WORK for job in found) and not trainer_alive(self.models):
            with contextlib.suppress(JobError):  # a disk that is full or read-only: what is known is shown, and written when there is room
                self.settle()
                found = self._read()
            if any(job.state in AT_WORK for job in found) and not trainer_alive(self.models):
                found = [replace(job, state="lost", message=why_lost(self.models)) if job.state in AT_WORK else job for job in found]
        return found

    def find(self, job_id: str) -> Job:
        """
        Raises:
            JobError: no such job.
        """
        for job in self.jobs() if JOB_ID.fullmatch(job_id) else ():
            if job.id == job_id:
                return job
        raise JobError(f"there is no job '{printable(job_id[:40])}'; choose one from the queue.")

    def submit(self, plan: Plan, who: str = "", *, most_waiting: int | None = None) -> Submission:
        """Ask for a training. One that is known joins its job; if that ended without a finished run, it is queued again.

        This starts no trainer: see :func:`engine.jobs.launch.start_trainer`.

        Args:
            plan: what to train.
            who: the name of the person who asks.
            most_waiting: how many may wait at most; None: any number.

        Raises:
            JobError: there is such a run already, or too many wait.
        """
        if plan.finished:
            raise JobError(f"run {plan.name} already exists; open it, or change the random seed or a setting.")
        with self._database.writing() as database:
            row = database.execute("SELECT id, state FROM jobs WHERE dataset = ? AND run_id = ?", (plan.dataset, plan.run_id)).fetchone()
            if row is None or row["state"] not in WAITING_OR_AT_WORK:
                _check_room(database, most_waiting)
            if row is None:
                job_id = secrets.token_hex(4)
                self._insert(database, job_id, plan, who)
            elif row["state"] not in WAITING_OR_AT_WORK:
                job_id = row["id"]
                self._requeue(database, job_id, plan.data)
            else:
                job_id = row["id"]
        return Submission(self._one(job_id), joined=row is not None and row["state"] in WAITING_OR_AT_WORK)

    def stop(self, job_id: str) -> Job:
        """Ask a job that is worked at to end after its step; what was learned so far is kept as a run. A queued one is cancelled.

        Raises:
            JobError: no such job, or it is over.
        """
        job = self.find(job_id)
        if job.state == "queued":
            return self.cancel(job_id)
        return self._move(job, AT_WORK, "stopping", "only a running job can be stopped")

    def cancel(self, job_id: str) -> Job:
        """Take a job out of the queue.

        Raises:
            JobError: no such job, or it does not wait any more.
        """
        return self._move(self.find(job_id), ("queued",), "cancelled", "only a queued job can be cancelled", ended=now())

    def resume(self, job_id: str, *, most_waiting: int | None = None) -> Job:
        """Queue a job again that ended without a finished run: training resumes from the last checkpoint.

        Raises:
            JobError: no such job, or it is not over, or finished, or too many wait (as for :meth:`submit`).
        """
        job = self.find(job_id)
        with self._database.writing() as database:
            state = database.execute("SELECT state FROM jobs WHERE id = ?", (job.id,)).fetchone()["state"]
            if state in RESUMABLE:
                _check_room(database, most_waiting)
                self._requeue(database, job.id, job.data)
            elif state not in WAITING_OR_AT_WORK:
                raise JobError(f"job {job.name} is {state}; only a job that stopped early can be resumed.")
        return self._one(job.id)

    def settle(self) -> None:
        """Jobs at work while no trainer lives are lost.

        Looks within the transaction: a trainer says how a job ended before it lets go of its lock, so that nothing in between can be mistaken.
        """
        await_note(self.models)
        with self._database.writing() as database:
            if not trainer_alive(self.models):
                self.declare_lost(database)

    # For the trainer, which holds the lock

    def declare_lost(self, database: sqlite3.Connection | None = None) -> None:
        """All running jobs are lost: for callers that hold the trainer's lock."""
        words = f"UPDATE jobs SET state = 'lost', ended = ?, message = ? WHERE state IN {_listed(AT_WORK)}"
        with contextlib.nullcontext(database) if database is not None else self._database.writing() as given:
            given.execute(words, (now(), why_lost(self.models)))

    def take(self) -> Job | None:
        """The job that waits longest, which is at work from now on; None if none waits."""
        with self._database.writing() as database:
            row = database.execute("SELECT id FROM jobs WHERE state = 'queued' ORDER BY place LIMIT 1").fetchone()
            if row is None:
                return None
            database.execute("UPDATE jobs SET state = 'running', started = ?, ended = '', message = '' WHERE id = ?", (now(), row["id"]))
        return self._one(row["id"])

    def any_waiting(self) -> bool:
        """Whether a trainer has something to do."""
        return any(job.state == "queued" for job in self.jobs())

    def asked_to_stop(self, job_id: str) -> bool:
        """Whether this job was asked to stop."""
        with self._database.reading() as database:
            row = database.execute("SELECT state FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return row is None or row["state"] != "running"

    def end(self, job_id: str, state: State, *, message: str = "", run: str = "") -> None:
        """Say how a job at work ended."""
        with self._database.writing() as database:
            database.execute(
                "UPDATE jobs SET state = ?, ended = ?, message = ?, run = CASE WHEN ? = '' THEN run ELSE ? END WHERE id = ?",
                (state, now(), message, run, run, job_id),
            )

    # Rows

    def _insert(self, database: sqlite3.Connection, job_id: str, plan: Plan, who: str) -> None:
        reviews = "" if plan.reviews is None else self._kept(plan.reviews)
        values = (job_id, str(plan.data), plan.dataset, plan.run_id, json.dumps(plan.config.to_dict()), json.dumps(asdict(plan.sizes)))
        database.execute(
            "INSERT INTO jobs (id, place, data, dataset, run_id, config, sizes, reviews, parent, who, submitted, state) "
            f"VALUES (?, {_LAST_PLACE}, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued')",
            (*values, reviews, plan.parent, one_line(printable(who), LONGEST_NAME), now()),
        )

    def _kept(self, reviews: Snapshot) -> str:
        """The decisions as they are now, in a file of their own: others may be taken before the training begins. Returns its name."""
        path = reviews_copy(self.models, reviews.digest)
        with new_file(path, force=True) as file:
            reviews.table().to_parquet(file, index=False)
        return path.name

    def _requeue(self, database: sqlite3.Connection, job_id: str, data: Path) -> None:
        database.execute(
            f"UPDATE jobs SET state = 'queued', place = {_LAST_PLACE}, data = ?, started = '', ended = '', message = '' WHERE id = ?",
            (str(data), job_id),
        )

    def _move(self, job: Job, states: Sequence[State], to: State, otherwise: str, ended: str = "") -> Job:
        with self._database.writing() as database:
            words = f"UPDATE jobs SET state = ?, ended = ? WHERE id = ? AND state IN {_listed(states)}"
            moved = database.execute(words, (to, ended, job.id)).rowcount
        after = self._one(job.id)
        if not moved:
            raise JobError(f"job {job.name} is {after.state}; {otherwise}.")
        return after

    def _one(self, job_id: str) -> Job:
        """A job as stored, without a check of its trainer."""
        return next(job for job in self._read() if job.id == job_id)

    def _read(self) -> list[Job]:
        with self._database.reading() as database:
            rows = database.execute("SELECT * FROM jobs ORDER BY place").fetchall()
        waiting = [row["id"] for row in rows if row["state"] == "queued"]
        try:
            found = [_job(row, waiting) for row in rows]
        except (ValueError, TypeError, RecursionError, IndexError):
            words = "the file is damaged (a job makes no sense)"
            raise JobError(f"{SCHEMA.what} in {queue_file(self.models)} cannot be used: {words}; {SCHEMA.damaged}.") from None
        active = sorted((job for job in found if job.active), key=lambda job: job.position)  # 0 at work
        return [*active, *sorted((job for job in found if not job.active), key=lambda job: job.ended, reverse=True)]


def _check_room(database: sqlite3.Connection, most: int | None) -> None:
    """
    Raises:
        JobError: as many training runs wait as may.
    """
    waiting = int(database.execute("SELECT COUNT(*) FROM jobs WHERE state = 'queued'").fetchone()[0])
    if most is not None and waiting >= most:
        words = count(waiting, "training run is", "training runs are")
        raise JobError(f"{words} waiting, the limit of this server; cancel one, or try again when one has started.")


_LAST_PLACE: Final = "(SELECT COALESCE(MAX(place), 0) + 1 FROM jobs)"


def now() -> str:
    """ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _listed(states: Sequence[State]) -> str:
    """SQL for a set of states, which are names of ours."""
    return f"({', '.join(repr(state) for state in states)})"


def _job(row: Any, waiting: Sequence[str]) -> Job:
    """A row as a job.

    Raises:
        ValueError, TypeError, RecursionError, IndexError: a row that no version has written.
    """
    position = waiting.index(row["id"]) + 1 if row["id"] in waiting else 0
    settings, sizes = json.loads(row["config"]), json.loads(row["sizes"])
    if not isinstance(settings, dict) or not isinstance(sizes, dict):
        raise TypeError("no object")
    names = ("id", "dataset", "run_id", "who", "state", "submitted", "started", "ended", "message", "run", "reviews", "parent")
    texts = {name: row[name] for name in names}
    return Job(data=Path(row["data"]), settings=settings, sizes=Sizes(**_tupled(sizes)), position=position, **texts)


def _tupled(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
