"""What the crowd did, what it was shown, and what became of its decisions."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app import state, text
from engine.reviews import Decision, Verdict
from engine.reviews.decisions import Pair
from engine.runs.entities import short_id

KEY = f"{state.REVIEW_BUTTON}:"
"""What the name of a button of the review page begins with."""


@dataclass(frozen=True)
class Interaction:
    """From a click to the end of what it brought about.

    Attributes:
        page: where it ended.
        kind: "page", "choice", "decision", "search", "download", "training".
        browser: in a real browser; else in a session without one.
        at: seconds since the crowd came in.
    """

    page: str
    kind: str
    seconds: float
    browser: bool
    at: float


@dataclass
class Look:
    """A pair on a reviewer's screen.

    Attributes:
        name: of the pair: what its Accept button is called.
        words: how the page shows the pair.
        since, until: when the page had it whole, and when it was decided or left; seconds.
        announced: whether the page says that somebody else has it: a link asked for it.
    """

    author: str
    name: str
    words: str
    since: float
    until: float = float("inf")
    announced: bool = False


@dataclass(frozen=True)
class Answer:
    """A decision that the page confirmed by showing the next pair; ``verdict`` None: an undone one."""

    look: Look
    verdict: Verdict | None


@dataclass
class Record:
    """Everything that was noted.

    Attributes:
        problems: one sentence each; a crowd without any has none.
        notes: errors in words that pages showed, which may be right where they stand.
    """

    began: float = field(default_factory=time.monotonic)
    interactions: list[Interaction] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    answers: dict[str, list[Answer]] = field(default_factory=lambda: defaultdict(list))
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    trainings: int = 0
    downloads: int = 0

    @property
    def now(self) -> float:
        return time.monotonic() - self.began

    def add(self, page: str, kind: str, seconds: float, *, browser: bool = False) -> None:
        self.interactions.append(Interaction(page or "home", kind, seconds, browser, self.now))

    def look(self, author: str, name: str, words: str, *, announced: bool = False) -> Look:
        """A pair appeared."""
        found = Look(author, name, words, self.now, announced=announced)
        self.looks.append(found)
        return found

    def leave(self, look: Look | None) -> None:
        """A pair is not on the screen any more."""
        if look is not None:
            look.until = min(look.until, self.now)


def name_of(verdict: Verdict, pair: Pair) -> str:
    """What the button of a verdict on a pair is called."""
    return state.widget_key(state.REVIEW_BUTTON, verdict, pair)


def button_name(identifier: str) -> str:
    """The name of a button of the review page in an element's identifier or class; "" in others."""
    _, found, digest = identifier.replace(f"{state.REVIEW_BUTTON}-", KEY).rpartition(KEY)
    return f"{KEY}{digest[:16]}" if found else ""


# Checks


def shared_looks(looks: Sequence[Look]) -> list[str]:
    """Pairs that two reviewers of different names had on their screens at the same time, and neither page said so."""
    found = []
    by_pair: dict[str, list[Look]] = defaultdict(list)
    for look in looks:
        by_pair[look.name].append(look)
    for several in by_pair.values():
        several.sort(key=lambda look: look.since)
        for number, one in enumerate(several):
            for other in several[number + 1 :]:
                if other.since < one.until and other.author != one.author and not (one.announced or other.announced):
                    found.append(f"{one.author} and {other.author} were shown the same pair from {other.since:.1f} s: {one.words[:80]}")
    return found


def misplaced(answers: Mapping[str, Sequence[Answer]], history: Iterable[Decision]) -> list[str]:
    """Confirmed decisions that are not in the store exactly once and on the pair that was shown, and stored ones that no one made."""
    stored: dict[str, list[Decision]] = defaultdict(list)
    for decision in history:
        stored[decision.author].append(decision)
    found = []
    for author, made in answers.items():
        kept, decisions = stored.pop(author, []), [one for one in made if one.verdict is not None]
        if len(kept) != len(decisions):
            found.append(f"{author} made {len(decisions)} decisions, {len(kept)} are stored")
        for answer, decision in zip(decisions, kept, strict=False):
            if (wrong := _wrong(answer, decision)) is not None:
                found.append(f"{author}: {wrong}: {answer.look.words[:80]} became {decision.verdict} of {decision.pair}")
        undone, withdrawn = sum(one.verdict is None for one in made), sum(one.withdrawn for one in kept)
        if undone != withdrawn:
            found.append(f"{author} undid {undone} decisions, {withdrawn} are withdrawn")
    found += [f"{author} has {len(kept)} decisions made by no one" for author, kept in stored.items()]
    return found


def _wrong(answer: Answer, decision: Decision) -> str | None:
    if decision.verdict != answer.verdict:
        return f"another verdict than {answer.verdict}"
    if name_of("accept", decision.pair) != answer.look.name:
        return "another pair than the button's"
    shown = text.unmarked(answer.look.words)
    if not all(text.clip(short_id(uri), 50) in shown for uri in decision.pair):
        return "another pair than the page showed"
    return None
