"""The neighbourhoods of a pair facing each other: what to draw, the figure, what a click in it offers, the same as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from app import charts, components, on_scroll, pages, state, text
from app.cache import OpenRun
from app.glossary import explain
from app.palette import PLAIN_MARKS
from app.state import Drawn, EntityAddress, Hops, Listed
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import EngineError, EntityError
from engine.explore.neighbourhood import (
    AttentionPart,
    Facing,
    Neighbour,
    NeighbourMatch,
    NeighbourPair,
    aligned_elsewhere,
    facing,
    highest_attention,
    standings,
)
from engine.runs.entities import Entity, other
from engine.runs.verdicts import HELD_OUT, status_words

MOST_EXPANDED = 4
WAITING = "Drawing both neighbourhoods…"
CHOSEN = ("hops", "drawn", "layer", "channel", "expand", "listed")
NOTHING_CHOSEN = EntityAddress()
"""Whose link asks for no particular part of the neighbourhoods: they are drawn once they are scrolled to."""


@dataclass(frozen=True)
class Shown:
    """A figure's content: the run, the address of its page, the two neighbourhoods."""

    opened: OpenRun
    address: EntityAddress
    faced: Facing

    @property
    def part(self) -> AttentionPart:
        """The attention that is shown."""
        return AttentionPart(self.address.layer, self.address.channel)

    @property
    def key(self) -> tuple[object, ...]:
        """What a selection in the figure belongs to; the attention that is shown moves nothing, so it is not part of it."""
        return self.address.runs[0], self.faced.source.uri, self.faced.target.uri, self.address.hops, self.address.drawn


@st.fragment
def neighbourhoods(opened: OpenRun, page: EntityAddress, source: Entity, target: Entity) -> None:
    """Everything about a pair's neighbourhoods, and about those that the address wants expanded.

    A fragment: what is chosen here changes nothing above it. It reads the choices from the address again, and shows what is wrong with them.
    """
    st.subheader("Neighbourhood comparison", anchor=False)
    with components.errors_shown():
        asked = EntityAddress.read()
        chosen = {name: getattr(asked, name) for name in CHOSEN}
        if all(value == getattr(NOTHING_CHOSEN, name) for name, value in chosen.items()) and not on_scroll.reached("neighbourhoods", WAITING):
            return
        _content(opened, replace(page, **chosen), source, target)


def _content(opened: OpenRun, address: EntityAddress, source: Entity, target: Entity) -> None:
    shown = _shown(opened, address, source, target)
    if not shown.faced.total_source and not shown.faced.total_target:
        st.markdown("Neither entity has a neighbour, so the structure gives no evidence for or against the pair.")
        return
    _choices(opened, address)
    st.markdown(f"{sentence(shown.faced)} {strongest(shown)}")
    _figure(shown)
    _legend(opened, address)
    _table(shown)
    for reference in address.expand[-MOST_EXPANDED:]:
        _expanded(opened, address, reference)


def _shown(opened: OpenRun, address: EntityAddress, source: Entity, target: Entity) -> Shown:
    part = AttentionPart(address.layer, address.channel)
    return Shown(opened, address, facing(opened.adjacency, source.index, target.index, int(address.drawn), int(address.hops), part))


# What to draw


def _choices(opened: OpenRun, address: EntityAddress) -> None:
    with st.container(horizontal=True, gap="medium"):
        hops: dict[Hops, str] = {"1": "1", "2": "2"}
        components.choice("Hops", hops, name="hops", value=address.hops, default="1", help="2: also aligned neighbours of the aligned neighbours.")
        drawn: dict[Drawn, str] = {"10": "10", "20": "20", "40": "40"}
        components.choice(
            "Neighbours per graph",
            drawn,
            name="drawn",
            value=address.drawn,
            default="20",
            help="Maximum number drawn, strongest first. The table lists all.",
        )
        attention = opened.adjacency.attention
        if attention is None:
            return
        layers = {0: "mean", **{layer: str(layer) for layer in range(1, attention.layers + 1)}}
        components.choice("Attention of layer", layers, name="layer", value=address.layer or 0, default=0, help=explain("attention", "layer"))
        if len(attention.channels) > 1:
            channels = {"mean": "mean", **{channel: channel for channel in attention.channels}}
            components.choice("Channel", channels, name="channel", value=address.channel or "mean", default="mean", help=explain("channel"))


def sentence(faced: Facing) -> str:
    """What the figure shows for this pair."""
    kinds = (
        (faced.count("seed link"), "by a seed link"),
        (faced.count("added in a round"), _added_words(faced)),
        (faced.count("known validation link") + faced.count("known test link"), "by validation or test links (unseen in training)"),
        (faced.count("predicted"), "by predicted best matches"),
    )
    words = "; ".join(f"{number:,} {how}" for number, how in kinds if number)
    start = f"Of {text.count(faced.total_source, 'neighbour')} of the source and {faced.total_target:,} of the target, "
    if not faced.total_pairs:
        return f"{start}none are aligned with each other."
    shown = f", of which {len(faced.pairs):,} are shown" if len(faced.pairs) < faced.total_pairs else ""
    further = f" {text.count(len(faced.far), 'more pair')} {'is' if len(faced.far) == 1 else 'are'} two hops away." if faced.far else ""
    verb = "is" if faced.total_pairs == 1 else "are"
    return f"{start}**{text.count(faced.total_pairs, 'pair')}** {verb} aligned with each other{shown}: {words}.{further}"


def _added_words(faced: Facing) -> str:
    """Pairs that rounds trained on; a held-out link may confirm them, and training used the prediction and not the link."""
    confirmed = sum(pair.verdict in HELD_OUT for pair in faced.pairs if pair.evidence == "added in a round")
    known = f" ({confirmed:,} of them also by validation or test links, unseen in training)" if confirmed else ""
    return f"by predictions that training started from or added in a round{known}"


def strongest(shown: Shown) -> str:
    """The neighbour with the highest attention weight of each of the two, compared with the uniform weight."""
    parts = []
    for entity in (shown.faced.source, shown.faced.target):
        loudest = highest_attention(shown.opened.adjacency, entity.side, entity.index, shown.part)
        if loudest is not None and loudest.attention is not None and entity.degree > 1:
            share, equal = charts.percent(loudest.attention), charts.percent(len(loudest.edges) / entity.degree)
            parts.append(f"for {components.entity_label(entity)} on {text.plain(loudest.entity.title, 60)}: {share} (uniform: {equal})")
    return f"Highest attention weight {'; '.join(parts)}." if parts else ""


def _end(pair: NeighbourPair, side: Side) -> Neighbour:
    return pair.source if side == "source" else pair.target


# The figure


@st.fragment
def _figure(shown: Shown) -> None:
    """The figure, and below it what the last click offers. Reads nothing of the run that has not been read before."""
    names = " – ".join(text.cell(one.title, 40) for one in (shown.faced.source, shown.faced.target))
    figure = charts.with_title(charts.facing_figure(shown.faced), f"Neighbourhoods: {names}", components.figure_source(), "neighbourhoods")
    picture = st.session_state.get(state.PICTURE_FORMAT, "png")
    chosen: Any = st.echarts_chart(
        figure.option,
        height=figure.height,
        key=state.widget_key(state.FACING_FIGURE, *shown.key, picture),
        on_select="rerun",
        renderer="svg" if picture == "svg" else "canvas",
        alt=f"Neighbours of {text.cell(shown.faced.source.title)} and {text.cell(shown.faced.target.title)}; the table below lists the same.",
    )
    entity, more = charts.clicked_entity(figure, chosen), charts.clicked_more(figure, chosen)
    with st.container(horizontal=True, wrap=False, vertical_alignment="top"):
        with st.container():
            if entity is not None:
                _card(shown, entity)
            elif more is not None:
                _all_of(shown, more)
            else:
                st.caption("Click a neighbour to show, open or expand it. Hover over a box or a line to see its relations.")
        key = state.widget_key(state.FACING_FIGURE, "downloads", *shown.key)
        components.downloads("neighbourhoods", lambda: pd.DataFrame(_drawn_rows(shown)), picture, key)


def _card(shown: Shown, entity: Entity) -> None:
    """A neighbour that was clicked: the entity, its relations, its counterpart; and what to do with it."""
    neighbour, counterpart, words = _standing(shown, entity)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{components.entity_label(entity)} :gray[{text.plain(entity.short_id, 60)}]", width="content")
        address = replace(
            shown.address, side=entity.side, entity=entity.uri, match=None if counterpart is None else counterpart.uri, expand=(), listed="drawn"
        )
        pages.link(pages.ENTITY, address, "Open", icon=":material/open_in_new:")
        reference = f"{entity.side}:{entity.uri}"
        key = state.widget_key(state.EXPAND_BUTTON, *shown.key, reference)
        if st.button("Expand here", icon=":material/unfold_more:", type="tertiary", key=key, disabled=reference in shown.address.expand):
            expanded = [*(one for one in shown.address.expand if one != reference), reference]
            state.set_parameter(state.EXPAND, expanded[-MOST_EXPANDED:])
            st.rerun()
    along = charts.edge_words(neighbour.edges, shares=True) if neighbour else ""
    st.caption(text.plain(f"{along} · {words} · {text.count(entity.degree, 'triple')}", 400))


def _standing(shown: Shown, entity: Entity) -> tuple[Neighbour | None, Entity | None, str]:
    """A drawn neighbour, what it is aligned with, and in words how."""
    across = other(entity.side)
    for pair in (*shown.faced.pairs, *(far.pair for far in shown.faced.far)):
        if _end(pair, entity.side).entity == entity:
            counterpart = _end(pair, across).entity
            return _end(pair, entity.side), counterpart, f"aligned with {counterpart.title}: {_evidence_words(pair)}"
    alone = shown.faced.source_only if entity.side == "source" else shown.faced.target_only
    neighbour = next((one for one in alone if one.entity == entity), None)
    elsewhere = aligned_elsewhere(shown.opened.view, entity.side, entity.index)
    if elsewhere is None:
        return neighbour, None, "not aligned"
    return neighbour, elsewhere[0], f"aligned elsewhere: {elsewhere[0].title} ({elsewhere[1]})"


def _evidence_words(pair: NeighbourPair) -> str:
    if pair.evidence == "predicted":
        return "predicted" if pair.mutual else "predicted, one direction"
    return status_words(pair.verdict, pair.added) + (" (evaluation only)" if pair.evaluation_only else "")


def _all_of(shown: Shown, side: Side) -> None:
    total = shown.faced.total_source if side == "source" else shown.faced.total_target
    centre = shown.faced.source if side == "source" else shown.faced.target
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{components.entity_label(centre)} has {text.count(total, 'neighbour')}.", width="content")
        address = replace(shown.address, side=centre.side, entity=centre.uri, match=_facing_uri(shown.faced, side), listed=side)
        pages.link(pages.ENTITY, address, "Show all as a table", icon=":material/table_rows:")


def _facing_uri(faced: Facing, side: Side) -> str:
    return faced.target.uri if side == "source" else faced.source.uri


def _legend(opened: OpenRun, address: EntityAddress) -> None:
    attention = opened.adjacency.attention
    if attention is None:
        width = "Line width: uniform, because this run stores no attention weights."
    else:
        layer = f"layer {address.layer}" if address.layer else f"the mean of {text.count(attention.layers, 'layer')}"
        channel = f"the {address.channel} channel" if address.channel else f"the mean of {text.count(len(attention.channels), 'channel')}"
        width = f"Line width: attention weight ({layer}, {channel})."
    across = ", ".join(f"{line.shape} for {line.words}" for line in dict.fromkeys(charts.LINE.values()))
    st.caption(
        f"Lines between the graphs: {across}. Boxes: blue source, brown target, grey not aligned with each other. "
        "Lines to neighbours, with the entity in the middle as head (green, arrow), tail (violet, dot) or both (grey, diamond). "
        f"{width}"
    )


# Expanded neighbours


def _expanded(opened: OpenRun, address: EntityAddress, reference: str) -> None:
    """A neighbour's own neighbourhood below, facing that of its counterpart; what is wrong with it stays in its place."""
    with st.container(border=True):
        try:
            entity = opened.view.resolve(reference)
            counterpart = aligned_elsewhere(opened.view, entity.side, entity.index)
            if counterpart is None:
                raise EntityError(f"'{entity.title}' has no counterpart to compare it with.")
            pair = (entity, counterpart[0]) if entity.side == "source" else (counterpart[0], entity)
            shown = _shown(opened, address, *pair)
        except EngineError as error:
            components.show_error(error)
            shown = None
        with st.container(horizontal=True, vertical_alignment="center"):
            if shown is not None:
                st.markdown(f"#### {components.entity_label(shown.faced.source)} ↔ {components.entity_label(shown.faced.target)}", width="content")
                pages.link(
                    pages.ENTITY,
                    replace(address, side=pair[0].side, entity=pair[0].uri, match=pair[1].uri, expand=()),
                    "Open",
                    icon=":material/open_in_new:",
                )
            st.button(
                "Close",
                icon=":material/close:",
                type="tertiary",
                key=state.widget_key(state.EXPAND_BUTTON, "close", reference),
                on_click=_close,
                args=(address.expand, reference),
            )
        if shown is not None:
            st.markdown(
                f"{sentence(shown.faced)} {strongest(shown)}" if shown.faced.total_source + shown.faced.total_target else "Neither has a neighbour."
            )
            _figure(shown)


def _close(expanded: Sequence[str], reference: str) -> None:
    state.set_parameter(state.EXPAND, [one for one in expanded if one != reference] or None)


# As tables


def _table(shown: Shown) -> None:
    """The neighbours that are drawn, or all of one entity: a row opens its neighbour."""
    faced, address = shown.faced, shown.address
    key = state.widget_key(state.AS_TABLE, *shown.key)
    with components.drawn_when_open("Neighbours as a table", key, expanded=address.listed != "drawn") as is_open:
        if not is_open:
            return
        options: dict[Listed, str] = {
            "drawn": "as shown",
            "source": f"{PLAIN_MARKS['source']} all {text.count(faced.total_source, 'neighbour')} of the source",
            "target": f"{PLAIN_MARKS['target']} all {text.count(faced.total_target, 'neighbour')} of the target",
        }
        components.choice("Neighbours", options, name=state.LISTED, value=address.listed, default="drawn")
        if address.listed == "drawn":
            components.table(pd.DataFrame(_drawn_rows(shown)), name="neighbours-drawn")
        else:
            _all_neighbours(shown, address.listed)


def _all_neighbours(shown: Shown, side: Side) -> None:
    centres = (shown.faced.source, shown.faced.target)
    entity, faced = centres if side == "source" else centres[::-1]
    found = standings(shown.opened.adjacency, side, entity.index, faced.index, shown.part)
    if not found:
        st.markdown("This entity has no triples.")
        return
    data = pd.DataFrame([_standing_row(one) for one in found])
    columns = {
        "attention": st.column_config.NumberColumn(format="percent", help=explain("attention")),
        "triples": st.column_config.NumberColumn(help=explain("degree")),
    }
    row = components.table(
        data.dropna(axis=1, how="all"),
        name="all-neighbours",
        key=state.widget_key(state.NEIGHBOUR_TABLE, *shown.key, side),
        on_select="rerun",
        columns=columns,
        share_decimals=3,
        above=lambda: st.caption("Select a row to open the neighbour."),
    )
    if row is not None:
        one = found[row]
        pages.go(pages.ENTITY, state.entity_address(shown.address.runs, one.neighbour.entity, one.counterpart))


def _standing_row(one: NeighbourMatch) -> dict[str, object]:
    entity = one.neighbour.entity
    return {
        "neighbour": text.cell(entity.title),
        "relation": charts.edge_words(one.neighbour.edges),
        "attention": one.neighbour.attention,
        "aligned": "not aligned" if one.evidence is None else f"{'here' if one.here else 'elsewhere'}: {one.evidence}",
        "with": "" if one.counterpart is None else text.cell(one.counterpart.title),
        "triples": entity.degree,
        "id": text.cell(entity.short_id),
    }


def _drawn_rows(shown: Shown) -> list[dict[str, object]]:
    faced = shown.faced
    rows = [_pair_row(pair, hop) for hop, pairs in ((1, faced.pairs), (2, [far.pair for far in faced.far])) for pair in pairs]
    for side, alone in zip(SIDES, (faced.source_only, faced.target_only), strict=True):
        rows += [_alone_row(shown, side, neighbour) for neighbour in alone if not faced.far]
    return rows


def _pair_row(pair: NeighbourPair, hop: int) -> dict[str, object]:
    return {
        "source": text.cell(pair.source.entity.title),
        "relation (source)": charts.edge_words(pair.source.edges, shares=True),
        "aligned": _evidence_words(pair),
        "relation (target)": charts.edge_words(pair.target.edges, shares=True),
        "target": text.cell(pair.target.entity.title),
        "hops": hop,
    }


def _alone_row(shown: Shown, side: Side, neighbour: Neighbour) -> dict[str, object]:
    elsewhere = aligned_elsewhere(shown.opened.view, side, neighbour.entity.index)
    row: dict[str, object] = dict.fromkeys(("source", "relation (source)", "aligned", "relation (target)", "target"), "")
    return row | {
        side: text.cell(neighbour.entity.title),
        f"relation ({side})": charts.edge_words(neighbour.edges, shares=True),
        "aligned": "not aligned" if elsewhere is None else f"elsewhere: {text.cell(elsewhere[0].title, 60)} ({elsewhere[1]})",
        "hops": 1,
    }
