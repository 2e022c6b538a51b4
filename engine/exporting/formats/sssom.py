"""SSSOM, the Simple Standard for Sharing Ontological Mappings, as a table with its metadata in front."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count
from types import MappingProxyType
from typing import IO, Final

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import SIDES, Side
from engine.data.links import BASE, Spelling, to_uri
from engine.exporting.formats.simple import Format, Predicate, one_line_cell, plain_cell, spellings
from engine.exporting.table import ExportTable, Origin
from engine.runs.verdicts import CERTAIN_LINKS

LICENSE = "https://w3id.org/sssom/license/unspecified"
"""SSSOM's own word for: ask whoever made the graphs."""
TOOL = "Dual-AMN Explorer"
BUILT_IN: Mapping[str, str] = {
    "owl": "http://www.w3.org/2002/07/owl#",
    "semapv": "https://w3id.org/semapv/vocab/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
}
RESERVED = frozenset({*BUILT_IN, "rdf", "rdfs", "sssom", "xsd", "linkml", "dcterms", "pav", "prov", "oboinowl"})
MANUAL = "semapv:ManualMappingCuration"
EXTENSIONS: Mapping[str, str] = {"ext_csls": "double", "ext_ties": "integer", "ext_verdict": "string", "ext_run": "string"}
"""Columns that are no part of SSSOM, and their types."""
SLOTS: Final = (
    *("subject_id", "subject_label", "predicate_id", "object_id", "object_label", "mapping_justification", "author_label"),
    *("confidence", "similarity_score", "similarity_measure", *EXTENSIONS),
)
_PLACE = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*/?|{BASE}[a-z]+:|urn:[^:]+:|[A-Za-z][A-Za-z0-9+.-]*:")
_GENERIC = frozenset({"www", "com", "org", "net", "edu", "gov", "info"})


def write_sssom(file: IO[bytes], table: ExportTable, predicate: Predicate) -> None:
    spelt = spellings(table, to_uri)
    apart = apart_uris(table, spelt)
    same = {side: Spelling({}) for side in SIDES}
    prefixes = Prefixes.of(chain(_spelt(table.identifiers(), spelt), [apart]), same)
    file.write("".join(f"#{line}\n" for line in metadata(table.origin, prefixes)).encode("utf-8"))
    for number, chunk in enumerate(table.chunks()):
        rows = mappings(chunk, table.origin, spelt, prefixes, predicate)
        text = rows.to_csv(sep="\t", index=False, header=number == 0, float_format="%.6g", lineterminator="\n")
        file.write(str(text).encode("utf-8", "replace"))
    if len(table.apart):
        rows = apart_mappings(table, apart, prefixes)
        header = not len(table)
        file.write(str(rows.to_csv(sep="\t", index=False, header=header, float_format="%.6g", lineterminator="\n")).encode("utf-8", "replace"))


def _spelt(parts: Iterable[tuple[Iterable[str], Iterable[str]]], spelt: Mapping[Side, Spelling]) -> Iterable[tuple[list[str], list[str]]]:
    return ((list(map(spelt["source"], sources)), list(map(spelt["target"], targets))) for sources, targets in parts)


def apart_uris(table: ExportTable, spelt: Mapping[Side, Spelling]) -> tuple[list[str], list[str]]:
    """The ends of the mappings that say less than equality; some may name entities that the graphs do not have."""
    if not len(table.apart):
        return [], []
    ends = ([spelt[side](one) if one in table.view.graphs[side].index else to_uri(one, side) for one in table.apart[side]] for side in SIDES)
    sources, targets = ends
    return sources, targets


def apart_mappings(table: ExportTable, uris: tuple[list[str], list[str]], prefixes: Prefixes) -> pd.DataFrame:
    """Mappings of the data that say less than equality, in SSSOM's columns, as they were imported."""
    subjects, objects = ([prefixes.curie(uri) for uri in side] for side in uris)
    known = {"subject_id": subjects, "predicate_id": list(table.apart["relation"]), "object_id": objects}
    rows = pd.DataFrame({**known, "mapping_justification": "semapv:UnspecifiedMatching", "confidence": list(table.apart["confidence"])})
    return rows.assign(ext_run=table.origin.run).reindex(columns=SLOTS)


def metadata(
    origin: Origin, prefixes: Prefixes, namespaces: Mapping[str, str] = MappingProxyType({}), extensions: Collection[str] = tuple(EXTENSIONS)
) -> Iterable[str]:
    """The lines in front, in YAML; texts are quoted as JSON does, which YAML understands.

    Args:
        namespaces: further prefixes that the table uses.
        extensions: those of ``EXTENSIONS`` that it has.
    """
    yield "curie_map:"
    yield from (f"  {prefix}: {json.dumps(namespace)}" for prefix, namespace in sorted({**prefixes.curie_map(), **namespaces}.items()))
    slots = {
        "mapping_set_id": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'urn:dual-amn:{origin.run}:{origin.created}:{origin.decoder}')}",
        "mapping_set_title": one_line_cell(f"{origin.graphs[0]} and {origin.graphs[1]}, aligned by run {origin.run}"),
        "license": LICENSE,
        "mapping_tool": TOOL,
        "mapping_tool_version": origin.version,
        "mapping_date": datetime.fromisoformat(origin.created).date().isoformat(),
    }
    yield from (f"{slot}: {json.dumps(value, ensure_ascii=True)}" for slot, value in slots.items())
    if extensions:
        yield "extension_definitions:"
    for slot in extensions:
        kind = EXTENSIONS[slot]
        yield f"  - slot_name: {slot}"
        yield f'    property: "urn:dual-amn:{slot.removeprefix("ext_")}"'
        yield f'    type_hint: "http://www.w3.org/2001/XMLSchema#{kind}"'


def mappings(chunk: pd.DataFrame, origin: Origin, spelt: Mapping[Side, Spelling], prefixes: Prefixes, predicate: Predicate) -> pd.DataFrame:
    """Pairs in SSSOM's columns. A similarity lies between 0 and 1 there, so a negative cosine is written as 0."""
    ids = {side: [prefixes.curie(spelt[side](identifier)) for identifier in chunk[side]] for side in SIDES}
    accepted = chunk["review"] == "accepted"
    computed = "semapv:CompositeMatching" if origin.names else "semapv:StructuralMatching"
    known = chunk["verdict"].isin(CERTAIN_LINKS if origin.known_links else CERTAIN_LINKS[:1])
    justification = np.where(known, "semapv:UnspecifiedMatching", computed)
    return pd.DataFrame(
        {
            "subject_id": ids["source"],
            "subject_label": chunk["source_label"].map(plain_cell),
            "predicate_id": predicate,
            "object_id": ids["target"],
            "object_label": chunk["target_label"].map(plain_cell),
            "mapping_justification": np.where(accepted, MANUAL, justification),
            "author_label": chunk["reviewers"].map(plain_cell),
            "confidence": chunk["probability"],
            "similarity_score": chunk["cosine"].clip(0.0, 1.0),
            "similarity_measure": "cosine",
            "ext_csls": chunk["csls"],
            "ext_ties": chunk["ties"],
            "ext_verdict": chunk["verdict"],
            "ext_run": chunk["run"],
        }
    )


# Prefixes


@dataclass(frozen=True)
class Prefixes:
    """Short names for what identifiers begin with.

    Attributes:
        of_place: host (``http://a.org/``), or scheme without hosts (``urn:isbn:``) -> prefix, and the namespace that it abbreviates: what all
            identifiers of that place have in common.
    """

    of_place: Mapping[str, tuple[str, str]]

    @classmethod
    def of(cls, identifiers: Iterable[tuple[Iterable[str], Iterable[str]]], spelt: Mapping[Side, Spelling]) -> Prefixes:
        """Of the identifiers of the source and of the target, in parts."""
        common: dict[str, str] = {}
        for ends in identifiers:
            for side, part in zip(SIDES, ends, strict=True):
                for uri in map(spelt[side], part):
                    place = place_of(uri)
                    common[place] = shared_start(common.get(place, uri), uri)
        taken = set(RESERVED)
        found: dict[str, tuple[str, str]] = {}
        for place, shared in sorted(common.items()):
            prefix = free(prefix_of(place), taken)
            taken.add(prefix)
            found[place] = prefix, namespace_of(place, shared)
        return cls(found)

    def curie(self, uri: str) -> str:
        prefix, namespace = self.of_place[place_of(uri)]
        return f"{prefix}:{uri[len(namespace) :]}"

    def curie_map(self) -> dict[str, str]:
        """Prefix -> namespace, with those of predicates and justifications, by prefix."""
        return dict(sorted({**BUILT_IN, **dict(self.of_place.values())}.items()))


def place_of(uri: str) -> str:
    """'http://a.org/' of 'http://a.org/x/y', 'urn:isbn:' of 'urn:isbn:1', 'ne:' of 'ne:1'."""
    found = _PLACE.match(uri)
    return uri if found is None else found.group()


def shared_start(one: str, other: str) -> str:
    """What both texts begin with."""
    while not other.startswith(one):
        one = one[:-1]
    return one


def namespace_of(place: str, shared: str) -> str:
    """The namespace of a prefix: the place, and on a host the folders that all of its identifiers share."""
    return shared[: max(len(place), shared.rfind("/") + 1, shared.rfind("#") + 1)] if "://" in place else place


def prefix_of(place: str) -> str:
    """'fr-dbpedia' for 'http://fr.dbpedia.org/': a name to be read, such that a CURIE with it is a URI as well, whatever follows."""
    host = re.sub(r"^[^:]*://", "", place)
    words = [word for word in re.split(r"[^a-z0-9]+", host.lower()) if word]
    specific = [word for word in words if word not in _GENERIC] or words or ["ns"]
    name = "-".join(specific).removeprefix("urn-")
    return name if name[0].isalpha() else f"n{name}"


def free(name: str, taken: Collection[str]) -> str:
    """The name, with a number behind it where it is taken."""
    return next(one for one in chain([name], (f"{name}-{number}" for number in count(2))) if one not in taken)


SSSOM: Final = Format(
    "sssom",
    "SSSOM",
    ".sssom.tsv",
    "text/tab-separated-values",
    "for mapping registries: justification, confidence and tool",
    write_sssom,
    "skos:exactMatch",
)
