"""In which syntax an ontology is written that is no RDF: by its first words, then by its file's ending."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from engine.data.endings import ONTOLOGY_ENDINGS, OntologySyntax, unpacked_name

BYTES_OF_ONTOLOGIES: Final[Mapping[OntologySyntax, float]] = {"ofn": 34.0, "omn": 38.0, "owx": 8.0, "obo": 12.0}
"""What a character takes at the peak, with the axioms as the parser holds them; measured with 100,000 classes (31, 34, 5 and 8)."""
BEGINNING: Final = 2**16
_BLANK: Final = r"(?:\s|#[^\n]*\n)*"
_FUNCTIONAL: Final = re.compile(rf"{_BLANK}(?:Prefix|Ontology|Import)\s*\(")
_MANCHESTER: Final = re.compile(rf"{_BLANK}(?:Prefix|Ontology):\s")
_OWL_XML: Final = re.compile(
    r"<(?:\w+:)?Ontology\s[^>]{0,4000}?=\s*(?:\"http://www\.w3\.org/2002/07/owl#\"|'http://www\.w3\.org/2002/07/owl#'|[\"']&owl;)"
)
_PROLOG: Final = re.compile(r"(?:\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>)*+", re.DOTALL)
_OBO: Final = re.compile(r"\s*(?:![^\n]*\n\s*)*format-version:\s*\S")


def syntax_by_ending(path: Path) -> OntologySyntax | None:
    """'obo' for 'a.obo' and 'a.obo.gz', and so on; None where the ending is none of ontologies that are no RDF."""
    name = unpacked_name(path.name)
    return next((syntax for syntax, endings in ONTOLOGY_ENDINGS.items() if name.endswith(endings)), None)


def ontology_syntax(path: Path, text: str) -> OntologySyntax | None:
    """The syntax of an ontology that is no RDF; files called ``.owl`` may be of any.

    Args:
        path: the file; its ending counts where the content leaves a choice.
        text: its content, or the beginning of it.
    """
    begin = text[:BEGINNING]
    if _FUNCTIONAL.match(begin):
        return "ofn"
    if _MANCHESTER.match(begin):
        return "omn"
    if _OBO.match(begin):
        return "obo"
    if begin.lstrip().startswith("<"):
        prolog = _PROLOG.match(begin)
        return "owx" if prolog and _OWL_XML.match(begin, prolog.end()) else syntax_by_ending(path)
    return syntax_by_ending(path)
