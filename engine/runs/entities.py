"""Entities as people see them, and finding them by what people type."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import Side
from engine.errors import EntityError, RunDamagedError
from engine.util.arrays import BoolArray, IntArray

LONGEST_QUERY = 500

# Letters that Unicode does not take apart into a base letter and a mark, as people type them who lack the key.
_PLAIN_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ŧ": "t", "æ": "ae", "œ": "oe", "þ": "th", "_": " "})


@dataclass(frozen=True)
class Entity:
    """An entity as people see it. ``label`` may be empty; ``title`` never is."""

    side: Side
    index: int
    uri: str
    label: str
    degree: int

    @property
    def short_id(self) -> str:
        return short_id(self.uri)

    @property
    def title(self) -> str:
        return self.label or self.short_id


def short_id(uri: str) -> str:
    """The last part of an identifier: after ``/resource/`` where there is one (DBpedia names hold slashes), else after the last ``/`` or ``#``.

    A query is part of the name, and so is what precedes a ``#`` that only a number follows. What begins with no scheme is no IRI but an
    identifier of the data's own, in which ``/`` and ``#`` are letters like any other: it is the name itself.
    """
    if not _SCHEME.match(uri):
        return uri
    _, found, name = uri.partition("/resource/")
    if not found:
        trimmed = uri.rstrip("/#")
        path, query, _ = trimmed.partition("?")
        fragment = trimmed.rpartition("#")[2]
        name = trimmed[path.rfind("/") + 1 :] if query or fragment.isdecimal() else trimmed[max(trimmed.rfind("/"), trimmed.rfind("#")) + 1 :]
    return unquote(name) or uri


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def folded_label(text: str) -> str:
    """For comparison only: NFKC, case folded, one space between words, without accents (marks that are letters of their script stay)."""
    if text.isascii():  # most of most graphs, and a hundred times faster
        return " ".join(text.lower().replace("_", " ").split())
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_PLAIN_LETTERS)
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", folded))
    return " ".join(unicodedata.normalize("NFC", bare).split())


def search_forms(text: str) -> tuple[str, ...]:
    """A query as it is compared with labels and identifiers: normalised, and decoded as well where it is percent-encoded."""
    asked = text[:LONGEST_QUERY]
    written, decoded = folded_label(asked), folded_label(unquote(asked))
    return (written, decoded) if decoded and decoded != written else (written,)


class FoldedTexts(list[str]):
    """Normalised texts, which have no line ends. Joined into one, as UTF-8, a part is found in them much faster than in each by itself."""

    @cached_property
    def _joined(self) -> tuple[bytes, IntArray]:
        """All texts between line ends, and where the line end before each text is, and the last one."""
        lines = [encoded(f"{text}\n") for text in self]
        return b"\n" + b"".join(lines), np.cumsum([0, *map(len, lines)])

    def holding(self, words: str) -> Iterator[int]:
        """Positions of the texts that hold the words, in ascending order; of no words, all."""
        if not words:
            yield from range(len(self))
            return
        (joined, ends), part = self._joined, encoded(words)
        at = joined.find(part)
        while at >= 0:
            position = int(np.searchsorted(ends, at)) - 1
            yield position
            at = joined.find(part, ends[position + 1])

    def equal(self, words: str) -> Iterator[int]:
        """Positions of the texts that are the words, in ascending order; none of no words."""
        (joined, ends), line = self._joined, encoded(f"\n{words}\n")
        at = joined.find(line) if words else -1
        while at >= 0:
            yield int(np.searchsorted(ends, at))
            at = joined.find(line, at + 1)


def encoded(text: str) -> bytes:
    """UTF-8; halves of characters, which some JSON holds, are kept."""
    return text.encode("utf-8", "surrogatepass")


def _is_accent(char: str) -> bool:
    """Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowel signs; not the vowels and voicing marks of other scripts."""
    place = unicodedata.combining(char)
    return place >= 200 or 10 <= place <= 36


# Unicode has no combining marks beyond its second plane.
_ACCENTS = re.compile(f"[{''.join(filter(_is_accent, map(chr, range(0x20000))))}]")


def other(side: Side) -> Side:
    return "target" if side == "source" else "source"


class GraphView:
    """One graph of a run: its entities and how to find them.

    Attributes:
        side: which of the two.
        name: what the data set calls it.
        uris, labels: E texts each; "" where there is no label.
        degrees: (E,) incident triples.
    """

    def __init__(self, side: Side, name: str, entities: pd.DataFrame) -> None:
        self.side = side
        self.name = name
        ordered = entities.sort_values("entity")
        if not np.array_equal(ordered["entity"].to_numpy(), np.arange(len(ordered))):
            raise RunDamagedError(f"table 'entities' does not number the {side} graph's entities from 0 without gaps; train the run again.")
        self.uris: list[str] = ordered["uri"].astype(str).tolist()
        self.labels: list[str] = ordered["label"].fillna("").astype(str).tolist()
        self.degrees: IntArray = ordered["degree"].to_numpy(dtype=np.int64)

    def __len__(self) -> int:
        return len(self.uris)

    def entity(self, index: int) -> Entity:
        """
        Raises:
            EntityError: no such index.
        """
        if not 0 <= index < len(self):
            raise EntityError(f"the {self.side} graph has no entity {index}; it has {len(self):,}.")
        return Entity(self.side, index, self.uris[index], self.labels[index], int(self.degrees[index]))

    def title(self, index: int) -> str:
        """The label, else the short id."""
        return self.labels[index] or short_id(self.uris[index])

    @cached_property
    def index(self) -> dict[str, int]:
        """URI -> index."""
        return {uri: position for position, uri in enumerate(self.uris)}

    @cached_property
    def plain_labels(self) -> FoldedTexts:
        return FoldedTexts(folded_label(label) for label in self.labels)

    @cached_property
    def plain_ids(self) -> FoldedTexts:
        """Normalised short ids and, for searches by URI, the whole identifiers behind them."""
        return FoldedTexts(folded_label(short_id(uri)) for uri in self.uris)

    @cached_property
    def plain_uris(self) -> FoldedTexts:
        return FoldedTexts(folded_label(unquote(uri)) for uri in self.uris)

    @cached_property
    def plain_written(self) -> FoldedTexts:
        """Identifiers with their percent signs, for what is typed of the middle of an encoded one."""
        return FoldedTexts(folded_label(uri) for uri in self.uris)

    def _identifier_columns(self, text: str) -> tuple[FoldedTexts, ...]:
        """What a text is searched for in besides the labels."""
        return (self.plain_ids, self.plain_uris, self.plain_written) if "%" in text else (self.plain_ids, self.plain_uris)

    def fitting(self, text: str) -> BoolArray:
        """(E,) whether an entity's label or identifier holds a text; of an empty text, all do."""
        exact = self.index.get(text)
        fits = np.zeros(len(self), dtype=bool)
        for words in search_forms(text):
            for plain in (self.plain_labels, *self._identifier_columns(text)):
                fits[list(plain.holding(words))] = True
        if exact is not None:
            fits[exact] = True
        return fits

    def find(self, text: str, limit: int) -> list[tuple[tuple[int, int, str], int]]:
        """(sort key, index) of the best ``limit`` entities that fit a text, best first.

        Exact identifier, exact label, label that starts with the text, label with a word that does, label that holds it, identifier.
        Within each kind, entities with more triples come first.
        """
        exact = self.index.get(text)
        kinds = {} if exact is None else {exact: 0}
        for words in filter(None, search_forms(text)):
            for position, kind in self._kinds(words, self._identifier_columns(text)).items():
                kinds[position] = min(kind, kinds.get(position, kind))
        keys = [((kind, -int(self.degrees[position]), self.plain_labels[position]), position) for position, kind in kinds.items()]
        return sorted(keys)[:limit]

    def _kinds(self, words: str, identifiers: Iterable[FoldedTexts]) -> dict[int, int]:
        """Entity -> how well normalised words fit it, 1 (best) to 5; only those that they fit."""
        begins = re.compile(rf"(?<!\w){re.escape(words)}")  # after a space, a bracket, a hyphen
        kinds: dict[int, int] = {}
        for position in self.plain_labels.holding(words):
            label = self.plain_labels[position]
            kinds[position] = 1 if label == words else 2 if label.startswith(words) else 3 if begins.search(label) else 4
        for plain in identifiers:
            for position in plain.holding(words):
                if position not in kinds:
                    kinds[position] = 1 if plain[position] == words else 5
        return kinds
