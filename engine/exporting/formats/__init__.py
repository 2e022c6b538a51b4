"""One module a kind of format, one registry for all of them."""

from __future__ import annotations

from pathlib import Path
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


def formats_by_ending(path: Path) -> list[Format]:
    """The formats whose files may end so, the longest ending first; none for an unknown ending."""
    name = path.name.lower()
    found = [one for one in FORMATS.values() if name.endswith(f".{one.suffix.rpartition('.')[2]}")]
    return sorted(found, key=lambda one: (not name.endswith(one.suffix), -len(one.suffix)))


__all__ = ["FORMATS", "PREDICATES", "Format", "Predicate", "formats_by_ending", "get_format"]
