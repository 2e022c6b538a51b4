"""Compare: what did one run buy over another?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app import cache, components, frame, pages, state, text
from app.cache import OpenRun
from app.glossary import explain
from app.state import CompareAddress


def render(runs: Sequence[OpenRun], address: CompareAddress) -> None:
    """The page."""
    st.subheader("Measured on the test links", anchor=False)
    components.table(
        pd.DataFrame([_row(run, address) for run in runs]),
        name="runs",
        columns={
            "Hits@1": st.column_config.NumberColumn(format="%.3f", help=explain("Hits@1")),
            "95 % interval": st.column_config.TextColumn(help=explain("interval")),
            "MRR": st.column_config.NumberColumn(format="%.3f", help=explain("MRR")),
        },
    )


def _row(run: OpenRun, address: CompareAddress) -> dict[str, object]:
    row: dict[str, object] = {"run": text.cell(run.card.run_id), "variant": text.cell(run.card.variant)}
    if run.card.metrics is None:
        return row | {"Hits@1": None, "95 % interval": "no test links", "MRR": None}
    direction = run.card.metrics[state.DIRECTION_OF[address.side]]
    found = cache.interval(direction, "hits@1")
    words = f"{text.score(found[0])}–{text.score(found[1])}" if found else ""
    return row | {"Hits@1": direction["hits@1"], "95 % interval": words, "MRR": direction["mrr"]}


frame.several_runs(pages.COMPARE, render)
