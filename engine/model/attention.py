"""Simplified relational attention (paper section 4.1): the messages that an entity receives along its relations.

``aggregate`` is the layer before its tanh, ``mean_rows`` the averaging that makes the two input channels. On a CPU both run fused kernels, on
other devices plain torch over blocks of (entries x C x d) tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from engine.model import kernels
from engine.model.adjacency import Adjacency, Csr, Int32Array, cumulative, to_torch
from engine.util.arrays import IntArray
from engine.util.devices import block_of, has_kernels
from engine.util.threads import cut


class MessageGraph:
    """An adjacency's messages, ready for one device."""

    def __init__(self, adjacency: Adjacency, device: torch.device | str = "cpu") -> None:
        self.adjacency = adjacency
        self.device = torch.device(device)
        self.bounds = kernels.stretches(adjacency.messages.offsets)
        self.everyone = np.arange(adjacency.num_entities, dtype=np.int64)
        self.lengths = adjacency.messages.lengths()

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
        return to_torch(self.adjacency.messages.rows(), self.device)

    @cached_property
    def senders(self) -> Tensor:
        return to_torch(self.adjacency.messages.columns, self.device)

    @cached_property
    def units(self) -> Tensor:
        return to_torch(self.adjacency.units, self.device)


class MessageEntries(NamedTuple):
    """Messages, (entries,) each: the position of the receiver among those that are wanted, the sender, the unit."""

    receivers: Tensor
    senders: Tensor
    units: Tensor

    def blocks(self, bytes_per_entry: int) -> Iterator[MessageEntries]:
        """Some at a time, so that the temporaries fit the device."""
        for part in cut(len(self.receivers), block_of(bytes_per_entry, self.receivers.device)):
            yield MessageEntries(self.receivers[part], self.senders[part], self.units[part])


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
    if has_kernels(x.device):
        out: Tensor = _FusedAggregate.apply(x, vectors, scores, graph, reflect, rows)  # type: ignore[no-untyped-call]
        return out
    return aggregate_plain(graph, x, vectors, scores, reflect=reflect, rows=rows, messages=messages)


def aggregate_plain(
    graph: MessageGraph,
    x: Tensor,
    vectors: Tensor,
    scores: Tensor,
    *,
    reflect: bool = True,
    rows: Tensor | None = None,
    messages: int | None = None,
) -> Tensor:
    """:func:`aggregate` in plain torch, for any device, some entries at a time."""
    number = len(x) if rows is None else len(rows)
    out: Tensor = _PlainAggregate.apply(x, vectors, scores, graph.entries(rows, messages), number, reflect)  # type: ignore[no-untyped-call]
    return out


class _PlainAggregate(torch.autograd.Function):
    """The messages of a block of entries are made, added up and forgotten; the backward pass makes them again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, vectors: Tensor, scores: Tensor, incoming: MessageEntries, number: int, reflect: bool) -> Tensor:
        x, vectors = x.detach(), vectors.detach()
        shares = exponentials(scores.detach())
        totals = shares.new_zeros((number, shares.shape[1])).index_add_(0, incoming.receivers, shares[incoming.units])
        out = x.new_zeros((number, *x.shape[1:]))
        for receivers, senders, units in incoming.blocks(_message_bytes(x)):
            sent = x[senders]  # (entries, C, d)
            if reflect:
                relation = vectors[units].unsqueeze(1)  # (entries, 1, d)
                sent = sent.addcmul((relation * sent).sum(-1, keepdim=True), relation, value=-2)
            weights = (shares[units] / totals[receivers]).to(x.dtype)
            out.index_add_(0, receivers, sent.mul_(weights.unsqueeze(-1)))
        ctx.incoming, ctx.reflect = incoming, reflect
        ctx.save_for_backward(x, vectors, shares, totals, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, vectors, shares, totals, out = ctx.saved_tensors
        pull = (grad * out).sum(-1)  # (n, C)
        dx, dvectors, dscores = torch.zeros_like(x), torch.zeros_like(vectors), shares.new_zeros(shares.shape, dtype=x.dtype)
        for receivers, senders, units in ctx.incoming.blocks(2 * _message_bytes(x)):
            weights = (shares[units] / totals[receivers]).to(x.dtype).unsqueeze(-1)  # (entries, C, 1)
            above, sent = grad[receivers], x[senders]  # (entries, C, d)
            both = (above * sent).sum(-1, keepdim=True)
            back = weights * above
            if ctx.reflect:
                relation = vectors[units].unsqueeze(1)
                from_grad, from_x = (relation * above).sum(-1, keepdim=True), (relation * sent).sum(-1, keepdim=True)
                both = both - 2 * from_grad * from_x
                back.addcmul_(from_grad * weights, relation, value=-2)
                dvectors.index_add_(0, units, (weights * (from_x * above + from_grad * sent)).sum(1), alpha=-2)
            dx.index_add_(0, senders, back)
            dscores.index_add_(0, units, (weights * (both - pull[receivers].unsqueeze(-1))).squeeze(-1))
        return dx, dvectors, dscores, None, None, None


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


class _FusedAggregate(torch.autograd.Function):
    """The CPU kernels as a differentiable operation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, vectors: Tensor, scores: Tensor, graph: MessageGraph, reflect: bool, rows: Tensor | None) -> Tensor:
        x, vectors, scores = x.detach(), vectors.detach().contiguous(), scores.detach().contiguous()
        messages = graph.adjacency.messages
        chosen = graph.everyone if rows is None else rows.numpy()
        out = torch.empty((len(chosen), *x.shape[1:]), dtype=x.dtype)
        shares, totals = exponentials(scores), torch.empty(out.shape[:2], dtype=torch.float64)
        kernels.aggregate_forward(
            graph.bounds if rows is None else kernels.stretches(cumulative(graph.lengths[chosen])),
            chosen,
            messages.offsets,
            messages.columns,
            graph.adjacency.units,
            x.numpy(),
            vectors.numpy(),
            shares.numpy(),
            reflect,
            out.numpy(),
            totals.numpy(),
        )
        ctx.graph, ctx.reflect, ctx.chosen = graph, reflect, chosen
        ctx.save_for_backward(x, vectors, shares, totals, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, vectors, shares, totals, out = ctx.saved_tensors
        grad = grad.contiguous()
        pull = torch.einsum("ecd,ecd->ec", grad, out)
        threads = len(ctx.graph.bounds) - 1
        dx = torch.empty(x.shape, dtype=x.dtype)
        dvectors = torch.zeros((threads, *vectors.shape), dtype=x.dtype)
        dscores = torch.zeros((threads, *shares.shape), dtype=x.dtype)
        messages = ctx.graph.adjacency.messages
        kernels.aggregate_backward(
            ctx.graph.bounds,
            live_places(grad, ctx.chosen, len(x)),
            messages.offsets,
            messages.columns,
            ctx.graph.adjacency.units,
            ctx.graph.adjacency.inverse,
            x.numpy(),
            vectors.numpy(),
            shares.numpy(),
            totals.numpy(),
            grad.numpy(),
            pull.numpy(),
            ctx.reflect,
            dx.numpy(),
            dvectors.numpy(),
            dscores.numpy(),
        )
        return dx, dvectors.sum(0), dscores.sum(0), None, None, None


def live_places(grad: Tensor, rows: IntArray, num_entities: int) -> Int32Array:
    """(E,) row of an entity's gradient among the (n, C, d) of ``rows``; -1 where there is none, or nothing but zeros."""
    places = np.full(num_entities, -1, dtype=np.int32)
    live = grad.flatten(1).any(1).numpy()
    places[rows[live]] = np.flatnonzero(live)
    return places


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """(E, ...) -> (n, ...) the given distinct rows; its gradient is written in one go, where that of indexing is added row by row."""
    out: Tensor = _TakeRows.apply(x, rows)  # type: ignore[no-untyped-call]
    return out


class _TakeRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.size = x.shape
        ctx.save_for_backward(rows)
        return x.detach().index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (rows,) = ctx.saved_tensors
        return grad.new_zeros(ctx.size).index_copy_(0, rows, grad), None


class RowMean:
    """The mean of a feature matrix's rows over each row of a Csr, as a differentiable operation on one device.

    ``symmetric``: the Csr equals its own transpose, so that the backward pass can walk it as it is.
    """

    def __init__(self, csr: Csr, device: torch.device | str = "cpu", *, symmetric: bool = False) -> None:
        self.csr = csr
        self.symmetric = symmetric
        self.device = torch.device(device)
        self.bounds = kernels.stretches(csr.offsets)
        self.weights = 1.0 / np.maximum(csr.lengths(), 1)

    @cached_property
    def rows(self) -> Tensor:
        return to_torch(self.csr.rows(), self.device)

    @cached_property
    def columns(self) -> Tensor:
        return to_torch(self.csr.columns, self.device)

    def __call__(self, features: Tensor) -> Tensor:
        """(columns, d) -> (rows, d); empty rows give zero."""
        if has_kernels(features.device):
            out: Tensor = _FusedMean.apply(features, self)  # type: ignore[no-untyped-call]
            return out
        return self.plain(features)

    @cached_property
    def weights_there(self) -> Tensor:
        """(rows, 1) float64, on the device."""
        return torch.from_numpy(self.weights).to(self.device).unsqueeze(-1)

    def plain(self, features: Tensor) -> Tensor:
        """The same in plain torch, for any device."""
        out: Tensor = _PlainMean.apply(features, self)  # type: ignore[no-untyped-call]
        return out

    def add(self, source: Tensor, out: Tensor, *, back: bool = False) -> Tensor:
        """Add to each row of ``out`` the columns' rows of ``source``, or (``back``) to each column those of its rows; some entries at a time."""
        for part in cut(len(self.columns), block_of(2 * source.element_size() * source.shape[1], source.device)):
            to, of = (self.columns[part], self.rows[part]) if back else (self.rows[part], self.columns[part])
            out.index_add_(0, to, source.index_select(0, of))
        return out


class _PlainMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, mean: RowMean) -> Tensor:
        ctx.mean = mean
        total = mean.add(features.detach(), features.new_zeros((mean.csr.num_rows, features.shape[1])))
        return total.mul_(mean.weights_there.to(total.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mean = ctx.mean
        weighed = grad * mean.weights_there.to(grad.dtype)
        return mean.add(weighed, grad.new_zeros((mean.csr.num_columns, grad.shape[1])), back=True), None


class _FusedMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, mean: RowMean) -> Tensor:
        features = features.detach().contiguous()
        out = features.new_empty((mean.csr.num_rows, features.shape[1]))
        weights = mean.weights.astype(features.numpy().dtype)
        kernels.mean_rows(mean.bounds, mean.csr.offsets, mean.csr.columns, features.numpy(), weights, True, out.numpy())
        ctx.mean, ctx.weights = mean, weights
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mean, grad = ctx.mean, grad.contiguous()
        csr = mean.csr
        if mean.symmetric:
            out = torch.empty_like(grad)
            kernels.mean_rows(mean.bounds, csr.offsets, csr.columns, grad.numpy(), ctx.weights, False, out.numpy())
            return out, None
        parts = torch.zeros((len(mean.bounds) - 1, csr.num_columns, grad.shape[1]), dtype=grad.dtype)
        kernels.scatter_rows(mean.bounds, csr.offsets, csr.columns, grad.numpy(), ctx.weights, parts.numpy())
        return parts.sum(0), None
