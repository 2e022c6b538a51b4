"""A similarity whose rows lie in several processes (:mod:`engine.util.distributed`): exact search without any of them holding all embeddings.

Process 0 asks (:class:`DividedSimilarity`), with the same functions that search a similarity in one process; all answer together. Each keeps the
source and target rows of its own entities. Blocks of target rows go round in a ring: every process compares its source rows with each block, by the
same index that one process would use, and a block comes home with what was best for its own rows. So a process holds its rows, a block, and lists.

Blocks come in another order to each process. Lists are therefore merged by value, then by number: of equals the lower one is kept, as in one process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor

from engine.errors import LostProcessError
from engine.search.base import Divided, SearchIndex, TopK, check_k
from engine.search.parts import (
    NOTHING,
    Carried,
    Divisible,
    Part,
    collected,
    rows_between,
    sendable,
    sent_to,
    structure_of,
    with_arrived,
)
from engine.search.ranks import count_better
from engine.search.similarity import Similarity
from engine.search.tiles import descending
from engine.util.arrays import IntArray
from engine.util.threads import cut

Value = TypeVar("Value")

BLOCK_BYTES = 64 * 2**20
"""Of the rows that go round at a time. Lists are merged once for each block, so that small ones would cost more."""
PAIRS_AT_ONCE = 2**34
"""That a process compares before it passes a block on, for the others do not wait for it longer than for a step."""
ROWS_AT_ONCE = 2**15
"""Lists that are merged at a time."""
EMBEDDINGS = "embeddings"
"""The name of what is searched."""
NO_NUMBER = torch.iinfo(torch.int64).max
"""In the place of a candidate that was not found yet: behind all others."""


@dataclass(frozen=True)
class View:
    """What of a divided similarity is asked about.

    Attributes:
        rows, columns: (n,), (m,) entities of the pool; None: all.
        row_terms, column_terms: (n,), (m,) added to each row and column of the pool; None: nothing.
        turned: whether the target side asks, so that rows are target entities.
    """

    rows: Tensor | None = None
    columns: Tensor | None = None
    row_terms: Tensor | None = None
    column_terms: Tensor | None = None
    turned: bool = False

    def flipped(self) -> View:
        return View(self.columns, self.rows, self.column_terms, self.row_terms, not self.turned)

    def select(self, rows: Tensor, columns: Tensor) -> View:
        def of(values: Tensor | None, chosen: Tensor) -> Tensor | None:
            return None if values is None else values[chosen]

        pool = rows if self.rows is None else self.rows[rows], columns if self.columns is None else self.columns[columns]
        return View(*pool, of(self.row_terms, rows), of(self.column_terms, columns), self.turned)

    def shifted(self, row_terms: Tensor, column_terms: Tensor) -> View:
        terms = [new if old is None else old + new for old, new in ((self.row_terms, row_terms), (self.column_terms, column_terms))]
        return replace(self, row_terms=terms[0], column_terms=terms[1])


class Ring:
    """Blocks of target entities on their way through all processes.

    Attributes:
        numbers: (a,) positions of the own source entities within the view's rows, ascending.
        columns: (b,) positions of the own target entities within its columns.
    """

    def __init__(self, part: Part, view: View) -> None:
        part = part.turned() if view.turned else part
        self.ranks, self.view, self.device = part.ranks, view, part.similarity.device
        self.numbers, rows = own_positions(part.sources, view.rows, self.device)
        self.columns, self._columns = own_positions(part.targets, view.columns, self.device)
        self._targets = part.similarity
        self._sources = part.similarity if view.rows is None else part.similarity.select(rows, NOTHING)

    def visited(self, start: Callable[[int], Carried], visit: Callable[[Divisible, Tensor, Carried], Carried]) -> Carried:
        """Send all own target entities round. All processes call it together.

        Args:
            start: what a block of a number of entities sets out with.
            visit: called for every block that comes by, with the own source entities' similarities with it, the (b,) positions of its entities within
                the view's columns and what it carries; gives what it carries from there on.

        Returns:
            What the own entities came home with.
        """
        most = max(self.ranks.most(len(self.numbers)), 1)
        step = max(min(BLOCK_BYTES // max(4 * structure_of(self._targets).width, 1), PAIRS_AT_ONCE // most), 1)
        home = []
        for block in range(self.ranks.most(-(-len(self.columns) // step))):
            chosen = slice(block * step, (block + 1) * step)
            sent = sendable(self._targets.select(NOTHING, self._columns[chosen]))
            home.append(self._round(self.columns[chosen], sent, start(len(self.columns[chosen])), visit))
        return [torch.cat(parts) for parts in zip(*home, strict=True)] if home else start(0)

    def _round(self, numbers: Tensor, block: Carried, carried: Carried, visit: Callable[[Divisible, Tensor, Carried], Carried]) -> Carried:
        size = self.ranks.size
        for hop in range(size):
            if len(self.numbers) and len(numbers):
                carried = visit(with_arrived(self._sources, block), numbers, carried)
            if hop < size - 1:
                numbers, *block = (self._passed_on(one) for one in (numbers, *block))
            carried = [self._passed_on(one) for one in carried]
        return carried

    def _passed_on(self, rows: Tensor) -> Tensor:
        """To the next process; from the one before."""
        return sent_to(self.ranks, rows, (self.ranks.rank + 1) % self.ranks.size, (self.ranks.rank - 1) % self.ranks.size)

    def with_terms(self, similarity: Divisible, numbers: Tensor) -> Similarity:
        """The similarities with a block, with the view's terms."""
        view = self.view
        if view.row_terms is None or view.column_terms is None:
            return similarity
        return similarity.shifted(view.row_terms.to(self.device)[self.numbers], view.column_terms.to(self.device)[numbers])


def own_positions(own: IntArray, pool: Tensor | None, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where the own entities are in a pool, ascending, and where those found are among the own; ``pool``: None has all, in their order."""
    if pool is None:
        return torch.from_numpy(own).to(device), torch.arange(len(own), device=device)
    positions, local = found_among(torch.from_numpy(own), pool)
    return positions.to(device), local.to(device)


def found_among(numbers: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Which of the ``wanted`` are among the ascending ``numbers``, and where."""
    if not len(numbers):
        nothing = torch.empty(0, dtype=torch.int64, device=wanted.device)
        return nothing, nothing
    places = torch.searchsorted(numbers, wanted.contiguous()).clamp_(max=len(numbers) - 1)
    found = (numbers[places] == wanted).nonzero().flatten()
    return found, places[found]


class Question(ABC):
    """What process 0 asks; all processes answer together, and it has the result."""

    @abstractmethod
    def answer(self, part: Part) -> Any: ...


@dataclass(frozen=True)
class To:
    """A question about a similarity with a name."""

    name: str
    question: Question


@dataclass(frozen=True)
class Nearest(Question):
    """The k best of each row and each column of a view."""

    view: View
    index: SearchIndex
    k: int
    shape: tuple[int, int]

    def answer(self, part: Part) -> tuple[TopK, TopK]:
        ring = Ring(part, self.view)
        of_rows, of_columns = (min(self.k, size) for size in self.shape[::-1])
        best = nothing_found(len(ring.numbers), of_rows, ring.device)

        def visit(similarity: Divisible, numbers: Tensor, carried: Carried) -> Carried:
            forward, backward = self.index.search_both(ring.with_terms(similarity, numbers), self.k)
            improve(best, found_in_block(similarity, forward, numbers))
            improve(carried, found_in_block(similarity.transposed(), backward, ring.numbers))
            return carried

        carried = ring.visited(lambda rows: nothing_found(rows, of_columns, ring.device), visit)
        sides = (ring.numbers, best, self.shape[0]), (ring.columns, carried, self.shape[1])
        forward, backward = (TopK(*collected(part.ranks, numbers, lists, size)) for numbers, lists, size in sides)
        return forward, backward


def nothing_found(rows: int, k: int, device: torch.device) -> Carried:
    """Values, numbers and exact similarities of k candidates that are still to be found."""
    values = torch.full((rows, k), -torch.inf, device=device)
    return [values, torch.full((rows, k), NO_NUMBER, device=device), values.double()]


def found_in_block(similarity: Divisible, best: TopK, numbers: Tensor) -> Carried:
    """What an index has found in a block, by the (b,) numbers of its rows."""
    n, k = best.indices.shape
    exact = similarity.pairs(torch.arange(n, device=similarity.device).repeat_interleave(k), best.indices.reshape(-1))
    return [best.values, numbers[best.indices], exact.view(n, k)]


def improve(best: Carried, found: Carried) -> None:
    """Of both lists of each row keep the best, as many as there are in the first."""
    for rows in cut(len(best[0]), ROWS_AT_ONCE):
        values, numbers, exact = (torch.cat([one[rows], other[rows]], dim=1) for one, other in zip(best, found, strict=True))
        order = descending(values.double(), numbers)[:, : best[0].shape[1]]
        for one, both in zip(best, (values, numbers, exact), strict=True):
            one[rows] = both.gather(1, order)


@dataclass(frozen=True)
class Pairs(Question):
    """Similarities of pairs, by their (P,) positions within the rows and the columns of a view."""

    view: View
    left: Tensor
    right: Tensor

    def answer(self, part: Part) -> Tensor:
        ring = Ring(part, self.view)
        at, rows = found_among(ring.numbers.cpu(), self.left)  # the pairs of own source entities
        right, values = self.right[at], torch.zeros(len(at), dtype=torch.float64)

        def visit(similarity: Divisible, numbers: Tensor, carried: Carried) -> Carried:
            here, columns = found_among(numbers.cpu(), right)
            values[here] = self.score(similarity, rows[here].to(ring.device), columns.to(ring.device)).cpu()
            return carried

        ring.visited(lambda rows: [], visit)
        (found,) = collected(part.ranks, at, [values], len(self.left))
        return found

    def score(self, similarity: Divisible, rows: Tensor, columns: Tensor) -> Tensor:
        """(p,) float64 of pairs in a block."""
        return similarity.pairs(rows, columns)


@dataclass(frozen=True)
class CountBetter(Question):
    """See :func:`engine.search.ranks.count_better`; links and bars are of the view."""

    view: View
    links: Tensor
    bars: tuple[Tensor, Tensor]

    def answer(self, part: Part) -> tuple[Tensor, Tensor]:
        ring = Ring(part, self.view)
        of_rows, of_columns = (one.to(ring.device) for one in self.bars)
        at, rows = found_among(ring.numbers.cpu(), self.links[:, 0])
        counts = torch.zeros(len(ring.numbers), dtype=torch.int64, device=ring.device)

        def visit(similarity: Divisible, numbers: Tensor, carried: Carried) -> Carried:
            here, columns = found_among(numbers.cpu(), self.links[at, 1])
            links = torch.stack([rows[here], columns], dim=1).to(ring.device)
            found = count_better(ring.with_terms(similarity, numbers), links, (of_rows[ring.numbers], of_columns[numbers]))
            counts.add_(found[0])
            return [carried[0] + found[1]]

        (carried,) = ring.visited(lambda rows: [torch.zeros(rows, dtype=torch.int64, device=ring.device)], visit)
        sides = (ring.numbers, counts, self.bars[0]), (ring.columns, carried, self.bars[1])
        (forward,), (backward,) = (collected(part.ranks, numbers, [one], len(bars)) for numbers, one, bars in sides)
        return forward, backward


@dataclass(frozen=True)
class RowsInRange(Question):
    """The rows of a range of entities of one side, 0 or 1."""

    side: int
    start: int
    stop: int

    def answer(self, part: Part) -> Tensor:
        own, structure = part.turned() if self.side else part, structure_of(part.similarity)
        return rows_between(part.ranks, own.sources, structure.target if self.side else structure.source, self.start, self.stop)


@dataclass(frozen=True)
class ZeroRows(Question):
    """(n,), (m,) bool: see :meth:`engine.search.similarity.Similarity.zero_rows`."""

    def answer(self, part: Part) -> tuple[Tensor, Tensor]:
        sides = zip((part.sources, part.targets), part.similarity.zero_rows(), part.shape, strict=True)
        (source,), (target,) = (collected(part.ranks, torch.from_numpy(own), [zero.byte()], size) for own, zero, size in sides)
        return source.bool(), target.bool()


class DividedSimilarity(Divided):
    """Process 0's side of a similarity that several processes hold: what it is asked, all of them answer.

    Args:
        part: what process 0 holds.
        view: what is asked about.
        name: by which the others know it.
    """

    device = torch.device("cpu")

    def __init__(self, part: Part, view: View | None = None, name: str = EMBEDDINGS) -> None:
        self.part, self.view, self.name = part, View() if view is None else view, name

    def ask(self, question: Question) -> Any:
        self.part.ranks.first(lambda: To(self.name, question))
        return question.answer(self.part)

    @property
    def shape(self) -> tuple[int, int]:
        whole = self.part.shape[::-1] if self.view.turned else self.part.shape
        rows, columns = (size if pool is None else len(pool) for size, pool in zip(whole, (self.view.rows, self.view.columns), strict=True))
        return rows, columns

    @property
    def largest(self) -> float:
        return self.part.similarity.largest

    def search_both(self, index: SearchIndex, k: int) -> tuple[TopK, TopK]:
        check_k(k)
        found: tuple[TopK, TopK] = self.ask(Nearest(self.view, index, k, self.shape))
        return found

    def count_better(self, links: Tensor, bars: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self.ask(CountBetter(self.view, links, bars))
        return found

    def pairs(self, left: Tensor, right: Tensor) -> Tensor:
        (rows, left_at), (columns, right_at) = (torch.unique(one, return_inverse=True) for one in (left, right))
        found: Tensor = self.ask(Pairs(self.view.select(rows, columns), left_at, right_at))
        for terms, chosen in ((self.view.row_terms, left), (self.view.column_terms, right)):
            found = found if terms is None else found + terms[chosen].double()
        return found

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        chosen = [torch.arange(size)[part] for size, part in zip(self.shape, (rows, columns), strict=True)]
        left, right = torch.cartesian_prod(*chosen).reshape(-1, 2).T
        found = self.pairs(left, right).float().view(len(chosen[0]), len(chosen[1]))
        return found if out is None else out.copy_(found)

    def transposed(self) -> DividedSimilarity:
        return DividedSimilarity(self.part, self.view.flipped(), self.name)

    def select(self, rows: Tensor, columns: Tensor) -> DividedSimilarity:
        return DividedSimilarity(self.part, self.view.select(rows, columns), self.name)

    def shifted(self, row_terms: Tensor, column_terms: Tensor) -> DividedSimilarity:
        return DividedSimilarity(self.part, self.view.shifted(row_terms, column_terms), self.name)

    @property
    def width(self) -> int:
        return structure_of(self.part.similarity).width

    def rows(self, side: int, step: int) -> Iterator[Tensor]:
        """All rows of one side of the whole, 0 or 1, a number of them at a time."""
        for part in cut(self.part.shape[side], step):
            yield self.ask(RowsInRange(side, part.start, part.stop))

    @cached_property
    def _zero_rows(self) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self.ask(ZeroRows())
        return found

    def zero_rows(self) -> tuple[Tensor, Tensor]:
        whole = self._zero_rows[::-1] if self.view.turned else self._zero_rows
        rows, columns = (flags if pool is None else flags[pool] for flags, pool in zip(whole, (self.view.rows, self.view.columns), strict=True))
        return rows, columns

    def check(self) -> None:
        """Rows are finite: :func:`make_part` saw to it."""


@dataclass(frozen=True)
class Done:
    """Process 0 has no more questions."""

    value: Any


def asked_together(part: Part, ask: Callable[[DividedSimilarity], Value]) -> Value:
    """What process 0 makes of a divided similarity, in every process. All of them call it together.

    Raises:
        LostProcessError: in the others, where process 0 failed.
    """
    ranks = part.ranks
    if ranks.rank == 0:
        done: Done | None = None
        try:
            done = Done(ask(DividedSimilarity(part)))
        finally:
            ranks.first(lambda: done)
        found: Value = done.value
        return found
    while not isinstance(order := ranks.first(no_question), Done):
        if not isinstance(order, To):
            raise LostProcessError("process 0 has given up the training; what it printed says why.")
        order.question.answer(part)
    answered: Value = order.value
    return answered


def no_question() -> To | Done | None:
    """The other processes' side of a question: they have none."""
    return None
