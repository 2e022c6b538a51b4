"""``python -m engine queue``, and what ``train --queue`` and ``train --estimate`` do instead of training."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from engine.cli.options import Commands, add_command, add_json, add_models, models_option, print_json
from engine.config import RunConfig, Variant
from engine.data import AlignmentTask, load_task
from engine.errors import ConfigError, printable
from engine.jobs import (
    Job,
    JobQueue,
    News,
    Plan,
    absolute,
    estimate_plan,
    plan_training,
    read_news,
    start_trainer,
    summarise,
    summarise_task,
    trainer_alive,
)
from engine.reviews import read_snapshot
from engine.training.estimate import Division, Estimate, check_memory, duration_range, estimate_division
from engine.util.memory import available_memory
from engine.util.text import count, duration, size_text


def add_queue(commands: Commands) -> None:
    parser = add_command(
        commands,
        "queue",
        queue,
        help="list, stop and resume training jobs",
        description="List the training jobs that were submitted with 'train --queue' or in the app. One job runs at a time, in a process "
        "that continues when "
        "this terminal is closed.",
    )
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--stop", metavar="JOB", help="stop a job after the current step and keep its progress; cancel it if it is queued")
    change.add_argument("--cancel", metavar="JOB", help="remove a queued job from the queue")
    change.add_argument("--resume", metavar="JOB", help="resume a job that stopped early, from its last checkpoint")
    change.add_argument("--start", action="store_true", help="start a worker if none is running")
    add_models(parser)
    add_json(parser)


def add_queueing(parser: argparse.ArgumentParser) -> None:
    """What ``train`` can do instead of training here and now."""
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--queue", action="store_true", help="submit the training to the queue instead of running it here")
    instead.add_argument("--estimate", action="store_true", help="only estimate the training time and memory")
    parser.add_argument(
        "--processes",
        type=int,
        metavar="P",
        help="with --estimate: also what each of P processes on machines of their own would need (docs/scaling.md)",
    )


def queue(parsed: argparse.Namespace) -> int:
    jobs = JobQueue(parsed.models)
    if parsed.stop:
        jobs.stop(parsed.stop)
    elif parsed.cancel:
        jobs.cancel(parsed.cancel)
    elif parsed.resume:
        jobs.resume(parsed.resume)
    if parsed.start or parsed.resume:
        start_trainer(parsed.models)
    found = jobs.jobs()
    if parsed.json:
        print_json([job_row(job, read_news(parsed.models, job.id)) for job in found])
        return 0
    where = models_option(parsed.models)
    for job in found:
        print(printable(job_line(job, read_news(parsed.models, job.id))))
    if not found:
        print(printable(f"the queue is empty; 'python -m engine train DATA --queue{where}' submits a job."))
    elif any(job.state == "queued" for job in found) and not trainer_alive(parsed.models):
        print(
            printable(
                f"jobs are queued, but no worker is running; 'python -m engine queue --start{where}' starts one (a new worker needs a few seconds)."
            ),
            file=sys.stderr,
        )
    return 0


def queue_instead(parsed: argparse.Namespace, config: RunConfig, reviews: Path | None) -> int:
    """Ask for the training, or estimate it; ``reviews``: decisions to train with, as they are now."""
    if parsed.fresh:
        raise ConfigError("--fresh cannot be combined with --queue or --estimate; remove one of them.")
    decided = None if reviews is None else partial(read_snapshot, reviews)
    task = load_task(parsed.data, config.data, config.seed)
    plan = plan_training(summarise_task(Path(parsed.data), task, decided), absolute(config), parsed.models)
    return _estimate(parsed, plan, task) if parsed.estimate else _submit(parsed, plan)


def submit_variants(variants: Sequence[Variant], folder: Path, models: Path) -> list[Variant]:
    """Ask for trainings with the defaults that were never asked for, and see that somebody works at those that wait.

    Returns:
        Those that are new in the queue. One that was cancelled, stopped or failed stays as it is: the app offers to resume it.

    Raises:
        EngineError: data that cannot be read, a models folder that cannot be written.
    """
    if not variants:
        return []
    jobs, data = JobQueue(models), summarise(folder, RunConfig().data, RunConfig().seed, None)
    known = {(job.dataset, job.run_id) for job in jobs.jobs()}
    plans = [plan_training(data, absolute(RunConfig(variant=variant)), models) for variant in variants]
    new = [plan for plan in plans if (plan.dataset, plan.run_id) not in known and not plan.finished]
    for plan in new:
        check_memory(plan.sizes, plan.config, available_memory())
        jobs.submit(plan)
    if any(job.state == "queued" for job in jobs.jobs()) and not trainer_alive(models):
        start_trainer(models)
    return [plan.config.variant for plan in new]


def _submit(parsed: argparse.Namespace, plan: Plan) -> int:
    check_memory(plan.sizes, plan.config, available_memory())
    submission = JobQueue(parsed.models).submit(plan, _user())
    start_trainer(parsed.models)
    job = submission.job
    if parsed.json:
        print_json({**job_row(job, None), "joined": submission.joined})
        return 0
    where = "is running" if job.state != "queued" else f"is number {job.position} in the queue"
    print(printable(f"{job.id}: {job.name} {where}{' (already submitted)' if submission.joined else ''}"))
    print(printable(f"next: python -m engine queue{models_option(parsed.models)}"))
    return 0


def _estimate(parsed: argparse.Namespace, plan: Plan, task: AlignmentTask) -> int:
    found = estimate_plan(plan, parsed.models)
    warning = check_memory(plan.sizes, plan.config, available_memory())
    divided = None if parsed.processes is None else _estimate_division(task, plan.config, parsed.processes, found)
    if parsed.json:
        figures = {"run": plan.name, "seconds": found.seconds, "low": found.low, "high": found.high, "memory_mb": found.memory, "runs": found.runs}
        print_json({**figures, **({} if divided is None else {"divided": asdict(divided)})})
        return 0
    known = (
        f"corrected by {count(found.runs, 'finished run')} on this machine" if found.runs else "without finished runs on this machine to correct it"
    )
    print(printable(f"{plan.name}: {duration_range(found)}, {found.memory:,.0f} MiB of memory; {known}"))
    if divided is not None:
        print(division_words(divided))
    if warning:
        print(printable(warning), file=sys.stderr)
    return 0


def _estimate_division(task: AlignmentTask, config: RunConfig, processes: int, alone: Estimate) -> Division:
    """
    Raises:
        ConfigError: fewer than two processes.
        TrainingError: more than there are entities.
    """
    if processes < 2:
        raise ConfigError(f"--processes expects at least 2; got {processes}.")
    return estimate_division(task, config, processes, alone)


def division_words(divided: Division) -> str:
    """For people."""
    return (
        f"{divided.processes} processes on machines of their own: about {duration(divided.seconds)} with a network of 1 Gbit/s; "
        f"each needs {divided.memory:,.0f} MiB and sends {size_text(round(divided.sent))} a step "
        f"(up to {divided.own:,} own entities, {divided.halo:,} fetched {divided.fetched})"
    )


def job_row(job: Job, news: News | None) -> dict[str, Any]:
    """A job as JSON has it."""
    row: dict[str, Any] = {"job": job.id, "training": job.name, "state": job.state, "position": job.position, "who": job.who, "message": job.message}
    row |= {"parent": job.parent} if job.parent else {}
    row |= {"submitted": job.submitted, "started": job.started, "ended": job.ended, "run": job.run}
    if news is not None:
        row |= {"phase": news.phase, "epoch": news.epoch, "epochs": news.epochs, "remaining": news.remaining}
    return row


def job_line(job: Job, news: News | None) -> str:
    """A job in one line for people."""
    shown = f"number {job.position}" if job.state == "queued" else job.message or job.run
    if job.state in ("running", "stopping") and news is not None:
        left = "" if news.remaining is None else f", {duration(news.remaining)} left"
        shown = f"epoch {news.epoch}/{news.epochs}{left}" if news.epochs else news.detail
    updated = f"  update of {job.parent}" if job.parent else ""
    return f"{job.id}  {job.state:9}  {job.name}{updated}  {shown}".rstrip()


def _user() -> str:
    with contextlib.suppress(Exception):  # no name in the environment, and none in the system's list of users
        return getpass.getuser()
    return ""
