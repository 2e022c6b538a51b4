"""Which candidates a step looks at, and that dividing them among processes changes nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.model.exchange import with_fetched
from engine.model.losses import NegativeCandidates, NormalizedHardSampleMining
from engine.model.sampling import Sample, Sampling
from engine.model.shard import Shard, make_shard
from engine.util.arrays import IntArray
from engine.util.distributed import ALONE, Ranks
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


def own_shard(sampling: Sampling, ranks: ThreadRanks, seed: int = 0) -> Shard:
    """What a process holds of a graph without triples, whose entities are divided at random."""
    owners = np.random.default_rng(seed).integers(0, ranks.size, sampling.num_source + sampling.num_target).astype(np.int32)
    return make_shard(np.empty((0, 3), dtype=np.int64), owners, ranks)[0]


@settings(deadline=None, max_examples=examples(30))
@given(cases(), st.integers(2, 3))
def test_processes_divide_the_same_candidates_among_them(case: tuple[Sampling, Tensor, int], size: int) -> None:
    """Each has those that it owns, fetches its pairs' other members, and finds the pairs among both."""
    sampling, pairs, seed = case

    def work(ranks: ThreadRanks) -> tuple[list[int], Sample, Tensor]:
        shard = own_shard(sampling, ranks, seed)
        sample = dataclasses.replace(sampling, shard=shard).draw(pairs, seed)
        assert sample.rows is not None
        candidates = shard.own_index[sample.rows]
        return candidates.tolist(), sample, with_fetched(candidates, sample.exchange)

    parts = together(size, work)
    for candidates, sample, rows in parts:
        assert torch.equal(rows[sample.pairs], pairs)
        assert len(set(rows.tolist())) == len(rows)
        assert len(candidates) == sample.num_source + sample.num_target
        assert all(one < sampling.num_source for one in candidates[: sample.num_source])
        assert all(one >= sampling.num_source for one in candidates[sample.num_source :])
    everything = [one for candidates, _, _ in parts for one in candidates]
    assert sorted(everything) == sorted(rows_of(sampling.draw(pairs, seed), sampling).tolist())


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("scope", ["both", "other"])
@pytest.mark.parametrize(
    "loss",
    [{}, {"tail_mass": 0.0}, {"tail_mass": 0.0, "normalise": False, "scale": 1.0}, {"rounded": True}],
    ids=["sparse", "dense", "softmax", "bf16"],
)
@pytest.mark.parametrize("owners", ["mixed", "one"])
def test_the_loss_of_divided_candidates_is_that_of_all(size: int, scope: str, loss: dict[str, object], owners: str) -> None:
    """The value in every process, and the gradient of its own entities; also where one process owns everything and the others nothing."""
    options, rounded = {key: value for key, value in loss.items() if key != "rounded"}, "rounded" in loss
    sampling = Sampling(900, 800, share=0.5, batch_size=40)
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.randn(1700, 12, generator=generator, dtype=torch.float32 if rounded else torch.float64)
    pairs = torch.stack([torch.randperm(900, generator=generator)[:40], 900 + torch.randperm(800, generator=generator)[:40]], dim=1)

    def of(sampling: Sampling, ranks: Ranks = ALONE, own: IntArray | None = None) -> tuple[Tensor, Tensor]:
        sample = sampling.draw(pairs, 7)
        assert sample.rows is not None
        mined = NormalizedHardSampleMining(NegativeCandidates(sample.num_source, sample.num_target, scope), **options, ranks=ranks)  # type: ignore[arg-type]
        held = (embeddings if own is None else embeddings[own]).clone().requires_grad_()
        value = mined(with_fetched(held[sample.rows], sample.exchange), sample.pairs, rounded=rounded)
        return value.detach(), torch.autograd.grad(value, held)[0]

    def part(ranks: ThreadRanks) -> tuple[IntArray, Tensor, Tensor]:
        shard = own_shard(sampling, ranks)
        if owners == "one":
            shard = make_shard(np.empty((0, 3), dtype=np.int64), np.full(1700, size - 1, dtype=np.int32), ranks)[0]
        return shard.own, *of(dataclasses.replace(sampling, shard=shard), ranks, shard.own)

    value, gradient = of(sampling)
    tolerance = 1e-4 if rounded else 1e-9
    for own, found, own_gradient in together(size, part):
        torch.testing.assert_close(found, value, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(own_gradient, gradient[own], rtol=tolerance, atol=tolerance * float(gradient.abs().max()))
