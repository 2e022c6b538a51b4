"""What an XML file's document type may declare: short names for texts, as OWL files do, and nothing that reaches outside of the file or grows.

The declarations are those that an XML parser finds, whatever stands before them. The RDF parser accepts a document type in places where XML does not;
such a file is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final, NoReturn
from xml.parsers import expat

from engine.errors import DataError
from engine.util.text import shorten

MOST_ENTITIES: Final = 500
MOST_EXPANDED: Final = 2**28  # characters
CHUNK: Final = 2**16  # characters
_DECLARATION = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_NESTED = re.compile(r"&(?!#|lt;|gt;|amp;|quot;|apos;)")
_REFERENCE = re.compile(r"&([^&;\s]{1,200});")
EXTERNAL = "this XML refers to another file (an external entity or document type), which is never read; remove that declaration."
FAR_LONGER = "the entities of this XML would make it far longer than it is; write their texts out."


def check_entities(path: Path, text: str) -> None:
    """
    Raises:
        DataError: an external entity or document type, entities inside of entities, entities that would make the text far longer, or a document type
            where none may stand.
    """
    if not _DECLARATION.search(text):
        return
    prolog = _Prolog(path, text)
    if line := error_line(text):  # after what the parser of the prolog saw there may be another document type
        raise DataError("this is not well-formed XML; correct this line.", path=path, line=line)
    if prolog.longest:
        uses = Counter(match[1] for match in _REFERENCE.finditer(text))
        if sum(length * uses[name] for name, length in prolog.longest.items()) > MOST_EXPANDED:
            raise DataError(FAR_LONGER, path=path)


class _FirstElementError(Exception):
    """The document type, if there is one, is behind."""


class _Prolog:
    """What stands before the first element, as an XML parser reads it.

    Attributes:
        longest: entity -> the length of its longest text.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.longest: dict[str, int] = {}
        self.skipped, self.parser = _parser(text)
        self.parser.StartDoctypeDeclHandler = self._document_type
        self.parser.EntityDeclHandler = self._entity
        self.parser.StartElementHandler = _stop
        begin = len(text) - len(text.lstrip())
        try:
            while begin < len(text):
                self.parser.Parse(text[begin : begin + CHUNK], False)
                begin += CHUNK
        except _FirstElementError:
            return
        except expat.ExpatError as error:
            line = self.skipped + error.lineno
            raise DataError(f"this is not well-formed XML ({expat.ErrorString(error.code)}); correct this line.", path=path, line=line) from None

    def _refuse(self, words: str) -> NoReturn:
        raise DataError(words, path=self.path, line=self.skipped + self.parser.CurrentLineNumber)

    def _document_type(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        if system is not None or public is not None:
            self._refuse(EXTERNAL)

    def _entity(
        self, name: str, is_parameter: bool, value: str | None, base: str | None, system: str | None, public: str | None, notation: str | None
    ) -> None:
        if is_parameter or value is None:
            self._refuse(EXTERNAL)
        if _NESTED.search(value):
            self._refuse(f"the entity '{shorten(name, 40)}' refers to other entities, which is not accepted; write its text out.")
        self.longest[name] = max(len(value), self.longest.get(name, 0))
        if len(self.longest) > MOST_ENTITIES:
            self._refuse(FAR_LONGER)


def _stop(name: str, attributes: dict[str, str]) -> NoReturn:
    raise _FirstElementError


def _parser(text: str) -> tuple[int, expat.XMLParserType]:
    """A parser for the text without the blank lines in front, which the RDF parser accepts as well, and how many these are."""
    return text.count("\n", 0, len(text) - len(text.lstrip())), expat.ParserCreate(encoding="utf-8")


def error_line(text: str) -> int | None:
    """The first line that is not well-formed; None where all are."""
    skipped, parser = _parser(text)
    try:
        parser.Parse(text.lstrip().encode(), True)
    except expat.ExpatError as error:
        return skipped + error.lineno
    return None
