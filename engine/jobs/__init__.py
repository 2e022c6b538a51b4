"""Trainings that wait for each other: a durable queue beside the runs, and the process that works it off.

The queue is one small database in the models folder (:mod:`engine.jobs.queue`), the news of a training one file (:mod:`engine.jobs.progress`), and
the trainer a process of its own that holds a lock while it lives (:mod:`engine.jobs.trainer`), whoever started it.
"""

from engine.jobs.launch import is_starting, start_trainer, trainer_alive
from engine.jobs.plan import (
    DataSummary,
    Plan,
    UpdateSummary,
    absolute,
    estimate_plan,
    plan_training,
    plan_update,
    reachable,
    summarise,
    summarise_task,
    summarise_update,
    why_refused,
)
from engine.jobs.progress import News, Point, RoundNews, read_news
from engine.jobs.queue import ENDED, WAITING_OR_AT_WORK, Job, JobQueue, State, Submission

__all__ = [
    "ENDED",
    "WAITING_OR_AT_WORK",
    "DataSummary",
    "Job",
    "JobQueue",
    "News",
    "Plan",
    "Point",
    "RoundNews",
    "State",
    "Submission",
    "UpdateSummary",
    "absolute",
    "estimate_plan",
    "is_starting",
    "plan_training",
    "plan_update",
    "reachable",
    "read_news",
    "start_trainer",
    "summarise",
    "summarise_task",
    "summarise_update",
    "trainer_alive",
    "why_refused",
]
