"""Both graphs as one: matched entities become one entity, and every statement says where it comes from (docs/exporting.md)."""

from __future__ import annotations

from engine.exporting.merged.conflicts import CONFLICT_COLUMNS, value_conflicts
from engine.exporting.merged.files import MERGED, MERGED_PARQUET, merged_formats, with_fold
from engine.exporting.merged.fold import CANONICAL, Canonical, Fold, FoldOptions
from engine.exporting.merged.split import split_merged

__all__ = [
    "CANONICAL",
    "CONFLICT_COLUMNS",
    "MERGED",
    "MERGED_PARQUET",
    "Canonical",
    "Fold",
    "FoldOptions",
    "merged_formats",
    "split_merged",
    "value_conflicts",
    "with_fold",
]
