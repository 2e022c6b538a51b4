"""Simplified relational attention (paper section 4.1): the messages that an entity receives along its relations.

``aggregate`` is the layer before its tanh, ``mean_rows`` the averaging that makes the two input channels. On a CPU both run fused kernels, on
other devices plain torch over blocks of (entries x C x d) tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from engine.model import kernels
from engine.model.adjacency import Adjacency, Csr, Int32Array, cumulative, to_torch
from engine.model.exchange import Neighbours, Piece, add_to_rows, given_back
from engine.util.arrays import IntArray
from engine.util.devices import block_of, has_kernels
from engine.util.threads import cut


class MessageGraph:
    """An adjacency's messages to the own entities, ready for one device.

    Args:
        adjacency: of all entities that messages come from, the own ones first.
        device: where they are passed.
        neighbours: how their rows are read; all are there by default.
    """

    def __init__(self, adjacency: Adjacency, device: torch.device | str = "cpu", neighbours: Neighbours | None = None) -> None:
        self.adjacency = adjacency
        self.device = torch.device(device)
        self.neighbours = Neighbours.alone(adjacency.num_entities) if neighbours is None else neighbours
        own = adjacency.messages.first(self.neighbours.own)
        self.bounds = kernels.stretches(own.offsets)
        self.sent = [of_senders(adjacency.messages, block) for block in self.neighbours.blocks]
        self.everyone = np.arange(own.num_rows, dtype=np.int64)
        self.lengths = own.lengths()

    def number_to(self, entities: IntArray) -> int:
        """How many messages the given entities receive: with it, :meth:`entries` need not ask the device."""
        return int(self.lengths[entities].sum())

    def entries(self, rows: Tensor | None = None, number: int | None = None) -> MessageEntries:
        """The messages to the given rows, to all by default; ``number``: how many they are, where that is known."""
        if rows is None:
            return MessageEntries(self.receivers, self.senders, self.units)
        lengths = self.lengths_there[rows]
        number = int(lengths.sum()) if number is None else number
        position = torch.repeat_interleave(torch.arange(len(rows), device=self.device), lengths, output_size=number)
        first = self.starts[rows] - (lengths.cumsum(0) - lengths)  # of each row's entries, less those of the rows before
        index = torch.arange(number, device=self.device) + first[position]
        return MessageEntries(position, self.senders[index], self.units[index])

    @cached_property
    def starts(self) -> Tensor:
        return to_torch(self.adjacency.messages.offsets[:-1], self.device)

    @cached_property
    def lengths_there(self) -> Tensor:
        """(E,) messages to each entity, on the device."""
        return to_torch(self.lengths, self.device)

    @cached_property
    def receivers(self) -> Tensor:
        return to_torch(np.repeat(self.everyone, self.lengths), self.device)

    @cached_property
    def senders(self) -> Tensor:
        return to_torch(self.adjacency.messages.columns[: self.lengths.sum()], self.device)

    @cached_property
    def units(self) -> Tensor:
        return to_torch(self.adjacency.units[: self.lengths.sum()], self.device)


class OfSenders(NamedTuple):
    """Rows of a Csr that are a block, as a kernel walks them: where each begins, and one stretch of them for each thread."""

    offsets: IntArray
    bounds: IntArray


def of_senders(csr: Csr, block: Piece) -> OfSenders:
    offsets = csr.offsets[block.start : block.stop + 1]
    return OfSenders(offsets, kernels.stretches(offsets - offsets[0]))


class MessageEntries(NamedTuple):
    """Messages, (entries,) each: the position of the receiver among those that are wanted, the sender, the unit."""

    receivers: Tensor
    senders: Tensor
    units: Tensor

    def blocks(self, bytes_per_entry: int) -> Iterator[MessageEntries]:
        """Some at a time, so that the temporaries fit the device."""
        for part in cut(len(self.receivers), block_of(bytes_per_entry, self.receivers.device)):
            yield MessageEntries(self.receivers[part], self.senders[part], self.units[part])

    def of(self, neighbours: Neighbours, block: Piece) -> MessageEntries:
        """Those whose senders are in a block, by their number there."""
        here, senders = neighbours.within(block, self.senders)
        return MessageEntries(self.receivers[here], senders, self.units[here])


def aggregate(
    graph: MessageGraph,
    x: Tensor,
    vectors: Tensor,
    scores: Tensor,
    *,
    reflect: bool = True,
    rows: Tensor | None = None,
    messages: int | None = None,
) -> Tensor:
    """One round of messages, before the activation (paper eq. 2 and 3).

    out_i = sum over i's entries (j, u) of a_iju (x_j - 2 (r_u . x_j) r_u), with a_i = softmax of i's entries' scores.

    Args:
        graph: the stacked graph; E entities, S units.
        x: (E, C, d) features of C channels.
        vectors: (S, d) unit vectors r_u.
        scores: (S, C) attention scores v_c . r_u; all equal switches attention off.
        reflect: False leaves the neighbours as they are (ablation: no relational projection).
        rows: (n,) distinct entities that are wanted; all by default.
        messages: how many messages these receive (:meth:`MessageGraph.number_to`); a device that is no CPU is asked, and waited for, otherwise.

    Returns:
        (n, C, d); zero for entities without messages.
    """
    return _aggregated(graph, x, vectors, scores, Wanted(reflect, rows, messages))[0]


def next_layer(
    graph: MessageGraph,
    sums: Tensor,
    vectors: Tensor,
    scores: Tensor,
    *,
    reflect: bool = True,
    rows: Tensor | None = None,
    messages: int | None = None,
    taken: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A layer's output x = tanh(sums) and the round of messages that come of it: one operation, whose backward pass holds a single gradient of x.

    Args:
        graph, vectors, scores, reflect, rows, messages: as of :func:`aggregate`.
        sums: (E, C, d) of the own entities; overwritten where no gradient is wanted.
        taken: (m,) distinct rows of x that are wanted; all by default.

    Returns:
        (n, C, d) the sums of the next layer, (m, C, d) rows of x.
    """
    if torch.is_grad_enabled():
        return _aggregated(graph, sums, vectors, scores, Wanted(reflect, rows, messages, of_sums=True, taken=taken))
    x = sums.tanh_()
    return aggregate(graph, x, vectors, scores, reflect=reflect, rows=rows, messages=messages), x if taken is None else x.index_select(0, taken)


@dataclass(frozen=True)
class Wanted:
    """What is asked of a round of messages; see :func:`aggregate`.

    Attributes:
        of_sums: whether messages are of the input's tanh, which is then wanted as well: its rows ``taken``.
    """

    reflect: bool
    rows: Tensor | None
    messages: int | None
    of_sums: bool = False
    taken: Tensor | None = None


def _aggregated(graph: MessageGraph, inputs: Tensor, vectors: Tensor, scores: Tensor, asked: Wanted) -> tuple[Tensor, Tensor]:
    way = (ByKernels if has_kernels(inputs.device) else ByTorch)(graph, asked)
    found: tuple[Tensor, Tensor] = _Aggregate.apply(inputs, vectors, scores, graph, asked, way)  # type: ignore[no-untyped-call]
    return found


@dataclass
class Softmax:
    """What the forward pass of a round of messages leaves for the backward pass.

    Attributes:
        vectors: (S, d) of the units.
        shares: (S, C) their exponentiated scores.
        totals: (n, C) sums of the shares of a receiver's messages.
    """

    vectors: Tensor
    shares: Tensor
    totals: Tensor


@dataclass
class Backward:
    """Gradients of a round of messages.

    Attributes:
        grad: (n, C, d) of the receivers.
        pull: (n, C) grad_i . out_i.
        vectors, scores: of the units, where threads add to them a part for each thread; each block adds to them.
    """

    grad: Tensor
    pull: Tensor
    vectors: Tensor
    scores: Tensor

    def of_units(self) -> tuple[Tensor, Tensor]:
        """(S, d) and (S, C) of the units."""
        vectors, scores = (one if one.dim() == 2 else one.sum(0) for one in (self.vectors, self.scores))
        return vectors, scores


class _Aggregate(torch.autograd.Function):
    """Block after block of senders: their messages are added up, and made again in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, vectors: Tensor, scores: Tensor, graph: MessageGraph, asked: Wanted, way: ByKernels | ByTorch
    ) -> tuple[Tensor, Tensor | None]:
        x = torch.tanh(inputs) if asked.of_sums else inputs.detach()
        shares = exponentials(scores.detach().contiguous())
        number, kept = len(graph.everyone) if asked.rows is None else len(asked.rows), list[Tensor]()
        softmax = Softmax(vectors.detach().contiguous(), shares, way.totals(shares, number))
        out = way.empty(x, number)
        for block, sent in graph.neighbours.rows(x):
            way.add(block, sent, softmax, out)
            if block.exchange is not None and not graph.neighbours.again:
                kept.append(sent)
            del sent
        ctx.graph, ctx.asked, ctx.way = graph, asked, way
        ctx.save_for_backward(x, softmax.vectors, shares, softmax.totals, out, *kept)
        if not asked.of_sums:
            return out, None
        return out, x if asked.taken is None else x.index_select(0, asked.taken)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, grad_taken: Tensor | None) -> tuple[Tensor | None, ...]:
        x, vectors, shares, totals, out, *kept = ctx.saved_tensors
        asked, way, grad = ctx.asked, ctx.way, grad.contiguous()
        softmax = Softmax(vectors, shares, totals)
        sums = way.gradients(grad, torch.einsum("ecd,ecd->ec", grad, out), softmax)

        def gradients() -> Iterator[tuple[Piece, Tensor]]:
            for number, (block, sent) in enumerate(ctx.graph.neighbours.rows(x, kept)):
                back = way.back(number, block, sent, softmax, sums)
                del sent
                yield block, back
                del back

        dx = given_back(gradients())
        if asked.of_sums:
            assert grad_taken is not None, "a function's outputs that are not used have a gradient of zeros"
            dx = dx.add_(grad_taken) if asked.taken is None else add_to_rows(dx, asked.taken, grad_taken)
            torch.ops.aten.tanh_backward.grad_input(dx, x, grad_input=dx)
        return dx, *sums.of_units(), None, None, None


class ByKernels:
    """A round of messages by the CPU kernels."""

    def __init__(self, graph: MessageGraph, asked: Wanted) -> None:
        self.graph, self.asked, self.messages = graph, asked, graph.adjacency.messages
        self.chosen = graph.everyone if asked.rows is None else asked.rows.numpy()
        self.bounds = graph.bounds if asked.rows is None else kernels.stretches(cumulative(graph.lengths[self.chosen]))

    def totals(self, shares: Tensor, number: int) -> Tensor:
        """To be filled by the first block."""
        return torch.empty((number, shares.shape[1]), dtype=torch.float64)

    def empty(self, x: Tensor, number: int) -> Tensor:
        """Likewise."""
        return torch.empty((number, *x.shape[1:]), dtype=x.dtype)

    def add(self, block: Piece, sent: Tensor, softmax: Softmax, out: Tensor) -> None:
        kernels.aggregate_forward(
            self.bounds,
            self.chosen,
            self.messages.offsets,
            self.messages.columns,
            self.graph.adjacency.units,
            block.start,
            sent.numpy(),
            softmax.vectors.numpy(),
            softmax.shares.numpy(),
            self.asked.reflect,
            out.numpy(),
            softmax.totals.numpy(),
        )

    def gradients(self, grad: Tensor, pull: Tensor, softmax: Softmax) -> Backward:
        self.place = live_places(grad, self.chosen, self.graph.adjacency.num_entities)
        threads = len(self.graph.bounds) - 1
        units = (torch.zeros((threads, *one.shape), dtype=grad.dtype) for one in (softmax.vectors, softmax.shares))
        return Backward(grad, pull, *units)

    def back(self, number: int, block: Piece, sent: Tensor, softmax: Softmax, sums: Backward) -> Tensor:
        dsent = torch.empty(sent.shape, dtype=sent.dtype)
        kernels.aggregate_backward(
            self.graph.sent[number].bounds,
            self.place,
            self.graph.sent[number].offsets,
            self.messages.columns,
            self.graph.adjacency.units,
            self.graph.adjacency.inverse,
            sent.numpy(),
            softmax.vectors.numpy(),
            softmax.shares.numpy(),
            softmax.totals.numpy(),
            sums.grad.numpy(),
            sums.pull.numpy(),
            self.asked.reflect,
            dsent.numpy(),
            sums.vectors.numpy(),
            sums.scores.numpy(),
        )
        return dsent


class ByTorch:
    """The same in plain torch: the messages of a block of entries are made, added up and forgotten."""

    def __init__(self, graph: MessageGraph, asked: Wanted) -> None:
        self.asked, self.neighbours, self.incoming = asked, graph.neighbours, graph.entries(asked.rows, asked.messages)

    def totals(self, shares: Tensor, number: int) -> Tensor:
        return shares.new_zeros((number, shares.shape[1])).index_add_(0, self.incoming.receivers, shares[self.incoming.units])

    def empty(self, x: Tensor, number: int) -> Tensor:
        return x.new_zeros((number, *x.shape[1:]))

    def add(self, block: Piece, sent: Tensor, softmax: Softmax, out: Tensor) -> None:
        for receivers, senders, units in self.incoming.of(self.neighbours, block).blocks(_message_bytes(sent)):
            message = sent[senders]  # (entries, C, d)
            if self.asked.reflect:
                relation = softmax.vectors[units].unsqueeze(1)  # (entries, 1, d)
                message = message.addcmul((relation * message).sum(-1, keepdim=True), relation, value=-2)
            weights = (softmax.shares[units] / softmax.totals[receivers]).to(sent.dtype)
            out.index_add_(0, receivers, message.mul_(weights.unsqueeze(-1)))

    def gradients(self, grad: Tensor, pull: Tensor, softmax: Softmax) -> Backward:
        return Backward(grad, pull, *(torch.zeros_like(one, dtype=grad.dtype) for one in (softmax.vectors, softmax.shares)))

    def back(self, number: int, block: Piece, sent: Tensor, softmax: Softmax, sums: Backward) -> Tensor:
        dsent = torch.zeros_like(sent)
        for receivers, senders, units in self.incoming.of(self.neighbours, block).blocks(2 * _message_bytes(sent)):
            weights = (softmax.shares[units] / softmax.totals[receivers]).to(sent.dtype).unsqueeze(-1)  # (entries, C, 1)
            above, message = sums.grad[receivers], sent[senders]  # (entries, C, d)
            both = (above * message).sum(-1, keepdim=True)
            back = weights * above
            if self.asked.reflect:
                relation = softmax.vectors[units].unsqueeze(1)
                from_grad, from_x = (relation * above).sum(-1, keepdim=True), (relation * message).sum(-1, keepdim=True)
                both = both - 2 * from_grad * from_x
                back.addcmul_(from_grad * weights, relation, value=-2)
                sums.vectors.index_add_(0, units, (weights * (from_x * above + from_grad * message)).sum(1), alpha=-2)
            dsent.index_add_(0, senders, back)
            sums.scores.index_add_(0, units, (weights * (both - sums.pull[receivers].unsqueeze(-1))).squeeze(-1))
        return dsent


def _message_bytes(x: Tensor) -> int:
    """Temporaries of an entry: about four times what a neighbour sends."""
    return 4 * x.element_size() * x[:1].numel()


def exponentials(scores: Tensor) -> Tensor:
    """(S, C) float64 exp of the scores, the highest of a channel being 1: what a softmax over any of the units is in proportion to.

    Taken once per unit instead of once per triple. In float64 that suffices while scores lie within 690 of each other, which unit vectors' products
    with attention vectors do; what lies below counts as just that much.
    """
    if not len(scores):
        return scores.double()
    wide = scores.double()
    return (wide - wide.amax(0)).clamp_min_(-690.0).exp_()


def live_places(grad: Tensor, rows: IntArray, num_entities: int) -> Int32Array:
    """(E,) row of an entity's gradient among the (n, C, d) of ``rows``; -1 where there is none, or nothing but zeros."""
    places = np.full(num_entities, -1, dtype=np.int32)
    live = grad.flatten(1).any(1).numpy()
    places[rows[live]] = np.flatnonzero(live)
    return places


class RowMean:
    """The mean of a feature matrix's rows over each row of a Csr, as a differentiable operation on one device.

    Args:
        csr: rows of column indices.
        device: where means are taken.
        neighbours: the Csr has a row for each of these and equals its own transpose, so that the backward pass can walk it as it is; means are of
            the own rows. None: it is any Csr.
    """

    def __init__(self, csr: Csr, device: torch.device | str = "cpu", neighbours: Neighbours | None = None) -> None:
        self.symmetric = neighbours is not None
        self.neighbours = Neighbours.alone(csr.num_columns) if neighbours is None else neighbours
        self.sent = [of_senders(csr, block) for block in self.neighbours.blocks] if self.symmetric else []
        self.columns_of_all = csr.columns
        self.csr = csr.first(self.neighbours.own) if self.symmetric else csr
        self.device = torch.device(device)
        self.bounds = kernels.stretches(self.csr.offsets)
        self.weights = 1.0 / np.maximum(self.csr.lengths(), 1)

    @cached_property
    def rows(self) -> Tensor:
        return to_torch(self.csr.rows(), self.device)

    @cached_property
    def columns(self) -> Tensor:
        return to_torch(self.csr.columns, self.device)

    @cached_property
    def weights_there(self) -> Tensor:
        """(rows, 1) float64, on the device."""
        return torch.from_numpy(self.weights).to(self.device).unsqueeze(-1)

    def __call__(self, features: Tensor) -> Tensor:
        """(columns, d) -> (rows, d); empty rows give zero. Of neighbours, the own rows alone are given."""
        operation = _FusedMean if has_kernels(features.device) else _PlainMean
        out: Tensor = operation.apply(features, self)  # type: ignore[no-untyped-call]
        return out

    def entries(self, block: Piece) -> tuple[Tensor, Tensor]:
        """Rows and columns of the entries in a block of columns."""
        here, columns = self.neighbours.within(block, self.columns)
        return self.rows[here], columns


class _PlainMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, mean: RowMean) -> Tensor:
        ctx.mean = mean
        total = features.new_zeros((mean.csr.num_rows, features.shape[1]))
        for block, sent in mean.neighbours.rows(features.detach()):
            add_rows(total, sent, *mean.entries(block))
        return total.mul_(mean.weights_there.to(total.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mean = ctx.mean
        weighed = grad * mean.weights_there.to(grad.dtype)

        def gradients() -> Iterator[tuple[Piece, Tensor]]:
            for block in mean.neighbours.blocks:
                rows, columns = mean.entries(block)
                yield block, add_rows(grad.new_zeros((block.stop - block.start, grad.shape[1])), weighed, columns, rows)

        return given_back(gradients()), None


def add_rows(out: Tensor, source: Tensor, to: Tensor, of: Tensor) -> Tensor:
    """Add rows of ``source`` to rows of ``out``, some entries at a time."""
    for part in cut(len(to), block_of(2 * source.element_size() * source.shape[1], source.device)):
        out.index_add_(0, to[part], source.index_select(0, of[part]))
    return out


class _FusedMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, mean: RowMean) -> Tensor:
        features, csr = features.detach().contiguous(), mean.csr
        out = features.new_empty((csr.num_rows, features.shape[1]))
        weights = mean.weights.astype(features.numpy().dtype)
        for block, sent in mean.neighbours.rows(features):
            kernels.mean_rows(mean.bounds, csr.offsets, csr.columns, block.start, sent.numpy(), weights, True, out.numpy())
            del sent
        ctx.mean, ctx.weights = mean, weights
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mean, grad = ctx.mean, grad.contiguous()
        csr = mean.csr

        def gradients() -> Iterator[tuple[Piece, Tensor]]:
            for block, (offsets, bounds) in zip(mean.neighbours.blocks, mean.sent, strict=True):
                out = grad.new_empty((block.stop - block.start, grad.shape[1]))
                kernels.mean_rows(bounds, offsets, mean.columns_of_all, 0, grad.numpy(), ctx.weights, False, out.numpy())
                yield block, out

        if mean.symmetric:
            return given_back(gradients()), None
        parts = torch.zeros((len(mean.bounds) - 1, csr.num_columns, grad.shape[1]), dtype=grad.dtype)
        kernels.scatter_rows(mean.bounds, csr.offsets, csr.columns, grad.numpy(), ctx.weights, parts.numpy())
        return parts.sum(0), None
