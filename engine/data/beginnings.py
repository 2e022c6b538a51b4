"""Files that cannot be what their names say, refused by their beginning, so that hundreds of megabytes are not read to no end."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Final
from xml.parsers import expat

from engine.data.files import read_head
from engine.errors import DataError
from engine.util.text import shorten, size_text

HEAD: Final = 2**16
LONGEST_LINE: Final = 2**24
"""Bytes, and characters: no parser of lines takes a longer one, and no graph has any."""
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BLANK_LINES: Final = re.compile(r"(?:\s*(?:#[^\n]*(?:\n|\Z))?)*+")
_OBO_BLANK: Final = re.compile(r"(?:\s*(?:![^\n]*(?:\n|\Z))?)*+")
_STATEMENT: Final = re.compile(r"<|_:")
_OBO_LINE: Final = re.compile(r"\[|[\w-]+[ \t]*:")
TOO_LONG: Final = f"a line is longer than {size_text(LONGEST_LINE)}; write a statement, or a row, on each line."


def beginning(path: Path) -> str:
    """The first characters of a text; "" where they are no UTF-8, which reading the whole file complains about."""
    head = read_head(path, HEAD)
    if head.startswith(_UTF_16):
        return ""
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        return ""


def check_first_line(path: Path) -> None:
    """
    Raises:
        DataError: the first line is longer than any.
    """
    head = read_head(path, HEAD)
    if len(head) < HEAD or b"\n" in head or b"\r" in head:
        return
    head = read_head(path, LONGEST_LINE + 1)
    if len(head) > LONGEST_LINE and b"\n" not in head and b"\r" not in head:
        raise DataError(TOO_LONG, path=path, line=1)


def check_lines(path: Path, text: str) -> None:
    """
    Raises:
        DataError: one of the lines of a text is longer than any.
    """
    start = 0
    while len(text) - start > LONGEST_LINE:
        end = text.rfind("\n", start, start + LONGEST_LINE)
        if end < 0:
            raise DataError(TOO_LONG, path=path, line=text.count("\n", 0, start) + 1)
        start = end + 1


def check_xml(path: Path, head: str, what: str) -> None:
    """
    Args:
        path: the file.
        head: its beginning.
        what: what it should be: "RDF/XML".

    Raises:
        DataError: it does not begin as XML does.
    """
    content = head.lstrip()
    skipped = head.count("\n", 0, len(head) - len(content))
    if not content:
        return
    if not content.startswith("<"):
        raise DataError(f"this is not {what}: it begins with '{shorten(content, 40)}' and not with '<'; {CHECK}.", path=path, line=skipped + 1)
    if "<!" not in content:  # documents with a document type are looked at with more care
        parser = expat.ParserCreate(encoding="utf-8")
        try:
            parser.Parse(content, False)
        except expat.ExpatError as error:
            raise not_well_formed(path, error, skipped) from None
    if len(head) >= HEAD // 4 and ">" not in content:
        raise DataError(f"this is not {what}: its first tag has no end; {CHECK}.", path=path, line=skipped + 1)


def xml_parser(text: str) -> tuple[int, expat.XMLParserType]:
    """A parser for the text without the blank lines in front, whatever encoding it declares, and how many these lines are."""
    return text.count("\n", 0, len(text) - len(text.lstrip())), expat.ParserCreate(encoding="utf-8")


def not_well_formed(path: Path, error: expat.ExpatError, skipped: int) -> DataError:
    """What is said of XML that its parser refuses.

    Args:
        path: the file.
        error: the parser's.
        skipped: lines of the file in front of what the parser was given.
    """
    words = f"this is not well-formed XML ({expat.ErrorString(error.code)}); correct this line."
    return DataError(words, path=path, line=skipped + error.lineno)


def check_statements(path: Path, head: str, what: str) -> None:
    """The same for N-Triples and N-Quads.

    Raises:
        DataError: the first line that is no comment begins with no IRI and no blank node, or is longer than any.
    """
    _check_start(path, head, _BLANK_LINES, _STATEMENT, f"this is not {what}: expected an IRI in angle brackets or a blank node")
    check_first_line(path)


def check_obo(path: Path, head: str) -> None:
    """The same for OBO.

    Raises:
        DataError: the first line that is no comment has no tag and begins no stanza, or is longer than any.
    """
    _check_start(path, head, _OBO_BLANK, _OBO_LINE, "this is not valid OBO (expected a tag or a stanza")
    check_first_line(path)


def _check_start(path: Path, head: str, blank: re.Pattern[str], start: re.Pattern[str], words: str) -> None:
    found = blank.match(head)
    begin = found.end() if found else 0
    if begin == len(head) or start.match(head, begin):
        return
    line = head.count("\n", 0, begin) + 1
    shown = shorten(head[begin:].split("\n", 1)[0].strip(), 60)
    closed = f" in '{shown}')" if "(" in words else f", found '{shown}'"
    raise DataError(f"{words}{closed}; correct this line.", path=path, line=line)


CHECK: Final = "check that it is the right file"
