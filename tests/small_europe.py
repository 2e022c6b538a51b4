"""A part of the sample data ``europe``, for tests whose answer does not depend on the size of the graphs: trained in a fraction of the time."""

from __future__ import annotations

from pathlib import Path

from benchmarks.parts import write_part

EUROPE = Path(__file__).resolve().parent.parent / "sample_data" / "europe"


def write_small_europe(folder: Path, links: int = 300) -> Path:
    """The first links, the triples between entities that they name, and these entities' attributes; the split is europe's own."""
    return write_part(EUROPE, folder, links)
