"""One module a kind of format, one registry for all of them."""

from __future__ import annotations

from typing import Final

from engine.errors import ConfigError
from engine.exporting.formats.simple import CSV, NTRIPLES, OPENEA, PARQUET, PREDICATES, TSV, Format, Predicate
from engine.exporting.formats.sssom import SSSOM
from engine.exporting.merged.files import merged_formats

FORMATS: Final[dict[str, Format]] = {one.name: one for one in (CSV, TSV, PARQUET, SSSOM, NTRIPLES, OPENEA, *merged_formats())}
"""By name, in the order in which they are offered."""


def get_format(name: str) -> Format:
    """
    Raises:
        ConfigError: no format has this name.
    """
    if name not in FORMATS:
        raise ConfigError(f"unknown format '{name[:40]}'; known are {', '.join(FORMATS)}.")
    return FORMATS[name]


__all__ = ["FORMATS", "PREDICATES", "Format", "Predicate", "get_format"]
