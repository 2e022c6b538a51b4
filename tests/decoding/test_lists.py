"""Candidate lists: merged from both directions, and asked which of their pairs are links."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decoding.candidates import LEAST_TOP, LISTED, TOP, find_candidates, grouped, list_length, listed_candidates, merged, with_pairs
from engine.search import csls_topk
from engine.search.similarity import StructuralSimilarity
from tests.decoding.cases import from_table
from tests.effort import examples


@settings(max_examples=examples(60), deadline=None)
@given(n=st.integers(0, 8), m=st.integers(0, 8), top=st.integers(1, 9), seed=st.integers(0, 2**16))
def test_lists_are_merged_as_sets(n: int, m: int, top: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    forward = np.array([rng.permutation(m)[:top] for _ in range(n)], dtype=np.int64).reshape(n, min(top, m))
    backward = np.array([rng.permutation(n)[:top] for _ in range(m)], dtype=np.int64).reshape(m, min(top, n))
    pairs = [(i, int(j)) for i in range(n) for j in forward[i]] + [(int(i), j) for j in range(m) for i in backward[j]]
    sources, targets, places = merged(forward, backward)
    assert list(zip(sources.tolist(), targets.tolist(), strict=True)) == sorted(set(pairs))
    assert places.tolist() == [pairs.index(pair) for pair in sorted(set(pairs))]


@given(n=st.integers(0, 10**7), m=st.integers(0, 10**7))
def test_lists_get_shorter_where_there_are_many(n: int, m: int) -> None:
    kept = list_length((n, m))
    assert LEAST_TOP <= kept <= TOP
    assert kept == LEAST_TOP or kept * (n + m) <= LISTED
    assert kept == TOP or (kept + 1) * (n + m) > LISTED
    assert list_length((19_388, 19_572)) == TOP, "DBP15K, all entities"


def test_positions_are_grouped_in_order() -> None:
    pointers, positions = grouped(np.array([2, 0, 2, 3, 0]), 5)
    assert [positions[start:stop].tolist() for start, stop in itertools.pairwise(pointers)] == [[1, 4], [], [0, 2], [3], []]


def test_links_among_the_pairs() -> None:
    candidates = from_table([[3.0, 2.0, 0.0], [0.0, 3.0, 2.0]], top=1)
    pairs = list(zip(candidates.sources.tolist(), candidates.targets.tolist(), strict=True))
    assert len(pairs) < 6
    links = np.array([[0, 1], [1, 1], [1, 1], [1, 2], [0, 2]])
    assert candidates.among(links).tolist() == [list(pair) in links.tolist() for pair in pairs]
    assert candidates.among(np.array([[1, 2]] * 2)).sum() == ((1, 2) in pairs)
    assert not candidates.among(links[:0]).any()
    assert from_table(np.zeros((0, 3))).among(links[:0]).shape == (0,)


def test_further_pairs_have_the_scores_that_longer_lists_give_them() -> None:
    generator = torch.Generator().manual_seed(3)
    similarity = StructuralSimilarity(torch.randn(9, 5, generator=generator), torch.randn(7, 5, generator=generator))
    found = csls_topk(similarity, 3, 2)
    short, full = listed_candidates(similarity, found, 2), find_candidates(similarity, 3, top=9)
    assert len(short) < len(full) == 63
    wanted = np.array([5, 60, 0, 31])
    more = with_pairs(short, wanted, similarity, found.hubness)
    assert more.codes.tolist() == sorted({*short.codes.tolist(), *wanted.tolist()})
    places = np.searchsorted(full.codes, more.codes)
    np.testing.assert_allclose(more.csls, full.csls[places], atol=1e-6)
    np.testing.assert_allclose(more.similarity, full.similarity[places], atol=1e-6)
    assert with_pairs(short, wanted[:0], similarity, found.hubness).codes.tolist() == short.codes.tolist()
