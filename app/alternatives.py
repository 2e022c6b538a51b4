"""Other candidates of a pair's entities: the rivals of both sides, a comparison with one of them, and who else has either as best match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import pandas as pd
import streamlit as st

from app import cache, components, evidence_figures, pages, state, text
from app.cache import OpenRun
from app.glossary import explain as term
from app.palette import PLAIN_MARKS
from app.state import ExplainAddress
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import EngineError
from engine.explanation import Conflict, RivalComparison, compare_with, conflict
from engine.explanation.summary import grouped_parts
from engine.explore.neighbourhood import facing
from engine.runs.entities import Entity, other
from engine.runs.view import Match, PairScore

RIVALS: Final = 5  # of each entity
CLAIMS: Final = 6
LISTED: Final = 40


def alternatives(run: OpenRun, address: ExplainAddress, pair: PairScore) -> None:
    """The tab Alternatives."""
    rivals = {side: rivals_of(run, pair, side) for side in SIDES}
    for column, side in zip(st.columns(2, gap="large"), SIDES, strict=True):
        with column:
            _rivals(run, address, pair, side, rivals[side])
    _comparison(run, address, pair, rivals)
    _conflicts(run, address, pair)


def rivals_of(run: OpenRun, pair: PairScore, side: Side) -> list[Match]:
    """The best candidates of one of the two besides the other."""
    own, across = (pair.source, pair.target) if side == "source" else (pair.target, pair.source)
    return [one for one in run.view.matches(side, own.index, RIVALS + 1, pair.pool) if one.entity != across.index][:RIVALS]


def _rivals(run: OpenRun, address: ExplainAddress, pair: PairScore, side: Side, found: Sequence[Match]) -> None:
    entity = pair.source if side == "source" else pair.target
    words = f"**Other candidates of** {components.entity_label(entity)}"
    if not found:
        st.markdown(words)
        st.markdown("There is no other candidate.")
        return
    key = state.widget_key(state.EVIDENCE_TABLE, "rivals", *address.runs, address.source, address.target, address.pool, side, address.against)

    def follow() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        state.set_parameters({"side": None if side == "source" else side, "against": found[rows[0]].uri if rows else None})

    rows = [
        {
            "candidate": text.cell(run.view.entity(other(side), one.entity).title, 80),
            "CSLS": one.csls,
            "margin": pair.csls - one.csls,
            "verdict": components.verdict_cell(one.verdict),
        }
        for one in found
    ]
    components.table(
        pd.DataFrame(rows),
        name=f"rivals-{side}",
        above=lambda: st.markdown(words),
        key=key,
        on_select=follow,
        chosen=next((row for row, one in enumerate(found) if one.uri == address.against), None),
        columns={
            "CSLS": st.column_config.NumberColumn(format="%.3f", help=term("CSLS")),
            "margin": st.column_config.NumberColumn(format="%+.3f", help="CSLS of this pair minus that of the candidate."),
        },
    )


# One of them in comparison


def _comparison(run: OpenRun, address: ExplainAddress, pair: PairScore, rivals: Mapping[Side, Sequence[Match]]) -> None:
    st.subheader("Compare with another candidate", anchor=False)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        components.choice(
            "Runner-up",
            dict(_runner_ups(run, pair, rivals)),
            name="side",
            value=address.side,
            default="source",
            clears=("against",),
            help="The best other candidate of either entity.",
        )
        components.search_box(
            "Another entity of either graph; empty: the runner-up",
            address.against,
            shown=components.readable_name(run.view, address.against),
            placeholder="label, ID or URI",
            name="against",
            width=420,
        )
    ends = pair.source.index, pair.target.index

    def compute() -> RivalComparison | None:
        return compare_with(run.explainer, *ends, address.against, address.pool, side=address.side)

    try:
        question = (f"against {address.side} {address.against or ''}", *map(str, ends), address.pool)
        found = cache.kept_of_pair([run], question, compute)
    except EngineError as error:
        components.show_error(error)
        return
    if found is None:
        st.markdown("There is no other candidate to compare with.")
        return
    _difference(run, address, found)


def _runner_ups(run: OpenRun, pair: PairScore, rivals: Mapping[Side, Sequence[Match]]) -> Iterator[tuple[Side, str]]:
    """For each of the two entities the best of its other candidates, in words."""
    for side, entity in zip(SIDES, (pair.source, pair.target), strict=True):
        best = next(iter(rivals[side]), None)
        words = "no other candidate" if best is None else components.entity_name(run.view.entity(other(side), best.entity))
        yield side, f"of {components.entity_name(entity)}: {words}"


def _difference(run: OpenRun, address: ExplainAddress, found: RivalComparison) -> None:
    rival = found.rival.target if found.shared == "source" else found.rival.source
    left, right = st.columns([3, 2], gap="large")
    with left:
        _difference_figure(address, found, rival)
    with right:
        st.table(summary_table(run, found), border="horizontal", hide_index=True)
        ends = (found.pair.source, rival) if found.shared == "source" else (rival, found.pair.target)
        there = replace(address, source=ends[0].uri, target=ends[1].uri, against=None, without=(), tab=None)
        pages.link(pages.EXPLAIN, there, "Explain the other pair", icon=":material/arrow_forward:")
    rows = [
        {"neighbour": text.cell(one.entity.title, 80), "this pair": one.pair, "rival": one.rival, "difference": one.value} for one in found.neighbours
    ]
    number = st.column_config.NumberColumn(format="%+.3f")
    components.table(
        pd.DataFrame(rows),
        name="explanation-rival-neighbours",
        columns=dict.fromkeys(("this pair", "rival", "difference"), number),
        above=lambda: st.markdown("**Contributions of the shared entity's neighbours**"),
    )


@st.fragment
def _difference_figure(address: ExplainAddress, found: RivalComparison, rival: Entity) -> None:
    key = state.widget_key(state.EXPLAIN_BUTTON, "difference", *address.runs, address.source, address.target, rival.uri)
    detailed = st.toggle("By channel and hop", key=key)
    groups = grouped_parts(found.differences)
    bars = evidence_figures.group_bars(groups, {group.name for group in groups} if detailed else ())
    components.figure(
        evidence_figures.waterfall(bars, "Difference", found.total),
        name="explanation-rival",
        title=f"{text.cell(found.pair.source.title, 30)} – {text.cell(found.pair.target.title, 30)} compared with {text.cell(rival.title, 30)}",
        caption=f"CSLS {text.score(found.pair.csls)} against {text.score(found.rival.csls)} for {components.entity_label(rival)}: "
        f"margin **{text.signed(found.total)}**. Bars: contributions to this pair minus those to the other.",
        alt=evidence_figures.spoken(bars, "Difference", found.total),
        data=evidence_figures.part_table(found.differences),
        height=evidence_figures.waterfall_height(len(bars) + 1),
    )


def summary_table(run: OpenRun, found: RivalComparison) -> pd.DataFrame:
    """This pair and its rival, number by number; what neither has is left out."""
    columns = [_numbers(run, pair, found.shared) for pair in (found.pair, found.rival)]
    names = [name for name in columns[0] if any(column[name] for column in columns)]
    return pd.DataFrame(
        {"measure": names, **{head: [column[name] or "–" for name in names] for head, column in zip(("this pair", "rival"), columns, strict=True)}}
    )


def _numbers(run: OpenRun, pair: PairScore, shared: Side) -> dict[str, str]:
    faced = facing(run.adjacency, pair.source.index, pair.target.index, LISTED)
    across = pair.target if shared == "source" else pair.source
    rank = pair.rank_from_source if shared == "source" else pair.rank_from_target
    return {
        "candidate": f"{PLAIN_MARKS[across.side]} {text.plain(across.title, 40)}",
        run.view.probability_word: "" if pair.probability is None else f"{pair.probability:.0%}",
        "CSLS": text.score(pair.csls),
        "cosine": text.score(pair.cosine),
        "names": "" if pair.names is None else text.score(pair.names),
        "values": text.score(pair.values) if pair.values else "",
        "rank": f"{rank:,}",
        "aligned neighbours": f"{faced.total_pairs:,} of {faced.total_source:,} and {faced.total_target:,}",
        "verdict": components.verdict_cell(pair.verdict),
    }


# Who else has them as best match


def _conflicts(run: OpenRun, address: ExplainAddress, pair: PairScore) -> None:
    """Whose best match either entity is, the far end of where one comes from first."""
    st.subheader("Competing entities", anchor=False, help=term("conflict"))
    ends = (pair.target, pair.source) if address.side == "source" else (pair.source, pair.target)
    for column, entity in zip(st.columns(2, gap="large"), ends, strict=True):
        with column:
            found = cache.kept_of_pair(
                [run], ("conflict", entity.side, str(entity.index)), partial(conflict, run.explainer, entity.index, side=entity.side)
            )
            _claims(run, address, found)
    other_pool = " CSLS is computed among all entities here, not among the test entities." if address.pool == "test" else ""
    st.caption(f"One-to-one matching by the decoder '{found.decoder}' over the {found.listed} stored matches of each entity.{other_pool}")


def _claims(run: OpenRun, address: ExplainAddress, found: Conflict) -> None:
    graph = components.graph_name(run.view, other(found.entity.side))
    label = components.entity_label(found.entity)
    if len(found.claims) < 2:
        how_many = text.count(len(found.claims), "entity", "entities")
        st.markdown(f"{how_many} of {graph} {'has' if found.claims else 'have'} {label} as best match among all entities: no conflict.")
        return
    winner = f"to {components.entity_label(found.winner)}" if found.winner else "to none of them"
    st.markdown(
        f"**{len(found.claims):,}** entities of {graph} have {label} as their best match among all entities. One-to-one matching assigns it {winner}."
    )
    for claim in found.claims[:CLAIMS]:
        decided = "" if claim.decided is None or claim.decided == found.entity else f" :gray[assigned to {text.plain(claim.decided.title, 40)}]"
        ends = {claim.entity.side: claim.entity.uri, found.entity.side: found.entity.uri}
        there = replace(address, source=ends["source"], target=ends["target"], pool="all", against=None, without=(), tab=None)
        pages.link(pages.EXPLAIN, there, f"{components.entity_label(claim.entity)} :gray[{text.score(claim.csls)}]{decided}")
    if len(found.claims) > CLAIMS:
        st.caption(f"{text.count(len(found.claims) - CLAIMS, 'more entity', 'more entities')} with lower scores.")
