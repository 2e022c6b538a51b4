"""The Alignment format of ontology matching campaigns: XML whose cells name two entities, a relation and a measure.

It looks like RDF/XML, but many of its files are not (attributes without a namespace), so it is read as XML.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers import expat

from engine.data.beginnings import not_well_formed

NAMESPACE: Final = "knowledgeweb.semanticweb.org/heterogeneity/alignment"
HEAD: Final = 2**16  # characters
RELATIONS: Final = {
    "=": "exactMatch",
    "<": "broadMatch",
    ">": "narrowMatch",
    "equivalence": "exactMatch",
    "equivrelation": "exactMatch",
    "subsumed": "broadMatch",
    "subsumedrelation": "broadMatch",
    "subsumes": "narrowMatch",
    "subsumerelation": "narrowMatch",
}
"""What a cell says of its first entity -> the SKOS predicate; a relation may be named by its class."""
_PARTS: Final = frozenset({"entity1", "entity2", "relation", "measure"})
_NAMING: Final = re.compile(r"(?:.*\s)?(?:resource|about)")


@dataclass
class Cell:
    """A cell as read; a part that the file does not have is empty."""

    entity1: str = ""
    entity2: str = ""
    relation: str = ""
    measure: str = ""

    @property
    def predicate(self) -> str:
        """The local name of the SKOS predicate, or the relation itself where there is none for it."""
        word = self.relation.strip() or "="
        return RELATIONS.get(word.rsplit(".", 1)[-1].lower(), word)


def is_alignment(text: str) -> bool:
    """Whether an XML text is in this format."""
    return NAMESPACE in text[:HEAD]


@dataclass
class _Collector:
    cells: list[Cell] = field(default_factory=list)
    part: str = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rsplit(" ", 1)[-1]
        if local == "Cell":
            self.cells.append(Cell())
        elif self.cells and local in _PARTS:
            self.part = local
        if self.cells and self.part.startswith("entity"):
            named = next((value for key, value in attributes.items() if _NAMING.fullmatch(key)), "")
            if named:
                setattr(self.cells[-1], self.part, named)

    def text(self, text: str) -> None:
        if self.part in ("relation", "measure"):
            setattr(self.cells[-1], self.part, getattr(self.cells[-1], self.part) + text)

    def end(self, name: str) -> None:
        if name.rsplit(" ", 1)[-1] == self.part:
            self.part = ""


def read_cells(path: Path, text: str) -> list[Cell]:
    """All cells of a text whose document type has been checked (:func:`engine.data.readers.rdf.check_entities`): nothing outside of it is read.

    Raises:
        DataError: not well-formed, with the line.
    """
    collector = _Collector()
    parser = expat.ParserCreate(encoding="utf-8", namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = collector.start, collector.end, collector.text
    plain = text.lstrip()
    try:
        parser.Parse(plain.encode(), True)
    except expat.ExpatError as error:
        raise not_well_formed(path, error, text.count("\n", 0, len(text) - len(plain))) from None
    return collector.cells
