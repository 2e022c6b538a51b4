"""Index arrays of the stacked graph: which entity receives a message from which, and along which relation.

Every triple (h, r, t) is entered twice: h receives from t along r, t receives from h along r + R. The entries are therefore closed under reversal,
(i, j, u) <-> (j, i, inverse(u)), so that the backward pass walks the same arrays as the forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from engine.util.arrays import IntArray, distinct, fresh_rows, sorted_rows, unpacked

Int32Array = npt.NDArray[np.int32]
Entries = tuple[Int32Array, Int32Array, Int32Array]
"""Receiver, sender and unit, or directed relation."""


@dataclass(frozen=True)
class Csr:
    """Rows of column indices: row i holds ``columns[offsets[i]:offsets[i + 1]]``."""

    offsets: IntArray  # (rows + 1,)
    columns: Int32Array  # (entries,)
    num_columns: int

    @property
    def num_rows(self) -> int:
        return len(self.offsets) - 1

    def lengths(self) -> IntArray:
        """(rows,) entries per row."""
        return np.diff(self.offsets)

    def rows(self) -> IntArray:
        """(entries,) the row of each entry."""
        return np.repeat(np.arange(self.num_rows, dtype=np.int64), self.lengths())

    def first(self, rows: int) -> Csr:
        """The first rows alone."""
        return Csr(self.offsets[: rows + 1], self.columns[: self.offsets[rows]], self.num_columns)


@dataclass(frozen=True)
class Adjacency:
    """The stacked graph of E entities and R relations (2R with inverses) as index arrays.

    A *unit* is what carries one attention weight: a directed relation (``message_unit="triple"``, the paper), or the set of directed relations
    between two entities, averaged (``"edge"``, the authors' code). S is the number of units.

    Attributes:
        messages: row i holds the neighbours that i receives from, one entry per unit.
        units: (entries,) the unit of each entry of ``messages``.
        inverse: (S,) the unit that the same link has in the other direction.
        members: row s holds the directed relations that unit s averages.
        neighbours: row i holds i itself and its distinct neighbours (input of the entity channel).
        relations: row i holds i's distinct directed relations (input of the relation channel).
    """

    num_entities: int
    num_relations: int
    messages: Csr
    units: Int32Array
    inverse: Int32Array
    members: Csr
    neighbours: Csr
    relations: Csr

    @property
    def num_units(self) -> int:
        return self.members.num_rows


def build_adjacency(
    triples: IntArray,
    num_entities: int,
    num_relations: int,
    *,
    message_unit: Literal["triple", "edge"] = "triple",
    relation_input: Literal["opposite", "same"] = "opposite",
) -> Adjacency:
    """Index the triples of the stacked graph.

    Args:
        triples: (T, 3) head, relation, tail in the stacked index space; duplicates are ignored.
        num_entities: E. Entities without triples are allowed: they receive no messages.
        num_relations: R, without inverses.
        message_unit: see :class:`Adjacency`.
        relation_input: "opposite": an entity's relation channel starts from the directions in which its neighbours receive from it (the tail of r
            gets r, its head r + R); "same": from those in which it receives from them.
    """
    receiver, sender, direction = directed_entries(triples.reshape(-1, 3), num_entities, num_relations)
    flip = np.concatenate([np.arange(num_relations, 2 * num_relations), np.arange(num_relations)]).astype(np.int32)
    if message_unit == "triple":
        entries = (receiver, sender, direction)
        members = Csr(np.arange(2 * num_relations + 1, dtype=np.int64), np.arange(2 * num_relations, dtype=np.int32), 2 * num_relations)
        inverse = flip
    else:
        entries, members, inverse = average_parallel(receiver, sender, direction, flip)

    everyone = np.arange(num_entities, dtype=np.int32)
    own = flip[direction] if relation_input == "opposite" else direction
    return Adjacency(
        num_entities=num_entities,
        num_relations=num_relations,
        messages=Csr(cumulative(np.bincount(entries[0], minlength=num_entities)), entries[1], num_entities),
        units=entries[2],
        inverse=inverse,
        members=members,
        neighbours=distinct_rows(np.concatenate([receiver, everyone]), np.concatenate([sender, everyone]), num_entities, num_entities),
        relations=distinct_rows(receiver, own, num_entities, 2 * num_relations),
    )


def directed_entries(triples: IntArray, num_entities: int, num_relations: int) -> Entries:
    """Each distinct triple in both directions: receiver, sender and directed relation; sorted by these, in this order."""
    head, relation, tail = triples.T
    both = np.concatenate([head, tail]), np.concatenate([tail, head]), np.concatenate([relation, relation + num_relations])
    columns = sorted_rows(both, (num_entities, num_entities, 2 * num_relations))
    fresh = fresh_rows(columns)
    receiver, sender, direction = ((column if fresh.all() else column[fresh]).astype(np.int32) for column in columns)
    return receiver, sender, direction


def average_parallel(receiver: Int32Array, sender: Int32Array, direction: Int32Array, flip: Int32Array) -> tuple[Entries, Csr, Int32Array]:
    """One entry for each (receiver, sender), whose unit is the set of directions between them.

    The arrays come sorted by receiver, sender, direction. Returns the entries (receiver, sender, unit), the members of each unit and the
    inverse of each unit. Units are numbered as they first come.
    """
    first = fresh_rows([receiver, sender])
    starts = np.append(np.flatnonzero(first), len(receiver))
    unit = direction[starts[:-1]].astype(np.int64)  # the direction itself where it is the only one: that is most of them
    sets: dict[tuple[int, ...], int] = {(one,): one for one in range(len(flip))}
    for edge in np.flatnonzero(np.diff(starts) > 1).tolist():
        members = tuple(direction[starts[edge] : starts[edge + 1]].tolist())
        unit[edge] = sets.setdefault(members, len(sets))
    used, places = np.unique(unit, return_index=True)
    used = used[np.argsort(places)]
    renumbered = np.empty(len(sets), dtype=np.int32)
    renumbered[used] = np.arange(len(used), dtype=np.int32)
    listed = list(sets)
    units = [listed[one] for one in used.tolist()]
    turned = renumbered[[sets[tuple(sorted(flip[list(members)].tolist()))] for members in units]]
    columns = np.array([one for members in units for one in members], dtype=np.int32)
    return (receiver[first], sender[first], renumbered[unit]), Csr(cumulative(np.array(list(map(len, units)))), columns, len(flip)), turned


def distinct_rows(rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer], num_rows: int, num_columns: int) -> Csr:
    """The distinct columns of each row, ascending."""
    keys = distinct(rows.astype(np.int64) * num_columns + columns)
    row, column = unpacked(keys, (num_rows, num_columns))
    return Csr(cumulative(np.bincount(row, minlength=num_rows)), column.astype(np.int32), num_columns)


def cumulative(counts: npt.NDArray[np.integer]) -> IntArray:
    """(n + 1,) offsets of n consecutive stretches."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


def to_torch(array: npt.NDArray[np.integer], device: torch.device | str) -> torch.Tensor:
    """Index array -> int64 tensor on the device."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device=device, dtype=torch.int64)
