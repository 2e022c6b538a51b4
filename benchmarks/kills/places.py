"""The places of the study: what is killed, and how often of a hundred times."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.kills.files import kill_backups, kill_deletions, kill_exports, kill_imports
from benchmarks.kills.stores import kill_askers, kill_reviewers
from benchmarks.kills.trainings import kill_trainers
from benchmarks.kills.victims import Tally


@dataclass(frozen=True)
class Place:
    """What is killed.

    Attributes:
        share: of all kills, in percent.
        what: is at work, for the table.
        kill: kills it a number of times; takes the data set's folder, an empty folder, the number and the draw.
    """

    share: int
    what: str
    kill: Callable[[Path, Path, int, random.Random], Tally]


PLACES: Final[Mapping[str, Place]] = {
    "basic": Place(10, "training, basic", partial(kill_trainers, "basic")),
    "semi": Place(10, "training, semi", partial(kill_trainers, "semi")),
    "literal": Place(10, "training, literal", partial(kill_trainers, "literal")),
    "search": Place(10, "search and writing of a run", partial(kill_trainers, "search")),
    "update": Place(10, "update", partial(kill_trainers, "update")),
    "import": Place(10, "upload and import", kill_imports),
    "review": Place(10, "review by three processes at once", kill_reviewers),
    "queue": Place(10, "changes of the queue", kill_askers),
    "export": Place(10, "exports, all formats", kill_exports),
    "backup": Place(5, "backup", kill_backups),
    "delete": Place(5, "deletion of runs", kill_deletions),
}


def spread(kills: int, names: list[str]) -> dict[str, int]:
    """How many of a number of kills fall to each place: by its share, rounded so that none is lost."""
    total, given, sum_of_shares = sum(PLACES[name].share for name in names), dict[str, int](), 0
    for name in names:
        before = round(kills * sum_of_shares / total)
        sum_of_shares += PLACES[name].share
        given[name] = round(kills * sum_of_shares / total) - before
    return given
