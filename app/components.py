"""What every page shows alike: entities, pairs, verdicts, empty and broken states. Labels pass through :mod:`app.text` here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from app import state, text
from engine.datasets.knowledge_graph import Side
from engine.entities import Entity, other
from engine.errors import EngineError, EntityError
from engine.matching import PairScore, Pool, RunView, Verdict

BadgeColour = Literal["green", "red", "gray", "yellow", "blue", "orange"]

# Shape and colour, so that either is enough. The theme defines the blue and the orange (.streamlit/config.toml).
MARKS: Mapping[Side, str] = {"source": ":blue[●]", "target": ":orange[◆]"}
PLAIN_MARKS: Mapping[Side, str] = {"source": "●", "target": "◆"}
POOL_WORDS: Mapping[Pool, str] = {"all": "entities", "test": "test entities"}


@dataclass(frozen=True)
class VerdictStyle:
    """How a verdict looks: a symbol, words for a chip and for a table's cell, a colour."""

    symbol: str
    word: str
    short: str
    colour: BadgeColour
    help: str


VERDICTS: Mapping[Verdict, VerdictStyle] = {
    "seed link": VerdictStyle("⚓", "seed", "seed", "blue", "A known link that the model was trained on."),
    "known validation link": VerdictStyle("✓", "right: validation link", "right (validation)", "green", "A known link, held out for validation."),
    "known test link": VerdictStyle("✓", "right: test link", "right (test)", "green", "A known link that the model has not seen."),
    "probable pair": VerdictStyle("≈", "probable pair", "probable", "yellow", "Probable according to the data; neither right nor wrong."),
    "contradicts a known link": VerdictStyle("×", "wrong: another link is known", "wrong", "red", "One of the two has another known counterpart."),
    "unknown": VerdictStyle("?", "unknown", "unknown", "gray", "No known link touches either entity."),
}


def graph_name(view: RunView, side: Side) -> str:
    """A graph's mark and name, for Markdown."""
    return f"{MARKS[side]} {text.plain(view.graphs[side].name, 40)}"


def entity_label(entity: Entity) -> str:
    """Mark and title on one line, for Markdown; a missing label shows the id."""
    return f"{MARKS[entity.side]} **{text.plain(entity.title)}**"


def entity_link(run: str, entity: Entity, pool: Pool = "all", *, detail: str = "") -> None:
    """A link to an entity's page: its label, and its id beneath where that says more."""
    label = entity_label(entity)
    if entity.label:
        label += f" :gray[{text.plain(entity.short_id, 60)}]"
    st.page_link(state.ENTITY_PAGE, label=f"{label}{detail}", query_params=state.entity_address(run, entity, pool=pool).parameters())


def entity_heading(view: RunView, entity: Entity) -> None:
    """An entity's label first, beneath it which graph it is from and its identifier."""
    st.subheader(text.plain(entity.title) or "(no name)", anchor=False)
    unnamed = "" if entity.label else " · this entity has no label, so its id stands in"
    st.caption(f"{graph_name(view, entity.side)} · {text.count(entity.degree, 'triple')}{unnamed}")
    st.code(text.cell(entity.uri, 400), language=None, wrap_lines=True)


def pool_words(view: RunView, side: Side, pool: Pool, size: int) -> str:
    """'of 10,500 test entities of KG2': which candidates a rank counts."""
    return f"of {size:,} {POOL_WORDS[pool]} of {text.cell(view.graphs[other(side)].name, 30)}"


def verdict_badge(verdict: Verdict) -> None:
    style = VERDICTS[verdict]
    st.badge(f"{style.symbol} {style.word}", color=style.colour, help=style.help)


def verdict_cell(verdict: Verdict) -> str:
    """A verdict in a table: symbol and word."""
    style = VERDICTS[verdict]
    return f"{style.symbol} {style.short}"


def pair_header(view: RunView, pair: PairScore, run: str, asked: Side) -> None:
    """The same header wherever a pair appears: both labels, the verdict, the scores, the ranks from both ends, the run.

    ``asked`` is the side that the page is about; a link leads to the other one.
    """
    with st.container(border=True, key="pair_header"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"##### {entity_label(pair.source)} ↔ {entity_label(pair.target)}")
            verdict_badge(pair.verdict)
            if pair.added is not None:
                st.badge(f"added in round {pair.added}", color="blue", help="A semi-supervised round trained on this pair: the model's own choice.")
        with st.container(horizontal=True, gap="large"):
            st.metric("CSLS", text.score(pair.csls), help="Decides: twice the cosine, less how near each entity is to everything.")
            st.metric("Cosine", text.score(pair.cosine), help="Of the two embeddings; 1 is the same direction.")
            if pair.names is not None:
                st.metric("Names", text.score(pair.names), help="How alike the two names are; in this run CSLS counts structure and names.")
            if pair.probability is not None:
                st.metric("Probability", f"{pair.probability:.0%}", help="That this best match is right, calibrated on the validation links.")
            ranks: tuple[tuple[Side, int, int], ...] = (
                ("source", pair.rank_from_source, pair.pool_sizes[0]),
                ("target", pair.rank_from_target, pair.pool_sizes[1]),
            )
            for side, rank, size in ranks:
                words = f"Where the pair stands among this entity's pairs with {size:,} {POOL_WORDS[pair.pool]} of the other graph."
                st.metric(f"Rank from {text.plain(view.graphs[side].name, 30)}", f"{rank:,} of {size:,}", help=words)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Ranks count {'the test' if pair.pool == 'test' else 'all'} entities of the other graph. Run {text.plain(run)}.")
            match = pair.target if asked == "source" else pair.source
            address = state.entity_address(run, match, pair.source if asked == "target" else None)
            st.page_link(state.ENTITY_PAGE, label="Look from the other side", icon=":material/swap_horiz:", query_params=address.parameters())


def empty_state(title: str, explanation: str, commands: Sequence[str] = ()) -> None:
    """Nothing there yet: what that means and what to do next."""
    with st.container(border=True):
        st.subheader(title, anchor=False)
        st.markdown(explanation)
        for command in commands:
            st.code(command, language="bash")


def show_error(error: EngineError) -> None:
    """A user's error in its place, in the engine's words."""
    words = text.plain(str(error), 1500)
    st.error(words, icon=":material/error:")


@contextmanager
def errors_shown(*, way_on: bool = True) -> Iterator[None]:
    """Shows an engine's error instead of the rest of the page, with a way on."""
    try:
        yield
    except EngineError as error:
        show_error(error)
        if isinstance(error, EntityError) and error.candidates:
            st.caption("Type one of them into the search box, or a part of it.")
        if way_on:
            st.page_link(state.HOME_PAGE, label="All runs", icon=":material/arrow_back:")
        st.stop()
