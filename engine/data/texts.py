"""Columns of texts that repeat: each distinct text is held once, outside of Python's objects, and a row is a number.

A graph names each entity in many triples. As Python strings ten million triples take gigabytes; as numbers they take 12 bytes each, and what one
needs from them (which identifiers occur, which are known elsewhere) is computed on the distinct ones.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, overload

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from engine.util.arrays import BoolArray, IntArray

Codes = npt.NDArray[np.uint32]

STRETCH: Final = 2**16
"""Rows that are turned into Python strings at a time."""


class Texts(Sequence[str]):
    """A column of n texts; to its readers a sequence of strings.

    Attributes:
        codes: (n,) for each row, which of the words it is.
        words: the distinct texts, in no order that means anything; each of them occurs in some row.
    """

    __slots__ = ("codes", "words")

    def __init__(self, codes: Codes, words: pl.Series) -> None:
        self.codes = codes
        self.words = words

    @classmethod
    def of(cls, texts: Iterable[str] | pl.Series) -> Texts:
        """From any texts; what is such a column already is returned as it is."""
        if isinstance(texts, Texts):
            return texts
        builder = TextsBuilder()
        builder.add(texts if isinstance(texts, pl.Series) else strings(texts))
        return builder.texts()

    @classmethod
    def same(cls, text: str, count: int) -> Texts:
        """One text repeated in a number of rows."""
        return cls(np.zeros(count, dtype=np.uint32), strings((text,) if count else ()))

    @classmethod
    def joined(cls, *columns: Iterable[str]) -> Texts:
        """The rows of one column after the other."""
        parts = [column for column in map(cls.of, columns) if len(column)]
        words = cls.of(pl.concat([strings(()), *(part.words for part in parts)]))
        starts = np.cumsum([0, *(len(part.words) for part in parts)])
        codes = [words.codes[start + part.codes] for start, part in zip(starts, parts, strict=False)]
        return cls(np.concatenate([np.empty(0, dtype=np.uint32), *codes]), words.words)

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Texts: ...
    def __getitem__(self, row: int | slice) -> str | Texts:
        if isinstance(row, slice):
            return Texts(self.codes[row], self.words).compact()
        text: str = self.words[int(self.codes[row])]
        return text

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), STRETCH):
            yield from self.words.gather(self.codes[start : start + STRETCH]).to_list()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self._code(text) is not None

    def count(self, text: str) -> int:
        code = self._code(text)
        return 0 if code is None else int(np.count_nonzero(self.codes == code))

    def take(self, rows: IntArray | BoolArray) -> Texts:
        """These rows."""
        return Texts(self.codes[rows], self.words).compact()

    def compact(self) -> Texts:
        """Without words that no row has."""
        used = np.bincount(self.codes, minlength=len(self.words)).astype(bool)
        if used.all():
            return self
        renumbered = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
        return Texts(renumbered[self.codes], self.words.filter(pl.Series(used)))

    def having(self, words: BoolArray) -> BoolArray:
        """(n,) which rows have one of the words that are marked."""
        rows: BoolArray = words[self.codes]
        return rows

    def first(self, words: BoolArray) -> int | None:
        """The first row that has one of the words that are marked."""
        return int(self.having(words).argmax()) if words.any() else None

    def renamed(self, words: Iterable[str] | pl.Series) -> Texts:
        """With other words in the place of these, which may coincide."""
        column = Texts.of(words)
        return Texts(column.codes[self.codes], column.words)

    def array(self) -> pa.LargeStringArray:
        """The rows as strings of Arrow."""
        return self.words.gather(self.codes).to_arrow(compat_level=pl.CompatLevel.oldest())

    def _code(self, text: str) -> int | None:
        found = (self.words == text).arg_true()
        return int(found[0]) if len(found) else None


class TextsBuilder:
    """A column in the making, stretch by stretch."""

    def __init__(self) -> None:
        self._words = pl.Categories.random()
        self._held = strings(()).cast(pl.Categorical(self._words))  # Polars forgets the words as soon as no column has them
        self._stretches: list[Codes] = []

    def add(self, texts: pl.Series) -> None:
        """Add rows, none of which is null."""
        self._stretches.append(texts.cast(self._held.dtype).to_physical().to_numpy())

    def texts(self) -> Texts:
        """The column; the builder is done with then."""
        codes = np.concatenate([np.empty(0, dtype=np.uint32), *self._stretches])
        count = int(codes.max()) + 1 if len(codes) else 0
        return Texts(codes, pl.Series(np.arange(count, dtype=np.uint32)).cat.to(self._held.dtype).cast(pl.String))


def strings(texts: Iterable[str]) -> pl.Series:
    return pl.Series(list(texts), dtype=pl.String)


def union(columns: Iterable[Texts]) -> pl.Series:
    """The distinct texts of some columns, by code point."""
    return distinct_words(*(column.words for column in columns))


def distinct_words(*words: pl.Series) -> pl.Series:
    """The distinct ones of all, by code point."""
    return pl.concat([strings(()), *words]).unique().sort()


def are_among(words: pl.Series, others: pl.Series) -> BoolArray:
    """(n,) which of the words are among the others, which are distinct."""
    found: BoolArray = positions(words, others) >= 0
    return found


def positions(words: pl.Series, others: pl.Series) -> IntArray:
    """(n,) position of each word among the others, which are distinct; -1 where it is not among them."""
    places = others.alias("word").to_frame().with_row_index("place")
    joined = words.alias("word").to_frame().join(places, on="word", how="left", maintain_order="left")
    found: IntArray = joined["place"].cast(pl.Int64).fill_null(-1).to_numpy()
    return found


def numbers(texts: Iterable[str], ordered: pl.Series) -> IntArray:
    """(n,) position of each text among the words, which are distinct and have all of them."""
    column = Texts.of(texts)
    return positions(column.words, ordered)[column.codes]
