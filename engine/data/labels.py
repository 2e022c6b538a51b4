"""What entities and graphs are called: labels from attributes and identifiers, and the names of graphs."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import pandas as pd
import polars as pl

# Names for people: from an attribute where the graph has one, else from the identifiers, else none.
#
# A wrong name is worse than no name: an identifier such as ``Q325033`` says nothing to a reader, and it would look like evidence to a method
# that compares names.

MAX_LABEL = 500
NAME_ATTRIBUTES = ("preflabel", "label", "name", "title")  # best first; compared with the attribute's local name in lower case
ENOUGH = 0.5  # an attribute that names fewer of the entities is no replacement for speaking identifiers

MISSING: Final = frozenset(
    {"", "-", "--", "?", ".", "n/a", "na", "nan", "none", "null", "nil", "unknown", "undefined", "not available", "not applicable"}
)
"""Texts, in lower case, that say that nothing is known: as names and as other values they are taken as missing."""
LONGEST_MISSING: Final = max(map(len, MISSING))

XSD_STRING: Final = "http://www.w3.org/2001/XMLSchema#string"

SLASHED_DATE: Final = re.compile(r"(\d{1,2})([/-])(\d{1,2})\2(\d{4})")
"""03/04/1912: which is the day, and which the month, is not said."""

_IRI = re.compile(r"[a-z][a-z0-9+.-]*:(?![_\s])")  # a lower-case scheme or prefix; 'Alien:_Resurrection' is a name
_RDF_LITERAL = re.compile(r'"(?P<text>.*)"(?:@(?P<language>[A-Za-z0-9-]+)|\^\^(?P<datatype>\S+))?', re.DOTALL)
_OPAQUE = re.compile(r"[A-Za-z]{0,2}[-_.]?\d+|[mg]\.[0-9a-z_]+|[0-9a-fA-F-]{16,}")
_OPAQUE_TITLE = re.compile(r"[EQ]\d{4,}")  # DBpedia's titles may be numbers ('1984', 'U2'), but OpenEA's masked ones look like E399772
_OPAQUE_BARE = re.compile(r"[A-Za-z]?[-_.]?\d{3,}|\d+|[0-9a-fA-F-]{32,}")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")  # those that are white space leave a blank


def label_entities(entities: Sequence[str], attributes: pd.DataFrame, wanted: str | None = None, languages: Sequence[str] = ()) -> tuple[str, ...]:
    """E labels, "" where there is none.

    Where an attribute names at least half of the entities, the others have no name; otherwise readable identifiers are used instead.

    Args:
        entities: E identifiers.
        attributes: columns ``entity`` (index into ``entities``), ``attribute``, ``value``; their order is of no account.
        wanted: the attribute that holds the names, by its full or local name; None, or one that this graph lacks: well-known ones.
        languages: of several names of an entity, which to prefer (:func:`rank_languages`).
    """
    names = naming_attributes(attributes, wanted)
    labels = list(attribute_names(attributes, names, len(entities), languages)) if names else [""] * len(entities)
    if sum(map(bool, labels)) < ENOUGH * len(entities):
        labels = [label or label_from_identifier(entity) for label, entity in zip(labels, entities, strict=True)]
    return tuple(labels)


def find_name_attributes(attributes: pd.DataFrame, wanted: str | None = None) -> tuple[str, ...]:
    """The attributes, by their full names, that hold names: the wanted ones, or those of the well-known kind that most entities have."""
    present = [str(name) for name in attributes["attribute"].unique()]
    if wanted is not None:
        return tuple(name for name in present if wanted in (name, local_name(name)))
    kinds = [tuple(name for name in present if local_name(name).lower() == known) for known in NAME_ATTRIBUTES]
    # max keeps the first of equals, so the order of NAME_ATTRIBUTES decides between attributes that everything has.
    return max(kinds, key=lambda names: attributes.loc[attributes["attribute"].isin(names), "entity"].nunique() if names else 0)


def naming_attributes(attributes: pd.DataFrame, wanted: str | None = None) -> tuple[str, ...]:
    """The wanted attributes; in a graph that has none of them, the well-known ones."""
    found = find_name_attributes(attributes, wanted)
    return found if found or wanted is None else find_name_attributes(attributes)


def attribute_names(attributes: pd.DataFrame, names: Sequence[str], num_entities: int, languages: Sequence[str] = ()) -> tuple[str, ...]:
    """Each entity's name in some attributes, "" where it has none.

    Of several, the one whose language comes first in ``languages``; of several in one language, the first in the order of their characters. The order
    of the rows is of no account.
    """
    places = {language: place for place, language in enumerate(languages)}
    best: dict[int, tuple[int, str, str]] = {}
    for entity, value in _named(attributes, names):
        if label := clean_label(value):
            language = language_of(value)
            candidate = places.get(language, len(places)), language, label
            best[entity] = min(candidate, best.get(entity, candidate))
    return tuple(best[entity][2] if entity in best else "" for entity in range(num_entities))


def name_languages(attributes: pd.DataFrame, wanted: str | None = None) -> Counter[str]:
    """Language -> how many entities have a name in it; "" are names without a language."""
    pairs = {(entity, language_of(value)) for entity, value in _named(attributes, naming_attributes(attributes, wanted))}
    return Counter(language for _, language in pairs)


def rank_languages(source: Mapping[str, int], target: Mapping[str, int], wanted: str | None = None) -> tuple[str, ...]:
    """Languages in the order in which names are chosen, the same for both graphs, so that names of one language are compared.

    Args:
        source, target: language -> number of entities (:func:`name_languages`).
        wanted: languages to put first, with commas between ("en,de"); "en" includes "en-GB".
    """

    def share(counts: Mapping[str, int], language: str) -> float:
        return counts.get(language, 0) / max([*counts.values(), 1])

    def commonness(language: str) -> tuple[float, float, str]:
        shares = share(source, language), share(target, language)
        return -min(shares), -sum(shares), language

    common = sorted({*source, *target}, key=commonness)
    first = [language for word in language_list(wanted) for fits in _FITTING for language in common if fits(language, word)]
    return tuple(dict.fromkeys((*first, *common)))


def preferred_language(counts: Mapping[str, int], ranked: Sequence[str]) -> str:
    """The first of the languages that a graph has names in; "" for names without a language."""
    return next((language for language in ranked if language in counts), "")


LABELS: Final = ""  # no attribute is called so


def several_names(attributes: pd.DataFrame, wanted: str | None = None) -> frozenset[str]:
    """Attributes, by their full and local names, that give an entity several values; ``LABELS``: those that the labels are taken from do.

    Args:
        attributes: distinct rows.
        wanted: as of :func:`label_entities`.
    """
    table = attributes[["entity", "attribute"]]
    full = set(table.loc[table.duplicated(), "attribute"].unique())
    local = table.assign(attribute=table["attribute"].map({name: local_name(name) for name in table["attribute"].unique()}))
    labels = table.loc[table["attribute"].isin(naming_attributes(attributes, wanted)), "entity"]
    found = {*full, *local.loc[local.duplicated(), "attribute"].unique()}
    return frozenset(map(str, found)) | (frozenset({LABELS}) if labels.duplicated().any() else frozenset())


def language_list(wanted: str | None) -> list[str]:
    """'en, DE' -> ['en', 'de']"""
    return [word.strip().lower() for word in (wanted or "").split(",") if word.strip()]


_FITTING: tuple[Callable[[str, str], bool], ...] = (
    lambda language, word: language == word,
    lambda language, word: language.startswith(f"{word}-"),
)


def _named(attributes: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[int, str]]:
    rows = attributes.loc[attributes["attribute"].isin(names)]
    return zip(rows["entity"].tolist(), rows["value"].tolist(), strict=True)


def label_from_identifier(identifier: str) -> str:
    """The speaking part of an identifier, percent-decoded and with blanks for underscores; "" where it is opaque."""
    title, is_title, is_bare = _tail(identifier)
    opaque = _OPAQUE_TITLE if is_title else _OPAQUE_BARE if is_bare else _OPAQUE
    if opaque.fullmatch(title):
        return ""
    with suppress(UnicodeDecodeError):  # percent signs that are no UTF-8 are better shown unchanged
        title = unquote(title, errors="strict")
    return clean_label(title.replace("_", " "))


def identifier_tail(identifier: str) -> str:
    """The last part of an identifier: what is left when two sources' prefixes are taken off."""
    return _tail(identifier)[0]


def local_name(name: str) -> str:
    """'http://www.w3.org/2000/01/rdf-schema#label' and 'rdfs:label' -> 'label'."""
    return re.split(r"[#/:]", name.rstrip("#/:"))[-1]


def folded_local_name(name: str) -> str:
    """'oboInOwl:has_exact_synonym' -> 'hasexactsynonym': letters and digits of the local name, without case."""
    return "".join(character for character in local_name(name).casefold() if character.isalnum())


def clean_label(text: str) -> str:
    """One line without control characters, quotation marks and language tag of an RDF literal taken off, at most 500 characters."""
    inner = literal_of(text).text
    label = " ".join((inner if inner.isprintable() else _CONTROL.sub("", inner)).split())
    return label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…"


def is_missing(text: str) -> bool:
    """Whether a text, without quotation marks and language tag, says that nothing is known: "NA", "none", "-"."""
    return len(text) <= 4 * LONGEST_MISSING and unicodedata.normalize("NFKC", text).strip().casefold() in MISSING


def is_ambiguous_date(text: str) -> bool:
    """Whether the day and the month of a date may be either way round: 03/04/1912, but not 13/04/1912."""
    found = SLASHED_DATE.fullmatch(text)
    return found is not None and int(found[1]) != int(found[3]) and max(int(found[1]), int(found[3])) <= 12


@dataclass(frozen=True)
class Literal:
    """An attribute's value: its text, the language of the text and its datatype, "" where it has none."""

    text: str
    language: str = ""
    datatype: str = ""

    @property
    def type_name(self) -> str:
        """The datatype's local name; "" for plain text."""
        return "" if self.datatype == XSD_STRING else local_name(self.datatype)


def literal_of(value: str) -> Literal:
    """An attribute's value, which may be an RDF literal (``"Rom"@de``, ``"3"^^xsd:int``), taken apart; any other is text."""
    found = _RDF_LITERAL.fullmatch(value) if value.startswith('"') else None
    if found is None:
        return Literal(value)
    return Literal(found["text"], found["language"] or "", (found["datatype"] or "").removeprefix("<").removesuffix(">"))


def tagged(text: str, language: str) -> str:
    """A text with its language, as an attribute's value holds it: ``"Rom"@de``."""
    return f'"{text}"@{language}'


def language_of(value: str) -> str:
    """The language of an attribute's value in lower case, "" where it has none."""
    return literal_of(value).language.lower()


def _tail(identifier: str) -> tuple[str, bool, bool]:
    """The last part; whether it is a DBpedia title (which may hold slashes); whether the identifier is a bare name."""
    if identifier.startswith("_:"):
        return "", False, False
    _, is_resource, title = identifier.partition("/resource/")
    if is_resource and title:
        return title, True, False
    if not _IRI.match(identifier):
        return identifier, False, True
    path = identifier.rstrip("/#")
    tail = path[max(path.rfind("/"), path.rfind("#")) + 1 :]
    return (tail if "/" in path or "#" in path else tail.rpartition(":")[2]), False, False


# What to call the two graphs: the source that most of their identifiers come from, short enough for a column's head and never the same for both.
#
# A name is taken from the identifiers alone, so that the same data has the same names in every format. It says nothing to a run's id or fingerprint.

OTHERWISE = ("KG1", "KG2")
ENOUGH_TO_NAME = 0.5  # of the entities must share an origin that is to name the graph

# Registered domains; what comes before one may be a language.
HOSTS: Mapping[str, str] = {
    "babelnet.org": "BabelNet",
    "conceptnet.io": "ConceptNet",
    "d-nb.info": "GND",
    "dbpedia.org": "DBpedia",
    "freebase.com": "Freebase",
    "geonames.org": "GeoNames",
    "imdb.com": "IMDb",
    "linkedgeodata.org": "LinkedGeoData",
    "musicbrainz.org": "MusicBrainz",
    "openstreetmap.org": "OpenStreetMap",
    "viaf.org": "VIAF",
    "wikidata.org": "Wikidata",
    "wikipedia.org": "Wikipedia",
    "yago-knowledge.org": "YAGO",
}
# Beginnings of shortened identifiers; only those with no other common use.
PREFIXES: Mapping[str, str] = {
    "cldr:": "Unicode CLDR",
    "dbpedia:": "DBpedia",
    "dbr:": "DBpedia",
    "geonames:": "GeoNames",
    "ne:states_provinces/": "Natural Earth",
    "wd:": "Wikidata",
    "wikidata:": "Wikidata",
    "yago:": "YAGO",
}
SPEAKING = frozenset({"DBpedia", "Wikipedia"})
"""Origins that have a host for each language; elsewhere a short label such as 'sws' means something else."""
DEFAULT_LANGUAGES: Mapping[str, str] = {"DBpedia": "en"}
"""The language of an origin whose host does not name one."""

_HOST = re.compile(r"[a-z][a-z0-9+.-]*://(?P<host>[A-Za-z0-9.-]{1,60})")
_PREFIX = re.compile(r"(?P<prefix>[a-z][a-z0-9.-]{0,30}):(?![_\s/])")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)?")


@dataclass(frozen=True)
class IdentifierOrigin:
    """Where identifiers come from; ``language`` is "" where the identifiers do not show it."""

    name: str
    language: str = ""


def graph_names(source: Sequence[str], target: Sequence[str]) -> tuple[str, str]:
    """Names of two graphs with these entities, different ones.

    A language is named where the identifiers show it, or where it is all that the two differ in: "DBpedia (zh)" and "DBpedia (en)", but "DBpedia" and
    "Wikidata". Graphs that go by no common origin are "KG1" and "KG2".

    Args:
        source, target: identifiers.
    """
    one, other = common_origin(source), common_origin(target)
    by_language = one is not None and other is not None and one.name == other.name and spoken(one) != spoken(other)
    first, second = (otherwise if origin is None else written(origin, by_language) for origin, otherwise in zip((one, other), OTHERWISE, strict=True))
    return (first, second) if first != second else (f"{first} ({OTHERWISE[0]})", f"{second} ({OTHERWISE[1]})")


def common_origin(entities: Sequence[str]) -> IdentifierOrigin | None:
    """The origin of more than half of the identifiers, None if none has as many."""
    texts = pl.Series(entities, dtype=pl.String)
    hosts = texts.str.extract(rf"\A{_HOST.pattern}")
    counts: Counter[IdentifierOrigin] = Counter(origin for entity in texts.filter(hosts.is_null()) if (origin := origin_of(entity)) is not None)
    for host, count in hosts.drop_nulls().value_counts().iter_rows():
        counts[origin_of_host(host.lower().rstrip("."))] += count
    origin, most = counts.most_common(1)[0] if counts else (None, 0)
    return origin if most > ENOUGH_TO_NAME * len(entities) else None


def origin_of(identifier: str) -> IdentifierOrigin | None:
    """A known host's or prefix's name, else the host or prefix itself; None for bare names."""
    if match := _HOST.match(identifier):
        return origin_of_host(match["host"].lower().rstrip("."))
    known = next((name for beginning, name in PREFIXES.items() if identifier.startswith(beginning)), None)
    if known is not None:
        return IdentifierOrigin(known)
    match = _PREFIX.match(identifier)
    return IdentifierOrigin(match["prefix"]) if match else None


def origin_of_host(host: str) -> IdentifierOrigin:
    """'fr.dbpedia.org' -> DBpedia, "fr"; 'www.example.org' -> example.org."""
    labels = host.removeprefix("www.").split(".")
    name = HOSTS.get(".".join(labels[-2:]))
    if name is None:
        return IdentifierOrigin(".".join(labels))
    before = labels[-3] if len(labels) > 2 else ""
    return IdentifierOrigin(name, before if name in SPEAKING and _LANGUAGE.fullmatch(before) else "")


def spoken(origin: IdentifierOrigin) -> str:
    """An origin's language, also where it goes without saying; "" if it has none."""
    return origin.language or DEFAULT_LANGUAGES.get(origin.name, "")


def written(origin: IdentifierOrigin, by_language: bool) -> str:
    """An origin for people; ``by_language`` also says the language that goes without saying."""
    language = spoken(origin) if by_language else origin.language
    return f"{origin.name} ({language})" if language else origin.name
