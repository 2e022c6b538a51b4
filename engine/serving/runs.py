"""Runs that the service keeps open: a few, the least recently used of which makes room for another one."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Final

from engine.api import OpenRun
from engine.data.files import FileState, state_of
from engine.data.knowledge_graph import SIDES
from engine.runs import RunStore
from engine.runs.manifest import MANIFEST
from engine.serving.stored import StoredLists

KEPT_RUNS: Final = 4


class ServedRun(OpenRun):
    """A run with everything loaded that most questions need, so that threads which ask at once do not load it twice."""

    def __init__(self, store: RunStore, name: str) -> None:
        found = store.find(name)
        found.verify()
        super().__init__(found, store.root)
        self.state = state_of(found.path / MANIFEST)
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


class OpenRuns:
    """The runs of a models folder by name. Safe to share between threads: each run is opened once."""

    def __init__(self, models: Path, most: int = KEPT_RUNS) -> None:
        self.store = RunStore(models)
        self._most = most
        self._kept: OrderedDict[str, ServedRun] = OrderedDict()
        self._opening: dict[str, Lock] = {}
        self._lock = Lock()

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
        opened = ServedRun(self.store, name)
        with self._lock:
            self._kept[name] = opened
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return opened

    def __len__(self) -> int:
        return len(self._kept)
