"""One pass over the scores finds what two passes and the formula find, however little its estimates can prove."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.errors import TrainingError
from engine.search import ExactIndex, SearchIndex, StructuralSimilarity, csls_topk, normalise_rows
from engine.search import exact as module
from engine.search.exact import fits_one_pass, search_in_one_pass
from tests.effort import examples
from tests.reference import csls as reference
from tests.search.graphs import clustered, noisy_copies


class Counting(StructuralSimilarity):
    """Counts the pairs that blocks are computed of; parts of it count for the whole."""

    def __init__(self, source: Tensor, target: Tensor, counter: list[int] | None = None) -> None:
        super().__init__(source, target)
        self.counter = [0] if counter is None else counter

    def block(self, rows: slice, columns: slice, out: Tensor | None = None) -> Tensor:
        found = super().block(rows, columns, out)
        self.counter[0] += found.numel()
        return found

    def select(self, rows: Tensor, columns: Tensor) -> Counting:
        return Counting(self.source[rows], self.target[columns], self.counter)


def height_of(rows: int, similarity: StructuralSimilarity) -> int:
    """A budget that gives tiles a number of rows."""
    return 4 * rows * similarity.shape[1]


def hubs(n: int, m: int) -> tuple[Tensor, Tensor]:
    """Early sources are random, the late ones crowd around half of the targets: estimates from the early ones are worth nothing."""
    source, target = noisy_copies(n, m, 8, noise=0.1, seed=3)
    rng = torch.Generator().manual_seed(0)
    crowd = target[torch.randint(m // 2, (n - n // 3,), generator=rng)]
    return torch.cat([source[: n // 3], normalise_rows(crowd + 0.05 * source[n // 3 :])]), target


def assert_same(similarity: StructuralSimilarity, k: int, top: int, budget: int) -> None:
    """As by the formula: the terms, the scores along each list, and the pairs wherever no others score as high."""
    found = search_in_one_pass(similarity, k, top, budget)
    source, target = similarity.source.double().numpy(), similarity.target.double().numpy()
    expected_terms = reference.with_zeros_last(reference.hubness(source @ target.T, k), source, target)
    for terms, expected in zip((found.terms.source, found.terms.target), expected_terms, strict=True):
        np.testing.assert_allclose(terms, expected, atol=1e-6)
    half = reference.csls_matrix(source, target, k) / 2
    for best, table in ((found.of_source, half), (found.of_target, half.T)):
        assert best.indices.shape == (len(table), min(top, table.shape[1]))
        assert all(len(set(row)) == len(row) for row in best.indices.tolist())
        np.testing.assert_allclose(best.values, -np.sort(-table, axis=1)[:, :top], atol=2e-6)
        np.testing.assert_allclose(best.values, np.take_along_axis(table, best.indices.numpy(), axis=1), atol=2e-6)


@pytest.mark.parametrize("k", [3, 30])
def test_tiles_take_no_more_than_is_enough(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """Nor fewer rows than estimates need."""
    source, target = noisy_copies(90, 50, 8)
    similarity, heights = StructuralSimilarity(source, target), []
    taken = module.Scan.take

    def noting(self: module.Scan, tile: module.Tile) -> None:
        heights.append(len(tile.scores))
        taken(self, tile)

    monkeypatch.setattr(module, "ENOUGH_BUDGET", height_of(5, similarity))
    monkeypatch.setattr(module, "LEAST_ROWS", 20)
    monkeypatch.setattr(module.Scan, "take", noting)
    assert_same(similarity, k, 5, height_of(80, similarity))
    assert heights[0] == max(k, 20)


@settings(max_examples=examples(60), deadline=None)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 40),
    k=st.integers(1, 6),
    top=st.integers(1, 5),
    rows=st.integers(1, 12),
    spare=st.integers(0, 4),
    levels=st.sampled_from([0, 1, 2]),
    seed=st.integers(0, 2**16),
)
def test_finds_what_the_formula_finds(n: int, m: int, k: int, top: int, rows: int, spare: int, levels: int, seed: int) -> None:
    """Also of rows from few whole numbers, so that many are equal, and with lists so short that nearly everything is looked at again."""
    rng = np.random.default_rng(seed)
    values = (rng.integers(-levels, levels + 1, size=(size, 3)) if levels else rng.standard_normal((size, 3)) for size in (n, m))
    similarity = StructuralSimilarity(*(normalise_rows(torch.from_numpy(part.astype(np.float32))) for part in values))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "SPARE", spare)
        patched.setattr(module, "ROWS_AGAIN", 5)
        patched.setattr(module, "COLUMNS_AGAIN", 7)
        assert_same(similarity, k, top, height_of(max(rows, k), similarity))


@pytest.mark.parametrize("spare", [0, 4])
def test_misleading_estimates_are_found_out(spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPARE", spare)
    similarity = Counting(*hubs(240, 120))
    assert_same(similarity, 5, 3, height_of(40, similarity))
    assert similarity.counter[0] > 240 * 120, "nothing was looked at again: this test shows nothing"


def test_most_pairs_are_computed_once() -> None:
    similarity = Counting(*clustered(2000))
    found = csls_topk(similarity, 10, 5, ExactIndex(height_of(256, similarity)))
    assert 2000**2 <= similarity.counter[0] < 1.3 * 2000**2
    plain = StructuralSimilarity(similarity.source, similarity.target)
    twice = csls_topk(plain, 10, 5, terms=found.hubness)
    for one, other in ((found.source_to_target, twice.source_to_target), (found.target_to_source, twice.target_to_source)):
        assert torch.equal(one.csls, other.csls)
        assert torch.equal(one.indices, other.indices)


def test_too_flat_tiles_take_two_passes() -> None:
    similarity = Counting(*noisy_copies(600, 500))
    flat = height_of(255, similarity)
    assert fits_one_pass(similarity, 10, height_of(256, similarity))
    assert not fits_one_pass(similarity, 10, flat)
    assert not fits_one_pass(similarity, 300, height_of(299, similarity)), "fewer rows in a tile than neighbours to average over"
    assert not fits_one_pass(StructuralSimilarity(torch.zeros(0, 3), torch.zeros(4, 3)), 1, flat)
    one, two = (ExactIndex(budget).search_csls(similarity, 10, 4) for budget in (height_of(300, similarity), flat))
    torch.testing.assert_close(one.of_source.values, two.of_source.values, atol=2e-6, rtol=0)
    torch.testing.assert_close(one.of_target.values, two.of_target.values, atol=2e-6, rtol=0)


def test_values_that_are_not_finite_are_refused() -> None:
    source, target = noisy_copies(20, 20)
    source[3, 1] = torch.nan
    with pytest.raises(TrainingError, match="row 3"):
        search_in_one_pass(StructuralSimilarity(source, target), 3, 3, 2**20)


def test_several_threads_find_the_same() -> None:
    similarity = StructuralSimilarity(*clustered(1500))
    index: SearchIndex = ExactIndex()
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append(index.search_csls(similarity, 10, 10))
    finally:
        torch.set_num_threads(threads)
    for one, other in ((found[0].of_source, found[1].of_source), (found[0].of_target, found[1].of_target)):
        torch.testing.assert_close(one.values, other.values, atol=1e-6, rtol=0)
