"""What an XML file's document type may declare: short names for texts, as OWL files do, and nothing that reaches outside of the file or grows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from xml.parsers import expat

from engine.datasets.files import line_at, shorten
from engine.errors import DataError

MOST_ENTITIES: Final = 500
MOST_EXPANDED: Final = 2**28  # characters
_DOCTYPE = re.compile(r"<!DOCTYPE\s", re.IGNORECASE)
_EXTERNAL = re.compile(
    r"<!DOCTYPE\s+[^\s\[>]+\s+(?:SYSTEM|PUBLIC)\b|<!ENTITY\s+(?:%\s*)?[^\s\"'>]+\s+(?:SYSTEM|PUBLIC)\b|<!ENTITY\s+%", re.IGNORECASE
)
_ENTITY = re.compile(r"<!ENTITY\s+(?P<name>[^\s\"'>]+)\s+(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)')")
_REFERENCE = re.compile(r"&(?!#|lt;|gt;|amp;|quot;|apos;)")


def check_entities(path: Path, text: str) -> None:
    """
    Raises:
        DataError: an external entity or document type, entities inside of entities, or entities that would make the text far longer.
    """
    if not _DOCTYPE.search(text, 0, _head_end(text)):
        return
    if external := _EXTERNAL.search(text):
        raise DataError(
            "this XML refers to another file (an external entity or document type), which is never read; remove that declaration.",
            path=path,
            line=line_at(text, external.start()),
        )
    declared = list(_ENTITY.finditer(text))
    values = {match["name"]: match["double"] or match["single"] or "" for match in declared}
    nested = next((match for match in declared if _REFERENCE.search(values[match["name"]])), None)
    if nested is not None:
        words = f"the entity '{shorten(nested['name'], 40)}' refers to other entities, which is not accepted; write its text out."
        raise DataError(words, path=path, line=line_at(text, nested.start()))
    if len(values) > MOST_ENTITIES or sum(len(value) * text.count(f"&{name};") for name, value in values.items()) > MOST_EXPANDED:
        raise DataError("the entities of this XML would make it far longer than it is; write their texts out.", path=path)


def error_line(text: str) -> int | None:
    """The first line that is not well-formed; None where all are."""
    parser = expat.ParserCreate()
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        return error.lineno
    return None


def _head_end(text: str) -> int:
    """Where the first element begins: a document type stands before it."""
    element = re.search(r"<[A-Za-z_]", text)
    return element.start() if element else len(text)
