"""Kills of those who write to the databases: reviewers and those who ask for trainings."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from benchmarks.kills.trainings import SMALL
from benchmarks.kills.victims import Tally, Victim, check_database, turns
from benchmarks.kills.works import CHOICES, ask_and_ask, review
from engine.config import RunConfig
from engine.jobs import JobQueue, plan_training, summarise
from engine.reviews import ReviewStore
from engine.util.paths import queue_file, reviews_file

REVIEWERS = ("Ann", "Bob", "Cid")
DATA = "a" * 64
SPAN = 0.3
"""Seconds within which a process is killed that changes a database many times a second."""


def kill_reviewers(data: Path, folder: Path, kills: int, draw: random.Random) -> Tally:
    """Of three processes that review at once, one is killed while the others continue: each click is kept whole if it was acknowledged, and whole or
    not at all otherwise."""
    tally, path = Tally(), reviews_file(folder)
    decided, undone = set[str](), set[str]()
    for turn in turns(tally, kills):
        victims = [Victim(review, folder, author, DATA, turn) for author in REVIEWERS]
        for one in victims:
            one.begin()
        killed = draw.choice(victims)
        tally.moments["three writers"] += killed.kill(draw.uniform(0.0, SPAN))
        others = [one for one in victims if one is not killed]
        for one in others:
            tally.check(one.continues(), "a reviewer did not continue after another one was killed.")
            one.end()
        said = [message for one in victims for message in one.said]
        tally.acknowledged += len(said)
        decided |= {click for what, click in said if what == "decided"}
        undone |= {click for what, click in said if what == "undone"}
        _check_clicks(path, decided, undone, len(victims) * (turn + 1), tally)
        check_database(path, tally)
    return tally


def _check_clicks(path: Path, decided: set[str], undone: set[str], unconfirmed: int, tally: Tally) -> None:
    store = ReviewStore(path)
    history = store.history(DATA)
    store.close()
    kept = Counter(one.click for one in history)
    withdrawn = Counter(one.click for one in history if one.withdrawn)
    tally.check(decided <= set(kept), "a decision that was acknowledged is lost.")
    tally.check(undone <= set(withdrawn), "an undoing that was acknowledged is lost.")
    tally.check({*kept.values(), *withdrawn.values()} <= {CHOICES}, "a click was kept in part.")
    tally.check(len(kept) <= len(decided | undone) + unconfirmed, "decisions are there that no one made.")


def kill_askers(data: Path, folder: Path, kills: int, draw: random.Random) -> Tally:
    """Processes that change the queue: what they acknowledged is there, but for one job that was just being changed, and each training once."""
    tally, queue, last = Tally(), JobQueue(folder), dict[str, str]()
    configs = [RunConfig(variant="semi", seed=seed).with_values(SMALL) for seed in range(4)]
    plans = [plan_training(summarise(data, config.data, config.seed), config, folder) for config in configs]
    for _ in turns(tally, kills):
        victim = Victim(ask_and_ask, folder, plans, draw.randrange(2**30))
        tally.moments["one writer"] += victim.kill(draw.uniform(0.0, SPAN))
        tally.acknowledged += len(victim.said)
        last |= dict(victim.said)
        jobs = {job.id: job.state for job in queue.jobs()}
        tally.check(set(last) <= set(jobs), "a job that was acknowledged is lost.")
        changed = [job for job, state in last.items() if jobs.get(job) != state]
        tally.check(len(changed) <= 1, f"{len(changed)} jobs are not in the state that was acknowledged.")
        tally.check(len({job.name for job in queue.jobs()}) == len(jobs) <= len(plans), "a training is queued twice.")
        check_database(queue_file(folder), tally)
        last |= {job: state for job, state in jobs.items() if job in changed or job not in last}
    return tally
