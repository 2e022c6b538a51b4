"""What if: evidence to select, the score before and after its removal, a minimal set that changes the match, and a check of all this."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import pandas as pd
import streamlit as st

from app import cache, components, state, text
from app.cache import OpenRun
from app.column_widths import with_room
from app.palette import PLAIN_MARKS
from app.state import ExplainAddress
from engine.data.knowledge_graph import SIDES, Side
from engine.data.labels import identifier_tail, local_name
from engine.errors import EvidenceError
from engine.explanation import (
    Experiment,
    Explanation,
    Intervention,
    Item,
    NeighbourProduct,
    PairValue,
    Triple,
    faithfulness,
    flipping_set,
    items_of,
    removal_sentence,
    triples_of,
)
from engine.explanation.intervention import Evidence, PairRank
from engine.runs.entities import Entity

T = TypeVar("T")

OFFERED: Final = 60  # neighbours that can be removed
FIRST: Final = 12  # of the strongest pairs, whose neighbours come first
LIST_HEIGHT: Final = 420  # pixels


@dataclass(frozen=True)
class OneTriple:
    """One of several triples between an entity and a neighbour."""

    item: Item
    triple: Triple
    relation: str


Removable = Item | OneTriple | PairValue


@dataclass(frozen=True)
class Offer:
    """Something that can be removed.

    Attributes:
        relation: of triples, with an arrow as seen from the entity of the pair.
    """

    evidence: Removable
    relation: str = ""

    @property
    def reference(self) -> str:
        """What names it in the address."""
        one = self.evidence
        if isinstance(one, PairValue):
            return f"value:{one.source_attribute}={one.source_text}"
        item = one.item if isinstance(one, OneTriple) else one
        neighbour = f"{item.side}:{item.neighbour.uri}"
        return f"{neighbour} {one.relation}" if isinstance(one, OneTriple) else neighbour


@st.fragment
def what_if(run: OpenRun, page: ExplainAddress, found: Explanation) -> None:
    """The tab What if. A fragment: only this part is recomputed, at once after each click."""
    pair = found.pair.source.index, found.pair.target.index
    with components.errors_shown():
        experiment = _kept(run, "experiment", pair, page, lambda: Experiment(run.explainer, *pair, page.pool))
        items = _kept(run, f"evidence {page.side}", pair, page, lambda: items_of(experiment, page.side))
        items = in_the_order_of(items, found.neighbours.supporting[:FIRST])
        offers = [*(Offer(value) for value in found.values), *offers_of(run, items)]
        if not offers:
            st.markdown("Neither entity has a triple that could be removed, and they share no value.")
            return
        asked = ExplainAddress.read().without
        gone = [asked_offer(offers, reference) for reference in asked]
        left, right = st.columns([3, 2], gap="large")
        with left:
            _table(page, offers[: OFFERED + len(found.values)], gone, asked)
        with right:
            _result(run, page, experiment, gone, found)


def offers_of(run: OpenRun, items: Sequence[Item]) -> Iterator[Offer]:
    """A row for each neighbour; where several triples connect it, also one for each of them."""
    for place, item in enumerate(items):
        if place >= OFFERED:  # neither shown nor named: relations of thousands of neighbours are not looked up
            yield Offer(item)
            continue
        named = {triple: run.explainer.named([triple])[0] for triple in item.triples}
        words = {triple: f"{'→' if one.tail.index == item.neighbour.index else '←'} {identifier_tail(one.relation)}" for triple, one in named.items()}
        yield Offer(item, ", ".join(dict.fromkeys(words.values())))
        if len(words) > 1:
            yield from (Offer(OneTriple(item, triple, relation), relation) for triple, relation in words.items())


def in_the_order_of(items: Sequence[Item], pairs: Sequence[NeighbourProduct]) -> list[Item]:
    """Evidence in the order of the table of pairs: neighbours of the strongest pairs first, then those with the largest estimated loss."""
    listed = {
        (side, one.index): place
        for place, pair in reversed(list(enumerate(pairs)))
        for side, one in zip(SIDES, (pair.source, pair.target), strict=True)
    }
    return sorted(items, key=lambda item: listed.get((item.side, item.neighbour.index), len(pairs)))


def asked_offer(offers: Sequence[Offer], reference: str) -> Offer:
    """
    Raises:
        EvidenceError: the address names a neighbour that neither entity has, or a value that they do not share.
    """
    for offer in offers:
        if offer.reference == reference:
            return offer
    raise EvidenceError(f"This link removes '{reference[:80]}', which is neither a neighbour of this pair nor a value that it shares.")


def evidence_of(gone: Sequence[Offer]) -> frozenset[Evidence]:
    """The triples and values that are removed together."""
    chosen = [offer.evidence for offer in gone]
    values = (fact for one in chosen if isinstance(one, PairValue) for fact in one.facts)
    single = frozenset(one.triple for one in chosen if isinstance(one, OneTriple))
    return frozenset(values) | single | triples_of([one for one in chosen if isinstance(one, Item)])


def _kept(run: OpenRun, what: str, pair: tuple[int, int], page: ExplainAddress, compute: Callable[[], T]) -> T:
    return cache.kept([run], (what, *map(str, pair), page.pool), compute)


# What can be removed


def _table(page: ExplainAddress, offered: Sequence[Offer], gone: Sequence[Offer], asked: Sequence[str]) -> None:
    st.caption(
        "Select neighbours, triples or shared values to remove. The score is recomputed at once, with frozen weights. Selected rows are part of "
        "the address, so that a link shows the same experiment."
    )
    key = state.widget_key(state.EVIDENCE_TABLE, page.runs[0], page.source, page.target, page.pool, tuple(asked))

    def follow() -> None:
        rows = st.session_state[key]["selection"]["rows"]
        beyond = [offer.reference for offer in gone if offer not in offered]
        state.set_parameter("without", [*(offered[row].reference for row in rows), *beyond] or None)

    data = pd.DataFrame([_row(offer) for offer in offered])
    chosen: Any = {"selection": {"rows": [row for row, offer in enumerate(offered) if offer in gone]}}
    contribution = "Sum of all its pairs with the other entity's neighbours, as a part of the score."
    loss = "Estimate of how much of the margin over the runner-up its removal costs."
    columns = {
        "contribution": st.column_config.NumberColumn(format="%+.3f", width=92, help=contribution),
        "estimated loss": st.column_config.NumberColumn(format="%+.3f", width=108, help=loss),
    }
    st.dataframe(
        data,
        key=key,
        hide_index=True,
        height=LIST_HEIGHT if len(data) > 10 else "auto",
        on_select=follow,
        selection_mode="multi-row",
        selection_default=chosen,
        placeholder="–",
        column_config=with_room(data, columns),
        alt="Table: evidence that can be removed",
    )


def _row(offer: Offer) -> dict[str, object]:
    one = offer.evidence
    if isinstance(one, PairValue):
        words = f"{local_name(one.source_attribute)}: {one.source_text}"
        return {"evidence": text.cell(words, 80), "relation": "value", "contribution": one.value, "estimated loss": one.value}
    relation = text.cell(offer.relation, 60)
    if isinstance(one, OneTriple):
        words = f"{PLAIN_MARKS[one.item.side]} {text.cell(one.item.neighbour.title, 60)}, this triple only"
        return {"evidence": words, "relation": relation, "contribution": None, "estimated loss": None}
    words = f"{PLAIN_MARKS[one.side]} {text.cell(one.neighbour.title, 80)}"
    return {"evidence": words, "relation": relation, "contribution": one.value, "estimated loss": one.cost}


# What becomes of the pair


def _result(run: OpenRun, page: ExplainAddress, experiment: Experiment, gone: Sequence[Offer], found: Explanation) -> None:
    result = experiment.without(evidence_of(gone))
    ends = {"source": found.pair.source, "target": found.pair.target}
    _decision_choice(page, ends["source"], ends["target"])
    before_and_after(result, page.side, ends)
    if gone:
        st.markdown(text.plain(text.with_minus(removal_sentence(result, page.side)), 600))
    message = state.widget_key(state.EXPLAIN_BUTTON, "notice", *page.runs, page.source, page.target, page.pool, page.side)

    def flip() -> None:
        flipping = flipping_set(experiment, page.side)
        if flipping.flips:
            state.set_parameter("without", [Offer(item).reference for item in flipping.items])
        else:
            words = f"None of the sets of at most {flipping.limit} neighbours that were tried changes the match: it rests on more."
            st.session_state[message] = words

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


def _decision_choice(page: ExplainAddress, source: Entity, target: Entity) -> None:
    names: dict[Side, str] = {"source": components.entity_name(source), "target": components.entity_name(target)}
    help = "Whose best match is tracked: estimated losses, margin and flipping set are those of this entity."
    components.choice("Best match of", names, name="side", value=page.side, default="source", clears=("against",), help=help)


def before_and_after(found: Intervention, side: Side, ends: dict[str, Entity]) -> None:
    """Scores, margin and ranks in both states, as a table that is no grid: it can be read aloud and holds little."""
    changed = bool(found.removed or found.values)
    rows = [_measured(name, *values, changed) for name, values in _measures(found.before, found.after, side)]
    rows += [
        {
            "measure": f"rank from {PLAIN_MARKS[one]} {text.plain(ends[one].title, 30)}",
            "before": f"{found.before.rank(one):,}",
            "after": f"{found.after.rank(one):,}" if changed else "–",
            "change": _moved(found.before.rank(one), found.after.rank(one)) if changed else "–",
        }
        for one in SIDES
    ]
    st.table(pd.DataFrame(rows), border="horizontal", hide_index=True)
    if changed and any(found.flips(one) for one in SIDES):
        st.badge("best match changes", icon=":material/swap_horiz:", color="orange")


def _measures(before: PairRank, after: PairRank, side: Side) -> Iterator[tuple[str, tuple[float, float]]]:
    yield "CSLS", (before.csls, after.csls)
    yield "cosine", (before.cosine, after.cosine)
    if before.rival(side) is not None:
        yield "margin over the runner-up", (before.margin(side), after.margin(side))


def _measured(name: str, old: float, new: float, changed: bool) -> dict[str, str]:
    return {
        "measure": name,
        "before": text.score(old),
        "after": text.score(new) if changed else "–",
        "change": text.signed(new - old) if changed else "–",
    }


def _moved(old: int, new: int) -> str:
    return f"{new - old:+,}".replace("-", "−") if new != old else "0"


def _trust(run: OpenRun, page: ExplainAddress, experiment: Experiment) -> None:
    """How well the evidence accounts for the match: computed on request, then kept."""
    with st.expander("Faithfulness check"):
        pair = experiment.source, experiment.target
        key = state.widget_key(state.EXPLAIN_BUTTON, "faithfulness", *pair, page.pool, page.side)
        if not st.toggle("Compare with removing neighbours at random", key=key):
            return
        with st.spinner("Removing neighbours…"):
            found = _kept(run, f"faithfulness {page.side}", pair, page, lambda: faithfulness(experiment, page.side))
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
