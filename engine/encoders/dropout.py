"""Dropout whose mask is a function of a seed and the position, so that nothing has to be stored and training resumes exactly.

Each value's fate is a 32-bit hash of (seed, row, column) against a threshold; the backward pass computes the mask again. Devices other than the
CPU draw the mask from a seeded generator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from engine.threads import equal_parts, kernel


def dropout(values: Tensor, share: float, seed: int) -> Tensor:
    """Set a share of the values to 0 and scale the rest by 1 / (1 - share).

    Args:
        values: (n, D).
        share: probability of being dropped, in [0, 1); 0 returns ``values``.
        seed: the same seed drops the same positions of the same shape.
    """
    if share == 0:
        return values
    if values.device.type != "cpu":
        generator = torch.Generator(values.device).manual_seed(seed)
        return values * (torch.rand(values.shape, generator=generator, device=values.device) >= share) / (1 - share)
    out: Tensor = _Dropout.apply(values, share, seed)  # type: ignore[no-untyped-call]
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, share: float, seed: int) -> Tensor:
        ctx.share, ctx.seed = share, seed
        return masked(values.detach(), share, seed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return masked(grad, ctx.share, ctx.seed), None, None


def masked(values: Tensor, share: float, seed: int) -> Tensor:
    out = values.clone(memory_format=torch.contiguous_format)
    mask_in_place(out, share, seed)
    return out


def mask_in_place(values: Tensor, share: float, seed: int, first_row: int = 0) -> None:
    """Drop and scale in place; ``values`` (n, D) are the rows from ``first_row`` on."""
    bounds = equal_parts(len(values), values.numel())
    mask_rows(bounds, values.numpy(), np.uint32(seed & 0xFFFFFFFF), np.uint32(share * 2**32), 1 / (1 - share), first_row)


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
def mask_rows(part, bounds, values, seed, threshold, scale, first_row):  # type: ignore[no-untyped-def]
    """values *= scale where the position's hash reaches the threshold, else 0."""
    width = values.shape[1]
    factor = values.dtype.type(scale)
    zero = values.dtype.type(0)
    for i in range(bounds[part], bounds[part + 1]):
        key = scramble(np.uint32(np.uint32(first_row + i) + seed * np.uint32(0x9E3779B9)))
        for k in range(width):
            bits = scramble(np.uint32(key + np.uint32(k) * np.uint32(0x85EBCA6B)))
            values[i, k] = values[i, k] * factor if bits >= threshold else zero
