"""Normalised hard sample mining (paper section 5, eq. 12-17), with its gradient.

For a pair (u, v), the anchor u and each candidate e

    x(e) = gamma + |h_u - h_v|^2 - |h_u - h_e|^2,   z = (x - mean) / std,   L_u = logsumexp(lambda z + tau),

and the same from v's side; the loss is the mean over the pairs of L_u + L_v. mean and std are constants to the gradient. As in the authors'
code, the entries of u and v themselves are set to x = 0 (and stay in mean, std and softmax): they play the part of the paper's "1 +".

Without normalisation and with lambda = 1, tau = 0 the same expression is softmax cross-entropy over distances (paper section 5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from engine.config import LossConfig
from engine.model.adjacency import cumulative
from engine.model.kernels import stretches
from engine.model.losses import kernels
from engine.model.losses.base import NegativeCandidates, register_loss
from engine.util.devices import block_of, has_kernels
from engine.util.distributed import ALONE, Ranks
from engine.util.threads import cut, equal_parts

BLOCK_BYTES = 48 * 2**20  # of the (rows x candidates) products held at a time
VARIANCE = 1e-12  # at least
TEMPORARIES = 5  # of a block on other devices, each as large as its products


@dataclass(frozen=True)
class NormalizedHardSampleMining:
    """The loss as a callable; see :class:`engine.model.losses.base.Loss`.

    Attributes:
        candidates: where negatives come from.
        margin: gamma.
        scale: lambda.
        shift: tau.
        normalise: False leaves out mean and std (x is used as it is).
        tail_mass: softmax mass that a row's gradient may leave out on a CPU; 0 takes every candidate into account.
        most_kept: candidates of a row that are kept at most, whatever its tail weighs (whole nats, the first in any case).
        ranks: the processes that the candidates are divided among; the embeddings' candidates are those of this one. The value is that of all, the
            gradient this one's share of it.
    """

    candidates: NegativeCandidates
    margin: float = 1.0
    scale: float = 30.0
    shift: float = 10.0
    normalise: bool = True
    tail_mass: float = 0.01
    most_kept: int = 10**9
    ranks: Ranks = ALONE

    def __call__(self, embeddings: Tensor, pairs: Tensor, *, seed: int = 0, rounded: bool = False) -> Tensor:
        """The loss; ``rounded``: a CPU screens the candidates by products of bfloat16 vectors, and scores those that matter in full; other devices
        take all products of bfloat16 vectors, and sum in float32."""
        out: Tensor = _Loss.apply(embeddings, pairs, self, rounded)  # type: ignore[no-untyped-call]
        return out


@register_loss("nhsm", divided=True)
def _build(config: LossConfig, candidates: NegativeCandidates, ranks: Ranks) -> NormalizedHardSampleMining:
    return NormalizedHardSampleMining(
        candidates, margin=config.margin, scale=config.scale, shift=config.shift, tail_mass=config.tail_mass, most_kept=config.most_kept, ranks=ranks
    )


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


def sides(pairs: Tensor, candidates: NegativeCandidates) -> tuple[Side, Side]:
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
        compiled = has_kernels(embeddings.device)
        sparse = compiled and loss.tail_mass > 0
        rounded = rounded and embeddings.dtype == torch.float32 and (sparse or not compiled)
        screened = embeddings.to(torch.bfloat16) if rounded else embeddings
        for side in sides(pairs, loss.candidates):
            if sparse:
                value += _sparse_side(embeddings, norms, positive, side, loss, grad, screened)
            else:
                value += _dense_side(embeddings, norms, positive, side, loss, grad, screened)
        ctx.save_for_backward(grad)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = ctx.saved_tensors
        alone = has_kernels(grad.device) and grad_output == 1  # to ask another device would be to wait for it
        return (grad if alone else grad * grad_output), None, None, None


def block_rows(columns: int, element_size: int) -> int:
    """How many rows of ``columns`` values make a block."""
    return max(1, BLOCK_BYTES // max(1, columns * element_size))


def _dense_side(
    embeddings: Tensor, norms: Tensor, positive: Tensor, side: Side, loss: NormalizedHardSampleMining, grad: Tensor, screened: Tensor
) -> Tensor:
    """Every candidate in value and gradient, in row blocks; any device. Adds to ``grad``. Products are of the ``screened`` vectors."""
    batch, pool, value = len(side.anchors), embeddings[side.low : side.high], embeddings.new_zeros(())
    columns, multiplied = loss.ranks.most(len(pool)), screened[side.low : side.high]
    if has_kernels(embeddings.device):
        step = block_rows(columns, embeddings.element_size())
    else:
        step = block_of(TEMPORARIES * columns * embeddings.element_size(), embeddings.device)
    for rows in cut(batch, step):
        block = Side(side.anchors[rows], side.others[rows], side.low, side.high)
        anchors, others = embeddings[block.anchors], embeddings[block.others]
        products = wide_product(screened[block.anchors], multiplied.T)
        x = (loss.margin + positive[rows] - norms[block.anchors]).unsqueeze(1) - norms[side.low : side.high] + 2 * products
        itself = PairPlaces.of(block)
        value_of_block, coefficients = _softmax(itself.set(x, 0.0), loss)
        value += value_of_block / batch
        coefficients = itself.set(coefficients, 0.0).div_(batch)
        weights = coefficients.to(screened.dtype)
        total, totals = weights.sum(1, keepdim=True, dtype=x.dtype), weights.sum(0, dtype=x.dtype)
        grad[side.low : side.high] += 2 * (wide_product(weights.T, screened[block.anchors]) - totals.unsqueeze(1) * pool)
        grad.index_add_(0, block.anchors, 2 * (wide_product(weights, multiplied) - total * others))
        grad.index_add_(0, block.others, -2 * total * (anchors - others))
    return value


@dataclass(frozen=True)
class PairPlaces:
    """Where the pairs stand among the candidates of an (n, m) block, to be overwritten without looking which rows have such columns."""

    columns: Tensor  # (n, 2)
    inside: Tensor  # (n, 2)

    @classmethod
    def of(cls, side: Side) -> PairPlaces:
        first, second = side.pair_columns()
        # The one that is not among the candidates stands for the other: no column of a row is then written with two values.
        columns = torch.stack([torch.where(first >= 0, first, second), torch.where(second >= 0, second, first)], dim=1)
        return cls(columns.clamp_min(0), columns >= 0)

    def set(self, values: Tensor, value: float) -> Tensor:
        """In place."""
        if not values.shape[1]:  # a process may own none of a step's candidates
            return values
        return values.scatter_(1, self.columns, torch.where(self.inside, value, values.gather(1, self.columns)))


def wide_product(left: Tensor, right: Tensor) -> Tensor:
    """left @ right, which of bfloat16 matrices is summed in float32 and stays so."""
    if left.dtype != torch.bfloat16:
        return left @ right
    if left.device.type == "cuda":
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()  # the same numbers, but for the order of sums


def _softmax(x: Tensor, loss: NormalizedHardSampleMining) -> tuple[Tensor, Tensor]:
    """The sum over rows of logsumexp(lambda z + tau), and dL/dx; x (n, m) are this process's candidates, the statistics those of all."""
    ranks, mean, deviation = loss.ranks, x.new_zeros((len(x), 1)), x.new_ones((len(x), 1))
    if loss.normalise:
        number = ranks.sum(torch.full_like(mean, x.shape[1]))
        mean = ranks.sum(x.sum(1, keepdim=True)) / number
        deviation = (ranks.sum((x - mean).square_().sum(1, keepdim=True)) / number).clamp_min_(VARIANCE).sqrt_()
    z = (x - mean) / deviation * loss.scale
    highest = ranks.max(z.amax(1, keepdim=True) if x.shape[1] else torch.full_like(mean, -torch.inf))
    shares = (z - highest).exp_()
    mass = ranks.sum(shares.sum(1, keepdim=True))
    return (highest + mass.log() + loss.shift).sum(), shares.mul_(loss.scale / (mass * deviation))


def _sparse_side(
    embeddings: Tensor, norms: Tensor, positive: Tensor, side: Side, loss: NormalizedHardSampleMining, grad: Tensor, screened: Tensor
) -> Tensor:
    """Value and gradient from each row's candidates that matter; CPU. Adds to ``grad``."""
    first, second = (column.numpy() for column in side.pair_columns())
    rows = LossRows(norms[side.anchors].numpy(), norms[side.low : side.high].numpy(), positive.numpy(), first, second)
    kept = _mine(screened, side, rows, loss)
    return _add_gradient(embeddings, side, rows, kept, loss, grad)


@dataclass(frozen=True)
class LossRows:
    """What the kernels need to turn B anchors' products with m candidates into losses x."""

    anchor_norms: np.ndarray  # (B,) squared lengths
    norms: np.ndarray  # (m,)
    positive: np.ndarray  # (B,) |h_u - h_v|^2
    first: np.ndarray  # (B,) columns of the pair itself
    second: np.ndarray

    def __getitem__(self, block: slice) -> LossRows:
        return LossRows(self.anchor_norms[block], self.norms, self.positive[block], self.first[block], self.second[block])


@dataclass(frozen=True)
class Kept:
    """Each row's candidates that matter.

    The factor f of z = f (x - mean) and the other statistics are of the candidates of all processes; the entries (CSR) those of this one.
    """

    mean: np.ndarray  # (B,) of the losses x; 0 without normalisation
    factor: np.ndarray  # (B,)
    highest: np.ndarray  # (B,)
    left_out: np.ndarray  # (B,) the sum of exp(f (x - highest)) over candidates that are not kept
    offsets: np.ndarray  # (B + 1,)
    columns: np.ndarray  # (entries,)

    @classmethod
    def together(cls, blocks: Sequence[Kept]) -> Kept:
        """Blocks of consecutive rows as one."""
        mean, factor, highest, left_out = (
            np.concatenate([getattr(one, name) for one in blocks]) for name in ("mean", "factor", "highest", "left_out")
        )
        offsets = cumulative(np.concatenate([np.diff(one.offsets) for one in blocks]))
        return cls(mean, factor, highest, left_out, offsets, np.concatenate([one.columns for one in blocks]))


def _mine(screened: Tensor, side: Side, rows: LossRows, loss: NormalizedHardSampleMining) -> Kept:
    """Screen all candidates by the products of the given vectors, in blocks of rows."""
    anchors, pool = screened[side.anchors], screened[side.low : side.high]
    step = min(len(anchors), block_rows(loss.ranks.most(len(pool)), screened.element_size()))
    products = torch.empty((step, len(pool)), dtype=screened.dtype)
    blocks = []
    for at in cut(len(anchors), step):
        block = products[: at.stop - at.start]
        torch.mm(anchors[at], pool.T, out=block)
        blocks.append(mine_block(block.view(torch.uint16).numpy() if block.dtype == torch.bfloat16 else block.numpy(), rows[at], loss))
    return Kept.together(blocks)


def mine_block(products: np.ndarray, rows: LossRows, loss: NormalizedHardSampleMining) -> Kept:
    """The candidates that matter among the m of an (n, m) block of products; uint16 products hold the bits of bfloat16 numbers."""
    number, ranks = len(products), loss.ranks
    x = (products, rows.anchor_norms, rows.norms, rows.positive, loss.margin, rows.first, rows.second)
    bounds = equal_parts(number, products.size)
    moments, highest = np.zeros((number, 3)), np.full(number, -np.inf, dtype=rows.norms.dtype)
    if products.shape[1]:  # a process may own none of a step's candidates
        kernels.spread_rows(bounds, *x, moments, highest)
    moments[:, 2] = products.shape[1]
    total, squares, columns = ranks.sum(torch.from_numpy(moments)).numpy().T
    highest = ranks.max(torch.from_numpy(highest)).numpy()
    mean, factor = np.zeros(number), np.full(number, loss.scale)
    if loss.normalise:
        mean = total / columns
        factor = loss.scale / np.sqrt(np.maximum(squares / columns - mean * mean, VARIANCE))
    masses, counts = np.zeros((number, kernels.LEVELS)), np.zeros((number, kernels.LEVELS), dtype=np.int64)
    near = kernels.NEAR if ranks.size == 1 else kernels.LEVELS  # of several processes, none knows what the others have
    kernels.level_rows(bounds, *x, factor, highest, near, loss.tail_mass, masses, counts)
    all_masses, all_counts = ranks.sum(torch.from_numpy(np.stack([masses, counts]))).numpy()
    kept, left_out = levels_that_matter(all_masses, all_counts, loss.tail_mass, loss.most_kept)
    offsets = cumulative((counts * (np.arange(kernels.LEVELS) < kept[:, None])).sum(1))
    found = np.empty(offsets[-1], dtype=np.int32)
    kernels.collect_rows(bounds, *x, factor, highest, kept, offsets, found)
    return Kept(mean, factor, highest, left_out, offsets, found)


def levels_that_matter(masses: np.ndarray, counts: np.ndarray, tail_mass: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """How many whole nats below the highest suffice for what lies below to weigh no more than ``tail_mass`` of all.

    Args:
        masses, counts: (n, LEVELS) what lies in each nat below the highest.
        tail_mass: share of the mass that may lie below.
        most: candidates that may lie within, even if more lies below then.

    Returns:
        (n,) the smallest such numbers, at least 1; (n,) what lies below each.
    """
    from_below = np.cumsum(masses[:, ::-1], axis=1)[:, ::-1]  # from each level on downwards
    kept = 1 + (from_below[:, 1:] > tail_mass * from_below[:, :1]).sum(1)
    kept = np.minimum(kept, np.maximum((np.cumsum(counts, axis=1) <= most).sum(1), 1))
    below = np.concatenate([from_below, np.zeros((len(masses), 1))], axis=1)
    return kept, np.take_along_axis(below, kept[:, None], axis=1)[:, 0]


def _add_gradient(embeddings: Tensor, side: Side, rows: LossRows, kept: Kept, loss: NormalizedHardSampleMining, grad: Tensor) -> Tensor:
    """Spread dL/dx over anchors, counterparts and candidates; the value.

    x(e) = const + |a - b|^2 - |a - h_e|^2:  dx/da = 2 (h_e - b),  dx/db = -2 (a - b),  dx/dh_e = 2 (a - h_e).
    """
    batch = len(side.anchors)
    anchors, others, pool = embeddings[side.anchors], embeddings[side.others], embeddings[side.low : side.high].numpy()
    total, pulled, masses = torch.empty((batch, 1), dtype=embeddings.dtype), torch.empty_like(anchors), np.empty(batch)
    weights = np.empty(len(kept.columns), dtype=pool.dtype)
    x = (pool, rows.norms, anchors.numpy(), rows.anchor_norms, rows.positive, loss.margin, rows.first, rows.second, kept.factor, kept.highest)
    kernels.weigh_rows(stretches(kept.offsets), kept.offsets, kept.columns, *x, weights, total[:, 0].numpy(), masses, pulled.numpy())
    masses = kept.left_out + loss.ranks.sum(torch.from_numpy(masses)).numpy()
    with np.errstate(all="ignore"):  # what is not finite shows in the loss
        scale = kept.factor / (masses * batch)  # from a weight to dL/dx
        values = kept.factor * (kept.highest - kept.mean) + loss.shift + np.log(masses)
    weights *= np.repeat(scale, np.diff(kept.offsets)).astype(weights.dtype)
    starts, entries, turned = kernels.transpose_entries(kept.offsets, kept.columns, weights, len(pool))  # type: ignore[no-untyped-call]
    kernels.push_rows(stretches(starts), starts, entries, turned, anchors.numpy(), pool, grad[side.low : side.high].numpy())
    scales = torch.from_numpy(scale).to(embeddings.dtype).unsqueeze(1)
    grad.index_add_(0, side.anchors, (pulled - total * others).mul_(2 * scales))
    grad.index_add_(0, side.others, (anchors - others).mul_(total * -2 * scales))
    return embeddings.new_tensor(values.sum() / batch)
