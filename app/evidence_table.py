"""Pairs of neighbours as a table that is also the figure: the neighbours, their relations, why they are aligned, and a bar for the contribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd
import streamlit as st

from app import charts, components, facing, pages, state, text
from app.cache import OpenRun
from app.glossary import explain as term
from app.palette import PLAIN_MARKS
from app.state import EntityAddress, EvidenceShown, ExplainAddress
from engine.data.knowledge_graph import SIDES, Side
from engine.explanation import Aligned, Explanation, NeighbourProduct
from engine.runs.verdicts import HELD_OUT, status_words

SHOWN: Final[Mapping[EvidenceShown, str]] = {
    "supporting": "Supporting",
    "opposing": "Opposing",
    "aligned": "Aligned only",
    "graph": "Neighbourhood graph",
}
WHY: Final[Mapping[Aligned, str]] = {
    "this pair": "the pair itself",
    "seed": "seed link",
    "added": "added",
    "predicted": "predicted",
    "elsewhere": "not matched",
}
BAR_WIDTH: Final = 120  # pixels
TABLE_HEIGHT: Final = 420


@st.fragment
def evidence(run: OpenRun, page: ExplainAddress, found: Explanation) -> None:
    """The tab Evidence. A fragment: another choice redraws this part alone."""
    with components.errors_shown():
        shown = ExplainAddress.read().evidence
        components.choice("Pairs of neighbours", SHOWN, name="evidence", value=shown, default="supporting")
        if shown == "graph":
            source, target = found.pair.source, found.pair.target
            facing.neighbourhoods(run, EntityAddress(page.runs, "source", source.uri, target.uri, page.pool), source, target)
            return
        pairs = pairs_shown(found, shown)
        st.markdown(sentence(found, shown, pairs))
        if pairs:
            weights = st.toggle("Attention weights", key=state.widget_key(state.MORE_COLUMNS, "evidence"), help=term("attention"))
            _offer(page, pairs, table(found, pairs, name=f"evidence-{shown}", page=page, weights=weights))


def pairs_shown(found: Explanation, shown: EvidenceShown) -> Sequence[NeighbourProduct]:
    """The listed pairs, the strongest first."""
    neighbours = found.neighbours
    if shown == "aligned":
        both = [pair for pair in (*neighbours.supporting, *neighbours.opposing) if pair.aligned != "elsewhere"]
        return sorted(both, key=lambda pair: -abs(pair.value))
    return neighbours.opposing if shown == "opposing" else neighbours.supporting


def sentence(found: Explanation, shown: EvidenceShown, pairs: Sequence[NeighbourProduct]) -> str:
    """The whole of the evidence, and the part of it that is listed."""
    if not pairs:
        verbs = {"supporting": "supports the match", "opposing": "opposes the match"}
        return f"No pair of neighbours {verbs.get(shown, 'among the strongest is aligned')}."
    listed = text.signed(sum(pair.value for pair in pairs))
    if shown == "aligned":
        return f"Of the strongest supporting and opposing pairs, **{len(pairs):,}** are aligned, or are the two entities themselves: {listed} in all."
    whole = found.neighbours.positive if shown == "supporting" else found.neighbours.negative
    known = text.signed(sum(pair.value for pair in pairs if pair.aligned != "elsewhere"))
    return (
        f"{SHOWN[shown]} pairs of neighbours contribute **{text.signed(whole)}** to the score. The {len(pairs):,} strongest are listed ({listed}); "
        f"aligned pairs among them and the two entities themselves contribute {known}."
    )


def table(
    found: Explanation, pairs: Sequence[NeighbourProduct], *, name: str, page: ExplainAddress | None = None, weights: bool = False
) -> int | None:
    """The pairs, a row each; the number of the row that is chosen where there is a page to follow it. ``weights``: with attention weights."""
    neighbours = found.neighbours
    attention = {(one.entity.side, one.entity.index): one.attention for one in (*neighbours.source, *neighbours.target) if weights}
    data = pd.DataFrame([_row(pair, (neighbours.positive, neighbours.negative), attention) for pair in pairs])
    share = st.column_config.ProgressColumn(
        format="percent",
        min_value=0,
        max_value=max(float(data["share"].max()), 1e-9),
        width=BAR_WIDTH,
        help="Share of all supporting pairs; of opposing pairs, share of all opposing ones. The bar is full for the strongest row.",
    )
    extra = {f"attention {PLAIN_MARKS[side]}": st.column_config.NumberColumn(format="percent", help=term("attention")) for side in SIDES}
    why = st.column_config.TextColumn(
        help="Added: in a semi-supervised round. Predicted: one is the best match of the other. In brackets: a link held out for evaluation."
    )
    columns = {
        "why aligned": why,
        "contribution": st.column_config.NumberColumn(format="%+.3f", help="Part of the CSLS score."),
        "share": share,
        **extra,
    }
    return components.table(
        data,
        name=name,
        columns=columns,
        height=TABLE_HEIGHT if len(data) > 10 else "auto",
        share_decimals=3,
        key=None if page is None else state.widget_key(state.EVIDENCE_TABLE, name, *page.runs, page.source, page.target, weights),
        on_select="ignore" if page is None else "rerun",
    )


def _row(pair: NeighbourProduct, sums: tuple[float, float], attention: Mapping[tuple[Side, int], float]) -> dict[str, object]:
    whole = sums[0] if pair.value >= 0 else sums[1]
    ends = {"source": (pair.source, pair.source_edges), "target": (pair.target, pair.target_edges)}
    row: dict[str, object] = {}
    for side, (entity, edges) in ends.items():
        mark = PLAIN_MARKS[side]  # type: ignore[index]
        row[f"{mark} neighbour"] = text.cell(entity.title, 80)
        row[f"{mark} relation"] = charts.edge_words(edges) or "itself"
    row |= {"why aligned": _why(pair), "contribution": pair.value, "share": pair.value / whole if whole else 0.0}
    return row | {f"attention {PLAIN_MARKS[side]}": attention.get((side, ends[side][0].index)) for side in SIDES if attention}


def _why(pair: NeighbourProduct) -> str:
    """What ties the two; a link that is kept for evaluation is named as well, though training did not use it."""
    why = WHY[pair.aligned]
    known = status_words(pair.verdict, None)
    return f"{why} ({known})" if pair.aligned in ("predicted", "added") and pair.verdict in HELD_OUT else why


def _offer(page: ExplainAddress, pairs: Sequence[NeighbourProduct], row: int | None) -> None:
    if row is None:
        st.caption("Select a row to explain that pair of neighbours.")
        return
    pair = pairs[row]
    address = ExplainAddress(page.runs, source=pair.source.uri, target=pair.target.uri, pool="all", side=page.side)
    pages.link(pages.EXPLAIN, address, f"Explain {components.pair_label(pair.source, pair.target)}", icon=":material/arrow_forward:")
