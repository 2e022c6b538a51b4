"""Who reviews, and what a click does: the part of the review page that is not drawing."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st

from app import cache, sign_in, state
from engine.entities import Entity
from engine.errors import EngineError, ReviewError
from engine.matching import RunView
from engine.reviews import Choice, check_author, snapshot_of
from engine.reviews.decisions import Pair
from engine.reviews.snapshot import Outcome

LEAST_SECONDS = 0.5
"""A pair that was shown for less has not been looked at: the click came from a key that is held down, or was meant for the pair before."""
MARK_OF_ACCOUNTS: Final = "@"


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
    told = st.session_state.get(note, "") if note else ""
    written = [Choice(*one.pair, one.verdict, told or one.note, one.run, one.csls, one.probability) for one in choices]
    _attempt(lambda: cache.reviews().decide(fingerprint, written, author, token))
    state.set_parameters({"source": None, "target": None})


def undo(fingerprint: str, author: str, token: str) -> None:
    """For a button: withdraw the last click, and show its pair again."""

    def withdraw() -> None:
        gone = cache.reviews().undo(fingerprint, author, token)
        st.session_state[state.REVIEW_CLICK] = gone[0].pair if len(gone) == 1 else None

    _attempt(withdraw)
    state.set_parameters({"source": None, "target": None})


def withdraw(fingerprint: str, number: int, author: str, token: str) -> None:
    """For a button: withdraw one decision of one's own."""
    _attempt(lambda: cache.reviews().withdraw(fingerprint, number, author, token))


def token() -> str:
    """Names the next click; made with what is drawn, so that a click that arrives twice is the same one."""
    return uuid.uuid4().hex


def problem() -> EngineError | None:
    """What went wrong with the last click, told once."""
    found: EngineError | None = st.session_state.pop(f"{state.REVIEW_CLICK}:problem", None)
    return found


def to_look_at_again() -> Pair | None:
    """The pair whose decision was just undone."""
    found: Pair | None = st.session_state.get(state.REVIEW_CLICK)
    return found


def shown(pair: tuple[int, int]) -> None:
    """For the end of drawing a pair: from now on it can be looked at."""
    known, since = st.session_state.get(f"{state.REVIEW_CLICK}:shown", (None, None))
    if known != pair or since is None:
        st.session_state[f"{state.REVIEW_CLICK}:shown"] = pair, time.monotonic()


def _too_soon() -> bool:
    """Whether the pair has only just been drawn. If so the wait begins anew with the next drawing, so that a key that is held down decides once."""
    pair, since = st.session_state.get(f"{state.REVIEW_CLICK}:shown", (None, None))
    if since is not None and time.monotonic() - since >= LEAST_SECONDS:
        return False
    st.session_state[f"{state.REVIEW_CLICK}:shown"] = pair, None
    return True


def _attempt(action: Callable[[], object]) -> None:
    try:
        action()
    except EngineError as error:
        st.session_state[f"{state.REVIEW_CLICK}:problem"] = error


def outcome(view: RunView, source: Entity, target: Entity) -> Outcome | None:
    """What reviewers say together of a pair; None where nobody has decided it, or the decisions cannot be read."""
    fingerprint = str(view.run.manifest["data"]["fingerprint"])
    try:
        found = snapshot_of(fingerprint, cache.reviews().on_pair(fingerprint, (source.uri, target.uri)))
    except EngineError:
        return None
    return found.pairs[0].outcome if found.pairs else None
