"""Links alone: owl:sameAs as N-Triples, and OpenEA's file of links."""

from __future__ import annotations

from typing import IO, Final

from engine.datasets.identifiers import to_iri
from engine.exporting.formats.base import PREDICATES, Format, Predicate
from engine.exporting.table import ExportTable


def write_ntriples(file: IO[bytes], table: ExportTable, predicate: Predicate) -> None:
    middle = f"> <{PREDICATES[predicate]}> <"
    for sources, targets in table.identifiers():
        pairs = zip(sources, targets, strict=True)
        lines = "".join(f"<{to_iri(source, 'source')}{middle}{to_iri(target, 'target')}> .\n" for source, target in pairs)
        file.write(lines.encode("utf-8"))


def write_openea(file: IO[bytes], table: ExportTable, predicate: Predicate) -> None:
    """Identifiers as they are: none of them can hold a tab or a line end."""
    for sources, targets in table.identifiers():
        lines = "".join(f"{source}\t{target}\n" for source, target in zip(sources, targets, strict=True))
        file.write(lines.encode("utf-8"))


NTRIPLES: Final = Format(
    "ntriples", "N-Triples", ".nt", "application/n-triples", "for triple stores: owl:sameAs or skos:exactMatch", write_ntriples, "owl:sameAs"
)
OPENEA: Final = Format("openea", "OpenEA links", ".txt", "text/plain", "for OpenEA and other aligners: the file ent_links", write_openea)
