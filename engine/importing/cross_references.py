"""Links from what an ontology says of its entities itself: cross references such as ``oboInOwl:hasDbXref`` and ``skos:exactMatch``."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.data.apart import RELATIONS, Apart, local_predicate
from engine.data.knowledge_graph import SIDES, Finding, Side
from engine.data.labels import literal_of, local_name
from engine.data.readers import RawDataset, RawGraph, RawLinks
from engine.data.readers.base import Part
from engine.data.readers.tables import with_apart
from engine.data.texts import Texts
from engine.errors import DataImportError
from engine.util.text import count, shorten

_AMBIGUOUS: Final = ""
"""In place of an identifier: several entities are abbreviated in this way."""


def with_cross_references(raw: RawDataset, attribute: str) -> RawDataset:
    """The data with links of all values of an attribute that name an entity of the other graph, by its identifier or a CURIE (``FMA:7088`` for
    ``http://purl.obolibrary.org/obo/FMA_7088``).

    They are added to the training links where a file divided the links, else to all. Values of an attribute that says less than equality
    (``skos:closeMatch``) are kept apart instead.

    Args:
        attribute: its full or local name, or a CURIE of it.

    Raises:
        DataImportError: neither graph has it.
    """
    known = {(left, right) for links in raw.links.values() for left, right in zip(links.sources, links.targets, strict=True)}
    pairs: dict[tuple[str, str], None] = {}
    unknown = Counter[str]()
    values = 0
    for side, graph, other in zip(SIDES, (raw.source, raw.target), (raw.target, raw.source), strict=True):
        forms = entity_forms(other.identifiers)
        for entity, value in _values(graph, attribute):
            values += 1
            found = forms.get(literal_of(value).text.strip())
            if not found:
                unknown["with several entities to fit" if found == _AMBIGUOUS else "without an entity of the other graph"] += 1
            else:
                pairs[_ordered(side, entity, found)] = None
    if not values:
        raise DataImportError(f"neither graph has an attribute '{shorten(attribute)}' to take links from; check its name, or leave the option out.")
    fresh = [pair for pair in pairs if pair not in known]
    relation = RELATIONS.get(local_predicate(attribute))
    left_out = "".join(f"; {count(number, 'value')} {reason}" for reason, number in sorted(unknown.items()))
    name = shorten(attribute, 80)
    if relation is None:
        again = f", {len(pairs) - len(fresh):,} more were known already" if len(pairs) > len(fresh) else ""
        message = f"{count(len(fresh), 'link')} came from the attribute '{name}' of the graphs{again}"
        links = _with_links(raw, fresh)
    else:
        message = f"{count(len(pairs), 'mapping')} came from the attribute '{name}', which says less than equality: kept apart"
        apart = Apart.of((left, right, relation, math.nan) for left, right in pairs)
        links = with_apart(raw.links or {"all": RawLinks(raw.source.path, (), ())}, apart)
    examples = tuple(f"{left} = {right}" for left, right in list(pairs)[:3])
    finding = Finding("cross-references", "info", f"{message}{left_out}.", len(pairs), examples)
    return dataclasses.replace(raw, links=links, findings=(*raw.findings, finding))


def _with_links(raw: RawDataset, pairs: list[tuple[str, str]]) -> Mapping[Part, RawLinks]:
    part: Part = "train" if "train" in raw.links else "all"
    own = raw.links.get(part) or RawLinks(raw.source.path, (), ())
    sources, targets = ([pair[at] for pair in pairs] for at in (0, 1))
    joined = dataclasses.replace(own, sources=[*own.sources, *sources], targets=[*own.targets, *targets], confidences=())
    return {**raw.links, part: joined}


def _ordered(side: Side, entity: str, other: str) -> tuple[str, str]:
    return (entity, other) if side == "source" else (other, entity)


def entity_forms(identifiers: Iterable[str]) -> dict[str, str]:
    """What an entity may be called in a cross reference -> its identifier, "" where several may be called so."""
    own = list(identifiers)
    forms: dict[str, str] = {}
    for identifier in own:
        for form in _abbreviations(identifier):
            forms[form] = identifier if forms.get(form, identifier) == identifier else _AMBIGUOUS
    return {**forms, **{identifier: identifier for identifier in own}}


def _abbreviations(identifier: str) -> Iterator[str]:
    """``FMA:7088`` for an IRI that ends in ``FMA_7088``, and the like; bare numbers and words are no references."""
    tail = identifier.rsplit("/", 1)[-1].rsplit("#", 1)[-1]
    prefix, found, rest = tail.partition("_")
    if found and prefix and rest:
        yield f"{prefix}:{rest}"
        yield tail
    elif ":" in tail.strip(":"):
        yield tail


def _values(graph: RawGraph, attribute: str) -> Iterator[tuple[str, str]]:
    """Entities with the values that they have of the attribute, as text or as a triple."""
    wanted = attribute.strip()
    for columns in (graph.attributes, graph.identities, (graph.heads, graph.relations, graph.tails)):
        entities, names, values = map(Texts.of, columns)
        chosen = [is_called(name, wanted) for name in names.words.to_list()]
        if any(chosen):
            for entity, name, value in zip(entities, names.codes.tolist(), values, strict=True):
                if chosen[name]:
                    yield entity, value


def is_called(name: str, wanted: str) -> bool:
    """Whether an attribute is the wanted one: by its whole name, its last part, or a CURIE that ends in it."""
    return name == wanted or ("/" not in wanted and local_name(name) == wanted.rsplit(":", 1)[-1])
