"""Attribute values of two graphs made comparable: each by its kind, so that equal values meet however they are written.

A value becomes one or more keys. Keys of different kinds never meet. A date also gives its year, for graphs where only the year is known; numbers and
places give rough keys, which near values share. Values that say that nothing is known give no key.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd

from engine.data.knowledge_graph import KnowledgeGraph
from engine.data.labels import SLASHED_DATE, find_name_attributes, is_ambiguous_date, is_missing, literal_of, local_name
from engine.data.labels import Literal as ValueLiteral
from engine.util.arrays import IntArray

Kind = Literal["text", "number", "within 1 %", "within 10 %", "date", "year", "place", "near place", "code"]

LONGEST = 200
"""Characters of a text that are kept as they are; longer ones go by a digest of the whole."""
LABEL: Final = "label"
"""The attribute that labels from identifiers count as."""
TOLERANCES: Final[dict[Kind, float]] = {"within 1 %": 0.01, "within 10 %": 0.1}
"""Numbers that differ by less than this share have a key of the kind in common."""
ROUGH: Final[frozenset[Kind]] = frozenset({"year", "near place", *TOLERANCES})
"""Kinds of keys that say less than the value does. They count as attributes of their own, named after the kind: "born (year)"."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:(?:,\d{3})+(?:\.\d+)?|(?P<by>[ '’])\d{3}(?:(?P=by)\d{3})*(?:[.,]\d+)?)")  # 12,345.6; 12 345,6
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d+,(?:\d{1,2}|\d{4,})|[1-9]\d{0,2}(?:(?:\.\d{3}){2,}(?:,\d+)?|\.\d{3},\d+))")  # 12,5; 1.234.567; 1.234,5
_ADDRESS = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}")
_DATE = re.compile(r"([+-]?\d{4,6})-(\d{2})-(\d{2})(?:[T ].*)?(?:Z|[+-]\d{2}:?\d{2})?")
_YEAR_FIRST = re.compile(r"(\d{4})[./](\d{1,2})[./](\d{1,2})")
_DAY_FIRST = re.compile(r"(\d{1,2})\. ?(\d{1,2})\. ?(\d{4})")
_MONTH_NAMED = re.compile(
    r"(?:(?P<day>\d{1,2})\.?\s(?P<month>[a-z]{3,9})\.?|(?P<month_>[a-z]{3,9})\.?\s(?P<day_>\d{1,2})),?\s(?P<year>\d{4})", re.IGNORECASE
)
_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
_YEAR = re.compile(r"([+-]?\d{4,6})(?:Z|[+-]\d{2}:\d{2})?")
_PLACE = re.compile(r"(?:point\s*\(\s*)?([+-]?\d+\.\d+)[\s,;]+([+-]?\d+\.\d+)\s*\)?", re.IGNORECASE)
_CODE = re.compile(r"(?=\S*\d)(?=\S*[^\d\s.,+-])[\w./:#-]{4,64}")
_BLANKS = re.compile(r"[\W_]+", re.UNICODE)
_YEAR_TYPES = frozenset({"gyear"})
_TEXT_TYPES = frozenset({"string", "langstring", "normalizedstring", "token"})


@dataclass(frozen=True)
class ValueKey:
    """What a value is compared by."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.text}"

    def attribute(self, name: str) -> str:
        """The attribute that the key counts as: rough keys are of one of their own."""
        return f"{name} ({self.kind})" if self.kind in ROUGH else str(name)


def value_keys(value: str) -> tuple[ValueKey, ...]:
    """The keys of an attribute's value, which may be an RDF literal; none where it says that nothing is known."""
    literal = literal_of(value)
    text = unicodedata.normalize("NFKC", literal.text[: 4 * LONGEST] if len(literal.text) > 4 * LONGEST else literal.text).strip()
    if is_missing(text):
        return ()
    if len(literal.text) > 4 * LONGEST:
        return (ValueKey("text", digest(literal.text)),)
    typed = typed_keys(text, literal)
    return text_key(text) if typed is None else typed


def exact_attribute(name: str) -> str:
    """Without what says that values are compared roughly."""
    return next((name.removesuffix(f" ({kind})") for kind in ROUGH if name.endswith(f" ({kind})")), name)


def key_texts(attribute: str, value: str) -> list[tuple[str, str]]:
    """(attribute, key) of each key of a value, as tables of values name them."""
    return [(key.attribute(attribute), str(key)) for key in value_keys(value)]


def typed_keys(text: str, literal: ValueLiteral) -> tuple[ValueKey, ...] | None:
    """Of dates, places, numbers and codes; None for text. A declared datatype decides where there is one."""
    declared = literal.type_name.casefold()
    if literal.language or declared in _TEXT_TYPES:
        return None
    if declared in _YEAR_TYPES and (found := _YEAR.fullmatch(text)):
        return (ValueKey("year", str(int(found[1]))),)
    if found := _DATE.fullmatch(text):
        return date_keys(*(int(part) for part in found.groups()))
    if written := written_date(text):
        return written
    if found := _PLACE.fullmatch(text):
        return place_keys(float(found[1]), float(found[2]))
    if number := plain_number(text):
        return number_keys(number)
    if not declared and _CODE.fullmatch(text):
        return (ValueKey("code", text.casefold()),)
    return None


def plain_number(text: str) -> str:
    """A number without what separates its thousands, with a decimal point; "" where it is none.

    What one comma before three digits means, or one dot, cannot be known: both are read as in English (12,345 is 12345, 12.345 a decimal).
    """
    if _NUMBER.fullmatch(text):
        return text
    if found := _GROUPED.fullmatch(text):
        return text.replace(",", "") if found["by"] is None else text.replace(found["by"], "").replace(",", ".")
    if _DECIMAL_COMMA.fullmatch(text) and not _ADDRESS.fullmatch(text):
        return text.replace(".", "").replace(",", ".")
    return ""


def written_date(text: str) -> tuple[ValueKey, ...] | None:
    """The keys of a date that is written otherwise than 1912-06-23; None for what is none."""
    if found := _YEAR_FIRST.fullmatch(text):
        year, month, day = map(int, found.groups())
    elif found := _DAY_FIRST.fullmatch(text):
        day, month, year = map(int, found.groups())
    elif found := SLASHED_DATE.fullmatch(text):
        first, second, year = int(found[1]), int(found[3]), int(found[4])
        if is_ambiguous_date(text):
            return ValueKey("code", text), ValueKey("year", str(year))
        day, month = (second, first) if second > 12 else (first, second)
    elif (found := _MONTH_NAMED.fullmatch(text)) and (number := month_number(found["month"] or found["month_"])):
        day, month, year = int(found["day"] or found["day_"]), number, int(found["year"])
    else:
        return None
    return date_keys(year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def month_number(name: str) -> int:
    """1 to 12 of an English month or its first letters; 0 for another word."""
    return next((number for number, month in enumerate(_MONTHS, 1) if month.startswith(name.casefold())), 0)


def date_keys(year: int, month: int, day: int) -> tuple[ValueKey, ...]:
    """A day and its year; the first of January is how many sources write a year alone."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return (ValueKey("year", str(year)),)
    return ValueKey("date", f"{year:04d}-{month:02d}-{day:02d}"), ValueKey("year", str(year))


def place_keys(latitude: float, longitude: float) -> tuple[ValueKey, ...]:
    """To about a kilometre, and to about ten."""
    return ValueKey("place", f"{latitude:.2f} {longitude:.2f}"), ValueKey("near place", f"{latitude:.1f} {longitude:.1f}")


def number_keys(text: str) -> tuple[ValueKey, ...]:
    """Numbers meet where their first five digits do, and roughly where they are near. An integer with leading zeros is a code (00123 is not 123)."""
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits.startswith("0") and digits.isdigit():
        return (ValueKey("code", text),)
    value = float(text)
    if not np.isfinite(value):
        return ()
    return ValueKey("number", f"{value:.5g}"), *(key for kind, share in TOLERANCES.items() for key in near_keys(value, kind, share))


def near_keys(value: float, kind: Kind, share: float) -> tuple[ValueKey, ...]:
    """The cells of a number in two grids of its logarithm, shifted against each other: of two near numbers at least one cell is the same."""
    if not value:
        return ()
    place = math.log(abs(value)) / (2 * math.log1p(share))
    sign = "-" if value < 0 else ""
    return tuple(ValueKey(kind, f"{sign}{grid}{math.floor(place + shift)}") for grid, shift in (("a", 0.0), ("b", 0.5)))


def text_key(text: str) -> tuple[ValueKey, ...]:
    """Text without case, accents and punctuation."""
    folded = fold_text(text)
    return (ValueKey("text", folded if len(folded) <= LONGEST else digest(folded)),) if folded else ()


def fold_text(text: str) -> str:
    """'São Paulo (city)' -> 'sao paulo city'."""
    if text.isascii():
        return _BLANKS.sub(" ", text.casefold()).strip()
    plain = "".join(character for character in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(character))
    return _BLANKS.sub(" ", plain).strip()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class SharedValues:
    """The values that both graphs have, as nodes behind each graph's entities.

    Attributes:
        source, target: (V1, 3), (V2, 3) entity, attribute, value; attributes are counted on from the graph's relations, values from its entities.
        attributes: the attributes' names by graph, in the order of their numbers.
        keys: what each value is compared by.
    """

    source: IntArray
    target: IntArray
    attributes: tuple[tuple[str, ...], tuple[str, ...]]
    keys: tuple[str, ...]


def shared_values(source: KnowledgeGraph, target: KnowledgeGraph, excluded: frozenset[str] = frozenset()) -> SharedValues:
    """What the attributes of both graphs share; labels count as an attribute where no attribute holds them.

    Args:
        source, target: the graphs.
        excluded: attributes, by full or local name, that are not looked at.
    """
    tables = [keyed_values(graph, excluded) for graph in (source, target)]
    keys = sorted(set(tables[0]["key"]) & set(tables[1]["key"]))
    places = {key: place for place, key in enumerate(keys)}
    facts, attributes = [], []
    for graph, table in zip((source, target), tables, strict=True):
        table = table[table["key"].isin(places)]
        numbers, names = pd.factorize(table["attribute"], sort=True)
        values = table["key"].map(places).to_numpy(dtype=np.int64) + graph.num_entities
        facts.append(np.stack([table["entity"].to_numpy(dtype=np.int64), numbers.astype(np.int64) + graph.num_relations, values], axis=1))
        attributes.append(tuple(map(str, names)))
    return SharedValues(facts[0], facts[1], (attributes[0], attributes[1]), tuple(keys))


def unknown_attributes(source: KnowledgeGraph, target: KnowledgeGraph, excluded: frozenset[str]) -> tuple[str, ...]:
    """Which of the names that are to be left out no attribute has, neither as its full nor as its local name."""
    known = {*pseudo_attributes(source), *pseudo_attributes(target)}
    for graph in (source, target):
        for name in graph.attributes["attribute"].unique():
            known |= {str(name), local_name(str(name))}
    return tuple(sorted(excluded - known))


def pseudo_attributes(graph: KnowledgeGraph) -> tuple[str, ...]:
    """Names under which :func:`keyed_values` compares what is no attribute of the graph."""
    return () if find_name_attributes(graph.attributes) else (LABEL,)


def keyed_values(graph: KnowledgeGraph, excluded: frozenset[str] = frozenset()) -> pd.DataFrame:
    """Distinct rows of ``entity``, ``attribute`` and ``key``."""
    rows = graph.attributes
    if excluded:
        rows = rows[~rows["attribute"].isin([name for name in rows["attribute"].unique() if {name, local_name(name)} & excluded])]
    codes, values = pd.factorize(rows["value"])
    keys = [value_keys(value) for value in values]
    lengths = np.array([len(found) for found in keys], dtype=np.int64)[codes] if len(codes) else np.zeros(0, dtype=np.int64)
    flat = [key for code in codes.tolist() for key in keys[code]]
    names = np.repeat(rows["attribute"].to_numpy(dtype=object), lengths).tolist()
    table = pd.DataFrame(
        {
            "entity": np.repeat(rows["entity"].to_numpy(dtype=np.int64), lengths),
            "attribute": [key.attribute(name) for name, key in zip(names, flat, strict=True)],
            "key": pd.Series([str(key) for key in flat], dtype=object),
        }
    )
    if pseudo_attributes(graph) and LABEL not in excluded:
        labels = [(entity, key) for entity, label in enumerate(graph.labels) if not is_missing(label) for key in text_key(label)]
        named = pd.DataFrame({"entity": [e for e, _ in labels], "attribute": LABEL, "key": [str(key) for _, key in labels]})
        table = pd.concat([table, named], ignore_index=True) if len(named) else table
    return table.drop_duplicates(ignore_index=True)
