"""Accuracy without test links: the share of right matches, estimated from pairs that are drawn at random and reviewed.

The order of the drawing depends on the run's id and the pair alone: it is the same for every reviewer and on every visit, and the pairs at its
beginning are a simple random sample, however many they are. Matches that known links settle are not drawn: the question is what the others are worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from engine.evaluation.metrics import rate_interval
from engine.explore.review_queue import ReviewQueue
from engine.reviews import Decision, snapshot_of
from engine.util.arrays import IntArray
from engine.util.text import count


@dataclass(frozen=True)
class SampleEstimate:
    """What the reviewed beginning of the drawing says of all matches that no known link settles.

    Attributes:
        population: how many matches there are to draw from.
        drawn: how many of the first ones have been looked at, up to the first that nobody has.
        right, wrong: accepted and rejected ones among them, by the majority of their reviewers.
        unsettled: skipped ones, and those on which the reviewers are divided.
        interval: 95 % score interval (Wilson) of the share of right ones; None where nothing is drawn. Unsettled pairs widen it: its lower end takes
            them for wrong, its upper end for right. Once all matches are drawn, chance plays no part: the two shares themselves.
        out_of_turn: matches that were looked at behind the first that nobody has; they count once that one is decided.
        confirmed, contradicted: matches that are not drawn since known links settle them, by what the links say.
    """

    population: int
    drawn: int
    right: int
    wrong: int
    unsettled: int
    interval: tuple[float, float] | None
    out_of_turn: int = 0
    confirmed: int = 0
    contradicted: int = 0

    def sentence(self) -> str:
        """The estimate in words, and what to do where there is none."""
        if not self.population:
            return "There are no matches to draw from: known links settle all of them."
        if not self.drawn:
            return f"Nothing of the random sample has been reviewed yet; it is drawn from {self.population:,} matches that no known link settles."
        if self.interval is None:
            raise ValueError("an estimate of drawn pairs has an interval")
        low, high = self.interval
        unsettled = f", {self.unsettled:,} skipped or disputed" if self.unsettled else ""
        pairs = "pair" if self.drawn == 1 else f"{self.drawn:,} pairs"
        accepted = f"{self.right:,} {'was' if self.right == 1 else 'were'} accepted"
        if self.drawn == self.population:
            share = f"{low:.1%}" if low == high else f"between {low:.1%} and {high:.1%}"
            counted = f"{accepted} and {self.wrong:,} rejected{unsettled}"
            return f"All {count(self.drawn, 'match', 'matches')} that no known link settles are reviewed: {counted}, so {share} are right."
        return (
            f"Of the first {pairs} drawn at random {accepted} and {self.wrong:,} rejected{unsettled}: "
            f"between {low:.1%} and {high:.1%} of the {self.population:,} matches that no known link settles are right (95 % interval)."
        )

    def notes(self) -> list[str]:
        """What belongs beside the estimate, in sentences."""
        found = []
        if self.out_of_turn:
            later = count(self.out_of_turn, "further pair was", "further pairs were")
            found.append(f"{later} reviewed out of turn, from other lists or while others review; they count once all pairs before them are decided.")
        if self.confirmed or self.contradicted:
            settled = f"{count(self.confirmed, 'match', 'matches')} that validation or test links confirm, and {self.contradicted:,} that contradict"
            found.append(f"Not drawn: {settled} a known link.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def drawing(queue: ReviewQueue) -> IntArray:
    """All matches that no known link settles, as rows of the alignment, in the order in which they are drawn."""
    return queue.order("sample")


def estimate_from_sample(queue: ReviewQueue, standing: Sequence[Decision]) -> SampleEstimate:
    """What has been reviewed of the drawing, whichever list the pairs were decided in; pairs accepted in bulk count as not looked at.

    Args:
        standing: the data set's decisions (:meth:`engine.reviews.ReviewStore.standing`).
    """
    rows = drawing(queue)
    one_by_one = [decision for decision in standing if not decision.in_bulk]
    looked_at = np.isin(rows, queue.rows_of(one_by_one))
    drawn = len(rows) if looked_at.all() else int(np.argmin(looked_at))
    first = set(rows[:drawn].tolist())
    snapshot = snapshot_of(queue.fingerprint, one_by_one)
    right, wrong = (sum(queue.row(pair) in first for pair in pairs) for pairs in (snapshot.accepted, snapshot.rejected))
    unsettled = drawn - right - wrong
    out_of_turn, links = int(np.count_nonzero(looked_at[drawn:])), queue.alignment.all_counts
    interval = _interval(right, unsettled, drawn, len(rows))
    return SampleEstimate(len(rows), drawn, right, wrong, unsettled, interval, out_of_turn, links["right"], links["wrong"])


def _interval(right: int, unsettled: int, drawn: int, population: int) -> tuple[float, float] | None:
    if not drawn:
        return None
    least, most = right / drawn, (right + unsettled) / drawn
    return (least, most) if drawn == population else (rate_interval(least, drawn)[0], rate_interval(most, drawn)[1])
