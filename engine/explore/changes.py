"""What changed between two runs: matches gained, lost, changed and kept, each with a reason.

The runs are of two versions of the same data, or of the same data. A match is an entity's best one, as on the page Pairs; where both runs have
probabilities, one of at least a minimum. A reason is a difference between the two versions that concerns the match: the first that applies, in the
order of ``CAUSES``. It says what is different where a match changed, not that the match would be the same without it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.data.labels import identifier_tail
from engine.errors import ComparisonError
from engine.explore.alignment import Alignment
from engine.explore.versions import NO_NUMBER, GraphChanges, Incidences, SharedNumbers, graph_changes, version_numbers
from engine.runs.entities import Entity, other
from engine.runs.tensors import has_table
from engine.runs.view import RunView, probability_word
from engine.util.arrays import BoolArray, FloatArray, IntArray
from engine.util.text import count, shortened

Change = Literal["changed", "gained", "lost", "kept"]
CHANGES: Final[tuple[Change, ...]] = get_args(Change)
"""In the order of rows."""
Cause = Literal[
    "entity added",
    "entity removed",
    "match added",
    "match removed",
    "review",
    "seed link added",
    "seed link removed",
    "triples added",
    "triples removed",
    "name or value",
    "neighbour",
    "training",
]
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
"""The first that applies is the reason."""
CAUSE_WORDS: Final[Mapping[Cause, str]] = {
    "entity added": "new entity",
    "entity removed": "entity removed",
    "match added": "match is a new entity",
    "match removed": "previous match removed",
    "review": "review decision",
    "seed link added": "seed link added",
    "seed link removed": "seed link removed",
    "triples added": "triples added",
    "triples removed": "triples removed",
    "name or value": "name or value changed",
    "neighbour": "neighbour's match",
    "training": "training only",
}
USUAL_LEAST: Final = 0.5
"""Probability from which on a match counts, where both runs have probabilities."""
CHANGE_COLUMNS: Final = (
    *("change", "entity", "label", "match", "match_label", "probability", "csls"),
    *("old_match", "old_match_label", "old_probability", "old_csls", "reason", "detail"),
)


@dataclass(frozen=True)
class VersionRun:
    """A run, and its matches as seen from one graph."""

    view: RunView
    alignment: Alignment

    @property
    def name(self) -> str:
        return f"{self.view.run.manifest.get('dataset')}/{self.view.run.manifest.get('run_id')}"


@dataclass(frozen=True)
class BestMatches:
    """(n,) the match of each entity by shared number, and whether it counts; ``NO_NUMBER`` and NaN for entities without one."""

    match: IntArray
    probability: FloatArray
    csls: FloatArray
    counts: BoolArray


@dataclass(frozen=True)
class MatchChanges:
    """The matches of two runs compared, as seen from the entities of one graph.

    Attributes:
        side: that graph.
        new, old: the runs.
        least: minimum probability of a match; None where all count.
        numbers: by graph.
        rows: by change, the most probable first: ``entity``, ``match`` and ``old_match`` by shared number; ``probability``, ``old_probability``,
            ``csls``, ``old_csls`` (NaN where there is none); ``change`` and ``cause``, places in ``CHANGES`` and ``CAUSES`` (-1 for kept ones);
            ``added``, ``removed``, how many triples of the entity and its matches; ``neighbours`` with another match; ``neighbour``, the one to
            name, of the graph ``neighbour_side`` (a place in ``SIDES``).
        attributes: by graph, (size,) of :class:`engine.explore.versions.GraphChanges`.
    """

    side: Side
    new: VersionRun
    old: VersionRun
    least: float | None
    numbers: Mapping[Side, SharedNumbers]
    rows: pd.DataFrame
    attributes: Mapping[Side, npt.NDArray[np.object_]]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def change(self) -> npt.NDArray[np.int8]:
        """(n,) places in ``CHANGES``."""
        codes: npt.NDArray[np.int8] = self.rows["change"].to_numpy(dtype=np.int8)
        return codes

    @cached_property
    def cause(self) -> npt.NDArray[np.int8]:
        """(n,) places in ``CAUSES``, -1 for what is kept."""
        codes: npt.NDArray[np.int8] = self.rows["cause"].to_numpy(dtype=np.int8)
        return codes

    # Choosing rows

    def select(self, changes: Collection[Change] = (), causes: Collection[Cause] = (), text: str = "") -> IntArray:
        """Ascending positions of the rows of some changes and reasons of which an entity's label or identifier holds a text; empty: of any."""
        keep = np.ones(len(self), dtype=bool)
        if changes:
            keep &= np.isin(self.change, [CHANGES.index(one) for one in changes])
        if causes:
            keep &= np.isin(self.cause, [CAUSES.index(one) for one in causes])
        if text.strip():
            own, across = (self._fitting(side, text) for side in (self.side, other(self.side)))
            keep &= own[self.rows["entity"]] | across[self.rows["match"]] | across[self.rows["old_match"]]
        return np.flatnonzero(keep)

    def _fitting(self, side: Side, text: str) -> BoolArray:
        """(size + 1,) entities that fit a text in either version; the last place, that of no entity, does not."""
        numbers = self.numbers[side]
        found = np.zeros(numbers.size + 1, dtype=bool)
        found[: len(numbers.new)] = numbers.new.fitting(text)
        found[numbers.of_old] |= numbers.old.fitting(text)
        return found

    def counts(self, positions: IntArray | None = None) -> dict[Change, int]:
        """How many of some rows, or of all, are of each kind."""
        codes = self.change if positions is None else self.change[positions]
        return dict(zip(CHANGES, np.bincount(codes, minlength=len(CHANGES)).tolist(), strict=True))

    def cause_counts(self, positions: IntArray | None = None) -> dict[Cause, int]:
        """How many of some rows, or of all, have each reason."""
        codes = self.cause if positions is None else self.cause[positions]
        return dict(zip(CAUSES, np.bincount(codes[codes >= 0], minlength=len(CAUSES)).tolist(), strict=True))

    # Words

    def entity(self, side: Side, number: int) -> Entity:
        """An entity by its shared number, as the new version has it where it does."""
        graph, index = self.numbers[side].place(number)
        return graph.entity(index)

    def old_entity(self, side: Side, number: int) -> Entity | None:
        """The entity in the old version; None where that lacks it."""
        index = int(self.numbers[side].in_old[number])
        return None if index == NO_NUMBER else self.numbers[side].old.entity(index)

    def new_entity(self, side: Side, number: int) -> Entity | None:
        """The entity in the new version; None where that lacks it."""
        return self.numbers[side].new.entity(number) if number < len(self.numbers[side].new) else None

    def pairs(self, position: int) -> tuple[tuple[Entity, Entity] | None, tuple[Entity, Entity] | None]:
        """The row's pair in the new run and in the old one, source first; None where it has none."""
        row, across = self.rows.iloc[position], other(self.side)
        found: list[tuple[Entity, Entity] | None] = []
        for column, of in (("match", self.new_entity), ("old_match", self.old_entity)):
            ends = None if row[column] == NO_NUMBER else (of(self.side, int(row["entity"])), of(across, int(row[column])))
            if ends is None or ends[0] is None or ends[1] is None:
                found.append(None)
            else:
                found.append((ends[0], ends[1]) if self.side == "source" else (ends[1], ends[0]))
        return found[0], found[1]

    @property
    def estimated(self) -> bool:
        """Whether the probabilities of either run are estimated without held-out links; False where they are not compared."""
        return self.least is not None and any(run.view.unchecked_probabilities for run in (self.new, self.old))

    def sentence(self) -> str:
        """One line for the user."""
        counts = self.counts()
        listed = f"{counts['kept']:,} matches kept, {counts['changed']:,} changed, {counts['gained']:,} gained, {counts['lost']:,} lost"
        return f"{listed}{'' if self.least is None else f' ({probability_word(self.estimated)} {self.least:.0%} or more)'}."

    def entity_sentence(self, side: Side) -> str:
        """How many entities of a graph are new, and how many are gone."""
        numbers = self.numbers[side]
        if not numbers.fresh.any() and not numbers.gone.any():
            return f"{numbers.new.name}: the same {count(len(numbers.new), 'entity', 'entities')}"
        added, removed = int(numbers.fresh.sum()), int(numbers.gone.sum())
        return f"{numbers.new.name}: {numbers.common:,} entities in both versions, {added:,} added, {removed:,} removed"

    def detail(self, position: int) -> str:
        """What the reason is, in numbers and with a name: '2 triples added, 1 removed, e.g. Bavaria'."""
        return self._detail(self.rows.iloc[position].to_dict())

    def _detail(self, row: Mapping[Hashable, Any]) -> str:
        if row["cause"] < 0:
            return ""
        cause = CAUSES[int(row["cause"])]
        if cause == "name or value":
            return self._attributes_of(row)
        named = self._named(row)
        if cause == "neighbour":
            return f"{count(int(row['neighbours']), 'neighbour')}{f', e.g. {named}' if named else ''}"
        added, removed = int(row["added"]), int(row["removed"])
        parts = [f"{count(added, 'triple')} added"] if added else []
        if removed:
            parts.append(f"{removed:,} removed" if added else f"{count(removed, 'triple')} removed")
        return f"{', '.join(parts)}{f', e.g. {named}' if named and parts else ''}"

    def _named(self, row: Mapping[Hashable, Any]) -> str:
        if row["neighbour"] == NO_NUMBER:
            return ""
        return shortened(self.entity(SIDES[int(row["neighbour_side"])], int(row["neighbour"])).title, 60)

    def _attributes_of(self, row: Mapping[Hashable, Any]) -> str:
        own, across = self.attributes[self.side], self.attributes[other(self.side)]
        found = [own[int(row["entity"])], *(across[int(row[name])] for name in ("match", "old_match") if row[name] != NO_NUMBER)]
        return ", ".join(dict.fromkeys(shortened(identifier_tail(str(name)), 60) for name in found if name))

    def described(self, positions: IntArray | None = None) -> pd.DataFrame:
        """Some rows, or all, with texts: ``CHANGE_COLUMNS``. Identifiers are those of the new version where it has the entity, "" without a match."""
        chosen = np.arange(len(self)) if positions is None else positions
        part = self.rows.iloc[chosen]
        texts: dict[str, Sequence[Any]] = {"change": [CHANGES[code] for code in part["change"]]}
        for column, side in (("entity", self.side), ("match", other(self.side)), ("old_match", other(self.side))):
            ends = [None if number == NO_NUMBER else self.entity(side, number) for number in part[column].tolist()]
            label = "label" if column == "entity" else f"{column}_label"
            texts |= {column: ["" if one is None else one.uri for one in ends], label: ["" if one is None else one.label for one in ends]}
        numbers = {name: part[name].to_numpy() for name in ("probability", "csls", "old_probability", "old_csls")}
        reasons = ["" if code < 0 else CAUSE_WORDS[CAUSES[code]] for code in part["cause"]]
        details = [self._detail(row) for row in part.to_dict("records")]
        return pd.DataFrame({**texts, **numbers, "reason": reasons, "detail": details}, columns=list(CHANGE_COLUMNS))


def match_changes(new: VersionRun, old: VersionRun, least: float | None = None) -> MatchChanges:
    """Compare the matches of two runs. Entities go by their identifiers, and where the new run is an update of the old one's data, by its mapping.

    Args:
        new, old: the runs, both as seen from the same graph.
        least: probability from which on a match counts; that of an entity with a seed link always does. None: ``USUAL_LEAST`` where both runs have
            probabilities, else all.

    Raises:
        ComparisonError: the runs have too little in common, or one has no probabilities to compare with the minimum.
    """
    side = new.alignment.side
    least = minimum_probability(new, old, least)
    numbers = version_numbers(new.view, old.view, renamed_entities(new.view, old.view))
    own, across = numbers[side], numbers[other(side)]
    ends = np.arange(len(own.new)), np.arange(len(across.new))
    matches = (
        best_by_number(new, ends[0], ends[1], own.size, least),
        best_by_number(old, own.of_old, across.of_old, own.size, least),
    )
    graphs = {one: graph_changes(new.view, old.view, one, numbers[one]) for one in SIDES}
    states = change_codes(*matches)
    listed = np.flatnonzero(states >= 0)
    rows = pd.DataFrame(
        {
            "entity": listed,
            **{
                f"{prefix}{name}": getattr(one, name)[listed]
                for prefix, one in zip(("", "old_"), matches, strict=True)
                for name in ("match", "probability", "csls")
            },
            "change": states[listed],
        }
    )
    rows = with_causes(rows, states, matches, graphs, link_changes(new, old, numbers), side)
    best = rows[["probability", "old_probability"]].fillna(1.0).max(axis=1).to_numpy()
    order = np.lexsort((rows["entity"], -np.nan_to_num(rows["csls"], nan=-9.0), -best, rows["change"]))
    attributes = {one: graphs[one].attribute for one in SIDES}
    return MatchChanges(side, new, old, least, numbers, rows.iloc[order].reset_index(drop=True), attributes)


def renamed_entities(new: RunView, old: RunView) -> dict[Side, dict[str, str]]:
    """Identifiers of the old run's data -> of the new run's, by graph, where the new run is an update that was given a mapping file."""
    parent = new.run.manifest.get("parent") or {}
    if parent.get("fingerprint") != old.run.manifest.get("data", {}).get("fingerprint") or not has_table(new.run, "renamed"):
        return {}
    rows = new.run.table("renamed", ["graph", "old", "new"])
    return {side: dict(zip(part["old"], part["new"], strict=True)) for side in SIDES for part in [rows[rows["graph"] == side]]}


def minimum_probability(new: VersionRun, old: VersionRun, least: float | None) -> float | None:
    """
    Raises:
        ComparisonError: no probability, or a run without any.
    """
    lacking = next((run for run in (new, old) if not run.alignment.calibrated), None)
    if least is None:
        return None if lacking is not None else USUAL_LEAST
    if not 0 <= least <= 1:
        raise ComparisonError(f"the minimum probability must lie between 0 and 1; got {least:g}.")
    if least and lacking is not None:
        raise ComparisonError(f"run {lacking.name} has no probabilities; remove the minimum probability to compare all matches.")
    return least or None


def best_by_number(run: VersionRun, own: IntArray, across: IntArray, size: int, least: float | None) -> BestMatches:
    """A run's matches by shared number. ``own``, ``across``: the shared numbers of its entities and of those of the other graph."""
    rows = run.alignment.rows
    places = own[rows["entity"].to_numpy()]
    match, probability, csls = np.full(size, NO_NUMBER, dtype=np.int64), np.full(size, np.nan), np.full(size, np.nan)
    match[places] = across[rows["match"].to_numpy()]
    probability[places] = rows["probability"].to_numpy(dtype=np.float64)
    csls[places] = rows["csls"].to_numpy(dtype=np.float64)
    counts = np.zeros(size, dtype=bool)
    counts[places] = True if least is None else rows["probability"].to_numpy(dtype=np.float64) >= least
    seeds = run.view.run.table("links", [run.alignment.side], {"role": "train"})[run.alignment.side].to_numpy(dtype=np.int64)
    counts[own[seeds]] = match[own[seeds]] != NO_NUMBER  # which have no probability
    return BestMatches(match, probability, csls, counts)


def change_codes(new: BestMatches, old: BestMatches) -> npt.NDArray[np.int8]:
    """(size,) places in ``CHANGES``; -1 for entities without a match in either run."""
    found = np.full(len(new.match), -1, dtype=np.int8)
    both = new.counts & old.counts
    found[both & (new.match == old.match)] = CHANGES.index("kept")
    found[both & (new.match != old.match)] = CHANGES.index("changed")
    found[new.counts & ~old.counts] = CHANGES.index("gained")
    found[~new.counts & old.counts] = CHANGES.index("lost")
    return found


# Reasons


@dataclass(frozen=True)
class LinkChanges:
    """By graph, (size + 1,) entities of seed links and decisions that only one of the runs was trained with; the last place is that of no entity."""

    added: Mapping[Side, BoolArray]
    removed: Mapping[Side, BoolArray]
    reviewed: Mapping[Side, BoolArray]


def link_changes(new: VersionRun, old: VersionRun, numbers: Mapping[Side, SharedNumbers]) -> LinkChanges:
    """Seed links and reviewers' decisions that only one of the runs was trained with."""
    now, before = (seed_pairs(run, numbers, old=is_old) for run, is_old in ((new, False), (old, True)))
    decided = decisions_of(new, numbers, old=False) ^ decisions_of(old, numbers, old=True)
    return LinkChanges(marked(now - before, numbers), marked(before - now, numbers), marked({pair for pair, _ in decided}, numbers))


Numbers = tuple[int, int]


def seed_pairs(run: VersionRun, numbers: Mapping[Side, SharedNumbers], *, old: bool) -> set[Numbers]:
    """The seed links of a run by shared numbers, source first."""
    rows = run.view.run.table("links", ["source", "target"], {"role": "train"})
    ends = [rows[side].to_numpy(dtype=np.int64) for side in SIDES]
    if old:
        ends = [numbers[side].of_old[one] for side, one in zip(SIDES, ends, strict=True)]
    return set(zip(*(one.tolist() for one in ends), strict=True))


def decisions_of(run: VersionRun, numbers: Mapping[Side, SharedNumbers], *, old: bool) -> set[tuple[Numbers, str]]:
    """What reviewers had decided of pairs when a run was begun; pairs that neither version has are left out."""
    if not has_table(run.view.run, "reviews"):
        return set()
    rows = run.view.run.table("reviews", ["source_uri", "target_uri", "outcome"])
    found = set()
    for source, target, outcome in zip(rows["source_uri"], rows["target_uri"], rows["outcome"], strict=True):
        ends = [run.view.graphs[side].index.get(uri) for side, uri in zip(SIDES, (source, target), strict=True)]
        if ends[0] is None or ends[1] is None:
            continue
        pair = (ends[0], ends[1])
        found.add(((int(numbers["source"].of_old[pair[0]]), int(numbers["target"].of_old[pair[1]])) if old else pair, str(outcome)))
    return found


def marked(pairs: Collection[Numbers], numbers: Mapping[Side, SharedNumbers]) -> dict[Side, BoolArray]:
    """By graph, (size + 1,) the entities of some pairs."""
    found = {side: np.zeros(numbers[side].size + 1, dtype=bool) for side in SIDES}
    for source, target in pairs:
        found["source"][source] = found["target"][target] = True
    return found


def with_causes(
    rows: pd.DataFrame,
    states: npt.NDArray[np.int8],
    matches: tuple[BestMatches, BestMatches],
    graphs: Mapping[Side, GraphChanges],
    linked: LinkChanges,
    side: Side,
) -> pd.DataFrame:
    """The rows with ``cause``, ``added``, ``removed``, ``neighbours``, ``neighbour`` and ``neighbour_side``."""
    own, across = graphs[side], graphs[other(side)]
    ends = rows["entity"].to_numpy(), rows["match"].to_numpy(), rows["old_match"].to_numpy()

    def touched(marks: Mapping[Side, BoolArray]) -> BoolArray:
        found: BoolArray = marks[side][ends[0]] | marks[other(side)][ends[1]] | marks[other(side)][ends[2]]
        return found

    added, removed = (triple_counts(ends, getattr(own, name), getattr(across, name), own, across) for name in ("added", "removed"))
    moved = states != CHANGES.index("kept")
    around = [moved_neighbours(one, moved & (states >= 0), own.numbers.size) for one in (own.now, own.before)]
    neighbours = np.maximum(around[0][ends[0]], around[1][ends[0]])
    absent = {one: padded(graphs[one].numbers.fresh) for one in SIDES}, {one: padded(graphs[one].numbers.gone) for one in SIDES}
    described = {one: padded(graphs[one].described) for one in SIDES}
    conditions: dict[Cause, BoolArray] = {
        "entity added": absent[0][side][ends[0]],
        "entity removed": absent[1][side][ends[0]],
        "match added": absent[0][other(side)][ends[1]],
        "match removed": absent[1][other(side)][ends[2]],
        "review": touched(linked.reviewed),
        "seed link added": touched(linked.added),
        "seed link removed": touched(linked.removed),
        "triples added": (added > 0) & (added >= removed),
        "triples removed": removed > 0,
        "name or value": touched(described),
        "neighbour": neighbours > 0,
        "training": np.ones(len(rows), dtype=bool),
    }
    cause = np.select([conditions[name] for name in CAUSES], range(len(CAUSES)), default=-1).astype(np.int8)
    cause[rows["change"].to_numpy() == CHANGES.index("kept")] = -1
    found = rows.assign(cause=cause, added=added, removed=removed, neighbours=neighbours)
    return with_neighbour(found, moved & (states >= 0), matches, graphs, side)


def padded(marks: BoolArray) -> BoolArray:
    """The marks with a place for no entity at the end, so that ``NO_NUMBER`` finds False."""
    return np.append(marks, False)


def triple_counts(
    ends: tuple[IntArray, IntArray, IntArray], changed: Incidences, changed_across: Incidences, own: GraphChanges, across: GraphChanges
) -> IntArray:
    """(n,) changed triples of each row's entity, its match and its former match."""
    mine, theirs = np.append(changed.counts(own.numbers.size), 0), np.append(changed_across.counts(across.numbers.size), 0)
    again = ends[1] == ends[2]
    total: IntArray = mine[ends[0]] + theirs[ends[1]] + np.where(again, 0, theirs[ends[2]])
    return total


def moved_neighbours(triples: Incidences, moved: BoolArray, size: int) -> IntArray:
    """(size,) how many neighbours of each entity have another match, or one in one run only."""
    chosen = moved[triples.neighbour] & (triples.neighbour != triples.entity)
    pairs = np.unique(triples.entity[chosen] * size + triples.neighbour[chosen])
    return np.bincount(pairs // size, minlength=size).astype(np.int64)


def with_neighbour(
    rows: pd.DataFrame, moved: BoolArray, matches: tuple[BestMatches, BestMatches], graphs: Mapping[Side, GraphChanges], side: Side
) -> pd.DataFrame:
    """``neighbour`` and ``neighbour_side``: the neighbour to name. Of those whose triples changed (for the reason "neighbour": of those whose match
    changed) one that is matched with a neighbour of the entity's match, then one with a label, then the one with the fewest triples."""
    own, across = graphs[side], graphs[other(side)]
    cause = rows["cause"].to_numpy()
    by_neighbour = cause == CAUSES.index("neighbour")
    by_triples = np.isin(cause, [CAUSES.index(name) for name in ("entity added", "entity removed", "match added", "match removed")])
    by_triples |= np.isin(cause, [CAUSES.index(name) for name in ("triples added", "triples removed")])
    found: list[pd.DataFrame] = []
    for new, (match, theirs) in enumerate((("old_match", across.before), ("match", across.now))):
        one, changed = matches[1 - new], (own.removed, own.added)[new]
        pairs = pair_keys(theirs.entity, theirs.neighbour, across.numbers.size)
        entities = rows["entity"].to_numpy(), rows[match].to_numpy()
        for triples, chosen in ((changed, by_triples), (moved_only((own.before, own.now)[new], moved), by_neighbour)):
            offered = joined_neighbours(np.where(chosen, entities[0], NO_NUMBER), triples)
            reached = one.match[offered["neighbour"].to_numpy()]
            keys = pair_keys(entities[1][offered["row"].to_numpy()], reached, across.numbers.size)
            found.append(offered.assign(side=SIDES.index(side), aligned=np.isin(keys, pairs) & (reached != NO_NUMBER)))
        offered = joined_neighbours(np.where(by_triples, entities[1], NO_NUMBER), first_of_each((across.removed, across.added)[new], across.numbers))
        found.append(offered.assign(side=SIDES.index(other(side)), aligned=False))
    return rows.assign(**first_neighbours(pd.concat(found, ignore_index=True), graphs, len(rows)))


def pair_keys(first: IntArray, second: IntArray, size: int) -> IntArray:
    return first.astype(np.int64) * (size + 1) + second


def moved_only(triples: Incidences, moved: BoolArray) -> Incidences:
    """The triples to neighbours with another match."""
    chosen = moved[triples.neighbour] & (triples.neighbour != triples.entity)
    return Incidences(triples.entity[chosen], triples.neighbour[chosen])


def first_of_each(triples: Incidences, numbers: SharedNumbers) -> Incidences:
    """One neighbour of each entity: with a label before others, then the one with the fewest triples. A hub may be the match of many entities."""
    near = triples.neighbour
    order = np.lexsort((near, numbers.degrees[near], ~numbers.labelled[near], triples.entity))
    entities, places = np.unique(triples.entity[order], return_index=True)
    return Incidences(entities, near[order][places])


def joined_neighbours(entities: IntArray, triples: Incidences) -> pd.DataFrame:
    """``row`` and ``neighbour``: each row's entity with its neighbours by some triples."""
    wanted = pd.DataFrame({"entity": entities, "row": np.arange(len(entities))})[entities != NO_NUMBER]
    found: pd.DataFrame = wanted.merge(pd.DataFrame({"entity": triples.entity, "neighbour": triples.neighbour}), on="entity")[["row", "neighbour"]]
    return found


def first_neighbours(offered: pd.DataFrame, graphs: Mapping[Side, GraphChanges], count: int) -> dict[str, npt.NDArray[Any]]:
    """Of the neighbours offered for each row the one to name; ``NO_NUMBER`` where none is."""
    neighbour, of = np.full(count, NO_NUMBER, dtype=np.int64), np.zeros(count, dtype=np.int8)
    labelled, degree = np.zeros(len(offered), dtype=bool), np.zeros(len(offered), dtype=np.int64)
    for code, side in enumerate(SIDES):
        inside = (offered["side"] == code).to_numpy()
        numbers = graphs[side].numbers
        places = offered["neighbour"].to_numpy()[inside]
        labelled[inside], degree[inside] = numbers.labelled[places], numbers.degrees[places]
    order = np.lexsort((offered["neighbour"], offered["side"], degree, ~labelled, ~offered["aligned"].to_numpy(dtype=bool), offered["row"]))
    rows = offered["row"].to_numpy(dtype=np.int64)[order]
    first = order[np.concatenate([[True], rows[1:] != rows[:-1]])] if len(order) else order
    chosen = offered["row"].to_numpy(dtype=np.int64)[first]
    neighbour[chosen], of[chosen] = offered["neighbour"].to_numpy()[first], offered["side"].to_numpy()[first]
    return {"neighbour": neighbour, "neighbour_side": of}
