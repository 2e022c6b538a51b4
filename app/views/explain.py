"""Explain: how a pair's score is made up, and how it compares with other candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from app import cache, charts, components, evidence_figures, frame, pages, side_by_side, state, text
from app.cache import OpenRun
from app.column_widths import with_room
from app.glossary import PROBABILITY_FEATURES
from app.glossary import explain as term
from app.palette import PLAIN_MARKS
from app.state import ExplainAddress
from engine.data.knowledge_graph import SIDES, Side
from engine.data.labels import local_name
from engine.errors import EngineError, EntityError, EvidenceError
from engine.explanation import (
    Conflict,
    Experiment,
    Explanation,
    Intervention,
    Item,
    NeighbourProduct,
    PairValue,
    compare_with,
    conflict,
    context,
    explain,
    faithfulness,
    flipping_set,
    items_of,
    probability_parts,
    removal_sentence,
    triples_of,
)
from engine.explanation.intervention import Evidence
from engine.explanation.report import rounds_words, signed
from engine.explanation.rivals import runner_up
from engine.explanation.summary import capital, score_groups, summary_lines
from engine.explore.neighbourhood import facing
from engine.runs.entities import Entity, other

T = TypeVar("T")
Removable = Item | PairValue

DRAWN = 12  # pairs of neighbours in a figure
LISTED = 40
OFFERED = 60  # neighbours that can be removed
STARTS = 6
LIST_HEIGHT = 330  # pixels


def render(run: OpenRun, address: ExplainAddress) -> None:
    """The page."""
    _search(address)
    entities = components.asked_pair(run.view, address.source, address.target, address.pool)
    if entities is None:
        _starts(run, address)
        return
    source, target = entities
    address = replace(address, pool=components.pool_choice(run.view, entities, address.pool))
    with st.spinner("Explaining the score…"):
        pair = source.index, target.index
        found = _kept(run, "explanation", *pair, address, lambda: explain(run.explainer, *pair, address.pool, LISTED))
        experiment = _kept(run, "experiment", *pair, address, lambda: Experiment(run.explainer, *pair, address.pool))
        items = _kept(run, f"evidence {address.side}", *pair, address, lambda: items_of(experiment, address.side))
        items = _in_the_order_of(items, found.neighbours.supporting[:DRAWN])
    components.pair_header(run.view, found.pair, address.runs, address.side)
    faced = facing(run.adjacency, *pair, LISTED)
    components.labelled_lines(summary_lines(found, faced, runner_up(run.explainer, *pair, address.pool)))
    for note in found.notes:
        st.caption(f":material/info: {text.plain(note, 400)}")
    _probability(run, source, target, address)
    left, right = st.columns([2, 3], gap="large")
    with left:
        _parts(found, address)
    with right:
        _supporting(found)
    _opposing(found)
    _compared(run, found)
    _removal(run, address, experiment, [*found.values, *items])
    _rival(run, address, experiment, source, target)
    claims, elsewhere = st.columns(2, gap="large")
    with claims:
        _conflicts(run, address, source, target)
    with elsewhere:
        _elsewhere(run, address, source, target)


# Which pair


def _search(address: ExplainAddress) -> None:
    """Both entities, by label, id or URI; the second may stay empty."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        for side in SIDES:
            components.search_box(
                f"{PLAIN_MARKS[side]} Entity of the {side}",
                address.source if side == "source" else address.target,
                placeholder="label, id or URI; empty: the best match",
                name=side,
                clears=("against", "without"),
            )


def _starts(run: OpenRun, address: ExplainAddress) -> None:
    """Without a pair: some to begin with."""
    components.empty_state("Which pair?", "Name an entity above, open a pair from the Pairs or the Entity page, or begin with one of these.")
    best = run.view.best["source"]
    usual = [(run.view.entity("source", index), run.view.entity("target", best[index])) for index in list(best)[:STARTS]]
    pairs = [*_with_their_matches(run, address), *usual]
    for source, target in list(dict.fromkeys(pairs))[:STARTS]:
        ends = replace(address, source=source.uri, target=target.uri, against=None, without=())
        pages.link(pages.EXPLAIN, ends, components.pair_label(source, target))


def _with_their_matches(run: OpenRun, address: ExplainAddress) -> Iterator[tuple[Entity, Entity]]:
    """The entities that the address names, which make no pair with each other: each with its best match."""
    for words in (address.source, address.target):
        with suppress(EntityError):
            entity = run.view.resolve(words or "")
            if (match := components.best_match(run.view, entity, address.pool)) is not None:
                yield (entity, match) if entity.side == "source" else (match, entity)


def _kept(run: OpenRun, what: str, source: int, target: int, address: ExplainAddress, compute: Callable[[], T]) -> T:
    """What is computed of a pair, once for all sessions."""
    return cache.kept([run], (what, str(source), str(target), address.pool), compute)


def _probability(run: OpenRun, source: Entity, target: Entity, address: ExplainAddress) -> None:
    """What raised and lowered the calibrated probability, where the run has stored it."""
    try:
        pair = source.index, target.index
        found = _kept(run, "probability", *pair, address, lambda: probability_parts(run.view, run.json("calibration"), *pair))
    except EngineError as error:
        st.caption(f":material/info: {text.plain(str(error), 400)}")
        return
    if found is None:
        return
    with st.expander(f"What the probability of {found.probability:.0%} is made of"):
        st.caption(
            f"A prediction that is average in everything has {found.average:.0%}. Each line adds to the log odds of that: above 0 it raises the "
            "probability, below 0 it lowers it. Scores, ranks and margins are those among all entities without a seed link. "
            "Of ranks, degrees and counts the average is the geometric mean."
        )
        rows = [
            {"what": PROBABILITY_FEATURES[part.feature], "here": part.value, "on average": part.usual, "log odds": part.log_odds}
            for part in found.parts
        ]
        numbers = {name: st.column_config.NumberColumn(format="%.4g") for name in ("here", "on average")}
        odds = st.column_config.NumberColumn(format="%+.2f", help=term("calibrated probability"))
        components.table(pd.DataFrame(rows), name="probability-parts", columns={**numbers, "log odds": odds})


# What adds up


@st.fragment
def _parts(found: Explanation, page: ExplainAddress) -> None:
    """The score as a few bars, or all of its parts."""
    st.subheader("Score breakdown", anchor=False, help=term("CSLS", "channel", "layer", "proxy", "hubness"))
    key = state.widget_key(state.EXPLAIN_BUTTON, "parts", page.runs[0], page.source, page.target)
    detailed = st.toggle("By channel and hop", key=key, help="Each group taken apart: the entity and the relation channel, its input and each hop.")
    groups = score_groups(found)
    bars = evidence_figures.part_bars(found.decomposition.parts) if detailed else [(capital(group.name), group.value) for group in groups]
    first, worst = max(bars, key=lambda bar: bar[1]), min(bars, key=lambda bar: bar[1])
    caption = f"Largest contribution: {first[0]} ({signed(first[1])})."
    if worst[1] < 0:
        caption += f" {worst[0]} lowers the score by {-worst[1]:.3f}."
    components.figure(
        evidence_figures.waterfall(bars, found.pair.csls),
        name="explanation-parts",
        caption=caption,
        data=evidence_figures.part_table(found.decomposition.parts),
        height=evidence_figures.waterfall_height(len(bars) + 1),
    )


def _supporting(found: Explanation) -> None:
    pairs, neighbours = found.neighbours.supporting, found.neighbours
    st.subheader("Supporting evidence", anchor=False)
    if not pairs:
        st.markdown("No pair of neighbours supports the match.")
        return
    drawn = pairs[:DRAWN]
    known = sum(pair.value for pair in drawn if pair.aligned != "elsewhere")
    caption = (
        f"Supporting pairs of neighbours contribute **{signed(neighbours.positive)}**. The chart shows the {len(drawn)} strongest. "
        f"Of these, aligned pairs and the two entities themselves contribute {signed(known)}."
    )
    _pair_figure(pairs, "evidence-for", caption)


def _opposing(found: Explanation) -> None:
    pairs, neighbours = found.neighbours.opposing, found.neighbours
    st.subheader("Opposing evidence", anchor=False)
    if not pairs:
        st.markdown("No pair of neighbours opposes the match.")
        return
    total, drawn = signed(neighbours.negative), min(len(pairs), DRAWN)
    caption = f"Opposing pairs of neighbours contribute **{total}**. The chart shows the {drawn} strongest."
    with st.expander(f"Opposing pairs of neighbours: {total}", expanded=-neighbours.negative > neighbours.positive / 2):
        _pair_figure(pairs, "evidence-against", caption)


def _compared(run: OpenRun, found: Explanation) -> None:
    """The values of both entities next to each other; and what the shared ones add to the score, where the run compares values."""
    st.subheader("Values side by side", anchor=False)
    side_by_side.values(run, found.pair.source, found.pair.target)
    if found.pair.values is None:
        return
    st.markdown("**Shared values in the score**")
    if not found.values:
        st.markdown("The two share no value of the attributes that this run compares.")
        return
    total = sum(one.value for one in found.values)
    st.caption(f"They add {signed(total)} to the score: the more, the fewer entities have the value, and the more often the two attributes agree.")
    rows = {
        "source attribute": [text.cell(one.source_attribute) for one in found.values],
        "source value": [text.cell(one.source_text) for one in found.values],
        "target value": [text.cell(one.target_text) for one in found.values],
        "target attribute": [text.cell(one.target_attribute) for one in found.values],
        "entities": [f"{one.source_entities:,} and {one.target_entities:,}" for one in found.values],
        "value": [one.value for one in found.values],
    }
    help = "How many entities of each graph have the value."
    columns = {"value": st.column_config.NumberColumn(format="%+.3f"), "entities": st.column_config.TextColumn(help=help)}
    components.table(pd.DataFrame(rows), name="shared-values", columns=columns)


def _pair_figure(pairs: Sequence[NeighbourProduct], name: str, caption: str) -> None:
    figure, height = evidence_figures.facing_pairs(pairs[:DRAWN])
    components.figure(figure, name=name, caption=caption, data=pd.DataFrame([_pair_row(pair) for pair in pairs]), height=height)


def _pair_row(pair: NeighbourProduct) -> dict[str, object]:
    return {
        "source": pair.source.title,
        "source relation": charts.edge_words(pair.source_edges) or "itself",
        "target": pair.target.title,
        "target relation": charts.edge_words(pair.target_edges) or "itself",
        "value": pair.value,
        "aligned": pair.aligned,
    }


# What would be without it


@st.fragment
def _removal(run: OpenRun, page: ExplainAddress, experiment: Experiment, items: Sequence[Removable]) -> None:
    """Evidence to tick off, and the score without it. A fragment: only this part is recomputed."""
    st.subheader("What if evidence is removed?", anchor=False)
    if not items:
        st.markdown("Neither entity has a triple that could be removed, and they share no value.")
        return
    with components.errors_shown():
        asked = ExplainAddress.read().without
        offered = items[:OFFERED]
        gone = [_item(items, reference) for reference in asked]
        left, right = st.columns([3, 2], gap="large")
        with left:
            _evidence_table(page, offered, gone, asked)
            if len(items) > len(offered):
                st.caption(
                    f"{len(offered):,} of {len(items):,} are listed: those in the chart above, then those with the largest estimated loss of margin."
                )
        with right:
            _result(run, page, experiment, gone)


def _in_the_order_of(items: Sequence[Item], pairs: Sequence[NeighbourProduct]) -> list[Item]:
    """Evidence that can be removed, in the order of the figure of pairs: who is drawn there comes first here, then what costs the most."""
    drawn = {
        (side, one.index): place
        for place, pair in reversed(list(enumerate(pairs)))
        for side, one in zip(SIDES, (pair.source, pair.target), strict=True)
    }
    return sorted(items, key=lambda item: drawn.get((item.side, item.neighbour.index), len(pairs)))


def _reference(item: Removable) -> str:
    if isinstance(item, PairValue):
        return f"value:{item.source_attribute}={item.source_text}"
    return f"{item.side}:{item.neighbour.uri}"


def _evidence(items: Sequence[Removable]) -> frozenset[Evidence]:
    """The triples and values that are removed with some evidence."""
    values = (fact for item in items if isinstance(item, PairValue) for fact in item.facts)
    return frozenset(values) | triples_of([item for item in items if isinstance(item, Item)])


def _item(items: Sequence[Removable], reference: str) -> Removable:
    """
    Raises:
        EvidenceError: the address names a neighbour that neither entity has, or a value that they do not share.
    """
    for item in items:
        if _reference(item) == reference:
            return item
    raise EvidenceError(f"this link removes '{reference[:80]}', which is neither a neighbour of this pair nor a value that it shares.")


def _evidence_table(page: ExplainAddress, offered: Sequence[Removable], gone: Sequence[Removable], asked: Sequence[str]) -> None:
    st.caption(
        "Select neighbours, or shared values, to remove. Their triples, or the values, are dropped and the score is recomputed with frozen weights."
    )
    key = state.widget_key(state.EVIDENCE_TABLE, page.runs[0], page.source, page.target, page.pool, tuple(asked))

    def follow() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        beyond = [_reference(item) for item in gone if item not in offered]
        state.set_parameter("without", [*(_reference(offered[row]) for row in rows), *beyond] or None)

    data = pd.DataFrame([_item_row(item) for item in offered])
    chosen: Any = {"selection": {"rows": [row for row, item in enumerate(offered) if item in gone]}}
    st.dataframe(
        data,
        key=key,
        hide_index=True,
        height=LIST_HEIGHT if len(data) > 8 else "auto",
        on_select=follow,
        selection_mode="multi-row",
        selection_default=chosen,
        column_config=with_room(
            data,
            {
                "contribution": st.column_config.NumberColumn(
                    format="%+.3f", help="Sum of all its pairs with the other entity's neighbours, as a part of the score."
                ),
                "estimated loss": st.column_config.NumberColumn(
                    format="%+.3f", help="Estimate of how much of the margin over the runner-up its removal costs."
                ),
                "attention": st.column_config.NumberColumn(format="percent", help=term("attention")),
            },
        ),
        alt="Table: neighbours that can be removed",
    )


def _item_row(item: Removable) -> dict[str, object]:
    if isinstance(item, PairValue):
        words = f"{local_name(item.source_attribute)}: {item.source_text}"
        return {"neighbour": text.cell(words, 80), "triples": 0, "contribution": item.value, "estimated loss": item.value, "attention": None}
    return {
        "neighbour": f"{PLAIN_MARKS[item.side]} {text.cell(item.neighbour.title, 80)}",
        "triples": len(item.triples),
        "contribution": item.value,
        "estimated loss": item.cost,
        "attention": item.attention,
    }


def _result(run: OpenRun, page: ExplainAddress, experiment: Experiment, gone: Sequence[Removable]) -> None:
    found = experiment.without(_evidence(gone))
    _standings(found)
    if gone:
        st.markdown(text.plain(removal_sentence(found, page.side), 600))
    message = state.widget_key(state.EXPLAIN_BUTTON, "notice", *page.runs, page.source, page.target, page.pool, page.side)

    def flip() -> None:
        flipping = flipping_set(experiment, page.side)
        if flipping.flips:
            state.set_parameter("without", [_reference(item) for item in flipping.items])
        else:
            st.session_state[message] = (
                f"None of the sets of at most {flipping.limit} neighbours that were tried changes the match: it rests on more."
            )

    with st.container(horizontal=True):
        if experiment.before.rank(page.side) == 1:
            help = (
                f"Searches for neighbours whose removal gives the {page.side} another best match. The set is minimal: putting any of it back undoes "
                "the change. It is not always the smallest set, because not all sets are tried."
            )
            st.button("Find a minimal flipping set", icon=":material/change_circle:", key=f"{message}-flip", on_click=flip, help=help)
        if gone:
            put_back = partial(state.set_parameter, "without", None)
            st.button("Put all back", icon=":material/undo:", type="tertiary", key=f"{message}-back", on_click=put_back)
    if words := st.session_state.pop(message, None):
        st.info(words, icon=":material/shield:")
    _trust(run, page, experiment)


def _standings(found: Intervention) -> None:
    before, after = found.before, found.after
    changed = bool(found.removed or found.values)
    with st.container(horizontal=True, gap="large"):
        for name, old, new in (("CSLS", before.csls, after.csls), ("Cosine", before.cosine, after.cosine)):
            st.metric(name, text.score(new), delta=f"{new - old:+.3f}" if changed else None)
        for side in SIDES:
            moved = after.rank(side) - before.rank(side)
            delta = f"{moved:+,}" if changed and moved else None
            st.metric(f"Rank from {PLAIN_MARKS[side]}", f"{after.rank(side):,}", delta=delta, delta_color="inverse")
    if changed and any(found.flips(side) for side in SIDES):
        st.badge("best match changes", icon=":material/swap_horiz:", color="orange")


def _trust(run: OpenRun, page: ExplainAddress, experiment: Experiment) -> None:
    """How well the evidence accounts for the match: computed on request, then kept."""
    with st.expander("Faithfulness check"):
        pair = experiment.source, experiment.target
        key = state.widget_key(state.EXPLAIN_BUTTON, "faithfulness", *pair, page.pool, page.side)
        if not st.toggle("Compare with removing neighbours at random", key=key):
            return
        with st.spinner("Removing neighbours…"):
            found = _kept(run, f"faithfulness {page.side}", *pair, page, lambda: faithfulness(experiment, page.side))
        by_chance = text.percent(found.random_necessity.share), text.percent(found.random_sufficiency.share)
        st.markdown(
            f"**Necessity.** Removing the {text.count(len(found.needed), 'neighbour')} with the largest estimated loss, of {found.total:,}, "
            f"**{'changes' if found.necessity.share else 'does not change'}** the best match of the {page.side}. "
            f"The same number at random changes it in {by_chance[0]} of {found.draws} draws.  \n"
            f"**Sufficiency.** With the strongest pairs alone, the same number, it **{'stays' if found.sufficiency.share else 'changes'}**. "
            f"With neighbours at random it stays in {by_chance[1]} of the draws."
        )
        if found.agreement.warning:
            st.warning(text.plain(found.agreement.warning, 400), icon=":material/warning:")


# Why not that one


def _runner_ups(experiment: Experiment, source: Entity, target: Entity) -> dict[Side, str]:
    """For each of the two entities the best of its other candidates, in words."""
    names: dict[Side, str] = {}
    for entity in (source, target):
        rival = experiment.before.rival(entity.side)
        best = components.entity_name(rival.entity) if rival else "no other candidate"
        names[entity.side] = f"of {components.entity_name(entity)}: {best}"
    return names


def _rival(run: OpenRun, address: ExplainAddress, experiment: Experiment, source: Entity, target: Entity) -> None:
    st.subheader("Compare with another candidate", anchor=False)
    components.choice(
        "Runner-up",
        _runner_ups(experiment, source, target),
        name="side",
        value=address.side,
        default="source",
        clears=("against",),
        help="The best other candidate of either entity. The choice also decides whose best match is tracked when evidence is removed.",
    )
    components.search_box(
        "Another entity of either graph; empty: the runner-up", address.against, placeholder="label, id or URI", name="against", width=420
    )
    try:
        pair = source.index, target.index
        asked = f"against {address.side} {address.against or ''}"
        found = _kept(run, asked, *pair, address, lambda: compare_with(run.explainer, *pair, address.against, address.pool, side=address.side))
    except EngineError as error:
        components.show_error(error)
        return
    if found is None:
        st.markdown("There is no other candidate to compare with.")
        return
    rival = found.rival.target if found.shared == "source" else found.rival.source
    parts = [part for part in found.differences if abs(part.value) >= 0.0005]
    left, right = st.columns([3, 2], gap="large")
    with left:
        components.figure(
            evidence_figures.difference_waterfall(parts, found.total),
            name="explanation-rival",
            caption=f"CSLS {found.pair.csls:.3f} against {found.rival.csls:.3f} for {components.entity_label(rival)}: "
            f"margin **{signed(found.total)}**. "
            "Bars: the parts of this pair minus those of the other.",
            data=evidence_figures.part_table(found.differences),
            height=evidence_figures.waterfall_height(len(parts) + 1),
        )
    with right:
        st.markdown("Contributions of the shared entity's neighbours:")
        rows = [
            {"neighbour": text.cell(one.entity.title, 80), "this pair": one.pair, "rival": one.rival, "difference": one.value}
            for one in found.neighbours
        ]
        number = st.column_config.NumberColumn(format="%+.3f")
        components.table(pd.DataFrame(rows), name="explanation-rival-neighbours", columns=dict.fromkeys(("this pair", "rival", "difference"), number))
        ends = (source, rival) if found.shared == "source" else (rival, target)
        there = replace(address, source=ends[0].uri, target=ends[1].uri, against=None, without=())
        pages.link(pages.EXPLAIN, there, "Explain the other pair", icon=":material/arrow_forward:")


def _conflicts(run: OpenRun, address: ExplainAddress, source: Entity, target: Entity) -> None:
    """Whose best match either entity is, the far end of where one comes from first."""
    st.subheader("Competing entities", anchor=False, help=term("conflict"))
    ends = (target, source) if address.side == "source" else (source, target)
    for entity in ends:
        found = cache.kept([run], ("conflict", entity.side, str(entity.index)), partial(conflict, run.explainer, entity.index, side=entity.side))
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
    for claim in found.claims[:STARTS]:
        decided = "" if claim.decided is None or claim.decided == found.entity else f" :gray[assigned to {text.plain(claim.decided.title, 40)}]"
        ends = {claim.entity.side: claim.entity.uri, found.entity.side: found.entity.uri}
        there = replace(address, source=ends["source"], target=ends["target"], pool="all", against=None, without=())
        pages.link(pages.EXPLAIN, there, f"{components.entity_label(claim.entity)} :gray[{claim.csls:.3f}]{decided}")


def _elsewhere(run: OpenRun, address: ExplainAddress, source: Entity, target: Entity) -> None:
    """The rounds that trained on the pair, and the same pair in the other runs of the same data."""
    st.subheader("Same pair in other runs", anchor=False)
    cards = [card for card in cache.list_runs(cache.models_folder()).of_same_data(run.card) if card.run != run.card.run]
    opened = []
    for card in cards[:STARTS]:
        try:
            opened.append((card.run, cache.open_listed(card.run).view))
        except EngineError as error:
            components.show_error(error)
    found = context(run.explainer, source.index, target.index, opened, address.pool)
    if found.rounds:
        st.markdown(rounds_words(found.rounds, found.selection))
    if not found.runs:
        st.markdown("There is no other run of the same data.")
    if found.runs:
        st.caption(
            f"CSLS and ranks among the {components.POOL_WORDS[address.pool]} of each run, as above."
            if address.pool == "test"
            else "Among all entities, as above."
        )
    for seen in found.runs:
        if seen.pair is None:
            st.caption(f"{text.plain(seen.run)}: {text.plain(text.without_places(seen.reason))}")
            continue
        words = f"**{text.plain(seen.variant, 20)}**, random seed {seen.seed}: CSLS {seen.pair.csls:.3f}, ranks {seen.pair.rank_from_source:,} and "
        runs = (seen.run, *(run for run in address.runs if run != seen.run))[: state.MOST_RUNS]
        pages.link(pages.EXPLAIN, replace(address, runs=runs, without=(), against=None), f"{words}{seen.pair.rank_from_target:,}")


frame.one_run(pages.EXPLAIN, render)
