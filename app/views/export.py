"""Export: which pairs, in which format, and how many of them should be right; everything chosen stands in the address."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from app import cache, components, frame, pages, pair_filters, palette, state, text
from app.cache import OpenRun
from app.glossary import explain
from app.state import ExportAddress, PairsAddress, ReviewAddress
from engine.datasets.knowledge_graph import SIDES, Side
from engine.errors import ConfigError
from engine.exporting import (
    COLUMNS,
    DECODER_NAMES,
    FORMATS,
    PREDICATES,
    STORED,
    Expectation,
    ExportTable,
    Format,
    Part,
    Selection,
    decoded_alignments,
    export_bytes,
    get_format,
    preview,
    reviewed_pairs,
    select_pairs,
)

ROWS = 5  # of the preview
WIDEST_LINE = 240  # characters of the preview
PARTS: Mapping[Part, str] = {"all": "The alignment", "reviewed": "Accepted pairs only"}
DECODERS: Mapping[str, str] = {
    "csls": "nearest by CSLS",
    "assignment": "one to one, best in all (assignment)",
    "mutual": "each other's nearest (mutual)",
    "propagation": "with the neighbours' matches (propagation)",
    "sinkhorn": "Sinkhorn",
    "stable": "one to one, stable marriages (stable)",
}


def render(run: OpenRun, address: ExportAddress) -> None:
    """The page."""
    fmt = get_format(address.format)
    _pairs_asked_for(run, address)
    table = _selected(run, address)
    if not len(table):
        _nothing(run, address)
        return
    _expected(table.expectation())
    _format_asked_for(address, fmt)
    _preview(table, fmt, address)
    _take(run, table, fmt, address)


# What is asked for


def _pairs_asked_for(run: OpenRun, address: ExportAddress) -> None:
    st.subheader("Which pairs", anchor=False)
    names: dict[Side, str] = {side: f"{palette.PLAIN_MARKS[side]} {text.plain(run.view.graphs[side].name, 24)}" for side in SIDES}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        components.choice("What", PARTS, name="part", value=address.part, default="all")
        components.choice("Matches of each entity of", names, name="side", value=address.side, default="source", clears=("relation",))
        _decoder(address)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        _least_probability(run, address)
        _seeds(address)
    pair_filters.chips(run, address)
    pages.link(pages.PAIRS, pair_filters.carried(PairsAddress, address), "Filter further on the page of pairs", icon=":material/tune:")


def _decoder(address: ExportAddress) -> None:
    key = state.widget_key(state.CHOICE, "decoder", address.decoder)
    options = list(DECODER_NAMES)
    if address.decoder not in options:
        raise ConfigError(f"the address says decoder={address.decoder[:40]}; expected one of {', '.join(options)}.")

    def follow() -> None:
        chosen = st.session_state[key]
        state.set_parameter("decoder", None if chosen == STORED else chosen)

    st.selectbox(
        "Decided by",
        options,
        index=options.index(address.decoder),
        format_func=lambda name: DECODERS.get(name, name),
        key=key,
        on_change=follow,
        width=330,
        help="What makes an alignment of the scores. The first is the paper's and at hand at once; the others search all entities again, which takes "
        "a while on large graphs. Figures of each are on the page Compare.",
    )


def _least_probability(run: OpenRun, address: ExportAddress) -> None:
    if not run.alignments[address.side].calibrated:
        st.caption("This run has no probabilities, so there is no least one to ask for: too few validation links to fit them on.")
        return
    value = min(max(address.least or 0.0, 0.0), 1.0)
    key = state.widget_key(state.CHOICE, "least", address.least)

    def follow() -> None:
        chosen = st.session_state[key]
        state.set_parameter("least", f"{chosen:.2f}" if chosen > 0 else None)

    st.slider(
        "Least probability",
        0.0,
        1.0,
        value=value,
        step=0.01,
        key=key,
        on_change=follow,
        width=330,
        help=f"{explain('calibrated probability')} Seed links have none and stay; so do pairs that reviewers accepted.",
    )


def _seeds(address: ExportAddress) -> None:
    key = state.widget_key(state.CHOICE, "seeds", address.seeds)
    st.toggle(
        "Seed links too",
        value=address.seeds,
        key=key,
        on_change=lambda: state.set_parameter("seeds", None if st.session_state[key] else "no"),
        help=explain("seed link"),
    )


def _selected(run: OpenRun, address: ExportAddress) -> ExportTable:
    """
    Raises:
        AddressError, ConfigError, ExportError: the address asks for what this run does not have.
    """
    reviewed = reviewed_pairs(cache.reviews(), run.card.fingerprint)
    with st.spinner("Deciding who matches whom…"):
        found = run.alignments
        if address.decoder != STORED:
            found = cache.kept((run,), ("alignment", address.decoder), lambda: decoded_alignments(run.view, address.decoder))
        wanted = pair_filters.wanted(run, address)
        return select_pairs(run.view, Selection(address.part, address.decoder, address.side, address.least, address.seeds, wanted), reviewed, found)


def _nothing(run: OpenRun, address: ExportAddress) -> None:
    if address.part == "reviewed":
        components.empty_state(
            "No accepted pair here", f"No reviewer has accepted a pair of {text.plain(run.card.dataset)} that passes. Review some, or take all."
        )
        pages.link(pages.REVIEW, ReviewAddress(address.runs), "Review pairs", icon=pages.REVIEW.icon)
    else:
        components.empty_state("No pair is left", "Ask for a lower probability, or take a filter away; each is a button above.")


def _expected(expected: Expectation) -> None:
    with st.container(horizontal=True, gap="large"):
        st.metric("Pairs", f"{expected.pairs:,}", delta=_kinds(expected), delta_color="off", delta_arrow="off")
        if expected.precision is not None:
            of = f"of {expected.estimated:,} with a probability"
            words = f"Mean of their probabilities. {explain('calibrated probability')}"
            st.metric("Should be right", f"{expected.precision:.1%}", delta=of, delta_color="off", delta_arrow="off", help=words)
        measured = expected.measured
        if measured.judged:
            low, high = measured.interval
            of = f"of {measured.judged:,}; 95 % interval {low:.1%} to {high:.1%}"
            words = "Counted where validation and test links tell; seed links are not counted."
            st.metric("Right where links tell", f"{measured.share:.1%}", delta=of, delta_color="off", delta_arrow="off", help=words)


def _kinds(expected: Expectation) -> str | None:
    told = [f"{count:,} {words}" for count, words in ((expected.seeds, "seed links"), (expected.accepted, "accepted")) if count]
    return ", ".join(told) or None


# As what


def _format_asked_for(address: ExportAddress, fmt: Format) -> None:
    st.subheader("As what", anchor=False)
    components.choice(
        "Format", {name: one.title for name, one in FORMATS.items()}, name="format", value=fmt.name, default="csv", clears=("predicate",)
    )
    st.caption(f"{fmt.title} is {fmt.does}. It can be read again as known links of a data set.")
    if fmt.predicate is not None:
        components.choice(
            "Each pair says",
            {name: name.replace(":", "\\:") for name in PREDICATES},
            name="predicate",
            value=address.predicate or fmt.predicate,
            default=fmt.predicate,
            help="owl:sameAs makes a reasoner treat the two as one thing; skos:exactMatch says that they can be used in each other's place.",
        )


def _preview(table: ExportTable, fmt: Format, address: ExportAddress) -> None:
    if fmt.name in ("csv", "tsv", "parquet"):
        rows = next(table.head(ROWS).chunks())
        shown = pd.DataFrame(
            {name: [text.cell(cell) for cell in rows[name]] if pd.api.types.is_string_dtype(rows[name]) else rows[name] for name in COLUMNS}
        )
        st.dataframe(shown, hide_index=True, placeholder="–", alt="Table: the first rows of the export", key=state.widget_key(state.PREVIEW, address))
    else:
        lines = preview(table, fmt, address.predicate if fmt.predicate else None, ROWS)
        st.code("\n".join(_shown(lines)), language=None)
    st.caption(f"The first {min(ROWS, len(table))} of {text.count(len(table), 'pair')}.")


def _shown(lines: Sequence[str]) -> list[str]:
    """Lines as text that rearranges nothing; what they are indented by stays."""
    indents = [line[: len(line) - len(line.lstrip("# "))] for line in lines]
    return [indent + text.cell(line.replace("\t", " · "), WIDEST_LINE).lstrip("# ") for indent, line in zip(indents, lines, strict=True)]


def _take(run: OpenRun, table: ExportTable, fmt: Format, address: ExportAddress) -> None:
    """The file is made when the button is pressed."""
    predicate = address.predicate if fmt.predicate else None
    st.download_button(
        f"Download {text.count(len(table), 'pair')} as {fmt.title}",
        lambda: export_bytes(table, fmt, predicate),
        f"{text.file_name(fmt.file_name(run.card.run).removesuffix(fmt.suffix))}{fmt.suffix}",
        fmt.media_type,
        key=state.widget_key(state.DOWNLOAD, "export", address),
        on_click="ignore",
        icon=":material/download:",
    )
    if not pair_filters.active(run, address):
        with st.expander("The same on the command line"):
            st.code(_command(run, fmt, address), language=None, wrap_lines=True)


def _command(run: OpenRun, fmt: Format, address: ExportAddress) -> str:
    words = ["python", "-m", "engine", "export", run.card.run, "--format", fmt.name]
    words += ["--decoder", address.decoder] if address.decoder != STORED else []
    words += ["--side", address.side] if address.side != "source" else []
    words += ["--min-probability", f"{address.least:g}"] if address.least else []
    words += ["--predicate", address.predicate] if address.predicate and fmt.predicate else []
    words += [flag for flag, wanted in (("--without-seeds", not address.seeds), ("--reviewed", address.part == "reviewed")) if wanted]
    return shlex.join(words)


frame.one_run(pages.EXPORT, render)
