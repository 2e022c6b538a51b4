"""Two versions of a graph compared: which entities both have, which triples, names and values differ.

Entities of both versions have one numbering: those of the new version keep their numbers, and those that it lacks follow. So the statements of both
are rows of numbers that sets of whole columns are made of, and 39,000 entities with their triples take a second or two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.data.same_entities import NOWHERE, places_in, turned_places
from engine.errors import ComparisonError
from engine.runs.entities import GraphView
from engine.runs.view import RunView
from engine.util.arrays import BoolArray, IntArray

NO_NUMBER: Final = NOWHERE
LEAST_COMMON: Final = 0.1
"""Share of the smaller version's entities that the other one must have, in each graph, for two data sets to be versions of one."""


@dataclass(frozen=True)
class SharedNumbers:
    """The entities of both versions of a graph under one numbering.

    Attributes:
        new, old: the two versions of the graph.
        of_old: (E_old,) the number of each entity of the old version.
        size: how many numbers there are.
    """

    new: GraphView
    old: GraphView
    of_old: IntArray
    size: int

    @classmethod
    def of(cls, new: GraphView, old: GraphView, renamed: Mapping[str, str]) -> SharedNumbers:
        """``renamed``: identifiers of the old version -> of the new one, which mean no other entity; all others are the same in both."""
        found = places_in(new.index, old.uris, renamed)
        missing = found == NO_NUMBER
        found[missing] = len(new) + np.arange(int(missing.sum()))
        return cls(new, old, found, len(new) + int(missing.sum()))

    @cached_property
    def in_old(self) -> IntArray:
        """(size,) the old version's own number of each entity, ``NO_NUMBER`` for those that it lacks."""
        return turned_places(self.of_old, self.size)

    @cached_property
    def fresh(self) -> BoolArray:
        """(size,) entities that the old version lacks."""
        lacking: BoolArray = self.in_old == NO_NUMBER
        return lacking

    @cached_property
    def gone(self) -> BoolArray:
        """(size,) entities that the new version lacks."""
        lacking: BoolArray = np.arange(self.size) >= len(self.new)
        return lacking

    @property
    def common(self) -> int:
        """How many entities both versions have."""
        return int((~self.fresh & ~self.gone).sum())

    @cached_property
    def labelled(self) -> BoolArray:
        """(size,) entities with a label in the version that :meth:`graph_of` gives."""
        old_labels = np.array([bool(label) for label in self.old.labels], dtype=bool)
        labels = [np.array([bool(label) for label in self.new.labels], dtype=bool), old_labels[self.in_old[len(self.new) :]]]
        found: BoolArray = np.concatenate(labels)
        return found

    @cached_property
    def degrees(self) -> IntArray:
        """(size,) triples of each entity, in the same version."""
        return np.concatenate([self.new.degrees, self.old.degrees[self.in_old[len(self.new) :]]])

    def place(self, number: int) -> tuple[GraphView, int]:
        """The version that has an entity, the new one where both do, and its own number there."""
        return (self.new, number) if number < len(self.new) else (self.old, int(self.in_old[number]))


@dataclass(frozen=True)
class Incidences:
    """Triples seen from both of their ends: (k,) an entity each, and its neighbour."""

    entity: IntArray
    neighbour: IntArray

    @classmethod
    def of(cls, heads: IntArray, tails: IntArray) -> Incidences:
        plain = heads != tails  # a self-loop has one end
        return cls(np.concatenate([heads, tails[plain]]), np.concatenate([tails, heads[plain]]))

    def counts(self, size: int) -> IntArray:
        """(size,) triples of each entity."""
        return np.bincount(self.entity, minlength=size).astype(np.int64)


@dataclass(frozen=True)
class GraphChanges:
    """What differs between two versions of one graph.

    Attributes:
        numbers: its entities.
        added, removed: the triples that only the new (the old) version has.
        now, before: all triples of the new (the old) version.
        described: (size,) entities that both versions have with other names or values.
        attribute: (size,) an attribute that differs, or "name"; "" for none.
    """

    numbers: SharedNumbers
    added: Incidences
    removed: Incidences
    now: Incidences
    before: Incidences
    described: BoolArray
    attribute: npt.NDArray[np.object_]


def version_numbers(new: RunView, old: RunView, renamed: Mapping[Side, Mapping[str, str]]) -> dict[Side, SharedNumbers]:
    """The entities of both runs' graphs under shared numbers.

    Args:
        renamed: for each graph, identifiers of the old run's data -> of the new run's, where they are not the same.

    Raises:
        ComparisonError: the two runs have too little in common to be of versions of the same data.
    """
    found = {side: SharedNumbers.of(new.graphs[side], old.graphs[side], renamed.get(side, {})) for side in SIDES}
    for side, numbers in found.items():
        smaller = min(len(numbers.new), len(numbers.old))
        if numbers.common < LEAST_COMMON * smaller or not numbers.common:
            share = numbers.common / smaller if smaller else 0.0
            raise ComparisonError(
                f"the runs are not on versions of the same data: {numbers.common:,} of {smaller:,} entities ({share:.1%}) of the {side} graph are "
                f"in both; at least {LEAST_COMMON:.0%} are needed. Choose another run."
            )
    return found


def graph_changes(new: RunView, old: RunView, side: Side, numbers: SharedNumbers) -> GraphChanges:
    """What differs between the two versions of a graph, statement by statement."""
    now, before = shared_triples(new, side, None), shared_triples(old, side, numbers)
    codes = relation_codes(now.relations, before.relations)
    keys = statement_keys([now.head, before.head], codes, [now.tail, before.tail], numbers.size)
    added, removed = ~np.isin(keys[0], keys[1]), ~np.isin(keys[1], keys[0])
    attribute = changed_descriptions(new, old, side, numbers)
    return GraphChanges(
        numbers,
        Incidences.of(now.head[added], now.tail[added]),
        Incidences.of(before.head[removed], before.tail[removed]),
        Incidences.of(now.head, now.tail),
        Incidences.of(before.head, before.tail),
        attribute != "",
        attribute,
    )


@dataclass(frozen=True)
class SharedTriples:
    """(k,) triples of one version: heads and tails by shared numbers, and the names of the relations."""

    head: IntArray
    relations: npt.NDArray[np.object_]
    tail: IntArray


def shared_triples(view: RunView, side: Side, numbers: SharedNumbers | None) -> SharedTriples:
    """A run's triples; ``numbers`` for those of the old version, None for the new one."""
    rows = view.run.table("triples", ["head", "relation", "tail"], {"graph": side})
    relations = view.run.table("relations", ["relation", "name"], {"graph": side}).sort_values("relation")["name"].to_numpy(dtype=object)
    head, relation, tail = (rows[name].to_numpy(dtype=np.int64) for name in ("head", "relation", "tail"))
    if numbers is not None:
        head, tail = numbers.of_old[head], numbers.of_old[tail]
    return SharedTriples(head, relations[relation], tail)


def relation_codes(*names: npt.NDArray[np.object_]) -> list[IntArray]:
    """The same number for the same text, over several columns."""
    codes, _ = pd.factorize(np.concatenate(names))
    return split_codes(codes, [len(one) for one in names])


def split_codes(codes: npt.NDArray[Any], lengths: Sequence[int]) -> list[IntArray]:
    return [part.astype(np.int64) for part in np.split(codes, np.cumsum(lengths)[:-1])]


def statement_keys(first: Sequence[IntArray], second: Sequence[IntArray], third: Sequence[IntArray], size: int) -> list[IntArray]:
    """One number for each row of three columns of small numbers, over both versions. ``size``: what the first and third column stay below."""
    ends = np.concatenate(first) * max(size, 1) + np.concatenate(third)
    packed, _ = pd.factorize(ends)  # below the number of rows, so that the product cannot overflow
    relations = np.concatenate(second)
    return split_codes(packed.astype(np.int64) * (int(relations.max(initial=0)) + 1) + relations, [len(one) for one in first])


def changed_descriptions(new: RunView, old: RunView, side: Side, numbers: SharedNumbers) -> npt.NDArray[np.object_]:
    """(size,) for each entity of both versions "name", or the first attribute with other values; "" where nothing differs."""
    found = np.full(numbers.size, "", dtype=object)
    tables = [view.run.table("attributes", ["entity", "attribute", "value"], {"graph": side}) for view in (new, old)]
    entities = [table["entity"].to_numpy(dtype=np.int64) for table in tables]
    entities[1] = numbers.of_old[entities[1]]
    names = [table["attribute"].to_numpy(dtype=object) for table in tables]
    attributes, values = relation_codes(*names), relation_codes(*(table["value"].to_numpy(dtype=object) for table in tables))
    most = max((int(one.max(initial=0)) for one in values), default=0) + 1
    facts = [attribute * most + value for attribute, value in zip(attributes, values, strict=True)]
    codes = split_codes(pd.factorize(np.concatenate(facts))[0], [len(one) for one in facts])
    width = sum(map(len, codes)) + 1
    keys = [entity * width + code for entity, code in zip(entities, codes, strict=True)]
    for own, theirs, entity, name in ((keys[1], keys[0], entities[1], names[1]), (keys[0], keys[1], entities[0], names[0])):
        differing = np.flatnonzero(~np.isin(own, theirs))[::-1]  # so that the first row of an entity is the one that stays
        found[entity[differing]] = name[differing]
    both = np.flatnonzero(~numbers.fresh & ~numbers.gone)
    for number, before in zip(both.tolist(), numbers.in_old[both].tolist(), strict=True):
        if numbers.new.labels[number] != numbers.old.labels[before]:
            found[number] = "name"
    found[numbers.fresh | numbers.gone] = ""
    return found
