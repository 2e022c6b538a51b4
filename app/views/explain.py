"""Explain: why did this pair match, and why not another one?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from app import cache, charts, components, evidence_figures, frame, pages, state, text
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
    sentence,
    triples_of,
)
from engine.explanation.intervention import Evidence
from engine.explanation.report import rounds_words, signed
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
    with st.spinner("Taking the score apart…"):
        pair = source.index, target.index
        found = _kept(run, "explanation", *pair, address, lambda: explain(run.explainer, *pair, address.pool, LISTED))
        experiment = _kept(run, "experiment", *pair, address, lambda: Experiment(run.explainer, *pair, address.pool))
        items = _kept(run, f"evidence {address.side}", *pair, address, lambda: items_of(experiment, address.side))
        items = _in_the_order_of(items, found.neighbours.supporting[:DRAWN])
    components.pair_header(run.view, found.pair, address.runs, address.side)
    st.markdown(text.plain(sentence(found), 1500))
    for note in found.notes:
        st.caption(f":material/info: {text.plain(note, 400)}")
    _probability(run, source, target, address)
    left, right = st.columns([2, 3], gap="large")
    with left:
        _parts(found)
    with right:
        _supporting(found)
    _opposing(found)
    _values(found)
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


def _parts(found: Explanation) -> None:
    parts = found.decomposition.parts
    st.subheader("What adds up to the score", anchor=False, help=term("CSLS", "channel", "layer", "proxy", "hubness"))
    first = max(parts, key=lambda part: part.value)
    worst = min(parts, key=lambda part: part.value)
    caption = (
        f"The largest part is {first.name} ({signed(first.value)}), the smallest {worst.name} ({signed(worst.value)}); all together "
        f"{found.pair.csls:.3f}."
    )
    components.figure(
        evidence_figures.waterfall(found.decomposition),
        name="explanation-parts",
        caption=caption,
        data=evidence_figures.part_table(parts),
        height=evidence_figures.waterfall_height(len(parts) + 1),
    )


def _supporting(found: Explanation) -> None:
    pairs, neighbours = found.neighbours.supporting, found.neighbours
    st.subheader("Who speaks for it", anchor=False)
    if not pairs:
        st.markdown("No pair of neighbours speaks for the match.")
        return
    drawn = pairs[:DRAWN]
    known = sum(pair.value for pair in drawn if pair.aligned != "elsewhere")
    caption = (
        f"Pairs of neighbours that speak for it add up to **{signed(neighbours.positive)}**; the {len(drawn)} strongest are drawn. "
        f"Of what is drawn, {signed(known)} comes from pairs that are aligned with each other, or the two entities themselves."
    )
    _pair_figure(pairs, "evidence-for", caption)


def _opposing(found: Explanation) -> None:
    pairs, neighbours = found.neighbours.opposing, found.neighbours
    st.subheader("What speaks against it", anchor=False)
    if not pairs:
        st.markdown("No pair of neighbours speaks against the match.")
        return
    total, drawn = signed(neighbours.negative), min(len(pairs), DRAWN)
    caption = f"Pairs of neighbours that are unlike each other add up to **{total}**; the {drawn} strongest are drawn."
    with st.expander(f"Counter-evidence: {total}", expanded=-neighbours.negative > neighbours.positive / 2):
        _pair_figure(pairs, "evidence-against", caption)


def _values(found: Explanation) -> None:
    """The values that both entities have, where the run compares values."""
    if found.pair.values is None:
        return
    st.subheader("Values that both have", anchor=False)
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
    st.subheader("What would be without it", anchor=False)
    if not items:
        st.markdown("Neither entity has a triple that could be taken away, and they share no value.")
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
                    f"{text.count(len(offered), 'neighbour')} of {len(items):,}: those drawn above, then those whose removal should cost the most."
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
    raise EvidenceError(f"the address takes away '{reference[:80]}', which is neither a neighbour of this pair nor a value that it shares.")


def _evidence_table(page: ExplainAddress, offered: Sequence[Removable], gone: Sequence[Removable], asked: Sequence[str]) -> None:
    st.caption(
        "Tick off neighbours of either entity, or values that both have: all triples between the two, or the value, are taken out, and the score is "
        "computed again with frozen weights."
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
                "carries": st.column_config.NumberColumn(
                    format="%+.3f", help="What all its pairs with the other entity's neighbours add to the score."
                ),
                "cost": st.column_config.NumberColumn(
                    format="%+.3f", help="What its removal should cost of the margin over the runner-up: an estimate."
                ),
                "attention": st.column_config.NumberColumn(format="percent", help=term("attention")),
            },
        ),
        alt="Table: neighbours that can be removed",
    )


def _item_row(item: Removable) -> dict[str, object]:
    if isinstance(item, PairValue):
        words = f"{local_name(item.source_attribute)}: {item.source_text}"
        return {"neighbour": text.cell(words, 80), "triples": 0, "carries": item.value, "cost": item.value, "attention": None}
    return {
        "neighbour": f"{PLAIN_MARKS[item.side]} {text.cell(item.neighbour.title, 80)}",
        "triples": len(item.triples),
        "carries": item.value,
        "cost": item.cost,
        "attention": item.attention,
    }


def _result(run: OpenRun, page: ExplainAddress, experiment: Experiment, gone: Sequence[Removable]) -> None:
    found = experiment.without(_evidence(gone))
    _standings(found)
    if gone:
        st.markdown(text.plain(removal_sentence(found, page.side), 600))
    message = state.widget_key(state.EXPLAIN_BUTTON, "told", *page.runs, page.source, page.target, page.pool, page.side)

    def flip() -> None:
        flipping = flipping_set(experiment, page.side)
        if flipping.flips:
            state.set_parameter("without", [_reference(item) for item in flipping.items])
        else:
            st.session_state[message] = f"None of the sets of at most {flipping.limit} neighbours that were tried flips the match: it rests on more."

    with st.container(horizontal=True):
        if experiment.before.rank(page.side) == 1:
            help = (
                f"Looks for neighbours whose removal makes the {page.side} prefer another candidate. The set is minimal: none of it can be put back "
                "without undoing the flip. It is not always the smallest, because not all sets are tried."
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
        st.badge("the decision flips", icon=":material/swap_horiz:", color="orange")


def _trust(run: OpenRun, page: ExplainAddress, experiment: Experiment) -> None:
    """How well the evidence accounts for the match: computed on request, then kept."""
    with st.expander("How far can this evidence be trusted?"):
        pair = experiment.source, experiment.target
        key = state.widget_key(state.EXPLAIN_BUTTON, "faithfulness", *pair, page.pool, page.side)
        if not st.toggle("Remove neighbours one by one and at random, and compare", key=key):
            return
        with st.spinner("Removing neighbours…"):
            found = _kept(run, f"faithfulness {page.side}", *pair, page, lambda: faithfulness(experiment, page.side))
        by_chance = text.percent(found.random_necessity.share), text.percent(found.random_sufficiency.share)
        st.markdown(
            f"Without the {text.count(len(found.needed), 'neighbour')} that should count most, of {found.total:,}, the {page.side}'s decision "
            f"**{'flips' if found.necessity.share else 'stays'}**; without as many at random it flips in {by_chance[0]} of {found.draws} draws. "
            f"With the strongest pairs alone, as many, it **{'stays' if found.sufficiency.share else 'flips'}**; with as many at random it stays in "
            f"{by_chance[1]}."
        )
        if found.agreement.warning:
            st.warning(text.plain(found.agreement.warning, 400), icon=":material/warning:")


# Why not that one


def _runner_ups(experiment: Experiment, source: Entity, target: Entity) -> dict[Side, str]:
    """For each of the two entities the best of its other candidates, in words."""
    names: dict[Side, str] = {}
    for entity in (source, target):
        rival = experiment.before.rival(entity.side)
        runner_up = components.entity_name(rival.entity) if rival else "no other candidate"
        names[entity.side] = f"of {components.entity_name(entity)}: {runner_up}"
    return names


def _rival(run: OpenRun, address: ExplainAddress, experiment: Experiment, source: Entity, target: Entity) -> None:
    st.subheader("Why not that one?", anchor=False)
    components.choice(
        "Runner-up",
        _runner_ups(experiment, source, target),
        name="side",
        value=address.side,
        default="source",
        clears=("against",),
        help="The best of the other candidates of either entity. The choice also says whose decision may flip when evidence is removed.",
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
    ahead = "ahead of" if found.total > 0 else "behind" if found.total < 0 else "level with"
    parts = [part for part in found.differences if abs(part.value) >= 0.0005]
    left, right = st.columns([3, 2], gap="large")
    with left:
        components.figure(
            evidence_figures.difference_waterfall(parts, found.total),
            name="explanation-rival",
            caption=f"With {found.pair.csls:.3f} the pair is **{signed(found.total)}** {ahead} {components.entity_label(rival)}, which scores "
            f"{found.rival.csls:.3f}: part by part, this pair less the other.",
            data=evidence_figures.part_table(found.differences),
            height=evidence_figures.waterfall_height(len(parts) + 1),
        )
    with right:
        st.markdown("Neighbours of the entity that both pairs share, and what they carry for each:")
        rows = [
            {"neighbour": text.cell(one.entity.title, 80), "here": one.pair, "there": one.rival, "difference": one.value} for one in found.neighbours
        ]
        number = st.column_config.NumberColumn(format="%+.3f")
        components.table(pd.DataFrame(rows), name="explanation-rival-neighbours", columns=dict.fromkeys(("here", "there", "difference"), number))
        ends = (source, rival) if found.shared == "source" else (rival, target)
        there = replace(address, source=ends[0].uri, target=ends[1].uri, against=None, without=())
        pages.link(pages.EXPLAIN, there, "Explain that pair", icon=":material/arrow_forward:")


def _conflicts(run: OpenRun, address: ExplainAddress, source: Entity, target: Entity) -> None:
    """Whose best match either entity is, the far end of where one comes from first."""
    st.subheader("Who else claims them", anchor=False, help=term("conflict"))
    ends = (target, source) if address.side == "source" else (source, target)
    for entity in ends:
        found = cache.kept([run], ("conflict", entity.side, str(entity.index)), partial(conflict, run.explainer, entity.index, side=entity.side))
        _claims(run, address, found)
    other_pool = " The CSLS values are those among all entities, not those of the test entities above." if address.pool == "test" else ""
    st.caption(f"One to one by the decoder '{found.decoder}' over the {found.listed} stored matches of each entity.{other_pool}")


def _claims(run: OpenRun, address: ExplainAddress, found: Conflict) -> None:
    graph = components.graph_name(run.view, other(found.entity.side))
    label = components.entity_label(found.entity)
    if len(found.claims) < 2:
        how_many = text.count(len(found.claims), "entity", "entities")
        st.markdown(f"{how_many} of {graph} {'has' if found.claims else 'have'} {label} as best match among all entities: no conflict.")
        return
    winner = components.entity_label(found.winner) if found.winner else "nobody"
    st.markdown(f"**{len(found.claims):,}** entities of {graph} have {label} as their best match among all entities. One to one, {winner} gets it.")
    for claim in found.claims[:STARTS]:
        decided = "" if claim.decided is None or claim.decided == found.entity else f" :gray[gets {text.plain(claim.decided.title, 40)} one to one]"
        ends = {claim.entity.side: claim.entity.uri, found.entity.side: found.entity.uri}
        there = replace(address, source=ends["source"], target=ends["target"], pool="all", against=None, without=())
        pages.link(pages.EXPLAIN, there, f"{components.entity_label(claim.entity)} :gray[{claim.csls:.3f}]{decided}")


def _elsewhere(run: OpenRun, address: ExplainAddress, source: Entity, target: Entity) -> None:
    """The rounds that trained on the pair, and the same pair in the other runs of the same data."""
    st.subheader("In rounds and other runs", anchor=False)
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
        words = f"**{text.plain(seen.variant, 20)}** seed {seen.seed}: CSLS {seen.pair.csls:.3f}, ranks {seen.pair.rank_from_source:,} and "
        runs = (seen.run, *(run for run in address.runs if run != seen.run))[: state.MOST_RUNS]
        pages.link(pages.EXPLAIN, replace(address, runs=runs, without=(), against=None), f"{words}{seen.pair.rank_from_target:,}")


frame.one_run(pages.EXPLAIN, render)
