"""What accuracy is promised: nothing beyond what was measured."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.importing import expectation
from engine.importing.seeds import CURVE


@given(seeds=st.integers(0, 10_000), entities=st.integers(1, 10_000))
def test_it_stays_within_what_was_measured(seeds: int, entities: int) -> None:
    found = expectation(seeds, entities)
    assert 0 <= found.lowest <= found.highest <= max(one.highest for one in CURVE)
    assert found.sentence


def test_measured_points_are_given_as_they_are() -> None:
    for one in CURVE:
        found = expectation(round(one.coverage * 100_000), 100_000)
        assert abs(found.lowest - one.lowest) < 0.01
        assert abs(found.highest - one.highest) < 0.01


@given(st.integers(0, 5000))
def test_more_seeds_are_never_worth_less(seeds: int) -> None:
    less, more = expectation(seeds, 5000), expectation(seeds + 1, 5000)
    assert more.lowest >= less.lowest - 1e-12
    assert more.highest >= less.highest - 1e-12


def test_words() -> None:
    assert "start from names and values" in expectation(0, 100).sentence
    assert "A few hundred more seeds would help most" in expectation(10, 10_000).sentence
    assert "about 45 to 75%" in expectation(2500, 10_000).sentence
