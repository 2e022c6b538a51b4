"""Proxy matching attention and gate (paper section 4.2), for each channel by itself.

With c = beta Q, the mean proxy that an entity attends to, the paper's two steps come down to

    h_p = h - c,    eta = sigmoid(h_p M + b),    final = eta h + (1 - eta) h_p = h - (1 - eta) c.

(The paper prints h_p twice in the last one; the authors' code has it as above.) The operation works in row blocks that stay in the cache and
computes its intermediates again in the backward pass, so that nothing but h itself has to be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from engine.encoders.dropout import dropout, mask_in_place

BLOCK_ROWS = 2048  # on a CPU: 2048 x 300 float32 values are 2.4 MB
EPSILON = 1e-12


class Parts(NamedTuple):
    """What proxy matching makes of a block of n rows of width D, with P proxies."""

    similarity: Tensor  # (n, P) cosine with each proxy
    attention: Tensor  # (n, P) beta
    proxy: Tensor  # (n, D) c = beta Q
    gate: Tensor  # (n, D) eta


def match_proxies(hidden: Tensor, proxies: Tensor, gate_weight: Tensor, gate_bias: Tensor, share: float = 0.0, seed: int = 0) -> Tensor:
    """final = h - (1 - eta) beta Q for each channel, then dropout.

    Args:
        hidden: (E, C, D) multi-hop embeddings h.
        proxies: (C, P, D) proxy vectors Q.
        gate_weight: (C, D, D) M, applied from the right.
        gate_bias: (C, D) b.
        share, seed: dropout on the result (:func:`engine.encoders.dropout.dropout` on (E, C D), with the same mask).

    Returns:
        (E, C D) the channels' final embeddings, side by side.
    """
    fused = share if hidden.device.type == "cpu" else 0.0
    out: Tensor = _MatchProxies.apply(hidden, proxies, gate_weight, gate_bias, fused, seed)  # type: ignore[no-untyped-call]
    return dropout(out, share - fused, seed)


def proxy_parts(hidden: Tensor, proxies: Tensor, gate_weight: Tensor, gate_bias: Tensor) -> Parts:
    """Similarities, attention, mean proxy and gate of the given rows; for analysis and explanation, too."""
    similarity = unit_rows(hidden) @ unit_rows(proxies).T
    attention = torch.softmax(similarity, dim=-1)
    proxy = attention @ proxies
    gate = torch.sigmoid(torch.addmm(gate_bias, hidden - proxy, gate_weight))
    return Parts(similarity, attention, proxy, gate)


def unit_rows(matrix: Tensor) -> Tensor:
    """Rows scaled to length 1; zero rows stay zero."""
    unit: Tensor = matrix / row_norms(matrix)
    return unit


def row_norms(matrix: Tensor) -> Tensor:
    """(n, 1) lengths of the rows, at least a tiny positive number."""
    norms: Tensor = torch.linalg.vector_norm(matrix, dim=-1, keepdim=True)
    return norms.clamp_min(EPSILON)


def row_blocks(rows: int, device: torch.device) -> Iterator[slice]:
    """Blocks that fit the cache on a CPU; everything at once elsewhere."""
    step = BLOCK_ROWS if device.type == "cpu" else max(rows, 1)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


class _MatchProxies(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, proxies: Tensor, gate_weight: Tensor, gate_bias: Tensor, share: float, seed: int) -> Tensor:
        ctx.save_for_backward(hidden, proxies, gate_weight, gate_bias)
        ctx.share, ctx.seed = share, seed
        out = torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
        for rows in row_blocks(len(hidden), hidden.device):
            for c in range(hidden.shape[1]):
                block = hidden[rows, c]
                parts = proxy_parts(block, proxies[c], gate_weight[c], gate_bias[c])
                out[rows, c] = torch.addcmul(block, parts.gate.sub_(1), parts.proxy)
            mask_block(out[rows], share, seed, rows.start)
        return out.flatten(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        hidden, proxies, gate_weight, gate_bias = ctx.saved_tensors
        grad = grad.reshape(hidden.shape)
        dhidden = torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
        sums = [torch.zeros_like(one) for one in (proxies, proxies, gate_weight, gate_bias)]
        for rows in row_blocks(len(hidden), hidden.device):
            from_above = mask_block(grad[rows].clone(), ctx.share, ctx.seed, rows.start)
            for c in range(hidden.shape[1]):
                parameters = (proxies[c], gate_weight[c], gate_bias[c])
                dhidden[rows, c] = block_backward(hidden[rows, c], from_above[:, c], parameters, [one[c] for one in sums])
        dproxies, dunit_proxies, dweight, dbias = sums
        dproxies += unit_backward(unit_rows(proxies), row_norms(proxies), dunit_proxies)
        return dhidden, dproxies, dweight, dbias, None, None


def mask_block(block: Tensor, share: float, seed: int, first_row: int) -> Tensor:
    """Dropout on rows ``first_row`` .. of the whole, in place."""
    if share:
        mask_in_place(block.flatten(1), share, seed, first_row)
    return block


def block_backward(block: Tensor, from_above: Tensor, parameters: tuple[Tensor, Tensor, Tensor], sums: list[Tensor]) -> Tensor:
    """Gradient of one channel's block of rows; adds to the sums for proxies (direct, through their unit rows), gate weight and bias."""
    proxies, gate_weight, gate_bias = parameters
    dproxies, dunit_proxies, dweight, dbias = sums
    parts = proxy_parts(block, proxies, gate_weight, gate_bias)
    closed = 1 - parts.gate
    dlogit = (from_above * parts.proxy).mul_(parts.gate).mul_(closed)  # through eta
    dweight.addmm_((block - parts.proxy).T, dlogit)
    dbias += dlogit.sum(0)
    dinput = dlogit @ gate_weight.T  # through h_p = h - c
    dproxy = closed.mul_(from_above).add_(dinput).neg_()  # dc
    dproxies.addmm_(parts.attention.T, dproxy)
    dattention = dproxy @ proxies.T
    dsimilarity = parts.attention * (dattention - (parts.attention * dattention).sum(-1, keepdim=True))
    norms = row_norms(block)
    unit = block / norms
    dunit_proxies.addmm_(dsimilarity.T, unit)
    return dinput.add_(from_above).add_(unit_backward(unit, norms, dsimilarity @ unit_rows(proxies)))


def unit_backward(unit: Tensor, norms: Tensor, grad: Tensor) -> Tensor:
    """Gradient of ``unit_rows`` with respect to its input."""
    return (grad - unit * (unit * grad).sum(-1, keepdim=True)) / norms
