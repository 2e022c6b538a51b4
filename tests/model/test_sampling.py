"""Which candidates a step looks at, and that dividing them among processes changes nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.model.losses import NegativeCandidates, NormalizedHardSampleMining
from engine.model.sampling import Sample, Sampling
from tests.effort import examples
from tests.ranks import ThreadRanks, together


@st.composite
def cases(draw: st.DrawFn) -> tuple[Sampling, Tensor, int]:
    """A way of sampling, pairs and a seed."""
    sizes = draw(st.integers(5, 60)), draw(st.integers(5, 60))
    pairs = draw(st.lists(st.tuples(st.integers(0, sizes[0] - 1), st.integers(0, sizes[1] - 1)), min_size=1, max_size=5))
    sampling = Sampling(*sizes, share=draw(st.sampled_from([0.01, 0.3, 0.9, 1.0])), least=draw(st.sampled_from([0, 20])), batch_size=5)
    return sampling, torch.tensor(pairs) + torch.tensor([0, sizes[0]]), draw(st.integers(0, 10**6))


def rows_of(sample: Sample, sampling: Sampling) -> Tensor:
    return torch.arange(sampling.num_source + sampling.num_target) if sample.rows is None else sample.rows


@settings(deadline=None)
@given(cases())
def test_a_sample_holds_its_pairs_and_as_many_others_as_asked_for(case: tuple[Sampling, Tensor, int]) -> None:
    sampling, pairs, seed = case
    sample = sampling.draw(pairs, seed)
    rows = rows_of(sample, sampling)
    assert (sample.num_source, sample.num_target) == sampling.counts
    assert len(rows) == sum(sampling.counts) == len(set(rows.tolist()))
    assert bool((rows[: sample.num_source] < sampling.num_source).all())
    assert bool((rows[sample.num_source :] >= sampling.num_source).all())
    assert torch.equal(rows[sample.pairs], pairs)
    again = sampling.draw(pairs, seed)
    assert torch.equal(rows_of(again, sampling), rows)


def test_small_graphs_are_taken_whole_and_large_ones_by_their_share() -> None:
    assert Sampling(300, 200, share=0.1, least=500).counts == (300, 200)
    assert Sampling(30_000, 20_000, share=0.1, least=500).counts == (3000, 2000)
    assert Sampling(30_000, 20_000, share=0.001, least=500).counts == (300, 200)
    assert Sampling(30_000, 20_000, share=0.001, batch_size=1024).counts == (1024, 1024)


def test_every_entity_is_drawn_as_often_as_any_other() -> None:
    sampling, pairs = Sampling(40, 40, share=0.25, batch_size=4), torch.tensor([[0, 40], [1, 41]])
    times = np.zeros(80)
    for seed in range(2000):
        rows = sampling.draw(pairs, seed).rows
        assert rows is not None
        times[rows.numpy()] += 1
    members, others = times[[0, 1, 40, 41]], np.delete(times, [0, 1, 40, 41])
    assert (members == 2000).all()
    expected = 2000 * 8 / 38
    assert np.abs(others - expected).max() < 5 * np.sqrt(expected)


@settings(deadline=None, max_examples=examples(30))
@given(cases(), st.integers(2, 3))
def test_processes_divide_the_same_candidates_among_them(case: tuple[Sampling, Tensor, int], size: int) -> None:
    sampling, pairs, seed = case
    parts = together(size, lambda ranks: dataclasses.replace(sampling, ranks=ranks).draw(pairs, seed))
    candidates = []
    for part in parts:
        assert part.rows is not None
        assert torch.equal(part.rows[part.pairs], pairs)
        assert len(set(part.rows.tolist())) == len(part.rows)
        candidates += part.rows[: part.num_source + part.num_target].tolist()
    assert sorted(candidates) == sorted(rows_of(sampling.draw(pairs, seed), sampling).tolist())
    for counts in ([part.num_source for part in parts], [part.num_target for part in parts]):
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("scope", ["both", "other"])
@pytest.mark.parametrize(
    "loss",
    [{}, {"tail_mass": 0.0}, {"tail_mass": 0.0, "normalise": False, "scale": 1.0}, {"rounded": True}],
    ids=["sparse", "dense", "softmax", "bf16"],
)
def test_the_loss_of_divided_candidates_is_that_of_all(size: int, scope: str, loss: dict[str, object]) -> None:
    """The value in every process, and the gradient once the processes' shares of it are summed."""
    options, rounded = {key: value for key, value in loss.items() if key != "rounded"}, "rounded" in loss
    sampling = Sampling(900, 800, share=0.5, batch_size=40)
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.randn(1700, 12, generator=generator, dtype=torch.float32 if rounded else torch.float64)
    pairs = torch.stack([torch.randperm(900, generator=generator)[:40], 900 + torch.randperm(800, generator=generator)[:40]], dim=1)

    def of(sampling: Sampling, ranks: ThreadRanks | None = None) -> tuple[Tensor, Tensor]:
        sample = sampling.draw(pairs, 7)
        own = {} if ranks is None else {"ranks": ranks}
        mined = NormalizedHardSampleMining(NegativeCandidates(sample.num_source, sample.num_target, scope), **options, **own)  # type: ignore[arg-type]
        everything = embeddings.clone().requires_grad_()
        value = mined(everything[sample.rows], sample.pairs, rounded=rounded)
        return value.detach(), torch.autograd.grad(value, everything)[0]

    value, gradient = of(sampling)
    parts = together(size, lambda ranks: of(dataclasses.replace(sampling, ranks=ranks), ranks))
    tolerance = 1e-4 if rounded else 1e-9
    for found, _ in parts:
        torch.testing.assert_close(found, value, rtol=tolerance, atol=tolerance)
    summed = torch.stack([part for _, part in parts]).sum(0)
    torch.testing.assert_close(summed, gradient, rtol=tolerance, atol=tolerance * float(gradient.abs().max()))
