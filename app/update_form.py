"""The choice of a run to start a training from, and what its update to a new version of the data carries over."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app import components, state, text
from app.cache import OpenRun, RunCard, RunList
from app.state import TrainAddress
from engine.data import safe_name
from engine.data.knowledge_graph import SIDES
from engine.data.library import StoredDataSet
from engine.jobs import UpdateSummary

NOTHING = ""
HELP = (
    "A run on an earlier version of this data. Entities are identified by their IDs. Training starts from what the run has learned and takes a few "
    "epochs; links keep their part, and reviewers' decisions are carried over."
)


def start_choice(runs: RunList, data: StoredDataSet, address: TrainAddress) -> None:
    """What training starts from, where there are runs on other data than this."""
    offered = earlier_runs(runs, data)
    if not offered and address.start is None:
        return
    labels = {NOTHING: "none (new training)", **{card.run: run_words(card) for card in offered}}
    if address.start is not None and address.start not in labels:
        labels[address.start] = text.cell(address.start, 60)
    components.select(
        "Earlier run to start from",
        labels,
        name=state.START,
        value=address.start or NOTHING,
        on_choose=lambda run: state.set_parameters({state.START: run or None, state.JOB: None, state.SETTING: None}),
        help=HELP,
    )
    same = [card for card in offered if card.dataset == safe_name(data.path)]
    if same and address.start is None:
        words = f"{text.count(len(same), 'run is', 'runs are')} on an earlier version of this data"
        st.caption(f"{words}. Starting from one of them takes a few epochs.")


def earlier_runs(runs: RunList, data: StoredDataSet) -> list[RunCard]:
    """The runs on other data than this, those of its name first."""
    known = bool(data.fingerprint or data.entities)
    own = {card.run for card in runs.of_data_set(data)} if known else set()
    return sorted((card for card in runs.cards if card.run not in own), key=lambda card: card.dataset != safe_name(data.path))


def run_words(card: RunCard) -> str:
    """'europe/semi-s0-8dfc6351 · Hits@1 0.612 · 2026-11-01 12:00 UTC'."""
    measured = f" · Hits@1 {text.score(card.metrics['target_to_source']['hits@1'])}" if card.metrics else ""
    return f"{text.cell(card.run, 60)}{measured} · {text.moment(card.created)}"


def about_parent(parent: OpenRun) -> None:
    """What is taken over from the run besides its parameters."""
    card = parent.card
    st.caption(
        f"Variant **{text.plain(card.variant)}**, random seed {card.seed} and all other settings are those of the run, with fewer epochs. "
        "If identifiers have changed, use the command line: `update --mapping` takes a table of old and new ones."
    )


def carried_over(update: UpdateSummary, names: Sequence[str]) -> None:
    """Entities of each graph: carried over, new, gone. ``names``: of the graphs."""
    lines = []
    for name, side in zip(names, SIDES, strict=True):
        counts = update.counts[side]
        lines.append(f"{name}: **{counts['carried']:,}** entities carried over, {counts['new']:,} new, {counts['gone']:,} removed")
    st.markdown("  \n".join(lines))
