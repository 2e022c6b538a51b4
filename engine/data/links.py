"""Known links from a single file of any format: as other tools give them, and as this one exports them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from engine.data.readers.base import RawLinks
from engine.data.readers.rdf import FORMATS, rdf_suffix, read_same_as
from engine.data.readers.tables import read_link_parts as read_links_by_part
from engine.data.rows import read_tabbed
from engine.data.tabular import SUFFIXES, table_suffix
from engine.data.texts import Texts
from engine.errors import DataError

PLAIN: Final = ("", ".txt")
"""Endings of two columns with a tab between."""
ENDINGS: Final = (*SUFFIXES, *FORMATS, *filter(None, PLAIN))
"""Of files that links are read from, each plain or gzipped."""


def read_links(path: Path | str) -> RawLinks:
    """The pairs of a links file, told by its ending (``ENDINGS``): a table (SSSOM by its columns), RDF or, without an ending, two columns with a tab
    between (OpenEA's ``ent_links``). Each may be gzipped.

    Parts of a split are put together again. Identifiers are as the file has them, CURIEs expanded;
    :func:`engine.data.identifiers.resolve_links` finds those of two graphs.

    Raises:
        DataError: unreadable, an ending that is no format's, or not what the format wants, with the line.
    """
    path = Path(path)
    if table_suffix(path):
        parts = list(read_links_by_part(path, "all").values())
        joined = (Texts.joined(*column) for column in ([part.sources for part in parts], [part.targets for part in parts]))
        return parts[0] if len(parts) == 1 else RawLinks(path, *joined)
    if rdf_suffix(path):
        return read_same_as(path)
    if os.path.splitext(path.name.removesuffix(".gz"))[1].lower() in PLAIN:
        sources, targets = read_tabbed(path, ("source entity", "target entity")).columns
        return RawLinks(path, sources, targets)
    raise DataError(f"links are read from {', '.join(ENDINGS)} or OpenEA's ent_links; save them as one of these.", path=path)
