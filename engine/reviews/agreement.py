"""How far the reviewers of a data set have come, and how far they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from engine.reviews.decisions import Decision, Pair, Verdict

PACE_OF = 20
"""Decisions that a pace is measured by."""
BREAK = timedelta(minutes=5)
"""A longer pause between two decisions is a break and does not count."""


@dataclass(frozen=True)
class Agreement:
    """Of the pairs that two or more reviewers have accepted or rejected.

    Attributes:
        pairs: how many there are.
        unanimous: on how many of them all say the same.
        alpha: Krippendorff's alpha for two categories (Krippendorff, Content Analysis, 2004, chapter 11): 1 is full agreement, 0 what chance would
            give; None where there is nothing to tell it by, because no two have met or nobody ever chose the other verdict.
    """

    pairs: int
    unanimous: int
    alpha: float | None

    @property
    def share(self) -> float | None:
        return self.unanimous / self.pairs if self.pairs else None


@dataclass(frozen=True)
class ReviewProgress:
    """How far reviewing is.

    Attributes:
        accepted, rejected, skipped: decisions that stand, of all reviewers.
        pairs: distinct pairs that anybody accepted or rejected.
        mine: pairs that the reviewer who asks accepted or rejected.
        pace: of that reviewer's latest decisions, in pairs a minute; None before there are two within five minutes.
    """

    accepted: int
    rejected: int
    skipped: int
    pairs: int
    mine: int
    pace: float | None


def votes(standing: Iterable[Decision]) -> dict[Pair, Counter[Verdict]]:
    """How often each pair is accepted and rejected; skipping is no vote."""
    found: dict[Pair, Counter[Verdict]] = {}
    for decision in standing:
        if decision.verdict != "skip":
            found.setdefault(decision.pair, Counter())[decision.verdict] += 1
    return found


def disagreements(standing: Iterable[Decision]) -> list[Pair]:
    """The pairs that some accept and others reject, ordered by their identifiers."""
    return sorted(pair for pair, counts in votes(standing).items() if len(counts) > 1)


def agreement(standing: Iterable[Decision]) -> Agreement:
    shared = [counts for counts in votes(standing).values() if counts.total() > 1]
    total = sum(counts.total() for counts in shared)
    accepts = sum(counts["accept"] for counts in shared)
    observed = sum(2 * counts["accept"] * counts["reject"] / (counts.total() - 1) for counts in shared)
    expected = 2 * accepts * (total - accepts) / (total - 1) if total > 1 else 0.0
    return Agreement(len(shared), sum(len(counts) == 1 for counts in shared), 1 - observed / expected if expected else None)


def progress(standing: Sequence[Decision], author: str | None) -> ReviewProgress:
    """Of all decisions that stand, and of one reviewer's."""
    counts = Counter(decision.verdict for decision in standing)
    mine = [decision for decision in standing if decision.author == author]
    return ReviewProgress(counts["accept"], counts["reject"], counts["skip"], len(votes(standing)), len(votes(mine)), _pace(mine))


def _pace(decisions: Sequence[Decision]) -> float | None:
    """Single clicks a minute; decisions in bulk say nothing about how long a pair takes."""
    clicks = Counter(decision.click for decision in decisions)
    times = sorted(datetime.fromisoformat(decision.time) for decision in decisions if clicks[decision.click] == 1)[-PACE_OF:]
    pauses = [later - earlier for earlier, later in pairwise(times) if later - earlier <= BREAK]
    seconds = sum(pauses, timedelta()).total_seconds()
    return 60 * len(pauses) / seconds if seconds else None
