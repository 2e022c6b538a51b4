"""Compare: what did one run buy over another, and at what price?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import cache, components, frame, pages, state, text
from app.cache import OpenRun
from app.glossary import explain
from app.query_list import query_list
from app.rate_figures import RATES, WHOSE, check_bucket, degree_figure, flip_figure, lead_words, measured, net_words, relation_figure, run_names
from app.state import AddressError, CompareAddress, Flip, Rate
from engine.analysis.relations import incidences
from engine.analysis.run_tables import graph_of
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ComparisonError
from engine.evaluation.metrics import stored_interval
from engine.explore.comparison import CSLS, Comparison, Difference, compare, config_differences
from engine.reviews import describe_reviews
from engine.runs.entities import short_id
from engine.util.arrays import IntArray

RELATIONS_DRAWN = 12
CERTAIN = 0.05
GRAPH_TABLES = ("entities", "relations", "triples")


def render(runs: Sequence[OpenRun], address: CompareAddress) -> None:
    """The page."""
    with st.container(horizontal=True, gap="medium"):
        names: dict[Side, str] = {side: components.graph_name(runs[0].view, side) for side in SIDES}
        components.choice("Test entities of", names, name="side", value=address.side, default="target", clears=(state.RELATION,), help=WHOSE)
        decoder = _decoder(runs, address)
    st.subheader("Accuracy on the test links", anchor=False)
    _metrics(runs, address.side, decoder)
    _pair(runs, address, decoder)
    st.header("Accuracy by degree and relation", anchor=False)
    _curves(runs, address.side)
    st.header("Settings and cost", anchor=False)
    _settings(runs)
    _costs(runs)


DECODER = "How the alignment is derived from the scores. csls (best match of each entity) is the published protocol."


# Figures of all runs


def _decoder(runs: Sequence[OpenRun], address: CompareAddress) -> str:
    """One of the decoders that all runs store figures of."""
    stored = [{CSLS, *run.json("decoders")} for run in runs]
    offered = sorted(set.intersection(*stored), key=lambda name: (name != CSLS, name))
    if address.decoder not in offered:
        raise AddressError(f"This link asks for the decoder '{address.decoder[:40]}'. These runs have {', '.join(offered)}.")
    labels = {name: text.plain(name, 30) for name in offered}
    return components.choice("Decoder", labels, name="decoder", value=address.decoder, default=CSLS, help=DECODER)


def _figures(run: OpenRun, side: Side, decoder: str) -> Mapping[str, Any] | None:
    """A run's stored figures; None where it has no test links."""
    direction = state.DIRECTION_OF[side]
    if decoder == CSLS:
        return None if run.card.metrics is None else run.card.metrics[direction]
    found: Mapping[str, Any] = run.json("decoders")[decoder][direction]
    return found


def _metrics(runs: Sequence[OpenRun], side: Side, decoder: str) -> None:
    """A row a run, and how far the main run is ahead of it."""
    names = run_names(runs)
    rows = [_metrics_row(run, name, side, decoder) for run, name in zip(runs, names, strict=True)]
    rows[0] |= {f"Δ {label} vs main run": "—" for label in RATES.values()}
    for row, other in zip(rows[1:], runs[1:], strict=True):
        row |= _lead(runs[0], other, side, decoder)
    components.table(
        pd.DataFrame(rows),
        name="runs",
        columns={
            **{label: st.column_config.NumberColumn(format="%.3f", width=70, help=explain(label)) for label in RATES.values()},
            "95% interval": st.column_config.TextColumn(help=f"Of Hits@1. {explain('interval')}"),
            **{f"Δ {label} vs main run": st.column_config.TextColumn(help=LEAD) for label in RATES.values()},
        },
    )
    for run, name in zip(runs, names, strict=True):
        if words := describe_reviews(run.run.manifest):
            st.caption(f":material/rule: **{text.plain(name)}** was trained with reviews: {words}")
    if len({run.card.split for run in runs}) > 1:
        st.caption(
            "These runs split the links differently: each row is measured on its own test links. The differences are measured on the test links that "
            "both have and neither trained on, ranked again among the entities of these."
        )


LEAD = (
    "This run minus the main run, on the same test entities, with the 95% interval of the difference. It covers the choice of test entities, "
    "not the variation between random seeds."
)


def _metrics_row(run: OpenRun, name: str, side: Side, decoder: str) -> dict[str, object]:
    row: dict[str, object] = {"run": name, "variant": text.cell(run.card.variant)}
    figures = _figures(run, side, decoder)
    if figures is None:
        return row | dict.fromkeys(RATES.values()) | {"95% interval": "no test links"}
    found = stored_interval(figures, "hits@1", run.card.links.get("test", 0))
    words = f"{text.score(found[0][0])}–{text.score(found[0][1])}, n = {found[1]:,}" if found else ""
    return row | {"Hits@1": figures["hits@1"], "95% interval": words, "Hits@10": figures["hits@10"], "MRR": figures["mrr"]}


def _lead(main: OpenRun, other: OpenRun, side: Side, decoder: str) -> dict[str, str]:
    """Nothing where the two cannot be compared; the pair's own section says why."""
    try:
        found = _differences(main, other, side, decoder)
        compared = _compared(main, other, side, decoder)
    except ComparisonError:
        return dict.fromkeys((f"Δ {label} vs main run" for label in RATES.values()), "not comparable")
    n = "" if compared.same_split else f", n = {len(compared.queries):,}"  # otherwise that of the row
    return {f"Δ {label} vs main run": _signed(found[rate], n) for rate, label in RATES.items()}


def _signed(difference: Difference, n: str = "") -> str:
    """'+0.032 (+0.025 to +0.039)', of the other run less the main one."""
    if difference.interval is None:
        return text.signed(-difference.value)
    low, high = (-end for end in reversed(difference.interval))
    return f"{text.signed(-difference.value)} ({text.signed(low)} to {text.signed(high)}{n})"


def _compared(main: OpenRun, other: OpenRun, side: Side, decoder: str) -> Comparison:
    return cache.kept([main, other], ("comparison", side, decoder), lambda: compare(main.run, other.run, side, decoder))


def _differences(main: OpenRun, other: OpenRun, side: Side, decoder: str) -> Mapping[Rate, Difference]:
    found = _compared(main, other, side, decoder)
    return cache.kept([main, other], ("differences", side, decoder), lambda: {rate: found.difference(rate) for rate in RATES})


# Two runs: what flipped


def _pair(runs: Sequence[OpenRun], address: CompareAddress, decoder: str) -> None:
    main, other = runs[0], _other(runs, address)
    first, second = (run_names(runs)[runs.index(run)] for run in (main, other))
    st.header(f"{text.plain(first)} against {text.plain(second)}", anchor=False)
    if len(runs) > 2:
        offered = {run.card.run: text.plain(name) for run, name in zip(runs[1:], run_names(runs)[1:], strict=True)}
        components.choice("Compare main run with", offered, name="against", value=other.card.run, default=runs[1].card.run)
    try:
        with st.spinner("Comparing the two runs…"):
            found = _compared(main, other, address.side, decoder)
    except ComparisonError as error:
        components.show_error(error)
        return
    _verdict(found, _differences(main, other, address.side, decoder)["hits@1"], first, second)
    _flips(main, address, found, (first, second))


def _other(runs: Sequence[OpenRun], address: CompareAddress) -> OpenRun:
    """The run of the address, where it is open and not the main one itself."""
    if address.against is None:
        return runs[1]
    for run in runs[1:]:
        if run.card.run == address.against:
            return run
    st.caption(f"This link compares with run {text.plain(address.against)}, which is not selected. Add it above.")
    return runs[1]


def _verdict(found: Comparison, difference: Difference, first: str, second: str) -> None:
    """The changed predictions in numbers, the test, and what it does and does not show."""
    test = found.mcnemar()
    right = int(np.count_nonzero((found.main_ranks == 1) & (found.other_ranks == 1)))
    with st.container(horizontal=True, gap="medium"):
        st.metric("Gained", f"{test.gained:,}", help=f"Correct in {text.plain(first)}, incorrect in {text.plain(second)}.")
        st.metric("Lost", f"{test.lost:,}", help=f"Incorrect in {text.plain(first)}, correct in {text.plain(second)}.")
        st.metric("Correct in both", f"{right:,}")
        st.metric("Incorrect in both", f"{len(found.queries) - right - test.gained - test.lost:,}")
        st.metric("McNemar", "no changes" if test.p_value is None else _probability(test.p_value), help=explain("McNemar") + INDEPENDENT)
    of = f"Of {text.count(len(found.queries), 'test entity', 'test entities')}"
    if not found.same_split:
        of += " in both runs, which split the links differently (both ranked again among these)"
    words = f"**{test.gained:,}** are correct only in {text.plain(first)} and **{test.lost:,}** only in {text.plain(second)}"
    st.markdown(f"{of}, {words}: {lead_words(difference, text.plain(first))}. {_words(test.p_value)}")


INDEPENDENT = "\n\nThe test assumes independent entities. Neighbours are not independent, so the p-value tends to be too small."


def _probability(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def _words(p_value: float | None) -> str:
    """The test in words that claim no more than it says."""
    if p_value is None:
        return "The two runs do not differ on these entities. That does not prove that they are equally good elsewhere."
    p = f"McNemar, {_probability(p_value)}"
    if p_value >= CERTAIN:
        return f"The difference is not statistically significant ({p}). That does not prove that the two runs are equally good."
    return (
        f"The difference is statistically significant ({p}). It covers these two runs only; "
        "variation between random seeds needs several runs of each kind."
    )


def _flips(main: OpenRun, address: CompareAddress, found: Comparison, names: tuple[str, str]) -> None:
    """Where gains and losses lie, and who they are."""
    check_bucket(address.bucket)
    graph = main.view.graphs[address.side]
    relation = _relation(main, address)
    degrees, relations = st.columns([3, 2], gap="large")
    with degrees:
        _by_degree(found.by_degree(graph.degrees), address)
    with relations:
        _by_relation(main, address, found)
    table = found.table(graph.degrees)
    chosen = table[table[address.flip]]
    if address.bucket is not None:
        chosen = chosen[chosen["bucket"] == address.bucket]
    if relation is not None:
        members, entities = _members(main, address.side)
        chosen = chosen[chosen["entity"].isin(entities[members == relation])]
    _flip_list(main, address, chosen, found, names)


def _by_degree(flips: pd.DataFrame, address: CompareAddress) -> None:
    key = state.widget_key(state.DEGREE_FIGURE, address.runs, address.side, address.decoder, address.against)
    asked = flips[flips["queries"] > 0].reset_index(drop=True)
    components.figure(
        flip_figure(asked, address.bucket),
        name="flips-by-degree",
        caption=f"**By degree.** {net_words(asked)} Click a bar to list its entities.",
        data=asked,
        height=340,
        key=key,
        on_select=lambda: components.follow_point(key, state.BUCKET),
    )


def _members(run: OpenRun, side: Side) -> tuple[IntArray, IntArray]:
    """Distinct (relation, entity that is its head or tail)."""
    return cache.kept([run], ("members", side), lambda: incidences(graph_of({name: run.table(name) for name in GRAPH_TABLES}, side))["any"])


def _relation_names(run: OpenRun, side: Side) -> list[str]:
    table = run.table("relations")
    return [str(name) for name in table.loc[table["graph"] == side].sort_values("relation")["name"]]


def _relation(run: OpenRun, address: CompareAddress) -> int | None:
    if address.relation is None:
        return None
    names = _relation_names(run, address.side)
    if address.relation not in names:
        raise AddressError(f"The {address.side} graph has no relation '{address.relation[:80]}'. Choose one from the table of relations.")
    return names.index(address.relation)


def _by_relation(run: OpenRun, address: CompareAddress, found: Comparison) -> None:
    names = _relation_names(run, address.side)
    flips = found.by_relation(*_members(run, address.side), len(names))
    flips = flips[flips["gained"] + flips["lost"] > 0]
    flips = flips.assign(net=flips["gained"] - flips["lost"], flipped=flips["gained"] + flips["lost"])
    flips = flips.sort_values(["flipped", "queries"], ascending=False, ignore_index=True).drop(columns="flipped")
    shown = flips.assign(relation=[text.cell(short_id(names[relation])) for relation in flips["relation"]])
    st.markdown("**By relation.** An entity counts for each of its relations. Select a row to list only its entities.")
    key = state.widget_key(state.RELATION_TABLE, address)

    def follow() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        state.set_parameter(state.RELATION, names[int(flips["relation"].iloc[rows[0]])] if rows else None)

    chosen = [row for row, relation in enumerate(flips["relation"].tolist()) if names[relation] == address.relation]
    components.table(
        shown,
        name="flips-by-relation",
        key=key,
        on_select=follow,
        chosen=chosen[0] if chosen else None,
        height=340,
        columns={
            "queries": st.column_config.NumberColumn("test entities", width=90),
            "gained": st.column_config.NumberColumn(width=70),
            "lost": st.column_config.NumberColumn(width=60),
            "net": st.column_config.NumberColumn(format="%+d", width=60),
        },
    )


def _flip_list(main: OpenRun, address: CompareAddress, chosen: pd.DataFrame, found: Comparison, names: tuple[str, str]) -> None:
    st.subheader("Changed predictions", anchor=False)
    flips: dict[Flip, str] = {"gained": f"gained · {int(found.gained.sum()):,}", "lost": f"lost · {int(found.lost.sum()):,}"}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        components.choice("Show", flips, name="flip", value=address.flip, default="gained", help=explain("changed prediction"))
        if address.bucket is not None:
            _chip(f"{address.bucket} triples", state.BUCKET)
        if address.relation is not None:
            _chip(text.plain(short_id(address.relation), 60), state.RELATION)
    right, wrong = names if address.flip == "gained" else names[::-1]
    worst = "other_rank" if address.flip == "gained" else "main_rank"
    answer = "other_answer" if address.flip == "gained" else "main_answer"
    rank, said = f"rank in {wrong}", f"predicted by {wrong}"
    listed = chosen.sort_values([worst, "entity"], ascending=[False, True])[["entity", "degree", worst, answer]]
    query_list(
        main,
        address.runs,
        address.side,
        listed.rename(columns={"degree": "triples", worst: rank}),
        search=address.search,
        name=f"{address.flip}-{right}-{wrong}",
        answers={answer: said},
        columns={
            "triples": st.column_config.NumberColumn(width=60, help=explain("degree")),
            rank: st.column_config.NumberColumn(help="Rank of the true counterpart, which the other run ranks first. " + explain("rank")),
            said: st.column_config.TextColumn(help="The incorrect best match."),
        },
    )


def _chip(label: str, parameter: str) -> None:
    """A filter that is on; a click takes it off."""
    st.button(label, icon=":material/close:", key=state.widget_key(state.CLEAR, parameter), on_click=state.set_parameter, args=(parameter, None))


# All runs over each other


def _curves(runs: Sequence[OpenRun], side: Side) -> None:
    """By degree and by relation, in the published protocol."""
    rate: Rate = "hits@1"
    tables = [measured(run, side) for run in runs]
    if not any(len(table) for table in tables):
        components.nothing_measured([run.card.run for run in runs])
        return
    least = [f"{text.plain(name)} {text.score(table.iloc[0][rate])}" for name, table in zip(run_names(runs), tables, strict=True) if len(table)]
    bucket = next(table for table in tables if len(table)).iloc[0]["bucket"]
    components.figure(
        degree_figure(runs, tables, rate),
        name="hits@1-by-degree",
        caption=f"**By degree** (decoder csls). Hits@1 for entities with {bucket} {'triple' if bucket == '1' else 'triples'}: {', '.join(least)}.",
        data=pd.concat([table.assign(run=run.card.run) for run, table in zip(runs, tables, strict=True)]),
        height=420,
    )
    _relation_curves(runs, side, rate)


def _relation_curves(runs: Sequence[OpenRun], side: Side, rate: Rate) -> None:
    """The relations with the most test entities, the one where the first run is furthest ahead on top."""
    tables = []
    for run in runs:
        table = run.table("relation_hits")
        tables.append(table[(table["graph"] == side) & (table["role"] == "any")].set_index("relation"))
    shared = set.intersection(*(set(table.index) for table in tables))
    common = tables[0][tables[0].index.isin(shared)]
    frequent = common.nlargest(RELATIONS_DRAWN, "queries").index
    if not len(frequent):
        return
    lead = (tables[0].loc[frequent, rate] - tables[1].loc[frequent, rate]).sort_values(ascending=False, kind="stable")
    names = [short_id(one) for one in _relation_names(runs[0], side)]
    shown = [table.loc[lead.index] for table in tables]
    top = f"{text.plain(names[int(lead.index[0])])} ({lead.iloc[0]:+.3f})"
    first, second = run_names(runs)[:2]
    components.figure(
        relation_figure(runs, shown, [names[relation] for relation in lead.index], rate),
        name="hits@1-by-relation",
        caption=f"**By relation** (the {len(lead)} with the most test entities). {text.plain(first)} minus {text.plain(second)} is "
        f"largest for {top}.",
        data=pd.concat([table.assign(run=run.card.run, name=[names[one] for one in lead.index]) for run, table in zip(runs, shown, strict=True)]),
        height=120 + 34 * len(lead),
    )


# Settings and costs


def _settings(runs: Sequence[OpenRun]) -> None:
    names = run_names(runs)
    table = config_differences([run.run.manifest for run in runs])
    st.markdown(f"**Settings that differ:** {len(table)}. All other settings are equal.")
    if len(table):
        readable = table.rename(columns=dict(enumerate(names))).map(lambda cell: text.cell(cell))
        components.table(readable, name="settings")


def _costs(runs: Sequence[OpenRun]) -> None:
    rows = [_cost_row(run, name) for run, name in zip(runs, run_names(runs), strict=True)]
    st.markdown("**Time and memory**, as measured during training; other load on the machine is included.")
    components.table(pd.DataFrame(rows), name="costs", columns={"pairs added": st.column_config.TextColumn(help=explain("semi"))})


def _training_time(training: Mapping[str, Any]) -> str:
    """A run that took over another one's structure did not spend that one's time."""
    if "seconds" not in training:
        return ""
    return text.duration(training["seconds"]) + (" (structure run)" if training.get("structure_run") else "")


def _cost_row(run: OpenRun, name: str) -> dict[str, object]:
    manifest = run.run.manifest
    training, peak = manifest.get("training", {}), manifest.get("peak_rss_mb")
    selections = run.table("selections") if run.has("selections") else pd.DataFrame({"round": []})
    last = selections[selections["round"] == selections["round"].max()]
    rounds = int(selections["round"].nunique())
    return {
        "run": name,
        "epochs": training.get("epochs"),
        "rounds": rounds,
        "pairs added": f"{len(last):,} in the last round" if rounds else "none",
        "training": _training_time(training),
        "whole run": text.duration(run.card.seconds),
        "memory": f"{peak:,.0f} MB" if peak else "",
        "device": text.cell(str(manifest.get("device", ""))),
        "structure run": text.cell(str(training.get("structure_run", ""))),
    }


frame.several_runs(pages.COMPARE, render)
