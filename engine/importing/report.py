"""A preview as text for a terminal, and as plain values for JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from engine.data.inspection import render_findings
from engine.data.knowledge_graph import SIDES
from engine.data.labels import local_name
from engine.importing.detect import UnderstoodFile
from engine.importing.preview import REMEDIES, Preview, UnderstoodGraph
from engine.util.text import count, escape_controls, shorten

SHOWN_SEEDS = 10


def render_preview(preview: Preview) -> str:
    """What ``import`` prints, without a final newline."""
    parts = [*_files(preview), "", *(line for side in SIDES for line in _graph(side, preview.graphs[side])), "", *_links(preview), ""]
    return "\n".join([*parts, *_seeds(preview), *render_findings(preview.findings)])


def preview_to_dict(preview: Preview) -> dict[str, Any]:
    """Plain values, ready for JSON."""
    values = dataclasses.asdict(preview)
    return values | {"expectation": {**values["expectation"], "sentence": preview.expectation.sentence}, "can be stored": not preview.problems}


def _files(preview: Preview) -> Iterator[str]:
    yield f"{count(len(preview.files), 'file')} in the format {preview.format}" if preview.format != "files" else count(len(preview.files), "file")
    yield from (line for file in preview.files for line in _file(file))


def _file(file: UnderstoodFile) -> Iterator[str]:
    yield f"  {file.role or 'file':<14} {shorten(file.name, 60)} ({file.words})"
    yield from (f"  {'':<15}{one.words}" for one in file.counts)
    if file.table is not None:
        columns = file.table.columns
        places = ", ".join(f"{role} = {at + 1} ({shorten(columns[at], 30)})" for role, at in file.table.places.items())
        yield f"  {'':<15}columns: {places}; header: {'yes' if file.table.header else 'no'}"


def _graph(side: str, graph: UnderstoodGraph) -> Iterator[str]:
    summary = graph.summary
    counts = ", ".join(
        (
            count(summary.entities, "entity", "entities"),
            count(summary.relations, "relation"),
            count(summary.triples, "triple"),
            count(summary.attributes, "attribute triple"),
        )
    )
    yield f"{side} graph ({escape_controls(summary.name)}): {counts}, {summary.named:,} with a name"
    for namespace, number in graph.namespaces[:3]:
        yield f"  {number:>9,} {'entity begins' if number == 1 else 'entities begin'} with {shorten(namespace, 80)}"
    for head, relation, tail in graph.triples[:3]:
        yield f"  e.g. {' | '.join(shorten(part, 45) for part in (head, relation, tail))}"
    if graph.names:
        shares = [(local_name(one.attribute), f"{100 * one.share:.0f}%{', used' if one.chosen else ''}") for one in graph.names[:4]]
        names = ", ".join(f"{shorten(name, 40)} ({share})" for name, share in shares)
        yield f"  attributes that may hold names: {names}"
    if any(language for language, _ in graph.languages):
        listed = ", ".join(f"{language or 'without a language'} {number:,}" for language, number in graph.languages[:8])
        yield f"  languages of names: {listed}; preferred: {graph.preferred or 'without a language'}"


def _links(preview: Preview) -> Iterator[str]:
    if preview.links_left_out:
        yield f"links: {count(preview.links_left_out, 'link was', 'links were')} read; they are left out until the errors below are corrected"
        return
    yield "links: " + (", ".join(f"{number:,} {part}" for part, number in preview.links.items() if number) or "none")
    yield preview.expectation.sentence
    if preview.expectation.seeds and preview.expectation.few:
        yield REMEDIES["few-seeds"].command


def _seeds(preview: Preview) -> Iterator[str]:
    if not preview.suggestions.pairs:
        return
    exact, near = (preview.suggestions.count(likeness) for likeness in ("exact", "near"))
    taken = f"{len(preview.chosen):,} of them are taken (--seeds-from-names)"
    yield f"names suggest {exact:,} seed links by equal and {near:,} by nearly equal names; {taken}"
    for pair in preview.suggestions.pairs[:SHOWN_SEEDS]:
        yield f"  {pair.similarity:.2f}  {shorten(pair.names[0], 45)} = {shorten(pair.names[1], 45)}"
    yield ""
