"""Who reviews, and what a click does: the part of the review page that is not drawing."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from app import cache, sign_in, state
from engine.errors import EngineError, ReviewError
from engine.reviews import Choice, check_author, snapshot_of
from engine.reviews.decisions import MARK_OF_ACCOUNTS, Pair
from engine.reviews.snapshot import Outcome
from engine.runs.entities import Entity
from engine.runs.view import RunView
from engine.util.text import count

AT_ONCE = 200  # pairs listed that can be accepted together
LEAST_SECONDS = 0.5
"""What was shown for less has not been looked at: the click came from a key that is held down, or was meant for what was there before."""
NAMED = 3  # pairs that a message names
NEXT = "next"  # in place of a pair: the one that is drawn next
_SHEET, _UNTICKED, _PROBLEM, _NOTICE, _SHOWN, _HURRIED, _LAST = (
    f"{state.REVIEW_CLICK}:{name}" for name in ("sheet", "unticked", "problem", "notice", "shown", "hurried", "last")
)


def signed_in() -> str | None:
    """The name of whoever has signed in through Streamlit's login; None without sign-in."""
    name = sign_in.account()
    return None if name is None else check_author(name)


def reviewer(address: state.ReviewAddress) -> str | None:
    """Who reviews: the account that is signed in, whatever the address says; else the name in the address or of this session.

    Raises:
        ReviewError: a name that cannot be one.
    """
    account = signed_in()
    if account is not None:
        return account
    name = address.reviewer or st.session_state.get(state.REVIEWER_NAME)
    if name is None:
        return None
    st.session_state[state.REVIEWER_NAME] = kept = entered(name)  # other pages' addresses do not carry it
    return kept


def entered(name: str) -> str:
    """A name that somebody typed.

    Raises:
        ReviewError: it cannot be a name, or looks like an account's.
    """
    kept = check_author(name)
    if MARK_OF_ACCOUNTS in kept:
        raise ReviewError(f"'{kept}' looks like an account, and accounts are taken from the sign-in only; enter a name without {MARK_OF_ACCOUNTS}.")
    return kept


def remember_name(name: str) -> None:
    """For the name's field: keep it in the session and the address, checked or not; whoever reads it checks it."""
    st.session_state[state.REVIEWER_NAME] = name
    state.set_parameter(state.REVIEWER, name or None)


def forget_name() -> None:
    """For a button."""
    st.session_state.pop(state.REVIEWER_NAME, None)
    state.set_parameter(state.REVIEWER, None)


def decide(fingerprint: str, choices: Sequence[Choice], author: str, token: str, note: str | None = None) -> None:
    """For a button: keep what was chosen, unless the pair has only just appeared.

    Args:
        note: key of the note's widget.
    """
    if len(choices) == 1 and _too_soon():
        return
    _keep(fingerprint, choices, author, token, note)


def _keep(fingerprint: str, choices: Sequence[Choice], author: str, token: str, note: str | None) -> None:
    again = st.session_state.get(_LAST) == token  # the button was drawn for the pair before
    st.session_state[_HURRIED], st.session_state[_LAST] = NEXT if again else None, token
    words = st.session_state.get(note, "") if note else ""
    written = [Choice(*one.pair, one.verdict, words or one.note, one.run, one.csls, one.probability) for one in choices]
    _attempt(lambda: cache.reviews().decide(fingerprint, written, author, token))
    state.set_parameters({"source": None, "target": None})


def undo(fingerprint: str, author: str, token: str) -> None:
    """For a button: withdraw the last click, and show its pair again."""

    def withdraw() -> None:
        new_sheet()
        gone = cache.reviews().undo(fingerprint, author, token)
        st.session_state[state.REVIEW_CLICK] = gone[0].pair if len(gone) == 1 else None

    _attempt(withdraw)
    state.set_parameters({"source": None, "target": None})


def withdraw(fingerprint: str, number: int, author: str, token: str) -> None:
    """For a button: withdraw one decision of one's own."""
    _attempt(lambda: cache.reviews().withdraw(fingerprint, number, author, token))


# Many at once


@dataclass(frozen=True)
class Sheet:
    """Pairs that are offered together. They stay as they are while they are on the screen, whatever others decide: nothing slips in unseen.

    Attributes:
        basis: what they were chosen by; another basis, another sheet.
        since: when they were first drawn.
    """

    basis: str
    pairs: tuple[Pair, ...]
    since: float


def new_sheet() -> None:
    """The next drawing offers what is open then."""
    st.session_state.pop(_SHEET, None)


def sheet(basis: str, offered: Callable[[], Sequence[Pair]]) -> Sheet:
    """The sheet that is on the screen; a new one of what is offered where there is none of this basis."""
    found: Sheet | None = st.session_state.get(_SHEET)
    if found is None or found.basis != basis:
        found = Sheet(basis, tuple(offered()), time.monotonic())
        st.session_state[_SHEET] = found
    return found


def unticked(fingerprint: str, author: str) -> set[Pair]:
    """The pairs that a reviewer took out of a list in this session. They stay out of every list that follows until they are ticked again."""
    kept: dict[tuple[str, str], set[Pair]] = st.session_state.setdefault(_UNTICKED, {})
    return kept.setdefault((fingerprint, author), set())


def follow_ticks(fingerprint: str, author: str, pairs: Sequence[Pair], table: str) -> None:
    """For the table of a sheet: remember what is ticked by pair, not by row.

    Args:
        pairs: of the table, in its order.
        table: key of its widget.
    """
    ticked = _ticked(table, len(pairs))
    if ticked is None:
        return
    out = unticked(fingerprint, author)
    out.update(pair for row, pair in enumerate(pairs) if row not in ticked)
    out.difference_update(pairs[row] for row in ticked)


def accept_ticked(fingerprint: str, choices: Sequence[Choice], table: str, author: str, token: str) -> None:
    """For the button below a sheet: keep what is ticked on the screen at this moment, or nothing.

    The ticks come from the table itself: the button may have been drawn before the last of them. Pairs decided in the meantime are left out.

    Args:
        choices: on all of the table's pairs, in its order.
        table: key of its widget.
    """

    def accept() -> None:
        found: Sheet | None = st.session_state.get(_SHEET)
        ticked = _ticked(table, len(choices))
        if found is None or ticked is None or found.pairs != tuple(choice.pair for choice in choices):
            new_sheet()
            raise ReviewError("the list changed before the key was pressed, so nothing was kept; look at the list and press once more.")
        if time.monotonic() - found.since < LEAST_SECONDS:
            raise ReviewError("the list had only just appeared when the key was pressed, so nothing was kept; look at the list and press once more.")
        follow_ticks(fingerprint, author, found.pairs, table)
        wanted = [choices[row] for row in sorted(ticked)]
        kept = {decision.pair for decision in cache.reviews().decide(fingerprint, wanted, author, token, open_only=True)}
        new_sheet()
        if left := [choice.pair for choice in wanted if choice.pair not in kept]:
            st.session_state[_NOTICE] = _left_out(left)

    _attempt(accept)


def _ticked(table: str, rows: int) -> frozenset[int] | None:
    """The rows that are ticked in a table; None where the table is not there any more."""
    found = st.session_state.get(table)
    return None if found is None else frozenset(row for row in found["selection"]["rows"] if row < rows)


def _left_out(pairs: Sequence[Pair]) -> str:
    named = "; ".join(f"{source} – {target}" for source, target in pairs[:NAMED])
    more = f"; and {len(pairs) - NAMED:,} more" if len(pairs) > NAMED else ""
    return f"{count(len(pairs), 'pair')} had been decided by then and {'was' if len(pairs) == 1 else 'were'} left as decided: {named}{more}."


def notice() -> str | None:
    """What the last click did besides what was asked for, said once."""
    found: str | None = st.session_state.pop(_NOTICE, None)
    return found


# Clicks


def token() -> str:
    """Names the next click; made with what is drawn, so that a click that arrives twice is the same one."""
    return uuid.uuid4().hex


def problem() -> EngineError | None:
    """What went wrong with the last click, shown once."""
    found: EngineError | None = st.session_state.pop(_PROBLEM, None)
    return found


def to_look_at_again() -> Pair | None:
    """The pair whose decision was just undone."""
    found: Pair | None = st.session_state.get(state.REVIEW_CLICK)
    return found


def shown(pair: tuple[int, int]) -> None:
    """For the end of drawing a pair: from now on it can be looked at."""
    known, since = st.session_state.get(_SHOWN, (None, None))
    if known != pair or since is None:
        st.session_state[_SHOWN] = pair, time.monotonic()


def _too_soon() -> bool:
    """Whether the pair has only just been drawn. If so the wait begins again with the next drawing, so that a key that is held down decides once."""
    pair, since = st.session_state.get(_SHOWN, (None, None))
    if since is not None and time.monotonic() - since >= LEAST_SECONDS:
        return False
    st.session_state[_SHOWN] = pair, None
    st.session_state[_HURRIED] = pair
    return True


def was_ignored(pair: tuple[int, int]) -> bool:
    """For the drawing of a pair: whether a click came too soon to be meant for it."""
    if st.session_state.get(_HURRIED) == NEXT:
        st.session_state[_HURRIED] = pair
    return bool(st.session_state.get(_HURRIED) == pair)


def _attempt(action: Callable[[], object]) -> None:
    try:
        action()
    except EngineError as error:
        st.session_state[_PROBLEM] = error


def outcome(view: RunView, source: Entity, target: Entity) -> Outcome | None:
    """The reviewers' joint decision on a pair; None where no one has decided it, or the decisions cannot be read."""
    fingerprint = str(view.run.manifest["data"]["fingerprint"])
    try:
        found = snapshot_of(fingerprint, cache.reviews().on_pair(fingerprint, (source.uri, target.uri)))
    except EngineError:
        return None
    return found.pairs[0].outcome if found.pairs else None


def choose(fingerprint: str, choices: Sequence[Choice], author: str, token: str, note: str | None = None) -> None:
    """For the buttons that pick one candidate, or none of them: several decisions by one click, which Undo withdraws together."""
    if not _too_soon():
        _keep(fingerprint, choices, author, token, note)
