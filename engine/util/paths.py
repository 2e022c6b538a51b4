"""Where things are kept, as the environment says; the command line, the app and its trainers all ask here.

==================== ================================================== =============================
variable             what it names                                      without it
==================== ================================================== =============================
DUAL_AMN_MODELS      runs, reviews and the trainers' queue              ``models`` of the project
DUAL_AMN_DATA        data sets that were imported                       ``data`` of the project
DUAL_AMN_IMPORT      folders that an import may read on the server      ``sample_data`` of the project
==================== ================================================== =============================

``DUAL_AMN_IMPORT`` separates several folders as ``PATH`` does.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[2]
SAMPLES: Final = PROJECT / "sample_data"


def models_folder() -> Path:
    """Where runs are kept, and what belongs to them all."""
    return _folder("DUAL_AMN_MODELS", PROJECT / "models")


def data_folder() -> Path:
    """Where imported data sets are kept, each in a folder of its own."""
    return _folder("DUAL_AMN_DATA", PROJECT / "data")


def import_folders() -> tuple[Path, ...]:
    """The folders on the server that an import may read from; nothing outside of them is ever opened for a visitor of the app."""
    named = os.environ.get("DUAL_AMN_IMPORT")
    if named is None:
        return (SAMPLES,)
    return tuple(Path(part).resolve() for part in named.split(os.pathsep) if part)


def reviews_file(models: Path) -> Path:
    """The reviewers' decisions on all data sets of a models folder."""
    return models / "reviews.sqlite3"


def shown_path(path: Path) -> str:
    """A path for a command that is typed in the project's folder."""
    try:
        return path.resolve().relative_to(PROJECT).as_posix()
    except ValueError:
        return str(path)


def without_folders(words: str, places: Iterable[tuple[str, str, str]]) -> str:
    """A message without the folders of this server, which are no business of those who reach it over a network.

    Args:
        places: an absolute folder, what replaces it (and the slash) in front of a path in it, and what replaces it alone.
    """
    for folder, start, whole in sorted(places, key=lambda place: len(place[0]), reverse=True):
        begins = rf"(?<![\w./-]){re.escape(folder)}"
        words = re.sub(f"{begins}/", start.replace("\\", r"\\"), words)
        words = re.sub(rf"{begins}(?![\w/-]|\.\w)", whole.replace("\\", r"\\"), words)
    return words


def train_command(data: Path, options: Iterable[tuple[str, str]]) -> str:
    """What trains on a data set with these options, to be typed in the project's folder."""
    return f"python -m engine train {shlex.quote(shown_path(data))}{_arguments(options)}"


def update_command(parent: str, data: Path, options: Iterable[tuple[str, str]]) -> str:
    """What updates a run to a new version of its data with these options, to be typed in the project's folder."""
    return f"python -m engine update {shlex.quote(parent)} {shlex.quote(shown_path(data))}{_arguments(options)}"


def _arguments(options: Iterable[tuple[str, str]]) -> str:
    return "".join(f" {name} {shlex.quote(value)}" for name, value in options)


def _folder(variable: str, otherwise: Path) -> Path:
    return Path(os.environ.get(variable) or otherwise)


# Where a models folder keeps what belongs to its queue: ``.jobs``, which no list of runs looks into.

FOLDER: Final = ".jobs"


def jobs_folder(models: Path) -> Path:
    """Everything below is in here."""
    return models / FOLDER


def queue_file(models: Path) -> Path:
    """The database of jobs."""
    return jobs_folder(models) / "queue.sqlite3"


def setup_lock(models: Path) -> Path:
    """Held while the database is made."""
    return jobs_folder(models) / "setup.lock"


def trainer_lock(models: Path) -> Path:
    """Held by the trainer as long as it lives."""
    return jobs_folder(models) / "trainer.lock"


def starting_mark(models: Path) -> Path:
    """Touched when a trainer is started, which takes it some seconds."""
    return jobs_folder(models) / "starting"


def trainer_log(models: Path) -> Path:
    """What trainers print."""
    return jobs_folder(models) / "trainer.log"


def reviews_copy(models: Path, digest: str) -> Path:
    """Reviewers' decisions as they were when a training was asked for; ``digest`` is that of the snapshot."""
    return jobs_folder(models) / f"reviews-{digest[:16]}.parquet"


def news_file(models: Path, job_id: str) -> Path:
    """The last news of a job; the id has been checked."""
    return jobs_folder(models) / f"{job_id}.json"
