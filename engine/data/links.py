"""Known links: read from a file of any format, and their ends found among the identifiers of two graphs."""

from __future__ import annotations

import itertools
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import numpy as np
import pyoxigraph as ox

from engine.data.apart import Apart
from engine.data.dialects import restore
from engine.data.endings import GZIP_ENDING, LINK_ENDINGS, PLAIN
from engine.data.knowledge_graph import SIDES, Finding, Side
from engine.data.readers.base import RawDataset, RawGraph, RawLinks
from engine.data.readers.rdf import rdf_suffix, read_same_as
from engine.data.readers.tables import read_link_parts as read_links_by_part
from engine.data.rows import read_tabbed
from engine.data.tabular import table_suffix
from engine.data.texts import Texts, distinct_words
from engine.errors import DataError
from engine.util.arrays import BoolArray, IntArray
from engine.util.text import count, shorten

# Identifiers in formats that have IRIs only, and the way back to the identifiers of a graph.
#
# An identifier that is an IRI stays what it is; characters that no IRI may hold are percent-encoded. Any other becomes ``urn:dual-amn:source:`` or
# ``urn:dual-amn:target:`` and its percent-encoded text. So does an identifier whose percent-encoded form means another entity of its graph
# (``http://x/a b`` beside ``http://x/a%20b``): see :class:`Spelling`. What was encoded is found again by looking at the identifiers that the graph
# has, so that reading an export gives the graph's own identifiers, however they are spelt.

BASE: Final = "urn:dual-amn:"
"""Of identifiers that are no IRIs, followed by the graph's side and a colon."""
_HIERARCHICAL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.")
_URN: Final = re.compile(rf"{BASE}(?P<side>source|target):(?:\d+:)?(?P<text>.*)", re.DOTALL)
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")
_NEVER_IN_IRIS: Final = re.compile(r"""[\x00-\x20<>"{}|\\^`\[\]\x7f-\x9f]|%(?![0-9A-Fa-f]{2})""")
_NOT_IN_URIS: Final = re.compile(r"[^\x21-\x7e]")


def to_iri(identifier: str, side: Side) -> str:
    """The identifier as an absolute IRI (RFC 3987), fit for N-Triples."""
    if _HIERARCHICAL.match(identifier):
        encoded = _NEVER_IN_IRIS.sub(_encoded, identifier)
        if _is_iri(encoded):
            return encoded
    elif _ABSOLUTE.match(identifier) and _is_iri(identifier):
        return identifier
    return _as_urn(identifier, side)


def to_uri(identifier: str, side: Side) -> str:
    """The same as a URI (RFC 3986): characters beyond ASCII are percent-encoded, too."""
    return _NOT_IN_URIS.sub(_encoded, to_iri(identifier, side))


def _encoded(match: re.Match[str]) -> str:
    return quote(match.group(), safe="", errors="replace")


def _is_iri(text: str) -> bool:
    try:
        ox.NamedNode(text)
    except ValueError:
        return False
    return True


def _as_urn(identifier: str, side: Side, number: int = 1) -> str:
    """The number distinguishes forms of one identifier; a colon follows no other number, since those of identifiers are encoded."""
    return f"{BASE}{side}:{'' if number == 1 else f'{number}:'}{quote(identifier, safe='', errors='replace')}"


Encoding = Callable[[str, Side], str]
""":func:`to_iri` or :func:`to_uri`."""


@dataclass(frozen=True)
class Spelling:
    """How a graph's identifiers are written, such that no two of them are written alike.

    Attributes:
        forms: identifiers that are not written as they are -> what is written.
    """

    forms: Mapping[str, str]

    @classmethod
    def of(cls, identifiers: Collection[str], side: Side, encoding: Encoding = to_iri) -> Spelling:
        """The spelling of a graph with these distinct identifiers, which depends on nothing but them.

        An identifier that is written as it is keeps that form. Of those that have to be encoded, one whose form nothing else has gets it; the others
        get a URN, with a number where an entity is called so.
        """
        known = identifiers if isinstance(identifiers, (set, frozenset, dict)) else set(identifiers)
        first = {one: form for one in identifiers if (form := encoding(one, side)) != one}
        uses = Counter(first.values())
        forms = {one: form for one, form in first.items() if uses[form] == 1 and form not in known}
        taken = set(forms.values())
        for one in sorted(first.keys() - forms.keys()):
            urns = (_as_urn(one, side, number) for number in itertools.count(1))
            forms[one] = next(urn for urn in urns if urn not in known and urn not in taken)
            taken.add(forms[one])
        return cls(forms)

    def __call__(self, identifier: str) -> str:
        """What is written for an identifier of the graph."""
        return self.forms.get(identifier, identifier)


def with_known_identifiers(raw: RawDataset) -> RawDataset:
    """The data set with its links' ends spelt as the graphs spell them where an export encoded them, and symmetric pairs the right way round."""
    return replace(raw, links={part: _with_known_ends(links, raw) for part, links in raw.links.items()})


def _with_known_ends(links: RawLinks, raw: RawDataset) -> RawLinks:
    graphs = raw.source, raw.target
    links = replace(links, apart=_oriented(links, graphs))
    straight = _with_known_columns((links.sources, links.targets), graphs)
    if not links.symmetric:
        return replace(links, sources=straight[0], targets=straight[1])
    fits = _fitting(straight, graphs)
    if (fits == len(graphs)).all():
        return replace(links, sources=straight[0], targets=straight[1])
    crossed = _with_known_columns((links.targets, links.sources), graphs)
    turned = _fitting(crossed, graphs) > fits
    sources, targets = (_where(turned, theirs, own) for theirs, own in zip(crossed, straight, strict=True))
    return replace(links, sources=sources, targets=targets, turned=links.turned + int(turned.sum()))


def _oriented(links: RawLinks, graphs: tuple[RawGraph, RawGraph]) -> Apart:
    """What is kept apart, with the identifiers of the graphs and its ends in their order."""
    if not links.apart:
        return links.apart
    apart = links.apart.oriented(*(graph.identifiers.to_list() for graph in graphs))
    columns = _with_known_columns((apart.sources, apart.targets), graphs)
    return replace(apart, sources=list(columns[0]), targets=list(columns[1]))


def confident(links: RawLinks, least: float) -> RawLinks:
    """Without what is less certain than that; what has no confidence stays."""
    reason = f"below the minimum confidence of {least:g}"
    doubtful = np.array([one < least for one in links.confidences], dtype=bool)
    rows = [one for one in zip(*(getattr(links.apart, name) for name in APART_COLUMNS), strict=True) if not one[3] < least]
    dropped = int(doubtful.sum()) + len(links.apart) - len(rows)
    if not dropped:
        return links
    if doubtful.any():
        sources, targets = (Texts.of(column).take(~doubtful) for column in (links.sources, links.targets))
        confidences = [one for one in links.confidences if not one < least]
        links = replace(links, sources=sources, targets=targets, confidences=confidences)
    files = tuple(one.without(reason, int(doubtful.sum())) for one in links.files)
    return replace(links, apart=Apart.of(rows), left_out={**links.left_out, reason: dropped}, files=files)


def _with_known_columns(columns: tuple[Sequence[str], Sequence[str]], graphs: tuple[RawGraph, RawGraph]) -> tuple[Texts, Texts]:
    source, target = (_with_known_words(Texts.of(texts), graph, side) for side, texts, graph in zip(SIDES, columns, graphs, strict=True))
    return source, target


def _fitting(columns: tuple[Texts, Texts], graphs: tuple[RawGraph, RawGraph]) -> IntArray:
    """(n,) how many ends of each pair are in the graph of their column."""
    ends = (texts.having(graph.knows(texts.words)).astype(np.int64) for texts, graph in zip(columns, graphs, strict=True))
    found: IntArray = sum(ends, np.zeros(len(columns[0]), dtype=np.int64))
    return found


def _where(chosen: BoolArray, these: Texts, others: Texts) -> Texts:
    """The rows of one column where they are chosen, else those of the other one."""
    both = Texts.joined(these, others)
    return Texts(np.where(chosen, both.codes[: len(these)], both.codes[len(these) :]), both.words).compact()


def _with_known_words(texts: Texts, graph: RawGraph, side: Side) -> Texts:
    if graph.knows(texts.words).all():
        return texts
    return texts.renamed(_resolved(texts.words.to_list(), set(graph.identifiers.to_list()), side))


def resolve_links(links: RawLinks, source: Collection[str], target: Collection[str]) -> RawLinks:
    """Links with the identifiers of two graphs.

    Args:
        links: as a file has them.
        source, target: all identifiers of each graph; sets, so that looking one up is quick.
    """
    ends = zip(SIDES, (links.sources, links.targets), (source, target), strict=True)
    sources, targets = (_resolved(texts, known, side) for side, texts, known in ends)
    return replace(links, sources=sources, targets=targets)


def _resolved(texts: Sequence[str], known: Collection[str], side: Side) -> Sequence[str]:
    """Each text unchanged where the graph has it, else the identifier that it encodes; unknown ones stay."""
    strange = {text for text in texts if text not in known}
    if not strange:
        return texts
    encoded = _encoded_forms(known, side) if any("%" in text or text.startswith(BASE) for text in strange) else {}
    found = {text: _meaning(text, known, encoded, side) for text in strange}
    return [found.get(text, text) for text in texts]


def _encoded_forms(identifiers: Collection[str], side: Side) -> dict[str, str]:
    """What identifiers are written as where they have to be encoded -> the identifiers; each such form has a percent sign or begins with BASE."""
    spellings = (Spelling.of(identifiers, side, encoding) for encoding in (to_uri, to_iri))
    return {form: identifier for spelling in spellings for identifier, form in spelling.forms.items()}


def _meaning(text: str, known: Collection[str], encoded: dict[str, str], side: Side) -> str:
    plain = restore(text)
    for form in (plain, _other_obo_form(plain)):
        if form in known:
            return form
    urn = _URN.fullmatch(text)
    return encoded.get(text, unquote(urn["text"]) if urn and urn["side"] == side else text)


_OBO: Final = "http://purl.obolibrary.org/obo/"
_OBO_IRI: Final = re.compile(rf"{_OBO}(?P<prefix>[A-Za-z]\w*)_(?P<local>\w+)", re.ASCII)
_OBO_ID: Final = re.compile(r"(?P<prefix>[A-Za-z]\w*):(?P<local>\w+)", re.ASCII)


def _other_obo_form(text: str) -> str:
    """'MP:0001' for 'http://purl.obolibrary.org/obo/MP_0001' and the other way round: OBO files have the one, OWL files and mappings the other."""
    if found := _OBO_IRI.fullmatch(text):
        return f"{found['prefix']}:{found['local']}"
    found = _OBO_ID.fullmatch(text)
    return f"{_OBO}{found['prefix']}_{found['local']}" if found else text


# Ends of links that are spelt otherwise than in the graphs, by Unicode normalisation or percent-encoding only.
#
# To a person ``Zürich`` of composed and of decomposed letters is one name, and ``http://x/AT%26T`` is the same address as ``http://x/AT&T``. To a
# program they are two. Such ends are reported, and spelt as the graph does where its owner asks for it: never unasked, since a graph may hold both.

EXAMPLES: Final = 3
APART_COLUMNS: Final = ("sources", "targets", "relations", "confidences")
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
        advice = "Use the same spelling in both files, or import the data with --repair-links."
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


# Known links from a single file of any format: as other tools give them, and as this one exports them.


def read_links(path: Path | str) -> RawLinks:
    """The pairs of a links file, by its ending (``LINK_ENDINGS``): a table (SSSOM by its columns), RDF or, without an ending, two columns with a tab
    between (OpenEA's ``ent_links``). Each may be gzipped.

    Parts of a split are put together again. Identifiers are as the file has them, CURIEs expanded;
    :func:`engine.data.links.resolve_links` finds those of two graphs.

    Raises:
        DataError: unreadable, an ending that is no format's, or not what the format requires, with the line.
    """
    path = Path(path)
    if table_suffix(path):
        parts = list(read_links_by_part(path, "all").values())
        joined = (Texts.joined(*column) for column in ([part.sources for part in parts], [part.targets for part in parts]))
        return parts[0] if len(parts) == 1 else RawLinks(path, *joined, apart=Apart.joined(part.apart for part in parts))
    if rdf_suffix(path):
        return read_same_as(path)
    if os.path.splitext(path.name.removesuffix(GZIP_ENDING))[1].lower() in PLAIN:
        sources, targets = read_tabbed(path, ("source entity", "target entity")).columns
        return RawLinks(path, sources, targets)
    raise DataError(f"links are read from {', '.join(LINK_ENDINGS)} or OpenEA's ent_links; save them as one of these.", path=path)
