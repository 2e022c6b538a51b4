"""Charts: well-formed whatever the names, and every point where it belongs."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.curves import HEIGHT, WIDTH, Curve, Panel, draw, ticks

SVG = "{http://www.w3.org/2000/svg}"


def lines(chart: str) -> list[list[tuple[float, float]]]:
    found = ElementTree.fromstring(chart).iter(f"{SVG}polyline")
    return [[(float(x), float(y)) for x, y in (pair.split(",") for pair in line.attrib["points"].split())] for line in found]


def test_points_are_placed_by_the_axes() -> None:
    (line,) = lines(draw("t", "y", [Panel("x", [Curve("one", [(0, 0), (5, 0.5), (10, 1.0)])])]))
    assert line == [(0, HEIGHT), (WIDTH / 2, HEIGHT / 2), (WIDTH, 0)]


def test_panels_share_the_y_axis_but_not_the_x_axis() -> None:
    first, second = lines(draw("t", "y", [Panel("x", [Curve("a", [(10, 0.5)])]), Panel("z", [Curve("a", [(1000, 1.0)])])]))
    assert first == [(WIDTH, HEIGHT / 2)]
    assert second == [(WIDTH, 0)]


@pytest.mark.parametrize("name", ["<script>", "a & b", '"x"', "北京"])
def test_names_are_escaped(name: str) -> None:
    root = ElementTree.fromstring(draw(name, name, [Panel(name, [Curve(name, [(1, 1)])])]))
    assert name in [text.text for text in root.iter(f"{SVG}text")]


def test_nothing_to_draw_is_no_mistake() -> None:
    assert lines(draw("t", "y", [])) == []
    assert lines(draw("t", "y", [Panel("x", [Curve("empty", [])])])) == [[]]


@given(st.floats(1e-6, 1e9))
def test_ticks_cover_the_range_in_round_steps(most: float) -> None:
    found = ticks(most)
    assert found[0] == 0
    assert found[-1] >= most * (1 - 1e-6)
    assert found[-2] < most
    assert 3 <= len(found) <= 12
