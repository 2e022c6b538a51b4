"""One module a kind of format, one registry for all of them."""

from __future__ import annotations

from typing import Final

from engine.exporting.formats.simple import CSV, NTRIPLES, OPENEA, PARQUET, PREDICATES, TSV, Format, Predicate
from engine.exporting.formats.sssom import SSSOM
from engine.exporting.merged.files import merged_formats
from engine.util.registry import Registry

FORMATS: Final[Registry[Format]] = Registry("format")
"""By name, in the order in which they are offered."""
for one in (CSV, TSV, PARQUET, SSSOM, NTRIPLES, OPENEA, *merged_formats()):
    FORMATS.add(one.name, one)


def get_format(name: str) -> Format:
    """
    Raises:
        ConfigError: no format has this name.
    """
    return FORMATS.named(name)


__all__ = ["FORMATS", "PREDICATES", "Format", "Predicate", "get_format"]
