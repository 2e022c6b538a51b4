"""A part of a data set in the OpenEA layout, for work whose answer does not depend on the size of the graphs: it takes a fraction of the time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLD: Final = Path("721_5fold") / "1"


def write_part(data: Path, folder: Path, links: int) -> Path:
    """The first links, the triples between entities that they name, and these entities' attributes; the split is that of the data."""
    kept = _rows(data / "ent_links")[:links]
    _write(folder / "ent_links", kept)
    known = {tuple(row) for row in kept}
    for side, graph in enumerate("12"):
        linked = {row[side] for row in kept}
        _write(folder / f"rel_triples_{graph}", [row for row in _rows(data / f"rel_triples_{graph}") if row[0] in linked and row[2] in linked])
        _write(folder / f"attr_triples_{graph}", [row for row in _rows(data / f"attr_triples_{graph}") if row[0] in linked])
    for path in sorted((data / FOLD).iterdir()):
        _write(folder / FOLD / path.name, [row for row in _rows(path) if tuple(row) in known])
    return folder


def _rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def _write(path: Path, rows: list[list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
