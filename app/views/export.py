"""Export: which pairs, in which format, and how many of them should be right; everything chosen is in the address."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from app import cache, components, frame, light_table, pages, pair_filters, palette, state, text
from app.cache import OpenRun
from app.glossary import explain, probability_term
from app.state import ExportAddress, PairsAddress, ReviewAddress
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError
from engine.explore.review_queue import estimate_from_sample
from engine.exporting import (
    CANONICAL,
    COLUMNS,
    DECODER_NAMES,
    DECODER_WORDS,
    FORMATS,
    PREDICATES,
    SEARCHING,
    STORED,
    Canonical,
    ExpectedQuality,
    ExportSelection,
    ExportTable,
    FoldOptions,
    Format,
    Groundwork,
    Part,
    Predictions,
    default_decoder,
    export_bytes,
    get_format,
    lay_groundwork,
    pairs_to_export,
    prepare,
    preview_lines,
    reviewed_pairs,
    search_run,
    searched,
    with_fold,
)
from engine.runs.view import UNCHECKED

ROWS = 5  # of the preview
LARGE = 2000  # entities of a graph, from which on searching all of them takes longer than starting a process
LABELS_FIRST = ("source_label", "target_label", "probability", "csls", "verdict")
WIDEST_LINE = 240  # characters of the preview
FIRST = tuple(sorted(COLUMNS, key=lambda name: LABELS_FIRST.index(name) if name in LABELS_FIRST else len(LABELS_FIRST)))
CANONICAL_WORDS: Mapping[Canonical, str] = {"source": "source", "target": "target", "minted": "minted (new)"}
PARTS: Mapping[Part, str] = {"all": "Whole alignment", "reviewed": "Accepted pairs only"}


def render(run: OpenRun, address: ExportAddress) -> None:
    """The page."""
    _alignment(run, address)
    _report(run)


def _alignment(run: OpenRun, address: ExportAddress) -> None:
    """The choices, what they make of the run's pairs, and the file."""
    fmt = get_format(address.format)
    choices, result = st.columns([5, 4], gap="large")
    with choices:
        _pairs_asked_for(run, address)
        _format_asked_for(address, fmt)
    table = _selected(run, address)
    with result, st.container(border=True, key="export_card"):
        if not len(table):
            _nothing(run, address)
            return
        _expected(table.expectation())
        _take(run, table, fmt, address)
        _notes(table.expectation())
        _reviewed_sample(run)
        _beside_pairs(run, address, len(table))
    _preview(table, fmt, address)
    _command_line(run, fmt, address)


# What is asked for


def _pairs_asked_for(run: OpenRun, address: ExportAddress) -> None:
    st.subheader("Pairs", anchor=False)
    names: dict[Side, str] = {side: f"{palette.PLAIN_MARKS[side]} {text.plain(run.view.graphs[side].name, 24)}" for side in SIDES}
    components.choice("Selection", PARTS, name="part", value=address.part, default="all")
    components.choice("Matches of each entity of", names, name="side", value=address.side, default="source", clears=("relation",))
    _decoder(run, address)
    _least_probability(run, address)
    with st.container(horizontal=True, gap="large"):
        _switch("Include seed links", "seeds", address.seeds, explain("seed link"))
        _switch("Prefer known links", "links", _known_links(address), KNOWN_LINKS)
    pair_filters.chips(run, address)
    pages.link(pages.PAIRS, pair_filters.carried(PairsAddress, address), "Edit filters on Pairs", icon=":material/tune:")


def _decoder(run: OpenRun, address: ExportAddress) -> None:
    options, value = list(DECODER_NAMES), _decoder_of(run, address)
    if value not in options:
        raise ConfigError(f"This link asks for the decoder '{value[:40]}', which does not exist. Choose one of {', '.join(options)}.")
    key = state.widget_key(state.CHOICE, "decoder", value)

    def follow() -> None:
        state.set_parameter("decoder", st.session_state[key])

    st.selectbox(
        "Decoder",
        options,
        index=options.index(value),
        format_func=lambda name: f"{DECODER_WORDS.get(name, name)} ({name})",
        key=key,
        on_change=follow,
        help="How the alignment is derived from the scores. The first two use the stored matches and are fast: one-to-one (each entity in "
        "at most one "
        "pair), or the best match of each entity as in the paper. The others search all entities again, which takes longer on large graphs. The page "
        "Compare shows the accuracy of all but the first.",
    )


def _least_probability(run: OpenRun, address: ExportAddress) -> None:
    if not run.alignments[address.side].calibrated:
        st.caption(text.plain(run.view.why_no_probabilities, 600))
        return
    value = min(max(address.least or 0.0, 0.0), 1.0)
    key = state.widget_key(state.CHOICE, "least", address.least)

    def follow() -> None:
        chosen = st.session_state[key]
        state.set_parameter("least", f"{chosen:.2f}" if chosen > 0 else None)

    _suggested(run, address)
    st.slider(
        f"Minimum {run.view.probability_word}",
        0.0,
        1.0,
        value=value,
        step=0.01,
        key=key,
        on_change=follow,
        help=f"{explain(probability_term(run.view.unchecked_probabilities))} Known links and pairs that reviewers accepted are always included.",
    )


def _suggested(run: OpenRun, address: ExportAddress) -> None:
    """The suggested least probability, one click away."""
    threshold = run.suggested_threshold()
    if threshold is None or f"{threshold.probability:.2f}" == f"{address.least or 0:.2f}":
        return
    words = f"At {threshold.probability:.2f}: expected precision about {threshold.precision:.0%}, expected recall about {threshold.recall:.0%}."
    label = f"Use suggested minimum {threshold.probability:.2f}"
    take = partial(state.set_parameter, "least", f"{threshold.probability:.2f}")
    st.button(
        label, icon=":material/tune:", type="tertiary", help=words, on_click=take, key=state.widget_key(state.CHOICE, "suggested", address.least)
    )


KNOWN_LINKS = (
    "On: all known links are exported, and predictions that contradict one are omitted. Off: all predictions are exported, and the contradictions "
    "are counted. Reviewers' decisions apply in both cases."
)


def _switch(label: str, name: str, value: bool, help: str) -> None:
    key = state.widget_key(state.CHOICE, name, value)
    st.toggle(label, value=value, key=key, on_change=lambda: state.set_parameter(name, "yes" if st.session_state[key] else "no"), help=help)


def _contested(address: ExportAddress) -> bool:
    """Whether the filters ask for pairs that one-to-one matching and known links would leave nothing of."""
    return address.conflicts or "wrong" in address.known


def _known_links(address: ExportAddress) -> bool:
    return not _contested(address) if address.links is None else address.links


def _decoder_of(run: OpenRun, address: ExportAddress) -> str:
    if address.decoder is not None:
        return address.decoder
    return STORED if _contested(address) else default_decoder(run.view)


def _selected(run: OpenRun, address: ExportAddress) -> ExportTable:
    """
    Raises:
        AddressError, ConfigError, ExportError: the address asks for what this run does not have.
    """
    reviewed = reviewed_pairs(cache.reviews(), run.card.fingerprint)
    decoder, known_links = _decoder_of(run, address), _known_links(address)
    question = ("export", decoder, str(known_links), repr(reviewed))
    with st.spinner("Computing the alignment…"):
        made = cache.kept_export(run, question, lambda: prepare(run.view, decoder, known_links, reviewed, _groundwork(run, decoder, known_links)))
    wanted = pair_filters.wanted(run, address)
    selection = ExportSelection(address.part, decoder, address.side, address.least, address.seeds, known_links, wanted)
    return pairs_to_export(run.view, selection, reviewed, made)


def _groundwork(run: OpenRun, decoder: str, known_links: bool) -> Groundwork:
    """What does not change while reviewers decide."""
    found = cache.kept_search(run, (decoder,), lambda: _search(run, decoder)) if decoder in SEARCHING else None
    question = ("groundwork", decoder, str(known_links))
    return cache.kept_export(run, question, lambda: lay_groundwork(run.view, decoder, known_links, found))


def _search(run: OpenRun, decoder: str) -> Predictions:
    """What a decoder makes of a search of all entities; of large graphs in a process of its own, since every page would be slow meanwhile."""
    if max(map(len, run.view.graphs.values())) < LARGE:
        return searched(run.view, decoder)
    return cache.HELPER.run(search_run, cache.models_folder(), run.card.run, run.card.seal, decoder)


def _nothing(run: OpenRun, address: ExportAddress) -> None:
    if address.part == "reviewed":
        components.empty_state(
            "No accepted pairs",
            f"No accepted pair of {text.plain(run.card.dataset)} passes the filters. Review some pairs, or export the whole alignment.",
        )
        pages.link(pages.REVIEW, ReviewAddress(address.runs), "Review pairs", icon=pages.REVIEW.icon)
    else:
        words = "Lower the minimum probability, or remove a filter: each is a button above."
        if _contested(address):
            words += " One-to-one matching with known links has no pairs in conflict."
        components.empty_state("No pairs to export", words)


def _expected(expected: ExpectedQuality) -> None:
    measured = expected.measured
    with st.container(horizontal=True, gap="small"):
        st.metric("Pairs", f"{expected.pairs:,}", delta=", ".join(expected.kinds()) or None, delta_color="off", delta_arrow="off")
        if expected.precision is not None:
            of = f"of {expected.estimated:,} with a probability"
            words = f"Mean probability of the predictions, without known links and accepted pairs. {explain(probability_term(expected.unchecked))}"
            st.metric("Expected precision", f"{expected.precision:.1%}", delta=of, delta_color="off", delta_arrow="off", help=words)
        if measured is not None and measured.judged:
            of = text.rate_interval(measured.interval, measured.judged)
            st.metric("Precision on known links", f"{measured.share:.1%}", delta=of, delta_color="off", delta_arrow="off", help=MEASURED)


def _notes(expected: ExpectedQuality) -> None:
    """Conflicts that remain, and how the measured precision compares with Home."""
    if expected.conflicts is not None:
        icon = "warning" if expected.conflicts.contradicting or any(expected.conflicts.shared.values()) else "info"
        st.caption(f":material/{icon}: {text.plain(' '.join(expected.conflicts.sentences()), 800)}")
    if expected.precision is not None and expected.without_probability:
        st.caption(f":material/info: {expected.not_covered()}")
    if expected.precision is not None and expected.unchecked:
        st.caption(f":material/warning: {UNCHECKED}")
    if expected.measured is not None and expected.measured.judged and expected.home is not None:
        st.caption(text.plain(expected.home.sentence(), 400))


MEASURED = (
    "Share of correct predictions among the entities with a validation or test link, before these links were added. It shows what to expect for "
    "entities without a known link. Seed links are not counted. 95% Wilson score interval."
)


def _reviewed_sample(run: OpenRun) -> None:
    """What reviewers found in the run's random sample, where they have begun with it."""
    standing = cache.reviews().standing(run.card.fingerprint)
    if standing and (found := estimate_from_sample(run.queue, standing)).drawn:
        st.caption(f":material/casino: {text.plain(found.sentence(), 600)} {SAMPLED}")
        components.measure_by_sample(run.card.run)


SAMPLED = "It covers the best match of each source entity, before the choices on the left."


def _beside_pairs(run: OpenRun, address: ExportAddress, pairs: int) -> None:
    """Why there are more or fewer pairs here than on the page of pairs."""
    listed = len(run.alignments[address.side].select(pair_filters.wanted(run, address)))
    if listed != pairs:
        st.caption(
            f"The page Pairs lists {text.count(listed, 'best match', 'best matches')} with these filters. The difference "
            "is due to the decoder, the known links, the reviews and the choices on the left."
        )


# As what


def _format_asked_for(address: ExportAddress, fmt: Format) -> None:
    st.subheader("File format", anchor=False)
    key = state.widget_key(state.CHOICE, "format", fmt.name)

    def follow() -> None:
        chosen = str(st.session_state[key])
        state.set_parameters({"format": None if chosen == "csv" else chosen, "predicate": None, "canonical": None})

    names = list(FORMATS)
    st.selectbox("Format", names, index=names.index(fmt.name), format_func=lambda name: FORMATS[name].title, key=key, on_change=follow)
    if fmt.stem == "links":
        st.caption(f"{fmt.title} is {fmt.does}. The file can be read as known links of a data set.")
    else:
        st.caption(f"{fmt.title}: {fmt.does}. The pairs below are folded into one entity each; `python -m engine split` separates the graphs again.")
        _canonical(address)
    if fmt.predicate is not None:
        components.choice(
            "Predicate",
            {name: name.replace(":", "\\:") for name in PREDICATES},
            name="predicate",
            value=address.predicate or fmt.predicate,
            default=fmt.predicate,
            help="owl:sameAs: a reasoner treats the two entities as one. skos:exactMatch: the two entities are interchangeable.",
        )


def _canonical(address: ExportAddress) -> None:
    """Whose identifier a folded entity gets."""
    components.choice(
        "Canonical identifiers",
        {rule: CANONICAL_WORDS[rule] for rule in CANONICAL},
        name="canonical",
        value=address.canonical,
        default="source",
        help="Identifier of an entity that is folded from a pair: the one of the source, the one of the target, or a new one that depends on "
        "both and is the same in every export. Entities without a match keep theirs.",
    )


def _preview(table: ExportTable, fmt: Format, address: ExportAddress) -> None:
    st.subheader("Preview", anchor=False)
    if fmt.name in ("csv", "tsv", "parquet") or fmt.stem != "links":
        rows = next(table.head(ROWS).chunks())
        shown = pd.DataFrame(
            {name: [text.cell(cell) for cell in rows[name]] if pd.api.types.is_string_dtype(rows[name]) else rows[name] for name in FIRST}
        )
        light_table.show(shown, key=state.widget_key(state.PREVIEW, address), alt="Table: the first rows of the export")
        columns = " Labels are shown first; the file has the columns in the order of its documentation."
    else:
        lines = preview_lines(table, fmt, address.predicate if fmt.predicate else None, ROWS)
        st.code("\n".join(_shown(lines)), language=None)
        columns = ""
    st.caption(f"The first {min(ROWS, len(table))} of {text.count(len(table), 'pair')}.{columns}")


def _shown(lines: Sequence[str]) -> list[str]:
    """Lines as text that rearranges nothing; what they are indented by stays."""
    indents = [line[: len(line) - len(line.lstrip("# "))] for line in lines]
    return [indent + text.cell(line.replace("\t", " · "), WIDEST_LINE).lstrip("# ") for indent, line in zip(indents, lines, strict=True)]


def _take(run: OpenRun, table: ExportTable, fmt: Format, address: ExportAddress) -> None:
    """The file is made when the button is pressed."""
    predicate = address.predicate if fmt.predicate else None
    folded = with_fold(fmt, FoldOptions(canonical=address.canonical))
    st.download_button(
        f"Download {text.count(len(table), 'pair')} as {fmt.title}",
        lambda: export_bytes(table, folded, predicate),
        f"{text.file_name(fmt.file_name(run.card.run).removesuffix(fmt.suffix))}{fmt.suffix}",
        fmt.media_type,
        key=state.widget_key(state.DOWNLOAD, "export", address),
        on_click="ignore",
        icon=":material/download:",
        type="primary",
        width="stretch",
    )


def _command_line(run: OpenRun, fmt: Format, address: ExportAddress) -> None:
    """The same on the command line, which has no filters of pairs."""
    if not pair_filters.active(address):
        with components.drawn_when_open("Command line", state.widget_key(state.AS_TABLE, "command")) as is_open:
            if is_open:
                st.code(_command(run, fmt, address), language=None, wrap_lines=True)


def _command(run: OpenRun, fmt: Format, address: ExportAddress) -> str:
    words = ["python", "-m", "engine", "export", run.card.run, "--format", fmt.name]
    words += ["--decoder", address.decoder] if address.decoder is not None else []
    words += ["--side", address.side] if address.side != "source" else []
    words += ["--min-probability", f"{address.least:g}"] if address.least else []
    words += ["--predicate", address.predicate] if address.predicate and fmt.predicate else []
    words += ["--canonical", address.canonical] if address.canonical != "source" and fmt.stem == "graph" else []
    flags = (("--without-seeds", not address.seeds), ("--predictions-only", not _known_links(address)), ("--reviewed", address.part == "reviewed"))
    words += [flag for flag, wanted in flags if wanted]
    return shlex.join(words)


def _report(run: OpenRun) -> None:
    """The run's report, made when the button is pressed."""
    st.subheader("Report", anchor=False)
    st.caption("Figures, tables and examples of this run in one HTML file, which opens without the app. The command *report* writes the same file.")
    st.download_button(
        "Download report",
        lambda: run.report().encode("utf-8", "replace"),
        f"report-{text.file_name(run.card.run)}.html",
        "text/html",
        key=state.widget_key(state.DOWNLOAD, "report", run.card.run),
        on_click="ignore",
        icon=":material/lab_profile:",
    )


frame.one_run(pages.EXPORT, render)
