"""Ends of links that are spelt otherwise than in the graphs, by Unicode normalisation or percent-encoding only.

To a person ``Zürich`` of composed and of decomposed letters is one name, and ``http://x/AT%26T`` is the same address as ``http://x/AT&T``. To a
program they are two. Such ends are reported, and spelt as the graph does where its owner asks for it: never unasked, since a graph may hold both.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote, unquote

from engine.data.knowledge_graph import SIDES, Finding, Side
from engine.data.readers.base import RawDataset, RawGraph, RawLinks
from engine.data.texts import Texts, distinct_words
from engine.util.text import count, shorten

EXAMPLES: Final = 3
_ENCODED: Final = re.compile("(?:%[0-9A-Fa-f]{2})+")
_STRUCTURE: Final = "%/?#"
"""Encoded, these are other characters than bare: what follows them is another part of an address."""
_RESPELLABLE: Final = r"[^\x00-\x7f]|%"


def respelling_findings(raw: RawDataset) -> Iterator[Finding]:
    """How many different ends of each side are in the graph under another spelling."""
    for side in SIDES:
        near = near_spellings(raw, side)
        if not near:
            continue
        unsure = sum(identifier is None for identifier in near.values())
        differ = count(len(near), f"{side} end of the links differs", f"{side} ends of the links differ")
        open_ends = f"; {count(unsure, 'fits', 'fit')} several identifiers and cannot be repaired" if unsure else ""
        message = f"{differ} from identifiers of the {side} graph only by Unicode normalisation or percent-encoding{open_ends}."
        examples = tuple(_example(text, one) for text, one in sorted(near.items())[:EXAMPLES] if one is not None)
        advice = "Write them alike, or import the data with --repair-links."
        yield Finding("links-spelt-otherwise", "warning", message, len(near), examples, advice)


def _example(text: str, identifier: str) -> str:
    """Both spellings, in escapes where they look the same."""
    alike = unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", identifier)
    here, there = (shorten(ascii(one)[1:-1] if alike else one, 60) for one in (text, identifier))
    return f"{here} in the links, {there} in the graph"


def respelt(raw: RawDataset) -> RawDataset:
    """The data set with such ends spelt as the graphs spell them; those that fit several identifiers stay."""
    source, target = ({text: one for text, one in near_spellings(raw, side).items() if one is not None} for side in SIDES)
    if not source and not target:
        return raw
    links = {part: replace(one, sources=_renamed(one.sources, source), targets=_renamed(one.targets, target)) for part, one in raw.links.items()}
    return replace(raw, links=links)


def _renamed(texts: Sequence[str], names: Mapping[str, str]) -> Texts:
    column = Texts.of(texts)
    return column.renamed(names.get(word, word) for word in column.words) if names else column


def near_spellings(raw: RawDataset, side: Side) -> Mapping[str, str | None]:
    """Ends of a side that its graph lacks -> the identifier that differs by its spelling only; None where several do."""
    graph = raw.source if side == "source" else raw.target
    words = distinct_words(*(Texts.of(_ends(links, side)).words for links in raw.links.values()))
    strange = words.filter(~graph.knows(words)).to_list()
    if not strange:
        return {}
    plain = {text: plain_spelling(text) for text in strange}
    found = _by_plain_spelling(graph, frozenset(plain.values()))
    fitting = {text: found[key] for text, key in plain.items() if key in found}
    return {text: identifiers[0] if len(identifiers) == 1 else None for text, identifiers in fitting.items()}


def _ends(links: RawLinks, side: Side) -> Sequence[str]:
    return links.sources if side == "source" else links.targets


def _by_plain_spelling(graph: RawGraph, wanted: frozenset[str]) -> dict[str, list[str]]:
    """Plain spelling -> the identifiers of the graph that have it, for those that are wanted."""
    respellable = graph.identifiers.str.contains(_RESPELLABLE)
    found: dict[str, list[str]] = {}
    for identifier in graph.identifiers.filter(respellable).to_list():
        if (key := plain_spelling(identifier)) in wanted:
            found.setdefault(key, []).append(identifier)
    for identifier in set(graph.identifiers.filter(~respellable).to_list()) & wanted:
        found.setdefault(identifier, []).append(identifier)
    return found


def plain_spelling(text: str) -> str:
    """Composed letters, and percent-encoding only where a character would mean something else without."""
    return unicodedata.normalize("NFC", _ENCODED.sub(_decoded, text) if "%" in text else text)


def _decoded(match: re.Match[str]) -> str:
    try:
        text = unquote(match.group(), errors="strict")
    except UnicodeDecodeError:
        return match.group().upper()
    return "".join(quote(one, safe="") if one in _STRUCTURE or (not one.isprintable() and one < "\xa0") else one for one in text)
