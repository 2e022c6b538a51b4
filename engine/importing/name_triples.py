"""Names among the triples of a table: rows such as ``Q90,label,Paris``, whose tail is a text and no entity."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from engine.data.knowledge_graph import SIDES, Finding
from engine.data.labels import NAME_ATTRIBUTES, local_name
from engine.data.readers import RawDataset, RawGraph
from engine.data.texts import Texts
from engine.util.arrays import BoolArray
from engine.util.text import count, shorten

SELDOM_HEADS = 0.1
"""Share of the would-be names that may be heads of triples as well."""


def name_triple_findings(raw: RawDataset) -> Iterator[Finding]:
    """Triples that look like names, by graph."""
    for side, graph in zip(SIDES, (raw.source, raw.target), strict=True):
        rows = _name_rows(graph)
        if rows.sum() > 1:  # one alone is no pattern
            heads, relations, tails = (column.take(rows) for column in _columns(graph))
            named = ", ".join(f"'{shorten(word, 40)}'" for word in sorted(relations.words))
            number = int(rows.sum())
            message = (
                f"{count(number, 'triple')} of the {side} graph with the relation {named} look like names: "
                f"as triples they make {count(len(tails.words), 'entity', 'entities')} of texts."
            )
            examples = tuple(f"{head} | {tail}" for head, tail in zip(heads[:3], tails[:3], strict=True))
            yield Finding("names-as-triples", "warning", message, number, examples)


def with_name_triples(raw: RawDataset) -> RawDataset:
    """The data with these triples taken as names."""
    return dataclasses.replace(raw, source=_named(raw.source), target=_named(raw.target))


def _columns(graph: RawGraph) -> tuple[Texts, Texts, Texts]:
    return Texts.of(graph.heads), Texts.of(graph.relations), Texts.of(graph.tails)


def _name_rows(graph: RawGraph) -> BoolArray:
    """(n,) which triples have a relation that is called like names, and tails that are texts."""
    heads, relations, tails = _columns(graph)
    found = np.zeros(len(heads), dtype=bool)
    for at, word in enumerate(relations.words):
        if local_name(word).lower() not in NAME_ATTRIBUTES:
            continue
        rows: BoolArray = relations.codes == at
        texts = tails.take(rows).words
        if not texts.str.contains("://", literal=True).any() and int(texts.is_in(heads.words.implode()).sum()) <= SELDOM_HEADS * len(texts):
            found |= rows
    return found


def _named(graph: RawGraph) -> RawGraph:
    rows = _name_rows(graph)
    if not rows.any() or rows.all():
        return graph
    columns = _columns(graph)
    heads, relations, tails = (column.take(~rows) for column in columns)
    entities, attributes, values = (Texts.joined(Texts.of(own), more.take(rows)) for own, more in zip(graph.attributes, columns, strict=True))
    files = tuple(one.without("taken as names", int(rows.sum())) if one.what == "triples" else one for one in graph.files)
    return dataclasses.replace(graph, heads=heads, relations=relations, tails=tails, attributes=(entities, attributes, values), files=files)
