"""The progress of a training, in one small file that is always whole: written under another name and renamed, read by any observer.

It holds the curve so far. It is no record: what a finished run learned is in the run's own trace.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from engine.pipeline import NOTE, Phase
from engine.training.estimate import Estimate
from engine.training.semi import Round
from engine.training.trainer import Progress
from engine.util.files import replacing
from engine.util.paths import news_file

MOST_POINTS: Final = 1000
LEAST_SECONDS: Final = 0.5
"""Between two writings of what is only a sign of life."""


@dataclass(frozen=True)
class Point:
    """An epoch of the curve; ``hits_at_1`` and ``mrr`` on the validation links, where the epoch was validated."""

    epoch: int
    loss: float
    hits_at_1: float | None = None
    mrr: float | None = None


@dataclass(frozen=True)
class RoundNews:
    """A semi-supervised round: begun after ``epoch``, with how many pairs, how many of them new; of ``known`` ones ``right`` are right."""

    number: int
    rounds: int
    epoch: int
    selected: int
    new: int
    known: int | None
    right: int | None


@dataclass(frozen=True)
class News:
    """What is known of a training right now.

    Attributes:
        at: when, in seconds since 1970.
        phase: of :class:`engine.pipeline.Phase`; "" before the first.
        detail: of the phase, for people.
        epoch, epochs: epochs done, of how many.
        step: of the epoch that is under way, steps done.
        seconds: of training so far.
        remaining: estimated seconds to the end of the run; None before the first epoch is done.
        points: the curve; of a very long one the last part.
        rounds: semi-supervised rounds so far.
        notes: what is to be known of it.
    """

    at: float
    phase: str = ""
    detail: str = ""
    epoch: int = 0
    epochs: int = 0
    step: int = 0
    seconds: float = 0.0
    remaining: float | None = None
    points: tuple[Point, ...] = ()
    rounds: tuple[RoundNews, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Reporter:
    """Writes the news of one job: give :meth:`event` to the pipeline, and call :meth:`step` after each step.

    Attributes:
        estimate: weighs epochs that are still to come; None where there is none.
        clock: seconds since 1970, for people.
        steady: seconds that no change of the clock moves.
    """

    models: Path
    job_id: str
    estimate: Estimate | None = None
    clock: Callable[[], float] = time.time
    news: News = field(default_factory=lambda: News(0.0))
    steady: Callable[[], float] = time.monotonic
    written: float = 0.0

    def __post_init__(self) -> None:
        """A resumed training keeps its curve; what is trained again takes its place."""
        earlier = read_news(self.models, self.job_id)
        self.news = (
            News(self.clock()) if earlier is None else replace(earlier, at=self.clock(), phase="", detail="", step=0, remaining=None, notes=())
        )
        self.write()

    def event(self, event: Phase | Progress | Round) -> None:
        """Something the pipeline says."""
        if isinstance(event, Phase):
            self._phase(event)
        elif isinstance(event, Round):
            self._round(event)
        else:
            self._progress(event)
        self.write()

    def step(self) -> None:
        """Another step was done: a sign of life, written now and then."""
        step = self.news.step + 1
        self.news = replace(self.news, step=step)
        if self.steady() - self.written >= LEAST_SECONDS:
            self.write()

    def write(self) -> None:
        self.news, self.written = replace(self.news, at=self.clock()), self.steady()
        _write(news_file(self.models, self.job_id), self.news)

    def _phase(self, phase: Phase) -> None:
        if phase.name == NOTE:
            self.news = replace(self.news, notes=(*self.news.notes, phase.detail))
        else:
            after = self.estimate.after if self.estimate is not None and phase.name in ("search", "evaluate", "write") else None
            self.news = replace(self.news, phase=phase.name, detail=phase.detail, remaining=after)

    def _round(self, begun: Round) -> None:
        kept = [one for one in self.news.rounds if one.number < begun.number]
        last = RoundNews(begun.number, begun.rounds, self.news.epoch, begun.selected, begun.new, begun.known, begun.right)
        self.news = replace(self.news, rounds=(*kept, last))

    def _progress(self, progress: Progress) -> None:
        validation = progress.validation or {}
        point = Point(progress.epoch, progress.loss, validation.get("hits@1"), validation.get("mrr"))
        kept = [one for one in self.news.points if one.epoch < progress.epoch]
        rounds = tuple(one for one in self.news.rounds if one.epoch < progress.epoch)
        remaining = progress.remaining if self.estimate is None else self.estimate.remaining(progress.epoch, progress.epoch_seconds)
        self.news = replace(
            self.news,
            epoch=progress.epoch,
            epochs=progress.epochs,
            step=0,
            seconds=progress.seconds,
            remaining=remaining,
            points=(*kept, point)[-MOST_POINTS:],
            rounds=rounds,
        )


def read_news(models: Path, job_id: str) -> News | None:
    """The last news of a job; None where there are none. The id has been checked."""
    try:
        values = json.loads(news_file(models, job_id).read_text(encoding="utf-8"))
        parts = {"points": _parts(Point, values.pop("points")), "rounds": _parts(RoundNews, values.pop("rounds"))}
        return News(**{**values, **parts, "notes": tuple(values["notes"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def forget_news(models: Path, job_id: str) -> None:
    """Of a training without a checkpoint: what an earlier trainer wrote about it is no longer true."""
    with contextlib.suppress(OSError):
        news_file(models, job_id).unlink(missing_ok=True)


def _parts(kind: type[Any], rows: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    return tuple(kind(**row) for row in rows)


def _write(path: Path, news: News) -> None:
    """Whole or not at all; that the disk has it is not waited for. News that cannot be written must not end a training."""
    with contextlib.suppress(OSError), replacing(path) as beside:
        beside.write_text(json.dumps(asdict(news)), encoding="utf-8")
