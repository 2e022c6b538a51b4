"""Decisions of reviewers: what one is, and how far reviewers agree."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal, get_args

from engine.errors import ReviewError, printable

# What a decision is, and what it may hold: names and notes come from browsers, so they are checked here, before they are kept.

Verdict = Literal["accept", "reject", "skip"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
VERDICT_WORDS: Mapping[Verdict, str] = {"accept": "accepted", "reject": "rejected", "skip": "skipped"}
Pair = tuple[str, str]
"""Identifiers of a source and a target entity."""

MARK_OF_ACCOUNTS = "@"
LONGEST_AUTHOR = 80
LONGEST_NOTE = 2_000
LONGEST_ID = 20_000
LONGEST_TOKEN = 200


BULK_NOTE = "accepted in bulk"
"""The note of decisions that accept many pairs of a list with one click."""


@dataclass(frozen=True)
class Choice:
    """What a reviewer chose for a pair, and what the run said of it when it was shown.

    Attributes:
        source, target: the entities' identifiers.
        run: ``dataset/run_id`` in which the pair was seen; None where none was.
        csls, probability: as that run had them; None where it had none.
    """

    source: str
    target: str
    verdict: Verdict
    note: str = ""
    run: str | None = None
    csls: float | None = None
    probability: float | None = None

    @property
    def pair(self) -> Pair:
        return self.source, self.target


@dataclass(frozen=True)
class Decision:
    """A choice that was kept.

    Attributes:
        number: in the order in which decisions were kept, over all data.
        author: who decided.
        time: ISO 8601, UTC.
        click: names what the reviewer did; shared by the decisions that were taken together.
        withdrawn: whether its author has taken it back.
    """

    number: int
    choice: Choice
    author: str
    time: str
    click: str
    withdrawn: bool = False

    @property
    def pair(self) -> Pair:
        return self.choice.pair

    @property
    def in_bulk(self) -> bool:
        """Whether the pair was accepted together with others, from a list."""
        return self.choice.note == BULK_NOTE

    @property
    def verdict(self) -> Verdict:
        return self.choice.verdict


def same_author(name: str) -> str:
    """What identifies a reviewer: accounts (names with an @) without regard to case, since providers spell an address now one way and
    now another; other names as they are."""
    return unicodedata.normalize("NFC", name).casefold() if MARK_OF_ACCOUNTS in name else name


def check_author(name: str) -> str:
    """A reviewer's name as it is kept: composed letters, single spaces, accounts in one case (:func:`same_author`).

    Raises:
        ReviewError: empty, too long, or with characters that cannot be seen.
    """
    kept = same_author(" ".join(unicodedata.normalize("NFC", name).split(" ")).strip())
    if not kept:
        raise ReviewError("a decision needs a reviewer's name; enter your name first.")
    if len(kept) > LONGEST_AUTHOR:
        raise ReviewError(f"the reviewer's name is {len(kept)} characters long; use at most {LONGEST_AUTHOR}.")
    if printable(kept) != kept:
        raise ReviewError("the reviewer's name contains invisible characters; use letters, digits, spaces and punctuation.")
    return kept


def check_choices(choices: Sequence[Choice]) -> None:
    """
    Raises:
        ReviewError: no choice, an unknown verdict, or a text that is empty or too long to be what it should be.
    """
    if not choices:
        raise ReviewError("no pair is selected; select at least one.")
    for choice in choices:
        if choice.verdict not in VERDICTS:
            raise ReviewError(f"a verdict must be one of {', '.join(VERDICTS)}; got '{str(choice.verdict)[:40]}'.")
        for identifier in choice.pair:
            if not 0 < len(identifier) <= LONGEST_ID:
                raise ReviewError(f"an entity's identifier has {len(identifier):,} characters; expected 1 to {LONGEST_ID:,}.")
        if len(choice.note) > LONGEST_NOTE:
            raise ReviewError(f"the note is {len(choice.note):,} characters long; use at most {LONGEST_NOTE:,}.")


def check_token(token: str) -> str:
    """
    Raises:
        ReviewError: empty or too long to be a click's token.
    """
    if not 0 < len(token) <= LONGEST_TOKEN:
        raise ReviewError(f"a decision's token has {len(token):,} characters; expected 1 to {LONGEST_TOKEN}.")
    return token


# How far the reviewers of a data set have come, and how far they agree.

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
            give; None where it is undefined, because no two have decided the same pair or no one ever chose the other verdict.
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
        accepted, rejected, skipped: current decisions, of all reviewers.
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
    """Of all current decisions, and of one reviewer's."""
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
