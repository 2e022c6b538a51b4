"""Import: a data set from two graphs and known links, in three steps: files, check, save."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pandas as pd
import streamlit as st

from app import cache, components, frame, pages, palette, state, text
from app.glossary import explain
from app.state import Come, ImportAddress, TrainAddress
from engine.data.knowledge_graph import SIDES, Side
from engine.data.readers.ontology import Aligned
from engine.data.readers.queries import DEFAULT_QUERY, LONGEST_QUERY
from engine.data.readers.rdf import DEFAULT_GRAPH
from engine.data.tabular import Layout
from engine.errors import DataImportError, EngineError
from engine.importing import (
    ALIGNED,
    LIMITS,
    NAMING,
    REMEDIES,
    ROLE_WORDS,
    ROLES,
    Corrections,
    Preview,
    Role,
    SeedChoice,
    SeedPair,
    Staged,
    UnderstoodFile,
    UnderstoodGraph,
    UnderstoodTable,
    Upload,
    add,
    correct,
    discard,
    find,
    find_staged,
    glance,
    offered,
    stage,
    stage_folder,
    store,
    suggested_name,
)
from engine.importing.detect import DELIMITERS, FORM_WORDS
from engine.importing.source import Limits
from engine.util.quotas import storage_quota

COME_WORDS: Final[Mapping[Come, str]] = {"upload": "Separate files", "archive": "One archive", "server": "Folder on the server"}
FORMATS: Final = (
    "CSV, TSV, Parquet (triples, or one row per entity), Neo4j CSV, RDF (Turtle, TriG, N-Triples, N-Quads, RDF/XML, JSON-LD), "
    "ontologies (OWL, OBO), GraphML, GEXF, JSON lines, SQLite, DuckDB; plain or gzipped"
)
STEPS: Final = ("1. Files", "2. Check", "3. Save")
SIDE_ROLES: Final[Mapping[Side, tuple[Role, Role]]] = {"source": ("graph 1", "attributes 1"), "target": ("graph 2", "attributes 2")}
SEED_WORDS: Final[Mapping[SeedChoice, str]] = {"none": "none", "exact": "equal names", "near": "equal and similar names"}
LINKS_HELP: Final = "Pairs of entities that mean the same thing. Without links, names can suggest some in the next step."
LINK_ROLES: Final[Mapping[str, str]] = {"train": "seed", "valid": "validation", "unsure": "probable"}
SEEDS_SHOWN: Final = 500
NOT_CHOSEN: Final = "detected automatically"
ONTOLOGY_WORDS: Final[Mapping[Aligned, str]] = {
    "auto": "classes, or individuals if there are no classes",
    "classes": "classes",
    "individuals": "individuals",
    "properties": "properties",
    "all": "classes, individuals and properties",
    "plain": "all resources, RDF triple by triple",
}
NO_PREFERENCE: Final = "no preference"
AUTOMATIC: Final = ""  # no attribute and no language is called so
NO_NAMING: Final[Mapping[str, Any]] = dict.fromkeys(NAMING)

Change = Callable[[Corrections], Corrections]


def render(runs: cache.RunList) -> None:
    """The page."""
    address = ImportAddress.read()
    step = 2 if address.stored else 1 if address.staging else 0
    if not runs.cards and not step:
        st.caption("No run yet: import two graphs here, or train on the sample data first.")
    st.progress(step / (len(STEPS) - 1) if step else 0.04, text=" › ".join(_step_words(number, step) for number in range(len(STEPS))))
    if address.stored:
        _stored(address, address.stored)
    elif address.staging:
        _check(address, address.staging)
    else:
        _files(address)


def _step_words(number: int, now: int) -> str:
    """A step in the row of steps: the present one in bold, those that are done with a mark."""
    words = STEPS[number].replace(".", "\\.")
    return f"**{words}**" if number == now else f":gray[{'✓ ' if number < now else ''}{words}]"


# 1. Files


def _files(address: ImportAddress) -> None:
    components.choice("Data source", COME_WORDS, name="come", value=address.come, default="upload")
    {"upload": _upload_files, "archive": _upload_archive, "server": _choose_folder}[address.come]()


def _upload_files() -> None:
    st.markdown(
        "Upload two graphs as triples and the links between them that are known. You can correct columns in the next step.", help=f"{FORMATS}."
    )
    given: dict[Role, Any] = {}
    source, target, links = st.columns(3)
    for column, side in zip((source, target), SIDES, strict=True):
        with column:
            graph = SIDE_ROLES[side][0]
            given[graph] = _uploader(graph, f"{palette.MARKS[side]} {ROLE_WORDS[graph].capitalize()}")
    with links:
        given["links"] = _uploader("links", "Known links", help=LINKS_HELP)
    with st.expander("Names and attributes in separate files (optional)"):
        for column, side in zip(st.columns(2), SIDES, strict=True):
            with column:
                attributes = SIDE_ROLES[side][1]
                given[attributes] = _uploader(attributes, f"{palette.MARKS[side]} {ROLE_WORDS[attributes].capitalize()}")
    st.caption(_limit_words())
    uploads = [Upload(file.name, file, role) for role, file in given.items() if file is not None]
    missing = [ROLE_WORDS[graph] for graph, _ in SIDE_ROLES.values() if given[graph] is None]
    _read_button(lambda: stage(uploads, _limits()), missing=f"the {' and the '.join(missing)}" if missing else "")


def _upload_archive() -> None:
    st.markdown(
        "A .zip or .tar.gz with two graphs and links, for example a folder of the OpenEA or DBP15K benchmarks. Files are recognised by their names: "
        "`source.csv`, `target.ttl`, `links.csv`, `attributes_1.csv`. You can correct this in the next step."
    )
    file = _uploader("archive", "Archive")
    st.caption(_limit_words())
    _read_button(lambda: stage([Upload(file.name, file)], _limits()) if file else stage([]), missing="" if file else "an archive")


def _choose_folder() -> None:
    folders = [one.name for one in offered()]
    if not folders:
        components.empty_state(
            "No folder to import from",
            "The administrator of this server chooses the folders that can be imported, for example:",
            ["DUAL_AMN_IMPORT=FOLDER make app"],
        )
        return
    st.markdown("Folders and archives on this server. Nothing is uploaded, and the files are not changed.")
    labels = text.distinct_labels({name: text.cell(name, 120) for name in folders})
    chosen = st.selectbox("Folder or archive", folders, index=None, format_func=labels.__getitem__, placeholder="choose")
    _read_button(lambda: stage_folder(find(str(chosen)), _limits()), missing="" if chosen else "a folder or an archive")


def _uploader(role: str, label: str, help: str | None = None) -> Any:
    return st.file_uploader(label, key=state.widget_key(state.UPLOAD, role), help=help)


def _limits() -> Limits:
    """What the app accepts: the storage that all users share is limited as well."""
    return dataclasses.replace(LIMITS, storage_bytes=storage_quota())


def _limit_words() -> str:
    limit = f"{int(st.get_option('server.maxUploadSize')):,} MB"
    return f"Maximum {limit} per file; gzip makes triples about ten times smaller. Larger graphs can be read from a folder on the server."


def _read_button(begin: Callable[[], Staged], *, missing: str) -> None:
    """The way to the next step; ``missing``: what has to be chosen before."""
    key = state.widget_key(state.IMPORT_BUTTON, "read")
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = st.button("Check files", icon=":material/fact_check:", type="primary", disabled=bool(missing), key=key)
        if missing:
            st.caption(f"To continue, choose {missing}.")
    if not pressed:
        return
    try:
        with st.spinner("Reading the files…"):
            staged = begin()
    except EngineError as error:
        components.show_error(error)
        return
    state.set_parameters({state.STAGING: staged.token})
    st.rerun()


# 2. Check


def _check(address: ImportAddress, token: str) -> None:
    st.button(
        "Start again with other files",
        icon=":material/arrow_back:",
        type="tertiary",
        key=state.widget_key(state.IMPORT_BUTTON, "again"),
        on_click=state.show_parameters,
        args=(ImportAddress(address.runs).parameters(),),
    )
    staged = find_staged(token)
    problem: EngineError | None = None
    files: tuple[UnderstoodFile, ...] = ()
    try:
        files = glance(staged.material, staged.corrections)
        with st.spinner("Reading and checking both graphs…"):
            preview = cache.import_preview(staged.token, staged.version)
    except EngineError as error:
        problem = error
    _which_is_what(staged, files)
    if problem is not None:
        components.show_error(problem)
        _forget_naming(staged)
        if staged.corrections.ontology != "auto":
            _ontology(staged)
        if staged.corrections.links_from is not None:  # perhaps what is wrong
            _link_choices(staged)
        _tables(staged, files)
        if any(file.role == "links" for file in staged.material.files):
            _more_links(staged, "Replace the known links")
        return
    _facts(staged, preview)
    _tables(staged, preview.files)
    st.subheader("Problems and fixes", anchor=False)
    _swap(staged, preview)
    _repair(staged, preview)
    _take_names(staged, preview)
    _link_choices(staged)
    components.findings(preview.findings)
    if staged.material.whole_folder is None and (preview.links_are_wrong or not any(file.role.startswith("links") for file in files)):
        _more_links(staged, "Replace the known links" if preview.links_are_wrong else "Known links")
    _seeds(staged, preview)
    _go(staged, preview)


def _facts(staged: Staged, preview: Preview) -> None:
    st.subheader("Detected content", anchor=False)
    for column, side in zip(st.columns(2), SIDES, strict=True):
        with column:
            _graph(side, preview.graphs[side])
    if preview.links_left_out:
        given = text.count(preview.links_left_out, "link was", "links were")
        st.markdown(f"**Links:** {given} read, but not used until the errors below are fixed.")
    else:
        links = ", ".join(f"{count:,} {LINK_ROLES.get(part, part)}" for part, count in preview.links.items() if count)
        expected = preview.expectation
        more = f" {REMEDIES['few-seeds'].page}" if expected.seeds and expected.few else ""
        st.markdown(f"**Links:** {links or 'none'}. {text.plain(expected.sentence, 600)}{more}")
    recognised = [finding for finding in preview.findings if finding.code in ("ontology-read", "ontology-left-out")]
    for finding in sorted(recognised, key=lambda one: one.message):
        st.caption(text.plain(finding.message, 1000))
    if recognised or staged.corrections.ontology != "auto":
        _ontology(staged)
    _named_graphs(staged, preview)
    _name_attribute(staged, preview)
    for column, side in zip(st.columns(2), SIDES, strict=True):
        with column:
            _name_language(staged, side, preview.graphs[side])


def _graph(side: Side, graph: UnderstoodGraph) -> None:
    summary = graph.summary
    st.markdown(f"{palette.MARKS[side]} **{text.plain(summary.name, 40)}**")
    counted = ((summary.entities, "entity", "entities"), (summary.relations, "relation", None), (summary.triples, "triple", None))
    counts = " · ".join(text.count(number, noun, plural) for number, noun, plural in counted)
    st.markdown(f"{counts} · {text.count(summary.attributes, 'attribute triple')} · {summary.named:,} with a name")
    if graph.namespaces:
        st.caption("Identifiers start with " + ", ".join(f"{text.plain(name, 60)} ({count:,})" for name, count in graph.namespaces[:3]))
    sample = pd.DataFrame([[text.cell(part, 80) for part in triple] for triple in graph.triples], columns=["head", "relation", "tail"])
    components.table(sample, name=f"{side}-triples", key=state.widget_key(state.UPLOAD, "sample", side))


def _ontology(staged: Staged) -> None:
    """What of an ontology is aligned."""
    key = _shown(staged.corrections.ontology, "ontology", staged.token)
    st.selectbox(
        "Part of the ontology to align",
        ALIGNED,
        format_func=ONTOLOGY_WORDS.__getitem__,
        key=key,
        on_change=lambda: _change(staged, lambda now: dataclasses.replace(now, ontology=st.session_state[key])),
        help="An ontology has classes (kinds of things), individuals (things) and properties (relations). The lines above show the number of "
        "each, and what was left out and why.",
    )


def _named_graphs(staged: Staged, preview: Preview) -> None:
    """Which named graphs of an RDF file are read."""
    for role, names in preview.named_graphs.items():
        found = [*names, DEFAULT_GRAPH]
        key = _shown([one for one in staged.corrections.named_graphs.get(role, ()) if one in found], "named graphs", role, staged.token)

        def follow(role: str = role, key: str = key) -> None:
            wanted = tuple(st.session_state[key])

            def change(now: Corrections) -> Corrections:
                rest = {one: chosen for one, chosen in now.named_graphs.items() if one != role}
                return dataclasses.replace(now, named_graphs={**rest, role: wanted} if wanted else rest)

            _change(staged, change)

        labels = text.distinct_labels({name: text.cell(name, 80) for name in found})
        label = f"Named graphs of the {ROLE_WORDS[role]}"
        st.multiselect(label, found, format_func=labels.__getitem__, key=key, on_change=follow, placeholder="all")


def _name_attribute(staged: Staged, preview: Preview) -> None:
    """Which attribute holds the names; what training by names begins with."""
    shares: dict[str, list[str]] = {}
    taken: list[str] = []
    for side in SIDES:
        for one in preview.graphs[side].names:
            shares.setdefault(one.attribute, []).append(f"{palette.PLAIN_MARKS[side]} {text.percent(one.share)}")
            taken += [f"{palette.PLAIN_MARKS[side]} {text.cell(one.attribute, 40)}"] if one.chosen else []
    if not shares:
        return
    automatic = f"{NOT_CHOSEN}: {', '.join(taken) or 'none'}"
    chosen = staged.corrections.name_attribute
    key = _shown(chosen if chosen in shares else AUTOMATIC, "name_attribute", staged.token, automatic, shares)
    st.selectbox(
        "Name attribute",
        [AUTOMATIC, *shares],
        format_func=lambda name: automatic if name == AUTOMATIC else f"{text.cell(name, 60)} ({', '.join(shares[name])} of the entities)",
        key=key,
        on_change=lambda: _change(staged, lambda now: dataclasses.replace(now, **NO_NAMING, name_attribute=st.session_state[key] or None)),
        help="Names are shown on all pages, and the literal variant compares them.",
    )


def _name_language(staged: Staged, side: Side, graph: UnderstoodGraph) -> None:
    """Which language a graph's names are taken from, where there are several."""
    counts = {language: number for language, number in graph.languages if language}
    if not counts or len(graph.languages) < 2:
        return
    own = f"name_language_{side}"
    chosen = getattr(staged.corrections, own)
    wanted = chosen or staged.corrections.name_language
    now = f"{NO_PREFERENCE} (now {text.cell(graph.preferred, 20) or 'without a language'})" if not wanted else NO_PREFERENCE
    untagged = dict(graph.languages).get("")
    key = _shown(chosen if chosen in counts else AUTOMATIC, own, staged.token, now, graph.languages)
    options = [AUTOMATIC, *counts]

    def follow() -> None:
        change: dict[str, Any] = {own: st.session_state[key] or None}
        _change(staged, lambda was: dataclasses.replace(was, **change))

    st.selectbox(
        f"{palette.PLAIN_MARKS[side]} Preferred language of names",
        options,
        format_func=lambda one: now if one == AUTOMATIC else f"{text.cell(one, 20)} ({text.count(counts[one], 'entity', 'entities')})",
        key=key,
        on_change=follow,
        help="If an entity has several names, the one in this language is used. No preference: the language in which most entities of both graphs "
        "have names. Entities without a name in the preferred language keep one in another language."
        + (f" {text.count(untagged, 'entity', 'entities')} of this graph also have names without a language." if untagged else ""),
    )


def _forget_naming(staged: Staged) -> None:
    """A way on where the choice of names does not fit what the files hold by now."""
    if not staged.corrections.naming:
        return
    st.button(
        "Reset the name settings",
        icon=":material/restart_alt:",
        key=state.widget_key(state.IMPORT_BUTTON, "naming", staged.version),
        on_click=_change,
        args=(staged, lambda now: dataclasses.replace(now, **NO_NAMING)),
    )


def _which_is_what(staged: Staged, files: Sequence[UnderstoodFile]) -> None:
    """Files of a folder or an archive, whose names may be misleading."""
    if staged.material.folder is None and all(file.role for file in staged.material.files):
        return
    names = [file.name for file in staged.material.files]
    now = {file.role: file.name for file in files}
    with st.expander(f"Roles of the files: {text.count(len(names), 'file')} from {text.plain(staged.material.origin, 60)}", expanded=not files):
        if any(not role for role in now):
            st.caption("A folder in a benchmark format, read as a whole. Choose files here only if the roles were not recognised.")
        for role in ROLES:
            _role_choice(staged, role, names, now.get(role))


def _role_choice(staged: Staged, role: Role, names: Sequence[str], now: str | None) -> None:
    labels = text.distinct_labels({name: text.cell(name, 100) for name in names})
    key = _shown(now, "role", role, staged.token, labels)

    def follow() -> None:
        chosen = st.session_state[key]
        rest = {one: name for one, name in staged.corrections.roles.items() if one != role}
        _change(staged, lambda was: dataclasses.replace(was, roles=rest if chosen is None else {**rest, role: chosen}))

    st.selectbox(
        ROLE_WORDS[role].capitalize(),
        names,
        index=None if now is None else 0,
        format_func=labels.__getitem__,
        key=key,
        on_change=follow,
        placeholder="none",
    )


def _tables(staged: Staged, files: Sequence[UnderstoodFile]) -> None:
    """Each file with its first rows and, of tables, which column is which."""
    shown = [file for file in files if file.role]
    if not shown:
        return
    st.subheader("Files and columns", anchor=False)
    for start in range(0, len(shown), 2):
        for column, (number, file) in zip(st.columns(2), list(enumerate(shown))[start : start + 2], strict=False):
            with column, st.container(border=True, key=f"file_{number}"):
                st.markdown(f"**{text.plain(ROLE_WORDS.get(file.role, file.role).capitalize())}**: {text.plain(file.name, 60)}")
                st.caption(" · ".join(text.plain(words, 200) for words in (file.words, *(one.words for one in file.counts))))
                if file.form in (FORM_WORDS["sqlite"], FORM_WORDS["duckdb"]):
                    _query(staged, file)
                if file.table is not None:
                    _table(staged, file, file.table)
                    if file.role in ("graph 1", "graph 2"):
                        _rows_are_entities(staged, file, file.table)


def _query(staged: Staged, file: UnderstoodFile) -> None:
    """What of a database is the graph."""
    key = _shown(staged.corrections.queries.get(file.role, ""), "query", file.role, staged.token)

    def follow() -> None:
        query = st.session_state[key].strip()
        _change(staged, lambda now: dataclasses.replace(now, queries={**now.queries, file.role: query}))

    st.text_area(
        "Query",
        key=key,
        on_change=follow,
        max_chars=LONGEST_QUERY,
        placeholder=DEFAULT_QUERY,
        help="One SELECT statement that returns head, relation and tail (and value for attributes), or one row per entity with a column id.",
    )


def _rows_are_entities(staged: Staged, file: UnderstoodFile, table: UnderstoodTable) -> None:
    """Whether each row of a table is a triple or an entity, and which columns are relations then."""
    wide = table.offered == ("identifier",)
    key = _shown(wide, "wide", file.role, staged.token)

    def follow() -> None:
        columns = {"identifier": 0} if st.session_state[key] else {"head": 0, "relation": 1, "tail": 2}
        _lay_out(staged, file, lambda layout: dataclasses.replace(layout, header=table.header or None, columns=columns, relations=None))

    st.toggle("Each row is an entity", key=key, on_change=follow, help="Off: each row is a triple.")
    if not wide:
        return
    chosen = staged.corrections.tables.get(file.role, Layout()).relations
    names = text.distinct_labels({at: text.cell(name, 40) for at, name in enumerate(table.columns) if at != table.places.get("identifier")})
    related = _shown([at for at in chosen or () if at in names], "relations", file.role, staged.token)

    def relate() -> None:
        wanted = tuple(st.session_state[related]) or None
        _lay_out(staged, file, lambda layout: dataclasses.replace(layout, columns=dict(table.places), relations=wanted))

    st.multiselect(
        "Columns that are relations",
        list(names),
        format_func=names.__getitem__,
        key=related,
        on_change=relate,
        placeholder="columns whose values are IDs of rows",
    )


def _table(staged: Staged, file: UnderstoodFile, table: UnderstoodTable) -> None:
    names = [f"{number}. {text.cell(name, 30)}" for number, name in enumerate(table.columns, start=1)]
    rows = pd.DataFrame([[text.cell(cell, 60) for cell in row] for row in table.sample], columns=names)
    st.dataframe(
        rows,
        hide_index=True,
        key=state.widget_key(state.UPLOAD, "rows", file.role, staged.version),
        alt=f"Table: first rows of {text.cell(file.name, 60)}",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for role in table.offered:
            _column_choice(staged, file, table, role, names)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if table.delimiter:
            key = _shown(table.header, "header", file.role, staged.token)
            st.toggle(
                "First row is a header",
                key=key,
                on_change=lambda: _lay_out(staged, file, lambda layout: dataclasses.replace(layout, header=st.session_state[key])),
            )
            _delimiter_choice(staged, file, table.delimiter)
            trim = _shown(table.trim, "trim", file.role, staged.token)
            st.toggle(
                "Remove blanks around cells",
                key=trim,
                on_change=lambda: _lay_out(staged, file, lambda layout: dataclasses.replace(layout, trim=st.session_state[trim])),
                help="Off: blanks are part of identifiers. In 'a, near, b', the tail is ' b', not 'b'.",
            )


def _column_choice(staged: Staged, file: UnderstoodFile, table: UnderstoodTable, role: str, names: Sequence[str]) -> None:
    key = _shown(table.places.get(role), "column", file.role, role, staged.token, names)

    def follow() -> None:
        places = table.columns_with(role, st.session_state[key])
        _lay_out(staged, file, lambda layout: dataclasses.replace(layout, header=table.header, columns=places))

    st.selectbox(
        role.capitalize(),
        range(len(names)),
        index=None if role not in table.places else 0,
        format_func=names.__getitem__,
        key=key,
        on_change=follow,
        placeholder="none",
        width=150,
    )


def _delimiter_choice(staged: Staged, file: UnderstoodFile, delimiter: str) -> None:
    options = list(dict.fromkeys([*DELIMITERS, delimiter]))
    key = _shown(delimiter, "delimiter", file.role, staged.token)
    st.selectbox(
        "Delimiter",
        options,
        format_func=lambda one: DELIMITERS.get(one, one),
        key=key,
        on_change=lambda: _lay_out(staged, file, lambda _: Layout(delimiter=st.session_state[key])),
        width=150,
    )


def _swap(staged: Staged, preview: Preview) -> None:
    swapped = staged.corrections.swap_links
    if not swapped and "links-swapped" not in {finding.code for finding in preview.findings}:
        return
    st.button(
        "Undo the swap of columns" if swapped else "Swap the links' columns",
        icon=":material/swap_horiz:",
        key=state.widget_key(state.IMPORT_BUTTON, "swap", swapped),
        on_click=_change,
        args=(staged, lambda now: dataclasses.replace(now, swap_links=not swapped)),
    )


def _repair(staged: Staged, preview: Preview) -> None:
    repaired = staged.corrections.repair_links
    if not repaired and "links-spelt-otherwise" not in {finding.code for finding in preview.findings}:
        return
    st.button(
        "Keep the spelling of the links" if repaired else "Use the spelling of the graphs",
        icon=":material/spellcheck:",
        key=state.widget_key(state.IMPORT_BUTTON, "repair", repaired),
        on_click=_change,
        args=(staged, lambda now: dataclasses.replace(now, repair_links=not repaired)),
    )


def _take_names(staged: Staged, preview: Preview) -> None:
    taken = staged.corrections.names_from_triples
    if not taken and "names-as-triples" not in {finding.code for finding in preview.findings}:
        return
    st.button(
        "Use names as triples again" if taken else "Use these triples as names",
        icon=":material/label:",
        key=state.widget_key(state.IMPORT_BUTTON, "names", taken),
        on_click=_change,
        args=(staged, lambda now: dataclasses.replace(now, names_from_triples=not taken)),
    )


def _link_choices(staged: Staged) -> None:
    """Which links count, and what else makes some: choices for ontologies."""
    with st.expander("Links: minimum confidence, links from cross references"):
        least, attribute = st.columns(2)
        first = _shown(staged.corrections.least_confidence, "least_confidence", staged.token)
        least.number_input(
            "Minimum confidence of a link",
            min_value=0.0,
            max_value=1.0,
            step=0.05,
            placeholder="none: all links are used",
            key=first,
            on_change=lambda: _change(staged, lambda now: dataclasses.replace(now, least_confidence=st.session_state[first])),
            help="Links with a lower confidence are left out and counted. Links without a confidence are kept.",
        )
        second = _shown(staged.corrections.links_from or "", "links_from", staged.token)
        attribute.text_input(
            "Attribute of cross references",
            max_chars=300,
            placeholder="for example oboInOwl:hasDbXref",
            key=second,
            on_change=lambda: _change(staged, lambda now: dataclasses.replace(now, links_from=st.session_state[second].strip() or None)),
            help="A value becomes a link if it is the IRI of an entity of the other graph, or a CURIE such as FMA:7088.",
        )


def _more_links(staged: Staged, label: str) -> None:
    """A file of known links that is uploaded now; everything else stays as it is."""
    with st.container(border=True):
        file = st.file_uploader(label, key=state.widget_key(state.UPLOAD, "more links", staged.token, staged.version))
        st.caption(f"The two graphs are kept. You can correct the columns after the upload. {_limit_words()}")
        key = state.widget_key(state.IMPORT_BUTTON, "more links", staged.version)
        if not st.button("Use these links", icon=":material/add_link:", disabled=file is None, key=key) or file is None:
            return
    try:
        with st.spinner("Reading the file…"):
            add(find_staged(staged.token), Upload(file.name, file, "links"), _limits())
    except EngineError as error:
        components.show_error(error)
        return
    st.rerun()


def _seeds(staged: Staged, preview: Preview) -> None:
    """Seeds from names, to be confirmed."""
    suggestions = preview.suggestions
    if not suggestions.pairs:
        return
    st.subheader("Seed links from names", anchor=False, help=explain("seed link"))
    exact, near = suggestions.count("exact"), suggestions.count("near")
    st.markdown(
        f"{text.count(exact, 'pair')} of entities {'has' if exact == 1 else 'have'} a name that is unique in both graphs and equal except for case, "
        f"accents and script; {near:,} more have similar names. Different things can have equal names: check the list and clear incorrect pairs."
    )
    if suggestions.too_many:
        st.caption("There are too many names to search for similar ones.")
    chosen = staged.corrections.seeds
    key = _shown(chosen, "seeds", staged.token)
    st.segmented_control(
        "Use as seed links",
        list(SEED_WORDS),
        format_func=SEED_WORDS.__getitem__,
        required=True,
        key=key,
        on_change=lambda: _change(staged, lambda now: dataclasses.replace(now, seeds=st.session_state[key])),
    )
    heads = [f"{palette.PLAIN_MARKS[side]} {text.cell(preview.graphs[side].summary.name, 30)}" for side in SIDES]
    _seed_table(staged, heads, suggestions.chosen("near" if chosen == "none" else chosen), editable=chosen != "none")


def _seed_table(staged: Staged, heads: Sequence[str], pairs: Sequence[SeedPair], *, editable: bool) -> None:
    shown = pairs[:SEEDS_SHOWN]
    rejected = staged.corrections.rejected
    rows = pd.DataFrame(
        {
            "take": [editable and (pair.source, pair.target) not in rejected for pair in shown],
            heads[0]: [text.cell(pair.names[0], 80) for pair in shown],
            heads[1]: [text.cell(pair.names[1], 80) for pair in shown],
            "alike": [pair.similarity for pair in shown],
            "identifiers": [f"{text.cell(pair.source, 80)} = {text.cell(pair.target, 80)}" for pair in shown],
        }
    )
    key = state.widget_key(state.SEED_TABLE, staged.token, staged.version)

    def follow() -> None:
        ticked = {int(row): bool(edit["take"]) for row, edit in st.session_state[key]["edited_rows"].items() if "take" in edit}
        off = {(shown[row].source, shown[row].target) for row, take in ticked.items() if not take}
        on = {(shown[row].source, shown[row].target) for row, take in ticked.items() if take}
        _change(staged, lambda now: dataclasses.replace(now, rejected=frozenset((now.rejected | off) - on)))

    st.data_editor(
        rows,
        hide_index=True,
        key=key,
        disabled=[name for name in rows.columns if name != "take" or not editable],
        column_config={"alike": st.column_config.NumberColumn(format="%.2f")},
        on_change=follow,
    )
    if len(pairs) > len(shown):
        st.caption(f"The first {len(shown):,} of {len(pairs):,}. The others are used as well.")


# 3. Save


def _go(staged: Staged, preview: Preview) -> None:
    st.subheader("Save", anchor=False)
    if preview.problems:
        st.markdown("The data set cannot be saved yet. Fix the errors above first.")
        return
    key = state.widget_key(state.CHOICE, "name", staged.token)
    name = st.text_input(
        "Name of the data set",
        value=suggested_name(staged.material),
        key=key,
        max_chars=80,
        help="Letters, digits and _ - . only. Runs are listed under this name.",
        width=400,
    )
    if not st.button("Save data set", icon=":material/save:", type="primary", key=state.widget_key(state.IMPORT_BUTTON, "store")):
        return
    try:
        with st.spinner("Saving the data set…"):
            stored = store(staged.material, staged.corrections, name.strip())
    except EngineError as error:
        components.show_error(error)
        return
    discard(staged)
    cache.list_data_sets.clear()
    state.set_parameters({state.STAGING: None, state.STORED: stored.name})
    st.rerun()


def _stored(address: ImportAddress, name: str) -> None:
    """
    Raises:
        DataImportError: no such data set.
    """
    found = next((one for one in cache.list_data_sets() if one.name == name), None)
    if found is None:
        raise DataImportError(f"There is no data set '{text.cell(name, 80)}'. Import it again, or choose another one.")
    sizes = f"{found.entities[0]:,} and {found.entities[1]:,} entities, {text.count(found.links or 0, 'known link')}." if found.entities else ""
    components.empty_state(f"{text.plain(found.name)} is saved", f"{sizes} Next, train on it to find matching entities.")
    pages.link(pages.TRAIN, TrainAddress(address.runs, data=found.name), "Train on this data set", icon=":material/model_training:")
    pages.link(pages.IMPORT, ImportAddress(address.runs), "Import another data set", icon=":material/upload:")
    with st.expander("Command line"):
        st.code(found.train_command, language=None, wrap_lines=True)


# Corrections


def _shown(value: object, *parts: object) -> str:
    """The key of a widget that shows what is kept, whoever corrected it: the same widget after a correction, so that a quick second click is
    not lost. Its ``index`` decides whether it can be emptied.
    """
    key = state.widget_key(state.CHOICE, *parts)
    if key not in st.session_state or st.session_state[key] != value:  # setting what is there already would undo a click that is on its way
        st.session_state[key] = value
    return key


def _change(staged: Staged, change: Change) -> None:
    """Keep a correction; made of what is kept now, which another tab may have changed."""
    try:
        now = find_staged(staged.token)
        correct(now, change(now.corrections))
    except DataImportError as error:
        components.show_error(error)


def _lay_out(staged: Staged, file: UnderstoodFile, change: Callable[[Layout], Layout]) -> None:
    def changed(now: Corrections) -> Corrections:
        layout = change(now.tables.get(file.role, Layout()))
        return dataclasses.replace(now, tables={**now.tables, file.role: layout})

    _change(staged, changed)


frame.without_run(pages.IMPORT, render)
