"""Where a models folder keeps what belongs to its queue: ``.jobs``, which no list of runs looks into."""

from __future__ import annotations

from pathlib import Path
from typing import Final

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
