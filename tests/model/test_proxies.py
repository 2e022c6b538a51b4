"""Proxy matching: a gradient that flows through few rows gives what one through all of them gives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.model.proxies import BLOCK_ROWS, ROUND_ROWS, live_rows, match_proxies, proxy_parts

ROWS, WIDTH, PROXIES = BLOCK_ROWS + 700, 6, 4


def inputs() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((ROWS, 2, WIDTH), (2, PROXIES, WIDTH), (2, WIDTH, WIDTH), (2, WIDTH))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


def plain(hidden: Tensor, proxies: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The formula, differentiated by torch."""
    channels = []
    for c in range(2):
        unit = proxies[c] / proxies[c].norm(dim=-1, keepdim=True)
        mean = torch.softmax(hidden[:, c] / hidden[:, c].norm(dim=-1, keepdim=True) @ unit.T, -1) @ proxies[c]
        channels.append(hidden[:, c] - (1 - torch.sigmoid((hidden[:, c] - mean) @ weight[c] + bias[c])) * mean)
    return torch.stack(channels, 1).flatten(1)


@pytest.mark.parametrize("share", [0, 0.01, 0.4, 1])
def test_gradient_through_few_rows(share: float) -> None:
    grad = torch.randn(ROWS, 2 * WIDTH, dtype=torch.float64) * (torch.rand(ROWS, 1, dtype=torch.float64) < share)
    ours, theirs = inputs(), inputs()
    match_proxies(*ours).backward(grad)  # type: ignore[no-untyped-call]
    plain(*theirs).backward(grad)  # type: ignore[no-untyped-call]
    for one, other in zip(ours, theirs, strict=True):
        assert one.grad is not None
        assert other.grad is not None
        torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.parametrize("number", [0, 1, ROUND_ROWS, ROUND_ROWS + 1])
def test_live_rows_are_among_a_round_number(number: int) -> None:
    grad = torch.zeros(4 * ROUND_ROWS, 2, 3)
    alive = torch.randperm(len(grad))[:number]
    grad[alive, 1, 2] = 1
    found = live_rows(grad)
    assert isinstance(found, Tensor)
    assert len(found) % ROUND_ROWS == 0
    assert set(alive.tolist()) <= set(found.tolist())
    assert len(set(found.tolist())) == len(found)


def test_parts_of_one_row_add_up() -> None:
    hidden, proxies, weight, bias = (one.detach() for one in inputs())
    parts = proxy_parts(hidden[:1, 0], proxies[0], weight[0], bias[0])
    torch.testing.assert_close(hidden[:1, 0] - (1 - parts.gate) * parts.proxy, plain(hidden[:1], proxies, weight, bias)[:, :WIDTH])
