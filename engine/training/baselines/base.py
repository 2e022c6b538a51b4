"""What a baseline is: a method that gives each entity a vector, so that its runs are searched, evaluated and shown as those of Dual-AMN are."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import ClassVar, Final, Literal, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from engine.config import RunConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.errors import DivergenceError, StoppedError, TrainingError
from engine.search import TIE_TOLERANCE
from engine.training.optimiser import Optimiser
from engine.training.start import why_no_baseline
from engine.training.trainer import Checkpoints, Progress, part
from engine.util.arrays import IntArray
from engine.util.registry import Registry
from engine.util.threads import cut

Measure = Literal["cosine", "sinkhorn", "csls"]
MEASURES: dict[Measure, str] = {
    "cosine": "by cosine without CSLS",
    "sinkhorn": "by the Sinkhorn decoder",
    "csls": "by CSLS",
}


MEASURED_ROWS: Final = 2048
"""Rows of similarities that are held at a time."""


@dataclass(frozen=True)
class Session:
    """What a baseline runs with besides the data.

    Attributes:
        config: all settings; a baseline looks at ``seed`` and at the section ``baseline``.
        checkpoints: where the state is kept; None keeps nothing.
        on_progress: called after each epoch.
        should_stop: asked between epochs, or between the parts of a method without epochs; True ends it.
    """

    config: RunConfig
    checkpoints: Checkpoints | None = None
    on_progress: Callable[[Progress], None] = lambda progress: None
    should_stop: Callable[[], bool] = lambda: False

    def generator(self) -> torch.Generator:
        """Random numbers, by the seed alone."""
        return torch.Generator().manual_seed(self.config.seed)

    def check_stop(self) -> None:
        """
        Raises:
            StoppedError: the end was requested.
        """
        if self.should_stop():
            raise StoppedError("stopped; the same command starts again.")


@dataclass(frozen=True)
class Learned:
    """What a baseline leaves behind.

    Attributes:
        embeddings: (E, D) of the stacked entities; a zero vector for one of which nothing is known.
        epochs: how many there were; 0 for a method without training.
        seconds, earlier: of all epochs, and of those that interrupted sessions did.
    """

    embeddings: Tensor
    epochs: int = 0
    seconds: float = 0.0
    earlier: float = 0.0


@dataclass(frozen=True)
class Effort:
    """How long a baseline takes and what it holds, for estimates.

    Attributes:
        epochs: how many; 1 for a method without training.
        operations: of the matrix product that takes as long as an epoch.
        numbers: float32 values in memory at the peak, besides the data.
        width: D, of the embeddings that are searched.
    """

    epochs: int
    operations: float
    numbers: float
    width: int


class Baseline(Protocol):
    """A method to compare with.

    Attributes:
        name: as ``baseline.method`` and ``--baseline`` have it.
        title: for people.
        about: how it works, in a few words.
        reference: publication.
        measure: how the published Hits@1 is measured within the pool of test entities, both directions; every run stores it beside its own metrics.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    reference: ClassVar[str]
    measure: ClassVar[Measure]

    def embed(self, task: AlignmentTask, session: Session) -> Learned:
        """Vectors of all entities, from the graphs and the seed links alone; the same for the same seed.

        Raises:
            StoppedError: the end was requested.
            DivergenceError: numbers that are not finite.
        """
        ...

    def effort(self, entities: int, triples: int, relations: int, config: RunConfig) -> Effort:
        """Of a data set with these sizes, both graphs together."""
        ...


def measured(source: Tensor, target: Tensor, links: IntArray) -> dict[str, dict[str, float]]:
    """Hits@1 by cosine alone within the pool of the linked entities, by direction; a tie is no hit.

    Args:
        source, target: (E1, D), (E2, D) rows of unit length.
        links: (L, 2).
    """
    pools = [np.unique(links[:, side]) for side in range(2)]
    rows = [torch.from_numpy(np.searchsorted(pool, links[:, side])) for side, pool in enumerate(pools)]
    parts = [part[torch.from_numpy(pool)] for part, pool in zip((source, target), pools, strict=True)]
    right = (parts[0][rows[0]] * parts[1][rows[1]]).sum(1)
    found = {}
    for name, own, other in (("source_to_target", 0, 1), ("target_to_source", 1, 0)):
        hits = 0
        for some in cut(len(links), MEASURED_ROWS):
            scores = parts[own][rows[own][some]] @ parts[other].T
            at = torch.arange(len(scores))
            scores[at, rows[other][some]] = -math.inf
            hits += int((scores < right[some].unsqueeze(1) - TIE_TOLERANCE).all(1).sum())
        found[name] = {"hits@1": hits / max(len(links), 1)}
    return found


BaselineClass = TypeVar("BaselineClass", bound=type)
BASELINES: Registry[Baseline] = Registry("baseline")
"""By name. A test compares the names with the choices of ``baseline.method`` in engine/config.py."""


def register_baseline(cls: BaselineClass) -> BaselineClass:
    """Class decorator: makes a baseline available under its name."""
    BASELINES.add(cls.name, cls())  # type: ignore[attr-defined]
    return cls


def require_seed_links(task: AlignmentTask, config: RunConfig) -> None:
    """
    Raises:
        TrainingError: there are no seed links.
    """
    if reason := why_no_baseline(config, len(task.train_links)):
        raise TrainingError(f"{task.name} cannot be trained on: {reason}")


@dataclass
class Fit:
    """The loop of a baseline with epochs: steps, progress, checkpoints, resume.

    Everything random must be a function of the seed and the epoch, so that a fit that resumes ends where an unbroken one ends.

    Attributes:
        session: what it runs with.
        task: what is learned from.
        optimiser: of the parameters, in a fixed order.
        epochs: how many.
        losses: gives the losses of an epoch's steps, one after the other: the parameters have changed by then.
        after_step: called after each step, for example to keep rows at length 1.
        kept: what else has to survive an interruption, by name.
    """

    session: Session
    task: AlignmentTask
    optimiser: Optimiser
    epochs: int
    losses: Callable[[int], Iterator[Tensor]]
    after_step: Callable[[], None] = lambda: None
    kept: dict[str, Tensor] = field(default_factory=dict)
    epoch: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)

    def run(self) -> float:
        """Run to the end, from the last checkpoint where there is one; returns the seconds of earlier sessions.

        Raises:
            StoppedError: the end was requested; a checkpoint is kept.
            DivergenceError: a loss is not finite.
            TrainingError: a checkpoint does not fit this task and these settings.
        """
        self._resume()
        earlier, started = self.seconds, time.monotonic()
        last_save = started
        while self.epoch < self.epochs:
            began = time.monotonic()
            loss = self._epoch()
            self.epoch += 1
            now = time.monotonic()
            self.seconds, usual = earlier + now - started, now - began
            self.session.on_progress(Progress(self.epoch, self.epochs, loss, self.seconds, usual * (self.epochs - self.epoch), None, usual))
            stopped = self.epoch < self.epochs and self.session.should_stop()
            if stopped or self.epoch == self.epochs or now - last_save >= self.session.config.training.checkpoint_seconds:
                self._save()
                last_save = time.monotonic()
            if stopped:
                raise StoppedError(f"stopped after epoch {self.epoch} of {self.epochs}; the same command resumes.")
        return earlier

    def _epoch(self) -> float:
        """Mean loss of an epoch's steps."""
        found, optimiser = [], self.optimiser
        for loss in self.losses(self.epoch):
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            value = float(loss.detach())
            if not math.isfinite(value):
                raise DivergenceError(f"the loss became {value} in epoch {self.epoch + 1}; use a smaller baseline.learning_rate.")
            found.append(value)
            optimiser.step()
            self.after_step()
        return sum(found) / max(len(found), 1)

    def _purpose(self) -> str:
        """What a checkpoint is for; one of another task or method must not be continued."""
        config = self.session.config
        return f"{self.task.fingerprint} {self.task.split} {config.seed} {asdict(config.baseline)}"

    def _save(self) -> None:
        if self.session.checkpoints is None:
            return
        tensors = {f"parameter.{number}": one.detach().clone() for number, one in enumerate(self.optimiser.parameters)}
        tensors |= {f"optimiser.{number}": average.clone() for number, average in self.optimiser.averages.items()}
        tensors |= {f"kept.{name}": tensor.clone() for name, tensor in self.kept.items()}
        self.session.checkpoints.save(tensors, {"epoch": self.epoch, "seconds": self.seconds, "purpose": self._purpose()})

    @torch.no_grad()
    def _resume(self) -> None:
        found = None if self.session.checkpoints is None else self.session.checkpoints.load()
        if found is None:
            return
        tensors, state = found
        if state.get("purpose") != self._purpose():
            raise TrainingError("the unfinished run was started with other data or settings; use --fresh to train again.")
        self.epoch, self.seconds = int(state["epoch"]), float(state["seconds"])
        for number, tensor in part(tensors, "parameter.").items():
            self.optimiser.parameters[int(number)].copy_(tensor)
        self.kept.update(part(tensors, "kept."))
        self.optimiser.load({int(number): average for number, average in part(tensors, "optimiser.").items()})
