"""The filters of the page Pairs, one below the other. Each choice has the number of pairs that it leaves under all other filters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import components, pair_filters, state, text
from app.cache import OpenRun
from app.glossary import explain, probability_term
from app.palette import DIRECTION, UNKNOWN
from app.state import PairsAddress
from engine.explore.alignment import Alignment, FilterPart, Range, Score, within
from engine.runs.verdicts import KNOWN, NOT_ADDED
from engine.util.arrays import BoolArray, IntArray

Parts = Mapping[FilterPart, BoolArray]

RELATIONS = 300  # offered, those of the most pairs; others can be typed
STEP = 0.01
HEIGHT = 170  # pixels of the histogram
MARGINS: Mapping[str, Range] = {"under 0.02": (None, 0.02), "0.02–0.1": (0.02, 0.1), "0.1–0.3": (0.1, 0.3), "over 0.3": (0.3, None)}
INSIDE, OUTSIDE = DIRECTION["forward"], UNKNOWN


def show(run: OpenRun, address: PairsAddress, alignment: Alignment, parts: Parts) -> None:
    """All filters.

    Args:
        run: the run.
        address: what is chosen.
        alignment: the pairs of the chosen graph.
        parts: the rows that pass each filter that is set.
    """
    components.search_box("Search label, ID or URI", address.search, placeholder="in any script", clears=("page",))
    _verdicts(address, alignment, parts)
    _score(run, address, alignment, parts)
    _margins(address, alignment, parts)
    _kinds(address, alignment, parts)
    _relation(run, address, alignment, parts)
    _more(address, alignment)


def _verdicts(address: PairsAddress, alignment: Alignment, parts: Parts) -> None:
    counts = alignment.counts(alignment.passing(parts, without="known"))
    offered = [known for known in KNOWN if alignment.all_counts[known] or known in address.known]
    labels = {known: f"{pair_filters.KNOWN_WORDS[known]} · {counts[known]:,}" for known in offered}
    pair_filters.pills(
        "Verdict",
        labels,
        [known for known in offered if known in address.known],
        name="known",
        parameters=lambda chosen: {"known": list(chosen) or None},
        help="Whether known links confirm or contradict the pair. None selected: all.",
    )


# Probability, or where a run has none, CSLS


def _score(run: OpenRun, address: PairsAddress, alignment: Alignment, parts: Parts) -> None:
    """How the score is spread, a click to look into a bar, and the range that is kept."""
    if not alignment.calibrated:
        st.caption("This run has no probabilities. Bars show CSLS.", help=text.plain(run.view.why_no_probabilities, 600))
        _histogram(address, alignment, alignment.passing(parts, without="csls"), "csls", (address.csls_from, address.csls_to), "CSLS")
        return
    asked = (address.probability_from, address.probability_to)
    word = run.view.probability_word
    _histogram(address, alignment, alignment.passing(parts, without="probability"), "probability", asked, word)
    _range("probability", (0.0, 1.0), asked, probability_term(run.view.unchecked_probabilities), word)


def _histogram(address: PairsAddress, alignment: Alignment, counted: IntArray, score: Score, asked: Range, word: str) -> None:
    middle = alignment.median(counted, score)
    if middle is None:
        st.caption("Seed links have no probability, so there is no distribution to show.")
        return
    data = alignment.histogram(counted, score)
    points = components.figure(
        histogram_figure(data, word, asked),
        name=f"pairs-by-{score}",
        title=f"Pairs by {word}",
        caption=f"Median {word} {f'{middle:.0%}' if score == 'probability' else text.score(middle)}. Click a bar to list its pairs.",
        data=data,
        height=HEIGHT,
        key=state.widget_key(state.PAIR_FIGURE, address),
        on_select="rerun",
    )
    if points:
        bar = data.iloc[int(points[0]["point_index"])]
        pair_filters.change({f"{score}_from": f"{bar['low']:.4f}", f"{score}_to": f"{bar['high']:.4f}"})
        st.rerun()


def histogram_figure(data: pd.DataFrame, word: str, asked: Range) -> go.Figure:
    """The number of pairs in each bin on a log axis, so that bins of few pairs can be seen; those outside of the range that is kept are hollow.

    Args:
        data: as of :meth:`engine.explore.alignment.Alignment.histogram`.
        word: what the score is called.
        asked: the range that is kept.
    """
    counts, width = data[list(KNOWN)].sum(axis=1), data["high"] - data["low"]
    middle = data["low"] + width / 2
    kept = within(middle.to_numpy(), asked)
    words = [
        f"{row['low']:.2f} to {row['high']:.2f}: {text.count(int(count), 'pair')}"
        + "".join(f"<br>{pair_filters.KNOWN_WORDS[known]}: {row[known]:,.0f}" for known in KNOWN if row[known])
        for row, count in zip(data.to_dict("records"), counts, strict=True)
    ]
    fig = go.Figure(
        go.Bar(
            x=middle,
            y=counts,
            width=width * 0.92,
            marker={
                "color": [INSIDE if one else "rgba(128, 136, 144, 0.25)" for one in kept],
                "line": {"color": [INSIDE if one else OUTSIDE for one in kept], "width": 1},
            },
            hovertext=words,
            hoverinfo="text",
            showlegend=False,
        )
    )
    most = max(float(counts.max()), 1.0)
    fig.update_xaxes(title=word, nticks=5)
    fig.update_yaxes(title="pairs (log)", type="log", range=[float(np.log10(0.7)), float(np.log10(most * 1.5))], dtick=1 if most >= 10 else "D1")
    return fig


def _range(name: Score, ends: tuple[float, float], asked: Range, term: str, word: str) -> None:
    low, high = sorted(min(max(end if value is None else value, ends[0]), ends[1]) for end, value in zip(ends, asked, strict=True))
    key = state.widget_key(state.CHOICE, name, asked)

    def parameters(chosen: tuple[float, float]) -> pair_filters.Parameters:
        return {
            f"{name}_from": None if chosen[0] <= ends[0] else f"{chosen[0]:.2f}",
            f"{name}_to": None if chosen[1] >= ends[1] else f"{chosen[1]:.2f}",
        }

    st.slider(
        word[0].upper() + word[1:], *ends, value=(low, high), step=STEP, key=key, on_change=pair_filters.follow(key, parameters), help=explain(term)
    )


# The others


def _margins(address: PairsAddress, alignment: Alignment, parts: Parts) -> None:
    values = alignment.rows["margin"].to_numpy()[alignment.passing(parts, without="margin")]
    asked = (address.margin_from, address.margin_to)
    labels = {name: f"{name} · {int(within(values, ends).sum()):,}" for name, ends in MARGINS.items()}
    key = state.widget_key(state.CHOICE, "margin", asked, labels)

    def parameters(chosen: str | None) -> pair_filters.Parameters:
        low, high = (None, None) if chosen is None else MARGINS[chosen]
        return {"margin_from": None if low is None else f"{low:g}", "margin_to": None if high is None else f"{high:g}"}

    st.pills(
        "Margin",
        list(MARGINS),
        wrap=True,
        default=next((name for name, ends in MARGINS.items() if ends == asked), None),
        format_func=labels.__getitem__,
        key=key,
        on_change=pair_filters.follow(key, parameters),
        help=explain("margin"),
    )


def _kinds(address: PairsAddress, alignment: Alignment, parts: Parts) -> None:
    """Conflicts, contradictions and pairs of a round: those that this run has."""

    def count(name: FilterPart, rows: BoolArray) -> int:
        return int(rows[alignment.passing(parts, without=name)].sum())

    offered: dict[FilterPart, tuple[str, int, bool, str]] = {
        "conflicts": ("conflicts", count("conflicts", alignment.rows["claims"].to_numpy() > 1), address.conflicts, "conflict")
    }
    if alignment.contradictions or address.contradictions:
        number = count("contradictions", alignment.contradicting)
        offered["contradictions"] = ("hierarchy contradictions", number, address.contradictions, "contradiction")
    if alignment.has_rounds or address.added:
        offered["added"] = ("added to training", count("added", alignment.rows["added"].to_numpy() != NOT_ADDED), address.added, "semi")
    labels = {name: f"{words} · {number:,}" for name, (words, number, _, _) in offered.items()}
    chosen = [name for name, (_, _, on, _) in offered.items() if on]
    pair_filters.pills(
        "Only pairs with",
        labels,
        chosen,
        name="kinds",
        parameters=lambda names: {name: "yes" if name in names else None for name in offered},
        help=explain(*(term for _, _, _, term in offered.values())),
    )


def _relation(run: OpenRun, address: PairsAddress, alignment: Alignment, parts: Parts) -> None:
    counts = _pairs_by_relation(run, address, alignment, alignment.passing(parts, without="incident"))
    offered = dict.fromkeys([*list(counts)[:RELATIONS], *([] if address.relation is None else [address.relation])])
    pair_filters.relation_box(
        "Relation of the entity",
        {name: f" · {counts.get(name, 0):,}" for name in offered},
        address.relation,
        name=(address.side,),
        typed=len(counts) > RELATIONS,
        help="The entity has the relation as head or tail. Relations of the most pairs are listed; type the name of any other.",
    )


def _pairs_by_relation(run: OpenRun, address: PairsAddress, alignment: Alignment, counted: IntArray) -> dict[str, int]:
    """Relations by their names, the one with the most of these pairs first; without those that have none of them."""
    relations, entities = pair_filters.members(run, address.side)
    inside = np.zeros(len(run.view.graphs[address.side]), dtype=bool)
    inside[alignment.rows["entity"].to_numpy()[counted]] = True
    profile = run.relation_profiles[address.side]
    pairs = np.bincount(relations[inside[entities]], minlength=int(profile["relation"].max()) + 1 if len(profile) else 0)
    found = sorted(zip((-pairs[profile["relation"].to_numpy(dtype=np.int64)]).tolist(), profile["name"].tolist(), strict=True))
    return {name: -number for number, name in found if number}


def _more(address: PairsAddress, alignment: Alignment) -> None:
    """What is asked for less often."""
    asked = (address.degree_from, address.degree_to, *((address.csls_from, address.csls_to) if alignment.calibrated else ()))
    with st.expander("Degree and CSLS", expanded=any(value is not None for value in asked)):
        _degree(address, alignment)
        low, high = alignment.csls_ends
        _range("csls", (low - low % STEP, high - high % STEP + STEP), (address.csls_from, address.csls_to), "CSLS", "CSLS")


def _degree(address: PairsAddress, alignment: Alignment) -> None:
    most = int(alignment.rows["degree"].max())
    asked = (("degree_from", "Degree from", address.degree_from), ("degree_to", "to", address.degree_to))
    for column, (name, label, value) in zip(st.columns(2), asked, strict=True):
        key = state.widget_key(state.CHOICE, name, value)
        column.number_input(
            label,
            min_value=0,
            max_value=most,
            value=None if value is None else min(max(value, 0), most),
            step=1,
            key=key,
            placeholder="any",
            on_change=pair_filters.follow(key, pair_filters.single(name)),
            help=explain("degree"),
        )
