"""Kill -9 at random moments: of the trainer, and of whoever asks for trainings. Nothing may be lost or half-written, and every resumed training
must end with the bits of an unbroken one.

    python -m benchmarks.kills sample_data/europe --kills 20 --seed 0
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.context import BaseContext
from pathlib import Path

from engine.config import RunConfig
from engine.errors import JobError
from engine.jobs import JobQueue, Plan, plan_training, read_news, summarise
from engine.jobs.trainer import work
from engine.pipeline import train_run
from engine.runs import Run, RunStore
from engine.util.paths import queue_file

SMALL = {
    "encoder.dim": 16,
    "encoder.proxies": 8,
    "semi.rounds": 1,
    "semi.round_epochs": 5,
    "training.epochs": 15,
    "training.checkpoint_seconds": 0.0,
    "training.precision": "float32",  # one process might find bfloat16 faster, and another one not
    "training.threads": 1,
}
START_SECONDS = 120.0


@dataclass
class Study:
    """What became of it all.

    Attributes:
        kills: of trainers that lived.
        lost: how many of them were found dead by the queue, with their job to be resumed.
        phases: in which phase they died, "" before the first.
        finished, same: trainings that were resumed to their end, and those of them with the bits of an unbroken one.
        app_kills: of processes that asked for trainings.
        problems: one sentence each.
    """

    kills: int = 0
    lost: int = 0
    phases: list[str] = field(default_factory=list)
    finished: int = 0
    same: int = 0
    app_kills: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        died = ", ".join(f"{self.phases.count(phase)} in '{phase or 'start'}'" for phase in dict.fromkeys(self.phases))
        lines = [
            f"{self.kills} trainers killed ({died}): {self.lost} noticed as lost; {self.finished} trainings resumed to their end, "
            f"{self.same} with the bits and metrics of unbroken ones.",
            f"{self.app_kills} processes killed while they changed the queue.",
            *(f"PROBLEM: {problem}" for problem in self.problems),
        ]
        return "\n".join(lines if self.problems else [*lines, "Nothing lost, nothing half-written."])


def context() -> BaseContext:
    """Processes that start quickly: what they import is imported once."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["engine.jobs.trainer"])
    return found


def no_successor(models: Path) -> None:
    """No successor: the study starts trainers itself."""


def train_next(models: Path) -> None:
    """A trainer, in a process of its own."""
    work(models, successor=no_successor)


def ask_and_ask(models: Path, plans: Sequence[Plan], seed: int) -> None:
    """What an app does, as fast as it can, until it is killed."""
    draw, queue = random.Random(seed), JobQueue(models)
    while True:
        job = queue.submit(draw.choice(plans)).job
        change: Callable[[str], object] = draw.choice([queue.cancel, queue.resume, queue.stop])
        try:
            change(job.id)
        except JobError:
            continue


def plans_of(data: Path, models: Path, seeds: Sequence[int]) -> list[Plan]:
    configs = [RunConfig(variant="semi", seed=seed).with_values(SMALL) for seed in seeds]
    return [plan_training(summarise(data, config.data, config.seed), config, models) for config in configs]


def kill_trainers(data: Path, folder: Path, kills: int, seed: int) -> Study:
    """Train, kill, resume, until a number of trainers were killed and the last training is done."""
    study, draw, number = Study(), random.Random(seed), 0
    while study.kills < kills:
        (plan,) = plans_of(data, folder / "killed", [number])
        number += 1
        started = time.monotonic()
        unbroken = train_run(plan.data, plan.config, RunStore(folder / "unbroken")).run
        span = time.monotonic() - started
        _train_with_kills(plan, folder / "killed", study, kills, lambda span=span: draw.uniform(0.0, span))  # type: ignore[misc]
        resumed = RunStore(folder / "killed").find(plan.name)
        resumed.verify()
        study.finished += 1
        study.same += same_bits(resumed, unbroken)
    if study.same < study.finished:
        study.problems.append(f"{study.finished - study.same} resumed trainings ended with other bits than unbroken ones.")
    return study


def _train_with_kills(plan: Plan, models: Path, study: Study, kills: int, moment: Callable[[], float]) -> None:
    """One training to its end, with kills at moments until there were enough."""
    queue = JobQueue(models)
    job = queue.submit(plan).job
    while queue.find(job.id).state != "finished":
        process = context().Process(target=train_next, args=(models,))  # type: ignore[attr-defined]
        process.start()
        if study.kills < kills:
            _wait(lambda: queue.find(job.id).state != "queued")
            process.join(moment())
            alive = process.is_alive()
            process.kill()
        process.join()
        if study.kills < kills and alive:
            study.kills += 1
            news = read_news(models, job.id)
            study.phases.append(news.phase if news is not None else "")
        state = queue.find(job.id).state
        study.lost += state == "lost"
        _look(models, study)
        if state not in ("finished", "lost"):
            study.problems.append(f"after a kill the job is {state}.")
        if state != "finished":
            queue.resume(job.id)


def _look(models: Path, study: Study) -> None:
    """Every run that is listed is whole or can be resumed; the queue is sound."""
    for summary in RunStore(models).list():
        if summary.state == "broken":
            study.problems.append(f"{summary.id} is broken: {summary.reason}")
        elif summary.manifest is not None:
            RunStore(models).find(summary.id).verify()
    with closing(sqlite3.connect(queue_file(models))) as database:
        if (said := database.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            study.problems.append(f"the queue is damaged: {said}")


def kill_apps(data: Path, models: Path, kills: int, seed: int, study: Study) -> None:
    """Kill processes that change the queue; what they reported as done must be there, and one job a training."""
    plans, draw, queue = plans_of(data, models, range(4)), random.Random(seed), JobQueue(models)
    first = queue.submit(plans[0]).job
    for number in range(kills):
        process = context().Process(target=ask_and_ask, args=(models, plans, seed + number))  # type: ignore[attr-defined]
        process.start()
        before = len(queue.jobs())
        process.join(0.3 + draw.uniform(0.0, 0.3))
        process.kill()
        process.join()
        study.app_kills += 1
        _look(models, study)
        jobs = queue.jobs()
        if len(jobs) < before or len({job.name for job in jobs}) != len(jobs) or first.id not in {job.id for job in jobs}:
            study.problems.append("a job was lost, or is there twice.")


def same_bits(one: Run, other: Run) -> bool:
    """Whether two runs learned the same."""
    equal = all(bool((one.tensor("embeddings", side) == other.tensor("embeddings", side)).all()) for side in ("source", "target"))
    return equal and one.metrics == other.metrics


def _wait(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError("a trainer did not begin")
        time.sleep(0.005)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a small data set")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        study = kill_trainers(parsed.data.resolve(), Path(folder), parsed.kills, parsed.seed)
        kill_apps(parsed.data.resolve(), Path(folder) / "asked", parsed.kills, parsed.seed, study)
    print(study)
    return 1 if study.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
