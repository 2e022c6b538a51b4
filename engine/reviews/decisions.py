"""What a decision is, and what it may hold: names and notes come from browsers, so they are checked here, before they are kept."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from engine.errors import ReviewError, printable

Verdict = Literal["accept", "reject", "skip"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
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
        raise ReviewError("a decision needs its reviewer's name; enter a name first.")
    if len(kept) > LONGEST_AUTHOR:
        raise ReviewError(f"the reviewer's name is {len(kept)} characters long; use at most {LONGEST_AUTHOR}.")
    if printable(kept) != kept:
        raise ReviewError("the reviewer's name holds characters that cannot be seen; use letters, digits, spaces and punctuation.")
    return kept


def check_choices(choices: Sequence[Choice]) -> None:
    """
    Raises:
        ReviewError: no choice, an unknown verdict, or a text that is empty or too long to be what it should be.
    """
    if not choices:
        raise ReviewError("there is nothing to decide; choose at least one pair.")
    for choice in choices:
        if choice.verdict not in VERDICTS:
            raise ReviewError(f"a verdict is one of {', '.join(VERDICTS)}; got '{str(choice.verdict)[:40]}'.")
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
