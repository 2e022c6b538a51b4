"""Review: predicted pairs to accept or reject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import (
    browser_memory,
    cache,
    charts,
    components,
    evidence_table,
    explained,
    facing,
    frame,
    pages,
    queue_filter,
    reviewing,
    side_by_side,
    state,
    text,
)
from app.cache import OpenRun
from app.glossary import explain as term
from app.glossary import probability_term
from app.palette import PLAIN_MARKS
from app.state import Decided, EntityAddress, ExplainAddress, ExportAddress, ReviewAddress, ReviewKind
from engine.data.knowledge_graph import SIDES
from engine.errors import ReviewError, RunError
from engine.explanation import Explanation
from engine.explanation.rivals import compare_with
from engine.explanation.summary import summary_lines
from engine.explore.neighbourhood import Facing
from engine.explore.review_queue import Kind, Open, SampleEstimate, SurePairs, choice_on, estimate_from_sample, marked_pairs, take, take_marked
from engine.reviews import Choice, Decision, ReviewProgress, Verdict, agreement, disagreements, progress, reason_words, snapshot_of
from engine.reviews.decisions import BULK_NOTE, VERDICT_WORDS, same_author
from engine.runs.view import UNCHECKED, Match, PairScore
from engine.util.arrays import IntArray

KINDS: Mapping[ReviewKind, str] = {
    "uncertain": "Uncertain",
    "conflicts": "Conflicts",
    "hierarchy": "Contradictions",
    "sure": "Bulk accept",
    "second": "Second opinion",
    "again": "Look again",
    "sample": "Random sample",
    "decided": "Decided",
}
ABOUT: Mapping[ReviewKind, str] = {
    "uncertain": "Least certain first: probability near 50%; in runs without probabilities, the smallest margin.",
    "conflicts": "Targets that are the best match of several sources, the closest contest first. At most one of these pairs can be correct.",
    "hierarchy": "Mutual best matches that the class hierarchies of the graphs rule out together, first the pair that contradicts most.",
    "sure": "Mutual best matches with a high probability, or in runs without probabilities a large margin, accepted together.",
    "second": "Pairs that others have decided and you have not. A second opinion settles disputes and measures agreement.",
    "again": "Decisions from an earlier version of the data whose evidence has changed. They count until you decide the pair again.",
    "sample": "A random sample of the matches that no known link covers, in the same order for every reviewer, with the scores hidden. Decide 50 or "
    "more to estimate the precision.",
    "decided": "The latest decision of each reviewer on each pair. A skip is listed and does not count as a vote.",
}
BUTTONS: tuple[tuple[Verdict, str, str, str], ...] = (
    ("accept", "Accept", "A", ":material/check:"),
    ("reject", "Reject", "X", ":material/close:"),  # R makes Streamlit run the page again
    ("skip", "Skip", "S", ":material/skip_next:"),
)
UNDO_KEY = "U"
Marked = Mapping[tuple[str, str], Sequence[str]]
"""Pairs to look at again, with the reasons."""
VERDICT_CELLS: Mapping[Verdict, str] = {verdict: f"{mark} {words}" for (verdict, words), mark in zip(VERDICT_WORDS.items(), "✓×–", strict=True)}
DECIDED: Mapping[Decided, str] = {
    "all": "all",
    **dict(VERDICT_WORDS.items()),
    "disputed": "disputed",
    "again": "look again",
}
CANDIDATES = 6  # of the source that can be chosen, the pair's own among them
RIVAL_NEIGHBOURS = 200  # of the shared entity, the largest differences first
CANDIDATES_HELP = (
    "The source's next best candidates with their CSLS. A number key accepts that candidate and rejects the pair above; 0 rejects all that are "
    "listed. Undo takes back the whole choice."
)
CONTRADICTIONS = 6  # listed at a pair
CROSSWISE = "In one graph this pair's class is below that of the other pair; in the other graph it is above it."
DISJOINT = "If this pair is correct, its class is below two classes that one of the graphs declares disjoint."
EVIDENCE = 8  # pairs of neighbours listed
TABLE_HEIGHT = 460  # pixels
REASON_WIDTH = 320


def render(run: OpenRun, address: ReviewAddress) -> None:
    """The page."""
    author = _author(address)
    if author is None:
        return
    with st.sidebar:
        browser_memory.keep_browser()
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        about = ABOUT[address.kind]
        components.choice(
            "Queue", _kinds(run, address), name="kind", value=address.kind, default="uncertain", help=about, clears=("source", "target")
        )
        if address.kind not in ("decided", "sample", "again"):
            key = state.widget_key(state.CHOICE, "known", address.known)
            follow = partial(_ask_about_known, key)
            st.toggle("Include pairs covered by known links", value=address.known, key=key, on_change=follow, help=KNOWN)
    if address.kind == "sample":
        st.caption(about)
    with st.spinner("Ordering the matches…"):
        run.queue.order("uncertain")
    if address.kind == "decided":
        _decided(run, address, author)
    elif address.kind == "sure" and address.source is None:
        reviewing.new_sheet()  # the whole page was loaded: the list may follow
        _sure(run, address, author)
    else:
        _one_by_one(run, address, author)


def _kinds(run: OpenRun, address: ReviewAddress) -> Mapping[ReviewKind, str]:
    """The queues; those of contradictions and of changed evidence only where there are any, or a link asks for it."""
    there: dict[ReviewKind, bool] = {
        "hierarchy": bool(run.queue.alignment.contradictions),
        "again": bool(cache.reviews().look_again(run.card.fingerprint)),
    }
    return {kind: title for kind, title in KINDS.items() if kind == address.kind or there.get(kind, True)}


KNOWN = "Off: pairs that validation or test links already decide are left out. Seed links are always left out."


def _ask_about_known(key: str) -> None:
    state.set_parameter("known", "yes" if st.session_state[key] else None)


# Who reviews


def _author(address: ReviewAddress) -> str | None:
    """The reviewer; where none is known, a field for the name."""
    try:
        author = reviewing.reviewer(address)
    except ReviewError as error:
        components.show_error(error)
        author = None
    if author is None:
        _ask_for_name()
        return None
    return author


def _status(run: OpenRun, author: str, standing: Sequence[Decision], left: int, filtered: ReviewAddress | None = None) -> None:
    """Progress, and who reviews: one line, so that the pair stays in sight on a small screen. ``filtered``: of a queue that can be."""
    with st.container(horizontal=True, vertical_alignment="center"):
        _progress_words(progress(standing, author), standing, left)
        st.markdown(f"Reviewing as **{text.plain(author)}**", width="content")
        if reviewing.signed_in() is None:
            st.button("Change", type="tertiary", key=state.widget_key(state.REVIEW_BUTTON, "name"), on_click=reviewing.forget_name)
        address = ExportAddress((run.card.run,), part="reviewed")
        pages.link(pages.EXPORT, address, "Export accepted pairs", icon=pages.EXPORT.icon)
        if filtered is not None and filtered.kind != "sample":
            queue_filter.choose(run, filtered)


def _same_name(run: OpenRun, author: str) -> None:
    """Two people of one name count as one reviewer, so it is said where that may be; each gets other pairs."""
    if cache.reviews().reviews_elsewhere(run.card.fingerprint, author, browser_memory.browser()):
        change = "" if reviewing.signed_in() else " If that is not you, change your name."
        shared = "Both get different pairs, and their decisions count as one reviewer's."
        words = f"Also reviewing as {text.plain(author)} in another session. {shared}{change}"
        st.warning(words, icon=":material/group:")


def _ask_for_name() -> None:
    key = state.widget_key(state.REVIEWER_NAME, "entered")
    st.text_input(
        "Your name",
        key=key,
        max_chars=80,
        placeholder="stored with each of your decisions",
        width=420,
        on_change=lambda: reviewing.remember_name(st.session_state[key]),
    )
    components.empty_state(
        "Enter your name",
        "Every decision is stored with its reviewer, the time and the run. Use the same name next time, so that your decisions stay together.",
    )


# One pair after the other


@st.fragment
def _one_by_one(run: OpenRun, page: ReviewAddress, author: str) -> None:
    """The pair to be decided. A fragment: a decision redraws this part and nothing else."""
    with components.errors_shown():
        _show_problem()
        address = _with_now(page, "source", "target")
        standing = cache.reviews().standing(run.card.fingerprint)
        left = run.queue.left(standing, author)
        kind: Kind = "uncertain" if address.kind == "decided" else address.kind
        marked = marked_pairs(cache.reviews(), run.queue, author)
        rows = queue_filter.passing(run, address, run.queue.open_rows(kind, left, known=address.known and kind != "sample"))
        _status(run, author, standing, len(marked) if kind == "again" else len(rows), address)
        _same_name(run, author)
        if kind == "sample":
            _estimate_words(estimate_from_sample(run.queue, standing))
        asked = components.asked_pair(run.view, address.source, address.target, exact=True) if address.source or address.target else None
        upcoming = take_marked(cache.reviews(), run.queue, author, list(marked), 2) if kind == "again" else _upcoming(run, author, rows, kind)
        pair = (asked[0].index, asked[1].index) if asked else next(iter(upcoming), None)
        if asked:
            _keep_from_others(run, author, standing, (asked[0].uri, asked[1].uri))
        if pair is None:
            _nothing_left(run, address, author, left)
            return
        _changed_evidence(run, pair, marked)
        if reviewing.was_ignored(pair):
            st.toast("Too soon: this pair had only just appeared, so that key or click was not stored. Decide again.", icon=":material/timer:")
        _pair(run, address, author, pair, blind=kind == "sample")
        if kind != "sample":  # which shows no explanation
            for following in [one for one in upcoming if one != pair][:1]:
                _rival_words(run, *following)  # while the reviewer looks at this one
        reviewing.shown(pair)  # at the very end: clicks are answered only now


def _changed_evidence(run: OpenRun, pair: tuple[int, int], marked: Marked) -> None:
    """Why to look at a pair again that was decided on an earlier version of the data, and how it was decided; nothing for other pairs."""
    source, target = (run.view.graphs[side].uris[end] for side, end in zip(SIDES, pair, strict=True))
    if (source, target) not in marked:
        return
    decisions = cache.reviews().on_pair(run.card.fingerprint, (source, target))
    earlier = "; ".join(f"{VERDICT_CELLS[one.verdict]} by {text.plain(one.author, 40)}, {one.time[:10]}" for one in decisions)
    st.info(f"**Look again**: {reason_words(marked[source, target])}. Earlier decision: {earlier}.", icon=":material/history:")


def _with_now(page: ReviewAddress, *names: str) -> ReviewAddress:
    """The page's address with the filter of this moment, and other parameters that change without the page being loaded again."""
    now = ReviewAddress.read()
    return replace(page, **{name: getattr(now, name) for name in (*queue_filter.NAMES, *names)})


def _upcoming(run: OpenRun, author: str, rows: IntArray, kind: Kind) -> list[tuple[int, int]]:
    """The pair to decide now and the one after it, both kept from other reviewers."""
    first, session = reviewing.to_look_at_again(), browser_memory.browser()
    taken = take(cache.reviews(), run.queue, author, rows, 2, first=first, kind=kind, session=session)
    return [run.queue.indices(row) for row in taken]


def _keep_from_others(run: OpenRun, author: str, standing: Sequence[Decision], pair: tuple[str, str]) -> None:
    """Keep a pair that a link asks for out of the others' queues; where somebody has it on the screen already, say so."""
    if any(one.pair == pair and one.author == same_author(author) for one in standing):
        return
    if not cache.reviews().claim(run.card.fingerprint, author, [pair], second=True, session=browser_memory.browser()):
        st.caption(":material/group: This pair is reserved for another reviewer now. Your decision is stored as a second opinion.")


def _pair(run: OpenRun, address: ReviewAddress, author: str, pair: tuple[int, int], *, blind: bool) -> None:
    """The two entities, the decision, what both say of the same, the rivals; the model's own account is closed until it is asked for.

    Args:
        blind: show nothing of the model's opinion, so that a sample is judged by the facts alone.
    """
    scored = run.view.pair(*pair)
    with st.container(border=True, key="pair_card"):
        _heading(run, scored, blind)
        verdicts = st.container(horizontal=True, vertical_alignment="bottom", key="verdicts")
        left, right = st.columns(2, gap="medium")
        with left:
            side_by_side.values(run, scored.source, scored.target)
        with right:
            faced = side_by_side.neighbours(run, scored.source, scored.target)
        components.other_links(run.view, scored, address.runs)
        _candidates(run, author, scored, blind)
        if not blind and (words := _rival_words(run, *pair)):
            st.caption(words)
    if not blind:
        _claims(run, address, scored)
        _contradicted(run, address, scored)
        _details(run, address, scored, faced)
    with verdicts:  # last: until the whole pair is there, keys find the buttons of the pair before, which is decided already
        _buttons(run, author, scored)


def _details(run: OpenRun, address: ReviewAddress, pair: PairScore, faced: Facing) -> None:
    """What the score is made of, and the two neighbourhoods as a figure; computed and sent once it is opened, and open for the pairs that follow."""
    title = "Details: score breakdown and neighbourhood comparison"
    with components.drawn_when_open(title, state.widget_key(state.REVIEW_DETAILS), icon=":material/balance:") as is_open:
        if not is_open:
            return
        with st.spinner("Explaining the score…"):
            found, reason = _explained(run, pair.source.index, pair.target.index)
        with st.container(horizontal=True):
            components.pair_links(address.runs, pair, "source")
        if found is None:
            st.caption(f":material/info: {text.plain(reason, 400)}")
        else:
            _evidence(found, faced)
        neighbours = EntityAddress(address.runs, "source", pair.source.uri, pair.target.uri)
        facing.neighbourhoods(run, neighbours, pair.source, pair.target)


def _heading(run: OpenRun, pair: PairScore, blind: bool) -> None:
    """Both names, their identifiers, and how sure the run is."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"##### {components.entity_label(pair.source)} ↔ {components.entity_label(pair.target)}", width="content")
        components.verdict_badge(pair.verdict, None if blind else pair.added)
        components.review_badge(run.view, pair)
    ids = " ↔ ".join(f":gray[{text.plain(run.view.graphs[one.side].name, 30)} {text.plain(one.short_id, 50)}]" for one in (pair.source, pair.target))
    if blind:
        st.markdown(ids)
        return
    mutual = pair.rank_from_source == pair.rank_from_target == 1
    rank = "mutual best match" if mutual else f"rank {pair.rank_from_source:,} for the source, {pair.rank_from_target:,} for the target"
    probability = "" if pair.probability is None else f"**{pair.probability:.0%}** {pair.probability_word} · "
    help = term(probability_term(pair.estimated)) if pair.probability is not None else term("CSLS")
    st.markdown(f"{probability}CSLS {text.score(pair.csls)} · {rank} · {ids}", help=help)


def _candidates(run: OpenRun, author: str, pair: PairScore, blind: bool) -> None:
    """The best candidates of the source, each with a key that accepts it and rejects the pair above; and none of them."""
    matches = run.view.matches("source", pair.source.index, CANDIDATES)
    others = [one for one in matches if one.entity != pair.target.index]
    if not others:
        return
    ends, fingerprint = (pair.source.uri, pair.target.uri), run.card.fingerprint
    rejected = choice_on(pair, run.card.run, "reject")
    click = reviewing.token()

    def choice_of(match: Match, verdict: Verdict) -> Choice:
        return Choice(pair.source.uri, match.uri, verdict, run=run.card.run, csls=match.csls, probability=match.probability)

    with st.container(horizontal=True, vertical_alignment="center", key="candidates"):
        st.markdown("**Other candidates:**", width="content", help=CANDIDATES_HELP)
        for number, match in enumerate(others, start=1):
            st.button(
                text.plain(match.label or match.uri, 40) + ("" if blind else f" ({text.score(match.csls)})"),
                shortcut=str(number),
                type="tertiary",
                key=state.widget_key(state.REVIEW_BUTTON, "candidate", number, ends),
                on_click=reviewing.choose,
                args=(fingerprint, [choice_of(match, "accept"), rejected], author, click),
            )
        st.button(
            "None of these",
            shortcut="0",
            type="tertiary",
            key=state.widget_key(state.REVIEW_BUTTON, "none", ends),
            on_click=reviewing.choose,
            args=(fingerprint, [rejected, *(choice_of(one, "reject") for one in others)], author, click),
        )


def _rival_words(run: OpenRun, source: int, target: int) -> str:
    """What most favours the closest other candidate of the source; "" where there is none, or the run cannot explain."""

    def compute() -> str:
        try:
            found = compare_with(run.explainer, source, target, top=RIVAL_NEIGHBOURS)
        except RunError:
            return ""
        if found is None:
            return ""
        rival = f"**{text.plain(found.rival.target.title, 40)}** ({text.minus(f'{-found.total:+.3f}')} CSLS)"
        best = min(found.neighbours, key=lambda one: one.value, default=None)
        if best is None or round(best.value, 3) >= 0:
            return f"Closest other candidate: {rival}. No neighbour favours it."
        along = text.plain(charts.edge_words(best.edges), 60)
        return f"Closest other candidate: {rival}. In its favour: {along} {text.plain(best.entity.title, 40)}, {-best.value:+.3f} against this pair."

    return cache.kept_of_pair([run], ("review rival", str(source), str(target)), compute)


def _claims(run: OpenRun, address: ReviewAddress, pair: PairScore) -> None:
    """All sources that compete for the pair's target, so that a claim is judged beside its rivals; nothing where there is one claim only."""
    rows = run.queue.claims(pair.target.index)
    if len(rows) < 2:
        return
    places = [place for place, row in enumerate(rows.tolist()) if run.queue.indices(row)[0] == pair.source.index]
    others = len(rows) - len(places)
    words = f"**Competing sources**: this target is the best match of {text.count(others, 'other entity', 'other entities')}."
    table = run.queue.alignment.described(rows)
    shown = pd.DataFrame(
        {
            "": ["this pair" if place in places else "" for place in range(len(rows))],
            f"{PLAIN_MARKS['source']} source": [text.cell(run.queue.title("source", uri)) for uri in table["source_uri"]],
            "source id": [text.cell(uri) for uri in table["source_uri"]],
            "CSLS": table["csls"],
            "probability": table["probability"],
            "verdict": [components.verdict_cell(verdict) for verdict in table["verdict"]],
            "review": [_review_cell(run, source, target) for source, target in zip(table["source_uri"], table["target_uri"], strict=True)],
        }
    )
    row = components.table(
        shown.dropna(axis=1, how="all"),
        name="claims",
        above=lambda: st.markdown(words),
        key=state.widget_key(state.REVIEW_TABLE, "claims", pair.source.uri, pair.target.uri),
        on_select="rerun",
        light=True,
        columns={
            "": st.column_config.TextColumn(width=82),
            "CSLS": st.column_config.NumberColumn(format="%.3f"),
            "probability": st.column_config.NumberColumn(run.view.probability_word, format="%.3f"),
        },
    )
    if row is not None and row not in places:
        source, target = run.queue.pair(int(rows[row]))
        rival = replace(address, source=source, target=target)
        pages.link(pages.REVIEW, rival, f"Review {text.plain(run.queue.title('source', source), 40)} instead", icon=LOOK)


def _contradicted(run: OpenRun, address: ReviewAddress, pair: PairScore) -> None:
    """The matches that this pair contradicts by the class hierarchies, each with a link; nothing where there are none."""
    row = run.queue.row((pair.source.uri, pair.target.uri))
    found = [] if row is None else run.queue.contradicted_by(row)
    if not found:
        return
    st.markdown("**Contradictions**: the class hierarchies rule out that all of these pairs are correct.", help=term("contradiction"))
    for other, reason in found[:CONTRADICTIONS]:
        if other == row:
            st.markdown(f"- {DISJOINT}")
            continue
        source, target = run.queue.pair(other)
        words = f"{text.plain(run.queue.title('source', source), 60)} ↔ {text.plain(run.queue.title('target', target), 60)}"
        st.markdown(f"- {CROSSWISE if reason == 'crosswise' else DISJOINT}")
        pages.link(pages.REVIEW, replace(address, source=source, target=target), f"Review {words}", icon=LOOK)
    if len(found) > CONTRADICTIONS:
        st.caption(f"{text.count(len(found) - CONTRADICTIONS, 'more contradiction')}.")


def _review_cell(run: OpenRun, source: str, target: str) -> str:
    found = snapshot_of(run.card.fingerprint, cache.reviews().on_pair(run.card.fingerprint, (source, target))).pairs
    return found[0].outcome if found else ""


def _explained(run: OpenRun, source: int, target: int) -> tuple[Explanation | None, str]:
    """A pair's explanation; None and the reason where the run cannot explain."""
    try:
        return explained.explanation(run, source, target, "all"), ""
    except RunError as error:  # without weights, or with such as do not fit: the pair can be decided all the same
        return None, text.without_places(str(error))


def _buttons(run: OpenRun, author: str, pair: PairScore) -> None:
    ends = pair.source.uri, pair.target.uri
    note = state.widget_key(state.REVIEW_NOTE, run.card.fingerprint, ends)
    click = reviewing.token()
    for verdict, label, shortcut, icon in BUTTONS:
        st.button(
            label,
            icon=icon,
            shortcut=shortcut,
            key=state.widget_key(state.REVIEW_BUTTON, verdict, ends),
            on_click=reviewing.decide,
            args=(run.card.fingerprint, [choice_on(pair, run.card.run, verdict)], author, click, note),
        )
    _undo_button(run, author, click)
    st.text_input("Note", key=note, max_chars=2000, placeholder="kept with the decision", width=320, label_visibility="collapsed")


def _undo_button(run: OpenRun, author: str, click: str) -> None:
    st.button(
        "Undo",
        icon=":material/undo:",
        shortcut=UNDO_KEY,
        type="tertiary",
        key=state.widget_key(state.REVIEW_BUTTON, "undo", author),
        on_click=reviewing.undo,
        args=(run.card.fingerprint, author, click),
        help="Withdraws your last decision; the history keeps both.",
    )


def _evidence(found: Explanation, faced: Facing) -> None:
    """What the score is made of in a few lines, and the neighbours that contribute the most."""
    components.labelled_lines(summary_lines(found, faced))
    for note in found.notes:
        st.caption(f":material/info: {text.plain(note, 400)}")
    pairs = found.neighbours.supporting[:EVIDENCE]
    if not pairs:
        st.markdown("No pair of neighbours supports the match.")
        return
    st.markdown(f"**Supporting evidence**: the {len(pairs)} strongest pairs of neighbours.")
    evidence_table.table(found, pairs, name="review-evidence")


def _progress_words(found: ReviewProgress, standing: Sequence[Decision], left: int) -> None:
    """How much is decided, how fast, and how far reviewers agree."""
    shared = agreement(standing)
    parts = [f"**{left:,}** left here", f"**{found.mine:,}** decided by you", f"**{found.pairs:,}** by all"]
    if found.pace is not None:
        parts.append(f"{found.pace:.1f} per minute")
    help = f"Current decisions: {found.accepted:,} accepted, {found.rejected:,} rejected, {found.skipped:,} skipped. "
    if shared.share is not None:
        parts.append(f"agreement {text.percent(shared.share)}")
        alpha = "" if shared.alpha is None else f" Krippendorff's alpha is {shared.alpha:.2f}."
        help += f"Reviewers agree on {shared.unanimous:,} of the {shared.pairs:,} pairs that several have decided.{alpha}"
    st.markdown(" · ".join(parts), help=help, width="content")


def _estimate_words(found: SampleEstimate) -> None:
    """How many matches are right, as far as the sample is reviewed."""
    st.info(text.plain(found.sentence(), 600), icon=":material/casino:")
    for note in found.notes():
        st.caption(text.plain(note, 400))


def _nothing_left(run: OpenRun, address: ReviewAddress, author: str, left: Open) -> None:
    st.session_state.pop(state.REVIEW_CLICK, None)
    known = len(run.queue.open_rows("uncertain", left, known=True))
    if queue_filter.is_set(address) and address.kind != "sample":
        components.empty_state("No pair passes the filter", "Every such pair is decided, skipped by you, or being reviewed by someone else.")
    elif address.kind == "second":
        components.empty_state("No second opinion is needed", "You have decided every pair of this run that others have decided.")
    elif address.kind == "again":
        components.empty_state(
            "Nothing to look at again", "No carried-over decision has changed evidence, or all of these pairs have been decided again."
        )
    elif address.kind == "sample":
        components.empty_state("Nothing left to decide", "Every pair of the sample is decided, skipped by you, or being reviewed by someone else.")
    elif not address.known and known:
        words = f"Every pair here is decided, skipped by you, or being reviewed by someone else. Known links cover {known:,} more."
        components.empty_state("Nothing left to decide", words)
    else:
        components.empty_state("Nothing left to decide", "Every pair here is decided, skipped by you, or being reviewed by someone else.")
    st.markdown("Train with these decisions:")
    st.code(f"python -m engine train FOLDER --variant {run.card.variant} --with-reviews", language=None, wrap_lines=True)
    _undo_button(run, author, reviewing.token())


def _show_problem() -> None:
    if (problem := reviewing.problem()) is not None:
        components.show_error(problem)
    if (notice := reviewing.notice()) is not None:
        st.info(text.plain(notice, 1200), icon=":material/info:")


# Many at once


@st.fragment
def _sure(run: OpenRun, page: ReviewAddress, author: str) -> None:
    with components.errors_shown():
        _show_problem()
        asked = ReviewAddress.read().threshold
        threshold = run.queue.default_threshold if asked is None else asked
        standing = cache.reviews().standing(run.card.fingerprint)
        _threshold(run, threshold)
        address = _with_now(page)
        rows = queue_filter.passing(run, address, run.queue.sure_pairs(run.queue.left(standing, author), threshold, known=page.known).rows)
        found = SurePairs(rows, run.queue.expected_wrong(rows))
        _status(run, author, standing, len(found.rows), address)
        if not len(found.rows):
            components.empty_state("No undecided pair is above the threshold", "Lower the threshold, or decide the uncertain pairs one by one.")
            _undo_button(run, author, reviewing.token())
            return
        st.markdown(_expectation(run, len(found.rows), found.expected_wrong))
        if len(found.rows) > reviewing.AT_ONCE:
            score = run.view.probability_word if run.queue.alignment.calibrated else "CSLS margin"
            st.caption(f"The {reviewing.AT_ONCE} pairs with the highest {score} are listed. The others follow when these are decided.")
        basis = repr((run.card.run, run.card.created, author, threshold, page.known, *(getattr(address, name) for name in queue_filter.NAMES)))
        sheet = reviewing.sheet(basis, lambda: [run.queue.pair(row) for row in found.rows[: reviewing.AT_ONCE].tolist()])
        _bulk(run, author, sheet, set(found.rows.tolist()))


def _threshold(run: OpenRun, threshold: float) -> None:
    calibrated, estimated = run.queue.alignment.calibrated, run.view.unchecked_probabilities
    key = state.widget_key(state.THRESHOLD, threshold)
    st.number_input(
        f"Minimum {run.view.probability_word}" if calibrated else "Minimum CSLS margin over the runner-up",
        value=threshold,
        step=0.01,
        format="%.2f",
        key=key,
        width=280,
        on_change=lambda: state.set_parameter(state.THRESHOLD, f"{st.session_state[key]:g}"),
        help=term(probability_term(estimated) if calibrated else "margin"),
    )


def _expectation(run: OpenRun, count: int, wrong: float | None) -> str:
    pairs = text.count(count, "pair")
    if wrong is None:
        return f"**{pairs}**. This run has no probabilities, so the number of errors is unknown: check some pairs before you accept them."
    if run.view.unchecked_probabilities:
        return f"**{pairs}**, **{_about(wrong)}** estimated errors. {UNCHECKED}"
    return f"**{pairs}**, **{_about(wrong)}** expected errors (by the probabilities)."


def _about(wrong: float) -> str:
    return f"about {wrong:.1f}" if wrong >= 0.05 else "under 0.1"


def _bulk(run: OpenRun, author: str, sheet: reviewing.Sheet, left: set[int]) -> None:
    """The pairs, all ticked but those that the reviewer took out before, and one button for those that are.

    Args:
        left: rows of the alignment that can still be accepted together.
    """
    rows = np.array([row for pair in sheet.pairs if (row := run.queue.row(pair)) is not None], dtype=np.int64)
    key = state.widget_key(state.REVIEW_TABLE, sheet.basis, sheet.since, sheet.pairs)
    out = reviewing.unticked(run.card.fingerprint, author)
    ticked: Any = {"selection": {"rows": [place for place, pair in enumerate(sheet.pairs) if pair not in out]}}
    event: Any = st.dataframe(
        _pair_rows(run, rows),
        key=key,
        hide_index=True,
        height=TABLE_HEIGHT if len(rows) > 12 else "auto",
        on_select=partial(reviewing.follow_ticks, run.card.fingerprint, author, sheet.pairs, key),
        selection_mode="multi-row",
        selection_default=ticked,
        column_config={
            **{name: st.column_config.NumberColumn(format="%.3f") for name in ("margin", "CSLS")},
            "probability": st.column_config.NumberColumn(run.view.probability_word, format="%.3f"),
        },
        alt="Table: pairs that can be accepted together",
    )
    if settled := sum(row not in left for row in rows.tolist()):
        st.caption(
            f":material/info: {text.count(settled, 'pair')} of this list {'has' if settled == 1 else 'have'} been decided since and will not change."
        )
    picked = np.array([row for row in rows[[row for row in event["selection"]["rows"] if row < len(rows)]].tolist() if row in left], dtype=np.int64)
    wrong, kind = run.queue.expected_wrong(picked), "estimated" if run.view.unchecked_probabilities else "expected"
    click = reviewing.token()
    with st.container(horizontal=True):
        st.button(
            f"Accept {text.count(len(picked), 'pair')}{'' if wrong is None else f' ({_about(wrong)} errors {kind})'}",
            icon=":material/done_all:",
            disabled=not len(picked),
            key=state.widget_key(state.REVIEW_BUTTON, "bulk", key),
            on_click=reviewing.accept_ticked,
            args=(run.card.fingerprint, [run.queue.choice(row, "accept", BULK_NOTE) for row in rows.tolist()], key, author, click),
        )
        _undo_button(run, author, click)


def _pair_rows(run: OpenRun, rows: IntArray) -> pd.DataFrame:
    table = run.queue.alignment.described(rows)
    shown = {
        "source": [text.cell(label or uri) for label, uri in zip(table["source_label"], table["source_uri"], strict=True)],
        "target": [text.cell(label or uri) for label, uri in zip(table["target_label"], table["target_uri"], strict=True)],
        "source id": [text.cell(uri) for uri in table["source_uri"]],
        "target id": [text.cell(uri) for uri in table["target_uri"]],
        "probability": table["probability"],
        "margin": table["margin"],
        "CSLS": table["csls"],
    }
    return pd.DataFrame(shown).dropna(axis=1, how="all")


# What was decided


@st.fragment
def _decided(run: OpenRun, page: ReviewAddress, author: str) -> None:
    with components.errors_shown():
        _show_problem()
        now = ReviewAddress.read()
        address = replace(page, author=now.author, decided=now.decided)
        standing = cache.reviews().standing(run.card.fingerprint)
        _status(run, author, standing, len(run.queue.open_rows("uncertain", run.queue.left(standing, author))))
        marked = cache.reviews().look_again(run.card.fingerprint)
        _inactive(run)
        if not standing:
            components.empty_state("Nothing decided yet", "Decisions on this data set appear here, whichever run they were made in.")
            return
        _filters(address, standing, marked)
        chosen = _filtered(standing, address, marked)
        if not chosen:
            st.markdown("No decision passes these filters.")
            return
        _decision_table(run, address, author, chosen, marked)


def _inactive(run: OpenRun) -> None:
    """Decisions from earlier versions of the data that have no effect, since an entity is gone; nothing where there are none."""
    found = cache.reviews().inactive(run.card.fingerprint)
    if not found:
        return
    with st.expander(f"{text.count(len(found), 'decision')} without effect: an entity is no longer in the data", icon=":material/block:"):
        rows = [{"gone": f"{gone} is gone", **_decision_row(run, decision)} for decision, gone in found]
        components.table(
            pd.DataFrame(rows).dropna(axis=1, how="all"), name="inactive", key=state.widget_key(state.REVIEW_TABLE, "inactive", len(found))
        )


def _filters(address: ReviewAddress, standing: Sequence[Decision], marked: Marked) -> None:
    verdicts = {one: words for one, words in DECIDED.items() if one != "again" or marked or address.decided == "again"}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        components.choice("Verdict", verdicts, name="decided", value=address.decided, default="all")
        authors = sorted({decision.author for decision in standing})
        key = state.widget_key(state.AUTHOR, address.author, authors)
        st.selectbox(
            "Reviewer",
            authors,
            index=authors.index(address.author) if address.author in authors else None,
            key=key,
            placeholder="all reviewers",
            width=280,
            on_change=lambda: state.set_parameter(state.AUTHOR, st.session_state[key]),
        )


def _filtered(standing: Sequence[Decision], address: ReviewAddress, marked: Marked) -> list[Decision]:
    """Newest first."""
    of_kind = set(disagreements(standing)) if address.decided == "disputed" else set(marked) if address.decided == "again" else set()
    return [
        decision
        for decision in reversed(standing)
        if address.author in (None, decision.author) and (address.decided in ("all", decision.verdict) or decision.pair in of_kind)
    ]


def _decision_table(run: OpenRun, address: ReviewAddress, author: str, decisions: Sequence[Decision], marked: Marked) -> None:
    key = state.widget_key(state.REVIEW_TABLE, author, address.author, address.decided, [decision.number for decision in decisions])
    words = f"{_decision_counts(decisions)}, newest first. Select a row to review the pair again or to undo the decision."
    rows = pd.DataFrame([_decision_row(run, decision) for decision in decisions])
    if any(decision.pair in marked for decision in decisions):
        rows.insert(list(rows.columns).index("verdict") + 1, "look again", [reason_words(marked.get(decision.pair, ())) for decision in decisions])
    row = components.table(
        rows,
        name="decisions",
        above=lambda: st.caption(words),
        key=key,
        on_select="rerun",
        columns={
            **{name: st.column_config.NumberColumn(format="%.3f") for name in ("CSLS then", "probability then")},
            "look again": st.column_config.TextColumn(width=REASON_WIDTH),
        },
        height=TABLE_HEIGHT if len(decisions) > 12 else "auto",
    )
    if row is None:
        return
    decision = decisions[row]
    with st.container(horizontal=True, vertical_alignment="center"):
        source, target = decision.pair
        pages.link(pages.REVIEW, ReviewAddress(address.runs, reviewer=address.reviewer, source=source, target=target), "Review again", icon=LOOK)
        pages.link(pages.EXPLAIN, ExplainAddress(address.runs, source=source, target=target), "Explain score", icon=":material/balance:")
        if decision.author == author:
            st.button(
                "Undo this decision",
                icon=":material/undo:",
                key=state.widget_key(state.REVIEW_BUTTON, "withdraw", decision.number),
                on_click=partial(reviewing.withdraw, run.card.fingerprint, decision.number, author, reviewing.token()),
            )


LOOK = ":material/visibility:"


def _decision_counts(decisions: Sequence[Decision]) -> str:
    """'13 decisions on 11 pairs, and 2 skips': skips decide nothing, and several reviewers may have decided the same pair."""
    decided = [decision for decision in decisions if decision.verdict != "skip"]
    pairs = len({decision.pair for decision in decided})
    words = f"{text.count(len(decided), 'decision')} on {text.count(pairs, 'pair')}"
    skips = len(decisions) - len(decided)
    return f"{words}, and {text.count(skips, 'skip')}" if skips else words


def _decision_row(run: OpenRun, decision: Decision) -> dict[str, object]:
    choice = decision.choice
    return {
        f"{PLAIN_MARKS['source']} source": text.cell(run.queue.title("source", choice.source)),
        f"{PLAIN_MARKS['target']} target": text.cell(run.queue.title("target", choice.target)),
        "source id": text.cell(choice.source),
        "target id": text.cell(choice.target),
        "verdict": VERDICT_CELLS[choice.verdict],
        "reviewer": text.cell(decision.author),
        "note": text.cell(choice.note),
        "time (UTC)": decision.time[:16].replace("T", " "),
        "CSLS then": choice.csls,
        "probability then": choice.probability,
        "run": text.cell(choice.run or ""),
    }


frame.one_run(pages.REVIEW, render)
