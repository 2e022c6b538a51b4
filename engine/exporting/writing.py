"""Exports as files, as bytes for a download, and as the first lines of them."""

from __future__ import annotations

import io
from pathlib import Path

from engine.errors import ExportError
from engine.exporting.formats import Format, Predicate
from engine.exporting.table import ExportTable
from engine.util.files import new_file


def write_export(path: Path, table: ExportTable, fmt: Format, predicate: Predicate | None = None, *, force: bool = False) -> None:
    """Write pairs to a file, which is there when it is whole.

    Args:
        predicate: what to say of each pair, in formats that say something; None: what the format says by itself.
        force: whether a file that is there may be replaced.

    Raises:
        ExportError: no pairs, or the file cannot be written.
    """
    _check(table, fmt, predicate)
    with new_file(path, force=force) as file:
        fmt.write(file, table, _said(fmt, predicate))


def export_bytes(table: ExportTable, fmt: Format, predicate: Predicate | None = None) -> bytes:
    """The same in memory: some 200 bytes a pair.

    Raises:
        ExportError: no pairs.
    """
    _check(table, fmt, predicate)
    file = io.BytesIO()
    fmt.write(file, table, _said(fmt, predicate))
    return file.getvalue()


def preview_lines(table: ExportTable, fmt: Format, predicate: Predicate | None = None, rows: int = 5) -> list[str]:
    """The first lines of the file, as if there were ``rows`` pairs only; none for formats that no person reads."""
    if not fmt.readable:
        return []
    return export_bytes(table.head(rows), fmt, predicate).decode("utf-8-sig").removesuffix("\n").split("\n")


def _check(table: ExportTable, fmt: Format, predicate: Predicate | None) -> None:
    if not len(table):
        raise ExportError("there are no pairs to export; use a lower minimum probability or fewer filters.")
    if predicate is not None and fmt.predicate is None:
        raise ExportError(f"format '{fmt.name}' has no predicate; choose sssom or ntriples, or remove --predicate.")


def _said(fmt: Format, predicate: Predicate | None) -> Predicate:
    return predicate or fmt.predicate or "owl:sameAs"
