"""What accuracy to expect of how many seed links: coarse, and from measured runs only (docs/importing.md says which)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

FEW_SEEDS: Final = 0.03  # of the smaller graph's entities: below, seeds from names are offered


@dataclass(frozen=True)
class Measured:
    """Hits@1 of basic runs whose seed links cover this share of the smaller graph's entities: the lowest and highest measured."""

    coverage: float
    lowest: float
    highest: float


CURVE: Final = (
    Measured(0.0, 0.0, 0.0),
    Measured(0.008, 0.04, 0.08),
    Measured(0.023, 0.12, 0.20),
    Measured(0.077, 0.30, 0.40),
    Measured(0.15, 0.40, 0.65),
    Measured(0.25, 0.45, 0.76),
)
"""sample_data/europe (shares of links 0.01, 0.03, 0.1, 0.3) and world (0.01, 0.03, given split); DBP15K and SRPRS at 30 %. From the fourth point on
the lowest are below what the sample data gave: they lean towards SRPRS, whose sparse graphs gave 0.45 at 0.3."""


@dataclass(frozen=True)
class Expectation:
    """What seeds are worth.

    Attributes:
        seeds: training links.
        coverage: of the smaller graph's entities.
        lowest, highest: share of right first matches of a basic run, from structure alone.
    """

    seeds: int
    coverage: float
    lowest: float
    highest: float

    @property
    def few(self) -> bool:
        return self.coverage < FEW_SEEDS

    @property
    def sentence(self) -> str:
        """For people; no promise."""
        if not self.seeds:
            return (
                "There are no seed links. Semi-supervised and literal runs can start from names and values that both graphs have; "
                "known links, or seeds from names, make them better."
            )
        low, high = (round(100 * share / 5) * 5 for share in (self.lowest, self.highest))
        share = f"{100 * self.coverage:.1f} %" if self.coverage < 0.1 else f"{100 * self.coverage:.0f} %"
        expected = f"about {low} to {high} %" if high > low else f"under {max(high, 5)} %"
        more = " A few hundred more seeds would help most." if self.few else ""
        return (
            f"{self.seeds:,} seed links cover {share} of the smaller graph's entities. On data sets that were measured, so many gave {expected} "
            f"right first matches from structure alone; semi and literal runs add to that where the graphs allow it.{more}"
        )


def expectation(seeds: int, entities: int) -> Expectation:
    """
    Args:
        seeds: training links.
        entities: of the smaller graph.
    """
    coverage = seeds / entities if entities else 0.0
    return Expectation(seeds, coverage, _between(coverage, "lowest"), _between(coverage, "highest"))


def _between(coverage: float, end: str) -> float:
    """Measured values joined by straight lines; beyond the last of them no more than it."""
    for left, right in itertools.pairwise(CURVE):
        if coverage <= right.coverage:
            part = (coverage - left.coverage) / (right.coverage - left.coverage)
            low, high = float(getattr(left, end)), float(getattr(right, end))
            return low + part * (high - low)
    return float(getattr(CURVE[-1], end))
