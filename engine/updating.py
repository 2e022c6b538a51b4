"""A run on a new version of its data: what is carried over, trained for a few epochs more, and kept as a run that knows its parent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.config import RunConfig
from engine.data.knowledge_graph import Side
from engine.pipeline import Listener, Outcome
from engine.runs import Run, RunStore

MappingFiles = Mapping[Side | None, Path]
"""Mapping files by graph; None: one for both graphs."""


def update_config(parent: Run, *, epochs: int | None = None, seed: int | None = None, settings: Mapping[str, Any] | None = None) -> RunConfig:
    """The parent's settings with fewer epochs and rounds."""
    raise NotImplementedError


def update_run(
    parent: Run,
    path: Path | str,
    config: RunConfig,
    store: RunStore,
    *,
    mapping: MappingFiles | None = None,
    fresh: bool = False,
    reviews: Path | None = None,
    on_event: Listener = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Train a run on a new version of its data, or find it finished.

    The manifest's ``parent``: {"run": id, "data_set": name, "fingerprint": of the parent's data, "seal": of the parent's manifest,
    "counts": {"source": {"entities": {"carried", "new", "gone"}, "relations": {...}}, "target": {...}, "links": {...}},
    "mapping": {"digest", "entities"} or None, "inherited": settings of the parent that the update replaced}. Old and new identifiers of a mapping are
    the run's table ``renamed`` (graph, old, new).
    """
    raise NotImplementedError
