"""How an interrupted run is resumed: a note in the folder of the run in the making, which the finished run does not have any more."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.config import RunConfig
from engine.data.library import starting_config
from engine.errors import ConfigError
from engine.runs import RunWriter
from engine.util import settings

NOTE: Final = "begun"
REVIEWS: Final = "reviews"
"""Table of the decisions that a run is trained with."""


@dataclass(frozen=True)
class Begun:
    """What was asked for when a run was begun.

    Attributes:
        data: the data set's folder.
        config: all settings; of the literal run where the run in the making is the semi run below it.
        run_id: of the run that was asked for.
        reviews: the decisions of reviewers that it is trained with; None without any.
    """

    data: Path
    config: RunConfig
    run_id: str
    reviews: Path | None = None

    def command(self, models: Path) -> str:
        """The command that resumes it, to be typed in the project's folder; ``models``: where the run is."""
        options: list[tuple[str, str]] = [("--variant", self.config.variant)] if self.config.variant != "basic" else []
        if self.config.seed:
            options.append(("--seed", str(self.config.seed)))
        options += [("--set", one) for one in self.config.assignments(starting_config(self.data))]
        if self.reviews is not None:
            options.append(("--with-reviews", settings.shown_path(self.reviews)))
        if (shown := settings.shown_path(models)) != "models":
            options.append(("--models", shown))
        return settings.train_command(self.data, options)


def note_beginning(writer: RunWriter, begun: Begun) -> None:
    """
    Raises:
        RunError: the disk is full or does not permit it.
    """
    writer.write_note(NOTE, {"data": str(begun.data.resolve()), "config": begun.config.to_dict(), "run_id": begun.run_id})


def read_beginning(folder: Path) -> Begun | None:
    """The note in the folder of a run in the making; None where that is nothing this engine understands."""
    try:
        value: Any = json.loads((folder / f"{NOTE}.json").read_text(encoding="utf-8"))
        reviews = folder / f"{REVIEWS}.parquet"
        return Begun(Path(value["data"]), RunConfig.from_dict(value["config"]), str(value["run_id"]), reviews if reviews.is_file() else None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError):
        return None
