"""What is written of a pair means this pair and no other one: how identifiers are spelt in an export, and which of them a format cannot hold."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final
from weakref import WeakKeyDictionary

from engine.data.identifiers import Encoding, Spelling
from engine.data.knowledge_graph import SIDES, Side
from engine.data.rows import CONTROL
from engine.errors import ExportError
from engine.exporting.table import ExportTable
from engine.runs.entities import GraphView
from engine.util.text import count, shorten

NAMED: Final = 3
"""Pairs that a message names."""
_spellings: WeakKeyDictionary[GraphView, dict[Encoding, Spelling]] = WeakKeyDictionary()


def spellings(table: ExportTable, encoding: Encoding) -> Mapping[Side, Spelling]:
    """How the identifiers of both graphs are written; all of a graph's, whichever pairs are exported, so that a reader who has the graph can tell."""
    return {side: _spelling(table.view.graphs[side], encoding) for side in SIDES}


def _spelling(graph: GraphView, encoding: Encoding) -> Spelling:
    known = _spellings.setdefault(graph, {})
    if encoding not in known:
        known[encoding] = Spelling.of(graph.index, graph.side, encoding)
    return known[encoding]


def check_text(table: ExportTable, title: str) -> None:
    """
    Raises:
        ExportError: pairs with an identifier that no line of text can hold; names them.
    """
    pairs = (pair for ends in table.identifiers() for pair in zip(*ends, strict=True))
    wrong = (pair for pair in pairs if not all(map(is_text, pair)))
    named = [f"'{shorten(source)}' = '{shorten(target)}'" for source, target in islice(wrong, NAMED)]
    if named:
        rest = sum(1 for _ in wrong)
        listed = ", ".join(named) + (f" and {rest:,} more" if rest else "")
        raise ExportError(
            f"{count(len(named) + rest, 'pair')} cannot be written as {title}, since an identifier holds a control character or half of a character "
            f"({listed}); export them as Parquet or SSSOM."
        )


def is_text(identifier: str) -> bool:
    """Whether an identifier can stand in a line of UTF-8."""
    return not CONTROL.search(identifier) and (identifier.isascii() or not any("\ud800" <= one <= "\udfff" for one in identifier))
