"""Reviewers' decisions on a new version of their data.

A decision whose entities both are still there is copied to the new data, with its author and time. Where the facts behind it changed, its pair is
marked to be looked at again until somebody decides it on the new data. A decision with an entity that is gone is kept in a list and counts for
nothing; it returns when a later version has the entity again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.data.knowledge_graph import SIDES, Side
from engine.data.versions import CHANGES, Versions
from engine.reviews.decisions import Decision, Pair
from engine.reviews.snapshot import ReviewedPair, Snapshot
from engine.reviews.store import CarriedChoice, ReviewStore

NEIGHBOURS: Final = "neighbours"
"""The neighbours that match each other are others than before."""
REASON_WORDS: Final[Mapping[str, str]] = {
    **{change: f"{change.split()[1]} of the {change.split()[0]} changed" for change in CHANGES},
    NEIGHBOURS: "matching neighbours changed",
}
"""Why to look at a pair again, in words."""


@dataclass(frozen=True)
class Carried:
    """How many decisions were copied to the new data, how many are inactive, and how many pairs are to be looked at again, in all."""

    decisions: int
    inactive: int
    again: int


def carry_decisions(path: Path, earlier: str, later: str, versions: Versions) -> Carried | None:
    """Copy the decisions that count on the earlier version to the later one; what was copied before is passed over. None without any.

    Args:
        path: the reviewers' database.
        earlier, later: fingerprints.
        versions: of the graphs.

    Raises:
        ReviewError: the database cannot be used.
    """
    if earlier == later or not path.exists():
        return None
    store = ReviewStore(path)
    try:
        open_before = store.look_again(earlier)
        found: list[CarriedChoice] = []
        aside: list[tuple[Decision, str]] = []
        marks: dict[Pair, tuple[str, ...]] = {}
        for decision in [*store.standing(earlier), *(one for one, _ in store.inactive(earlier))]:
            places = tuple(versions.place(side, identifier) for side, identifier in zip(SIDES, decision.pair, strict=True))
            source, target = places
            if source is None or target is None:
                gone = [side for side, place in zip(SIDES, places, strict=True) if place is None]
                aside.append((decision, " and ".join(gone)))
                continue
            pair = versions.later["source"].entities[source], versions.later["target"].entities[target]
            found.append(CarriedChoice(decision, pair))
            if reasons := (*open_before.get(decision.pair, ()), *versions.changes_of(source, target)):
                marks[pair] = tuple(dict.fromkeys((*marks.get(pair, ()), *reasons)))
        if not found and not aside:
            return None
        store.carry(later, found, aside, marks)
        return Carried(len(found), len(aside), len(store.look_again(later)))
    finally:
        store.close()


def mark_pairs(path: Path, later: str, changed: Callable[[list[Pair]], Iterable[Pair]]) -> None:
    """Mark carried pairs whose matching neighbours changed.

    Args:
        path: the reviewers' database.
        later: fingerprint of the new data.
        changed: which of some pairs these are.

    Raises:
        ReviewError: the database cannot be used.
    """
    if not path.exists():
        return
    store = ReviewStore(path)
    try:
        if pairs := store.carried_pairs(later):
            store.carry(later, [], [], dict.fromkeys(changed(pairs), (NEIGHBOURS,)))
    finally:
        store.close()


def carried_snapshot(snapshot: Snapshot, later: str, versions: Versions) -> Snapshot:
    """Reviewed pairs of the earlier version, as far as their entities are still there."""

    def name(side: Side, identifier: str) -> str | None:
        place = versions.place(side, identifier)
        return None if place is None else versions.later[side].entities[place]

    ends = [(name("source", one.source), name("target", one.target), one) for one in snapshot.pairs]
    found = [ReviewedPair(source, target, one.accepts, one.rejects) for source, target, one in ends if source is not None and target is not None]
    return Snapshot(later, tuple(sorted(found, key=lambda one: one.pair)), snapshot.authors)


def reason_words(reasons: Iterable[str]) -> str:
    """For example 'triples of the source changed, matching neighbours changed'."""
    return ", ".join(REASON_WORDS.get(one, one) for one in reasons)
