"""A run on a new version of its data: what is carried over, trained for a few epochs more, and kept as a run that knows its parent."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy import sparse

from engine.analysis.run_tables import graph_of
from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.data.knowledge_graph import SIDES, Finding, KnowledgeGraph, Side, empty_links
from engine.data.library import starting_config
from engine.data.versions import PARTS, Renaming, Versions, check_versions, read_renaming, with_earlier_split
from engine.errors import ReviewError, RunError
from engine.pipeline.events import NOTE, Listener, Phase, note_on
from engine.pipeline.identity import with_absolute_paths
from engine.pipeline.making import Clock, Making, Outcome, with_snapshot
from engine.pipeline.structure import stored_selections
from engine.pipeline.training import find_or_train, train_again
from engine.reviews import Snapshot, carried_snapshot, carry_decisions, is_database, mark_pairs, read_snapshot
from engine.reviews.decisions import Pair
from engine.runs import Run, RunStore
from engine.runs.manifest import SEAL, baseline_of
from engine.runs.tensors import has_table
from engine.runs.view import RunView
from engine.runs.writer import REVIEWS
from engine.training.inheritance import Inheritance, check_encoder
from engine.training.schedule import first_epochs, round_epochs
from engine.training.semi import Selection, no_selection
from engine.util.arrays import IntArray
from engine.util.paths import reviews_file
from engine.util.text import count

MappingFiles = Mapping[Side | None, Path]
"""Mapping files by graph; None: one for both graphs."""

SHARE_OF_EPOCHS: Final = 0.05
"""Of the parent's epochs: what an update of the basic variant trains for; of the usual 20, one."""
FIRST_EPOCHS, ROUNDS = 1, 1
"""Of an update with rounds: it begins with the pairs that its parent ended with, so that pairs are selected again at once, also of new entities."""
SHARE_OF_ROUND: Final = 0.6
"""Of the parent's epochs per round, where its settings name them; otherwise as many as by default."""
MANY_NEW: Final = 0.1
"""Share of new entities in a graph from which more epochs may be worth their time."""
SHORTENED: Final = ("training.epochs", "semi.rounds", "semi.round_epochs")
"""Settings that an update replaces; the next update begins from what they were."""
HERE: Final[Mapping[str, Any]] = {"training.device": "auto", "training.threads": None}
"""Settings of the machine that the parent was trained on, which need not be this one."""


# Settings


def update_config(
    parent: Run,
    path: Path | str,
    *,
    epochs: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
) -> RunConfig:
    """The parent's settings with fewer epochs and rounds, and what an import stored with the new data.

    Args:
        parent: the run to be updated.
        path: folder of the new version.
        epochs: before the rounds; None: a share of the parent's.
        seed: None: the parent's.
        settings: go before all others.
        assignments: the same as texts, as ``--set`` takes them.

    Raises:
        ConfigError: an unknown setting or value, or one that the parent's parameters do not fit.
        RunError: the parent is a run of a baseline.
    """
    if baseline := baseline_of(parent.manifest):
        raise RunError(f"run {parent.id} is a run of the baseline {baseline}, which cannot be updated; run the baseline on the new data instead.")
    before = own_settings(parent)
    stored, defaults = vars(starting_config(Path(path)).data), vars(RunConfig().data)
    config = before.with_values({f"data.{name}": value for name, value in stored.items() if value != defaults[name]})
    config = replace(config, seed=before.seed if seed is None else seed).with_values({**short_epochs(before, parent), **HERE})
    chosen = config.with_values({} if epochs is None else {"training.epochs": epochs}).with_values(settings or {}).with_assignments(assignments)
    check_encoder(before.encoder, chosen.encoder)
    return chosen


def own_settings(parent: Run) -> RunConfig:
    """Settings of a run; of one that is an update itself, with the epochs and rounds of the run that the first update began from."""
    inherited = parent.manifest.get("parent", {}).get("inherited", {})
    return RunConfig.from_dict(parent.manifest["config"]).with_values({name: inherited[name] for name in SHORTENED if name in inherited})


def short_epochs(before: RunConfig, parent: Run) -> dict[str, Any]:
    """Epochs and rounds of an update."""
    links = int(parent.manifest["data"]["links"]["train"])
    full = first_epochs(before, links, links)
    if before.variant == "basic" or not before.semi.rounds:
        return {"training.epochs": max(1, math.ceil(SHARE_OF_EPOCHS * full))}
    pairs = max(links + len(last_selection(parent)), 1)
    asked = before.semi.round_epochs
    each = round_epochs(before, links, pairs) if asked is None else math.ceil(SHARE_OF_ROUND * asked)
    return {"training.epochs": FIRST_EPOCHS, "semi.rounds": min(ROUNDS, before.semi.rounds), "semi.round_epochs": each}


# The parent's data


def earlier_graphs(run: Run) -> Mapping[Side, KnowledgeGraph]:
    """The graphs of a run, attributes included, from its folder.

    Raises:
        RunError: a table is missing or damaged.
    """
    tables = {name: run.table(name) for name in ("entities", "relations", "triples")}
    attributes = run.table("attributes")
    found: dict[Side, KnowledgeGraph] = {}
    for side in SIDES:
        own = attributes[attributes["graph"] == side].drop(columns="graph").reset_index(drop=True)
        found[side] = replace(graph_of(tables, side), attributes=own)
    return found


def earlier_links(run: Run) -> Mapping[str, IntArray]:
    """The known links of a run by part."""
    table = run.table("links")
    return {part: table.loc[table["role"] == part, ["source", "target"]].to_numpy(dtype=np.int64) for part in PARTS}


def last_selection(run: Run) -> Selection:
    """What the last round of a run trained on besides the seed links; nothing where it had no rounds."""
    rounds = stored_selections(run) if has_table(run, "selections") else []
    return rounds[-1] if rounds else no_selection()


@dataclass(frozen=True)
class PreparedUpdate:
    """An update before it is trained: the task with the parent's split, what is taken over, and both versions."""

    task: AlignmentTask
    inheritance: Inheritance
    versions: Versions


def prepare_update(parent: Run, path: Path | str, config: RunConfig, mapping: MappingFiles | None = None) -> PreparedUpdate:
    """Read the new version and find in it what the parent has; nothing is trained or written.

    Args:
        parent: the run to be updated.
        path: folder of the new version.
        config: as of :func:`update_config`.
        mapping: mapping files.

    Raises:
        DataError: data that cannot be read or is no version of the parent's; a wrong mapping file.
        RunError: the parent has no stored weights, or is damaged.
    """
    if "model.safetensors" not in parent.files:
        raise RunError(f"run {parent.id} has no stored weights, because an older version made it; train it again with --fresh.")
    task = load_task(path, config.data, config.seed)
    earlier, later = earlier_graphs(parent), {side: task.graph(side) for side in SIDES}
    renaming = read_renaming(mapping or {}, earlier, later)
    versions = Versions.of(earlier, later, renaming)
    check_versions(versions.carried, task.name, parent.id)
    digest = origin_digest(parent, renaming)
    task, links = with_earlier_split(task, earlier_links(parent), versions, f"{parent.id} ({digest[:8]})")
    task = replace(task, findings=(*task.findings, version_finding(parent, versions, links.carried)))
    record = {**describe_parent(parent, renaming, digest, config), "counts": {**counts_of(versions), "links": asdict(links)}}
    files: dict[str, Path] = {side or "": Path(file) for side, file in (mapping or {}).items()}
    assigned = config.assignments(update_config(parent, path))
    inheritance = Inheritance(parent, versions.carried, carried_selection(parent, versions), record, renaming.table(), files, assigned)
    return PreparedUpdate(task, inheritance, versions)


def origin_digest(parent: Run, renaming: Renaming) -> str:
    """sha-256 (hex) of what of the parent determines the result of an update."""
    content = ["update-1", parent.id, parent.files["model.safetensors"]["sha256"], renaming.digest]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def describe_parent(parent: Run, renaming: Renaming, digest: str, config: RunConfig) -> dict[str, Any]:
    """What a manifest says of the run that it is an update of."""
    before = own_settings(parent)
    inherited = {name: getattr(getattr(before, name.split(".")[0]), name.split(".")[1]) for name in SHORTENED}
    data = parent.manifest["data"]
    return {
        "run": parent.id,
        "data_set": parent.dataset,
        "fingerprint": data["fingerprint"],
        "seal": parent.manifest[SEAL],
        "digest": digest,
        "mapping": {"digest": renaming.digest, "entities": renaming.size} if renaming.digest else None,
        "epochs": {"first": config.training.epochs, "rounds": config.semi.rounds, "round": config.semi.round_epochs},
        "inherited": inherited,
    }


def counts_of(versions: Versions) -> dict[str, Any]:
    return {side: versions.carried[side].counts() for side in SIDES}


def carried_selection(parent: Run, versions: Versions) -> Selection:
    """The parent's last pairs of which both ends are still there."""
    before = last_selection(parent)
    later = [versions.carried[side].later[before.pairs[:, at]] for at, side in enumerate(SIDES)]
    pairs = np.stack(later, axis=1) if len(before) else empty_links()
    keep = (pairs >= 0).all(axis=1)
    return Selection(pairs[keep], before.scores[keep])


def version_finding(parent: Run, versions: Versions, links: int) -> Finding:
    """What was carried over, in words."""
    counts = {side: versions.carried[side].counts()["entities"] for side in SIDES}
    words = "; ".join(
        f"{side} graph: {one['carried']:,} entities carried over, {one['new']:,} new, {one['gone']:,} gone" for side, one in counts.items()
    )
    message = f"new version of the data of {parent.id}: {words}; {count(links, 'link')} carried over."
    many = any(one["new"] > MANY_NEW * (one["new"] + one["carried"]) for one in counts.values())
    advice = "Many entities are new: more epochs (--epochs, semi.round_epochs) may give better matches." if many else ""
    return Finding("new-version", "info", message, sum(one["carried"] for one in counts.values()), advice=advice)


# Reviews


def reviews_of(prepared: PreparedUpdate, parent: Run, models: Path, asked: Path | None) -> Snapshot | None:
    """The decisions to train with: those that are asked for, else those that the parent was trained with; None without any.

    Raises:
        ReviewError: the file has no decisions on this data.
    """
    later, before = prepared.task.fingerprint, str(parent.manifest["data"]["fingerprint"])
    if asked is not None and is_database(asked):
        if asked.resolve() != reviews_file(models).resolve():
            carry_decisions(asked, before, later, prepared.versions)
        return read_snapshot(asked, later)
    if asked is not None:
        return carried_snapshot(read_snapshot(asked, before), later, prepared.versions)
    if f"{REVIEWS}.parquet" not in parent.files:
        return None
    found = carried_snapshot(read_snapshot(parent.file(f"{REVIEWS}.parquet"), before), later, prepared.versions)
    return found if found.accepted or found.rejected else None


def carry_reviews(prepared: PreparedUpdate, parent: Run, models: Path, on_event: Listener) -> None:
    """Copy the reviewers' decisions to the new data.

    Raises:
        ReviewError: the database cannot be used.
    """
    before, later = str(parent.manifest["data"]["fingerprint"]), prepared.task.fingerprint
    found = carry_decisions(reviews_file(models), before, later, prepared.versions)
    if found is not None:
        words = f"reviews: {count(found.decisions, 'decision')} carried over, {count(found.again, 'pair')} to look at again, "
        on_event(Phase(NOTE, f"info: {words}{found.inactive:,} inactive because an entity is gone"))


def mark_changed_neighbours(prepared: PreparedUpdate, run: Run, models: Path) -> None:
    """Mark the carried decisions on pairs of which other neighbours match each other now than in the parent.

    Raises:
        ReviewError: the database cannot be used.
    """
    if prepared.task.fingerprint == prepared.inheritance.record["fingerprint"]:
        return
    mark_pairs(
        reviews_file(models), prepared.task.fingerprint, lambda pairs: changed_support(prepared.versions, prepared.inheritance.run, run, pairs)
    )


def changed_support(versions: Versions, parent: Run, run: Run, pairs: Sequence[Pair]) -> Iterable[Pair]:
    """The pairs of which other neighbours match each other than before, in both cases by the source entities' best matches."""
    before, now = (RunView(one).best["source"] for one in (parent, run))
    later = [versions.carried[side].later for side in SIDES]
    around_before, around_now = ([neighbours_of(graphs[side]) for side in SIDES] for graphs in (versions.earlier, versions.later))
    for pair in pairs:
        ends = [versions.later[side].index.get(identifier) for side, identifier in zip(SIDES, pair, strict=True)]
        if ends[0] is None or ends[1] is None:
            continue
        old = [int(versions.carried[side].entities[end]) for side, end in zip(SIDES, ends, strict=True) if end is not None]
        supported = matched(around_now, ends[0], ends[1], now)
        earlier = matched(around_before, old[0], old[1], before) if min(old) >= 0 else set()
        if {(int(later[0][one]), int(later[1][two])) for one, two in earlier} != supported:
            yield pair


def matched(around: Sequence[sparse.csr_matrix], source: int, target: int, best: Mapping[int, int]) -> set[tuple[int, int]]:
    """Pairs of a neighbour of the source and its best match, where that is a neighbour of the target."""
    sources, targets = (
        set(links.indices[links.indptr[end] : links.indptr[end + 1]].tolist()) for links, end in zip(around, (source, target), strict=True)
    )
    return {(one, best[one]) for one in sources if best.get(one) in targets}


def neighbours_of(graph: KnowledgeGraph) -> sparse.csr_matrix:
    """(E, E) which entities share a triple."""
    head, tail = graph.triples[:, 0], graph.triples[:, 2]
    ends = np.concatenate([head, tail]), np.concatenate([tail, head])
    found = sparse.csr_matrix((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(graph.num_entities, graph.num_entities))
    found.sum_duplicates()
    return found


# The whole


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
    "mapping": {"digest", "entities"} or None, "epochs", "inherited": settings of the parent that the update replaced}. Old and new identifiers of a
    mapping are the run's table ``renamed`` (graph, old, new).

    Args:
        parent: the run that is updated.
        path: folder of the new version.
        config: as of :func:`update_config`.
        store: where runs are kept, with the reviewers' decisions.
        mapping: mapping files.
        fresh, on_event, should_stop: as for :func:`engine.pipeline.train_run`.
        reviews: decisions to train with: the reviewers' database or a run's ``reviews.parquet``; None: those that the parent was trained with.

    Raises:
        EngineError: with one sentence for the user; earlier runs stay as they are.
    """
    clock, config = Clock(), with_absolute_paths(config)
    on_event(Phase("read", f"Reading {path}"))
    with clock.phase("read"):
        prepared = prepare_update(parent, path, config, mapping)
        on_event(Phase(NOTE, note_on(prepared.task.findings[-1])))
        carry_reviews(prepared, parent, store.root, on_event)
        snapshot = reviews_of(prepared, parent, store.root, reviews)
        task, reviewed = (prepared.task, None) if snapshot is None else with_snapshot(prepared.task, snapshot, on_event)
    making = Making(Path(path), task, config, store, clock, on_event, reviewed, inheritance=prepared.inheritance)
    outcome = train_again(making, making.free_id(), should_stop) if fresh else find_or_train(making, should_stop)
    if outcome.run.manifest["status"] == "finished":  # matches of a stopped one are still far from the parent's
        with suppress(ReviewError):  # the run is whole, and its decisions have been carried over
            mark_changed_neighbours(prepared, outcome.run, store.root)
    return outcome
