"""Runs that the service keeps open: a few, the least recently used of which makes room for another one."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final

from engine.api import OpenRun
from engine.data.files import FileState, state_of
from engine.data.knowledge_graph import SIDES, Side
from engine.runs import Run, RunStore, RunSummary
from engine.runs.manifest import MANIFEST, SEAL
from engine.runs.view import Pool, RunView
from engine.serving.stored import StoredLists
from engine.util.arrays import Float32Array
from engine.util.memory import Recent

KEPT_RUNS: Final = 4
KEPT_SIBLINGS: Final = 12
LIST_SECONDS: Final = 5.0
"""How long a list of runs is used: explanations also name what other runs make of a pair."""


class KeptView(RunView):
    """A run's view that maps each tensor of hubness terms once; runs never change."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._hubness: dict[tuple[Side, Pool], Float32Array] = {}

    def hubness(self, side: Side, pool: Pool = "all") -> Float32Array:
        if (side, pool) not in self._hubness:
            self._hubness[side, pool] = super().hubness(side, pool)
        return self._hubness[side, pool]


class ServedRun(OpenRun):
    """A run with everything loaded that most questions need, so that threads which ask at once do not load it twice."""

    def __init__(self, runs: OpenRuns, name: str) -> None:
        found = runs.store.find(name)
        found.verify()
        super().__init__(found, runs.store.root)
        self._runs = runs
        self.state = state_of(found.path / MANIFEST)
        self.view = KeptView(found)
        self.lists = StoredLists(self.view)
        self.prepare()

    def prepare(self) -> None:
        """Load names, links, scores and stored lists."""
        for side in SIDES:
            self.view.search("a", side, 1)
            if len(self.view.graphs[side]):
                self.lists.matches(side, 0, 1)

    @property
    def current(self) -> FileState | None:
        """Of the manifest as it is now: another one than ``state`` where the run was deleted or replaced."""
        return state_of(self.run.path / MANIFEST)

    def _siblings(self) -> Sequence[tuple[str, RunView]]:
        return self._runs.siblings(self.id, self.fingerprint)


class OpenRuns:
    """The runs of a models folder by name. Safe to share between threads: each run is opened once."""

    def __init__(self, models: Path, most: int = KEPT_RUNS) -> None:
        self.store = RunStore(models)
        self._most = most
        self._kept: OrderedDict[str, ServedRun] = OrderedDict()
        self._opening: dict[str, Lock] = {}
        self._lock = Lock()
        self._views: Recent[tuple[str, str], RunView] = Recent(KEPT_SIBLINGS, 1 << 40, lambda view: 0)
        self._listed: tuple[float, tuple[RunSummary, ...]] = (float("-inf"), ())

    def get(self, name: str) -> ServedRun:
        """A run by ``dataset/run_id``.

        Raises:
            RunNotFoundError: there is none, or it is not finished.
            RunVersionError, RunDamagedError: it cannot be opened.
        """
        if (found := self._current(name)) is not None:
            return found
        with self._lock:
            opening = self._opening.setdefault(name, Lock())
        try:
            with opening:
                return self._current(name) or self._open(name)
        finally:
            with self._lock:
                self._opening.pop(name, None)

    def _current(self, name: str) -> ServedRun | None:
        """A run that is open and still the one of this name."""
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
        if found is None or found.state == found.current:
            return found
        with self._lock:
            if self._kept.get(name) is found:
                del self._kept[name]
        return None

    def _open(self, name: str) -> ServedRun:
        opened = ServedRun(self, name)
        with self._lock:
            self._kept[name] = opened
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return opened

    def listed(self) -> Sequence[RunSummary]:
        """The runs that can be opened, newest first, as of a few seconds ago."""
        since, found = self._listed
        if time.monotonic() - since > LIST_SECONDS:
            found = tuple(one for one in self.store.list() if one.manifest is not None)
            self._listed = time.monotonic(), found
        return found

    def siblings(self, run: str, fingerprint: str) -> list[tuple[str, RunView]]:
        """The other runs of the same data, the newest first, as of a few seconds ago."""
        fitting = [one for one in self.listed() if one.id != run and fingerprint_of(one) == fingerprint]
        return [(one.id, self._views.get((one.id, str((one.manifest or {})[SEAL])), partial(self._view, one.id))) for one in fitting]

    def _view(self, run: str) -> RunView:
        return KeptView(self.store.find(run))

    def __len__(self) -> int:
        return len(self._kept)


def fingerprint_of(run: RunSummary) -> str:
    """Of the data of a listed run."""
    return str((run.manifest or {}).get("data", {}).get("fingerprint", ""))
