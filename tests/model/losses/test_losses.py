"""The losses against their slow twins, and what is promised of the truncation."""

from __future__ import annotations

from typing import get_type_hints

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import LossConfig, choices
from engine.model.losses import LOSSES, NegativeCandidates, NormalizedHardSampleMining, Triplet, Truncated, build_loss, softmax_cross_entropy
from tests.effort import examples
from tests.reference.dual_amn import hard_sample_mining


def batch(
    entities: int, source: int, pairs: int, width: int = 6, seed: int = 0, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(entities, width, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
    left = torch.randint(0, source, (pairs,), generator=generator)
    right = torch.randint(source, entities, (pairs,), generator=generator)
    return embeddings, torch.stack([left, right], dim=1)


def value_and_gradient(loss, embeddings: torch.Tensor, pairs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[no-untyped-def]
    value = loss(embeddings, pairs, seed=0)
    return value.detach(), torch.autograd.grad(value, embeddings)[0]


@pytest.mark.parametrize("scope", ["both", "other"])
@pytest.mark.parametrize("scale", [30.0, 3.0])
@pytest.mark.parametrize("tail_mass", [0.0, 1e-12], ids=["dense", "sparse"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-8), (torch.float32, 2e-3)], ids=["float64", "float32"])
def test_hard_sample_mining_agrees_with_the_formula(scope: str, scale: float, tail_mass: float, dtype: torch.dtype, tolerance: float) -> None:
    embeddings, pairs = batch(40, 18, 9, dtype=dtype)
    loss = NormalizedHardSampleMining(NegativeCandidates(18, 22, scope), scale=scale, tail_mass=tail_mass)
    value, gradient = value_and_gradient(loss, embeddings, pairs)
    exact = embeddings.detach().double().requires_grad_()
    slow = hard_sample_mining(exact, [tuple(map(int, pair)) for pair in pairs], 18, scope, 1.0, scale, 10.0)
    (expected,) = torch.autograd.grad(slow, exact)
    torch.testing.assert_close(value.double(), slow.detach(), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(gradient.double(), expected, rtol=tolerance, atol=tolerance * expected.abs().max().item())


def test_softmax_agrees_with_the_formula() -> None:
    embeddings, pairs = batch(30, 14, 7)
    value, gradient = value_and_gradient(softmax_cross_entropy(NegativeCandidates(14, 16), 1.0), embeddings, pairs)
    slow = hard_sample_mining(embeddings, [tuple(map(int, pair)) for pair in pairs], 14, "both", 1.0, 1.0, 0.0, normalise=False)
    torch.testing.assert_close(value, slow.detach())
    torch.testing.assert_close(gradient, torch.autograd.grad(slow, embeddings)[0])


@pytest.mark.parametrize("tail_mass", [0.3, 0.01, 1e-4])
@pytest.mark.parametrize("scale", [30.0, 5.0])
def test_truncation_leaves_out_no_more_than_granted(tail_mass: float, scale: float) -> None:
    """Per row and counterpart, the gradient's coefficients lose at most the granted share; so does the gradient as a whole."""
    embeddings, pairs = batch(3000, 1400, 64, width=20, seed=4)
    candidates = NegativeCandidates(1400, 1600)
    exact, full = value_and_gradient(NormalizedHardSampleMining(candidates, scale=scale, tail_mass=0.0), embeddings, pairs)
    value, cut = value_and_gradient(NormalizedHardSampleMining(candidates, scale=scale, tail_mass=tail_mass), embeddings, pairs)
    torch.testing.assert_close(value, exact, rtol=1e-6, atol=1e-6)  # the value is not truncated
    assert (cut - full).norm() <= 2 * tail_mass * full.norm()
    assert not torch.equal(cut, full) or tail_mass < 1e-3


@settings(max_examples=examples(25), deadline=None)
@given(entities=st.integers(2, 30), pairs=st.integers(1, 12), scope=st.sampled_from(["both", "other"]), seed=st.integers(0, 999))
def test_sparse_and_dense_agree_on_any_batch(entities: int, pairs: int, scope: str, seed: int) -> None:
    source = max(1, entities // 2)
    embeddings, links = batch(entities, source, pairs, seed=seed)
    results = []
    for tail_mass in (0.0, 1e-13):
        loss = NormalizedHardSampleMining(NegativeCandidates(source, entities - source, scope), scale=4.0, tail_mass=tail_mass)
        results.append(value_and_gradient(loss, embeddings, links))
    torch.testing.assert_close(results[0], results[1], rtol=1e-6, atol=1e-8)


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, pairs = batch(50, 25, 20)
    loss = NormalizedHardSampleMining(NegativeCandidates(25, 25), tail_mass=1e-12)
    whole = value_and_gradient(loss, embeddings, pairs)
    monkeypatch.setattr("engine.model.losses.nhsm.BLOCK_BYTES", 50 * 8 * 3)
    torch.testing.assert_close(value_and_gradient(loss, embeddings, pairs), whole)


@pytest.mark.parametrize("scope", ["both", "other"])
def test_screening_by_rounded_products_hardly_moves_the_result(scope: str) -> None:
    """What matters is scored in full: rounding only decides what counts as negligible, and moves mean and deviation a little."""
    embeddings, pairs = batch(3000, 1400, 64, width=60, seed=4, dtype=torch.float32)
    loss = NormalizedHardSampleMining(NegativeCandidates(1400, 1600, scope), tail_mass=0.001)
    value, gradient = value_and_gradient(loss, embeddings, pairs)
    rounded = loss(embeddings, pairs, rounded=True)
    (found,) = torch.autograd.grad(rounded, embeddings)
    assert not torch.equal(found, gradient)
    torch.testing.assert_close(rounded.detach(), value, rtol=1e-4, atol=0)
    assert (found - gradient).norm() < 0.01 * gradient.norm()


def test_identical_embeddings_give_finite_values() -> None:
    embeddings = torch.ones(20, 4, requires_grad=True)
    pairs = torch.tensor([[0, 10], [1, 11]])
    for tail_mass in (0.0, 0.01):
        value, gradient = value_and_gradient(NormalizedHardSampleMining(NegativeCandidates(10, 10), tail_mass=tail_mass), embeddings, pairs)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()


def test_truncated_takes_the_nearest() -> None:
    embeddings, pairs = batch(30, 15, 1, width=3)
    u, v = map(int, pairs[0])
    with torch.no_grad():
        expected = 0.0
        for anchor, other in ((u, v), (v, u)):
            distances = (embeddings - embeddings[anchor]).square().sum(1)
            positive = distances[other]
            keep = [float(distances[e]) for e in range(30) if e not in (u, v)]
            expected += np.mean([max(0.0, 1.0 + float(positive) - d) for d in sorted(keep)[:4]])
    assert float(Truncated(NegativeCandidates(15, 15), hardest=4)(embeddings, pairs, seed=0).detach()) == pytest.approx(expected)


def test_triplet_draws_by_seed() -> None:
    embeddings, pairs = batch(200, 100, 30)
    loss = Triplet(NegativeCandidates(100, 100))
    first, again, other = (float(loss(embeddings, pairs, seed=seed).detach()) for seed in (1, 1, 2))
    assert first == again != other


def test_the_losses_are_the_choices_of_the_setting() -> None:
    assert set(LOSSES) == set(choices(get_type_hints(LossConfig)["kind"]))


@pytest.mark.parametrize("kind", LOSSES)
def test_every_loss_can_be_minimised(kind: str) -> None:
    """A few steps of plain descent pull the pairs together relative to the rest."""
    embeddings, pairs = batch(60, 30, 10, dtype=torch.float32, seed=2)
    pairs = torch.stack([torch.arange(10), torch.arange(30, 40)], dim=1)
    loss = build_loss(LossConfig(kind=kind), 30, 30)
    optimiser = torch.optim.Adam([embeddings], lr=0.05)

    def share() -> float:
        with torch.no_grad():
            distances = torch.cdist(embeddings[pairs[:, 0]], embeddings)
            return float((distances[torch.arange(10), pairs[:, 1]] / distances.mean(1)).mean())

    before = share()
    for step in range(40):
        optimiser.zero_grad()
        loss(embeddings, pairs, seed=step).backward()
        optimiser.step()
    assert share() < 0.6 * before
