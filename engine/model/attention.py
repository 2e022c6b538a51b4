"""Simplified relational attention (paper section 4.1): the messages that an entity receives along its relations.

``aggregate`` is the layer before its tanh, ``mean_rows`` the averaging that makes the two input channels. On a CPU both run fused kernels, on
other devices plain torch over (entries x C x d) tensors in bounded blocks.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from engine.model import kernels
from engine.model.adjacency import Adjacency, Csr, Int32Array, cumulative, to_torch
from engine.util.arrays import IntArray, spans


class MessageGraph:
    """An adjacency's messages, ready for one device."""

    def __init__(self, adjacency: Adjacency, device: torch.device | str = "cpu") -> None:
        self.adjacency = adjacency
        self.device = torch.device(device)
        self.bounds = kernels.stretches(adjacency.messages.offsets)
        self.everyone = np.arange(adjacency.num_entities, dtype=np.int64)
        self.lengths = adjacency.messages.lengths()

    def entries(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The messages to the given rows: the position in ``rows``, the sender and the unit of each of their entries."""
        chosen = rows.cpu().numpy()
        lengths = self.lengths[chosen]
        index = to_torch(spans(self.adjacency.messages.offsets[chosen], lengths), self.device)
        return to_torch(np.repeat(np.arange(len(chosen)), lengths), self.device), self.senders[index], self.units[index]

    @cached_property
    def receivers(self) -> Tensor:
        return to_torch(self.adjacency.messages.rows(), self.device)

    @cached_property
    def senders(self) -> Tensor:
        return to_torch(self.adjacency.messages.columns, self.device)

    @cached_property
    def units(self) -> Tensor:
        return to_torch(self.adjacency.units, self.device)


def aggregate(graph: MessageGraph, x: Tensor, vectors: Tensor, scores: Tensor, *, reflect: bool = True, rows: Tensor | None = None) -> Tensor:
    """One round of messages, before the activation (paper eq. 2 and 3).

    out_i = sum over i's entries (j, u) of a_iju (x_j - 2 (r_u . x_j) r_u), with a_i = softmax of i's entries' scores.

    Args:
        graph: the stacked graph; E entities, S units.
        x: (E, C, d) features of C channels.
        vectors: (S, d) unit vectors r_u.
        scores: (S, C) attention scores v_c . r_u; all equal switches attention off.
        reflect: False leaves the neighbours as they are (ablation: no relational projection).
        rows: (n,) distinct entities that are wanted; all by default.

    Returns:
        (n, C, d); zero for entities without messages.
    """
    if x.device.type == "cpu":
        out: Tensor = _FusedAggregate.apply(x, vectors, scores, graph, reflect, rows)  # type: ignore[no-untyped-call]
        return out
    return aggregate_plain(graph, x, vectors, scores, reflect=reflect, rows=rows)


def aggregate_plain(graph: MessageGraph, x: Tensor, vectors: Tensor, scores: Tensor, *, reflect: bool = True, rows: Tensor | None = None) -> Tensor:
    """:func:`aggregate` in plain torch, for any device; its temporaries are (entries, C, d)."""
    receivers, senders, units = (graph.receivers, graph.senders, graph.units) if rows is None else graph.entries(rows)
    number = len(x) if rows is None else len(rows)
    weights = edge_softmax(scores[units], receivers, number)  # (entries, C)
    messages = x[senders]  # (entries, C, d)
    if reflect:
        relation = vectors[units].unsqueeze(1)  # (entries, 1, d)
        messages = messages - 2 * (relation * messages).sum(-1, keepdim=True) * relation
    return x.new_zeros((number, *x.shape[1:])).index_add(0, receivers, weights.unsqueeze(-1) * messages)


def edge_softmax(scores: Tensor, rows: Tensor, num_rows: int) -> Tensor:
    """(entries, C) softmax over the entries that share a row."""
    index = rows.unsqueeze(-1).expand_as(scores)
    highest = scores.new_full((num_rows, scores.shape[1]), -torch.inf).scatter_reduce(0, index, scores.detach(), "amax")
    unnormalised = torch.exp(scores - highest[rows])
    total = torch.zeros_like(highest).index_add(0, rows, unnormalised)
    return unnormalised / total[rows]


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
        if features.device.type == "cpu":
            out: Tensor = _FusedMean.apply(features, self)  # type: ignore[no-untyped-call]
            return out
        return self.plain(features)

    def plain(self, features: Tensor) -> Tensor:
        """The same in plain torch, for any device."""
        total = features.new_zeros((self.csr.num_rows, features.shape[1])).index_add(0, self.rows, features[self.columns])
        return total * torch.from_numpy(self.weights).to(features).unsqueeze(-1)


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
