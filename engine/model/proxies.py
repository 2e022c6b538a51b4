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

from engine.model.dropout import NOTHING, Dropped, mask_in_place
from engine.util.devices import block_of, has_kernels
from engine.util.threads import cut

BLOCK_ROWS = 2048  # on a CPU: 2048 x 300 float32 values are 2.4 MB
ROUND_ROWS = 512
EPSILON = 1e-12
TEMPORARIES = 8  # of a block, each as large as the block, on other devices


class Parts(NamedTuple):
    """What proxy matching makes of a block of n rows of width D, with P proxies."""

    norms: Tensor  # (n, 1) lengths of the rows
    similarity: Tensor  # (n, P) cosine with each proxy
    attention: Tensor  # (n, P) beta
    proxy: Tensor  # (n, D) c = beta Q
    rest: Tensor  # (n, D) h_p = h - c
    gate: Tensor  # (n, D) eta


def match_proxies(
    hidden: Tensor, proxies: Tensor, gate_weight: Tensor, gate_bias: Tensor, dropped: Dropped = NOTHING, *, rounded: bool = False
) -> Tensor:
    """final = h - (1 - eta) beta Q for each channel, then dropout.

    Args:
        hidden: (n, C, D) multi-hop embeddings h.
        proxies: (C, P, D) proxy vectors Q.
        gate_weight: (C, D, D) M, applied from the right.
        gate_bias: (C, D) b.
        dropped: dropout on the result (:func:`engine.model.dropout.dropout` on (n, C D), with the same mask).
        rounded: take the matrix products of bfloat16 values, forward and backward; h itself, which they correct, is never rounded.

    Returns:
        (n, C D) the channels' final embeddings, side by side.
    """
    out: Tensor = _MatchProxies.apply(hidden, proxies, gate_weight, gate_bias, dropped, rounded)  # type: ignore[no-untyped-call]
    return out


def proxy_parts(hidden: Tensor, proxies: Tensor, gate_weight: Tensor, gate_bias: Tensor) -> Parts:
    """Similarities, attention, mean proxy and gate of the given rows; for analysis and explanation, too."""
    norms = row_norms(hidden)
    similarity = (hidden @ unit_rows(proxies).T).div_(norms)
    attention = torch.softmax(similarity, dim=-1)
    proxy = attention @ proxies
    rest = hidden - proxy
    gate = torch.addmm(gate_bias, rest, gate_weight).sigmoid_()
    return Parts(norms, similarity, attention, proxy, rest, gate)


def unit_rows(matrix: Tensor) -> Tensor:
    """Rows scaled to length 1; zero rows stay zero."""
    unit: Tensor = matrix / row_norms(matrix)
    return unit


def row_norms(matrix: Tensor) -> Tensor:
    """(n, 1) lengths of the rows, at least a tiny positive number."""
    norms: Tensor = torch.linalg.vector_norm(matrix, dim=-1, keepdim=True)
    return norms.clamp_min(EPSILON)


def row_blocks(hidden: Tensor) -> Iterator[slice]:
    """Blocks of (n, ...) rows: on a CPU such that fit the cache, elsewhere as memory allows."""
    if has_kernels(hidden.device):
        return cut(len(hidden), BLOCK_ROWS)
    return cut(len(hidden), block_of(TEMPORARIES * hidden.element_size() * hidden[:1].numel(), hidden.device))


class _MatchProxies(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, proxies: Tensor, gate_weight: Tensor, gate_bias: Tensor, dropped: Dropped, rounded: bool) -> Tensor:
        ctx.save_for_backward(hidden, proxies, gate_weight, gate_bias)
        ctx.dropped, ctx.rounded = dropped, rounded
        parameters = [cast(one, rounded) for one in (proxies, gate_weight, gate_bias)]
        out = torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
        for rows in row_blocks(hidden):
            final, block = out[rows].copy_(hidden[rows]), cast(hidden[rows], rounded)
            for c in range(hidden.shape[1]):
                parts = proxy_parts(channel(block, c), *(one[c] for one in parameters))
                final[:, c] += parts.gate.sub_(1).mul_(parts.proxy)
            mask_in_place(final.flatten(1), dropped.block(rows, hidden.device))
        return out.flatten(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        hidden, *parameters = ctx.saved_tensors
        grad = grad.reshape(hidden.shape)
        dhidden = torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
        sums = [torch.zeros_like(one) for one in (parameters[0], *parameters)]
        rounded = [cast(one, ctx.rounded) for one in parameters]
        for rows in row_blocks(hidden):
            total = dhidden[rows].copy_(grad[rows])
            mask_in_place(total.flatten(1), ctx.dropped.block(rows, hidden.device))
            live = live_rows(total)
            block, from_above = (cast(one[live], ctx.rounded) for one in (hidden[rows], total))
            for c in range(hidden.shape[1]):
                total[live, c] += block_backward(channel(block, c), channel(from_above, c), [one[c] for one in rounded], [one[c] for one in sums])
        dunit_proxies, dproxies, dweight, dbias = sums
        dproxies += unit_backward(unit_rows(parameters[0]), row_norms(parameters[0]), dunit_proxies)
        return dhidden, dproxies, dweight, dbias, None, None


def cast(values: Tensor, rounded: bool) -> Tensor:
    """As bfloat16 where ``rounded``: half the traffic, and products two to three times faster where the CPU has instructions for them."""
    return values.to(torch.bfloat16, memory_format=torch.contiguous_format) if rounded else values


def channel(block: Tensor, number: int) -> Tensor:
    """(n, D) of (n, C, D), in one piece: products of bfloat16 are slow on rows with gaps between them, as is rounding them."""
    return block[:, number].contiguous()


def live_rows(grad: Tensor) -> Tensor | slice:
    """Rows of (n, C, D) through which any gradient flows; on a CPU, where the loss looks at the few candidates that matter, often half of them.

    Some rows without gradient fill the number up to a round one: for each new shape the matrix library would compile and keep a program of its own.
    """
    if not has_kernels(grad.device):
        return slice(None)  # asking would stop the device
    live = grad.flatten(1).any(1)
    number = -(-int(live.sum()) // ROUND_ROWS) * ROUND_ROWS
    return live.argsort(descending=True, stable=True)[:number] if number < len(grad) else slice(None)


def block_backward(block: Tensor, from_above: Tensor, parameters: list[Tensor], sums: list[Tensor]) -> Tensor:
    """Gradient of one channel's block of rows, except for what passes straight through.

    Adds to the sums for unit proxies, proxies, gate weight and bias.
    """
    proxies, gate_weight, _ = parameters
    dunit_proxies, dproxies, dweight, dbias = sums
    parts = proxy_parts(block, *parameters)
    closed = 1 - parts.gate
    dlogit = (from_above * parts.proxy).mul_(parts.gate).mul_(closed)  # through eta
    dweight += parts.rest.T @ dlogit
    dbias += dlogit.sum(0)
    dinput = dlogit @ gate_weight.T  # through h_p = h - c
    dproxy = closed.mul_(from_above).add_(dinput).neg_()  # dc
    dproxies += parts.attention.T @ dproxy
    dattention = dproxy @ proxies.T
    dsimilarity = dattention.sub_((parts.attention * dattention).sum(-1, keepdim=True)).mul_(parts.attention).div_(parts.norms)
    dunit_proxies += dsimilarity.T @ block
    along = (dsimilarity * parts.similarity).sum(-1, keepdim=True).div_(parts.norms)  # a cosine does not change with the row's length
    return dinput.addmm_(dsimilarity, unit_rows(proxies)).addcmul_(block, along, value=-1)


def unit_backward(unit: Tensor, norms: Tensor, grad: Tensor) -> Tensor:
    """Gradient of ``unit_rows`` with respect to its input."""
    return (grad - unit * (unit * grad).sum(-1, keepdim=True)) / norms
