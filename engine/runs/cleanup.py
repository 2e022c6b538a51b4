"""Clearing up among the runs, and a copy of everything that cannot be made again."""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

from engine.data.endings import TAR_ENDINGS
from engine.errors import ConfigError, ExportError, RunError, RunNotFoundError, printable
from engine.runs import RunStore, RunSummary
from engine.runs.manifest import SEAL, TRASH, folders
from engine.util.files import new_file, remove
from engine.util.paths import jobs_folder

COMPRESSION = 3  # of 9: embeddings hardly shrink, and more takes minutes


# Clearing up


@dataclass(frozen=True)
class DeletionCandidate:
    """A run that is to go.

    Attributes:
        bytes: that its files take.
        built_on: literal runs whose structure comes from it. They hold all that they need, and stay.
    """

    run: RunSummary
    bytes: int
    built_on: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """What distinguishes this run from another one that takes its place under the same id."""
        return run_state(self.run)


def run_state(run: RunSummary) -> str:
    """Of a whole run the manifest's seal; one that is not whole has none and goes by its state."""
    return run.state if run.manifest is None else str(run.manifest[SEAL])


def deletion_candidate(store: RunStore, run: str, *, version: str | None = None) -> DeletionCandidate:
    """The run of an id, whatever its state.

    Args:
        store: where to look.
        run: ``dataset/run_id``, or the run id alone.
        version: as :attr:`DeletionCandidate.version` was when its deletion was confirmed; None takes whatever is there.

    Raises:
        RunNotFoundError: there is none, or several data sets have one.
        RunError: it is being trained right now, or is not of this version.
    """
    summaries = store.list()
    if version is not None:
        same = [one for one in summaries if one.id == run and run_state(one) == version]
        if not same and any(one.id == run for one in summaries):
            raise RunError(printable(f"run {run} has changed in the meantime, so nothing was deleted; check it, then try again."))
        summaries = [one for one in summaries if one.id != run or one in same]
    fitting = sorted((one for one in summaries if run in (one.id, one.run_id)), key=lambda one: one.state == "partial")
    names = sorted({one.id for one in fitting})
    if len(names) > 1:
        raise RunNotFoundError(printable(f"several data sets have a run {run}; choose one of {', '.join(names)}."))
    if not fitting:
        raise RunNotFoundError(printable(f"there is no run {run[:200]}; 'python -m engine runs' lists all runs."))
    if fitting[0].active:
        raise RunError(f"run {fitting[0].id} is being trained; stop it first.")
    return _candidate(fitting[0], summaries)


def to_prune(
    store: RunStore, *, keep: int | None = None, older_than: float | None = None, partial: bool = False, now: datetime | None = None
) -> list[DeletionCandidate]:
    """The runs that a rule says may go, newest first.

    Args:
        keep: how many to keep of each data set and variant, the newest ones.
        older_than: days; only runs made before go. With ``keep``, both must allow it.
        partial: whether interrupted trainings go, too, and alone where neither of the others is given. Never one that is running right now.
        now: to count days from.

    Raises:
        ConfigError: no rule at all, or one that makes no sense.
    """
    if keep is None and older_than is None and not partial:
        raise ConfigError("choose what to delete: --keep N, --older-than DAYS or --partial.")
    if (keep is not None and keep < 0) or (older_than is not None and not 0 <= older_than <= 36_500):
        raise ConfigError("--keep and --older-than expect numbers from 0 (at most 36500 days).")
    summaries = store.list()
    before = None if older_than is None else (now or datetime.now(UTC)) - timedelta(days=older_than)
    old = [one for one in summaries if before is None or datetime.fromisoformat(one.created) < before]
    whole = _surplus(summaries, keep or 0) if keep is not None or older_than is not None else set()
    going = [one for one in old if one.id in whole and one.state in ("finished", "stopped")]
    going += [one for one in old if partial and one.state == "partial" and not one.active]
    return [_candidate(one, summaries) for one in going]


def _surplus(summaries: Sequence[RunSummary], keep: int) -> set[str]:
    """Ids of the runs beyond the newest ones of each data set and variant."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for one in summaries:  # newest first
        if one.state in ("finished", "stopped"):
            kinds.setdefault((one.dataset, one.variant), []).append(one.id)
    return {run for runs in kinds.values() for run in runs[keep:]}


def _candidate(run: RunSummary, summaries: Sequence[RunSummary]) -> DeletionCandidate:
    depends_on = {one.id: (one.manifest or {}).get("training", {}).get("structure_run") for one in summaries if one.id != run.id}
    return DeletionCandidate(run, size_of(run.path), tuple(sorted(one for one, structure in depends_on.items() if structure == run.id)))


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder; links are not followed."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def delete(store: RunStore, going: Sequence[DeletionCandidate]) -> None:
    """Delete runs; each is out of every list before its first file goes, and what earlier deletions left half done goes, too.

    Raises:
        RunError: a training is running in one of them, or the folder cannot be changed. Those before it are gone.
    """
    for one in going:
        store.delete(one.run)
    for dataset in folders(store.root):
        for trash in dataset.glob(f"{TRASH}*"):
            remove(trash)


# Backup


@dataclass(frozen=True)
class Backup:
    """What an archive holds.

    Attributes:
        runs: finished and stopped ones.   data_sets: imported ones.   databases: names of reviews and the like.   bytes: of the archive.
        broken: ids of runs that cannot be opened, and were left out.
    """

    file: Path
    runs: int
    data_sets: int
    databases: tuple[str, ...]
    bytes: int
    broken: tuple[str, ...] = ()


def back_up(models: Path, data: Path, output: Path, *, force: bool = False) -> Backup:
    """Everything that cannot be made again in one archive: ``models/`` with runs and databases, ``data/`` with imported data sets.

    Trainings that are not finished stay out. It may be made while the app and a trainer are at work: finished runs never change, and
    databases are copied by SQLite itself.

    Raises:
        ExportError: nothing to back up, a wrong ending, or the archive cannot be written.
    """
    if not output.name.endswith(TAR_ENDINGS):
        raise ExportError(printable(f"the archive's name must end in .tar.gz or .tar (not compressed); got {output}."))
    summaries = RunStore(models).list()
    runs = [one for one in summaries if one.state in ("finished", "stopped")]
    broken = [one.id for one in summaries if one.state == "broken"]
    data_sets = [folder for folder in folders(data) if not folder.name.startswith(".")]
    queue = jobs_folder(models)
    databases = [path for folder in (models, queue) for path in _files(folder, "*.sqlite3")]
    if not (runs or data_sets or databases):
        raise ExportError(printable(f"there is nothing to back up: no runs and no reviews in {models}, no data sets in {data}."))
    with new_file(output, force=force) as file, _archive(file, output) as archive:
        for run in runs:
            _add_folder(archive, run.path, f"models/{run.id}")
        for folder in data_sets:
            _add_folder(archive, folder, f"data/{folder.name}")
        for path in databases:
            _add_database(archive, path, f"models/{path.relative_to(models).as_posix()}")
        for path in (*_files(queue, "*.json"), *_files(queue, "*.parquet")):  # how trainings went, and the decisions that they were asked for with
            _add_small_file(archive, path, f"models/{path.relative_to(models).as_posix()}")
    return Backup(output, len(runs), len(data_sets), tuple(path.name for path in databases), output.stat().st_size, tuple(broken))


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file() and not path.is_symlink() and not path.name.startswith("."))


@contextlib.contextmanager
def _archive(file: IO[bytes], output: Path) -> Iterator[tarfile.TarFile]:
    if output.name.endswith(".tar"):
        with tarfile.open(fileobj=file, mode="w") as archive:
            yield archive
    else:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=COMPRESSION) as archive:
            yield archive


def _add_folder(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    """All regular files in a folder; links and hidden files stay out."""

    def refuse(error: OSError) -> None:
        raise error

    for place, below, names in os.walk(folder, onerror=refuse):  # a folder that cannot be read must not be left out in silence
        below[:] = sorted(one for one in below if not one.startswith("."))
        for path in sorted(Path(place) / one for one in names if not one.startswith(".")):
            if path.is_symlink() or not path.is_file():
                continue
            try:
                archive.add(path, f"{name}/{path.relative_to(folder).as_posix()}", recursive=False)
            except FileNotFoundError:
                raise ExportError(printable(f"{path} was deleted during the backup; start the backup again.")) from None


def _add_small_file(archive: tarfile.TarFile, path: Path, name: str) -> None:
    """One that a trainer may replace or remove at any moment: read at once, so that its size and its content are of the same file."""
    with contextlib.suppress(FileNotFoundError):
        with path.open("rb") as file:
            about, content = archive.gettarinfo(name, name, file), file.read()
        about.size = len(content)
        archive.addfile(about, io.BytesIO(content))


def _add_database(archive: tarfile.TarFile, path: Path, name: str) -> None:
    """A copy at one moment, whoever writes meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        try:
            with (
                contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as source,
                contextlib.closing(sqlite3.connect(copy)) as target,
            ):
                source.backup(target)
        except sqlite3.Error as error:
            raise ExportError(printable(f"{path} cannot be copied ({error}); check that it is a database and that the disk is not full.")) from None
        archive.add(copy, name, recursive=False)
