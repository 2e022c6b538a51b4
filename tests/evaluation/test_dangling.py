"""The share of unlinked entities without a counterpart is found, whether their links are unlisted or they have none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.data.knowledge_graph import KnowledgeGraph
from engine.decoding import GraphEvidence, find_candidates, get_decoder
from engine.evaluation.assessment import Confidence, dangling_share_of, estimate_dangling
from engine.evaluation.calibration import Calibration, fit_calibration
from engine.search import StructuralSimilarity, normalise_rows
from engine.util.arrays import IntArray
from tests.decoding.cases import identity

RNG = np.random.default_rng(0)


def group(degrees: IntArray, expected: float, slope: float = 0.0) -> Confidence:
    """Probabilities that lie around a line over log(1 + degree)."""
    mean = expected + slope * np.log1p(degrees)
    return Confidence(degrees, np.clip(mean + 0.05 * RNG.standard_normal(len(degrees)), 0, 1))


def joined(first: Confidence, second: Confidence) -> Confidence:
    return Confidence(np.concatenate([first.degrees, second.degrees]), np.concatenate([first.probability, second.probability]))


@pytest.mark.parametrize("share", [0.0, 0.25, 0.6, 1.0])
def test_a_mixture_is_taken_apart_also_where_the_unlinked_have_few_triples(share: float) -> None:
    many, few = RNG.integers(3, 40, 3000), RNG.integers(1, 5, 3000)
    linked, lonely = group(many, 0.3, 0.15), group(many[:1500], 0.1, 0.02)
    count = round(share * len(few))
    unlinked = joined(group(few[:count], 0.1, 0.02), group(few[count:], 0.3, 0.15))
    assert dangling_share_of(unlinked, linked, lonely) == pytest.approx(share, abs=0.05)


def test_what_lies_outside_of_the_two_is_kept_within_bounds() -> None:
    degrees = np.full(200, 4)
    linked, lonely = group(degrees, 0.6), group(degrees, 0.3)
    assert dangling_share_of(group(degrees, 0.1), linked, lonely) == 1.0
    assert dangling_share_of(group(degrees, 0.9), linked, lonely) == 0.0


def test_where_nothing_is_known_too_little_is_promised() -> None:
    degrees, none = np.full(200, 4), Confidence(np.empty(0, dtype=np.int64), np.empty(0))
    same = group(degrees, 0.5)
    assert dangling_share_of(same, same, same) == 1.0
    assert dangling_share_of(same, none, same) == 1.0
    assert dangling_share_of(none, same, same) == 0.0


@pytest.mark.parametrize("truly", [0.0, 0.5, 1.0])
def test_the_share_of_a_pool_is_estimated_without_its_truth(truly: float) -> None:
    """600 linked pairs of which 300 validate, and 400 more entities a side without a link, of which a part has no counterpart all the same."""
    rng = np.random.default_rng(1)
    linked, others = 600, 400
    base = rng.standard_normal((linked + others, 24))
    noise = rng.uniform(0.2, 1.6, (linked + others, 1))
    source, target = (base + noise * rng.standard_normal(base.shape) for _ in range(2))
    lost = np.arange(linked + others - round(truly * others), linked + others)
    target[lost] = rng.standard_normal((len(lost), 24)) * np.sqrt(1 + noise[lost] ** 2)
    rows = (normalise_rows(torch.from_numpy(part.astype(np.float32))) for part in (source, target))
    candidates = find_candidates(StructuralSimilarity(*rows), top=30)
    decoder, valid = get_decoder("csls"), identity(linked)[:300]
    ring = np.stack([np.arange(linked + others), np.zeros(linked + others, dtype=np.int64), np.roll(np.arange(linked + others), 1)], axis=1)
    names = tuple(f"e{index}" for index in range(linked + others))
    graphs = [KnowledgeGraph("graph", names, ("",) * len(names), ("r",), triples) for triples in (ring, ring[:0])]  # no neighbours in common
    evidence = GraphEvidence.of(graphs[0], graphs[1], valid[:0])
    calibration = fit_calibration(decoder, candidates, valid, evidence)
    assert isinstance(calibration, Calibration)
    unlinked = np.arange(linked + others) >= linked
    found = estimate_dangling(decoder, candidates, valid, (unlinked, unlinked), evidence, calibration)
    assert found == pytest.approx(truly, abs=0.2)
    none = np.zeros_like(unlinked)
    assert estimate_dangling(decoder, candidates, valid, (none, none), evidence, calibration) == 0.0
