"""Taking an alignment home: which pairs, and in which format (docs/exporting.md)."""

from __future__ import annotations

from engine.exporting.decoded import DECODER_NAMES, STORED, decoded_alignments, graph_evidence
from engine.exporting.formats import FORMATS, PREDICATES, Format, Predicate, get_format
from engine.exporting.reviewed import ReviewedPair, reviewed_pairs
from engine.exporting.selection import Part, Selection, select_pairs
from engine.exporting.table import COLUMNS, Expectation, ExportTable
from engine.exporting.writing import export_bytes, preview, write_export

__all__ = [
    "COLUMNS",
    "DECODER_NAMES",
    "FORMATS",
    "PREDICATES",
    "STORED",
    "Expectation",
    "ExportTable",
    "Format",
    "Part",
    "Predicate",
    "ReviewedPair",
    "Selection",
    "decoded_alignments",
    "export_bytes",
    "get_format",
    "graph_evidence",
    "preview",
    "reviewed_pairs",
    "select_pairs",
    "write_export",
]
