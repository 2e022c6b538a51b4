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

    def __call__(self, embeddings: Tensor, pairs: Tensor, *, seed: int = 0) -> Tensor:
        out: Tensor = _Loss.apply(embeddings, pairs, self)  # type: ignore[no-untyped-call]
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
    def forward(ctx: Any, embeddings: Tensor, pairs: Tensor, loss: NormalizedHardSampleMining) -> Tensor:
        embeddings = embeddings.detach().contiguous()
        grad = torch.zeros_like(embeddings)
        value = embeddings.new_zeros(())
        positive = (embeddings[pairs[:, 0]] - embeddings[pairs[:, 1]]).square().sum(-1)
        norms = embeddings.square().sum(-1)
        sparse = embeddings.device.type == "cpu" and loss.tail_mass > 0
        for side in sides(pairs, loss.candidates):
            value += (_sparse_side if sparse else _dense_side)(embeddings, norms, positive, side, loss, grad)
        ctx.save_for_backward(grad)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = ctx.saved_tensors
        return (grad if grad_output == 1 else grad * grad_output), None, None


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


def _sparse_side(embeddings: Tensor, norms: Tensor, positive: Tensor, side: Side, loss: NormalizedHardSampleMining, grad: Tensor) -> Tensor:
    """Value and gradient from each row's candidates that matter; CPU. Adds to ``grad``."""
    batch, columns = len(side.anchors), side.high - side.low
    anchors, others = embeddings[side.anchors], embeddings[side.others]
    pool = embeddings[side.low : side.high]
    first, second = (column.numpy() for column in side.pair_columns())
    anchor_norms, pool_norms = norms[side.anchors].numpy(), norms[side.low : side.high].numpy()
    statistics = np.empty((batch, 5), dtype=np.float64)
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    step = min(batch, block_rows(columns, embeddings.element_size()))
    products = torch.empty((step, columns), dtype=embeddings.dtype)
    for start in range(0, batch, step):
        rows = slice(start, min(start + step, batch))
        block = products[: rows.stop - start]
        torch.mm(anchors[rows], pool.T, out=block)
        counts = np.empty(len(block), dtype=np.int64)
        kernels.mine_rows(
            block.numpy(),
            anchor_norms[rows],
            pool_norms,
            positive.numpy()[rows],
            loss.margin,
            first[rows],
            second[rows],
            loss.normalise,
            loss.scale,
            loss.shift,
            loss.tail_mass,
            statistics[rows],
            counts,
        )
        offsets = cumulative(counts)
        candidates, weights = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1], dtype=embeddings.numpy().dtype)
        kernels.collect_rows(block.numpy(), first[rows], second[rows], statistics[rows], offsets, side.low, candidates, weights)
        kept.append((counts, candidates, weights))
    counts, candidates, weights = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    weights /= batch
    _add_gradient(embeddings, anchors, others, side, cumulative(counts), candidates, weights, grad)
    return embeddings.new_tensor(statistics[:, 3].sum() / batch)


def _add_gradient(
    embeddings: Tensor, anchors: Tensor, others: Tensor, side: Side, offsets: np.ndarray, candidates: np.ndarray, weights: np.ndarray, grad: Tensor
) -> None:
    """Spread dL/dx over anchors, counterparts and candidates.

    x(e) = const + |a - b|^2 - |a - h_e|^2:  dx/da = 2 (h_e - b),  dx/db = -2 (a - b),  dx/dh_e = 2 (a - h_e).
    """
    total, pulled = torch.empty(len(anchors), dtype=embeddings.dtype), torch.empty_like(anchors)
    kernels.pull_rows(stretches(offsets), offsets, candidates, weights, embeddings.numpy(), total.numpy(), pulled.numpy())
    starts, rows, turned = kernels.transpose_entries(offsets, candidates, weights, len(embeddings))
    kernels.push_rows(stretches(starts), starts, rows, turned, anchors.numpy(), embeddings.numpy(), grad.numpy())
    grad.index_add_(0, side.anchors, 2 * (pulled - total.unsqueeze(1) * others))
    grad.index_add_(0, side.others, -2 * total.unsqueeze(1) * (anchors - others))
