"""The endings of files by what they hold, for readers, imports and messages alike. A file of any of them may be gzipped, with ``.gz`` behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final, Literal

RdfForm = Literal["ntriples", "turtle", "rdfxml", "nquads", "trig", "jsonld"]
OntologySyntax = Literal["ofn", "owx", "omn", "obo"]
ExportForm = Literal["graphml", "gexf", "jsonl", "sqlite", "duckdb"]

GZIP_ENDING: Final = ".gz"
SUFFIXES: Final = (".csv", ".tsv", ".parquet")
"""Of tables."""
RDF_ENDINGS: Final[Mapping[RdfForm, tuple[str, ...]]] = {
    "ntriples": (".nt", ".ntriples"),
    "turtle": (".ttl", ".turtle"),
    "rdfxml": (".rdf", ".owl", ".xml"),
    "nquads": (".nq", ".nquads"),
    "trig": (".trig",),
    "jsonld": (".jsonld",),
}
"""The usual ending of a form first, as in the others below."""
ONTOLOGY_ENDINGS: Final[Mapping[OntologySyntax, tuple[str, ...]]] = {"ofn": (".ofn",), "owx": (".owx",), "omn": (".omn",), "obo": (".obo",)}
"""Of ontologies that are no RDF."""
EXPORT_ENDINGS: Final[Mapping[ExportForm, tuple[str, ...]]] = {
    "graphml": (".graphml",),
    "gexf": (".gexf",),
    "jsonl": (".jsonl", ".ndjson"),
    "sqlite": (".sqlite", ".sqlite3", ".db"),
    "duckdb": (".duckdb",),
}
PLAIN: Final = ("", ".txt")
"""Of links in two columns with a tab between."""
UNREAD: Final = (".tab", ".xlsx", ".xls", ".ods", ".n3")
"""Of data that is not read in this form."""
DATA_ENDINGS: Final = (*SUFFIXES, *chain(*RDF_ENDINGS.values(), *ONTOLOGY_ENDINGS.values(), *EXPORT_ENDINGS.values()), *UNREAD)
LINK_ENDINGS: Final = (*SUFFIXES, *chain(*RDF_ENDINGS.values()), *filter(None, PLAIN))
"""Of files that links are read from; OpenEA's have none."""
TAR_ENDINGS: Final = (".tar.gz", ".tgz", ".tar")
ARCHIVES: Final = (".zip", *TAR_ENDINGS)
"""Of archives that are unpacked."""
UNREAD_ARCHIVES: Final = (".tar.bz2", ".tar.xz", ".7z", ".rar")


def unpacked_name(name: str) -> str:
    """'a.csv' for 'A.CSV.gz': in lower case, and without the ending of packed files."""
    return name.lower().removesuffix(GZIP_ENDING)


def ending_of(name: str, endings: Iterable[str]) -> str:
    """The one of these endings that a file's name has, plain or gzipped; '' where it has none of them."""
    plain = unpacked_name(name)
    return next((ending for ending in endings if plain.endswith(ending)), "")
