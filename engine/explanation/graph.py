"""The stacked graph of a run, whole or without some of its triples."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from engine.config import EncoderConfig
from engine.model.adjacency import Adjacency, Csr
from engine.util.arrays import IntArray


class Triple(NamedTuple):
    """Head, relation and tail in the stacked index space: the target graph's entities and relations follow the source's."""

    head: int
    relation: int
    tail: int


class Entry(NamedTuple):
    """What an entity hears along: a neighbour and a directed relation (r at r's head, r + R at its tail)."""

    neighbour: int
    direction: int


class Row(NamedTuple):
    """What one entity hears: n neighbours, and the unit that each is heard along."""

    senders: IntArray  # (n,)
    units: IntArray  # (n,)


class StackedGraph:
    """An adjacency with what explanations ask of it."""

    def __init__(self, adjacency: Adjacency, config: EncoderConfig) -> None:
        self.adjacency = adjacency
        self.by_triple = config.message_unit == "triple"
        self.opposite = config.relation_input == "opposite"

    @cached_property
    def unit_of(self) -> dict[tuple[int, ...], int]:
        """The directed relations of a unit, ascending -> the unit."""
        return {self.members(unit): unit for unit in range(self.adjacency.num_units)}

    def members(self, unit: int) -> tuple[int, ...]:
        """The directed relations that a unit averages, ascending."""
        return tuple(row_of(self.adjacency.members, unit).tolist())

    def flipped(self, direction: int) -> int:
        """The same relation, seen from its other end."""
        count = self.adjacency.num_relations
        return direction - count if direction >= count else direction + count

    def row(self, entity: int) -> Row:
        part = slice(*self.adjacency.messages.offsets[entity : entity + 2].tolist())
        return Row(self.adjacency.messages.columns[part].astype(np.int64), self.adjacency.units[part].astype(np.int64))

    def entries(self, entity: int) -> list[Entry]:
        """Everything that an entity hears along: each of its triples once, a self-loop from both of its ends."""
        row = self.row(entity)
        return [Entry(j, direction) for j, u in zip(row.senders.tolist(), row.units.tolist(), strict=True) for direction in self.members(u)]

    def triple(self, entity: int, entry: Entry) -> Triple:
        """The triple behind what an entity hears."""
        count = self.adjacency.num_relations
        if entry.direction < count:
            return Triple(entity, entry.direction, entry.neighbour)
        return Triple(entry.neighbour, entry.direction - count, entity)

    def triples(self, entity: int) -> list[Triple]:
        """The distinct triples at an entity, in the order of its neighbours."""
        return list(dict.fromkeys(self.triple(entity, entry) for entry in self.entries(entity)))


class EditedGraph:
    """A graph without some of its triples. Only the rows of their ends are built anew: all others hear what they heard.

    Attributes:
        endpoints: the ends of the removed triples, ascending.
        extra: the directed relations of units that the whole graph does not have (what is left of parallel triples), numbered from its S on.
    """

    def __init__(self, whole: StackedGraph, removed: Iterable[Triple] = ()) -> None:
        self.whole = whole
        self.removed = frozenset(removed)
        self.endpoints = sorted({end for triple in self.removed for end in (triple.head, triple.tail)})
        self.extra: list[tuple[int, ...]] = []
        self._entries = {entity: self._remaining(entity) for entity in self.endpoints}
        self._rows = {entity: self._built(entries) for entity, entries in self._entries.items()}

    def _remaining(self, entity: int) -> list[Entry]:
        return [entry for entry in self.whole.entries(entity) if self.whole.triple(entity, entry) not in self.removed]

    def _built(self, entries: list[Entry]) -> Row:
        if self.whole.by_triple:
            return Row(*np.array(entries, dtype=np.int64).reshape(-1, 2).T)
        together: dict[int, list[int]] = {}
        for neighbour, direction in entries:
            together.setdefault(neighbour, []).append(direction)
        units = [self._unit(tuple(sorted(directions))) for directions in together.values()]
        return Row(np.array(list(together), dtype=np.int64), np.array(units, dtype=np.int64))

    def _unit(self, members: tuple[int, ...]) -> int:
        if members in self.whole.unit_of:
            return self.whole.unit_of[members]
        if members not in self.extra:
            self.extra.append(members)
        return self.whole.adjacency.num_units + self.extra.index(members)

    def members(self, unit: int) -> tuple[int, ...]:
        """The directed relations that a unit averages, ascending."""
        beyond = unit - self.whole.adjacency.num_units
        return self.whole.members(unit) if beyond < 0 else self.extra[beyond]

    def is_edited(self, entity: int) -> bool:
        """Whether the entity lost a triple."""
        return entity in self._rows

    def row(self, entity: int) -> Row:
        """What an entity hears."""
        return self._rows[entity] if entity in self._rows else self.whole.row(entity)

    def neighbours(self, entity: int) -> IntArray:
        """(n,) the entity itself and its distinct neighbours, ascending: the input of its entity channel."""
        if entity not in self._entries:
            return row_of(self.whole.adjacency.neighbours, entity)
        return np.array(sorted({entity, *(entry.neighbour for entry in self._entries[entity])}), dtype=np.int64)

    def relations(self, entity: int) -> IntArray:
        """(n,) the distinct directed relations of an entity, ascending: the input of its relation channel."""
        if entity not in self._entries:
            return row_of(self.whole.adjacency.relations, entity)
        heard = {entry.direction for entry in self._entries[entity]}
        return np.array(sorted(self.whole.flipped(one) for one in heard) if self.whole.opposite else sorted(heard), dtype=np.int64)


def row_of(csr: Csr, row: int) -> IntArray:
    """The columns of one row."""
    return csr.columns[csr.offsets[row] : csr.offsets[row + 1]].astype(np.int64)
