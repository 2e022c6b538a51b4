"""What a score is made of: a few groups that open into channels and hops, all parts as a table, and the parts of the calibrated probability."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from app import cache, components, evidence_figures, state, text
from app.cache import OpenRun
from app.glossary import PROBABILITY_FEATURES, probability_term
from app.glossary import explain as term
from app.state import ExplainAddress
from engine.errors import EngineError
from engine.explanation import Explanation, ProbabilityParts, probability_parts
from engine.explanation.summary import capital, score_groups

SEEN: Final = 0.0005
"""Smaller differences round to nothing."""
FORMULA: Final = (
    "CSLS = 2 · similarity − hubness of the source − hubness of the target. The similarity is the cosine of the two embeddings, in literal runs plus "
    "those of names and values. A part is one channel and hop: the product of the two vectors there, divided by both norms and counted twice."
)


@st.fragment
def groups(found: Explanation, page: ExplainAddress) -> None:
    """The score as at most six bars, of which each can be opened. A fragment: only this part is redrawn."""
    groups = score_groups(found)
    several = [group.name for group in groups if len(group.parts) > 1]
    st.markdown("**Score breakdown**", help=term("CSLS", "channel", "layer", "proxy", "hubness"))
    key = state.widget_key(state.EXPLAIN_BUTTON, "groups", page.runs[0], page.source, page.target, several)
    opened = st.pills("Open into channels and hops", several, selection_mode="multi", format_func=capital, key=key)
    bars = evidence_figures.group_bars(groups, set(opened))
    first, worst = max(groups, key=lambda group: group.value), min(groups, key=lambda group: group.value)
    caption = f"Largest contribution: {first.name} ({text.signed(first.value)})."
    if worst.value < 0:
        caption += f" {capital(worst.name)} lowers the score by {-worst.value:.3f}."
    _waterfall(found, bars, "explanation-groups", caption)


def details(run: OpenRun, found: Explanation, page: ExplainAddress) -> None:
    """The tab Score: every part, and what the probability is made of."""
    groups, parts = score_groups(found), found.decomposition.parts
    st.subheader("Score by channel and hop", anchor=False, help=term("channel", "layer", "proxy", "hubness"))
    bars = evidence_figures.group_bars(groups, {group.name for group in groups})
    rounding = "" if abs(found.decomposition.rounding) < SEEN else f", but for {text.signed(found.decomposition.rounding)} of rounding"
    _waterfall(found, bars, "explanation-parts", f"The score is the sum of {text.count(len(parts), 'part')}{rounding}.")
    st.caption(FORMULA)
    _shared_values(found)
    _probability(run, found, page)


def _shared_values(found: Explanation) -> None:
    """What shared values add to the score, where the run compares values."""
    if found.pair.values is None:
        return
    st.subheader("Shared values", anchor=False)
    if not found.values:
        st.markdown("The two share no value of the attributes that this run compares.")
        return
    total = sum(one.value for one in found.values)
    words = f"They add {text.signed(total)} to the score: the more, the fewer entities have the value, and the more often the two attributes agree."
    rows = {
        "source attribute": [text.cell(one.source_attribute) for one in found.values],
        "source value": [text.cell(one.source_text) for one in found.values],
        "target value": [text.cell(one.target_text) for one in found.values],
        "target attribute": [text.cell(one.target_attribute) for one in found.values],
        "value": [one.value for one in found.values],
        "entities": [f"{one.source_entities:,} and {one.target_entities:,}" for one in found.values],
    }
    help = "How many entities of each graph have the value."
    columns = {"value": st.column_config.NumberColumn(format="%+.3f"), "entities": st.column_config.TextColumn(help=help)}
    components.table(pd.DataFrame(rows), name="shared-values", columns=columns, above=lambda: st.caption(words))


def _waterfall(found: Explanation, bars: list[evidence_figures.Bar], name: str, caption: str) -> None:
    pair = found.pair
    note = "" if pair.probability is None else text.figure_label(f"{pair.probability:.0%}")
    components.figure(
        evidence_figures.waterfall(bars, "CSLS" if pair.probability is None else f"CSLS ({pair.probability_word})", pair.csls, note),
        name=name,
        title=f"Score breakdown: {text.cell(pair.source.title, 30)} – {text.cell(pair.target.title, 30)}",
        caption=caption,
        alt=evidence_figures.spoken(bars, "CSLS", pair.csls),
        data=evidence_figures.part_table(found.decomposition.parts),
        height=evidence_figures.waterfall_height(len(bars) + 1),
    )


def _probability(run: OpenRun, found: Explanation, page: ExplainAddress) -> None:
    """What raised and lowered the calibrated probability, where the run has stored it."""
    pair = found.pair.source.index, found.pair.target.index

    def compute() -> ProbabilityParts | None:
        return probability_parts(run.view, run.json("calibration"), *pair)

    try:
        parts = cache.kept_of_pair([run], ("probability", *map(str, pair), page.pool), compute)
    except EngineError as error:
        st.caption(f":material/info: {text.plain(str(error), 400)}")
        return
    if parts is None:
        return
    st.subheader(f"What the {found.pair.probability_word} of {parts.probability:.0%} is made of", anchor=False)
    words = (
        f"A prediction that is average in all features has {parts.average:.0%}. Each line adds to the log odds of that: above 0 it raises the "
        "probability, below 0 it lowers it. Scores, ranks and margins are those among all entities without a seed link. "
        "Averages of ranks, degrees and counts are geometric means."
    )
    rows = [
        {"feature": PROBABILITY_FEATURES[part.feature], "log odds": part.log_odds, "this pair": part.value, "average": part.usual}
        for part in parts.parts
    ]
    numbers = {name: st.column_config.NumberColumn(format="%.4g") for name in ("this pair", "average")}
    odds = st.column_config.NumberColumn(format="%+.2f", help=term(probability_term(found.pair.estimated)))
    components.table(pd.DataFrame(rows), name="probability-parts", columns={**numbers, "log odds": odds}, above=lambda: st.caption(words))
