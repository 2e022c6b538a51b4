"""What to call the two graphs: the source that most of their identifiers come from, short enough for a column's head and never the same for both.

A name is taken from the identifiers alone, so that the same data has the same names in every format. It says nothing to a run's id or fingerprint.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

OTHERWISE = ("KG1", "KG2")
ENOUGH_TO_NAME = 0.5  # of the entities must share an origin that is to name the graph

# Registered domains; what stands before one may be a language.
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
# Beginnings of shortened identifiers; only those that nobody uses for anything else.
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
"""What an origin speaks where its host does not say so."""

_HOST = re.compile(r"[a-z][a-z0-9+.-]*://(?P<host>[A-Za-z0-9.-]{1,60})")
_PREFIX = re.compile(r"(?P<prefix>[a-z][a-z0-9.-]{0,30}):(?![_\s/])")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)?")


@dataclass(frozen=True)
class IdentifierOrigin:
    """Where identifiers come from; ``language`` is "" where the identifiers do not tell."""

    name: str
    language: str = ""


def graph_names(source: Sequence[str], target: Sequence[str]) -> tuple[str, str]:
    """Names of two graphs with these entities, different ones.

    A language is named where the identifiers tell it, or where it is all that the two differ in: "DBpedia (zh)" and "DBpedia (en)", but "DBpedia" and
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
