"""Home: data sets, runs and trainings in progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app import cache, components, deleting, frame, pages, palette, state, text
from app.glossary import TERMS, explain
from app.state import CompareAddress, DataSetAddress, EntityAddress, ImportAddress, TrainAddress
from engine.config import VARIANTS
from engine.errors import JobError
from engine.evaluation.metrics import stored_interval
from engine.evaluation.pairs import figures_sentence
from engine.jobs import Job, JobQueue

CARDS = 12
COLUMNS = 3


def render(runs: cache.RunList) -> None:
    """The page."""
    deleting.outcome()
    jobs = _jobs()
    _at_work([job for job in jobs if job.active])
    if runs.cards:
        _runs(runs)
    else:
        _first_steps()
    _unusable(runs, jobs)
    _data_sets(runs)


def _jobs() -> Sequence[Job]:
    try:
        return JobQueue(cache.models_folder()).jobs()
    except JobError as error:
        components.show_error(error)
        return ()


def _at_work(jobs: Sequence[Job]) -> None:
    """The training in progress, and how many wait."""
    if jobs:
        with st.container(horizontal=True, vertical_alignment="center", border=True):
            waiting = f" · {len(jobs) - 1} more in the queue" if len(jobs) > 1 else ""
            words = "is queued" if jobs[0].state == "queued" else "is being trained"
            st.markdown(f"**{text.plain(jobs[0].name)}** {words}{waiting}")
            pages.link(pages.TRAIN, TrainAddress(job=jobs[0].id), "Show progress", icon=":material/monitoring:")


def _first_steps() -> None:
    components.empty_state(
        "No runs yet",
        "A run is the result of one training on one data set; every page shows runs. Train on a data set below, import your own two graphs, or close "
        "the app and train all three variants on the sample data, which takes a few minutes:",
        ["make app"],
    )


def _runs(runs: cache.RunList) -> None:
    """Runs by data set, newest first; beyond the newest ones a table."""
    shown = runs.cards[:CARDS]
    names = runs.data_names()
    for data, group in runs.groups().items():
        cards = [card for card in group if card in shown]
        if not cards:
            continue
        _data_heading(runs, group, names[data])
        for start in range(0, len(cards), COLUMNS):
            for column, card in zip(st.columns(COLUMNS), cards[start : start + COLUMNS], strict=False):
                with column:
                    _card(card)
        _next_steps(runs, group)
    if len(runs.cards) > CARDS:
        _older(runs.cards[CARDS:])


def _data_heading(runs: cache.RunList, group: Sequence[cache.RunCard], name: str) -> None:
    first = group[0]
    same = runs.of_same_data(first)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.header(text.plain(name, 60), anchor=False, width="content")
        if len(same) > 1:
            found = cache.a_run_a_variant(group, group[:1])
            together = found if len(found) > 1 else (first, *(card for card in (*group, *same) if card is not first))[:2]
            address = CompareAddress(tuple(card.run for card in together))
            pages.link(pages.COMPARE, address, f"Compare {text.count(len(together), 'run')}", icon=":material/compare_arrows:")
        pages.link(pages.DATASET, DataSetAddress((first.run,)), "Inspect data set", icon=":material/database:")
    others = sorted({card.dataset for card in same} - {first.dataset})
    twins = f" · same content as {', '.join(text.plain(other, 60) for other in others)}" if others else ""
    st.caption(f"{_sizes(first)}{twins}")


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


def _making(card: cache.RunCard) -> str:
    """How long it took; a run that builds on another one did not train again."""
    took = text.duration(card.seconds)
    if not card.structure_run:
        return f"trained in {took}"
    return f"names added to {text.plain(card.structure_run.rpartition('/')[2], 60)} in {took}"


def _card(card: cache.RunCard) -> None:
    with st.container(border=True, height="stretch"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.badge(text.plain(card.variant, 20), color=palette.BADGES.get(card.variant, "gray"), help=TERMS.get(card.variant))
            if card.stopped:
                st.badge("stopped early", icon=":material/warning:", color="yellow")
            st.caption(f"{text.age(card.created)} · random seed {card.seed} · {_making(card)}")
        if card.metrics:
            _figures(card, card.metrics)
        else:
            st.markdown("Accuracy not measured: no test links.")
            components.measure_by_sample(card.run)
        st.caption(f"{card.links.get('train', 0):,} seed links · {text.plain(card.split, 60)} · {text.plain(card.run_id, 60)}")
        pages.link(pages.ENTITY, EntityAddress((card.run,)), "Open run", icon=":material/arrow_forward:")
        deleting.offer(card.run)


def _figures(card: cache.RunCard, metrics: Mapping[str, Any]) -> None:
    """Hits@1 in the published direction with its interval and pool, the other direction, and what the paper has."""
    backward, forward = metrics["target_to_source"], metrics["source_to_target"]
    found = stored_interval(backward, "hits@1", card.links.get("test", 0))
    spread = f"95% interval {text.score(found[0][0])}–{text.score(found[0][1])}, n = {found[1]:,}" if found else None
    hits = text.score(backward["hits@1"])
    protocol = f"{explain('Hits@1')}\n\n{text.plain(card.protocol, 600)}"
    st.metric(
        "Hits@1, target to source",
        hits,
        delta=spread,
        delta_color="off",
        delta_arrow="off",
        help=protocol,
    )
    pool = f"of {card.links.get('test', 0):,} test entities"
    st.caption(f"{pool} · MRR {text.score(backward['mrr'])} · source to target {text.score(forward['hits@1'])}")
    if aligned := metrics.get("alignment"):
        st.caption(f"Alignment: {text.plain(figures_sentence(aligned), 300)}")
    if card.paper:
        theirs = f"{text.score(card.paper.hits_at_1)} on {card.paper.dataset}, {card.paper.variant}"
        st.caption(f"The paper reports {theirs} (mean of five runs, 30% of the links as seeds).")


def _sizes(card: cache.RunCard) -> str:
    source, target = (
        f"{palette.MARKS[side]} {text.plain(str(card.sizes[side]['name']), 30)} {card.sizes[side]['entities']:,}" for side in ("source", "target")
    )
    return f"{source} ↔ {target} entities"


def _older(cards: tuple[cache.RunCard, ...]) -> None:
    rows = [{"run": card.run, "data": text.cell(card.dataset), "variant": card.variant, "made": text.moment(card.created)} for card in cards]
    with st.expander(f"{text.count(len(cards), 'older run')}"):
        key = state.widget_key(state.OLDER_RUNS, [card.run for card in cards])
        chosen = components.table(pd.DataFrame(rows), name="older-runs", key=key, on_select="rerun")
        if chosen is None:
            st.caption("Select a row to open the run. All runs are also in the list at the top of the other pages.")
            return
        pages.link(pages.ENTITY, EntityAddress((cards[chosen].run,)), f"Open {text.plain(cards[chosen].run)}", icon=":material/arrow_forward:")
        deleting.offer(cards[chosen].run)


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
    pages.link(pages.IMPORT, ImportAddress(), "Import your own two graphs", icon=":material/upload:")


frame.without_run(pages.HOME, render)
