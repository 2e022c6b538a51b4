"""All runs under a folder."""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from engine.errors import RunDamagedError, RunError, RunNotFoundError
from engine.runs.manifest import LOCK, PARTIAL, SEAL, acquire, changed_at, check_name, explained, folders, in_utc, is_name, remove_by_way_of_trash
from engine.runs.run import Run
from engine.runs.writer import RunWriter, already_there
from engine.util.locks import may_be_held
from engine.util.machine import OPEN_FILES, error_number, is_out_of_memory

State = Literal["finished", "stopped", "partial", "broken"]


@dataclass(frozen=True)
class RunSummary:
    """What a list says of a folder.

    Attributes:
        state: "finished" and "stopped" runs can be opened; "partial" ones are being trained (``active``) or can be resumed;
            "broken" ones cannot be used.
        created: ISO 8601, UTC; of partial and broken ones the time of the folder's last change.
        reason: one sentence on what is wrong; "" unless broken.
        manifest: of finished and stopped runs.
        metrics: content of ``metrics.json`` where there is one.
    """

    dataset: str
    run_id: str
    path: Path
    state: State
    created: str
    variant: str = ""
    active: bool = False
    reason: str = ""
    manifest: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        """``dataset/run_id``: fits one run only."""
        return f"{self.dataset}/{self.run_id}"


class RunStore:
    """All runs under a folder, which need not exist yet."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def list(self) -> list[RunSummary]:
        """Every run there is, whatever its state, newest first. A bad folder is listed as broken and disturbs no other.

        Raises:
            RunError: the folder cannot be read, or files or memory ran out, which says nothing about the runs.
        """
        summaries = [self._summary(dataset, entry) for dataset in folders(self.root) for entry in _entries(dataset)]
        return sorted((one for one in summaries if one is not None), key=lambda one: (one.created, one.id), reverse=True)

    def find(self, run_id: str, seal: str | None = None) -> Run:
        """Open a run by ``dataset/run_id``, or by the run id alone where one data set only has it.

        Args:
            seal: of the manifest that it must have; None: whichever is there.

        Raises:
            RunNotFoundError: there is none, it is not finished, or several data sets have one.
            RunVersionError, RunDamagedError: it cannot be opened, or has another seal.
        """
        dataset, _, name = run_id.rpartition("/")
        if not is_name(name) or (("/" in run_id) and not is_name(dataset)):
            raise RunNotFoundError(f"{run_id[:200]!r} is not a run id; expected <data set>/<run id>, as listed by 'python -m engine runs'.")
        known = [(folder.name, name) for folder in folders(self.root) if is_name(folder.name) and os.path.lexists(folder / name)]
        fitting = [pair for pair in known if dataset in ("", pair[0])]
        if len(fitting) > 1:
            raise RunNotFoundError(f"several data sets have a run {name}; choose one of {', '.join('/'.join(pair) for pair in fitting)}.")
        if not fitting:
            raise self._not_found(dataset, name)
        found = self._open(*fitting[0])
        if seal is not None and found.manifest[SEAL] != seal:
            raise RunDamagedError(f"Run {run_id} is being replaced. Reload the page in a moment.")
        return found

    def create(self, dataset: str, run_id: str) -> RunWriter:
        """Start a run, or resume the partial one of this id.

        Raises:
            RunError: such a run exists, another process is training it, or the folder cannot be written to.
        """
        final, partial = self._places(dataset, run_id)
        self._check_inside(partial)
        if os.path.lexists(final):
            raise already_there(dataset, run_id)
        return RunWriter(dataset, run_id, final)

    def path_of(self, dataset: str, run_id: str) -> Path:
        """Where a run lies, or would.

        Raises:
            RunError: a name that cannot be a folder's, or a data set's folder that leads out of the models folder.
        """
        path, _ = self._places(dataset, run_id)
        self._check_inside(path)
        return path

    def free_id(self, dataset: str, run_id: str) -> str:
        """``run_id``, with -2, -3, ... added if a run of that id exists or has been begun.

        Raises:
            RunError: a name that cannot be a folder's.
        """
        candidates = itertools.chain([run_id], (f"{run_id}-{number}" for number in itertools.count(2)))
        return next(one for one in candidates if not any(os.path.lexists(place) for place in self._places(dataset, one)))

    def delete(self, run: Run | RunSummary) -> None:
        """Remove a run of any state: it disappears at once, then its files are deleted.

        Raises:
            RunError: another process is training it, or the folder cannot be changed.
        """
        final, partial = self._places(run.dataset, run.run_id)
        is_partial = isinstance(run, RunSummary) and run.state == "partial"
        path = partial if is_partial else final
        with explained(f"delete {path}"):
            if not os.path.lexists(path):
                raise RunNotFoundError(f"run {run.dataset}/{run.run_id} no longer exists.")
            lock = acquire(path / LOCK, f"{run.dataset}/{run.run_id}") if is_partial else None
            try:
                remove_by_way_of_trash(path, run.run_id)
            finally:
                if lock:
                    lock.release()

    def _places(self, dataset: str, run_id: str) -> tuple[Path, Path]:
        """Where the run is when it is whole, and while it is in the making."""
        check_name(dataset, "data set")
        check_name(run_id, "run id")
        self._check_inside(self.root / dataset)
        return self.root / dataset / run_id, self.root / dataset / f"{PARTIAL}{run_id}"

    def _check_inside(self, path: Path) -> None:
        """
        Raises:
            RunDamagedError: links lead out of the models folder.
        """
        with explained(f"look at {path}"):
            if not path.resolve().is_relative_to(self.root.resolve()):
                raise RunDamagedError(f"{path} is a link that leads out of {self.root}; remove the link.")

    def _open(self, dataset: str, run_id: str) -> Run:
        return Run.open(dataset, run_id, self.path_of(dataset, run_id))

    def _summary(self, dataset: Path, entry: Path) -> RunSummary | None:
        """The summary of a folder; None for those that hold no run."""
        if entry.name.startswith(PARTIAL):
            run_id = entry.name.removeprefix(PARTIAL)
            if not is_name(run_id) or not is_name(dataset.name):
                return None
            return RunSummary(dataset.name, run_id, entry, "partial", changed_at(entry), active=may_be_held(entry / LOCK))
        if entry.name.startswith(".") or dataset.name.startswith("."):
            return None
        try:
            run = self._open(dataset.name, entry.name)
            metrics = run.metrics
        except RunError as error:
            if _ran_out(error):
                raise
            return RunSummary(dataset.name, entry.name, entry, "broken", changed_at(entry), reason=str(error))
        values = run.manifest
        created = in_utc(values["created"])
        return RunSummary(dataset.name, entry.name, entry, values["status"], created, values["variant"], manifest=values, metrics=metrics or None)

    def _not_found(self, dataset: str, run_id: str) -> RunNotFoundError:
        """The error for a run that is not there, with what could have been meant."""
        wanted = f"{dataset}/{run_id}" if dataset else run_id
        summaries = self.list()
        if any(one.state == "partial" and one.run_id == run_id and dataset in ("", one.dataset) for one in summaries):
            return RunNotFoundError(f"run {wanted} is not finished; wait for it, or resume it with the same train command.")
        ids = [one.id for one in summaries if one.state in ("finished", "stopped")]
        near = sorted(ids, key=lambda one: (-likeness(wanted, one if dataset else one.rpartition("/")[2]), one))
        none = (
            f"there are no runs in {self.root}; train one first" if self.root.exists() else f"the folder {self.root} does not exist; check --models"
        )
        hint = f"similar names: {', '.join(near[:3])}" if near else none
        return RunNotFoundError(f"there is no run {wanted}; {hint}.")


def _entries(dataset: Path) -> list[Path]:
    """What a folder in the models folder holds; nothing of one that belongs to somebody else, such as lost+found."""
    try:
        return folders(dataset)
    except RunError as error:
        if isinstance(error.__cause__, PermissionError):
            return []
        raise


def _ran_out(error: RunError) -> bool:
    """Whether a run cannot be read since this process has no more files or memory, and not since it is damaged."""
    cause = error.__cause__
    return cause is not None and (error_number(cause) in OPEN_FILES or is_out_of_memory(cause))


def likeness(one: str, other: str) -> float:
    """1 for equal texts, 0 for texts without anything in common."""
    return difflib.SequenceMatcher(None, one, other).ratio()
