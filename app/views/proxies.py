"""Proxies: how proxy matching compares the two graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app import components, frame, pages, state, text
from app.cache import OpenRun
from app.glossary import explain
from app.palette import GRAPH, PLAIN_MARKS, POINTS, RIGHT, SEQUENTIAL, UNKNOWN, WRONG
from app.state import ProxiesAddress, ProxiesTab, ProxyUse
from app.tabs import open_tab
from engine.data.knowledge_graph import SIDES, Side
from engine.explore.proxies import Channel, Near, PairAttention, ProxyAgreement, ProxyView, log_histogram
from engine.runs.entities import Entity

USES: dict[ProxyUse, str] = {"nearest": "nearest proxy", "attention": "attention"}
TABS: Mapping[ProxiesTab, str] = {
    "pair": "This pair",
    "agreement": "Agreement",
    "divergence": "Divergence",
    "usage": "Usage",
    "nearest": "Nearest entities",
    "cosine": "Cosine",
}
STARTS = 4
MILLION = 1e6  # divergences are so small
KNOWN, DRAWN = "known links", "random pairs"
TICKS = 8  # proxies from one tick to the next
FIGURE_HEIGHT = 340
FEW = 20  # proxies that all have a tick
HEADROOM = 1.1  # above the highest point
DIVERGENCE_RATIO = (
    "Median divergence of random pairs divided by that of known links. At 1, proxy attention does not distinguish linked pairs from random ones; "
    "the higher, the better it does."
)


def render(run: OpenRun, address: ProxiesAddress) -> None:
    """The page."""
    view = run.proxies
    if components.lacks_in_baseline(run.run.manifest, "proxies"):
        return
    if not view.channels:
        components.empty_state("No proxies", "This model was trained without proxy matching. Choose another run.")
        return
    channel = _channel(view, address)
    pair = components.asked_pair(run.view, address.source, address.target)
    _metrics(run, channel)
    tab, tabs = _tab(address, paired=pair is not None), {name: words for name, words in TABS.items() if name != "pair" or pair is not None}
    with open_tab(tabs, tab):
        if tab == "pair" and pair is not None:
            _pair(run, address, channel, *pair)
        elif tab == "agreement":
            _meetings(run, channel)
        elif tab == "divergence":
            _pairs(run, channel)
        elif tab == "usage":
            _use(run, address, channel)
        elif tab == "nearest":
            _proxy(run, address, channel)
        else:
            _distribution(run, channel)


def _tab(address: ProxiesAddress, *, paired: bool) -> ProxiesTab:
    """The tab of the address, else the one of what it asks for."""
    if address.tab is not None and (paired or address.tab != "pair"):
        return address.tab
    if paired:
        return "pair"
    return "nearest" if address.proxy is not None else "usage" if address.use != "nearest" else "agreement"


def _metrics(run: OpenRun, channel: Channel) -> None:
    """How well proxies bring the two graphs together, in three numbers."""
    agreement = run.proxies.agreement(channel)
    known, drawn = run.proxies.known_divergence(channel)["divergence"], run.proxies.drawn_divergence(channel)
    linked, random = (float(np.median(values)) if len(values) else 0.0 for values in (known.to_numpy(), drawn))
    with st.container(horizontal=True, gap="large"):
        st.metric(
            "Nearest-proxy agreement",
            "—" if agreement.same is None else text.percent(agreement.same),
            help=f"Share of the {agreement.links:,} known links whose two entities have the same nearest proxy.",
        )
        st.metric("Random pairs", f"{agreement.chance:.1%}", help="The agreement to expect of random pairs.")
        ratio = f"{random / linked:.1f}×" if linked and random else "—"
        st.metric("Median divergence ratio", ratio, help=f"{DIVERGENCE_RATIO}\n\n{explain('divergence')}")


def _channel(view: ProxyView, address: ProxiesAddress) -> Channel:
    """The channel of the address, else the first that the model has."""
    channel = address.channel if address.channel in view.channels else view.channels[0]
    if len(view.channels) > 1:
        names = {name: name for name in view.channels}
        components.choice("Channel", names, name="channel", value=channel, default="entity", help=explain("channel", "proxy"))
    elif channel != address.channel:
        st.caption(f"This model has only the {channel} channel.")
    return channel


# All entities


def _distribution(run: OpenRun, channel: Channel) -> None:
    table = run.proxies.distribution(channel)
    middle = table["low"] + (table["high"] - table["low"]) / 2
    means = {side: float(np.average(middle[table["graph"] == side], weights=table.loc[table["graph"] == side, "share"])) for side in SIDES}
    components.figure(
        _distribution_figure(run, table),
        name=f"proxy-similarity-{channel}",
        caption=f"Mean cosine of entities and proxies ({channel} channel): {means['source']:.3f} in the source, {means['target']:.3f} in "
        f"the target; range "
        f"{table['low'].min():.2f} to {table['high'].max():.2f}. Similar curves mean that the proxies fit both graphs equally.",
        data=table,
        height=FIGURE_HEIGHT,
    )
    st.caption("Share of all (entity, proxy) pairs of a graph.", help=explain("proxy", "cosine"))


def _distribution_figure(run: OpenRun, table: pd.DataFrame) -> go.Figure:
    fig = go.Figure()
    for side in SIDES:
        part = table[table["graph"] == side]
        fig.add_scatter(
            x=(part["low"] + part["high"]) / 2,
            y=part["share"],
            name=_legend(run, side),
            line={"color": GRAPH[side], "shape": "hvh", "dash": "solid" if side == "source" else "dash"},
            hovertemplate="%{x:.2f}: %{y:.2%}",
        )
    fig.update_xaxes(title="cosine to a proxy")
    fig.update_yaxes(title="share of entity–proxy pairs", tickformat=".0%", range=_headroom(table))
    return fig


def _headroom(table: pd.DataFrame) -> list[float]:
    """The range of an axis of shares, so that no curve touches the frame."""
    return [0.0, HEADROOM * max(float(table["share"].max()), 1e-9)]


def _ticks(order: Sequence[int]) -> list[str]:
    """The proxies that have a tick, of those of an axis."""
    return [str(proxy) for proxy in (order if len(order) <= FEW else order[::TICKS])]


def _legend(run: OpenRun, side: Side) -> str:
    return f"{PLAIN_MARKS[side]} {text.figure_label(run.view.graphs[side].name, 30)}"


def _meetings(run: OpenRun, channel: Channel) -> None:
    agreement = run.proxies.agreement(channel)
    if agreement.same is None:
        st.markdown("The data set has no known links, so agreement cannot be measured.")
        return
    order = _order(run, channel, "nearest")
    caption = (
        f"**{text.percent(agreement.same)}** of the {agreement.links:,} known links have the same nearest proxy at both ends (the diagonal); "
        f"expected for random pairs: {agreement.chance:.1%}."
    )
    components.figure(
        _meetings_figure(agreement, order),
        name=f"proxy-meetings-{channel}",
        title=f"Nearest-proxy agreement, {channel} channel",
        caption=caption,
        data=agreement.table,
        height=460,
    )


def _meetings_figure(agreement: ProxyAgreement, order: list[int]) -> go.Figure:
    """Proxies by proxies, the most used first; a mark shows the diagonal."""
    place = {proxy: number for number, proxy in enumerate(order)}
    counts = np.zeros((len(order), len(order)), dtype=np.int64)
    for source, target, links in agreement.table.itertuples(index=False):
        counts[place[source], place[target]] = links
    names = [str(proxy) for proxy in order]
    fig = go.Figure(
        go.Heatmap(
            z=counts,
            x=names,
            y=names,
            colorscale=SEQUENTIAL,
            colorbar={"title": "links", "thickness": 12},
            hovertemplate="nearest to the source: proxy %{y}<br>nearest to the target: proxy %{x}<br>%{z} links<extra></extra>",
        )
    )
    fig.update_xaxes(title="proxy nearest to the target (most used first)", type="category", tickvals=_ticks(order))
    fig.update_yaxes(title="proxy nearest to the source", type="category", tickvals=_ticks(order), autorange="reversed")
    return fig


def _order(run: OpenRun, channel: Channel, use: ProxyUse) -> list[int]:
    """Proxies, the most used by both graphs together first."""
    found: list[int] = run.proxies.use(channel).groupby("proxy")[use].sum().sort_values(ascending=False, kind="stable").index.tolist()
    return found


def _use(run: OpenRun, address: ProxiesAddress, channel: Channel) -> None:
    help = (
        "Nearest proxy: share of a graph's entities whose nearest proxy this is. Attention: mean proxy attention of a graph's entities; 1 is uniform."
    )
    use = components.choice("Measure", USES, name="use", value=address.use, default="nearest", help=help, also={state.TAB: "usage"})
    table = run.proxies.use(channel)
    order = _order(run, channel, use)
    components.figure(
        _use_figure(run, table, order, use),
        name=f"proxy-use-{channel}-{use}",
        title=f"Proxy usage, {channel} channel",
        caption=_use_sentence(table, order, use),
        data=table,
        height=230,
    )


def _use_sentence(table: pd.DataFrame, order: list[int], use: ProxyUse) -> str:
    first, last = (table[table["proxy"] == proxy].set_index("graph")[use] for proxy in (order[0], order[-1]))
    if use == "nearest":
        equal = f"uniform: {1 / len(order):.1%}"
        most, least = (f"{one['source']:.1%} of the source's and {one['target']:.1%} of the target's entities" for one in (first, last))
        return f"Most used: proxy {order[0]}, nearest proxy of {most}. Least used: proxy {order[-1]}, {least}; {equal}."
    most, least = (f"{one['source']:.3f} (source) and {one['target']:.3f} (target)" for one in (first, last))
    return f"Highest attention: proxy {order[0]}, {most} times uniform. Lowest: proxy {order[-1]}, {least}."


def _use_figure(run: OpenRun, table: pd.DataFrame, order: list[int], use: ProxyUse) -> go.Figure:
    values = table.pivot(index="graph", columns="proxy", values=use)
    form = ".1%" if use == "nearest" else ".3f"
    fig = go.Figure(
        go.Heatmap(
            z=[values.loc[side, order].to_numpy() for side in SIDES],
            x=[str(proxy) for proxy in order],
            y=[_legend(run, side) for side in SIDES],
            colorscale=SEQUENTIAL,
            colorbar={"title": "share" if use == "nearest" else "× uniform", "tickformat": form, "thickness": 12},
            hovertemplate=f"proxy %{{x}}<br>%{{y}}: %{{z:{form}}}<extra></extra>",
        )
    )
    fig.update_xaxes(type="category", title="proxy (most used first)", tickvals=_ticks(order))
    fig.update_yaxes(autorange="reversed")
    return fig


# One proxy


def _proxy(run: OpenRun, address: ProxiesAddress, channel: Channel) -> None:
    order = _order(run, channel, "nearest")
    if address.proxy is not None and address.proxy not in order:
        st.error(f"There is no proxy {address.proxy}. The {channel} channel has proxies 0 to {len(order) - 1}.", icon=":material/error:")
    proxy = address.proxy if address.proxy in order else order[0]
    _choose_proxy(order, proxy)
    near = run.proxies.nearest(channel, proxy)
    together = sum(one.counterpart is not None for one in near["source"])
    st.markdown(
        f"The entities of each graph with the highest cosine to proxy {proxy}. "
        f"{together} of the {len(near['source'])} source entities have their counterpart "
        "(known link, otherwise best match) in the target list, marked ⇄."
    )
    for column, side in zip(st.columns(2, gap="large"), SIDES, strict=True):
        with column, st.container(border=True, gap="xsmall"):
            st.caption(components.graph_name(run.view, side))
            for one in near[side]:
                _near(address, one)
    components.download(_near_rows(near), f"proxy-{channel}-{proxy}", key=state.widget_key(state.PROXY_CHOICE, channel, proxy))


def _choose_proxy(order: list[int], proxy: int) -> None:
    key = state.widget_key(state.PROXY_CHOICE, proxy, len(order))

    def follow() -> None:
        state.set_parameter(state.PROXY, str(st.session_state[key]))

    st.selectbox("Proxy (most used first)", order, index=order.index(proxy), key=key, on_change=follow, width=220)


def _near(address: ProxiesAddress, one: Near) -> None:
    detail = f" :gray[· {text.score(one.similarity)}]"
    if one.counterpart is not None:
        detail += f" :gray[⇄ {text.plain(one.counterpart.title, 40)}]"
    components.entity_link(address.runs, one.entity, match=one.counterpart, detail=detail)


def _near_rows(near: Mapping[Side, list[Near]]) -> pd.DataFrame:
    rows = [
        {"graph": side, "rank": one.rank, "entity": one.entity.title, "id": one.entity.uri, "similarity": one.similarity}
        for side, found in near.items()
        for one in found
    ]
    return pd.DataFrame(rows)


# Pairs


def _pair(run: OpenRun, address: ProxiesAddress, channel: Channel, source: Entity, target: Entity) -> None:
    components.pair_header(run.view, run.view.pair(source.index, target.index), address.runs, "source")
    found = run.proxies.pair(channel, source.index, target.index)
    with st.container(horizontal=True, vertical_alignment="center"):
        pages.link(pages.ENTITY, state.entity_address(address.runs, source, target), "Open pair", icon=":material/arrow_forward:")
        leave = {"source": None, "target": None, state.TAB: None}
        st.button("Close pair", icon=":material/close:", type="tertiary", key=state.CLOSE_PAIR, on_click=state.set_parameters, args=(leave,))
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Proxy attention", anchor=False, help=explain("proxy", "relative attention"))
        components.figure(
            _attention_figure(source, target, found),
            name=f"proxy-attention-{channel}",
            caption=_attention_sentence(found, channel),
            data=found.table,
            height=FIGURE_HEIGHT,
        )
    with right:
        st.subheader("Divergence", anchor=False, help=explain("divergence"))
        _divergences(run, channel, _pair_sentence(run, channel, found), found.divergence)


def _attention_sentence(found: PairAttention, channel: Channel) -> str:
    first = found.table.iloc[0]
    return (
        f"Highest attention: proxy {int(first['proxy'])} ({channel} channel), {first['source']:.2f} (source) and "
        f"{first['target']:.2f} (target) times uniform. Attention is always close to uniform, so compare the shapes."
    )


def _attention_figure(source: Entity, target: Entity, found: PairAttention) -> go.Figure:
    fig = go.Figure()
    entities: dict[Side, Entity] = {"source": source, "target": target}
    for side, entity in entities.items():
        fig.add_scatter(
            x=[str(proxy) for proxy in found.table["proxy"]],
            y=found.table[side],
            name=f"{PLAIN_MARKS[side]} {text.figure_label(entity.title, 40)}",
            mode="lines+markers",
            line={"color": GRAPH[side], "width": 1.5, "dash": "solid" if side == "source" else "dash"},
            marker={"symbol": POINTS[side], "size": 6},
            hovertemplate="proxy %{x}: %{y:.3f}",
        )
    fig.add_hline(y=1, line={"width": 1, "dash": "dot", "color": UNKNOWN})
    fig.update_xaxes(type="category", title="proxy (highest attention first)", tickvals=_ticks(found.table["proxy"].tolist()))
    fig.update_yaxes(title="relative attention (1 = uniform)")
    return fig


def _pair_sentence(run: OpenRun, channel: Channel, found: PairAttention) -> str:
    start = f"Divergence: {found.divergence * MILLION:.1f} × 10⁻⁶ bit. It is lower for"
    drawn = f"**{text.percent(found.above_drawn)}** of random pairs"
    if found.above_links is None:
        return f"{start} {drawn}."
    return f"{start} **{text.percent(found.above_links)}** of the {len(run.proxies.known_divergence(channel)):,} known links, and {drawn}."


def _divergences(run: OpenRun, channel: Channel, caption: str, marked: float | None = None) -> None:
    """The distribution of distances, and the place of one pair in it; a number alone would mean little, all of them being so small."""
    groups = {KNOWN: run.proxies.known_divergence(channel)["divergence"].to_numpy(), DRAWN: run.proxies.drawn_divergence(channel)}
    table = log_histogram({name: values for name, values in groups.items() if len(values)})
    if table.empty:
        st.markdown(caption)
        return
    components.figure(
        _divergence_figure(table, marked),
        name=f"proxy-divergence-{channel}",
        title=f"Divergence of proxy attention, {channel} channel",
        caption=caption,
        data=table,
        height=FIGURE_HEIGHT,
    )
    st.caption("Share of the pairs at each divergence, on a log axis.", help=explain("divergence"))


def _divergence_figure(table: pd.DataFrame, marked: float | None) -> go.Figure:
    fig = go.Figure()
    for group, colour, dash in ((KNOWN, RIGHT, "solid"), (DRAWN, UNKNOWN, "dash")):
        part = table[table["group"] == group]
        fig.add_scatter(
            x=np.sqrt(part["low"] * part["high"]) * MILLION,
            y=part["share"],
            name=group,
            line={"color": colour, "dash": dash, "shape": "hvh"},
            hovertemplate="%{x:.1f}: %{y:.1%}",
        )
    if marked is not None:
        place = float(np.log10(max(marked, table["low"].min()) * MILLION))
        fig.add_vline(x=10**place, line={"width": 2, "color": WRONG})
        fig.add_annotation(x=place, y=1, yref="paper", text="this pair", showarrow=False, xanchor="left", xshift=4)
    fig.update_xaxes(type="log", dtick=1, title="Jensen–Shannon divergence (10⁻⁶ bit)")
    fig.update_yaxes(title="share of pairs", tickformat=".0%", range=_headroom(table))
    return fig


def _pairs(run: OpenRun, channel: Channel) -> None:
    """Without a pair: how pairs differ on the whole, and some to start with."""
    known, drawn = run.proxies.known_divergence(channel)["divergence"], run.proxies.drawn_divergence(channel)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _divergences(run, channel, _pairs_sentence(known, drawn))
    with right:
        alike, unlike = run.proxies.informative_pairs(channel, STARTS)
        st.caption("Open one of these pairs, or use the link on the page of any pair.")
        for title, pairs in (("Known links with the lowest divergence", alike), ("Known links with the highest divergence", unlike)):
            if pairs:
                st.markdown(f"##### {title}")
            for source, target in pairs:
                there = {"source": source.uri, "target": target.uri, state.TAB: None}
                key = state.widget_key(state.CHOICE, "start", source.uri, target.uri)
                st.button(components.pair_label(source, target), key=key, type="tertiary", on_click=state.set_parameters, args=(there,))


def _pairs_sentence(known: pd.Series, drawn: np.ndarray) -> str:
    random = f"{float(np.median(drawn)) * MILLION:.0f} for random pairs" if len(drawn) else ""
    linked = f"{known.median() * MILLION:.0f} for the {len(known):,} known links" if len(known) else ""
    medians = ", ".join(filter(None, (linked, random)))
    return f"Median divergence (10⁻⁶ bit): {medians}." if medians else "There are no pairs to compare."


frame.one_run(pages.PROXIES, render)
