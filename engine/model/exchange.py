"""Rows that processes fetch from each other, and operations on neighbours that read them some at a time.

What an operation makes of its neighbours' rows is a sum over them, with weights that depend on the relations alone. It can therefore read its own
rows first and then the others' in pieces, each from one process, adding up; the backward pass goes the same way and gives each piece's gradient back.
So a process never holds all rows that it needs of others, be they several times as many as its own (SAR, Mostafa, MLSys 2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from engine.util.devices import has_kernels
from engine.util.distributed import Ranks

PIECE_ROWS: Final = 2**16
"""Rows of others that are held at a time, where not all of them are."""
FEW_ROWS: Final = 2**15
"""Rows of others that are held in any case."""
MANY: Final = 0.5
"""Rows of others beside a process's own from which on they are not held."""


@dataclass(frozen=True)
class Exchange:
    """Rows that processes fetch from each other.

    Attributes:
        ranks: the processes.
        sent: (s,) positions of the own rows that others fetch, those for process 0 first.
        sends: how many of them go to each process.
        receives: how many rows come from each process.
    """

    ranks: Ranks
    sent: Tensor
    sends: Sequence[int]
    receives: Sequence[int]

    def fetch(self, rows: Tensor) -> Tensor:
        """The others' rows, those of process 0 first."""
        return self.ranks.swap(rows.index_select(0, self.sent), self.sends, self.receives)

    def give_back(self, received: Tensor, rows: Tensor) -> None:
        """Add to ``rows`` what the others hold for them: the transpose of :meth:`fetch`, in a fixed order."""
        returned = self.ranks.swap(received.contiguous(), self.receives, self.sends)
        for places, values in zip(*(torch.split(one, list(self.sends)) for one in (self.sent, returned)), strict=True):
            add_to_rows(rows, places, values)  # no row goes to the same process twice


def add_to_rows(x: Tensor, rows: Tensor, values: Tensor) -> Tensor:
    """x[rows] += values, in place, for distinct rows: on a CPU ``index_add_`` takes several times as long, for it adds row by row."""
    if not has_kernels(x.device):
        return x.index_add_(0, rows, values)
    return x.index_copy_(0, rows, x.index_select(0, rows).add_(values))


def with_fetched(rows: Tensor, exchange: Exchange | None) -> Tensor:
    """The (n, ...) own rows, followed by the others'; differentiable. All processes call it together."""
    if exchange is None:
        return rows
    out: Tensor = _Fetch.apply(rows, exchange)  # type: ignore[no-untyped-call]
    return out


class _Fetch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, exchange: Exchange) -> Tensor:
        ctx.exchange, ctx.own = exchange, len(rows)
        return torch.cat([rows.detach(), exchange.fetch(rows.detach())])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        own = grad[: ctx.own].clone()
        ctx.exchange.give_back(grad[ctx.own :], own)
        return own, None


@dataclass(frozen=True)
class Piece:
    """Rows with the local indices from ``start`` to ``stop``: a process's own, or those that ``exchange`` fetches."""

    start: int
    stop: int
    exchange: Exchange | None = None


@dataclass(frozen=True)
class Neighbours:
    """The rows that messages come from.

    Attributes:
        blocks: the own rows, and then those of other processes, in the order in which all exchange them.
        again: whether the backward pass fetches the others' rows again; otherwise they are kept for it.
    """

    blocks: Sequence[Piece]
    again: bool = False

    @classmethod
    def alone(cls, number: int) -> Neighbours:
        """Of one process."""
        return cls([Piece(0, number)])

    @property
    def own(self) -> int:
        return self.blocks[0].stop

    def within(self, block: Piece, numbers: Tensor) -> tuple[Tensor | slice, Tensor]:
        """Which of some rows' numbers are in a block, and their numbers there."""
        if len(self.blocks) == 1:
            return slice(None), numbers
        here = (numbers >= block.start) & (numbers < block.stop)
        return here, numbers[here] - block.start

    def rows(self, own: Tensor, kept: Sequence[Tensor] = ()) -> Iterator[tuple[Piece, Tensor]]:
        """Each block with its rows: what was kept of others' rows, or what they send now. All processes walk along together."""
        left = iter(kept)
        for block in self.blocks:  # nothing here may hold a piece while the next one comes
            yield block, own if block.exchange is None else next(left) if kept else block.exchange.fetch(own)


def given_back(gradients: Iterator[tuple[Piece, Tensor]]) -> Tensor:
    """The gradient of the own rows, which come first, with what others have of it. All processes call it together."""
    _, own = next(gradients)
    for block, one in gradients:
        assert block.exchange is not None
        block.exchange.give_back(one, own)
        del one  # nothing here may hold a piece while the next one comes
    return own


def reached_by(exchange: Exchange, own: int, entities: int) -> Neighbours:
    """The own rows and those that ``exchange`` fetches: all of these at once, or partner by partner where they are many. Processes call it together.

    Args:
        exchange: of all rows.
        own: rows of this process.
        entities: of all processes.
    """
    ranks, halo = exchange.ranks, sum(exchange.receives)
    if not fetches_in_pieces(ranks.most(halo), entities, ranks.size):
        return Neighbours([Piece(0, own), Piece(own, own + halo, exchange)])
    return Neighbours([Piece(0, own), *partner_by_partner(exchange, own)], again=True)


def fetches_in_pieces(halo: int, entities: int, processes: int) -> bool:
    """Whether others' rows are too many to be held all at once.

    Args:
        halo: rows that a process fetches, of the one that fetches most.
        entities: of all processes.
        processes: how many there are.
    """
    return halo > max(FEW_ROWS, MANY * entities / processes)


def fetching(in_pieces: bool) -> str:
    """How rows of others are fetched, for people."""
    return "partner by partner" if in_pieces else "all at once"


def partner_by_partner(exchange: Exchange, own: int) -> Iterator[Piece]:
    """One partner's rows after the other's: in round k a process receives from the one k before it and sends to the one k behind it.

    All processes cut a round into as many pieces as the largest of its transfers needs.
    """
    ranks, sends, receives = exchange.ranks, exchange.sends, exchange.receives
    first_sent, first_received = (np.concatenate([[0], np.cumsum(counts)]) for counts in (sends, receives))
    nothing = [0] * ranks.size
    for shift in range(1, ranks.size):
        to, of = (ranks.rank + shift) % ranks.size, (ranks.rank - shift) % ranks.size
        number = -(-ranks.most(sends[to]) // PIECE_ROWS)
        for part in range(number):
            (low, high), (start, stop) = ([count * at // number for at in (part, part + 1)] for count in (sends[to], receives[of]))
            sent = exchange.sent[first_sent[to] + low : first_sent[to] + high]
            goes, comes = ([*nothing[:at], count, *nothing[at + 1 :]] for at, count in ((to, high - low), (of, stop - start)))
            at = own + int(first_received[of])
            yield Piece(at + start, at + stop, Exchange(ranks, sent, goes, comes))
