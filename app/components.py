"""What every page shows alike: entities, pairs, verdicts, empty and broken states. Labels pass through :mod:`app.text` here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import light_table, pages, reviewing, state, text
from app.column_widths import shown_format, with_room
from app.copyable import copyable
from app.glossary import explain, probability_term
from app.palette import MARKS
from engine.data.dialects import defuse
from engine.data.knowledge_graph import SIDES, Finding, Severity, Side
from engine.data.labels import literal_of
from engine.errors import EngineError, EntityError
from engine.explanation import resolve_pair
from engine.explanation.summary import SummaryLine, capital
from engine.explore.description import known_facts
from engine.explore.neighbourhood import IncidentTriples
from engine.reviews.snapshot import Outcome
from engine.runs.entities import LONGEST_QUERY, Entity, other
from engine.runs.manifest import baseline_of
from engine.runs.verdicts import Relation, Verdict, added_words, status_sentence
from engine.runs.view import PairScore, Pool, RunView
from engine.util.machine import as_machine_error

BadgeColour = Literal["green", "red", "gray", "yellow", "blue", "orange"]

T = TypeVar("T")

TITLE_HEIGHT = 16  # pixels: the title is beside the buttons, its source below them
LAYOUT: Mapping[str, Any] = {
    "margin": {"l": 8, "r": 8, "t": 36 + TITLE_HEIGHT, "b": 8},
    # below the figure, which leaves room for it: above it are the buttons, which on a phone would lie on its entries
    "legend": {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "xanchor": "left", "x": 0},
    "hoverlabel": {"namelength": -1},
    "dragmode": False,  # a finger that scrolls the page over a figure must not zoom it
    "bargap": 0.25,
}
MODE_BAR: Mapping[str, Any] = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "pan2d", "zoom2d"]}
ROWS_IN_WORDS = 40  # of a figure's data, for screen readers
ESTIMATED_WIDTH = 144  # pixels, for the head "estimated probability"
OTHER_LINKS = 3  # of an entity, that the header of a pair names
LINK_WORDS: Mapping[Relation, str] = {
    "seed link": "Seed link",
    "known validation link": "Validation link",
    "known test link": "Test link",
    "probable pair": "Probable link",
    "unknown": "Link",
}
POOL_WORDS: Mapping[Pool, str] = {"all": "entities", "test": "test entities"}


@dataclass(frozen=True)
class VerdictStyle:
    """How a verdict looks: a symbol, words for a chip and for a table's cell, a colour. What it means is in :func:`status_sentence`."""

    symbol: str
    word: str
    short: str
    colour: BadgeColour


VERDICTS: Mapping[Verdict, VerdictStyle] = {
    "seed link": VerdictStyle("⚓", "seed", "seed", "blue"),
    "known validation link": VerdictStyle("✓", "correct: validation link", "correct (validation)", "green"),
    "known test link": VerdictStyle("✓", "correct: test link", "correct (test)", "green"),
    "probable pair": VerdictStyle("≈", "probable link", "probable", "yellow"),
    "contradicts a known link": VerdictStyle("×", "incorrect: contradicts a known link", "incorrect", "red"),
    "unknown": VerdictStyle("?", "unknown", "unknown", "gray"),
}

SEVERITIES: Mapping[Severity, tuple[str, str]] = {
    "error": (":material/error:", "error"),
    "warning": (":material/warning:", "warning"),
    "info": (":material/info:", "note"),
}
"""How grave a finding is: its icon, and a word to count it by."""


def graph_name(view: RunView, side: Side) -> str:
    """A graph's mark and name, for Markdown."""
    return f"{MARKS[side]} {text.plain(view.graphs[side].name, 40)}"


def entity_label(entity: Entity) -> str:
    """Mark and title on one line, for Markdown; a missing label shows the id."""
    return f"{MARKS[entity.side]} **{text.plain(entity.title)}**"


def entity_name(entity: Entity) -> str:
    """Mark and title on one line, without emphasis, for a choice or a link among others."""
    return f"{MARKS[entity.side]} {text.plain(entity.title, 40)}"


def pair_label(source: Entity, target: Entity) -> str:
    """Both entities of a pair, for a link in a list."""
    return " ↔ ".join(map(entity_name, (source, target)))


def entity_link(runs: Sequence[str], entity: Entity, pool: Pool = "all", *, match: Entity | None = None, detail: str = "") -> None:
    """A link to an entity's page: its label, and its id below where that adds something. ``runs``: the main one first, others are carried along."""
    label = entity_label(entity)
    if entity.label and entity.label != entity.short_id.replace("_", " "):
        label += f" :gray[{text.plain(entity.short_id, 60)}]"
    pages.link(pages.ENTITY, state.entity_address(runs, entity, match, pool), f"{label}{detail}")


def entity_heading(view: RunView, entity: Entity, facts: Sequence[str] = ()) -> None:
    """An entity's label first, below it its graph and its identifier; without a label also what is known of it (``facts``)."""
    st.subheader(text.plain(entity.title) or "(no name)", anchor=False)
    if not entity.label and facts:
        st.markdown(text.plain(" · ".join(facts), 200))
    unnamed = "" if entity.label else " · no label, so its ID is shown"
    st.caption(f"{graph_name(view, entity.side)} · {text.count(entity.degree, 'triple')}{unnamed}")
    copyable(entity.uri, f"Copy the identifier of {text.cell(entity.title, 60)}", key=state.widget_key(state.COPIED, entity.side, entity.uri))


def pool_words(view: RunView, side: Side, pool: Pool, size: int) -> str:
    """'of 10,500 test entities of KG2': which candidates a rank counts."""
    return f"of {size:,} {POOL_WORDS[pool]} of {text.cell(view.graphs[other(side)].name, 30)}{view.pool_note(pool)}"


def verdict_badge(verdict: Verdict, added: int | None = None) -> None:
    """What the known links say of a pair, and whether a round trained on it; both explained by one sentence."""
    style = VERDICTS[verdict]
    st.badge(f"{style.symbol} {style.word}", color=style.colour, help=status_sentence(verdict, added))
    if added is not None:
        st.badge(added_words(added), color="blue", help=status_sentence(verdict, added))


def review_badge(view: RunView, pair: PairScore) -> None:
    """What the reviewers say together, if anybody has decided the pair."""
    styles: Mapping[Outcome, tuple[str, BadgeColour]] = {
        "accepted": ("✓ confirmed by review", "green"),
        "rejected": ("× rejected by review", "red"),
        "undecided": ("≠ reviewers disagree", "yellow"),
    }
    if (found := reviewing.outcome(view, pair.source, pair.target)) is not None:
        st.badge(styles[found][0], color=styles[found][1], help="Majority of the reviewers who accepted or rejected the pair.")


def verdict_cell(verdict: Verdict) -> str:
    """A verdict in a table: symbol and word."""
    style = VERDICTS[verdict]
    return f"{style.symbol} {style.short}"


def labelled_lines(lines: Iterable[SummaryLine]) -> None:
    """A line of text for each, its label in bold."""
    st.markdown("  \n".join(f"**{text.plain(line.label)}:** {text.plain(text.with_minus(line.text), 600)}" for line in lines))


def pair_header(view: RunView, pair: PairScore, runs: Sequence[str], asked: Side, here: pages.Page[Any] | None = None) -> None:
    """The same header wherever a pair appears: both labels, what links and reviewers say, the scores and ranks in one line, links to other pages.

    ``runs``: the one that the scores are of, then those that are carried along. ``asked`` is the side that the page is about; a link leads to
    the other one. ``here``: the page, to which no link leads.
    """
    with st.container(border=True, key="pair_header"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"### {entity_label(pair.source)} ↔ {entity_label(pair.target)}", width="content")
            verdict_badge(pair.verdict, pair.added)
            review_badge(view, pair)
            match = pair.target if asked == "source" else pair.source
            address = state.entity_address(runs, match, pair.source if asked == "source" else pair.target, pair.pool)
            if here is pages.ENTITY:
                pages.link(pages.ENTITY, address, "Swap sides", icon=":material/swap_horiz:")
            else:
                pages.link(pages.ENTITY, address, "Open on Entity", icon=pages.ENTITY.icon)
            pair_links(runs, pair, asked, here)
        st.markdown(score_line(view, pair, asked), help=score_help(view, pair))
        other_links(view, pair, runs)


def score_line(view: RunView, pair: PairScore, asked: Side) -> str:
    """'**69%** probability · CSLS 0.425 · margin +0.403 · rank 1 of 2,160 from A, 1 of 1,510 from B', for Markdown."""
    parts = [] if pair.probability is None else [f"**{pair.probability:.0%}** {pair.probability_word}"]
    parts.append(f"**CSLS {text.score(pair.csls)}**")
    if (margin := margin_of(view, pair, asked)) is not None:
        parts.append(f"margin {text.signed(margin)}")
    parts.append(f"cosine {text.score(pair.cosine)}")
    parts += [f"{word} {text.score(value)}" for word, value in (("names", pair.names), ("values", pair.values)) if value]
    (one, two), (first, second) = pair.pool_sizes, (text.plain(view.graphs[side].name, 30) for side in SIDES)
    parts.append(f"rank {pair.rank_from_source:,} of {one:,} from {first}, {pair.rank_from_target:,} of {two:,} from {second}")
    return " · ".join(parts)


def score_help(view: RunView, pair: PairScore) -> str:
    """The terms of :func:`score_line`, and the pool that ranks count."""
    terms = [*([probability_term(pair.estimated)] if pair.probability is not None else []), "CSLS", "margin", "cosine", "rank"]
    return f"{explain(*terms)}\n\nRanked among {'the test' if pair.pool == 'test' else 'all'} entities of the other graph{view.pool_note(pair.pool)}."


def probability_column(view: RunView, alignment: Literal["left", "right"] = "right") -> Any:
    """The column of a run's probabilities, whose head says where they are estimated.

    Args:
        view: of the run.
        alignment: of the numbers; at the left they are in sight where a narrow screen cuts the column.
    """
    estimated = view.unchecked_probabilities
    return st.column_config.NumberColumn(
        view.probability_word,
        format="percent",
        width=ESTIMATED_WIDTH if estimated else "small",
        alignment=alignment,
        help=explain(probability_term(estimated)),
    )


def margin_of(view: RunView, pair: PairScore, side: Side) -> float | None:
    """CSLS of the pair minus that of the best other candidate of one of its entities; None without any."""
    own, across = (pair.source, pair.target) if side == "source" else (pair.target, pair.source)
    rival = next((one for one in view.matches(side, own.index, 2, pair.pool) if one.entity != across.index), None)
    return None if rival is None else pair.csls - rival.csls


def unlabelled_notes(adjacency: IncidentTriples, entities: Sequence[Entity]) -> None:
    """For each of some entities that has no label: what is known of it instead."""
    for entity in entities:
        if not entity.label and (facts := known_facts(adjacency, entity)):
            st.caption(f"{MARKS[entity.side]} {text.plain(entity.short_id, 60)} has no label. Known facts: {text.plain(' · '.join(facts), 200)}")


def other_links(view: RunView, pair: PairScore, runs: Sequence[str]) -> None:
    """The links of the data, probable ones included, that tie either entity of a pair to another one: what the verdict rests on, or leaves open."""
    for entity, partner in ((pair.source, pair.target), (pair.target, pair.source)):
        others = [(index, relation) for index, relation in view.counterparts(entity.side, entity.index).items() if index != partner.index]
        for index, relation in others[:OTHER_LINKS]:
            linked = view.entity(other(entity.side), index)
            ends = (entity, linked) if entity.side == "source" else (linked, entity)
            pages.link(
                pages.EXPLAIN,
                state.ExplainAddress(tuple(runs), source=ends[0].uri, target=ends[1].uri, pool=pair.pool),
                f"{LINK_WORDS[relation]}: {pair_label(*ends)}",
                icon=":material/link:",
            )
        if len(others) > OTHER_LINKS:
            st.caption(f"{MARKS[entity.side]} {text.plain(entity.title, 40)} has {text.count(len(others) - OTHER_LINKS, 'more link')}.")


def asked_pair(view: RunView, source: str | None, target: str | None, pool: Pool = "all", *, exact: bool = False) -> tuple[Entity, Entity] | None:
    """The pair that an address names; of one entity alone, with its best match in the pool, where it is in it. Says what is wrong with a name.

    ``exact``: only identifiers name entities, each of its own graph; for pairs that something is stored of.
    """
    asked: dict[Side, str | None] = {"source": source, "target": target}
    found: dict[Side, Entity] = {}
    try:
        if source is not None and target is not None and not exact:
            pair = resolve_pair(view, source, target)
            return view.entity("source", pair[0]), view.entity("target", pair[1])
        for side, words in asked.items():
            if words is not None:
                found[side] = view.identified(words, side) if exact else view.resolve(words, side)
    except EntityError as error:
        show_error(error)
        return None
    for side, entity in list(found.items()):
        if (best := best_match(view, entity, pool)) is not None:
            found.setdefault(other(side), best)
    return (found["source"], found["target"]) if len(found) == len(asked) else None


def readable_name(view: RunView, identifier: str | None, side: Side | None = None) -> str | None:
    """An entity's label for its identifier, unless another entity of the graph has the same one; any other text as it is."""
    for graph in (view.graphs[one] for one in SIDES if side in (None, one)):
        if identifier is not None and (index := graph.index.get(identifier)) is not None:
            label = graph.labels[index]
            return text.cell(label) if label and graph.labels.count(label) == 1 else identifier
    return identifier


def best_match(view: RunView, entity: Entity, pool: Pool = "all") -> Entity | None:
    """An entity's best match among the candidates of a pool; among all entities where it is not in the pool itself. None without candidates."""
    if pool == "all" or not view.in_pool(entity.side, entity.index, pool):
        best = view.best[entity.side].get(entity.index)
    else:
        best = next((match.entity for match in view.matches(entity.side, entity.index, 1, pool)), None)
    return None if best is None else view.entity(other(entity.side), best)


def pool_choice(view: RunView, entities: Sequence[Entity], asked: Pool) -> Pool:
    """Which candidates to rank, kept in the address; only test entities can be looked at in the pool of the published protocol.

    Args:
        view: of the run.
        entities: those that have to be in the pool.
        asked: what the address says.
    """
    if not all(view.in_pool(one.side, one.index, "test") for one in entities):
        if asked == "test":
            several = "Not both entities are test entities, so they" if len(entities) > 1 else "This is not a test entity, so it"
            st.caption(f"{several} can only be ranked among all entities.")
        return "all"
    names: dict[Pool, str] = {"all": "all entities", "test": "test entities (published protocol)"}
    return choice("Candidates", names, name=state.POOL, value=asked, default="all", help=explain("pool"))


def pair_links(runs: Sequence[str], pair: PairScore, asked: Side = "source", here: pages.Page[Any] | None = None) -> None:
    """Where else this pair can be looked at: the one place for links of a pair's header to other pages. ``asked``: from whose side."""
    source, target = pair.source.uri, pair.target.uri
    if here is not pages.EXPLAIN:
        why = state.ExplainAddress(tuple(runs), source=source, target=target, pool=pair.pool, side=asked)
        pages.link(pages.EXPLAIN, why, "Explain score", icon=":material/balance:")
    if here is not pages.PROXIES:
        seen = state.ProxiesAddress(tuple(runs), source=source, target=target)
        pages.link(pages.PROXIES, seen, "Compare proxy attention", icon=":material/hub:", help=explain("proxy"))
    if here is pages.EXPLAIN:
        pages.link(pages.REVIEW, state.ReviewAddress(tuple(runs), source=source, target=target), "Review this pair", icon=":material/rule:")


def choice(
    label: str,
    options: Mapping[T, str],
    *,
    name: str,
    value: T,
    default: T,
    help: str | None = None,
    clears: Sequence[str] = (),
    also: Mapping[str, str] | None = None,
    captions: Mapping[T, str] | None = None,
) -> T:
    """A row of choices of which one is chosen, kept in the address as the parameter ``name``; returns ``value``, which comes from the address.

    The default is left out of the address, and so are, after another choice, the parameters ``clears``, which made sense with the former one only.
    ``also`` are parameters that another choice sets together with it, such as the tab that is open. Options with ``captions`` are one below the
    other, each with its caption: side by side they would be cut off on a narrow screen.
    Option texts are ours or have passed :func:`app.text.plain`.
    """
    labels = text.distinct_labels(options)
    key = state.widget_key(state.CHOICE, name, value, labels)

    def follow() -> None:
        chosen = st.session_state[key]
        if chosen in labels:
            state.set_parameters({name: None if chosen == default else str(chosen), **dict.fromkeys(clears), **(also or {})})

    if captions is not None:
        words = [captions[one] for one in labels]
        at = list(labels).index(value)
        st.radio(label, list(labels), at, format_func=labels.__getitem__, captions=words, key=key, on_change=follow, help=help)
        return value
    st.segmented_control(
        label, list(labels), format_func=labels.__getitem__, default=value, required=True, key=key, on_change=follow, help=help, wrap=True
    )
    return value


def select(
    label: str, options: Mapping[T, str], *, name: str, value: T | None, on_choose: Callable[[T], None], parts: Sequence[object] = (), **more: Any
) -> None:
    """A list of which one is chosen; ``on_choose`` is given what a click chooses.

    A browser sends the text of an option back, not its place, and sends it with every click on the page. So each option has a text of its own, the
    texts belong to the widget's key (other texts, another widget), and what is no option any more chooses nothing. A text says nothing that changes
    by itself, such as an age.

    Args:
        label: of the list.
        options: what can be chosen, with its text, which has passed :func:`app.text.cell`.
        name: of the widget in the session.
        value: what is chosen; None for nothing.
        on_choose: changes the address; called before the page is drawn again.
        parts: what else distinguishes this widget from others of the name.
        more: as of ``st.selectbox``.
    """
    labels = text.distinct_labels(options)
    key = state.widget_key(name, *parts, value, labels)

    def follow() -> None:
        chosen = st.session_state[key]
        if chosen in labels:
            on_choose(chosen)

    index = None if value is None else list(labels).index(value)
    st.selectbox(label, list(labels), index=index, format_func=labels.__getitem__, key=key, on_change=follow, **more)


def search_box(
    label: str,
    found: str | None,
    *,
    placeholder: str,
    name: str = state.SEARCHED,
    width: int | Literal["stretch"] = "stretch",
    clears: Sequence[str] = (),
    also: Mapping[str, str] | None = None,
    shown: str | None = None,
    help: str | None = None,
) -> None:
    """What to search for, kept in the address as the parameter ``name``, from where ``found`` comes.

    Another search takes the parameters ``clears`` out of the address and sets those of ``also``.
    ``shown``: what the box holds for ``found`` where people read that more easily; it is not sent until it is changed.
    """
    key = state.widget_key(state.CHOICE, name, label, found)

    def follow() -> None:
        state.set_parameters({name: st.session_state[key] if st.session_state[key].strip() else None, **dict.fromkeys(clears), **(also or {})})

    st.text_input(
        label,
        value=shown or found or "",
        key=key,
        max_chars=LONGEST_QUERY,
        placeholder=placeholder,
        help=help,
        icon=":material/search:",
        width=width,
        on_change=follow,
    )


def figure(
    fig: go.Figure,
    *,
    name: str,
    caption: str,
    data: pd.DataFrame,
    title: str | None = None,
    alt: str | None = None,
    height: int = 380,
    key: str | None = None,
    on_select: Callable[[], None] | Literal["ignore", "rerun"] = "ignore",
    runs: Sequence[str] | None = None,
) -> list[Mapping[str, Any]]:
    """A figure in the house's style: one line on what it shows for this data, beside it the downloads, then the figure.

    Title and source are drawn in the figure itself, so that a picture of it can be understood without the page. The picture is made by the browser:
    nothing is fetched, and the server needs no browser of its own.

    Its name for screen readers is the line and the data as text.

    Args:
        fig: with colours from :mod:`app.palette`; labels in it have passed :func:`app.text.figure_label`.
        name: of the downloads: "degree-hits".
        caption: Markdown; labels in it have passed :func:`app.text.plain`.
        title: of the picture; None: from the name.
        alt: what the figure shows, for screen readers: the numbers themselves where they are few.
        data: what the figure shows, as a table, for the download.
        height: in pixels.
        key: needed with ``on_select``; from :func:`app.state.widget_key`, so that a choice belongs to what is shown.
        on_select: as in ``st.plotly_chart``: only points can be chosen.
        runs: what it shows, as "data set/run"; None: the runs of the page.

    Returns:
        The chosen points; none without ``on_select``.
    """
    picture = st.session_state.get(state.PICTURE_FORMAT, "png")
    with st.container(horizontal=True, wrap=False, vertical_alignment="top"):
        st.markdown(caption, width="stretch")
        downloads(name, data, picture, key or name)
    shown = title or capital(name.replace("-", " "))
    fig.update_layout(LAYOUT, height=height + TITLE_HEIGHT, title=figure_title(shown, runs))
    config = {**MODE_BAR, "toImageButtonOptions": {"format": picture, "filename": text.file_name(name), "scale": 2}}
    event: Any = st.plotly_chart(
        fig,
        key=key,
        on_select=on_select,
        selection_mode="points",
        config=config,
        alt=f"Figure: {shown}. {text.unmarked(caption)} {alt or in_words(data)}",
    )
    return list(event["selection"]["points"]) if on_select != "ignore" and event else []


def figure_title(title: str, runs: Sequence[str] | None = None) -> dict[str, Any]:
    """A figure's title, below it where its numbers come from: these runs, or those of the page."""
    return {
        "text": text.figure_label(title, 100),
        "subtitle": {"text": text.figure_label(figure_source(runs), 160)},
        "x": 0,
        "xanchor": "left",
        "font": {"size": 14},
    }


def figure_source(shown: Sequence[str] | None = None) -> str:
    """The data set and the runs, of None those of the page, as the address has them: 'Data set europe, run semi-s0-8dfc6351'."""
    runs = state.asked_runs()[: state.MOST_RUNS] if shown is None else shown
    data, ids = (dict.fromkeys(run.rpartition("/")[place] for run in runs) for place in (0, 2))
    return f"Data set {', '.join(data)}, {'run' if len(ids) == 1 else 'runs'} {', '.join(ids)}" if runs else "Dual-AMN Explorer"


def in_words(data: pd.DataFrame) -> str:
    """A figure's data as text, the first rows of it: "Data: range 1, entities 22; range 2, entities 21." """
    rows = [
        ", ".join(f"{name} {words}" for name, value in row.items() if (words := _value_words(value)))
        for row in data.head(ROWS_IN_WORDS).to_dict("records")
    ]
    more = f" {len(data) - ROWS_IN_WORDS:,} more rows are in the download." if len(data) > ROWS_IN_WORDS else ""
    return f"Data: {'; '.join(rows)}.{more}" if rows else "There is no data to show."


def _value_words(value: Any) -> str:
    if isinstance(value, str):
        return text.cell(value, 60)
    if pd.isna(value):
        return ""
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def follow_point(key: str, parameter: str, **others: str) -> None:
    """For ``on_select`` of :func:`figure`: the first value that a chosen point carries (``customdata``) becomes a parameter of the address, and
    ``others`` become parameters together with it."""
    points = st.session_state[key]["selection"]["points"]
    if points:  # and not where the figure was redrawn, which chooses nothing
        state.set_parameters({parameter: str(points[0]["customdata"][0]), **others})


def downloads(name: str, data: pd.DataFrame | Callable[[], pd.DataFrame], picture: str, key: str) -> None:
    """What can be saved of a figure: its numbers, and how its picture is saved. The format is kept for all figures of the session."""
    with st.popover("Download", icon=":material/download:", type="tertiary"):
        download(data, name, key=key)
        widget = state.widget_key(state.PICTURE_FORMAT, key, picture)

        def keep() -> None:
            st.session_state[state.PICTURE_FORMAT] = st.session_state[widget]

        st.segmented_control(
            "Picture", ["png", "svg"], format_func=str.upper, default=picture, required=True, key=widget, on_change=keep, width="content"
        )
        st.caption("To save the picture with its title and source, click the button at its upper right (on a touch screen: tap the figure first).")


@contextmanager
def drawn_when_open(label: str, key: str, *, icon: str | None = None, expanded: bool = False) -> Iterator[bool]:
    """An expander that says whether it is open, so that what is in it is computed and sent only then; opening it draws its part of the page again.

    Args:
        key: of its state; it stays open for whatever is drawn under the same key.
    """
    with st.expander(label, expanded, key=key, icon=icon, on_change="rerun") as container:
        yield bool(container.open)


def table(
    data: pd.DataFrame,
    *,
    name: str,
    whole: Callable[[], pd.DataFrame] | None = None,
    key: str | None = None,
    on_select: Callable[[], None] | Literal["ignore", "rerun"] = "ignore",
    chosen: int | None = None,
    columns: Mapping[str, Any] | None = None,
    height: int | Literal["auto"] = "auto",
    pinned: Sequence[str] | None = None,
    share_decimals: int = 2,
    above: Callable[[], object] | None = None,
    light: bool = False,
) -> int | None:
    """A table, above it what is said of it and at the end of that row its download.

    Args:
        data: cells of text have passed :func:`app.text.cell`.
        name: of the download.
        whole: makes what is to be downloaded where that is more than is shown.
        key: needed with ``on_select``; from :func:`app.state.widget_key`.
        on_select: as in ``st.dataframe``: one row can be chosen.
        chosen: row that is chosen at first.
        columns: as ``column_config`` of ``st.dataframe``; ``help`` from :func:`app.glossary.explain`.
        pinned: key columns, which stay in sight when the table is scrolled; None: the first one.
        share_decimals: shares (columns in per cent) are shown with as many decimals of the share: 2 for whole per cent. Downloads are exact.
        light: a small table that is read rather than sorted, drawn without the grid's code (:mod:`app.light_table`); ``on_select`` then finds the
            row with :func:`app.light_table.clicked_row`.
        above: draws a heading or caption; its row has room for the download, so that a table costs no row more than what is said of it.

    Returns:
        The chosen row, counted from 0 in ``data``; None without one.
    """
    with st.container(horizontal=True, wrap=False, vertical_alignment="bottom", horizontal_alignment="right", gap="small"):
        if above is not None:
            with st.container(width="stretch"):
                above()
        download(data if whole is None else whole, name, key=key or name)
    shown = _as_shown(data, columns, share_decimals)
    if light:
        limit, choose = None if height == "auto" else height, None if on_select == "ignore" else on_select
        return light_table.show(
            shown,
            key=key or state.widget_key(state.TABLE, name),
            alt=f"Table: {name}",
            columns=columns,
            height=limit,
            chosen=chosen,
            on_choose=choose,
        )
    config = with_room(data, columns)
    for column in pinned if pinned is not None else map(str, data.columns[:1]):
        config[column] = {**(config.get(column) or {}), "pinned": True}
    options: dict[str, Any] = {"hide_index": True, "column_config": config, "height": height, "placeholder": "–"}
    options["alt"] = f"Table: {name}"
    if on_select == "ignore":
        st.dataframe(shown, key=key, **options)
        rows: list[int] = []
    else:
        first: Any = {"selection": {"rows": [] if chosen is None else [chosen]}}
        event: Any = st.dataframe(shown, key=key, on_select=on_select, selection_mode="single-row", selection_default=first, **options)
        rows = event["selection"]["rows"]
    return rows[0] if rows and rows[0] < len(data) else None


def _as_shown(data: pd.DataFrame, columns: Mapping[str, Any] | None, decimals: int) -> pd.DataFrame:
    """Shares rounded, because a table shows per cents with up to two decimals and the text beside it with none."""
    shares = [name for name in data.columns if shown_format((columns or {}).get(str(name))) == "percent"]
    return data.assign(**{str(name): data[name].astype("float64").round(decimals) for name in shares}) if shares else data


def download(data: pd.DataFrame | Callable[[], pd.DataFrame], name: str, *, key: str) -> None:
    """A button for a table as CSV, made when it is pressed: UTF-8 with a mark that spreadsheets look for, and with no cell that they would run."""
    st.download_button(
        "CSV",
        lambda: csv_bytes(data() if callable(data) else data),
        f"{text.file_name(name)}.csv",
        "text/csv",
        key=state.widget_key(state.DOWNLOAD, key, name),
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
        help="Download the whole table as CSV.",
    )


def csv_bytes(data: pd.DataFrame) -> bytes:
    """A table as CSV; texts that a spreadsheet would take for a formula get an apostrophe in front."""
    safe = data.apply(lambda column: column if pd.api.types.is_numeric_dtype(column) else column.map(_harmless_cell))
    return str(safe.to_csv(index=False)).encode("utf-8-sig")


def _harmless_cell(value: Any) -> Any:
    return defuse(value) if isinstance(value, str) else value


def empty_state(title: str, explanation: str, commands: Sequence[str] = ()) -> None:
    """Nothing there yet: what that means and what to do next."""
    with st.container(border=True):
        st.subheader(title, anchor=False)
        st.markdown(explanation)
        for command in commands:
            st.code(command, language=None, wrap_lines=True)


def attribute_table(attributes: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Attributes with their values as text; beside them the languages and datatypes, where there are any."""
    found = [(name, literal_of(value)) for name, value in attributes]
    rows = [{"attribute": text.cell(name), "value": text.cell(one.text), "language": one.language, "type": one.type_name} for name, one in found]
    data = pd.DataFrame(rows, columns=["attribute", "value", "language", "type"])
    data["language"], data["type"] = (data[name].map(text.cell) for name in ("language", "type"))
    return data.drop(columns=[name for name in ("language", "type") if not data[name].any()])


def lacks_in_baseline(manifest: Mapping[str, Any], what: str) -> bool:
    """Whether a run is of a baseline, which has no such thing as ``what``; if so, that is shown."""
    baseline = baseline_of(manifest)
    if baseline:
        empty_state(f"No {what}", f"The baseline {text.plain(baseline, 40)} has no {what}. Choose a run of Dual-AMN.")
    return bool(baseline)


def measure_by_sample(run: str) -> None:
    """The way to an accuracy that no test link measures."""
    pages.link(pages.REVIEW, state.ReviewAddress((run,), kind="sample"), "Review a random sample", icon=":material/casino:")


def nothing_measured(runs: Sequence[str], lacking: str = "") -> None:
    """In place of figures that need test links.

    Args:
        runs: the first one's matches can be reviewed instead.
        lacking: the name of the run without test links, as Markdown, where others have some.
    """
    reason = (
        f"{lacking} has no test links, so it cannot be compared by accuracy" if lacking else "There are no test links, so accuracy is not measured"
    )
    empty_state("No accuracy measured", f"{reason}. Review a random sample of the matches to estimate their precision.")
    measure_by_sample(runs[0])


def findings(found: Sequence[Finding]) -> None:
    """What inspection noticed: how much of each severity, then each cause with what to do and examples. Errors are expanded."""
    if not found:
        st.markdown("No problems found.")
        return
    causes = _by_cause(found)
    kinds = [(severity, sum(cause[0].severity == severity for cause in causes)) for severity in SEVERITIES]
    st.markdown(", ".join(text.count(number, SEVERITIES[severity][1]) for severity, number in kinds if number) + ". Open one for examples.")
    for cause in causes:
        gravest = cause[0]
        with st.expander(text.plain(_together(cause), 500), icon=SEVERITIES[gravest.severity][0], expanded=gravest.severity == "error"):
            for one in cause if len(cause) > 2 else ():
                st.markdown(f"- {text.plain(one.message, 400)}")
            for advice in dict.fromkeys(one.advice for one in cause if one.advice):
                st.markdown(text.plain(advice, 400))
            for example in (example for one in cause for example in one.examples):
                st.markdown(f"- {text.plain(example, 300)}")
            st.caption(f"Code: {text.plain(gravest.code)}")


def _by_cause(found: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one code together, as of both graphs, the gravest first; in the order of the first of each."""
    causes: dict[str, list[Finding]] = {}
    for finding in found:
        causes.setdefault(finding.code, []).append(finding)
    grave = list(SEVERITIES)
    return [sorted(cause, key=lambda one: grave.index(one.severity)) for cause in causes.values()]


def _together(cause: Sequence[Finding]) -> str:
    """The messages of one cause in one line: of both graphs, what follows a colon and is the same is said once; of more than two, the first one."""
    if len(cause) > 2:
        return f"{cause[0].message} ({len(cause) - 1} more of this kind)"
    heads, tails = zip(*((head, tail) for head, _, tail in (one.message.partition(": ") for one in cause)), strict=True)
    if len(cause) > 1 and tails[0] and len(set(tails)) == 1:
        return f"{'; '.join(heads)}: {tails[0]}"
    return " ".join(one.message for one in cause)


def show_error(error: EngineError) -> None:
    """A user's error in its place, in the engine's words."""
    words = text.plain(text.without_places(str(error)), 1500)
    st.error(words, icon=":material/error:")


@contextmanager
def errors_shown(*, way_on: bool = True) -> Iterator[None]:
    """Shows an engine's error, or what ran out, instead of the rest of the page, with a way on."""
    try:
        yield
    except BaseException as error:  # libraries have some of their own that are no Exception
        known = error if isinstance(error, EngineError) else as_machine_error(error)
        if known is None:
            raise
        show_error(known)
        if isinstance(error, EntityError) and error.candidates:
            st.caption("Enter one of them, or a part of it, in the search box.")
        if way_on:
            pages.link(pages.HOME, state.Address(), "All runs", icon=":material/arrow_back:")
        st.stop()
