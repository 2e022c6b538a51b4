"""The theme's colours, measured: contrast, and distance for eyes that see fewer of them."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from app import palette

THEME = tomllib.loads((Path(__file__).resolve().parents[2] / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
CONTRAST = 4.5
DISTANCE = 9.0  # Oklab times 100; about 2 can just be distinguished side by side
FAMILIES = {
    "graphs": tuple(palette.GRAPH.values()),
    "variants": tuple(palette.VARIANT.values()),
    "verdicts": (palette.RIGHT, palette.WRONG, palette.UNKNOWN),
    "directions": tuple(palette.DIRECTION.values()),
    "contributions": (palette.SUPPORT, palette.OPPOSE),
}
# Machado, Oliveira and Fernandes 2009, severity 1, for linear RGB
EYES = {
    "all cones": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
# Ottosson 2020
TO_CONES = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]]
)
TO_OKLAB = np.array(
    [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]]
)


def linear(colour: str) -> npt.NDArray[np.float64]:
    """(3,) linear RGB."""
    values = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, two: str) -> float:
    """WCAG 2."""
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, two))
    return (high + 0.05) / (low + 0.05)


def seen(colour: str, eyes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 100 * (TO_OKLAB @ np.cbrt(TO_CONES @ np.clip(eyes @ linear(colour), 0, 1)))


def real(theme: str, place: str) -> str:
    return str(THEME[theme]["chartCategoricalColors"][int(place[1:]) - 1])


def pairs() -> Iterator[tuple[str, str, str, str]]:
    for theme, (family, places), eyes in itertools.product(("light", "dark"), FAMILIES.items(), EYES):
        yield from ((theme, family, eyes, f"{one} {two}") for one, two in itertools.combinations(places, 2))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_can_be_read_on_the_page_and_on_its_boxes(theme: str) -> None:
    grounds = [THEME[theme]["backgroundColor"], THEME[theme]["secondaryBackgroundColor"]]
    colours = [*THEME[theme]["chartCategoricalColors"], THEME[theme]["textColor"], THEME[theme]["linkColor"], THEME[theme]["grayTextColor"]]
    low = {(colour, ground): value for colour in colours for ground in grounds if (value := contrast(colour, ground)) < CONTRAST}
    assert not low


def test_white_letters_can_be_read_on_the_boxes_of_the_facing_neighbourhoods() -> None:
    assert all(contrast(fill, "#ffffff") >= CONTRAST for fill in palette.BOX_FILLS.values())


@pytest.mark.parametrize(("theme", "family", "eyes", "places"), list(pairs()))
def test_colours_of_a_family_can_be_distinguished(theme: str, family: str, eyes: str, places: str) -> None:
    one, two = (seen(real(theme, place), EYES[eyes]) for place in places.split())
    assert np.linalg.norm(one - two) >= DISTANCE, family


def test_runs_of_a_figure_all_look_different() -> None:
    for variants in itertools.product(("basic", "semi", "literal", "strange"), repeat=4):
        assert len(set(palette.run_styles(variants))) == 4


def test_a_variant_has_one_colour_everywhere() -> None:
    assert palette.run_styles(["semi", "basic"])[1].colour == palette.run_styles(["basic", "basic"])[1].colour


def test_runs_can_be_distinguished_in_grey() -> None:
    """By their dashes and points alone."""
    for variants in (("basic", "semi", "literal"), ("semi", "semi", "basic", "literal")):
        assert len({(one.point, one.dash) for one in palette.run_styles(variants)}) == len(variants)
    assert len({one.dash for one in palette.run_styles(("basic", "semi", "literal"))}) == 3
