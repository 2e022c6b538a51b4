"""What reviewers decided, as far as an export needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.reviews import ReviewStore, Verdict, snapshot_of
from engine.reviews.decisions import Pair
from engine.reviews.snapshot import Outcome


@dataclass(frozen=True)
class DecidedPair:
    """A pair that was decided.

    Attributes:
        source, target: the entities' identifiers.
        accepted: whether the two are the same thing; False: they are not.
        reviewers: who decided so.
    """

    source: str
    target: str
    accepted: bool
    reviewers: tuple[str, ...] = ()


def reviewed_pairs(store: ReviewStore, fingerprint: str) -> tuple[DecidedPair, ...]:
    """All decisions on some data.

    Args:
        store: the decisions that are kept beside the runs.
        fingerprint: of the two graphs and their links, as a run's manifest has it.

    Returns:
        The pairs that the majority accepts or rejects, by identifiers; undecided ones are left out.

    Raises:
        ReviewError: the reviewers' database cannot be read.
    """
    standing = store.standing(fingerprint)
    voters: dict[tuple[Pair, Verdict], list[str]] = {}
    for decision in standing:
        voters.setdefault((decision.choice.pair, decision.choice.verdict), []).append(decision.author)
    verdicts: Mapping[Outcome, Verdict] = {"accepted": "accept", "rejected": "reject"}
    return tuple(
        DecidedPair(*one.pair, one.outcome == "accepted", tuple(sorted(voters[one.pair, verdicts[one.outcome]])))
        for one in snapshot_of(fingerprint, standing).pairs
        if one.outcome in verdicts
    )
