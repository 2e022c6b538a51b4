"""Links alone: owl:sameAs as N-Triples, and OpenEA's file of links."""

from __future__ import annotations

from typing import IO, Final

from engine.data.identifiers import to_iri
from engine.exporting.formats.base import PREDICATES, Format, Predicate
from engine.exporting.table import ExportTable
from engine.exporting.writable import check_text, spellings

BYTE_ORDER_MARK: Final = "\ufeff"


def write_ntriples(file: IO[bytes], table: ExportTable, predicate: Predicate) -> None:
    spelt = spellings(table, to_iri)
    source_iri, target_iri = spelt["source"], spelt["target"]
    middle = f"> <{PREDICATES[predicate]}> <"
    for sources, targets in table.identifiers():
        pairs = zip(sources, targets, strict=True)
        lines = "".join(f"<{source_iri(source)}{middle}{target_iri(target)}> .\n" for source, target in pairs)
        file.write(lines.encode("utf-8"))


def write_openea(file: IO[bytes], table: ExportTable, predicate: Predicate) -> None:
    """Identifiers as they are. Readers take a byte order mark from the beginning, so that one that is part of the first identifier gets a second."""
    check_text(table, "OpenEA links")
    for number, (sources, targets) in enumerate(table.identifiers()):
        if number == 0 and sources[0].startswith(BYTE_ORDER_MARK):
            file.write(BYTE_ORDER_MARK.encode("utf-8"))
        lines = "".join(f"{source}\t{target}\n" for source, target in zip(sources, targets, strict=True))
        file.write(lines.encode("utf-8"))


NTRIPLES: Final = Format(
    "ntriples", "N-Triples", ".nt", "application/n-triples", "for triple stores: owl:sameAs or skos:exactMatch", write_ntriples, "owl:sameAs"
)
OPENEA: Final = Format("openea", "OpenEA links", ".txt", "text/plain", "for OpenEA and other aligners: the file ent_links", write_openea)
