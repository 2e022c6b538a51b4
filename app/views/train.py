"""Train: a form with an estimate next to it, the job that is watched, and the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import cache, components, frame, pages, palette, sign_in, state, text
from app.glossary import explain
from app.state import ChangesAddress, CompareAddress, EntityAddress, ExportAddress, ReviewAddress, TrainAddress
from app.training_figures import curve_figure, curve_sentence, curve_table, round_table
from app.training_form import METHOD, advanced, asked_method, assigned, method_choice
from app.update_form import about_parent, carried_over, start_choice
from engine.config import PRESETS, VARIANTS, Preset, RunConfig, Variant
from engine.data.files import folder_state
from engine.data.knowledge_graph import SIDES
from engine.data.library import StoredDataSet, data_sets
from engine.data.splits import ALL_TRAIN_BELOW, OWN_TRAIN_RATIO, WORTH_A_TEST, is_drawn
from engine.errors import ConfigError, EngineError
from engine.evaluation.calibration import LEAST_LINKS, share_to_hold_out
from engine.evaluation.metrics import stored_interval
from engine.evaluation.paper import paper_figure
from engine.importing import expectation
from engine.jobs import (
    DataSummary,
    Job,
    JobQueue,
    News,
    Plan,
    State,
    estimate_plan,
    is_starting,
    plan_training,
    plan_update,
    reachable,
    read_news,
    start_trainer,
    trainer_alive,
)
from engine.pipeline import update_config
from engine.reviews import Snapshot, snapshot_of
from engine.training.estimate import Estimate, check_memory
from engine.util import paths
from engine.util.memory import available_memory
from engine.util.quotas import queue_quota

WATCH_SECONDS = 2.0
LISTED = 8
HELD_OUT = "data.valid_ratio"
TRAIN_RATIO = "data.train_ratio"
DIVISION_WORDS = {
    "all": "All for training: highest accuracy, but no test links to measure it",
    "test": "80% for training, 20% for testing: accuracy is measured, and slightly lower",
}
NEW = "New training run"


@dataclass(frozen=True)
class StateStyle:
    """How a job's state looks: symbol, words, colour."""

    icon: str
    word: str
    colour: components.BadgeColour


STATES: dict[State, StateStyle] = {
    "queued": StateStyle(":material/hourglass_top:", "queued", "gray"),
    "running": StateStyle(":material/play_arrow:", "training", "blue"),
    "stopping": StateStyle(":material/pause:", "stopping", "yellow"),
    "finished": StateStyle(":material/check:", "finished", "green"),
    "stopped": StateStyle(":material/stop:", "stopped early", "yellow"),
    "failed": StateStyle(":material/error:", "failed", "red"),
    "lost": StateStyle(":material/warning:", "worker lost", "red"),
    "cancelled": StateStyle(":material/close:", "cancelled", "gray"),
}
VARIANT_WORDS: dict[Variant, str] = {
    "basic": "structure only",
    "semi": "also trains on its own predictions",
    "literal": "semi, with names and values",
}

PRESET_WORDS: dict[Preset, str] = {
    "full": "highest accuracy",
    "fast": "two thirds of the time, Hits@1 about 1 point lower",
}


def render(runs: cache.RunList) -> None:
    """The page."""
    address = TrainAddress.read()
    queue = JobQueue(cache.models_folder())
    jobs = queue.jobs()
    watched = queue.find(address.job) if address.job else None
    active = any(job.active for job in jobs)
    above = st.container()
    st.fragment(_watch, run_every=WATCH_SECONDS if active else None)(address, watched.id if watched else None, active)
    with above if watched is None else st.expander(NEW, icon=":material/add:"):
        try:
            _form(runs, replace(address, job=None), jobs)
        except EngineError as error:  # next to the form, so that the queue is shown all the same
            components.show_error(error)


# The queue and the job that is watched


def _watch(address: TrainAddress, watched: str | None, was_active: bool) -> None:
    """What changes by itself: redrawn every other second while a job is running."""
    queue = JobQueue(cache.models_folder())
    try:
        jobs = queue.jobs()
        job = queue.find(watched) if watched else None
    except EngineError as error:
        components.show_error(error)
        return
    if was_active and not any(one.active for one in jobs):
        _again(watched)  # the rest of the page says other things now, and nothing more is to be watched
    if job is not None:
        _job(job, queue)
    _list(jobs, address)
    _no_trainer(queue, jobs, watched)


def _again(watched: str | None) -> NoReturn:
    """Redraw the whole page, for the same job, whatever the browser's address bar says by now."""
    state.set_parameter(state.JOB, watched)
    st.rerun()


def _list(jobs: Sequence[Job], address: TrainAddress) -> None:
    st.subheader("Queue", anchor=False)
    if not jobs:
        st.caption("The queue is empty. One job runs at a time; further jobs wait here.")
    for job in jobs[:LISTED]:
        style = STATES[job.state]
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            place = f"{job.position}. " if job.position else ""
            st.badge(f"{place}{style.word}", icon=style.icon, color=style.colour)
            kind = " · update" if job.parent else ""
            label = f"{text.plain(job.dataset, 40)} · {job.variant} · random seed {job.seed}{kind}"
            pages.link(pages.TRAIN, TrainAddress(address.runs, job=job.id), label)
            who = f"{text.plain(job.who, 40)} · " if job.who else ""
            st.caption(f"{text.plain(job.run_id)} · {who}{text.age(job.ended or job.submitted)}")
    if len(jobs) > LISTED:
        st.caption(f"and {text.count(len(jobs) - LISTED, 'older job')}; `python -m engine queue` lists all.")


def _no_trainer(queue: JobQueue, jobs: Sequence[Job], watched: str | None) -> None:
    """Trainings wait and no trainer lives."""
    if not any(job.state == "queued" for job in jobs) or trainer_alive(queue.models):
        return
    if is_starting(queue.models):
        st.caption(":material/hourglass_top: Starting the worker, which takes a few seconds…")
        return
    st.warning("Jobs are queued, but no worker is running.", icon=":material/warning:")
    if st.button("Start worker", key=state.widget_key(state.JOB_BUTTON, "start")):
        _try(lambda: start_trainer(queue.models), watched)


def _job(job: Job, queue: JobQueue) -> None:
    """A job: its state, its progress, its actions."""
    style = STATES[job.state]
    with st.container(border=True, key="watched_job"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"##### {text.plain(job.dataset, 60)}")
            st.badge(text.plain(job.variant, 20), color=palette.BADGES.get(job.variant, "gray"))
            st.badge(style.word, icon=style.icon, color=style.colour)
        asked = f" by {text.plain(job.who, 40)}" if job.who else ""
        updated = f" · update of {text.plain(job.parent, 80)}" if job.parent else ""
        st.caption(f"{text.plain(job.run_id)} · random seed {job.seed}{updated} · submitted {text.age(job.submitted)}{asked}")
        news = read_news(queue.models, job.id)
        if job.active:
            _running(job, news)
        else:
            _how_it_ended(job)
        _buttons(job, queue)
        if news is not None and news.points:
            _curve(job, news)


def _running(job: Job, news: News | None) -> None:
    if job.state == "queued":
        st.markdown(f"Number {job.position} in the queue. You can close this page; the job keeps its place.")
    elif news is None or not news.phase:
        st.markdown("The worker is starting…")
    elif not news.epochs:
        st.progress(0.0, text=f"{text.plain(news.detail, 200)} – the first training on a machine spends up to a minute on compiling")
    else:
        left = "" if news.remaining is None else f" · about {text.duration(news.remaining)} left"
        st.progress(min(news.epoch / news.epochs, 1.0), text=f"Epoch {news.epoch:,} of {news.epochs:,}{left}")
        st.caption(f"{text.plain(news.detail, 200)}. You can close this page; training continues. This link shows the job again.")
    for note in news.notes if news is not None else ():
        st.caption(text.plain(note, 400))


def _how_it_ended(job: Job) -> None:
    if job.message:
        show = {"failed": st.error, "lost": st.error}.get(job.state, st.info)
        message = text.without_places(job.message)
        show(text.plain(message[:1].upper() + message[1:], 1500))
    if not job.run:
        return
    runs = cache.list_runs(cache.models_folder())
    card = next((card for card in runs.cards if card.run == job.run), None)
    if card is None:
        st.caption(f"Run {text.plain(job.run)} is not listed yet, or was deleted.")
        return
    if card.metrics:
        measured = card.metrics["target_to_source"]
        found = stored_interval(measured, "hits@1", card.links.get("test", 0))
        of = f"95% interval {text.score(found[0][0])}–{text.score(found[0][1])}, n = {found[1]:,}" if found else None
        st.metric("Hits@1, target to source", text.score(measured["hits@1"]), delta=of, delta_color="off", delta_arrow="off", help=explain("Hits@1"))
    else:
        st.caption("Accuracy not measured: no test links. Review a random sample of the matches to estimate it.")
        components.measure_by_sample(card.run)
    with st.container(horizontal=True):
        pages.link(pages.ENTITY, EntityAddress((card.run,)), "Open run", icon=":material/arrow_forward:")
        pages.link(pages.REVIEW, ReviewAddress((card.run,)), "Review matches", icon=pages.REVIEW.icon)
        pages.link(pages.EXPORT, ExportAddress((card.run,)), "Export", icon=pages.EXPORT.icon)
        if card.parent:
            pages.link(pages.CHANGES, ChangesAddress((card.run,)), "Show what changed", icon=pages.CHANGES.icon)
        together = cache.a_run_a_variant(runs.of_same_data(card), [card])
        if len(together) > 1:
            address = CompareAddress(tuple(one.run for one in together))
            pages.link(pages.COMPARE, address, f"Compare {text.count(len(together), 'run')}", icon=":material/compare_arrows:")


def _buttons(job: Job, queue: JobQueue) -> None:
    with st.container(horizontal=True):
        if job.state == "queued" and st.button("Cancel", icon=":material/close:", key=state.widget_key(state.JOB_BUTTON, job.id, "cancel")):
            _try(lambda: queue.cancel(job.id), job.id)
        words = "The progress is kept as a run, and the job can be resumed."
        stop = state.widget_key(state.JOB_BUTTON, job.id, "stop")
        if job.state == "running" and st.button("Stop training", icon=":material/stop:", key=stop, help=words):
            _try(lambda: queue.stop(job.id), job.id)
        resume = state.widget_key(state.JOB_BUTTON, job.id, "resume")
        if job.resumable and st.button("Resume", icon=":material/resume:", key=resume, help="Continue from the last checkpoint."):
            _try(lambda: (queue.resume(job.id, most_waiting=queue_quota()), start_trainer(queue.models)), job.id)


def _try(change: Callable[[], object], watched: str | None) -> None:
    """Do what a button says, then show the new state; or say why it cannot be done."""
    try:
        change()
    except EngineError as error:
        components.show_error(error)
        return
    _again(watched)


def _curve(job: Job, news: News) -> None:
    components.figure(
        curve_figure(news, job.variant),
        name=f"{job.run_id}-curve",
        title="Training curve",
        caption=curve_sentence(news, over=not job.active, measured=bool(job.sizes.valid)),
        data=curve_table(news.points),
        height=420 if any(point.hits_at_1 is not None for point in news.points) else 260,
        key=f"curve-{job.id}",
        runs=[f"{job.dataset}/{job.run_id}"],
    )
    st.caption("The loss is normalised and may rise while accuracy improves. It is not a measure of quality.")
    if news.rounds:
        share = st.column_config.NumberColumn(
            format="percent", help="Share of correct pairs among those that test links decide (unseen in training)."
        )
        components.table(round_table(news.rounds), name=f"{job.run_id}-rounds", columns={"right": share})


# The form


def _form(runs: cache.RunList, address: TrainAddress, jobs: Sequence[Job]) -> None:
    if not runs.cards:
        st.markdown("There are no runs yet. The first training makes one.")
    found = {one.name: one for one in data_sets()}
    if not found:
        components.empty_state("No data set to train on", "Import two graphs and some known links first.")
        return
    if address.data is not None and address.data not in found:
        raise ConfigError(f"There is no data set '{address.data[:60]}'. Choose one from the list.")
    of_runs = (run.rpartition("/")[0] for run in state.asked_runs())
    data = found[address.data or next((name for name in of_runs if name in found), next(iter(found)))]
    if address.start is not None:
        _update_form(runs, found, data, address, jobs)
        return
    first = _first_variant(data, address.seed)
    variant = address.variant or (first if asked_method(address.settings) == "none" else "basic")
    form, card = st.columns([2, 1], gap="large")
    with form:
        base = _settings(runs, found, data, address, variant, first)
        divided = st.container()  # filled when it is known how many links there are
    with card, st.container(border=True, key="outlook"):
        try:
            config = reachable(base.with_assignments(address.settings), (data.path, *paths.import_folders()))
            summary = _summary(data, config, address, divided)
            plan = plan_training(summary, config, cache.models_folder())
            with divided:
                _division(summary, address)
                _held_out(plan, address)
            _outlook(runs, summary, plan)
            _start(address, plan, jobs, _refused(data, plan))
        except EngineError as error:
            components.show_error(error)


def _update_form(runs: cache.RunList, found: dict[str, StoredDataSet], data: StoredDataSet, address: TrainAddress, jobs: Sequence[Job]) -> None:
    """The form where training starts from a run on an earlier version of the data: the settings are the run's own."""
    form, card = st.columns([2, 1], gap="large")
    with form:
        _data_choice(found, data)
        start_choice(runs, data, address)
        parent = cache.open_listed(address.start or "")
        base = update_config(parent.run, data.path)
        about_parent(parent)
        _advanced(address, base, expanded=bool(address.settings))
    with card, st.container(border=True, key="outlook"):
        try:
            chosen = update_config(parent.run, data.path, assignments=address.settings)
            config = reachable(chosen, (data.path, *paths.import_folders()))
            update = cache.update_summary(parent, data.path, folder_state(data.path), config)
            plan = plan_update(update, config, cache.models_folder())
            carried_over(update, [components.graph_name(parent.view, side) for side in SIDES])
            _outlook(runs, update.data, plan)
            _start(address, plan, jobs, what="update")
        except EngineError as error:
            components.show_error(error)


def _settings(
    runs: cache.RunList, found: dict[str, StoredDataSet], data: StoredDataSet, address: TrainAddress, variant: Variant, first: Variant
) -> RunConfig:
    """The choices; returns the settings of the variant and the preset, before those of the address."""
    _basics(found, data, address)
    start_choice(runs, data, address)
    method = method_choice(address)
    if method == "none":
        names, help = {one: str(one) for one in VARIANT_WORDS}, explain(*VARIANTS)
        components.choice("Variant", names, name="variant", value=variant, default=first, help=help, captions=VARIANT_WORDS)
        preset_help = "Fast: fewer epochs, and fewer candidate entities per step. Both can be set below."
        efforts = {one: str(one) for one in PRESET_WORDS}
        components.choice("Training effort", efforts, name="preset", value=address.preset, default="full", help=preset_help, captions=PRESET_WORDS)
    base = RunConfig(variant=variant, seed=address.seed).with_values({**PRESETS[address.preset], METHOD: method})
    base = base.with_assignments(f"{key}={value}" for key, value in data.settings.items())
    _advanced(address, base, expanded=bool(set(assigned(address.settings)) - {METHOD}))
    return base


def _advanced(address: TrainAddress, base: RunConfig, *, expanded: bool) -> None:
    with components.drawn_when_open("Advanced settings", state.widget_key(state.ADVANCED), icon=":material/tune:", expanded=expanded) as is_open:
        if is_open:
            advanced(address, base)


def _first_variant(data: StoredDataSet, seed: int) -> Variant:
    """The variant that is offered first; where no record says how many links there are, the data are read for it."""
    if data.links is not None:
        return data.first_variant
    try:
        config = RunConfig(seed=seed).with_assignments(f"{key}={value}" for key, value in data.settings.items())
        sizes = cache.data_summary(data.path, folder_state(data.path), config.data, seed).sizes
    except EngineError:  # which is shown where the data are needed
        return data.first_variant
    return replace(data, links=sizes.train + sizes.valid + sizes.test).first_variant


def _refused(data: StoredDataSet, plan: Plan) -> str:
    """Why this variant cannot train on this data, if so: a question without seed links alone."""
    return "" if plan.sizes.train else cache.refusal(data.path, folder_state(data.path), plan.config, plan.reviews)


def _data_choice(found: dict[str, StoredDataSet], data: StoredDataSet) -> None:
    components.select(
        "Data set",
        {name: text.cell(name, 60) for name in found},
        name=state.TRAIN_FORM,
        parts=("data",),
        value=data.name,
        on_choose=lambda chosen: state.set_parameters({"data": chosen, state.JOB: None, state.SETTING: None}),
    )


def _basics(found: dict[str, StoredDataSet], data: StoredDataSet, address: TrainAddress) -> None:
    choice, seed = st.columns([3, 1])
    with choice:
        _data_choice(found, data)
    seed_key = state.widget_key(state.TRAIN_FORM, "seed", address.seed)
    seed.number_input(
        "Random seed",
        min_value=0,
        max_value=2**31 - 1,
        value=min(max(address.seed, 0), 2**31 - 1),
        key=seed_key,
        on_change=lambda: state.set_parameter("seed", str(st.session_state[seed_key]) if st.session_state[seed_key] else None),
        help="Determines the split, the initial weights and the batches. Runs with different random seeds show the variation of the method.",
    )


def _summary(data: StoredDataSet, config: RunConfig, address: TrainAddress, form: DeltaGenerator) -> DataSummary:
    """The data set, with what reviewers decided of it where that is wanted; ``form`` is where that is chosen."""
    asked = data.path, folder_state(data.path), config.data, config.seed
    found = cache.data_summary(*asked)
    reviews = snapshot_of(found.fingerprint, cache.reviews().standing(found.fingerprint))
    if not (reviews.accepted or reviews.rejected):
        return found
    with form:
        _reviews_asked_for(reviews, address)
    return cache.data_summary(*asked, reviews.digest, reviews) if address.reviews else found


def _reviews_asked_for(reviews: Snapshot, address: TrainAddress) -> None:
    key = state.widget_key(state.TRAIN_FORM, "reviews", address.reviews)
    st.toggle(
        f"Train with reviews: {len(reviews.accepted):,} accepted, {len(reviews.rejected):,} rejected",
        value=address.reviews,
        key=key,
        on_change=lambda: state.set_parameter("reviews", "yes" if st.session_state[key] else None),
        help="Accepted pairs become seed links, rejected pairs are never selected, and reviewed pairs are not used for testing. Decisions "
        "made after the "
        "start are not included.",
    )


def _division(data: DataSummary, address: TrainAddress) -> None:
    """What is done with known links of a user's own that no file divides; a question where all and most of them are both reasonable."""
    sizes = data.sizes
    known = sizes.train + sizes.valid + sizes.test
    if not sizes.own_links or not is_drawn(data.split):
        return
    if known < WORTH_A_TEST:
        if known and not sizes.test:
            st.caption(
                f"All {text.count(known, 'known link')} are used for training: too few to hold some out for testing. "
                "Review a random sample of the matches to estimate accuracy."
            )
        return
    default = "all" if known < ALL_TRAIN_BELOW else "test"
    shares = {"all": "1", "test": f"{OWN_TRAIN_RATIO:g}"}
    others = [one for one in address.settings if not one.startswith(f"{TRAIN_RATIO}=")]
    asked = assigned(address.settings).get(TRAIN_RATIO, shares[default])
    now = next((name for name, share in shares.items() if share == asked), None)
    key = state.widget_key(state.TRAIN_FORM, "division", address)

    def follow() -> None:
        chosen = st.session_state[key]
        kept = others if chosen == default else [*others, f"{TRAIN_RATIO}={shares[chosen]}"]
        state.set_parameter(state.SETTING, kept or None)

    st.radio(
        f"Use of the {known:,} known links",
        list(shares),
        index=None if now is None else list(shares).index(now),
        format_func=DIVISION_WORDS.__getitem__,
        key=key,
        on_change=follow,
        help="Without test links, Hits@1 cannot be computed. Review a random sample of the matches instead.",
    )


def _outlook(runs: cache.RunList, summary: DataSummary, plan: Plan) -> None:
    """What to expect before it starts: time, memory, accuracy."""
    st.subheader("Estimate", anchor=False)
    sizes = plan.sizes
    with st.spinner("Measuring the speed of this machine…"):
        found = estimate_plan(plan, cache.models_folder())
    links = f"{text.count(sizes.train, 'seed link')}, {sizes.valid:,} validation and {text.count(sizes.test, 'test link')}"
    st.markdown(f"{sizes.entities[0]:,} and {sizes.entities[1]:,} entities with {text.count(sum(sizes.triples), 'triple')}; {links}.")
    with st.container(horizontal=True, gap="small"):
        spread = f"{text.duration(found.low)} to {text.duration(found.high)}"
        st.metric("Time", text.duration(found.seconds), delta=spread, delta_color="off", delta_arrow="off", help=_time_words(found))
        free = available_memory()
        st.metric(
            "Memory", f"{found.memory / 1024:.1f} GiB", delta=f"{free / 1024:.1f} GiB free" if free else None, delta_color="off", delta_arrow="off"
        )
    if found.compiling:
        st.caption(f"The time includes about {text.duration(found.compiling)} to compile kernels, once on this machine.")
    st.caption(_accuracy(runs, summary.fingerprint, plan))
    if warning := check_memory(sizes, plan.config, free):
        st.warning(text.plain(warning, 600))


def _held_out(plan: Plan, address: TrainAddress) -> None:
    """Without enough validation links there are no probabilities: say so, and offer to hold some seed links out, if there are any."""
    if not plan.sizes.train + plan.sizes.valid + plan.sizes.test:
        st.caption("Without known links, only the literal variant can give probabilities. They are estimated: no link checks them.")
        return
    now = plan.config.data.valid_ratio
    held_out = plan.sizes.valid + (plan.sizes.test if plan.sizes.own_links else 0)
    if held_out >= LEAST_LINKS or (plan.sizes.valid and not now):  # the data's own ones stay as they are
        return
    share = share_to_hold_out(plan.sizes.train + plan.sizes.valid)
    if share is None or now >= share:
        return
    st.caption(
        f"With fewer than {LEAST_LINKS} validation links, the matches get no checked probabilities, which the pages Pairs, Review and Export use. "
        "Seed links can be held out for validation; fewer then remain for training."
    )
    st.button(
        f"Hold out {text.percent(share)} of the seed links",
        icon=":material/call_split:",
        key=state.widget_key(state.TRAIN_FORM, "hold out", address),
        on_click=state.set_parameter,
        args=(state.SETTING, [*(one for one in address.settings if not one.startswith(f"{HELD_OUT}=")), f"{HELD_OUT}={share:g}"]),
    )


def _time_words(found: Estimate) -> str:
    known = (
        f"corrected by {text.count(found.runs, 'finished run')} on this machine"
        if found.runs
        else "without finished runs on this machine to correct it"
    )
    compiling = f" It includes {text.duration(found.compiling)} to compile kernels, once on this machine." if found.compiling else ""
    return f"Estimate for this machine's CPU, {known}. Other load makes it longer.{compiling} A GPU is usually several times faster."


def _accuracy(runs: cache.RunList, fingerprint: str, plan: Plan) -> str:
    """What is known of the accuracy to expect."""
    sentences = []
    same = [card for card in runs.cards if card.fingerprint == fingerprint and card.variant == plan.config.method and card.metrics]
    if same and same[0].metrics:
        sentences.append(f"The latest {plan.config.method} run on this data has Hits@1 {text.score(same[0].metrics['target_to_source']['hits@1'])}.")
    source, target = ((plan.sizes.entities[side], plan.sizes.triples[side]) for side in (0, 1))
    if (paper := paper_figure(source, target, plan.config.method)) is not None:
        sentences.append(f"The paper reports {text.score(paper.hits_at_1)} on {paper.dataset} (30% of the links as seeds).")
    if not sentences:
        sentences.append(f"{expectation(plan.sizes.train, min(plan.sizes.entities)).sentence} More triples per entity help as well.")
    return " ".join(sentences)


def _start(address: TrainAddress, plan: Plan, jobs: Sequence[Job], refused: str = "", what: Literal["training", "update"] = "training") -> None:
    """The button, or the run or job of the same settings that there is already."""
    if plan.finished:
        st.info("A run with the same data, settings and random seed already exists.", icon=":material/check:")
        pages.link(pages.ENTITY, EntityAddress((plan.name,)), "Open run", icon=":material/arrow_forward:")
        return
    same = next((job for job in jobs if job.name == plan.name and job.active), None)
    if same is not None:
        st.info(f"This {'update' if plan.parent else 'training run'} is already in the queue.", icon=":material/hourglass_top:")
        pages.link(pages.TRAIN, TrainAddress(address.runs, job=same.id), "Show progress", icon=":material/monitoring:")
        return
    waiting = sum(job.active for job in jobs)
    words = f"Start after {text.count(waiting, 'other job')}" if waiting else f"Start {what}"
    if refused:
        st.warning(text.plain(f"{refused[:1].upper()}{refused[1:]}", 600), icon=":material/warning:")
    key = state.widget_key(state.JOB_BUTTON, "submit", plan.name)
    if st.button(words, icon=":material/play_arrow:", type="primary", width="stretch", key=key, disabled=bool(refused)):
        check_memory(plan.sizes, plan.config, available_memory())
        job = JobQueue(cache.models_folder()).submit(plan, sign_in.user_name() or "", most_waiting=queue_quota()).job
        start_trainer(cache.models_folder())
        pages.go(pages.TRAIN, TrainAddress(address.runs, job=job.id))


frame.without_run(pages.TRAIN, render)
