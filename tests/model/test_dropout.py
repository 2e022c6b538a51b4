"""Dropout: how much is left out, and that an entity's mask is its own wherever it is computed."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.dropout import Dropped, dropout, position_bits
from tests.effort import examples


def test_the_asked_for_share_is_left_out_and_the_rest_scaled() -> None:
    out = dropout(torch.ones(400, 300), Dropped(0.3, seed=4))
    assert abs(float((out == 0).float().mean()) - 0.3) < 0.005
    assert set(out.unique().tolist()) == {0.0, float(torch.tensor(1 / 0.7))}
    assert torch.equal(dropout(torch.ones(3, 4), Dropped()), torch.ones(3, 4))


def test_the_gradient_goes_where_the_values_went() -> None:
    values = torch.ones(20, 30, requires_grad=True)
    out = dropout(values, Dropped(0.5, seed=1))
    (grad,) = torch.autograd.grad(out.sum(), values)
    assert torch.equal(grad, out.detach())


@settings(deadline=None, max_examples=examples(40))
@given(seed=st.integers(0, 2**32 - 1), rows=st.lists(st.integers(0, 2**31), min_size=1, max_size=9, unique=True), share=st.floats(0.05, 0.9))
def test_a_mask_is_of_the_entity_and_the_same_on_every_device(seed: int, rows: list[int], share: float) -> None:
    """The kernel on CPUs, and the torch operations that other devices run (here on the CPU, too)."""
    entities = torch.tensor(rows)
    out = dropout(torch.ones(len(rows), 70), Dropped(share, seed, entities))
    assert torch.equal(out > 0, position_bits(entities, 70, seed) >= int(share * 2**32))
    alone = dropout(torch.ones(1, 70), Dropped(share, seed, entities[-1:]))
    assert torch.equal(alone[0], out[-1])
