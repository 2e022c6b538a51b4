"""Splits of links that are not one to one keep all links of an entity together; those of other links are what they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import DataConfig
from engine.data.splits import TOGETHER, divide, link_groups
from tests.effort import examples

WIDTH = 30
HERE = Path("data")
links = st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), min_size=1, max_size=60, unique=True)


def keys_of(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array(sorted(left * WIDTH + right for left, right in pairs), dtype=np.int64)


def slow_groups(pairs: list[tuple[int, int]]) -> list[set[tuple[int, int]]]:
    """Join what shares an end until nothing does."""
    groups = [{pair} for pair in pairs]
    while True:
        for one in groups:
            near = [other for other in groups if other is not one and any(a == c or b == d for a, b in one for c, d in other)]
            if near:
                groups = [group for group in groups if group is not one and group not in near] + [one.union(*near)]
                break
        else:
            return groups


@settings(deadline=None, max_examples=examples(60))
@given(links)
def test_groups_are_connected_components(pairs: list[tuple[int, int]]) -> None:
    keys = keys_of(pairs)
    found = link_groups(keys, WIDTH)
    expected = slow_groups(pairs)
    if found is None:
        assert len(expected) == len(pairs)
        return
    assert len(expected) < len(pairs) or len({left for left, _ in pairs}) < len(pairs)
    named = {frozenset(map(tuple, np.stack(np.divmod(keys[found == group], WIDTH), axis=1).tolist())) for group in np.unique(found)}
    assert named == set(map(frozenset, expected))


@settings(deadline=None, max_examples=examples(60))
@given(links, st.floats(0.05, 0.95), st.floats(0, 0.5), st.integers(0, 3))
def test_no_entity_is_in_two_parts(pairs: list[tuple[int, int]], ratio: float, valid_ratio: float, seed: int) -> None:
    keys = keys_of(pairs)
    config = DataConfig(train_ratio=ratio, valid_ratio=valid_ratio)
    split = divide({"all": keys}, "", config, seed, HERE, width=WIDTH)
    parts = [split.train, split.valid, split.test]
    assert np.array_equal(np.sort(np.concatenate(parts)), keys)
    assert len(split.train)
    for ends in (lambda part: part // WIDTH, lambda part: part % WIDTH):
        entities = [set(ends(part).tolist()) for part in parts]
        assert sum(map(len, entities)) == len(set().union(*entities))
    if link_groups(keys, WIDTH) is None:
        plain = divide({"all": keys}, "", config, seed, HERE)
        assert split.description == plain.description
        assert all(np.array_equal(getattr(split, part), getattr(plain, part)) for part in ("train", "valid", "test"))
    else:
        assert TOGETHER in split.description


def test_the_draw_comes_close_to_the_ratio() -> None:
    pairs = [(entity, other) for entity in range(30) for other in (entity, entity - entity % 3)]
    keys = np.unique(keys_of(list(set(pairs))))
    split = divide({"all": keys}, "", DataConfig(train_ratio=0.5), 0, HERE, width=WIDTH)
    assert abs(len(split.train) - len(keys) / 2) <= 5
    assert split.findings[0].code == "split-by-components"
