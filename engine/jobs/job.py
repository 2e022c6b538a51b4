"""A training that somebody asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from engine.config import RunConfig
from engine.training.estimate import Sizes

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
        return str(self.settings.get("variant", ""))

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
