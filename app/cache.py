"""Bounded caches: what the app keeps between reruns, how much of it, and for how long."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from engine.datasets.knowledge_graph import Side
from engine.matching import RunView
from engine.neighbourhood import Adjacency
from engine.paper import PaperFigure, paper_figure
from engine.run_store import RunStore, RunSummary

PROJECT = Path(__file__).resolve().parent.parent
OPEN_RUNS = 4  # their tables; the embeddings are memory-mapped
LIST_SECONDS = 3.0  # a new run appears after so long
PARTIAL_WORDS = {True: "being trained right now", False: "interrupted; the same train command goes on from its last checkpoint"}


@dataclass(frozen=True)
class RunCard:
    """What the home page says of a run, read from its manifest and metrics alone.

    Attributes:
        run: ``dataset/run_id``, as it stands in addresses.
        metrics: None where there were no test links.
    """

    run: str
    dataset: str
    variant: str
    seed: int
    stopped: bool
    created: str
    seconds: float
    split: str
    sizes: Mapping[Side, Mapping[str, Any]]
    links: Mapping[str, int]
    metrics: Mapping[str, Any] | None
    protocol: str
    paper: PaperFigure | None


@dataclass(frozen=True)
class UnusableRun:
    """A folder that cannot be opened: damaged, or still in the making."""

    run: str
    reason: str


@dataclass(frozen=True)
class RunList:
    """Everything under the models folder, newest first."""

    cards: tuple[RunCard, ...]
    partial: tuple[UnusableRun, ...]
    broken: tuple[UnusableRun, ...]


@dataclass(frozen=True)
class OpenRun:
    """A run with its indexes."""

    view: RunView
    adjacency: Adjacency


@dataclass(frozen=True)
class DataSet:
    """A folder under ``sample_data``."""

    name: str
    path: str
    entities: tuple[int, int] | None
    links: int | None


def models_folder() -> Path:
    """Where runs are: ``DUAL_AMN_MODELS``, or ``models`` beside the app."""
    return Path(os.environ.get("DUAL_AMN_MODELS") or PROJECT / "models")


@st.cache_data(ttl=LIST_SECONDS, max_entries=4, show_spinner=False)
def list_runs(folder: Path) -> RunList:
    """The runs of a models folder, whatever their state."""
    cards, partial, broken = [], [], []
    for summary in RunStore(folder).list():
        if summary.state == "partial":
            partial.append(UnusableRun(summary.id, PARTIAL_WORDS[summary.active]))
        elif summary.manifest is None:
            broken.append(UnusableRun(summary.id, summary.reason))
        else:
            try:
                cards.append(_card(summary, summary.manifest))
            except (KeyError, TypeError, ValueError, AttributeError) as error:  # sealed, yet not by this engine's pipeline
                broken.append(UnusableRun(summary.id, f"its manifest lacks what this page shows ({error!r}); train again."))
    return RunList(tuple(cards), tuple(partial), tuple(broken))


def _card(summary: RunSummary, manifest: Mapping[str, Any]) -> RunCard:
    data = manifest["data"]
    sizes: dict[Side, Mapping[str, Any]] = {"source": data["source"], "target": data["target"]}
    source, target = ((int(size["entities"]), int(size["triples"])) for size in sizes.values())
    return RunCard(
        run=summary.id,
        dataset=summary.dataset,
        variant=summary.variant,
        seed=int(manifest["seed"]),
        stopped=summary.state == "stopped",
        created=summary.created,
        seconds=float(manifest["seconds"]),
        split=str(data["split"]),
        sizes=sizes,
        links={role: int(number) for role, number in data["links"].items()},
        metrics=_measured(summary.metrics),
        protocol=str(manifest["protocol"]),
        paper=paper_figure(source, target, summary.variant),
    )


def _measured(metrics: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Metrics with figures in both directions, or None."""
    directions = ("source_to_target", "target_to_source")
    return metrics if metrics and all(metrics[direction]["hits@1"] is not None for direction in directions) else None


def interval(metrics: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    """The confidence interval of a metric, where the run has one."""
    found = metrics.get("intervals", {}).get(name)
    return None if found is None or None in found else (float(found[0]), float(found[1]))


@st.cache_resource(ttl=3600, max_entries=OPEN_RUNS, show_spinner=False)
def open_run(folder: Path, run: str, created: str) -> OpenRun:
    """A run with its indexes; opening it again is free. ``created`` tells a new run of the same id from the old one.

    Raises:
        RunError: it is not there, or damaged.
    """
    view = RunView(RunStore(folder).find(run))
    return OpenRun(view, Adjacency(view))


@st.cache_data(ttl=600, max_entries=1, show_spinner=False)
def list_data_sets() -> tuple[DataSet, ...]:
    """The sample data that comes with the project."""
    folders = sorted(path for path in (PROJECT / "sample_data").glob("*") if path.is_dir() and not path.name.startswith((".", "_")))
    return tuple(_data_set(path) for path in folders)


def _data_set(path: Path) -> DataSet:
    try:
        counts = json.loads((path / "STATS.json").read_text(encoding="utf-8"))
        entities, links = (int(counts["kg1"]["entities"]), int(counts["kg2"]["entities"])), int(counts["links"])
    except (OSError, ValueError, KeyError, TypeError):
        entities, links = None, None
    return DataSet(path.name, path.relative_to(PROJECT).as_posix(), entities, links)
