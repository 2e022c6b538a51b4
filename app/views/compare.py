"""Compare: what a run gained and lost against a reference run, and what differs in settings and cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st

from app import cache, components, frame, pages, pair_filters, state, text
from app.cache import OpenRun
from app.column_widths import text_width
from app.degree_chart import rates_by_degree
from app.glossary import explain
from app.query_list import query_list
from app.rate_figures import RATES, WHOSE, check_bucket, flip_figure, lead_words, measured, net_words, relation_figure, run_labels
from app.state import AddressError, ChangesAddress, CompareAddress, CompareTab, DegreeAddress, Flip, Rate
from app.tabs import open_tab
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ComparisonError
from engine.evaluation.metrics import stored_interval
from engine.explore.comparison import CSLS, Comparison, Difference, compare, config_differences
from engine.reviews import describe_reviews
from engine.runs.entities import short_id

RELATIONS_DRAWN = 12
CERTAIN = 0.05
LONG = 520  # pixels of a table that is scrolled
HERE = {state.TAB: "changed"}
"""Kept in the address by choices within the list, for without them the address would lead to the summary."""
TABS: Mapping[CompareTab, str] = {
    "summary": "Summary",
    "changed": "Changed predictions",
    "degree": "By degree",
    "relation": "By relation",
    "settings": "Settings and cost",
}


def render(runs: Sequence[OpenRun], address: CompareAddress) -> None:
    """The page."""
    check_bucket(address.bucket)
    asked = address.bucket is not None or address.relation is not None or address.search is not None or address.flip != "gained"
    tab: CompareTab = address.tab or ("changed" if asked else "summary")
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        names: dict[Side, str] = {side: components.graph_name(runs[0].view, side) for side in SIDES}
        kept = {} if tab == "summary" else {state.TAB: tab}
        if any(run.card.metrics is not None for run in runs):
            components.choice(
                "Test entities of", names, name="side", value=address.side, default="target", clears=(state.RELATION,), help=WHOSE, also=kept
            )
        decoder = _decoder(runs, address)
        reference = _reference(runs, address)
    pair = Pair(runs, reference, address, decoder)
    parts: Mapping[CompareTab, Callable[[Pair], None]] = {
        "summary": _summary,
        "changed": _changed,
        "degree": _degree,
        "relation": _relations,
        "settings": _settings_and_cost,
    }
    with open_tab(TABS, tab):
        parts[tab](pair)


@dataclass(frozen=True)
class Pair:
    """The main run against its reference run, among all open runs.

    Attributes:
        runs: all of them, the main one first.
        reference: one of the others.
    """

    runs: Sequence[OpenRun]
    reference: OpenRun
    address: CompareAddress
    decoder: str

    @property
    def main(self) -> OpenRun:
        return self.runs[0]

    @property
    def names(self) -> tuple[str, str]:
        """Of the main run and of the reference run."""
        labels = run_labels(self.runs)
        return labels[0], labels[self.runs.index(self.reference)]

    def found(self) -> Comparison | None:
        """What changed; None where the two cannot be compared, and the page says why."""
        lacking = [run.card.metrics is None for run in (self.main, self.reference)]
        if any(lacking):
            run = self.main if lacking[0] else self.reference
            components.nothing_measured([run.card.run], "" if all(lacking) else text.plain(self.names[lacking.index(True)]))
            self.link_changes()
            return None
        try:
            with st.spinner("Comparing the two runs…"):
                return _compared(self.main, self.reference, self.address.side, self.decoder)
        except ComparisonError as error:
            components.show_error(error)
            return None

    def link_changes(self) -> None:
        """The way to all matches that differ, whether any links measure them or not."""
        runs = (self.main.card.run, *(run for run in self.address.runs if run != self.main.card.run))
        asked = ChangesAddress(runs, old=self.reference.card.run)
        pages.link(pages.CHANGES, asked, "List all changed matches with reasons", icon=pages.CHANGES.icon)


def _reference(runs: Sequence[OpenRun], address: CompareAddress) -> OpenRun:
    """The run of the address, where it is open and not the main one itself, and the ways to another one."""
    found = next((run for run in runs[1:] if run.card.run == address.against), runs[1])
    offered = {run.card.run: text.plain(name) for run, name in zip(runs[1:], run_labels(runs)[1:], strict=True)}
    components.choice("Reference run", offered, name="against", value=found.card.run, default=runs[1].card.run, help=REFERENCE)
    order = [found.card.run, *(run.card.run for run in runs if run is not found)]
    st.button(
        "Swap",
        icon=":material/swap_horiz:",
        type="tertiary",
        key=state.widget_key(state.CLEAR, "swap", order),
        on_click=state.set_parameters,
        args=({state.RUN: order, "against": None},),
        help="Exchange main run and reference run.",
    )
    if address.against is not None and found.card.run != address.against:
        st.caption(f"This link compares with run {text.plain(address.against)}, which is not selected. Add it in the sidebar.")
    return found


REFERENCE = "The run that all others are compared with. Changed predictions are those of the main run, the first one in the sidebar."
DECODER = "How the alignment is derived from the scores. csls (best match of each entity) is the published protocol."


# Figures of all runs


def _decoder(runs: Sequence[OpenRun], address: CompareAddress) -> str:
    """One of the decoders that all runs store figures of."""
    stored = [{CSLS, *run.json("decoders")} for run in runs]
    offered = sorted(set.intersection(*stored), key=lambda name: (name != CSLS, name))
    if address.decoder not in offered:
        raise AddressError(f"This link asks for the decoder '{address.decoder[:40]}'. These runs have {', '.join(offered)}.")
    if all(run.card.metrics is None for run in runs):
        return address.decoder  # nothing is measured by it
    labels = {name: text.plain(name, 30) for name in offered}
    return components.choice("Decoder", labels, name="decoder", value=address.decoder, default=CSLS, help=DECODER)


def _figures(run: OpenRun, side: Side, decoder: str) -> Mapping[str, Any] | None:
    """A run's stored figures; None where it has no test links."""
    direction = state.DIRECTION_OF[side]
    if decoder == CSLS:
        return None if run.card.metrics is None else run.card.metrics[direction]
    found: Mapping[str, Any] = run.json("decoders")[decoder][direction]
    return found


def _summary(pair: Pair) -> None:
    """The figures of all runs, then what changed between two of them."""
    _metrics(pair)
    found = pair.found()
    if found is not None:
        st.subheader(f"{text.plain(pair.names[0])} against {text.plain(pair.names[1])}", anchor=False)
        _verdict(found, _differences(pair.main, pair.reference, pair.address.side, pair.decoder)["hits@1"], *pair.names)


def _metrics(pair: Pair) -> None:
    """A column per run; below each rate how far the run is ahead of the reference run."""
    runs, labels = pair.runs, run_labels(pair.runs)
    roles = {runs[0].card.run: " (main run)", pair.reference.card.run: " (reference)"}
    cells = {f"{label}{roles.get(run.card.run, '')}": _metric_cells(run, pair) for run, label in zip(runs, labels, strict=True)}
    rows = [row for row in ROWS if any(column[row] for column in cells.values())]
    table = pd.DataFrame({"measure": rows, **{name: [column[row] or "—" for row in rows] for name, column in cells.items()}})
    help = LEAD if any(_ahead(label) in rows for label in RATES.values()) else None
    components.table(table, name="runs", columns={"measure": st.column_config.TextColumn(help=help)}, light=True)
    for run, name in zip(runs, labels, strict=True):
        if words := describe_reviews(run.run.manifest):
            st.caption(f":material/rule: **{text.plain(name)}** was trained with reviews: {words}")
    if len({run.card.split for run in runs}) > 1:
        st.caption(
            "These runs split the links differently: each column is measured on its own test links. The differences are measured on the test links "
            "that both have and neither trained on, ranked again among the entities of these."
        )


def _ahead(label: str) -> str:
    return f"Δ {label} vs reference"


ROWS = ("run", "variant", "Hits@1", "95% interval", _ahead("Hits@1"), "Hits@10", _ahead("Hits@10"), "MRR", _ahead("MRR"))
LEAD = (
    "Δ: the run minus the reference run, on the same test entities, with the 95% interval of the difference. It covers the choice of test entities, "
    f"not the variation between random seeds.\n\n{explain('Hits@1', 'Hits@10', 'MRR', 'interval')}"
)


def _metric_cells(run: OpenRun, pair: Pair) -> dict[str, str]:
    """A run's column: row -> text, empty where the run has no value."""
    cells = {"run": text.cell(run.card.run_id, 60), "variant": text.cell(run.card.variant), **_leads(run, pair)}
    figures = _figures(run, pair.address.side, pair.decoder)
    if figures is None:
        some = any(one.card.metrics is not None for one in pair.runs)
        return cells | dict.fromkeys(RATES.values(), "") | {"95% interval": "no test links" if some else ""}
    found = stored_interval(figures, "hits@1", run.card.links.get("test", 0))
    interval = f"{text.score(found[0][0])}–{text.score(found[0][1])}, n = {found[1]:,}" if found else ""
    return cells | {label: text.score(figures[rate]) for rate, label in RATES.items()} | {"95% interval": interval}


def _leads(run: OpenRun, pair: Pair) -> dict[str, str]:
    """By how much a run is ahead of the reference run in each rate; the pair's own section says why two cannot be compared."""
    if run is pair.reference or run.card.metrics is None or pair.reference.card.metrics is None:
        return {_ahead(label): "" for label in RATES.values()}
    try:
        found = _differences(run, pair.reference, pair.address.side, pair.decoder)
        compared = _compared(run, pair.reference, pair.address.side, pair.decoder)
    except ComparisonError:
        return {_ahead(label): "not comparable" for label in RATES.values()}
    n = "" if compared.same_split else f", n = {len(compared.queries):,}"  # otherwise that of the column
    return {_ahead(label): _signed(found[rate], n) for rate, label in RATES.items()}


def _signed(difference: Difference, n: str = "") -> str:
    """'+0.032 (+0.025 to +0.039)'."""
    if difference.interval is None:
        return text.signed(difference.value)
    low, high = difference.interval
    return f"{text.signed(difference.value)} ({text.signed(low)} to {text.signed(high)}{n})"


def _compared(main: OpenRun, other: OpenRun, side: Side, decoder: str) -> Comparison:
    return cache.kept([main, other], ("comparison", side, decoder), lambda: compare(main.run, other.run, side, decoder))


def _differences(main: OpenRun, other: OpenRun, side: Side, decoder: str) -> Mapping[Rate, Difference]:
    found = _compared(main, other, side, decoder)
    return cache.kept([main, other], ("differences", side, decoder), lambda: {rate: found.difference(rate) for rate in RATES})


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


# Which predictions changed


def _changed(pair: Pair) -> None:
    """Who they are, narrowed to a range of degrees or a relation."""
    relation = _relation(pair.main, pair.address)
    found = pair.found()
    if found is None:
        return
    address = pair.address
    table = found.table(pair.main.view.graphs[address.side].degrees)
    chosen = table[table[address.flip]]
    if address.bucket is not None:
        chosen = chosen[chosen["bucket"] == address.bucket]
    if relation is not None:
        members, entities = pair_filters.members(pair.main, address.side)
        chosen = chosen[chosen["entity"].isin(entities[members == relation])]
    _flip_list(pair.main, address, chosen, found, pair.names)
    pair.link_changes()


def _degree(pair: Pair) -> None:
    """Gains and losses by degree, then the accuracy of all runs, which the page Degree shows, too."""
    found = pair.found()
    if found is None:
        return
    address = pair.address
    _by_degree(found.by_degree(pair.main.view.graphs[address.side].degrees), address, pair.names)
    tables = [measured(run, address.side) for run in pair.runs]
    if not any(len(table) for table in tables):
        return
    st.subheader("Accuracy by degree", anchor=False)
    key = state.widget_key(state.DEGREE_FIGURE, "rates", address.runs, address.side)
    rates_by_degree(pair.runs, tables, "hits@1", key=key, bucket=address.bucket, on_select=lambda: _follow_bucket(key))
    pages.link(pages.DEGREE, DegreeAddress(address.runs, address.side, tab="entities"), "List misses by degree", icon=":material/bar_chart:")


def _follow_bucket(key: str) -> None:
    components.follow_point(key, state.BUCKET, tab="changed")


def _by_degree(flips: pd.DataFrame, address: CompareAddress, names: tuple[str, str]) -> None:
    key = state.widget_key(state.DEGREE_FIGURE, address.runs, address.side, address.decoder, address.against)
    asked = flips[flips["queries"] > 0].reset_index(drop=True)
    components.figure(
        flip_figure(asked, address.bucket),
        name="flips-by-degree",
        caption=f"**Gained and lost by {text.plain(names[0])} against {text.plain(names[1])}.** {net_words(asked)} Click a bar to list its entities.",
        data=asked,
        height=300,
        key=key,
        on_select=lambda: _follow_bucket(key),
    )


def _relations(pair: Pair) -> None:
    """Gains and losses by relation, then the accuracy of all runs for the relations of the most test entities."""
    found = pair.found()
    if found is None:
        return
    table, curves = st.columns(2, gap="medium")
    with table:
        _by_relation(pair.main, pair.address, found)
    with curves:
        _relation_curves(pair, "hits@1")


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
    flips = found.by_relation(*pair_filters.members(run, address.side), len(names))
    flips = flips[flips["gained"] + flips["lost"] > 0]
    flips = flips.assign(net=flips["gained"] - flips["lost"], flipped=flips["gained"] + flips["lost"])
    flips = flips.sort_values(["flipped", "queries"], ascending=False, ignore_index=True).drop(columns="flipped")
    shown = flips.assign(relation=[text.cell(short_id(names[relation])) for relation in flips["relation"]])
    words = "**Gained and lost by relation.** An entity counts for each of its relations. Select a row to list its entities."
    key = state.widget_key(state.RELATION_TABLE, address)

    def follow() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        if rows:
            state.set_parameters({state.RELATION: names[int(flips["relation"].iloc[rows[0]])], state.TAB: "changed"})
        else:
            state.set_parameter(state.RELATION, None)

    chosen = [row for row, relation in enumerate(flips["relation"].tolist()) if names[relation] == address.relation]
    components.table(
        shown,
        name="flips-by-relation",
        above=lambda: st.markdown(words),
        key=key,
        on_select=follow,
        chosen=chosen[0] if chosen else None,
        height=420 if len(shown) > 10 else "auto",
        columns={
            "relation": st.column_config.TextColumn(width=135),
            "queries": st.column_config.NumberColumn("entities", width=78, help="Test entities that have the relation."),
            "gained": st.column_config.NumberColumn(width=70),
            "lost": st.column_config.NumberColumn(width=60),
            "net": st.column_config.NumberColumn(format="%+d", width=60),
        },
    )


def _flip_list(main: OpenRun, address: CompareAddress, chosen: pd.DataFrame, found: Comparison, names: tuple[str, str]) -> None:
    right, wrong = names if address.flip == "gained" else names[::-1]
    st.subheader(f"Correct in {text.plain(right)}, incorrect in {text.plain(wrong)}", anchor=False)
    flips: dict[Flip, str] = {"gained": f"gained · {int(found.gained.sum()):,}", "lost": f"lost · {int(found.lost.sum()):,}"}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        components.choice("Show", flips, name="flip", value=address.flip, default="gained", help=explain("changed prediction"), also=HERE)
        if address.bucket is not None:
            _chip(f"{address.bucket} triples", state.BUCKET)
        if address.relation is not None:
            _chip(text.plain(short_id(address.relation), 60), state.RELATION)
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
        also=HERE,
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
    changes = {parameter: None, **HERE}
    st.button(label, icon=":material/close:", key=state.widget_key(state.CLEAR, parameter), on_click=state.set_parameters, args=(changes,))


def _relation_curves(pair: Pair, rate: Rate) -> None:
    """The relations with the most test entities, the one where the main run is furthest ahead of the reference run on top."""
    runs, side, tables = pair.runs, pair.address.side, []
    for run in runs:
        table = run.table("relation_hits")
        tables.append(table[(table["graph"] == side) & (table["role"] == "any")].set_index("relation"))
    shared = set.intersection(*(set(table.index) for table in tables))
    common = tables[0][tables[0].index.isin(shared)]
    frequent = common.nlargest(RELATIONS_DRAWN, "queries").index
    if not len(frequent):
        return
    reference = tables[runs.index(pair.reference)]
    lead = (tables[0].loc[frequent, rate] - reference.loc[frequent, rate]).sort_values(ascending=False, kind="stable")
    names = [short_id(one) for one in _relation_names(runs[0], side)]
    shown = [table.loc[lead.index] for table in tables]
    top = f"{text.plain(names[int(lead.index[0])])} ({text.signed(lead.iloc[0])})"
    components.figure(
        relation_figure(runs, shown, [names[relation] for relation in lead.index], rate),
        name="hits@1-by-relation",
        caption=f"**Accuracy by relation** (the {len(lead)} with the most test entities). {text.plain(pair.names[0])} minus "
        f"{text.plain(pair.names[1])} is largest for {top}.",
        data=pd.concat([table.assign(run=run.card.run, name=[names[one] for one in lead.index]) for run, table in zip(runs, shown, strict=True)]),
        height=120 + 30 * len(lead),
    )


# Settings and cost


def _settings_and_cost(pair: Pair) -> None:
    """A column per run, of what was set and of what it took."""
    runs, labels = pair.runs, run_labels(pair.runs)
    key = state.widget_key(state.CHOICE, state.DIFFERENCES, pair.address.differences)
    only = pair.address.differences
    st.subheader("Settings", anchor=False)
    st.toggle(
        "Differences only", value=only, key=key, on_change=lambda: state.set_parameter(state.DIFFERENCES, None if st.session_state[key] else "no")
    )
    manifests = [run.run.manifest for run in runs]
    differing = len(config_differences(manifests))
    words = f"**Settings that differ:** {differing}. {'All other settings are equal.' if only else 'All settings are listed.'}"
    table = config_differences(manifests, everything=not only)
    if len(table):
        readable = table.rename(columns=dict(enumerate(labels))).map(lambda cell: text.cell(cell))
        first = st.column_config.TextColumn(width=text_width(table["setting"]))
        height: int | Literal["auto"] = LONG if len(table) > 14 else "auto"
        components.table(readable, name="settings", columns={"setting": first}, height=height, above=lambda: st.markdown(words))
    else:
        st.markdown(words)
    st.subheader("Cost", anchor=False)
    measured = "**Time and memory**, as measured during training; other load on the machine is included."
    costs = {label: _costs(run) for run, label in zip(runs, labels, strict=True)}
    rows = [name for name in next(iter(costs.values())) if any(column[name] for column in costs.values())]
    data = pd.DataFrame({"cost": rows, **{label: [column[name] for name in rows] for label, column in costs.items()}})
    components.table(data, name="costs", above=lambda: st.markdown(measured), light=True)


def _training_time(training: Mapping[str, Any]) -> str:
    """A run that took over another one's structure did not spend that one's time."""
    if "seconds" not in training:
        return ""
    return text.duration(training["seconds"]) + (" (structure run)" if training.get("structure_run") else "")


def _costs(run: OpenRun) -> dict[str, str]:
    """What a run took: name -> text, empty where nothing is known."""
    manifest = run.run.manifest
    training, peak = manifest.get("training", {}), manifest.get("peak_rss_mb")
    selections = run.table("selections") if run.has("selections") else pd.DataFrame({"round": []})
    last = selections[selections["round"] == selections["round"].max()]
    rounds = int(selections["round"].nunique())
    return {
        "epochs": f"{training['epochs']:,}" if training.get("epochs") is not None else "",
        "rounds": str(rounds),
        "pairs added": f"{len(last):,} in the last round" if rounds else "none",
        "training": _training_time(training),
        "whole run": text.duration(run.card.seconds),
        "memory": f"{peak:,.0f} MB" if peak else "",
        "device": text.cell(str(manifest.get("device", ""))),
        "structure run": text.cell(str(training.get("structure_run", ""))),
        "update of": text.cell(run.card.parent),
    }


frame.several_runs(pages.COMPARE, render)
