"""What exports of databases and tables have in common: facts about entities whose values are texts or name other entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np
import polars as pl

from engine.data.knowledge_graph import Finding
from engine.data.labels import NAME_ATTRIBUTES, local_name
from engine.data.readers.base import RawGraph
from engine.data.rows import CONTROL, MAX_IDENTIFIER, identifier_problem
from engine.data.texts import Texts, TextsBuilder, are_among, strings
from engine.errors import DataError
from engine.util.arrays import BoolArray
from engine.util.memory import check_room
from engine.util.text import count, shorten

STRETCH: Final = 2**16
ENOUGH: Final = 0.5
"""Share of a column's values that name entities from which on it is a relation."""
LISTED: Final = 8
IDENTIFIER_WORDS: Final = ("id", "identifier", "uri", "iri", "qid", "entity")
"""Normalised names of the column or key that holds the identifier, the likeliest first."""

Columns = tuple[Texts, Texts, Texts]


class RowsBuilder:
    """Rows of three texts, held as numbers as soon as there are enough of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._builders = tuple(TextsBuilder() for _ in range(3))
        self._pending: tuple[list[str], list[str], list[str]] = ([], [], [])

    def add(self, first: str, second: str, third: str) -> None:
        for column, text in zip(self._pending, (first, second, third), strict=True):
            column.append(text)
        if len(self._pending[0]) >= STRETCH:
            self._flush()

    def columns(self) -> Columns:
        """The rows; the builder is done with then."""
        self._flush()
        first, second, third = (builder.texts() for builder in self._builders)
        return first, second, third

    def _flush(self) -> None:
        check_room(self._path)
        for builder, column in zip(self._builders, self._pending, strict=True):
            builder.add(strings(column))
            column.clear()


@dataclass
class Notes:
    """What is to be said about a file.

    Attributes:
        path: the file.
        kind: of file: each has choices of its own.
        recognised: what it was taken for, a sentence without the file's name and without a full stop.
        left_out: what is not in the graph, as noun and where it is ("value", "of properties of edges") -> how many.
        unlisted: how many values of relations name entities that the file does not list.
    """

    path: Path
    kind: Literal["graph", "table", "database"] = "graph"
    recognised: str = ""
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    unlisted: int = 0

    def findings(self) -> Iterator[Finding]:
        name = shorten(self.path.name)
        if self.recognised:
            message = f"{name}: {self.recognised}."
            found = {
                "graph": Finding("graph-recognised", "info", message),
                "table": Finding("table-recognised", "info", message),
                "database": Finding("database-recognised", "info", message),
            }
            yield found[self.kind]
        if number := sum(self.left_out.values()):
            ordered = sorted(((many, *words) for words, many in self.left_out.items() if many), key=lambda one: (-one[0], one[1:]))
            reasons = "; ".join(f"{count(many, noun)} {rest}" for many, noun, rest in ordered)
            yield Finding("graph-left-out", "info", f"{name}: left out of the graph: {reasons}.", number)
        if self.unlisted:
            message = f"{name}: {count(self.unlisted, 'entity is', 'entities are')} only named by others and not listed in the file."
            yield Finding("unlisted-entities", "info", message, self.unlisted)


def named_list(names: Sequence[str]) -> str:
    """'capital, country and 3 more'; 'none'."""
    shown = ", ".join(shorten(name, 40) for name in names[:LISTED])
    return f"{shown} and {len(names) - LISTED:,} more" if len(names) > LISTED else shown or "none"


def are_numbers(words: pl.Series) -> bool:
    """Whether all identifiers are plain numbers, so that a number elsewhere need not be one of them."""
    return bool(len(words)) and bool(words.str.contains(r"\A[0-9]+\z").all())


def names_entities(named: BoolArray, numeric: bool) -> bool:
    """Whether a column holds entities.

    Args:
        named: for each of its distinct values, whether it is an identifier of an entity.
        numeric: whether identifiers are plain numbers: then all of them have to be.
    """
    return bool(len(named)) and bool(named.all() if numeric else named.mean() >= ENOUGH)


def holds_names(key: str) -> bool:
    """Whether a column or key holds names, which may be the same as identifiers and are texts all the same."""
    return local_name(key).lower() in NAME_ATTRIBUTES


def cannot_be_identifiers(words: pl.Series) -> BoolArray:
    """(n,) which texts no identifier can be."""
    found: BoolArray = ((words.str.strip_chars() == "") | (words.str.len_chars() > MAX_IDENTIFIER) | words.str.contains(CONTROL.pattern)).to_numpy()
    return found


def check_words(path: Path, what: str, words: pl.Series) -> None:
    """
    Raises:
        DataError: one of the texts cannot be an identifier.
    """
    for text in words.filter(pl.Series(cannot_be_identifiers(words))).head(1):
        raise DataError(f"the {what} '{shorten(text, 40)}' {identifier_problem(text)}; correct or remove it.", path=path)


def divided(rows: Columns, ids: pl.Series) -> tuple[Columns, Columns, list[str]]:
    """Facts about entities: those whose value is an entity, the others, and the keys of the former.

    Args:
        rows: entity, key, value.
        ids: identifiers of the entities, distinct.
    """
    entities, keys, values = rows
    named = are_among(values.words, ids)
    numeric = are_numbers(ids)
    pairs = pl.DataFrame({"key": keys.codes, "named": named[values.codes], "value": values.codes}).unique()
    shares = pairs.group_by("key").agg(pl.col("named").mean())
    enough = shares.filter(pl.col("named") >= (1.0 if numeric else ENOUGH))["key"]
    is_relation = np.zeros(len(keys.words), dtype=bool)
    is_relation[enough.to_numpy()] = True
    is_relation &= np.array([not holds_names(key) for key in keys.words], dtype=bool)
    related = keys.having(is_relation) & ~values.having(cannot_be_identifiers(values.words))
    triples = entities.take(related), keys.take(related), values.take(related)
    attributes = entities.take(~related), keys.take(~related), values.take(~related)
    return triples, attributes, sorted(triples[1].words.to_list())


def recorded_graph(path: Path, triples: Columns, attributes: Columns, entities: Texts, notes: Notes) -> RawGraph:
    """The graph, after a look at its identifiers.

    Raises:
        DataError: an identifier that cannot be one.
    """
    named = (
        ("identifier", entities),
        *zip(("head", "relation", "tail"), triples, strict=True),
        *zip(("entity", "attribute"), attributes[:2], strict=True),
    )
    for what, column in named:
        check_words(path, what, column.words)
    if len(entities):
        notes.unlisted = int(np.count_nonzero(~are_among(Texts.joined(triples[0].words, triples[2].words).words, entities.words.unique())))
    return RawGraph(path, *triples, entities=entities, attributes=attributes)
