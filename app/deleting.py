"""Deleting a run from the app: asked for, confirmed, done; by those alone who may (docs/operations.md)."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app import cache, components, sign_in, state, text
from engine.errors import EngineError, RunError
from engine.jobs import JobQueue
from engine.runs import RunStore
from engine.runs.cleanup import DeletionCandidate, delete, deletion_candidate
from engine.util.text import size_text

PROBLEM = f"{state.DELETING}:problem"
DONE = f"{state.DELETING}:done"


def offer(run: str) -> None:
    """A button that asks to delete this run, and after a click on it the question; nothing for who may not.

    Args:
        run: ``dataset/run_id``, of any state.
    """
    if not sign_in.may_delete():
        return
    asked, version = st.session_state.get(state.DELETING, ("", ""))
    if asked == run:
        _question(run, version)
    else:
        key = state.widget_key(state.DELETE_BUTTON, run, "ask")
        st.button("Delete run", icon=":material/delete:", type="tertiary", key=key, on_click=lambda: _attempt(lambda: _ask(run)))


def outcome() -> None:
    """What became of the last click, said once."""
    problem: EngineError | None = st.session_state.pop(PROBLEM, None)
    if problem is not None:
        components.show_error(problem)
    done: str | None = st.session_state.pop(DONE, None)
    if done is not None:
        st.success(done, icon=":material/delete:")


def _question(run: str, version: str) -> None:
    """What goes with it, and the two answers."""
    try:
        found = deletion_candidate(RunStore(cache.models_folder()), run, version=version)
    except EngineError as error:
        st.session_state.pop(state.DELETING, None)
        components.show_error(error)
        return
    with st.container(border=True, key="delete_question"):
        st.markdown(f"**Delete {text.plain(run)} permanently?** {_consequences(found)}")
        with st.container(horizontal=True):
            sure = state.widget_key(state.DELETE_BUTTON, run, version, "sure")
            st.button("Delete permanently", icon=":material/delete_forever:", key=sure, on_click=lambda: _attempt(lambda: _delete(run, version)))
            st.button("Keep run", key=state.widget_key(state.DELETE_BUTTON, run, "keep"), on_click=_forget)


def _consequences(found: DeletionCandidate) -> str:
    """In sentences."""
    notes = [f"This frees {size_text(found.bytes)} and cannot be undone. Reviews and data sets are kept."]
    if found.run.state == "partial":
        notes.append("The interrupted training can no longer be resumed.")
    if found.built_on:
        notes.append(f"{', '.join(text.plain(one) for one in found.built_on)} was built on it and remains complete.")
    return " ".join(notes)


def _ask(run: str) -> None:
    st.session_state[state.DELETING] = run, deletion_candidate(RunStore(cache.models_folder()), run).version


def _forget() -> None:
    st.session_state.pop(state.DELETING, None)


def _delete(run: str, version: str) -> None:
    """
    Raises:
        EngineError: it may not be deleted, or not by this person. It is still there.
    """
    _forget()
    if not sign_in.may_delete():
        raise RunError("Only administrators can delete runs. Ask the administrator of this app.")
    models = cache.models_folder()
    if any(job.active and job.name == run for job in JobQueue(models).jobs()):
        raise RunError(f"A job in the queue continues {run}. Cancel or stop it on the page Train first.")
    store = RunStore(models)
    found = deletion_candidate(store, run, version=version)
    delete(store, [found])
    st.session_state[DONE] = f"{text.plain(run)} was deleted; {size_text(found.bytes)} freed."


def _attempt(action: Callable[[], object]) -> None:
    try:
        action()
    except EngineError as error:
        st.session_state[PROBLEM] = error
