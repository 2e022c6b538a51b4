"""The weight of the names: chosen on validation links alone, where it should be high and where it should be low."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from engine.errors import ConfigError
from engine.names import WEIGHTS, choose_weight
from engine.names.weight import pool_with_rivals
from engine.search import StructuralSimilarity
from tests.search.graphs import noisy_copies

LINKS = np.stack([np.arange(60)] * 2, axis=1)


def similarities(structure_noise: float, name_noise: float) -> tuple[StructuralSimilarity, StructuralSimilarity]:
    return (
        StructuralSimilarity(*noisy_copies(300, 300, noise=structure_noise, seed=1)),
        StructuralSimilarity(*noisy_copies(300, 300, noise=name_noise, seed=2)),
    )


def test_good_names_count_much_and_bad_ones_little() -> None:
    good = choose_weight(*similarities(2.5, 0.5), LINKS)
    bad = choose_weight(*similarities(0.9, 30.0), LINKS)
    assert good.weight >= 1 > bad.weight
    assert good.mrr[good.weight] == max(good.mrr.values())
    assert list(good.mrr) == list(WEIGHTS)
    assert good.links == 60
    assert json.loads(json.dumps(good.to_dict()))["weight"] == good.weight


def test_of_equal_weights_the_papers_is_taken() -> None:
    rows = torch.eye(40)
    perfect = StructuralSimilarity(rows, rows)
    assert choose_weight(perfect, perfect, LINKS[:20]).weight == 1.0
    assert choose_weight(perfect, perfect, LINKS[:20], weights=(0.25, 3.0, 0.5)).weight == 0.5


def test_only_validation_links_are_looked_at() -> None:
    """Shuffling what belongs together among all other entities changes nothing but the rivals."""
    structure, names = similarities(2.0, 1.0)
    shuffled = torch.cat([torch.arange(60), 60 + torch.randperm(240, generator=torch.Generator().manual_seed(0))])
    everything = torch.arange(300)
    one = choose_weight(structure, names, LINKS)
    other = choose_weight(structure.select(everything, shuffled), names.select(everything, shuffled), LINKS)
    assert one.weight == other.weight
    np.testing.assert_allclose(list(one.mrr.values()), list(other.mrr.values()), atol=1e-6)


def test_the_pool_holds_the_linked_and_none_that_were_trained_on() -> None:
    pool = pool_with_rivals(np.array([5, 9, 9]), np.array([0, 1, 2, 5]), 12, seed=0)
    assert pool.tolist() == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert len(pool_with_rivals(np.arange(100), np.array([]), 20_000, seed=0)) == 5000


def test_nothing_to_choose_with() -> None:
    structure, names = similarities(1.0, 1.0)
    with pytest.raises(ConfigError, match=r"no validation links .*data.valid_ratio=0.1"):
        choose_weight(structure, names, LINKS[:0])
    with pytest.raises(ConfigError, match="no weights"):
        choose_weight(structure, names, LINKS, weights=())
