"""Bounded caches: what the app keeps between reruns, how much of it, and for how long."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

import engine
from app import text
from app.state import MOST_RUNS
from engine.config import DataConfig, RunConfig
from engine.data import safe_name
from engine.data.files import FileState, state_of
from engine.data.knowledge_graph import SIDES, Side
from engine.data.library import StoredDataSet, data_sets
from engine.errors import RunNotFoundError
from engine.evaluation.paper import PaperFigure, paper_figure
from engine.importing import Preview, find_staged, preview
from engine.jobs import DataSummary, UpdateSummary, summarise, summarise_update, why_refused
from engine.reviews import ReviewStore, Snapshot
from engine.runs import Run, RunStore, RunSummary
from engine.runs.manifest import MANIFEST, SEAL, parent_of
from engine.runs.writer import ResumeRecord, read_beginning
from engine.training.semi import rounds_protocol
from engine.util import paths
from engine.util.apart import Helper

T = TypeVar("T")

_SEARCHING = threading.Lock()
HELPER = Helper()
"""For what takes seconds, during which pages would be slow."""
OPEN_RUNS = 6  # their indexes; the embeddings are memory-mapped
OPEN_TABLES = 48
KEPT_RESULTS = 48  # what the engine computes of runs: a few arrays over the test entities each
KEPT_PAIRS = 640  # what it computes of single pairs, up to 80 KB each: for 50 reviewers at once, each with a pair and the next one
KEPT_EXPORTS = 8  # all pairs that an export may choose from: the largest of what is kept, and another one after each decision
KEPT_SEARCHES = 16  # predictions of a decoder: a few arrays over the entities each, after seconds of work
KEPT_SECONDS = 3600
KEPT_PREVIEWS = 16  # samples and counts, and the seeds that names suggest
LIST_SECONDS = 3.0  # what the folders' times do not show, such as a trainer that died, appears after this time
PARTIAL_WORDS = {True: "being trained now", False: "interrupted; the same train command resumes from its last checkpoint"}


@dataclass(frozen=True)
class RunCard:
    """What the home page says of a run, read from its manifest and metrics alone.

    Attributes:
        run: ``dataset/run_id``, as addresses have it.
        fingerprint: of the two graphs and their links; runs with the same one can be compared.
        metrics: None where there were no test links.
    """

    run: str
    dataset: str
    fingerprint: str
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
    structure_run: str  # whose training a literal run builds on; empty where it trained itself
    engine: str  # version that made it
    parent: str  # the run that it is an update of; empty for a training
    seal: str  # checksum of the manifest, and so of all files: what was read of a run with another one is of another run

    @property
    def run_id(self) -> str:
        return self.run.rpartition("/")[2]

    @property
    def data(self) -> str:
        """What identifies its data: the data set's name, which others' content may have elsewhere, and the fingerprint."""
        return f"{self.dataset}/{self.fingerprint}"


@dataclass(frozen=True)
class UnusableRun:
    """A folder that cannot be opened: damaged, or still in the making.

    Attributes:
        begun: how it was begun, of interrupted ones that say so.
        active: whether it is being trained right now.
    """

    run: str
    reason: str
    begun: ResumeRecord | None = None
    active: bool = False


@dataclass(frozen=True)
class RunList:
    """Everything under the models folder, newest first."""

    cards: tuple[RunCard, ...]
    partial: tuple[UnusableRun, ...]
    broken: tuple[UnusableRun, ...]

    def find(self, run: str) -> RunCard:
        """
        Raises:
            RunNotFoundError: no run of this id can be opened; says why.
        """
        for card in self.cards:
            if card.run == run:
                return card
        for unusable in self.partial:
            if unusable.run == run:
                raise RunNotFoundError(f"Run {run} is {unusable.reason}.")
        for unusable in self.broken:
            if unusable.run == run:
                raise RunNotFoundError(f"Run {run} cannot be opened: {unusable.reason}")
        raise RunNotFoundError(f"There is no run '{run[:80]}'; it may have been deleted or renamed. Choose another run, or see all runs.")

    def of_same_data(self, card: RunCard) -> tuple[RunCard, ...]:
        """The runs that can be compared with this one, itself included, newest first."""
        return tuple(one for one in self.cards if one.fingerprint == card.fingerprint)

    def of_data_set(self, data: StoredDataSet) -> tuple[RunCard, ...]:
        """Its runs. Another data set of the same name has another fingerprint, or where a data set's is not known, other sizes."""
        return tuple(one for one in self.cards if one.dataset == safe_name(data.path) and _may_be_of(one, data))

    def groups(self) -> Mapping[str, Sequence[RunCard]]:
        """Runs by ``data``, the one with the newest run first: data sets of the same content apart, and so are different data of one name."""
        found: dict[str, list[RunCard]] = {}
        for card in self.cards:
            found.setdefault(card.data, []).append(card)
        return found

    def data_names(self) -> Mapping[str, str]:
        """``data`` -> name of the data set; different data under one name are distinguished by their fingerprints."""
        names = {data: text.cell(group[0].dataset, 40) for data, group in self.groups().items()}
        doubled = {name for name, times in Counter(names.values()).items() if times > 1}
        named = {data: f"{name} ({data.rpartition('/')[2][:6]})" if name in doubled else name for data, name in names.items()}
        return text.distinct_labels(named)


def _may_be_of(card: RunCard, data: StoredDataSet) -> bool:
    if data.fingerprint:
        return card.fingerprint == data.fingerprint
    known = (("entities", data.entities), ("triples", data.triples))
    return all(numbers is None or numbers == tuple(card.sizes[side][what] for side in SIDES) for what, numbers in known)


class OpenRun(engine.OpenRun):
    """A run that pages look at. What is costly is computed on first use and shared by all sessions, so nothing in it may be changed."""

    def __init__(self, card: RunCard, run: Run) -> None:
        super().__init__(run)
        self.card = card

    def _read(self, name: str) -> pd.DataFrame:
        """From a cache of bounded size; changing the frame that is returned changes nothing else."""
        return _table(self.run, self.run.path, self.card.seal, name).copy(deep=False)


def run_names(cards: Sequence[RunCard]) -> list[str]:
    """What to call runs that are seen together: the run id, and with their data set those whose id is not theirs alone."""
    times = Counter(card.run_id for card in cards)
    names = {card.run: text.cell(card.run_id if times[card.run_id] == 1 else card.run, 60) for card in cards}
    labels = text.distinct_labels(names)
    return [labels[card.run] for card in cards]


def a_run_a_variant(group: Sequence[RunCard], chosen: Sequence[RunCard]) -> tuple[RunCard, ...]:
    """The chosen runs, then of each variant that is not among them the first of the group: what is worth comparing, at most four."""
    found = list(chosen)
    for card in group:
        if card.variant not in {one.variant for one in found}:
            found.append(card)
    return tuple(found[:MOST_RUNS])


def models_folder() -> Path:
    """Where runs are."""
    return paths.models_folder()


def list_runs(folder: Path) -> RunList:
    """The runs of a models folder, whatever their state; a run that was finished this moment is among them."""
    return _list_runs(folder, _changes(folder))


def _changes(folder: Path) -> tuple[tuple[str, FileState], ...]:
    """When a run was last begun, sealed, replaced or deleted: the state of folders and manifests, which is read much faster than what is in them."""
    patterns = ("[!.]*", "[!.]*/*", f"[!.]*/*/{MANIFEST}")  # not the queue's folder, which changes with every step of a training
    found = (path for pattern in patterns for path in folder.glob(pattern))
    return tuple(sorted((str(path), state) for path in found if (state := state_of(path)) is not None))


@st.cache_data(ttl=LIST_SECONDS, max_entries=4, show_spinner=False)
def _list_runs(folder: Path, changes: tuple[tuple[str, FileState], ...]) -> RunList:
    """``changes`` distinguishes a changed folder from what it was."""
    cards, partial, broken = [], [], []
    for summary in RunStore(folder).list():
        if summary.state == "partial":
            begun = None if summary.active else read_beginning(summary.path)
            partial.append(UnusableRun(summary.id, PARTIAL_WORDS[summary.active], begun, summary.active))
        elif summary.manifest is None:
            broken.append(UnusableRun(summary.id, text.without_places(summary.reason)))
        else:
            try:
                cards.append(_card(summary, summary.manifest))
            except (KeyError, TypeError, ValueError, AttributeError) as error:  # sealed, yet not by this engine's pipeline
                broken.append(UnusableRun(summary.id, f"its manifest is incomplete ({error!r}); train again."))
    return RunList(tuple(cards), tuple(partial), tuple(broken))


@st.cache_resource(ttl=KEPT_SECONDS, max_entries=KEPT_PREVIEWS, show_spinner=False)
def import_preview(token: str, version: int) -> Preview:
    """What is understood of an import, with the corrections of this version.

    Raises:
        DataImportError, DataError: it cannot be read; that is not kept.
    """
    staged = find_staged(token)
    return preview(staged.material, staged.corrections)


def _card(summary: RunSummary, manifest: Mapping[str, Any]) -> RunCard:
    data = manifest["data"]
    sizes: dict[Side, Mapping[str, Any]] = {"source": data["source"], "target": data["target"]}
    source, target = ((int(size["entities"]), int(size["triples"])) for size in sizes.values())
    return RunCard(
        run=summary.id,
        dataset=summary.dataset,
        fingerprint=str(data["fingerprint"]),
        variant=summary.variant,
        seed=int(manifest["seed"]),
        stopped=summary.state == "stopped",
        created=summary.created,
        seconds=float(manifest["seconds"]),
        split=str(data["split"]),
        sizes=sizes,
        links={role: int(number) for role, number in data["links"].items()},
        metrics=_measured(summary.metrics),
        protocol="; ".join(filter(None, [str(manifest["protocol"]), rounds_protocol(manifest)])),
        paper=paper_figure(source, target, summary.variant),
        structure_run=str(manifest.get("training", {}).get("structure_run", "")),
        engine=str(manifest.get("versions", {}).get("engine", "")),
        parent=parent_of(manifest),
        seal=str(manifest[SEAL]),
    )


def _measured(metrics: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Metrics with figures in both directions, or None."""
    directions = ("source_to_target", "target_to_source")
    return metrics if metrics and all(metrics[direction]["hits@1"] is not None for direction in directions) else None


def open_run(folder: Path, card: RunCard) -> OpenRun:
    """A run, ready to be looked at; opening it again is free.

    Raises:
        RunError: it is not there any more, or damaged.
    """
    return _open(folder, card.run, card.seal, card)


def open_listed(run: str) -> OpenRun:
    """A run of the app's models folder by its id.

    Raises:
        RunError: it is not there, or damaged.
    """
    folder = models_folder()
    return open_run(folder, list_runs(folder).find(run))


@st.cache_resource(ttl=KEPT_SECONDS, max_entries=OPEN_RUNS, show_spinner=False)
def _open(folder: Path, run: str, seal: str, _card: RunCard) -> OpenRun:
    """``seal`` distinguishes a new run of the same id from the old one, whatever its recorded time.

    Raises:
        RunDamagedError: it was replaced since it was listed.
    """
    return OpenRun(_card, RunStore(folder).find(run, seal))


@st.cache_resource(ttl=KEPT_SECONDS, max_entries=OPEN_TABLES, show_spinner=False)
def _table(_run: Run, path: Path, seal: str, name: str) -> pd.DataFrame:
    """Kept as it is and not pickled, which would cost seconds for a large one."""
    return _run.table(name)


def reviews() -> ReviewStore:
    """The reviewers' decisions, shared by all sessions."""
    return _reviews(paths.reviews_file(models_folder()))


@st.cache_resource(max_entries=2, show_spinner=False)
def _reviews(path: Path) -> ReviewStore:
    return ReviewStore(path)


def kept(runs: Sequence[OpenRun], question: tuple[str, ...], compute: Callable[[], T]) -> T:
    """What ``compute`` makes of some runs, computed once for all sessions; ``question`` names what is computed. Not to be changed.

    Raises:
        EngineError: whatever ``compute`` raises; that is not kept.
    """
    found: T = _kept(_identities(runs), question, compute)
    return found


def kept_of_pair(runs: Sequence[OpenRun], question: tuple[str, ...], compute: Callable[[], T]) -> T:
    """As :func:`kept`, for what is small and asked for pair by pair, so that many reviewers do not push out what is costly and shared by all."""
    found: T = _kept_of_pair(_identities(runs), question, compute)
    return found


def kept_export(run: OpenRun, question: tuple[str, ...], compute: Callable[[], T]) -> T:
    """As :func:`kept`, for what is large and depends on the reviewers' decisions: only the last ones are kept."""
    found: T = _kept_export(_identities([run]), question, compute)
    return found


def kept_search(run: OpenRun, question: tuple[str, ...], compute: Callable[[], T]) -> T:
    """As :func:`kept`, for what takes a search of all entities: one at a time, since each needs much memory."""

    def alone() -> T:
        with _SEARCHING:
            return compute()

    found: T = _kept_search(_identities([run]), question, alone)
    return found


def _identities(runs: Sequence[OpenRun]) -> tuple[tuple[Path, str], ...]:
    return tuple((run.run.path, run.card.seal) for run in runs)


@st.cache_resource(ttl=KEPT_SECONDS, max_entries=KEPT_RESULTS, show_spinner=False)
def _kept(runs: tuple[tuple[Path, str], ...], question: tuple[str, ...], _compute: Callable[[], Any]) -> Any:
    return _compute()


@st.cache_resource(ttl=KEPT_SECONDS, max_entries=KEPT_PAIRS, show_spinner=False)
def _kept_of_pair(runs: tuple[tuple[Path, str], ...], question: tuple[str, ...], _compute: Callable[[], Any]) -> Any:
    return _compute()


@st.cache_resource(ttl=KEPT_SECONDS, max_entries=KEPT_EXPORTS, show_spinner=False)
def _kept_export(runs: tuple[tuple[Path, str], ...], question: tuple[str, ...], _compute: Callable[[], Any]) -> Any:
    return _compute()


@st.cache_resource(ttl=KEPT_SECONDS, max_entries=KEPT_SEARCHES, show_spinner=False)
def _kept_search(runs: tuple[tuple[Path, str], ...], question: tuple[str, ...], _compute: Callable[[], Any]) -> Any:
    return _compute()


@st.cache_data(ttl=600, max_entries=16, show_spinner="Reading the data set…")
def data_summary(path: Path, content: str, config: DataConfig, seed: int, digest: str = "", _reviews: Snapshot | None = None) -> DataSummary:
    """What a data set is called and how large it is; ``content``: of :func:`engine.data.files.folder_state`, so that changed files are read
    again; ``digest``: of the decisions that are to be trained with.

    Raises:
        DataError, ConfigError: it cannot be read.
    """
    return summarise(path, config, seed, None if _reviews is None else lambda fingerprint: _reviews)


def update_summary(run: OpenRun, path: Path, content: str, config: RunConfig) -> UpdateSummary:
    """What a run's update to a data set would carry over; ``content`` as for :func:`data_summary`.

    Raises:
        EngineError: the data cannot be read, or are no version of the run's.
    """
    return _update_summary(run.run.path, run.card.seal, path, content, config, run.run)


@st.cache_data(ttl=600, max_entries=16, show_spinner="Comparing the data with the run…")
def _update_summary(parent: Path, seal: str, path: Path, content: str, config: RunConfig, _run: Run) -> UpdateSummary:
    return summarise_update(_run, path, config, models_folder())


def refusal(path: Path, content: str, config: RunConfig, reviews: Snapshot | None = None) -> str:
    """As :func:`engine.jobs.why_refused`; of the settings only those that this depends on are looked at."""
    asked = replace(RunConfig(config.variant, config.seed), data=config.data, semi=config.semi, values=config.values, baseline=config.baseline)
    return _refusal(path, content, asked, "" if reviews is None else reviews.digest, reviews)


@st.cache_data(ttl=600, max_entries=16, show_spinner="Looking for evidence to start from…")
def _refusal(path: Path, content: str, config: RunConfig, digest: str, _reviews: Snapshot | None) -> str:
    return why_refused(path, config, _reviews)


@st.cache_data(ttl=LIST_SECONDS, max_entries=4, show_spinner=False)
def list_data_sets() -> tuple[StoredDataSet, ...]:
    """What can be trained on: imported data sets, the newest first, then the sample data."""
    return data_sets()
