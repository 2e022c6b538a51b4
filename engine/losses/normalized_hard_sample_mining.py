"""Normalised hard sample mining (paper section 5, eq. 12-17), with its gradient.

For a pair (u, v), the anchor u and each candidate e

    x(e) = gamma + |h_u - h_v|^2 - |h_u - h_e|^2,   z = (x - mean) / std,   L_u = logsumexp(lambda z + tau),

and the same from v's side; the loss is the mean over the pairs of L_u + L_v. mean and std are constants to the gradient. As in the authors'
code, the entries of u and v themselves are set to x = 0 (and stay in mean, std and softmax): they play the part of the paper's "1 +".

Without normalisation and with lambda = 1, tau = 0 the same expression is softmax cross-entropy over distances (paper section 5.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from engine.encoders.adjacency import cumulative
from engine.encoders.kernels import stretches
from engine.losses import kernels
from engine.losses.base import Candidates
from engine.threads import equal_parts

BLOCK_BYTES = 48 * 2**20  # of the (rows x candidates) products held at a time


@dataclass(frozen=True)
class NormalizedHardSampleMining:
    """The loss as a callable; see :class:`engine.losses.base.Loss`.

    Attributes:
        candidates: where negatives come from.
        margin: gamma.
        scale: lambda.
        shift: tau.
        normalise: False leaves out mean and std (x is used as it is).
        tail_mass: softmax mass that a row's gradient may leave out on a CPU; 0 takes every candidate into account.
    """

    candidates: Candidates
    margin: float = 1.0
    scale: float = 30.0
    shift: float = 10.0
    normalise: bool = True
    tail_mass: float = 0.01

    def __call__(self, embeddings: Tensor, pairs: Tensor, *, seed: int = 0, rounded: bool = False) -> Tensor:
        """The loss; ``rounded``: a CPU screens the candidates by products of bfloat16 vectors, and scores those that matter in full."""
        out: Tensor = _Loss.apply(embeddings, pairs, self, rounded)  # type: ignore[no-untyped-call]
        return out


@dataclass(frozen=True)
class Side:
    """The anchors of one side of a batch and what their rows look like."""

    anchors: Tensor  # (B,) stacked indices
    others: Tensor  # (B,) their counterparts
    low: int  # candidates are the stacked indices low .. high - 1
    high: int

    def pair_columns(self) -> tuple[Tensor, Tensor]:
        """(B,) columns of the anchor and of its counterpart among the candidates; -1 where they are not."""
        return tuple(torch.where((one >= self.low) & (one < self.high), one - self.low, -1) for one in (self.anchors, self.others))  # type: ignore[return-value]


def sides(pairs: Tensor, candidates: Candidates) -> tuple[Side, Side]:
    """The batch seen from its source entities and from its target entities."""
    return (
        Side(pairs[:, 0], pairs[:, 1], *candidates.columns("source")),
        Side(pairs[:, 1], pairs[:, 0], *candidates.columns("target")),
    )


class _Loss(torch.autograd.Function):
    """Value and gradient in one pass: the gradient is a by-product of the softmax and is kept until asked for."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, pairs: Tensor, loss: NormalizedHardSampleMining, rounded: bool) -> Tensor:
        embeddings = embeddings.detach().contiguous()
        grad = torch.zeros_like(embeddings)
        value = embeddings.new_zeros(())
        positive = (embeddings[pairs[:, 0]] - embeddings[pairs[:, 1]]).square().sum(-1)
        norms = embeddings.square().sum(-1)
        sparse = embeddings.device.type == "cpu" and loss.tail_mass > 0
        screened = embeddings.to(torch.bfloat16) if sparse and rounded and embeddings.dtype == torch.float32 else embeddings
        for side in sides(pairs, loss.candidates):
            if sparse:
                value += _sparse_side(embeddings, norms, positive, side, loss, grad, screened)
            else:
                value += _dense_side(embeddings, norms, positive, side, loss, grad)
        ctx.save_for_backward(grad)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = ctx.saved_tensors
        return (grad if grad_output == 1 else grad * grad_output), None, None, None


def block_rows(columns: int, element_size: int) -> int:
    """How many rows of ``columns`` values make a block."""
    return max(1, BLOCK_BYTES // max(1, columns * element_size))


def _dense_side(embeddings: Tensor, norms: Tensor, positive: Tensor, side: Side, loss: NormalizedHardSampleMining, grad: Tensor) -> Tensor:
    """Every candidate in value and gradient, in row blocks; any device. Adds to ``grad``."""
    batch, columns = len(side.anchors), side.high - side.low
    pool, value = embeddings[side.low : side.high], embeddings.new_zeros(())
    step = block_rows(columns, embeddings.element_size()) if embeddings.device.type == "cpu" else batch
    for start in range(0, batch, step):
        rows = slice(start, min(start + step, batch))
        block = Side(side.anchors[rows], side.others[rows], side.low, side.high)
        anchors, others = embeddings[block.anchors], embeddings[block.others]
        x = (loss.margin + positive[rows] - norms[block.anchors]).unsqueeze(1) - norms[side.low : side.high] + 2 * (anchors @ pool.T)
        constant = torch.zeros_like(x, dtype=torch.bool)
        for column in block.pair_columns():
            inside = (column >= 0).nonzero().squeeze(1)
            constant[inside, column[inside]] = True
        x = x.masked_fill(constant, 0)
        mean = x.mean(1, keepdim=True) if loss.normalise else x.new_zeros((len(x), 1))
        deviation = x.var(1, correction=0, keepdim=True).clamp_min(1e-12).sqrt() if loss.normalise else x.new_ones((len(x), 1))
        z = loss.scale * (x - mean) / deviation + loss.shift
        value += torch.logsumexp(z, 1).sum() / batch
        coefficients = (torch.softmax(z, 1) * (loss.scale / batch) / deviation).masked_fill(constant, 0)
        total = coefficients.sum(1, keepdim=True)
        grad[side.low : side.high] += 2 * (coefficients.T @ anchors - coefficients.sum(0).unsqueeze(1) * pool)
        grad.index_add_(0, block.anchors, 2 * (coefficients @ pool - total * others))
        grad.index_add_(0, block.others, -2 * total * (anchors - others))
    return value


def _sparse_side(
    embeddings: Tensor, norms: Tensor, positive: Tensor, side: Side, loss: NormalizedHardSampleMining, grad: Tensor, screened: Tensor
) -> Tensor:
    """Value and gradient from each row's candidates that matter; CPU. Adds to ``grad``."""
    first, second = (column.numpy() for column in side.pair_columns())
    rows = Rows(norms[side.anchors].numpy(), norms[side.low : side.high].numpy(), positive.numpy(), first, second)
    kept = _mine(screened, side, rows, loss)
    return _add_gradient(embeddings, side, rows, kept, loss, grad)


@dataclass(frozen=True)
class Rows:
    """What the kernels need to turn B anchors' products with m candidates into losses x."""

    anchor_norms: np.ndarray  # (B,) squared lengths
    norms: np.ndarray  # (m,)
    positive: np.ndarray  # (B,) |h_u - h_v|^2
    first: np.ndarray  # (B,) columns of the pair itself
    second: np.ndarray

    def __getitem__(self, block: slice) -> Rows:
        return Rows(self.anchor_norms[block], self.norms, self.positive[block], self.first[block], self.second[block])


@dataclass(frozen=True)
class Kept:
    """Each row's candidates that matter: CSR offsets and columns, and the rows' statistics (:func:`engine.losses.kernels.mine_rows`)."""

    statistics: np.ndarray
    offsets: np.ndarray
    columns: np.ndarray


def _mine(screened: Tensor, side: Side, rows: Rows, loss: NormalizedHardSampleMining) -> Kept:
    """Screen all candidates by the products of the given vectors, in blocks of rows."""
    anchors, pool = screened[side.anchors], screened[side.low : side.high]
    step = min(len(anchors), block_rows(len(pool), screened.element_size()))
    products = torch.empty((step, len(pool)), dtype=screened.dtype)
    statistics, counts, columns = np.empty((len(anchors), 5)), np.empty(len(anchors), dtype=np.int64), []
    for start in range(0, len(anchors), step):
        at = slice(start, min(start + step, len(anchors)))
        block = products[: at.stop - start]
        torch.mm(anchors[at], pool.T, out=block)
        part, bits = rows[at], block.view(torch.uint16).numpy() if block.dtype == torch.bfloat16 else block.numpy()
        x = (bits, part.anchor_norms, part.norms, part.positive, loss.margin, part.first, part.second)
        bounds = equal_parts(len(block), block.numel())
        kernels.mine_rows(bounds, *x, loss.normalise, loss.scale, loss.tail_mass, statistics[at], counts[at])
        offsets = cumulative(counts[at])
        columns.append(np.empty(offsets[-1], dtype=np.int32))
        kernels.collect_rows(bounds, *x, statistics[at], offsets, columns[-1])
    return Kept(statistics, cumulative(counts), np.concatenate(columns))


def _add_gradient(embeddings: Tensor, side: Side, rows: Rows, kept: Kept, loss: NormalizedHardSampleMining, grad: Tensor) -> Tensor:
    """Spread dL/dx over anchors, counterparts and candidates; the value.

    x(e) = const + |a - b|^2 - |a - h_e|^2:  dx/da = 2 (h_e - b),  dx/db = -2 (a - b),  dx/dh_e = 2 (a - h_e).
    """
    batch = len(side.anchors)
    anchors, others, pool = embeddings[side.anchors], embeddings[side.others], embeddings[side.low : side.high].numpy()
    total, pulled, values = torch.empty(batch, dtype=embeddings.dtype), torch.empty_like(anchors), np.empty(batch)
    weights = np.empty(len(kept.columns), dtype=pool.dtype)
    x = (pool, rows.norms, anchors.numpy(), rows.anchor_norms, rows.positive, loss.margin, rows.first, rows.second, loss.shift)
    kernels.weigh_rows(stretches(kept.offsets), kept.offsets, kept.columns, *x, kept.statistics, weights, total.numpy(), values, pulled.numpy())
    weights /= batch
    starts, entries, turned = kernels.transpose_entries(kept.offsets, kept.columns, weights, len(pool))  # type: ignore[no-untyped-call]
    kernels.push_rows(stretches(starts), starts, entries, turned, anchors.numpy(), pool, grad[side.low : side.high].numpy())
    grad.index_add_(0, side.anchors, (pulled - total.unsqueeze(1) * others).mul_(2 / batch))
    grad.index_add_(0, side.others, total.unsqueeze(1) * (anchors - others).mul_(-2 / batch))
    return embeddings.new_tensor(values.sum() / batch)
