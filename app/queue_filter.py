"""Which pairs of a queue to review: those of sources with a relation, or with a number of triples."""

from __future__ import annotations

from typing import Final

import numpy as np
import streamlit as st

from app import pair_filters, state
from app.cache import OpenRun
from app.state import PairFilterAddress, ReviewAddress
from engine.util.arrays import BoolArray, IntArray

NAMES: Final = ("relation", "degree_from", "degree_to")
CLEARED: Final = dict.fromkeys((*NAMES, "source", "target"))


def is_set(address: ReviewAddress) -> bool:
    """Whether the address restricts the queue."""
    return any(getattr(address, name) is not None for name in NAMES)


def passing(run: OpenRun, address: ReviewAddress, rows: IntArray) -> IntArray:
    """The rows of the queue that pass, in their order.

    Raises:
        AddressError: the source graph has no such relation.
    """
    if not is_set(address) or address.kind == "sample":
        return rows
    asked = PairFilterAddress(address.runs, relation=address.relation, degree_from=address.degree_from, degree_to=address.degree_to)
    keep: BoolArray = np.zeros(len(run.queue.alignment), dtype=np.bool_)
    keep[run.queue.alignment.select(pair_filters.wanted(run, asked))] = True
    return rows[keep[rows]]


def choose(run: OpenRun, address: ReviewAddress) -> None:
    """A popover with the choices, drawn when it is opened; they are in the address."""
    number = sum(getattr(address, name) is not None for name in NAMES)
    label, key = f"Filter ({number})" if number else "Filter", state.widget_key(state.REVIEW_FILTER)
    popover = st.popover(label, icon=":material/filter_list:", type="tertiary", width="content", on_change="rerun", key=key)
    if popover.open:  # there can be thousands of relations
        with popover:
            _choices(run, address, number)


def _choices(run: OpenRun, address: ReviewAddress, number: int) -> None:
    _relation(run, address)
    for name, label in (("degree_from", "Triples of the source, from"), ("degree_to", "to")):
        value: int | None = getattr(address, name)
        key = state.widget_key(state.CHOICE, "queue", name, value)
        shown = None if value is None else min(max(value, 0), 2**31)
        st.number_input(
            label,
            min_value=0,
            value=shown,
            step=1,
            key=key,
            placeholder="any",
            on_change=pair_filters.follow(key, pair_filters.single(name), _change),
        )
    if number:
        key = state.widget_key(state.CLEAR, "queue", *(getattr(address, name) for name in NAMES))
        st.button("Remove filter", icon=":material/close:", type="tertiary", key=key, on_click=state.set_parameters, args=(CLEARED,))


def _relation(run: OpenRun, address: ReviewAddress) -> None:
    names = run.relation_profiles["source"]["name"].tolist()
    pair_filters.relation_box("Relation of the source", dict.fromkeys(names, ""), address.relation, name=("queue",), change=_change)


def _change(parameters: pair_filters.Parameters) -> None:
    """The pair that was open may not pass any more. The label of the popover changes, which would close it."""
    st.session_state[state.widget_key(state.REVIEW_FILTER)] = True
    state.set_parameters({**parameters, "source": None, "target": None})
