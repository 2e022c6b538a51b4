"""The trainer: takes one job after the other and trains it, with its news and its log, while it holds the models folder's lock.

Each job gets a process of its own (a trainer that leaves waiting jobs behind starts its successor), so that a run's peak memory is its own and a
job that crashes its process affects no other.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from filelock import Timeout

from engine.errors import EngineError, JobError, StoppedError
from engine.jobs.endings import note_begin
from engine.jobs.launch import start_trainer
from engine.jobs.progress import Reporter, forget_news
from engine.jobs.queue import Job, JobQueue
from engine.pipeline import Outcome, train_run, update_run
from engine.runs import RunStore
from engine.training.device import on_termination
from engine.training.estimate import estimate_training, measured_machine
from engine.util.files import make_folder
from engine.util.locks import take_lock
from engine.util.machine import as_machine_error, is_out_of_memory
from engine.util.paths import jobs_folder, trainer_lock, trainer_log

LOCK_SECONDS: Final = 5.0
"""Patience with others who look whether the lock is taken; a trainer that is at work keeps it for longer."""
ASK_SECONDS: Final = 0.5
NICENESS: Final = 5
"""So that the app answers while all cores train."""

STOPPED: Final = "stopped on request; the progress is kept as a run, and Resume continues from the same step."
ENDED_FROM_OUTSIDE: Final = (
    "the worker was terminated from outside, for example by a shutdown; the progress is kept, and Resume continues from there."
)
NOTHING_YET: Final = "stopped before the first epoch was complete, so there is no run yet; Resume continues from there."
NO_MEMORY: Final = "out of memory; try a smaller encoder.dim or training.batch_size."
DEFECT: Final = "a defect of the program ended this job (your data is not the cause); see {log}. Resume tries again."


def work(models: Path, *, successor: Callable[[Path], object] = start_trainer) -> Job | None:
    """Train the job that waits longest; if others wait behind it, a successor takes them. Returns the job, None if there was none to take.

    Where another trainer is at work, that one will find the jobs: it looks again after it has let go of the lock.
    """
    queue = JobQueue(models)
    try:
        make_folder(jobs_folder(models))
        with take_lock(trainer_lock(models), LOCK_SECONDS), interruption() as interrupted:
            queue.declare_lost()
            note_begin(models)
            job = queue.take()
            if job is not None:
                run_job(queue, job, interrupted)
            ended_from_outside = interrupted()
    except Timeout:
        return None
    if queue.any_waiting() and not ended_from_outside:
        successor(models)
    return job


def run_job(queue: JobQueue, job: Job, interrupted: Callable[[], bool]) -> None:
    """Train, and say how it ended. Whatever goes wrong belongs to this job alone."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} job {job.id}: {job.name}", file=sys.stderr, flush=True)
    asked = Asked(queue, job.id, interrupted)
    try:
        outcome = _train(queue, job, asked)
    except StoppedError:
        forget_news(queue.models, job.id)
        queue.end(job.id, "stopped", message=NOTHING_YET)
    except EngineError as error:
        queue.end(job.id, "failed", message=str(error))
    except BaseException as error:  # libraries have some of their own that are no Exception
        machine = NO_MEMORY if is_out_of_memory(error) else as_machine_error(error)
        if machine is None and not isinstance(error, Exception):
            raise
        traceback.print_exc()
        queue.end(job.id, "failed", message=str(machine or DEFECT.format(log=trainer_log(queue.models))))
    else:
        stopped = outcome.run.manifest["status"] == "stopped"
        message = (ENDED_FROM_OUTSIDE if interrupted() else STOPPED) if stopped else ""
        queue.end(job.id, "stopped" if stopped else "finished", message=message, run=outcome.run.id)


def _train(queue: JobQueue, job: Job, asked: Asked) -> Outcome:
    config, store, reporter = job.config, RunStore(queue.models), Reporter(queue.models, job.id)
    reporter.estimate = estimate_training(job.sizes, config, measured_machine(config.training.threads), store.list())

    def on_step() -> bool:
        reporter.step()
        return asked()

    if job.parent:
        return update_run(store.find(job.parent), job.data, config, store, on_event=reporter.event, should_stop=on_step)
    reviews = jobs_folder(queue.models) / job.reviews if job.reviews else None
    return train_run(job.data, config, store, reviews=reviews, on_event=reporter.event, should_stop=on_step)


@dataclass
class Asked:
    """Whether a job is to end: by request in the queue, or by a signal. The queue is read at intervals."""

    queue: JobQueue
    job_id: str
    interrupted: Callable[[], bool]
    last: float = 0.0
    answer: bool = False

    def __call__(self) -> bool:
        if not self.answer and time.monotonic() - self.last >= ASK_SECONDS:
            self.last = time.monotonic()
            with contextlib.suppress(JobError):  # a queue that cannot be read for a while must not end a training
                self.answer = self.queue.asked_to_stop(self.job_id)
        return self.answer or self.interrupted()


@contextlib.contextmanager
def interruption() -> Iterator[Callable[[], bool]]:
    """A termination signal asks to end after the step, as on a machine that shuts down."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True

    with on_termination(ask):
        yield lambda: asked


def run_trainer(models: Path) -> int:
    """What the process does; returns its exit code."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    try:
        work(models)
    except (EngineError, OSError) as error:
        print(f"error: {as_machine_error(error) or error}", file=sys.stderr)
        return 2
    return 0
