"""The filters of a table of pairs: what an address requests, in words, as chips, and in the engine's form; for every page that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import streamlit as st

from app import cache, state, text
from app.cache import OpenRun
from app.state import AddressError, PairFilterAddress
from engine.data.knowledge_graph import Side
from engine.explore.alignment import PairFilter, incident_entities, relation_members
from engine.runs.entities import short_id
from engine.runs.verdicts import Known
from engine.util.arrays import IntArray

K = TypeVar("K", bound=str)
P = TypeVar("P", bound=PairFilterAddress)

KNOWN_WORDS: Mapping[Known, str] = {"seed": "⚓ seed", "right": "✓ correct", "wrong": "× incorrect", "probable": "≈ probable", "unknown": "? unknown"}

Parameters = Mapping[str, str | Sequence[str] | None]
Change = Callable[[Parameters], None]


def change(parameters: Parameters) -> None:
    """A widget's callback: change the address and start again at the first page."""
    state.set_parameters({"page": None, **parameters})


def follow(key: str, parameters: Callable[[Any], Parameters], change: Change = change) -> Callable[[], None]:
    """A callback that makes parameters of the address from the widget's value."""
    return lambda: change(parameters(st.session_state[key]))


def pills(
    label: str, labels: Mapping[K, str], chosen: Sequence[K], *, name: str, parameters: Callable[[Any], Parameters], help: str | None = None
) -> None:
    """Choices of which any number can be on.

    Args:
        label: of all of them.
        labels: of each, with the number of rows that it leaves.
        chosen: those that are on.
        name: of the widget.
        parameters: makes parameters of the address from the choices that are on.
        help: as of ``st.pills``.
    """
    key = state.widget_key(state.CHOICE, name, tuple(chosen), labels)
    st.pills(
        label,
        list(labels),
        selection_mode="multi",
        wrap=True,
        default=list(chosen),
        format_func=labels.__getitem__,
        key=key,
        on_change=follow(key, parameters),
        help=help,
    )


def relation_box(
    label: str,
    labels: Mapping[str, str],
    chosen: str | None,
    *,
    name: Sequence[object],
    change: Change = change,
    typed: bool = False,
    help: str | None = None,
) -> None:
    """A choice of one relation.

    Args:
        label: of the box.
        labels: what follows the name of each relation that is offered; one that is chosen already is offered besides.
        chosen: the relation of the address.
        name: of the widget.
        change: takes the parameter ``relation``, None for any.
        typed: whether other relations may be typed.
        help: as of ``st.selectbox``.
    """
    options = [*labels, *([chosen] if chosen is not None and chosen not in labels else [])]
    shown = text.distinct_labels({one: text.cell(short_id(one), 60) + labels.get(one, "") for one in options})
    key = state.widget_key(state.CHOICE, *name, "relation", chosen, shown)
    st.selectbox(
        label,
        options,
        index=None if chosen is None else options.index(chosen),
        format_func=lambda one: shown.get(one, one),  # what was typed is no option
        key=key,
        placeholder="any",
        accept_new_options=typed,
        on_change=follow(key, lambda one: {"relation": one or None}, change),
        help=help,
    )


def single(name: str) -> Callable[[Any], Parameters]:
    """A number or a switch as the parameter of this name; nothing and "off" leave it out."""
    return lambda value: {name: "yes" if value is True else None if value is None or value is False else str(value)}


def carried(kind: type[P], address: PairFilterAddress) -> P:
    """Another page's address with the same runs and filters."""
    return kind(**{field.name: getattr(address, field.name) for field in fields(PairFilterAddress)})


def members(run: OpenRun, side: Side) -> tuple[IntArray, IntArray]:
    """Distinct (relation, entity that is its head or tail) of a graph, computed once for all sessions."""
    entities = len(run.view.graphs[side])
    return cache.kept([run], ("members", side), lambda: relation_members(run.table("triples"), side, entities))


def probability_word(run: OpenRun, side: Side) -> str:
    """What the run's probabilities are called; 'probability' where it has none."""
    return run.view.probability_word if run.alignments[side].calibrated else "probability"


def chips(run: OpenRun, address: PairFilterAddress) -> None:
    """The filters that are set, each as a button that removes it."""
    found = list(active(address, probability_word(run, address.side)))
    if not found:
        return
    with st.container(horizontal=True, gap="small"):
        for label, names in found:
            key = state.widget_key(state.CHOICE, "chip", label)
            st.button(label, key=key, icon=":material/close:", on_click=change, args=(dict.fromkeys(names),), help="Remove this filter")
        if len(found) > 1:
            everything = dict.fromkeys(name for _, names in found for name in names)
            key = state.widget_key(state.CHOICE, "chip", "all")
            st.button("Remove all filters", key=key, on_click=change, args=(everything,), type="tertiary")


def active(address: PairFilterAddress, probability: str = "probability") -> list[tuple[str, tuple[str, ...]]]:
    """The words of each filter that is set, as Markdown, and its parameters. ``probability``: what the run's probabilities are called."""
    found: list[tuple[str, tuple[str, ...]]] = []
    if address.search:
        found.append((f"contains “{text.plain(address.search, 40)}”", ("search",)))
    if address.known:
        found.append((" or ".join(KNOWN_WORDS[known] for known in address.known), ("known",)))
    ranges = (
        (probability, "probability", address.probability_from, address.probability_to),
        ("CSLS", "csls", address.csls_from, address.csls_to),
        ("margin", "margin", address.margin_from, address.margin_to),
        ("degree", "degree", address.degree_from, address.degree_to),
    )
    for words, name, low, high in ranges:
        if low is not None or high is not None:
            found.append((_range_words(words, low, high), (f"{name}_from", f"{name}_to")))
    if address.relation is not None:
        found.append((f"relation: {text.plain(short_id(address.relation), 40)}", ("relation",)))
    if address.conflicts:
        found.append(("conflicts", ("conflicts",)))
    if address.contradictions:
        found.append(("contradicts the hierarchy", ("contradictions",)))
    if address.added:
        found.append(("added to training", ("added",)))
    return found


def _range_words(words: str, low: float | None, high: float | None) -> str:
    if low is None:
        return f"{words} ≤ {high:g}"
    return f"{words} ≥ {low:g}" if high is None else f"{words} {low:g}–{high:g}"


def wanted(run: OpenRun, address: PairFilterAddress) -> PairFilter:
    """The filters for the engine.

    Raises:
        AddressError: the graph has no such relation.
    """
    incident = None
    if address.relation is not None:
        profile = run.relation_profiles[address.side]
        numbers = profile.loc[profile["name"] == address.relation, "relation"]
        if numbers.empty:
            name = run.view.graphs[address.side].name
            raise AddressError(f"{name} has no relation '{address.relation[:80]}'. Remove the filter, or choose a relation from the list.")
        incident = incident_entities(run.table("triples"), address.side, int(numbers.iloc[0]), len(run.view.graphs[address.side]))
    return PairFilter(
        known=frozenset(address.known),
        probability=(address.probability_from, address.probability_to),
        csls=(address.csls_from, address.csls_to),
        margin=(address.margin_from, address.margin_to),
        degree=(address.degree_from, address.degree_to),
        text=address.search or "",
        incident=incident,
        conflicts=address.conflicts,
        contradictions=address.contradictions,
        added=address.added,
    )
