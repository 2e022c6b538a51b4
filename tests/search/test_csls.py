"""CSLS against the formula, and one score for a pair wherever it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import engine.search.csls as csls_module
import engine.search.ranks as ranks_module
from engine.errors import TrainingError
from engine.search import TIE_TOLERANCE, Similarity, csls_query, csls_topk, hubness, normalise_rows, pair_csls, true_ranks
from tests.effort import examples
from tests.reference import csls as reference
from tests.reference.ranks import best_ranks
from tests.search.graphs import clustered, noisy_copies


@pytest.mark.parametrize(("n", "m", "k"), [(20, 30, 10), (4, 3, 10), (1, 1, 1), (1, 5, 3)])
def test_hubness_and_matches_follow_the_formula(index: str, device: torch.device, n: int, m: int, k: int) -> None:
    source, target = noisy_copies(n, m, 8)
    scores = reference.csls_matrix(source.double().numpy(), target.double().numpy(), k)
    of_source, of_target = reference.hubness(reference.cosine_matrix(source.double().numpy(), target.double().numpy()), k)
    result = csls_topk(source.to(device), target.to(device), k, 4, index)
    np.testing.assert_allclose(result.hubness.source.cpu(), of_source, atol=1e-6)
    np.testing.assert_allclose(result.hubness.target.cpu(), of_target, atol=1e-6)
    for matches, table in ((result.source_to_target, scores), (result.target_to_source, scores.T)):
        expected = np.argsort(-table, axis=1, kind="stable")[:, :4]
        np.testing.assert_array_equal(matches.indices.cpu(), expected)
        np.testing.assert_allclose(matches.csls.cpu(), np.take_along_axis(table, expected, axis=1), atol=1e-5)


def test_a_pair_has_the_same_scores_everywhere(index: str, device: torch.device) -> None:
    source, target = (part.to(device) for part in clustered(300))
    result = csls_topk(source, target, 10, 5, index)
    terms, matches = result.hubness, result.source_to_target
    pairs = torch.stack([torch.arange(300, device=device).repeat_interleave(5), matches.indices.flatten()], dim=1)
    scores = pair_csls(source, target, pairs, terms)
    assert torch.equal(scores.csls, matches.csls.flatten())
    assert torch.equal(scores.cosine, matches.cosine.flatten())

    alone = csls_query(source[7:8], target, terms.source[7:8], terms.target, 5, index)
    assert torch.equal(alone.indices[0], matches.indices[7])
    assert torch.equal(alone.csls[0], matches.csls[7])

    back = result.target_to_source
    flipped = pair_csls(target, source, torch.stack([torch.arange(300, device=device), back.indices[:, 0]], dim=1), terms.flipped())
    assert torch.equal(flipped.csls, back.csls[:, 0])


def test_matches_are_scored_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, index: str, device: torch.device) -> None:
    source, target = (part.to(device) for part in clustered(50))
    whole = csls_topk(source, target, 10, 5, index)
    monkeypatch.setattr(csls_module, "SCORED_AT_ONCE", 7 * 5)
    parts = csls_topk(source, target, 10, 5, index)
    for found, expected in ((parts.source_to_target, whole.source_to_target), (parts.target_to_source, whole.target_to_source)):
        assert torch.equal(found.indices, expected.indices)
        assert torch.equal(found.cosine, expected.cosine)
        assert torch.equal(found.csls, expected.csls)


def test_ranks_are_the_positions_in_the_list_of_matches(device: torch.device) -> None:
    source, target = (part.to(device) for part in clustered(200))
    result = csls_topk(source, target, 10, 200)
    links = torch.arange(200, device=device)[:, None].expand(200, 2)
    ranks = true_ranks(source, target, links, result.hubness)
    for found, matches in ((ranks.source_to_target, result.source_to_target), (ranks.target_to_source, result.target_to_source)):
        positions = (matches.indices == links[:, :1]).nonzero()[:, 1] + 1
        assert torch.equal(found.ranks, positions)
        assert torch.equal(found.queries, links[:, 0])


@settings(max_examples=examples(40), deadline=None)
@given(
    n=st.integers(1, 12),
    m=st.integers(1, 12),
    k=st.integers(1, 12),
    top=st.integers(0, 12),
    budget=st.integers(4, 400),
    seed=st.integers(0, 2**16),
    data=st.data(),
)
def test_ranks_agree_with_the_obvious_version(n: int, m: int, k: int, top: int, budget: int, seed: int, data: st.DataObject) -> None:
    """Rows from few whole numbers, so that many entities are equal, and links of any shape; with lists of the best matches at hand and without."""
    rng = np.random.default_rng(seed)
    source, target = (normalise_rows(torch.from_numpy(rng.integers(-1, 2, size=(size, 3)).astype(np.float32))) for size in (n, m))
    links = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, m - 1)), max_size=15))
    scores = reference.csls_matrix(source.double().numpy(), target.double().numpy(), k)
    scores = reference.unknown_lowest(scores, source.numpy(), target.numpy())
    lists = csls_topk(source, target, k, top) if top else None
    found = true_ranks(source, target, torch.tensor(links, dtype=torch.int64).reshape(-1, 2), hubness(source, target, k), budget, lists)
    for ranks, table, pairs in ((found.source_to_target, scores, links), (found.target_to_source, scores.T, [(t, s) for s, t in links])):
        assert dict(zip(ranks.queries.tolist(), ranks.ranks.tolist(), strict=True)) == best_ranks(table, pairs, TIE_TOLERANCE)


def test_of_entities_that_lists_settle_no_scores_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = noisy_copies(300, 300, 32)
    links = torch.arange(300)[:, None].expand(300, 2)
    lists = csls_topk(source, target, 10, 5)
    computed = []
    everything = ranks_module.count_better

    def counted(shifted: Similarity, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
        computed.append(shifted.shape)
        return everything(shifted, *rest)

    monkeypatch.setattr(ranks_module, "count_better", counted)
    plain = true_ranks(source, target, links, lists.hubness)
    quick = true_ranks(source, target, links, lists.hubness, lists=lists)
    for one, other in ((plain.source_to_target, quick.source_to_target), (plain.target_to_source, quick.target_to_source)):
        assert torch.equal(one.ranks, other.ranks)
    last = [int((found.ranks >= 5).sum()) for found in (quick.source_to_target, quick.target_to_source)]  # where a list ends, equal ones may follow
    assert computed == [(300, 300), (last[0], 300), (300, last[1])]
    assert 0 < min(last) <= max(last) < 150


@pytest.mark.parametrize("copies", [3, 17, 1001])
def test_ties_do_not_count_as_hits(device: torch.device, copies: int) -> None:
    """Blocked products give identical columns values that differ in their last bits (17 and 1001 columns on many CPUs)."""
    source = normalise_rows(torch.from_numpy(np.random.default_rng(0).standard_normal((5, 600)).astype(np.float32))).to(device)
    target = source[:1].repeat(copies, 1)
    links = torch.stack([torch.zeros(copies, dtype=torch.int64), torch.arange(copies)], dim=1).to(device)
    for link in links[:: max(copies // 7, 1)]:
        ranks = true_ranks(source, target, link[None], hubness(source, target)).source_to_target
        assert ranks.ranks.tolist() == [copies]
    assert true_ranks(source, target, links, hubness(source, target)).source_to_target.ranks.tolist() == [1], "they are all right here"


def test_hubs_are_pushed_back() -> None:
    """A target that is fairly near to everything beats no counterpart under CSLS, where cosine prefers it."""
    source = normalise_rows(torch.eye(6) + 0.7)
    target = normalise_rows(torch.cat([torch.eye(6) - 0.02, torch.ones(1, 6)]))
    terms = hubness(source, target, 3)
    links = torch.arange(6)[:, None].expand(6, 2)
    assert (source @ target.T).argmax(dim=1).tolist() == [6] * 6
    assert true_ranks(source, target, links, terms).source_to_target.ranks.tolist() == [1] * 6
    assert csls_topk(source, target, 3, 1).source_to_target.indices.flatten().tolist() == [0, 1, 2, 3, 4, 5]


def test_empty_pools_and_no_links() -> None:
    some, none = noisy_copies(3, 3, 4)[0], torch.empty(0, 4)
    result = csls_topk(some, none)
    assert result.source_to_target.indices.shape == (3, 0)
    assert result.hubness.source.tolist() == [0, 0, 0]
    ranks = true_ranks(some, some, torch.empty(0, 2, dtype=torch.int64), hubness(some, some))
    assert ranks.source_to_target.ranks.shape == (0,)


def test_values_that_are_not_finite_are_refused(index: str) -> None:
    source, target = noisy_copies(4, 4)
    source[2] = float("nan")
    with pytest.raises(TrainingError, match="not finite"):
        csls_topk(source, target, index=index)
    with pytest.raises(TrainingError, match="not finite"):
        true_ranks(source, target, torch.zeros(1, 2, dtype=torch.int64), hubness(target, target))
