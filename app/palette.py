"""What has which colour and which mark, everywhere: graphs, variants, verdicts, directions.

In Plotly figures a colour is a place in the theme's list (``chartCategoricalColors`` in .streamlit/config.toml): Streamlit puts the colour of
the reader's own theme, light or dark, where a figure says ``#000001`` to ``#000010``, in the browser and again when the theme is switched. So
figures are independent of themes, and the colours themselves are in one file. Colour is never alone: each has a symbol or a dash as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from engine.data.knowledge_graph import Side

_PLACES: Final = tuple(f"#{place:06}" for place in range(1, 11))

# For Plotly
GRAPH: Final[Mapping[Side, str]] = {"source": _PLACES[0], "target": _PLACES[1]}
VARIANT: Final[Mapping[str, str]] = {"basic": _PLACES[2], "semi": _PLACES[3], "literal": _PLACES[4]}
RIGHT, WRONG, UNKNOWN = _PLACES[5:8]
DIRECTION: Final[Mapping[Literal["forward", "inverse"], str]] = {"forward": _PLACES[8], "inverse": _PLACES[9]}
SUPPORT, OPPOSE, NEUTRAL = _PLACES[8], _PLACES[9], _PLACES[7]
"""What raises and what lowers a score, and what is neither. Not the colours of correct and incorrect: evidence for a pair may mislead.
The grey is not far enough from the other two for all eyes: bars of it have a pattern of their own."""
SEQUENTIAL: Final = [[place / 9, f"#{place + 11:06}"] for place in range(10)]
"""A colour scale from nothing to much."""

# Marks: for Markdown in the theme's blue and orange, for plain text, and for Plotly's points
MARKS: Final[Mapping[Side, str]] = {"source": ":blue[●]", "target": ":orange[◆]"}
PLAIN_MARKS: Final[Mapping[Side, str]] = {"source": "●", "target": "◆"}
POINTS: Final[Mapping[Side, str]] = {"source": "circle", "target": "diamond"}

VARIANT_POINTS: Final[Mapping[str, str]] = {
    "basic": "circle",
    "semi": "diamond",
    "literal": "square",
    "lightea": "x",
    "gcn-align": "cross",
    "mtranse": "triangle-up",
    "paris": "star",
}
BADGES: Final[Mapping[str, Literal["gray", "violet", "green"]]] = {"basic": "gray", "semi": "violet", "literal": "green"}
DASHES: Final = ("solid", "dash", "dot", "dashdot")
FIRST_DASH: Final[Mapping[str, int]] = {"basic": 0, "semi": 1, "literal": 2, "lightea": 0, "gcn-align": 1, "mtranse": 2, "paris": 3}
"""Where in ``DASHES`` a variant begins, so that runs can be distinguished in grey. Baselines are grey, each with a point and a dash of its own."""

Tie = Literal["seed link", "added in a round", "held out", "predicted"]


@dataclass(frozen=True)
class TieLine:
    """How a line between two entities looks that belong together in some way, in every figure that draws such lines.

    Attributes:
        echarts: the dashes in the library's words.
        shape: in the reader's.
        words: its meaning.
    """

    echarts: str | Sequence[int]
    shape: str
    words: str


TIES: Final[Mapping[Tie, TieLine]] = {
    "seed link": TieLine("solid", "solid", "seed link"),
    "added in a round": TieLine((9, 4, 2, 4), "dashes and dots", "added in a round"),
    "predicted": TieLine("dashed", "dashed", "predicted match"),
    "held out": TieLine("dotted", "dotted", "link kept for evaluation"),
}
"""One meaning for each kind of line, whichever page draws it."""

# Boxes of the facing neighbourhoods, with white letters on them on light and dark ground alike
BOX_FILLS: Final[Mapping[Side, str]] = {"source": "#2b6cb0", "target": "#a85413"}


@dataclass(frozen=True)
class LineStyle:
    """How a run looks in a figure: the variant gives colour, point and first dash, and the second run of a variant an open point and another dash."""

    colour: str
    point: str
    dash: str


def run_styles(variants: Sequence[str]) -> list[LineStyle]:
    """A style for each run of a figure, given their variants in order; no two are equal as long as there are at most four of a variant."""
    seen: Counter[str] = Counter()
    styles = []
    for variant in variants:
        colour, point = VARIANT.get(variant, UNKNOWN), VARIANT_POINTS.get(variant, "x")
        open_point = point if not seen[variant] else f"{point}-open"
        styles.append(LineStyle(colour, open_point, DASHES[(FIRST_DASH.get(variant, 0) + seen[variant]) % len(DASHES)]))
        seen[variant] += 1
    return styles
