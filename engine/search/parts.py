"""What each of several processes holds of a similarity, and how entities travel between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from engine.errors import DivergenceError
from engine.search.rows import is_finite, normalise_rows
from engine.search.similarity import BestNames, LiteralSimilarity, SparseSimilarity, StructuralSimilarity
from engine.util.arrays import IntArray
from engine.util.distributed import Ranks

Divisible = StructuralSimilarity | LiteralSimilarity
NamesPart = StructuralSimilarity | SparseSimilarity | BestNames
Carried = list[Tensor]
"""Tensors that go from process to process together."""

SPARSE_TENSORS = 3
"""What sparse rows are sent as: where each begins, columns, values."""
NOTHING = torch.empty(0, dtype=torch.int64)


@dataclass(frozen=True)
class Part:
    """What a process holds of a similarity of n source and m target entities.

    Attributes:
        ranks: the processes.
        similarity: (a, b) of its own source and target entities.
        sources, targets: (a,), (b,) their numbers, ascending.
        shape: (n, m).
    """

    ranks: Ranks
    similarity: Divisible
    sources: IntArray  # (a,)
    targets: IntArray  # (b,)
    shape: tuple[int, int]

    def turned(self) -> Part:
        """Seen from the target side."""
        return Part(self.ranks, self.similarity.transposed(), self.targets, self.sources, self.shape[::-1])


def make_part(ranks: Ranks, own: IntArray, embeddings: Tensor, num_source: int, num_target: int) -> Part:
    """What a process holds of the cosines of embeddings. All processes call it together.

    Args:
        ranks: the processes.
        own: (n,) its entities, ascending; those of the target graph follow those of the source graph.
        embeddings: (n, D) of any length; not needed any more, and overwritten.
        num_source, num_target: entities of the graphs.

    Raises:
        DivergenceError: in all processes, where an embedding of one is not finite.
    """
    if ranks.most(int(not is_finite(embeddings))):
        raise DivergenceError(
            "the embeddings contain a value that is not finite; train again with a smaller training.learning_rate or another random seed."
        )
    return split_part(ranks, own, normalise_rows(embeddings, in_place=True), num_source, num_target)


def split_part(ranks: Ranks, own: IntArray, rows: Tensor, num_source: int, num_target: int) -> Part:
    """What a process holds of rows as they are; arguments as of :func:`make_part`."""
    first = int(np.searchsorted(own, num_source))
    return Part(ranks, StructuralSimilarity(rows[:first], rows[first:]), own[:first], own[first:] - num_source, (num_source, num_target))


def sent_to(ranks: Ranks, rows: Tensor, to: int | None, of: int | None) -> Tensor:
    """Send rows to a process, and receive those that another one sends; None: to none, of none. How many come is sent before them."""

    def swapped(values: Tensor, number: int, coming: int) -> Tensor:
        sends, receives = [0] * ranks.size, [0] * ranks.size
        if to is not None:
            sends[to] = number
        if of is not None:
            receives[of] = coming
        return ranks.swap(values.contiguous(), sends, receives)

    length = torch.tensor([len(rows)])
    coming = swapped(length if to is not None else length[:0], 1, 1)
    return swapped(rows if to is not None else rows[:0], len(rows), int(coming.sum()))


# How entities of a similarity travel: as plain tensors, with a row for each entity or for what each entity has.


def structure_of(similarity: Divisible) -> StructuralSimilarity:
    return similarity.structure if isinstance(similarity, LiteralSimilarity) else similarity


def sendable(similarity: Divisible) -> Carried:
    """The target entities of a similarity, as tensors."""
    if isinstance(similarity, StructuralSimilarity):
        return [similarity.target]
    values = [] if similarity.values is None else sendable_names(similarity.values)
    return [similarity.structure.target, *sendable_names(similarity.names), *values]


def sendable_names(names: NamesPart) -> Carried:
    if isinstance(names, BestNames):
        return [*sendable_names(names.base), torch.from_numpy(names.starts[1])]
    if isinstance(names, StructuralSimilarity):
        return [names.target]
    rows = names.target
    return [torch.from_numpy(one) for one in (rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)]


def with_arrived(similarity: Divisible, arrived: Carried) -> Divisible:
    """The source entities of a similarity with target entities that arrived (:func:`sendable`)."""
    if isinstance(similarity, StructuralSimilarity):
        return StructuralSimilarity(similarity.source, arrived[0])
    structure, rest = StructuralSimilarity(similarity.structure.source, arrived[0]), arrived[1:]
    names = names_with_arrived(similarity.names, rest)
    values = None if similarity.values is None else names_with_arrived(similarity.values, rest[-SPARSE_TENSORS:])
    return LiteralSimilarity(structure, names, similarity.weight, values, similarity.value_weight)


@overload
def names_with_arrived(names: SparseSimilarity, arrived: Carried) -> SparseSimilarity: ...
@overload
def names_with_arrived(names: StructuralSimilarity, arrived: Carried) -> StructuralSimilarity: ...
@overload
def names_with_arrived(names: NamesPart, arrived: Carried) -> NamesPart: ...
def names_with_arrived(names: NamesPart, arrived: Carried) -> NamesPart:
    """The same of names, whose tensors come first."""
    if isinstance(names, BestNames):
        base: StructuralSimilarity | SparseSimilarity = names_with_arrived(names.base, arrived)
        return BestNames(base, names.starts[0], arrived[len(sendable_names(names.base))].numpy())
    if isinstance(names, StructuralSimilarity):
        return StructuralSimilarity(names.source, arrived[0])
    starts, features, values = (one.numpy() for one in arrived[:SPARSE_TENSORS])
    return SparseSimilarity(names.source, sparse.csr_array((values, features, starts), shape=(len(starts) - 1, names.source.shape[1])))


def dealt_out(ranks: Ranks, similarity: Divisible) -> Part:
    """A similarity that process 0 has, in equal parts of its entities: what each process holds from there on. The others pass one without entities.

    Process 0 reads and sends one part after the other; its own it copies, so that the whole can go.
    """
    n, m = ranks.first(lambda: similarity.shape)
    bounds = [np.arange(ranks.size + 1) * size // ranks.size for size in (n, m)]
    sources, targets = ([np.arange(low, high) for low, high in pairwise(edges)] for edges in bounds)
    own = similarity
    for rank in reversed(range(ranks.size)):
        chosen = (sources[rank], targets[rank]) if ranks.rank == 0 else (NOTHING.numpy(), NOTHING.numpy())
        given = similarity.select(*(torch.from_numpy(one) for one in chosen))
        if rank == 0:
            own = given if ranks.rank == 0 else own
            continue
        ends = (rank if ranks.rank == 0 else None), (0 if ranks.rank == rank else None)
        of_target, of_source = ([sent_to(ranks, one, *ends) for one in sendable(side)] for side in (given, given.transposed()))
        if ranks.rank == rank:
            own = with_arrived(with_arrived(given.transposed(), of_source).transposed(), of_target)
    return Part(ranks, own, sources[ranks.rank], targets[ranks.rank], (n, m))


def rows_between(ranks: Ranks, own: IntArray, rows: Tensor, start: int, stop: int) -> Tensor:
    """Of the (n, ...) rows of the own entities those from ``start`` to ``stop``: process 0 gets all processes' in order, the others nothing."""
    low, high = np.searchsorted(own, [start, stop])
    (found,) = collected(ranks, torch.from_numpy(own[low:high] - start), [rows[low:high]], stop - start)
    return found


def collected(ranks: Ranks, numbers: Tensor, columns: Sequence[Tensor], size: int) -> list[Tensor]:
    """(a, ...) columns of each process -> (size, ...) of all in process 0, on the CPU; and (0, ...) in the others.

    Args:
        ranks: the processes.
        numbers: (a,) places of the own rows among all.
        columns: what there is of these rows.
        size: number of rows of all processes together.
    """
    leads, nothing = ranks.rank == 0, [0] * ranks.size
    lengths = ranks.swap(torch.tensor([len(numbers)]), [1, *nothing[1:]], [1] * ranks.size if leads else nothing).tolist()
    counts = lengths if leads else nothing

    def sent(rows: Tensor) -> Tensor:
        return ranks.swap(rows.contiguous(), [len(numbers), *nothing[1:]], counts).cpu()

    order = sent(numbers)
    found = []
    for column in columns:
        arrived = sent(column)
        found.append(torch.empty((size if leads else 0, *arrived.shape[1:]), dtype=arrived.dtype).index_copy_(0, order, arrived))
    return found
