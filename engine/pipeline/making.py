"""A run in the making: what it is made of, the reviews and the time that go into it, and how it came about."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.config import RunConfig
from engine.data import AlignmentTask
from engine.pipeline.events import NOTE, Listener, Phase, note_on
from engine.pipeline.identity import make_run_id
from engine.reviews import ReviewEffect, Snapshot, read_snapshot, with_reviews
from engine.runs import Run, RunStore
from engine.runs.writer import ResumeRecord
from engine.training.inheritance import Inheritance
from engine.util.distributed import ALONE, Ranks


@dataclass(frozen=True)
class Outcome:
    """A run and how it came about: trained now, or found finished (``reused``)."""

    run: Run
    reused: bool


@dataclass
class Clock:
    """Seconds by phase; ``earlier``: those of training that interrupted sessions left behind, which this one did not have to spend again."""

    started: float = field(default_factory=time.monotonic)
    phases: dict[str, float] = field(default_factory=dict)
    earlier: float = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        before = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + time.monotonic() - before, 3)

    @property
    def seconds(self) -> float:
        return self.earlier + time.monotonic() - self.started

    def count_in(self, earlier: float) -> None:
        """Interrupted sessions trained for so long."""
        self.earlier += earlier
        self.phases["train"] = round(self.phases.get("train", 0.0) + earlier, 3)

    def since_reading(self) -> Clock:
        """For another run on the data that has been read: a clock that has seen nothing but that."""
        read = self.phases.get("read", 0.0)
        return Clock(time.monotonic() - read, {"read": read})


@dataclass(frozen=True)
class Reviewed:
    """What reviewers said of the data when the run was begun, and what that changed."""

    snapshot: Snapshot
    effect: ReviewEffect


@dataclass(frozen=True)
class Making:
    """A run in the making: what it is made of, where it goes, who listens; ``above``: settings of the literal run that it is made for;
    ``inheritance``: of an update, what is taken over from the parent."""

    path: Path
    task: AlignmentTask
    config: RunConfig
    store: RunStore
    clock: Clock
    on_event: Listener
    reviewed: Reviewed | None = None
    above: RunConfig | None = None
    ranks: Ranks = ALONE
    inheritance: Inheritance | None = None

    @property
    def run_id(self) -> str:
        return make_run_id(self.task, self.config)

    @property
    def begun(self) -> ResumeRecord:
        asked = self.above or self.config
        record = ResumeRecord(self.path, asked, make_run_id(self.task, asked))
        taken = self.inheritance
        return record if taken is None else replace(record, parent=taken.run.id, mapping=taken.mapping, assigned=taken.assigned)

    def free_id(self) -> str:
        return self.store.free_id(self.task.name, self.run_id)


def add_reviews(task: AlignmentTask, path: Path, on_event: Listener) -> tuple[AlignmentTask, Reviewed]:
    """
    Raises:
        ReviewError: no reviews of this data, or such as leave nothing to train on.
    """
    return with_snapshot(task, read_snapshot(path, task.fingerprint), on_event)


def with_snapshot(task: AlignmentTask, snapshot: Snapshot, on_event: Listener) -> tuple[AlignmentTask, Reviewed]:
    """
    Raises:
        ReviewError: reviews of other data, or such as leave nothing to train on.
    """
    changed, effect = with_reviews(task, snapshot)
    for finding in changed.findings[len(task.findings) :]:
        on_event(Phase(NOTE, note_on(finding)))
    return changed, Reviewed(snapshot, effect)
