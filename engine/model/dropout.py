"""Dropout whose mask is a function of a seed and the position, so that nothing has to be stored and training resumes exactly.

Each value's fate is a 32-bit hash of (seed, entity, column) against a threshold; the backward pass computes the mask again. The mask is the same on
every device, and the same for an entity whatever other entities are computed beside it: in a sample, or by another process.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from engine.util.devices import block_of, has_kernels
from engine.util.threads import cut, equal_parts, kernel

WORD = 0xFFFFFFFF
BITS_BYTES = 32
"""Temporaries of a value where torch makes the mask: four of eight bytes at a time."""


class Dropped(NamedTuple):
    """What is left out: a share in [0, 1) of the values, drawn by a seed; row i of the values is entity ``rows[i]``, or i where that is None."""

    share: float = 0.0
    seed: int = 0
    rows: Tensor | None = None  # (n,)

    def block(self, rows: slice, device: torch.device) -> Dropped:
        """The same for rows of the values, which are on a device."""
        chosen = torch.arange(rows.start, rows.stop, device=device) if self.rows is None else self.rows[rows]
        return self._replace(rows=chosen)


NOTHING = Dropped()


def dropout(values: Tensor, dropped: Dropped) -> Tensor:
    """Set a share of the (n, D) values to 0 and scale the rest by 1 / (1 - share); a share of 0 returns ``values``."""
    if not dropped.share:
        return values
    out: Tensor = _Dropout.apply(values, dropped)  # type: ignore[no-untyped-call]
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, dropped: Dropped) -> Tensor:
        ctx.dropped = dropped
        return masked(values.detach(), dropped)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return masked(grad, ctx.dropped), None


def masked(values: Tensor, dropped: Dropped) -> Tensor:
    return mask_in_place(values.clone(memory_format=torch.contiguous_format), dropped)


def mask_in_place(values: Tensor, dropped: Dropped) -> Tensor:
    """Drop and scale the (n, D) values in place."""
    if not dropped.share:
        return values
    rows = torch.arange(len(values), device=values.device) if dropped.rows is None else dropped.rows
    threshold, scale = int(dropped.share * 2**32), 1 / (1 - dropped.share)
    if has_kernels(values.device):
        mask_rows(equal_parts(len(values), values.numel()), values.numpy(), rows.numpy(), np.uint32(dropped.seed & WORD), np.uint32(threshold), scale)
        return values
    for part in cut(len(values), block_of(BITS_BYTES * values.shape[1], values.device)):
        values[part].mul_((position_bits(rows[part], values.shape[1], dropped.seed) >= threshold) * scale)
    return values


@njit(inline="always")
def scramble(x):  # type: ignore[no-untyped-def]
    """A bijective 32-bit mix (two rounds of xorshift and multiply) in which each input bit changes about half the output bits."""
    x ^= x >> np.uint32(16)
    x = np.uint32(x * np.uint32(0x7FEB352D))
    x ^= x >> np.uint32(15)
    x = np.uint32(x * np.uint32(0x846CA68B))
    x ^= x >> np.uint32(16)
    return np.uint32(x)


@kernel
def mask_rows(part, bounds, values, rows, seed, threshold, scale):  # type: ignore[no-untyped-def]
    """values *= scale where the position's hash reaches the threshold, else 0."""
    width = values.shape[1]
    factor = values.dtype.type(scale)
    zero = values.dtype.type(0)
    for i in range(bounds[part], bounds[part + 1]):
        key = scramble(np.uint32(np.uint32(rows[i]) + seed * np.uint32(0x9E3779B9)))
        for k in range(width):
            bits = scramble(np.uint32(key + np.uint32(k) * np.uint32(0x85EBCA6B)))
            values[i, k] = values[i, k] * factor if bits >= threshold else zero


def position_bits(rows: Tensor, width: int, seed: int) -> Tensor:
    """(n, D) the hashes that ``mask_rows`` compares, on the rows' device: 32-bit arithmetic in the lower halves of int64."""
    keys = _scrambled((rows + (seed & WORD) * 0x9E3779B9) & WORD)
    columns = (torch.arange(width, device=rows.device) * 0x85EBCA6B) & WORD
    return _scrambled((keys.unsqueeze(1) + columns) & WORD)


def _scrambled(x: Tensor) -> Tensor:
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & WORD
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & WORD
    return x ^ (x >> 16)
