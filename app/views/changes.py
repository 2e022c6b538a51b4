"""What changed: the matches of a run next to those of an earlier one, each difference with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app import cache, components, frame, pages, pair_filters, palette, state, text
from app.cache import OpenRun, RunCard, RunList
from app.glossary import explain, probability_term
from app.state import ChangesAddress, ExplainAddress
from engine.data.knowledge_graph import SIDES
from engine.errors import EngineError
from engine.explore.changes import CAUSE_WORDS, CAUSES, CHANGES, USUAL_LEAST, Change, MatchChanges, VersionRun, match_changes
from engine.runs.entities import Entity, other
from engine.runs.view import RunView, probability_word
from engine.util.arrays import IntArray

ROWS = 100  # of a page
HEIGHT = 560  # pixels
USUAL: tuple[Change, ...] = ("changed", "gained", "lost")
CHANGE_WORDS: Mapping[Change, str] = {"changed": "→ changed", "gained": "+ gained", "lost": "− lost", "kept": "= kept"}
MEANINGS: Mapping[Change, str] = {
    "kept": "The same match in both runs.",
    "changed": "The entity has a match in both runs, but not the same one.",
    "gained": "A match in this run only.",
    "lost": "A match in the earlier run only.",
}
LEAST = (0.0, USUAL_LEAST, 0.8, 0.95)
REASONS = (
    "A difference between the two versions that concerns the entity or its match. The first that applies is shown, in this order. It does not prove "
    "that the difference caused the change."
)


def render(run: OpenRun, address: ChangesAddress) -> None:
    """The page."""
    runs = cache.list_runs(cache.models_folder())
    offered = candidates(runs, run.card)
    if not offered:
        components.empty_state(
            "Another run is needed",
            "This page compares a run with an earlier one, on an earlier version of the data or on the same data. Train another run first.",
        )
        pages.link(pages.TRAIN, state.TrainAddress(address.runs), "Open Train", icon=pages.TRAIN.icon)
        return
    controls = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    with controls:
        _side(run, address)
        old = _older(runs, offered, run.card, address)
    if old is None:
        return
    calibrated = run.alignments[address.side].calibrated and old.alignments[address.side].calibrated
    if calibrated:
        with controls:
            _least(address, [run.view, old.view])
    with st.spinner("Comparing the two runs…"):
        found = _compared(run, old, address, address.least if calibrated else None)
    _facts(found)
    if not calibrated:
        st.caption("At least one of the runs has no probabilities, so all best matches are compared.")
    changes = address.change or USUAL
    _filters(found, address, changes)
    chosen = found.select(changes, address.cause, address.search or "")
    if len(chosen):
        _table(run, old, address, found, chosen)
    else:
        components.empty_state("No matches to list", "Nothing fits the filters, or nothing changed between the two runs.")


# The two runs


def candidates(runs: RunList, card: RunCard) -> list[RunCard]:
    """The runs to compare with: the one that it was updated from first, then those of the same data, of the same name, and all others."""

    def place(one: RunCard) -> int:
        if one.run == card.parent:
            return 0
        return 1 if one.fingerprint == card.fingerprint else 2 if one.dataset == card.dataset else 3

    return sorted((one for one in runs.cards if one.run != card.run), key=place)


def _side(run: OpenRun, address: ChangesAddress) -> None:
    names = {side: f"{palette.PLAIN_MARKS[side]} {text.plain(run.view.graphs[side].name, 24)}" for side in SIDES}
    components.choice("Match of each entity of", names, name="side", value=address.side, default="source", clears=("page",))


def _older(runs: RunList, offered: Sequence[RunCard], card: RunCard, address: ChangesAddress) -> OpenRun | None:
    """The older run, and the way to another one; None where it cannot be opened, which the page says."""
    try:
        chosen = runs.find(address.old) if address.old else offered[0]
        found = cache.open_run(cache.models_folder(), chosen) if chosen.run != card.run else None
    except EngineError as error:
        chosen, found = None, None
        components.show_error(error)
    components.select(
        "Compared with",
        {one.run: f"{text.cell(one.run, 60)} · {text.moment(one.created)}" for one in offered},
        name=state.OLD_RUN,
        parts=(card.run,),
        value=chosen.run if chosen is not None and found is not None else None,
        on_choose=lambda run: pair_filters.change({state.OLD_RUN: None if run == offered[0].run else run}),
        placeholder="choose",
        help="The earlier run: of an earlier version of the data, or of the same data. Entities are identified by their IDs.",
        width=390,
    )
    if chosen is not None and found is None:
        st.caption("This link compares the run with itself. Choose another run.")
    return found


def _least(address: ChangesAddress, views: Sequence[RunView]) -> None:
    asked = USUAL_LEAST if address.least is None else address.least
    labels = {one: "any" if not one else f"{one:.0%}" for one in sorted({*LEAST, *([asked] if 0 <= asked <= 1 else [])})}
    kinds = {view.unchecked_probabilities for view in views}
    terms = explain(*map(probability_term, sorted(kinds)))
    components.choice(
        f"Minimum {probability_word(any(kinds))}",
        labels,
        name="least",
        value=asked if asked in labels else USUAL_LEAST,
        default=USUAL_LEAST,
        clears=("page",),
        help=f"Less probable matches do not count. The match of an entity with a seed link always does. {terms}",
    )


def _compared(run: OpenRun, old: OpenRun, address: ChangesAddress, least: float | None) -> MatchChanges:
    side = address.side

    def compute() -> MatchChanges:
        new, before = (VersionRun(one.view, one.alignments[side]) for one in (run, old))
        return match_changes(new, before, least)

    return cache.kept([run, old], ("changes", side, repr(least)), compute)


# What is found


def _facts(found: MatchChanges) -> None:
    counts = found.counts()
    with st.container(horizontal=True, gap="medium"):
        for change in ("kept", *USUAL):
            st.metric(change.capitalize(), f"{counts[change]:,}", help=MEANINGS[change])
    st.caption(" · ".join(text.plain(found.entity_sentence(side), 200) for side in SIDES))


def _filters(found: MatchChanges, address: ChangesAddress, changes: Sequence[Change]) -> None:
    """Kinds of change, reasons and a search; each choice with the number of rows that it leaves under the others."""
    words = address.search or ""
    counts, reasons = found.counts(found.select((), address.cause, words)), found.cause_counts(found.select(changes, (), words))
    labels = {change: f"{CHANGE_WORDS[change]} · {counts[change]:,}" for change in CHANGES}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        pair_filters.pills(
            "Show",
            labels,
            changes,
            name="change",
            parameters=lambda chosen: {"change": None if set(chosen) in (set(), set(USUAL)) else list(chosen)},
        )
        components.search_box("Search label, ID or URI", address.search, placeholder="in any script", clears=("page",), width=260)
    every = found.cause_counts()
    offered = [cause for cause in CAUSES if every[cause] or cause in address.cause]
    if not offered:
        return
    named = {cause: f"{CAUSE_WORDS[cause]} · {reasons[cause]:,}" for cause in offered}
    pair_filters.pills(
        "Reason",
        named,
        [cause for cause in offered if cause in address.cause],
        name="cause",
        parameters=lambda chosen: {"cause": list(chosen) or None},
        help=f"{REASONS} None selected: all.",
    )


def _table(run: OpenRun, old: OpenRun, address: ChangesAddress, found: MatchChanges, chosen: IntArray) -> None:
    last = -(-len(chosen) // ROWS)
    page = min(max(address.page, 1), last)
    start = (page - 1) * ROWS
    positions = chosen[start : start + ROWS]
    panel = st.container()
    row = components.table(
        _rows(found, positions),
        name=f"changes-{run.card.run}",
        whole=lambda: found.described(chosen),
        key=state.widget_key(state.CHANGE_TABLE, address, page),
        on_select="rerun",
        columns=_columns(found),
        height=HEIGHT if len(positions) > 14 else "auto",
    )
    first = "highest CSLS" if found.least is None else "most probable"
    st.caption(
        f"Rows {start + 1:,} to {start + len(positions):,} of {len(chosen):,}, the {first} of each kind first. Select a row for the links to "
        "Explain in both runs. The download contains all rows with their URIs."
    )
    if last > 1:
        key = state.widget_key(state.CHOICE, "page", page, last)
        turned = pair_filters.follow(key, lambda number: {"page": str(number) if number > 1 else None})
        st.pagination(last, default=page, key=key, on_change=turned)
    if row is not None:
        with panel:
            _chosen_row(old, address, found, int(positions[row]))


def _rows(found: MatchChanges, positions: IntArray) -> pd.DataFrame:
    part, side, across = found.rows.iloc[positions], found.side, other(found.side)

    def titles(column: str) -> list[str]:
        numbers = part[column].tolist()
        return ["—" if number < 0 else text.cell(found.entity(side if column == "entity" else across, number).title) for number in numbers]

    return pd.DataFrame(
        {
            "entity": titles("entity"),
            "change": [CHANGE_WORDS[CHANGES[code]] for code in part["change"]],
            "before": _matches(found, part, "old_", titles("old_match")),
            "now": _matches(found, part, "", titles("match")),
            "reason": ["" if code < 0 else CAUSE_WORDS[CAUSES[code]] for code in part["cause"]],
            "detail": [text.cell(found.detail(int(position))) for position in positions],
        }
    )


def _matches(found: MatchChanges, part: pd.DataFrame, prefix: str, titles: Sequence[str]) -> list[str]:
    """'Valais · 99%', of a run without probabilities 'Valais · 0.425'; in parentheses what is not probable enough to count."""
    missing: Change = "lost" if not prefix else "gained"
    calibrated = (found.old if prefix else found.new).alignment.calibrated
    scores = part[f"{prefix}probability" if calibrated else f"{prefix}csls"]
    cells = []
    for title, number, score, code in zip(titles, part[f"{prefix}match"], scores, part["change"], strict=True):
        words = title if pd.isna(score) else f"{title} · {score:.0%}" if calibrated else f"{title} · {text.minus(text.score(score))}"
        cells.append(f"({words})" if number >= 0 and CHANGES[code] == missing else words)
    return cells


def _columns(found: MatchChanges) -> dict[str, Any]:
    config = st.column_config
    below = "" if found.least is None else f" In parentheses: below {found.least:.0%}, so that it does not count."
    scored = [f" Then its {run.view.probability_word if run.alignment.calibrated else 'CSLS'}." for run in (found.old, found.new)]
    return {
        "entity": config.TextColumn(f"{palette.PLAIN_MARKS[found.side]} {text.cell(found.numbers[found.side].new.name, 30)}", width=130),
        "change": config.TextColumn(width=86),
        "before": config.TextColumn("match before", width=135, help=f"Match in the earlier run.{scored[0]}{below}"),
        "now": config.TextColumn("match now", width=135, help=f"Match in this run.{scored[1]}{below}"),
        "reason": config.TextColumn(width=150, help=REASONS),
        "detail": config.TextColumn(width=262),
    }


def _chosen_row(old: OpenRun, address: ChangesAddress, found: MatchChanges, position: int) -> None:
    """The row that is selected: what it says in words, and the ways to Explain in both runs."""
    row = found.rows.iloc[position]
    entity = found.entity(found.side, int(row["entity"]))
    now, before = found.pairs(position)
    with st.container(border=True, key="chosen_change"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(components.entity_label(entity), width="content")
            st.badge(CHANGE_WORDS[CHANGES[int(row["change"])]], color="gray")
            if row["cause"] >= 0:
                detail = found.detail(position)
                st.caption(f"{CAUSE_WORDS[CAUSES[int(row['cause'])]]}{f': {text.plain(detail, 200)}' if detail else ''}", width="content")
        with st.container(horizontal=True):
            _explained(address.runs, now, "Explain now")
            _explained((old.card.run,), before, "Explain before")
            if now is None and before is None:
                st.caption("Neither run can explain this row.")


def _explained(runs: Sequence[str], pair: tuple[Entity, Entity] | None, label: str) -> None:
    if pair is not None:
        address = ExplainAddress(tuple(runs), source=pair[0].uri, target=pair[1].uri)
        pages.link(pages.EXPLAIN, address, f"{label}: {components.pair_label(*pair)}", icon=pages.EXPLAIN.icon)


frame.one_run(pages.CHANGES, render)
