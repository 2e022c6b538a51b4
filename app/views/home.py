"""Home: data sets, runs and trainings in progress."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app import cache, components, deleting, frame, pages, palette, sign_in, state, text
from app.glossary import explain
from app.state import CompareAddress, DataSetAddress, EntityAddress, ImportAddress, TrainAddress
from engine.config import VARIANTS
from engine.errors import JobError
from engine.evaluation.metrics import stored_interval
from engine.evaluation.pairs import figures_sentence
from engine.jobs import Job, JobQueue

ROWS_SHOWN = 12  # of a table; the others are scrolled to
ROW_HEIGHT = 35  # pixels
MEASURES = ("Hits@1", "interval", "MRR")
OPEN = ":material/arrow_forward: Open"
TIME = "Training time. Where names were added to another run, without the training of that run. Update: trained on from an earlier run."


def render(runs: cache.RunList) -> None:
    """The page."""
    deleting.outcome()
    jobs = _jobs()
    _first_actions([job for job in jobs if job.active])
    if runs.cards:
        _runs(runs)
    else:
        _first_steps()
    _unusable(runs, jobs)
    _data_sets(runs)
    if runs.cards:
        _deletable(runs)


def _jobs() -> Sequence[Job]:
    try:
        return JobQueue(cache.models_folder()).jobs()
    except JobError as error:
        components.show_error(error)
        return ()


def _first_actions(jobs: Sequence[Job]) -> None:
    """The way to a user's own graphs; next to it the training in progress, and how many wait."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        key = state.widget_key(state.IMPORT_BUTTON, "home")
        if st.button("Train on your own graphs", icon=":material/upload:", type="primary", key=key, help="Import two graphs and known links first."):
            pages.go(pages.IMPORT, ImportAddress())
        if jobs:
            waiting = f" · {len(jobs) - 1} more in the queue" if len(jobs) > 1 else ""
            words = "is queued" if jobs[0].state == "queued" else "is being trained"
            st.markdown(f"**{text.plain(jobs[0].name)}** {words}{waiting}", width="content")
            pages.link(pages.TRAIN, TrainAddress(job=jobs[0].id), "Show progress", icon=":material/monitoring:")


def _first_steps() -> None:
    components.empty_state(
        "No runs yet",
        "A run is the result of one training on one data set; every page shows runs. Train on a data set below, import your own two graphs, or close "
        "the app and train all three variants on the sample data, which takes a few minutes:",
        ["make app"],
    )


def _runs(runs: cache.RunList) -> None:
    """A table of runs for each data set, the one with the newest run first."""
    names = runs.data_names()
    for data, group in runs.groups().items():
        best = _best_first(group)
        _data_heading(runs, best, names[data])
        _run_table(data, best, _data_words(runs, best[0]))
        _notes(best)
        _next_steps(runs, group)


def _best_first(group: Sequence[cache.RunCard]) -> list[cache.RunCard]:
    """Runs by Hits@1 in the published direction, the highest first; those without test links after the others, the newest first."""
    return sorted(group, key=lambda card: -math.inf if card.metrics is None else float(card.metrics["target_to_source"]["hits@1"]), reverse=True)


def _data_heading(runs: cache.RunList, group: Sequence[cache.RunCard], name: str) -> None:
    first = group[0]
    same = runs.of_same_data(first)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.header(text.plain(name, 60), anchor=False, width="content")
        pages.link(pages.ENTITY, EntityAddress((first.run,)), _open_words(group), icon=":material/arrow_forward:")
        if len(same) > 1:
            found = cache.a_run_a_variant(group, group[:1])
            together = found if len(found) > 1 else (first, *(card for card in (*group, *same) if card is not first))[:2]
            address = CompareAddress(tuple(card.run for card in together))
            pages.link(pages.COMPARE, address, f"Compare {text.count(len(together), 'run')}", icon=":material/compare_arrows:")
        pages.link(pages.DATASET, DataSetAddress((first.run,)), "Inspect data set", icon=":material/database:")


def _open_words(group: Sequence[cache.RunCard]) -> str:
    """For the first run of a group, which is the newest where nothing is measured."""
    if len(group) == 1:
        return "Open run"
    return "Open newest run" if group[0].metrics is None else "Open best run"


def _data_words(runs: cache.RunList, first: cache.RunCard) -> str:
    """The sizes of a data set, and others that are the same."""
    others = sorted({card.dataset for card in runs.of_same_data(first)} - {first.dataset})
    return _sizes(first) + (f" · same content as {', '.join(text.plain(other, 60) for other in others)}" if others else "")


def _next_steps(runs: cache.RunList, group: Sequence[cache.RunCard]) -> None:
    """The variants that this data has no run of."""
    present = {card.variant for card in runs.of_same_data(group[0])}
    if not any(group[0].links.get(part) for part in ("train", "valid", "test")):
        present.add("basic")  # which trains on known links alone
    missing = [variant for variant in VARIANTS if variant not in present]
    if missing and any(group[0] in runs.of_data_set(data) for data in cache.list_data_sets()):
        st.caption(f"Next step: train **{missing[0]}**. {explain(missing[0])}")
        address = TrainAddress((group[0].run,), group[0].dataset, missing[0])
        pages.link(pages.TRAIN, address, f"Train the {missing[0]} variant and compare", icon=":material/model_training:")


def _run_table(data: str, cards: Sequence[cache.RunCard], words: str) -> None:
    """A row for each run, with a button that opens it; ``words``: on the data."""
    clicked = state.widget_key(state.RUN_TABLE, data, [card.run for card in cards])
    rows = pd.DataFrame([_row(card) for card in cards])
    shown = rows.drop(columns=[name for name in MEASURES if rows[name].isna().all()])
    number = st.column_config.NumberColumn
    components.table(
        shown.assign(open=OPEN),
        name="runs",
        above=lambda: st.caption(words),
        whole=lambda: rows.assign(run=[card.run for card in cards], training=[_making(card) for card in cards]),
        key=state.widget_key(state.RUN_TABLE, "table", data),
        height=ROW_HEIGHT * (min(len(rows), ROWS_SHOWN) + 1) + 3,
        columns={
            "variant": st.column_config.TextColumn(help=explain(*VARIANTS), width=80),
            "Hits@1": st.column_config.ProgressColumn(
                format="%.3f", min_value=0, max_value=1, width=150, help=f"{explain('Hits@1')} Direction: target to source."
            ),
            "interval": st.column_config.TextColumn("95% interval", width=110, help=explain("interval")),
            "MRR": number(format="%.3f", help=explain("MRR")),
            "random seed": number(width=95),
            "time": st.column_config.TextColumn(help=TIME),
            "age": st.column_config.DatetimeColumn(format="distance", width=115),
            "run": st.column_config.TextColumn(width=160),
            "open": st.column_config.ButtonColumn("", key=clicked, type="tertiary", width=85),
        },
    )
    click: Any = st.session_state.get(clicked)
    if click and click["row"] < len(cards):
        pages.go(pages.ENTITY, EntityAddress((cards[click["row"]].run,)))


def _row(card: cache.RunCard) -> dict[str, Any]:
    """What the table says of a run."""
    row: dict[str, Any] = {"variant": text.cell(card.variant, 20) + (" (stopped early)" if card.stopped else "")}
    row |= dict.fromkeys(MEASURES)
    if card.metrics:
        backward = card.metrics["target_to_source"]
        found = stored_interval(backward, "hits@1", card.links.get("test", 0))
        row |= {"Hits@1": backward["hits@1"], "MRR": backward["mrr"]}
        row["interval"] = f"{text.score(found[0][0])}–{text.score(found[0][1])}" if found else None
    made = pd.to_datetime(card.created, utc=True, errors="coerce")
    took = text.duration(card.seconds) + (" (update)" if card.parent else " (names)" if card.structure_run else "")
    return row | {"random seed": card.seed, "time": took, "age": made, "run": text.cell(card.run_id, 60)}


def _making(card: cache.RunCard) -> str:
    """How long it took; a run that builds on another one did not train again."""
    took = text.duration(card.seconds)
    if card.parent:
        return f"updated from {text.cell(card.parent, 80)} in {took}"
    if not card.structure_run:
        return f"trained in {took}"
    return f"names added to {text.cell(card.structure_run.rpartition('/')[2], 60)} in {took}"


def _notes(cards: Sequence[cache.RunCard]) -> None:
    """How the numbers of a table were measured, what the paper has, and what to do where nothing is measured."""
    measured = [card for card in cards if card.metrics]
    notes = []
    if measured:
        best = measured[0]
        forward = text.score((best.metrics or {})["source_to_target"]["hits@1"])
        pool = f"n = {best.links.get('test', 0):,} test entities"
        notes.append(f"Hits@1 from target to source, {pool}; from source to target, the first run has {forward}. {text.plain(best.protocol, 600)}.")
        if aligned := (best.metrics or {}).get("alignment"):
            notes.append(f"Alignment of the best run: {text.plain(figures_sentence(aligned), 300)}.")
    for parent in dict.fromkeys(card.parent for card in cards if card.parent):
        names = ", ".join(text.plain(card.run_id, 60) for card in cards if card.parent == parent)
        notes.append(f"{names}: trained from {text.plain(parent, 120)} on a new version of its data.")
    papers = {(card.paper.dataset, card.paper.variant): card.paper for card in cards if card.paper}
    for paper in papers.values():
        notes.append(
            f"The paper reports {text.score(paper.hits_at_1)} on {paper.dataset}, {paper.variant} (mean of five runs, 30% of links as seeds)."
        )
    if notes:
        st.caption(" ".join(notes))
    unmeasured = next((card for card in cards if not card.metrics), None)
    if unmeasured is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            words = "Accuracy not measured: no test links." if not measured else "Some runs have no test links, so their accuracy is not measured."
            st.markdown(words, width="content")
            components.measure_by_sample(unmeasured.run)


def _sizes(card: cache.RunCard) -> str:
    source, target = (
        f"{palette.MARKS[side]} {text.plain(str(card.sizes[side]['name']), 30)} {card.sizes[side]['entities']:,}" for side in ("source", "target")
    )
    return f"{source} ↔ {target} entities"


def _deletable(runs: cache.RunList) -> None:
    """Runs to delete, for who may: one is chosen, then asked for."""
    if not sign_in.may_delete():
        return
    asked, _ = st.session_state.get(state.DELETING, ("", ""))
    with st.expander("Delete a run", icon=":material/delete:", expanded=any(card.run == asked for card in runs.cards)):
        labels = text.distinct_labels({card.run: text.cell(card.run, 80) for card in runs.cards})
        key = state.widget_key(state.DELETE_BUTTON, labels)
        chosen = st.selectbox("Run to delete", list(labels), format_func=labels.__getitem__, key=key)
        if chosen in labels:
            deleting.offer(chosen)


def _unusable(runs: cache.RunList, jobs: Sequence[Job]) -> None:
    for partial in runs.partial:
        _partial(partial, jobs)
    if not runs.broken:
        return
    with st.expander(f"{text.count(len(runs.broken), 'run folder')} that cannot be opened", icon=":material/warning:", expanded=not runs.cards):
        for broken in runs.broken:
            st.markdown(f"**{text.plain(broken.run)}**: {text.plain(broken.reason, 600)}")
            deleting.offer(broken.run)
        st.caption("Other runs are not affected.")


def _partial(partial: cache.UnusableRun, jobs: Sequence[Job]) -> None:
    """A run in the making, and how to resume an interrupted one: through the job that began it, or else with its command."""
    begun = partial.begun
    name = partial.run if begun is None else f"{partial.run.rpartition('/')[0]}/{begun.run_id}"
    job = next((job for job in jobs if job.name == name and job.resumable), None)
    reason = "interrupted" if job is not None else partial.reason
    st.info(f"**{text.plain(partial.run)}** {reason}.", icon=":material/hourglass_top:")
    if job is not None:
        pages.link(pages.TRAIN, TrainAddress(job=job.id), "Resume on Train", icon=":material/resume:")
    elif begun is not None and not any(one.name == name for one in jobs):
        st.code(begun.command(cache.models_folder()), language=None, wrap_lines=True)
    if not partial.active:
        deleting.offer(partial.run)


def _data_sets(runs: cache.RunList) -> None:
    """What could be trained on as well."""
    found = [data for data in cache.list_data_sets() if not runs.of_data_set(data)]
    if found:
        st.header("More data sets" if runs.cards else "Data sets", anchor=False)
    for data in found:
        with st.container(border=True):
            imported = f" · imported {text.age(data.imported)}" if data.imported else ""
            st.markdown(f"**{text.plain(data.name)}** · not trained yet{imported}")
            if data.entities:
                st.caption(f"{data.entities[0]:,} and {data.entities[1]:,} entities · {text.count(data.links or 0, 'known link')}")
            pages.link(pages.TRAIN, TrainAddress(data=data.name), f"Train on {text.plain(data.name)}", icon=":material/model_training:")


frame.without_run(pages.HOME, render)
