"""Taking an alignment home: which pairs, and in which format (docs/exporting.md)."""

from __future__ import annotations

from engine.exporting.clusters import Clusters, combined, write_clusters
from engine.exporting.formats import FORMATS, PREDICATES, Format, Predicate, formats_by_ending, get_format
from engine.exporting.formats.simple import check_plain, write_plain
from engine.exporting.merged import CANONICAL, Canonical, Fold, FoldOptions, split_merged, value_conflicts, with_fold
from engine.exporting.relations import predicate_of, write_relations
from engine.exporting.reviewed import DecidedPair, reviewed_pairs
from engine.exporting.selection import (
    DECODER_NAMES,
    DECODER_WORDS,
    ONE_TO_ONE,
    SEARCHING,
    STORED,
    ExportSelection,
    Groundwork,
    Part,
    Predictions,
    Prepared,
    check_measurable,
    decoder_help,
    default_decoder,
    graph_evidence,
    lay_groundwork,
    pairs_to_export,
    prepare,
    search_run,
    searched,
)
from engine.exporting.table import COLUMNS, Conflicts, ExpectedQuality, ExportTable
from engine.exporting.writing import export_bytes, preview_lines, write_export

__all__ = [
    "CANONICAL",
    "COLUMNS",
    "DECODER_NAMES",
    "DECODER_WORDS",
    "FORMATS",
    "ONE_TO_ONE",
    "PREDICATES",
    "SEARCHING",
    "STORED",
    "Canonical",
    "Clusters",
    "Conflicts",
    "DecidedPair",
    "ExpectedQuality",
    "ExportSelection",
    "ExportTable",
    "Fold",
    "FoldOptions",
    "Format",
    "Groundwork",
    "Part",
    "Predicate",
    "Predictions",
    "Prepared",
    "check_measurable",
    "check_plain",
    "combined",
    "decoder_help",
    "default_decoder",
    "export_bytes",
    "formats_by_ending",
    "get_format",
    "graph_evidence",
    "lay_groundwork",
    "pairs_to_export",
    "predicate_of",
    "prepare",
    "preview_lines",
    "reviewed_pairs",
    "search_run",
    "searched",
    "split_merged",
    "value_conflicts",
    "with_fold",
    "write_clusters",
    "write_export",
    "write_plain",
    "write_relations",
]
