"""Search of a similarity whose rows lie in several processes: what one process finds, ties included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch import Tensor

from engine.decoding import find_candidates
from engine.errors import DivergenceError, LostProcessError
from engine.evaluation.metrics import evaluate_links
from engine.search import (
    BestNames,
    CslsTopK,
    LiteralSimilarity,
    SparseSimilarity,
    StructuralSimilarity,
    csls_topk,
    divided,
    hubness,
    normalise_rows,
    true_ranks,
)
from engine.search.divided import DividedSimilarity, asked_together
from engine.search.parts import Part, dealt_out, make_part
from engine.util.arrays import IntArray
from tests.effort import examples
from tests.ranks import ThreadRanks, together

Value = TypeVar("Value")


def owners_of(entities: int, processes: int, seed: int) -> IntArray:
    """Every process has some."""
    drawn = np.random.default_rng(seed).integers(0, processes, entities)
    drawn[:processes] = np.arange(processes)
    return np.random.default_rng(seed + 1).permutation(drawn)


def asked(processes: int, source: Tensor, target: Tensor, ask: Callable[[DividedSimilarity], Value], seed: int = 0) -> Value:
    """What every process ends with, after entities were dealt out by chance."""
    stacked = torch.cat([source, target])
    owners = owners_of(len(stacked), processes, seed)

    def work(ranks: ThreadRanks) -> Value:
        own = np.flatnonzero(owners == ranks.rank)
        return asked_together(make_part(ranks, own, stacked[own], len(source), len(target)), ask)

    first, *others = together(processes, work)
    assert len(others) == processes - 1
    return first


def vectors(n: int, m: int, seed: int = 0, *, alike: bool = False) -> tuple[Tensor, Tensor]:
    """Rows, one of them zero; ``alike``: of so few different kinds, with exact products, that most scores are ties."""
    generator = torch.Generator().manual_seed(seed)
    if alike:
        corners = torch.eye(4)
        return corners[torch.randint(0, 4, (n,), generator=generator)], corners[torch.randint(0, 4, (m,), generator=generator)]
    source, target = torch.randn(n, 9, generator=generator), torch.randn(m, 9, generator=generator)
    source[n // 3] = 0
    return source, target


def at_hand(source: Tensor, target: Tensor) -> StructuralSimilarity:
    """The same in one process."""
    return StructuralSimilarity(normalise_rows(source), normalise_rows(target))


def assert_equal_matches(found: CslsTopK, expected: CslsTopK) -> None:
    for one, other in ((found.source_to_target, expected.source_to_target), (found.target_to_source, expected.target_to_source)):
        assert torch.equal(one.indices, other.indices)
        torch.testing.assert_close(one.cosine, other.cosine, rtol=0, atol=0)
        torch.testing.assert_close(one.csls, other.csls, rtol=0, atol=1e-6)
    assert all(torch.equal(one, other) for one, other in zip(found.zero_rows, expected.zero_rows, strict=True))


@settings(deadline=None, max_examples=examples(25))
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 4), st.integers(1, 12), st.booleans(), st.integers(0, 3))
def test_matches_are_those_of_one_process(n: int, m: int, processes: int, k: int, alike: bool, seed: int) -> None:
    processes = min(processes, n + m)
    source, target = vectors(n, m, seed, alike=alike)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divided, "BLOCK_BYTES", 200)  # several blocks of each process
        found = asked(processes, source, target, lambda similarity: csls_topk(similarity, k, 7), seed)
    assert_equal_matches(found, csls_topk(at_hand(source, target), k, 7))


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("index", ["exact", "faiss"])
def test_candidates_of_a_pool_are_those_of_one_process(processes: int, index: str) -> None:
    source, target = vectors(60, 70)
    pools = torch.arange(3, 60, 2), torch.arange(70)[torch.arange(70) % 5 > 0]

    def candidates(similarity: Any) -> Any:
        return find_candidates(similarity.select(*pools), 3, 9, index=index)

    found, expected = asked(processes, source, target, candidates), candidates(at_hand(source, target))
    assert np.array_equal(found.codes, expected.codes)
    np.testing.assert_array_equal(found.similarity, expected.similarity)
    np.testing.assert_allclose(found.csls, expected.csls, atol=1e-6)


@settings(deadline=None, max_examples=examples(15))
@given(st.integers(2, 4), st.booleans(), st.sampled_from(["test", "all"]), st.integers(0, 3))
def test_ranks_are_those_of_one_process(processes: int, alike: bool, pool: Any, seed: int) -> None:
    source, target = vectors(40, 50, seed, alike=alike)
    links = np.random.default_rng(seed).integers(0, [40, 50], (25, 2))

    def ranks(similarity: Any) -> Any:
        return evaluate_links(similarity, links, 3, pool, bootstrap=0)

    found, expected = asked(processes, source, target, ranks, seed), ranks(at_hand(source, target))
    assert found.protocol == expected.protocol
    for one, other in ((found.source_to_target, expected.source_to_target), (found.target_to_source, expected.target_to_source)):
        assert np.array_equal(one.queries, other.queries)
        assert np.array_equal(one.ranks, other.ranks)


@pytest.mark.parametrize("turned", [False, True])
def test_every_question_can_be_asked_of_any_view(turned: bool) -> None:
    """Selected, shifted and seen from the other side, in any order, it is what the similarity of one process is."""
    source, target = vectors(30, 20)
    rows, columns = torch.tensor([4, 9, 10, 27]), torch.tensor([0, 3, 19])
    pairs, links = torch.tensor([[0, 2], [3, 1], [0, 0], [2, 2]]), torch.tensor([[1, 1], [3, 0]])
    shift = torch.linspace(-1, 1, 4), torch.linspace(2, 3, 3)

    def answers(whole: Any) -> Any:
        view = whole.shifted(torch.ones(30), torch.zeros(20)).select(rows, columns).shifted(*shift)
        view, (left, right) = (view.transposed(), pairs.T.flip(0)) if turned else (view, pairs.T)
        terms = hubness(whole.select(rows, columns), 2)
        ranks = true_ranks(whole.select(rows, columns), links, terms)
        return view.shape, view.pairs(left, right), view.block(slice(1, 3), slice(0, 2)), view.zero_rows(), terms, ranks

    found, expected = asked(3, source, target, answers), answers(at_hand(source, target))
    assert found[0] == expected[0]
    torch.testing.assert_close(found[1:4], expected[1:4], rtol=0, atol=1e-6)
    torch.testing.assert_close((found[4].source, found[4].target), (expected[4].source, expected[4].target))
    assert torch.equal(found[5].target_to_source.ranks, expected[5].target_to_source.ranks)


def test_rows_come_in_order() -> None:
    source, target = vectors(31, 17)
    found = asked(3, source, target, lambda similarity: [torch.cat(list(similarity.rows(side, 5))) for side in range(2)])
    assert torch.equal(found[0], normalise_rows(source))
    assert torch.equal(found[1], normalise_rows(target))


def test_an_embedding_that_is_not_finite_ends_all() -> None:
    def shown(ranks: ThreadRanks) -> str:
        rows = torch.ones(4, 3)
        rows[2, 1] = torch.nan if ranks.rank == 1 else 1.0
        with pytest.raises(DivergenceError) as caught:
            make_part(ranks, np.arange(4) + 4 * ranks.rank, rows, 5, 3)
        return str(caught.value)

    assert all("contain a value that is not finite" in message for message in together(2, shown))


def test_where_process_0_fails_the_others_end() -> None:
    def work(ranks: ThreadRanks) -> str:
        part = Part(ranks, StructuralSimilarity(*vectors(3, 3)), np.arange(3), np.arange(3), (6, 6))
        try:
            asked_together(part, lambda similarity: 1 // 0)
        except (ZeroDivisionError, LostProcessError) as error:
            return str(error)
        return ""

    assert together(3, work) == ["integer division or modulo by zero", *["process 0 has given up the training; what it printed says why."] * 2]


def random_rows(rows: int, seed: int) -> sparse.csr_array:
    """Sparse rows of unit length, some of them empty."""
    found = sparse.random_array((rows, 12), density=0.2, rng=np.random.default_rng(seed), dtype=np.float32).tocsr()
    lengths = np.sqrt(found.multiply(found).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-9)) @ found)


def several(names: StructuralSimilarity | SparseSimilarity, n: int, m: int) -> BestNames:
    """The first of each side's entities have two names, the others one."""
    return BestNames(names, *(np.concatenate([np.arange(0, 10, 2), np.arange(10, size + 6)]) for size in (n, m)))


NAMES: dict[str, Callable[[int, int], Any]] = {
    "sparse": lambda n, m: SparseSimilarity(random_rows(n, 0), random_rows(m, 1)),
    "dense": lambda n, m: at_hand(*vectors(n, m, 7)),
    "several": lambda n, m: several(SparseSimilarity(random_rows(n + 5, 0), random_rows(m + 5, 1)), n, m),
    "several-dense": lambda n, m: several(at_hand(*vectors(n + 5, m + 5, 7)), n, m),
}


@pytest.mark.parametrize(
    ("names", "values", "processes"),
    [("sparse", False, 2), ("dense", True, 2), ("several", True, 3), pytest.param("several-dense", False, 3, marks=pytest.mark.slow)],
)
def test_what_process_0_deals_out_is_searched_as_in_one_process(processes: int, names: str, values: bool) -> None:
    n, m = 31, 26
    compared = SparseSimilarity(random_rows(n, 3), random_rows(m, 4)) if values else None
    whole = LiteralSimilarity(at_hand(*vectors(n, m)), NAMES[names](n, m), 0.7, compared, 0.4)
    nothing = torch.empty(0, dtype=torch.int64)

    def answers(similarity: Any) -> Any:
        pool = similarity.select(torch.arange(1, n, 2), torch.arange(4, m))
        rows = [torch.cat(list(similarity.rows(side, 4))) for side in range(2)] if isinstance(similarity, DividedSimilarity) else None
        links = np.array([[1, 3], [5, 5], [6, 6], [9, 12]])
        return csls_topk(similarity, 3, 6), csls_topk(pool, 2, 4), evaluate_links(similarity, links, 3, bootstrap=0), rows, similarity.largest

    def work(ranks: ThreadRanks) -> Any:
        part = dealt_out(ranks, whole if ranks.rank == 0 else whole.select(nothing, nothing))
        assert part.similarity.shape == (len(part.sources), len(part.targets))
        return asked_together(part, answers)

    found, expected = together(processes, work)[0], answers(whole)
    for one, other in zip(found[:2], expected[:2], strict=True):
        assert_equal_matches(one, other)
    assert np.array_equal(found[2].target_to_source.ranks, expected[2].target_to_source.ranks)
    assert torch.equal(found[3][0], whole.structure.source)
    assert torch.equal(found[3][1], whole.structure.target)
    assert found[4] == expected[4]
