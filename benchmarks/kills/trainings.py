"""Kills of trainers: in an epoch, while a checkpoint is written, in a semi-supervised round, during search and writing, in an update."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.kills.victims import START_SECONDS, Sign, Tally, Victim, check_database, half_written
from benchmarks.kills.works import train_next
from benchmarks.versions import write_versions
from engine.config import RunConfig, Variant
from engine.data import load_task
from engine.data.knowledge_graph import SIDES
from engine.jobs import JobQueue, Plan, plan_training, plan_update, read_news, summarise, summarise_update
from engine.pipeline import train_run, update_config, update_run
from engine.reviews import Choice, ReviewStore
from engine.runs import Run, RunStore
from engine.runs.manifest import MANIFEST, PARTIAL, TRACE
from engine.runs.writer import CHECKPOINT_FILE, read_checkpoint
from engine.util.files import sha256_of
from engine.util.paths import queue_file, reviews_file

SMALL: Final[Mapping[str, Any]] = {
    "encoder.dim": 16,
    "encoder.proxies": 8,
    "semi.rounds": 2,
    "semi.round_epochs": 4,
    "training.epochs": 12,
    "training.checkpoint_seconds": 0.0,
    "training.precision": "float32",  # one process might find bfloat16 faster, and another one not
    "training.threads": 1,
}
KILLS_A_TRAINING: Final = 5
LATE: Final = ("search", "evaluate", "write")
AIMS: Final[Mapping[str, tuple[str, ...]]] = {
    "basic": ("anywhere", "checkpoint"),
    "semi": ("anywhere", "checkpoint", "round"),
    "literal": ("anywhere", "checkpoint", "late"),
    "search": ("late", "file"),
    "update": ("anywhere", "checkpoint", "late"),
}
"""By place, the moments that are aimed at in turn."""


@dataclass(frozen=True)
class Training:
    """A training that is killed: its plan, the same training unbroken, and the seconds that this one took, ``late`` of them after the last epoch."""

    plan: Plan
    unbroken: Run
    seconds: float
    late: float


def kill_trainers(place: str, data: Path, folder: Path, kills: int, draw: random.Random) -> Tally:
    """Train, kill, resume, until a number of trainers were killed and the last training is done."""
    tally, models = Tally(), folder / "killed"
    trainings = _updates(data, folder) if place == "update" else _trainings(place, data, folder)
    while tally.kills < kills:
        training = next(trainings)
        _train_with_kills(place, training, models, tally, min(kills, tally.kills + KILLS_A_TRAINING), draw)
        resumed = RunStore(models).find(training.plan.name)
        tally.finished += 1
        different = differences(resumed, training.unbroken)
        tally.same += not different
        unlisted = {path.name for path in resumed.path.iterdir()} - {*resumed.files, MANIFEST}
        tally.check(not unlisted, f"{resumed.id} is finished and still has {', '.join(unlisted)}.")
        tally.check(not different, f"{resumed.id} was resumed and is not the unbroken run: {', '.join(different)}.")
    if place == "update":
        tally.check(
            _carried(models) == _carried(folder / "unbroken"), "the reviewers' decisions that an update carried over are others, or there twice."
        )
    return tally


def _trainings(place: str, data: Path, folder: Path) -> Iterator[Training]:
    variant: Variant = "basic" if place == "search" else place  # type: ignore[assignment]
    seed = 0
    while True:
        config = RunConfig(variant=variant, seed=seed).with_values(SMALL)
        plan = plan_training(summarise(data, config.data, config.seed), config, folder / "killed")
        yield _timed(plan, lambda listen, plan=plan: train_run(plan.data, plan.config, RunStore(folder / "unbroken"), on_event=listen).run)  # type: ignore[misc]
        seed += 1


def _updates(data: Path, folder: Path) -> Iterator[Training]:
    """Of a run on the first of two versions, on whose test links reviewers have decided."""
    task = load_task(data)
    first, second = write_versions(task, folder / "versions")
    config = RunConfig(variant="semi").with_values(SMALL)
    for models in (folder / "killed", folder / "unbroken"):
        parent = train_run(first, config, RunStore(models)).run
        reviewed, store = load_task(first), ReviewStore(reviews_file(models))
        for number, (source, target) in enumerate(reviewed.test_links[:10].tolist()):
            choice = Choice(reviewed.source.entities[source], reviewed.target.entities[target], "accept" if number % 3 else "reject")
            store.decide(reviewed.fingerprint, choice, "Ann", f"click-{number}")
        store.close()
    seed, there = 0, RunStore(folder / "unbroken")
    while True:
        wanted = update_config(parent, second, seed=seed)
        known = RunStore(folder / "killed").find(parent.id)
        plan = plan_update(summarise_update(known, second, wanted, folder / "killed"), wanted, folder / "killed")
        yield _timed(plan, lambda listen, plan=plan: update_run(there.find(parent.id), second, plan.config, there, on_event=listen).run)  # type: ignore[misc]
        seed += 1


def _timed(plan: Plan, train: Callable[[Callable[[object], None]], Run]) -> Training:
    phases: dict[str, float] = {}
    started = time.monotonic()
    unbroken = train(lambda event: phases.update({str(getattr(event, "name", "")): time.monotonic()}))
    ended = time.monotonic()
    return Training(plan, unbroken, ended - started, ended - phases["search"])


def _carried(models: Path) -> list[tuple[str, ...]]:
    """The decisions on all data sets of a models folder."""
    store = ReviewStore(reviews_file(models))
    fingerprints = {str(one.manifest["data"]["fingerprint"]) for one in RunStore(models).list() if one.manifest is not None}
    found: list[tuple[str, ...]] = [(data, *one.pair, one.author, one.verdict) for data in sorted(fingerprints) for one in store.history(data)]
    store.close()
    return found


def _train_with_kills(place: str, training: Training, models: Path, tally: Tally, kills: int, draw: random.Random) -> None:
    """One training to its end, with kills until there were enough of them in all."""
    queue, name = JobQueue(models), training.plan.name
    job = queue.submit(training.plan).job
    while queue.find(job.id).state != "finished":
        since = time.time()
        victim = Victim(train_next, models)
        if tally.kills < kills:
            aim = AIMS[place][tally.kills % len(AIMS[place])]
            sign, most = _aimed(aim, training, models, job.id, since)
            began = partial(lambda queue, job: queue.find(job).state != "queued", queue, job.id)
            victim.wait_until(began)
            if victim.kill(draw.uniform(0.0, most), sign, patience=10 * training.seconds):
                tally.moments[_where(models, training.plan, job.id, since)] += 1
        else:
            victim.wait_until(lambda: False, 10 * START_SECONDS)
            victim.end()
        _look(models, training.plan, job.id, tally)
        state = queue.find(job.id).state
        tally.check(state in ("finished", "lost"), f"after a kill the job of {name} is {state}.")
        if state != "finished":
            queue.resume(job.id)


def _aimed(aim: str, training: Training, models: Path, job: str, since: float) -> tuple[Sign | None, float]:
    """The sign to wait for, and the most seconds to wait after it; ``since``: when the trainer was started."""
    runs, left = models / training.plan.dataset, _share_left(models, job)
    file = half_written(runs, f"{PARTIAL}*/.*.tmp")

    def late() -> bool:
        return _phase(models, job, since) in LATE

    if aim == "checkpoint":
        return half_written(runs, f"{PARTIAL}*/checkpoints/.*.tmp"), 0.003
    if aim == "file":
        return lambda: file() and late(), 0.1 * training.late
    if aim == "late":
        return late, 0.8 * training.late
    if aim == "round":
        return lambda: _in_a_round(models, job, since), 0.3 * left * training.seconds
    return None, 0.8 * left * training.seconds


def _share_left(models: Path, job: str) -> float:
    """Of a training that was killed before, what is left of it, more or less."""
    news = read_news(models, job)
    return 1.0 if news is None or not news.epochs else max(0.3, 1.0 - news.epoch / news.epochs)


def _phase(models: Path, job: str, since: float) -> str:
    """The phase that a trainer is in; "" before its first, whatever its predecessor reported."""
    news = read_news(models, job)
    return "" if news is None or news.at < since else news.phase


def _in_a_round(models: Path, job: str, since: float) -> bool:
    news = read_news(models, job)
    return _phase(models, job, since) == "train" and news is not None and any(one.number for one in news.rounds)


def _where(models: Path, plan: Plan, job: str, since: float) -> str:
    """In which phase a trainer was killed, "start" before the first; and whether it was writing a checkpoint or in a round."""
    if half_written(models / plan.dataset, f"{PARTIAL}*/checkpoints/.*.tmp")():
        return "checkpoint"
    return "round" if _in_a_round(models, job, since) else _phase(models, job, since) or "start"


def _look(models: Path, plan: Plan, job: str, tally: Tally) -> None:
    """Every run that is listed is whole or can be resumed, the queue is sound, and the last checkpoint is that of the last epoch but one or later."""
    store = RunStore(models)
    for summary in store.list():
        tally.check(summary.state != "broken", f"{summary.id} is broken: {summary.reason}")
        if summary.manifest is not None:
            store.find(summary.id).verify()
        elif _has_checkpoints(summary.run_id, plan) and (news := read_news(models, job)) is not None and news.epoch > 1:
            tally.acknowledged += 1
            saved = saved_epoch(summary.path)
            tally.check(saved >= news.epoch - 1, f"{summary.id}: epoch {news.epoch} was reported, but the last checkpoint is of epoch {saved}.")
    check_database(queue_file(models), tally)


def _has_checkpoints(run_id: str, plan: Plan) -> bool:
    """A literal run has none: its structure is that of another run."""
    return plan.config.variant != "literal" or run_id != plan.run_id


def saved_epoch(partial_run: Path) -> int:
    """Epochs in the newest whole checkpoint of a run in the making; 0 without one."""
    found = ((match, path) for path in (partial_run / "checkpoints").glob("*") if (match := CHECKPOINT_FILE.fullmatch(path.name)))
    for match, path in sorted(found, key=lambda one: int(one[0]["number"]), reverse=True):
        if sha256_of(path) == match["digest"] and (checkpoint := read_checkpoint(path)) is not None:
            return int(checkpoint[0].state["epoch"])
    return 0


def differences(one: Run, other: Run) -> list[str]:
    """In what two runs differ besides the times at which they were made."""
    names = sorted({*one.files, *other.files} - {TRACE})
    found = [name for name in names if one.manifest["files"].get(name) != other.manifest["files"].get(name)]
    return found + ([TRACE] if _without_times(one) != _without_times(other) else [])


def _without_times(run: Run) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key != "seconds"} for line in run.trace()]


def same_bits(one: Run, other: Run) -> bool:
    """Whether two runs learned the same."""
    equal = all(bool((one.tensor("embeddings", side) == other.tensor("embeddings", side)).all()) for side in SIDES)
    return equal and one.metrics == other.metrics
