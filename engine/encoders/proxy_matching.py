"""Proxy matching attention and gate (paper section 4.2), one channel at a time.

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

BLOCK_ROWS = 2048  # on a CPU: 2048 x 300 float32 values are 2.4 MB
EPSILON = 1e-12


class Parts(NamedTuple):
    """What proxy matching makes of a block of n rows of width D, with P proxies."""

    similarity: Tensor  # (n, P) cosine with each proxy
    attention: Tensor  # (n, P) beta
    proxy: Tensor  # (n, D) c = beta Q
    gate: Tensor  # (n, D) eta


def match_proxies(hidden: Tensor, proxies: Tensor, gate_weight: Tensor, gate_bias: Tensor) -> Tensor:
    """final = h - (1 - eta) beta Q.

    Args:
        hidden: (E, D) multi-hop embeddings h of one channel; rows may be strided.
        proxies: (P, D) proxy vectors Q.
        gate_weight: (D, D) M, applied from the right.
        gate_bias: (D,) b.

    Returns:
        (E, D) the channel's final embeddings.
    """
    out: Tensor = _MatchProxies.apply(hidden, proxies, gate_weight, gate_bias)  # type: ignore[no-untyped-call]
    return out


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
    def forward(ctx: Any, hidden: Tensor, proxies: Tensor, gate_weight: Tensor, gate_bias: Tensor) -> Tensor:
        ctx.save_for_backward(hidden, proxies, gate_weight, gate_bias)
        out = torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
        for rows in row_blocks(len(hidden), hidden.device):
            parts = proxy_parts(hidden[rows], proxies, gate_weight, gate_bias)
            torch.addcmul(hidden[rows], parts.gate.sub_(1), parts.proxy, out=out[rows])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        hidden, proxies, gate_weight, gate_bias = ctx.saved_tensors
        dhidden = torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
        dproxies, dweight, dbias = torch.zeros_like(proxies), torch.zeros_like(gate_weight), torch.zeros_like(gate_bias)
        dunit_proxies = torch.zeros_like(proxies)
        for rows in row_blocks(len(hidden), hidden.device):
            block, from_above = hidden[rows], grad[rows]
            parts = proxy_parts(block, proxies, gate_weight, gate_bias)
            dlogit = from_above * parts.proxy * parts.gate * (1 - parts.gate)  # through eta
            dweight.addmm_((block - parts.proxy).T, dlogit)
            dbias += dlogit.sum(0)
            dinput = dlogit @ gate_weight.T  # through h_p = h - c
            dproxy = (parts.gate - 1).mul_(from_above).sub_(dinput)  # dc
            dproxies.addmm_(parts.attention.T, dproxy)
            dattention = dproxy @ proxies.T
            dsimilarity = parts.attention * (dattention - (parts.attention * dattention).sum(-1, keepdim=True))
            norms = row_norms(block)
            unit = block / norms
            dunit = dsimilarity @ unit_rows(proxies)
            dunit_proxies.addmm_(dsimilarity.T, unit)
            dhidden[rows] = from_above + dinput + unit_backward(unit, norms, dunit)
        dproxies += unit_backward(unit_rows(proxies), row_norms(proxies), dunit_proxies)
        return dhidden, dproxies, dweight, dbias


def unit_backward(unit: Tensor, norms: Tensor, grad: Tensor) -> Tensor:
    """Gradient of ``unit_rows`` with respect to its input."""
    return (grad - unit * (unit * grad).sum(-1, keepdim=True)) / norms
