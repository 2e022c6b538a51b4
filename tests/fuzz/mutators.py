"""Changes to valid files: those that damage them somewhere, and those that leave their meaning as it is."""

from __future__ import annotations

import codecs
import gzip
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

WORDS: tuple[bytes, ...] = tuple(
    word if isinstance(word, bytes) else word.encode()
    for word in (
        *(
            "",
            "0",
            "-1",
            "9" * 40,
            "1e999",
            "NaN",
            "Infinity",
            "true",
            "null",
            "\\u0000",
            "\\ud800",
            "&#0;",
            "&amp;",
            "&x;",
            "<![CDATA[x]]>",
            "<!-- -->",
        ),
        *(
            "<",
            ">",
            "<<",
            '"',
            '"""',
            "'",
            "[",
            "]",
            "{",
            "}",
            "(",
            ")",
            ".",
            ";",
            ",",
            "\t",
            "|",
            ":",
            "_:a",
            "_:",
            "@",
            "^^",
            "#",
            "!",
            "\\",
            "//",
            "a:b",
        ),
        *("\u202e", "\u200b", "\u2028", "\x85", "\x0b", "\x0c", "\x1c", "\u00a0", "\ufeff", "e\u0301", "\U0001f600", "\x7f", "\x1b[31m"),
        *("id", "source", "target", "head", "relation", "tail", ":ID", ":TYPE", ":LABEL", "split", "predicate_id", "subject_id"),
        *("http://", "http://a b", "urn:x", "../../etc/passwd", "=cmd()", "$(id)", "%00", "%zz", "http://www.w3.org/2002/07/owl#Thing"),
        *(b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xff\xfe", b"\xf4\x90\x80\x80", b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"SQLite format 3\0"),
        *("x" * 3000, "é" * 300, "9" * 5000, "a," * 1200),
    )
)
"""What parsers stumble over."""
TEXTS: tuple[bytes, ...] = tuple(
    text.encode()
    for text in (
        *(
            "x",
            "",
            " ",
            "\u00e9",
            "\u2028",
            "\x85",
            "\u202e",
            "\u00a0",
            "\ufeff",
            "\u200b",
            "e\u0301",
            "\x0b",
            "\x7f",
            "\U0001f600",
            "\ufffe",
            "9" * 40,
            "x" * 5000,
        ),
        *(
            "null",
            "NaN",
            "true",
            "1e5",
            "-0",
            "007",
            "id",
            "head",
            "source",
            "label",
            "type",
            "string",
            "double",
            "integer",
            "boolean",
            "a b",
            "a\nb",
            "a:b",
            "http://x.org/y",
        ),
    )
)
"""What may be in a name or a value of nearly every format."""
TOKEN = re.compile(rb"\w+|[^\w\s]|\s+")
OPENERS = (b"(", b"[", b"{", b"<a>", b"<rdf:Description>", b"[ <http://a/p> ", b'{"a":', b"<!--", b"ObjectIntersectionOf(", b"<<")
CODECS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7")
DELIMITERS = (b",", b"\t", b";", b"|", b" ", b"\n", b"\r", b'"', b"<", b"#")


@dataclass(frozen=True)
class Change:
    """One change: what is done, where, and with which bytes; ``share`` and ``length`` are parts of the file in thousandths, and bytes."""

    kind: str
    share: int
    length: int
    word: int
    bit: int


def changes() -> st.SearchStrategy[list[Change]]:
    """One to four changes after each other."""
    place = st.integers(0, 999)
    kinds = sorted(KINDS) + ["word"] * 6 + ["swap words"] * 4  # these leave the syntax whole
    one = st.builds(Change, st.sampled_from(kinds), place, st.integers(0, 40), st.integers(0, len(WORDS) - 1), st.integers(0, 7))
    return st.lists(one, min_size=1, max_size=4)


def _at(content: bytes, change: Change) -> int:
    return len(content) * change.share // 1000


def _flip(content: bytes, change: Change, _: bytes) -> bytes:
    at = _at(content, change)
    return content[:at] + bytes([content[at] ^ (1 << change.bit)]) + content[at + 1 :] if content else content


def _insert(content: bytes, change: Change, _: bytes) -> bytes:
    at = _at(content, change)
    return content[:at] + WORDS[change.word] + content[at:]


def _overwrite(content: bytes, change: Change, _: bytes) -> bytes:
    at = _at(content, change)
    return content[:at] + WORDS[change.word] + content[at + len(WORDS[change.word]) :]


def _delete(content: bytes, change: Change, _: bytes) -> bytes:
    at = _at(content, change)
    return content[:at] + content[at + 1 + change.length :]


def _duplicate(content: bytes, change: Change, _: bytes) -> bytes:
    at = _at(content, change)
    return content[:at] + content[at : at + change.length] * (2 + change.bit) + content[at + change.length :]


def _truncate(content: bytes, change: Change, _: bytes) -> bytes:
    return content[: _at(content, change)]


def _splice(content: bytes, change: Change, other: bytes) -> bytes:
    return content[: _at(content, change)] + other[_at(other, change) :]


def _append(content: bytes, change: Change, other: bytes) -> bytes:
    return content + other


def _token(content: bytes, change: Change, _: bytes) -> bytes:
    """Another word in the place of one: deeper into a parser than single bytes get."""
    tokens = TOKEN.findall(content)
    if not tokens:
        return WORDS[change.word]
    tokens[len(tokens) * change.share // 1000] = WORDS[change.word]
    return b"".join(tokens)


def _swap_tokens(content: bytes, change: Change, _: bytes) -> bytes:
    tokens = TOKEN.findall(content)
    if not tokens:
        return content
    one, other = len(tokens) * change.share // 1000, (len(tokens) * change.share // 1000 + change.length) % len(tokens)
    tokens[one], tokens[other] = tokens[other], tokens[one]
    return b"".join(tokens)


def _word(content: bytes, change: Change, _: bytes) -> bytes:
    """Another text in the place of a word."""
    words = list(re.finditer(rb"\w+", content))
    if not words:
        return content
    match = words[len(words) * change.share // 1000]
    return content[: match.start()] + TEXTS[change.word % len(TEXTS)] + content[match.end() :]


def _swap_words(content: bytes, change: Change, _: bytes) -> bytes:
    """A word in the place of another one nearby: references to something else, and names used twice."""
    words = list(re.finditer(rb"\w+", content))
    if not words:
        return content
    at = len(words) * change.share // 1000
    match, other = words[at], words[(at + change.length) % len(words)]
    return content[: match.start()] + other.group() + content[match.end() :]


def _lines(content: bytes, change: Change, _: bytes) -> bytes:
    """A line removed, repeated, or moved to the front: repeated headers, and headers at the end."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    at = len(lines) * change.share // 1000
    if change.bit < 2:
        return b"".join(lines[:at] + lines[at + 1 :])
    if change.bit < 4:
        return b"".join([*lines[: at + 1], *lines[at : at + 1], *lines[at + 1 :]])
    return b"".join([lines[at], *lines[:at], *lines[at + 1 :]]) if change.bit < 6 else b"".join([*lines[: at + 1], lines[0], *lines[at + 1 :]])


def _delimiters(content: bytes, change: Change, _: bytes) -> bytes:
    one, other = DELIMITERS[change.word % len(DELIMITERS)], DELIMITERS[change.length % len(DELIMITERS)]
    return content.replace(one, other) if change.bit < 5 else content.replace(one, other, 1 + change.bit)


def _encoding(content: bytes, change: Change, _: bytes) -> bytes:
    return content.decode("utf-8", "replace").encode(CODECS[change.length % len(CODECS)], "replace")


def _mark(content: bytes, change: Change, _: bytes) -> bytes:
    return (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"\0\0\xfe\xff")[change.bit % 4] + content


def _nested(content: bytes, change: Change, _: bytes) -> bytes:
    at = _at(content, change)
    return content[:at] + OPENERS[change.word % len(OPENERS)] * (10, 200, 3000)[change.bit % 3] + content[at:]


def _packed(content: bytes, change: Change, other: bytes) -> bytes:
    """A gzip file of two members, one with a part missing, one with wrong checksums, or with something behind it."""
    one, two = gzip.compress(content, mtime=0), gzip.compress(other, mtime=0)
    return (
        one + two,
        one[: _at(one, change)],
        one[:-8] + bytes(8),
        one + b"junk",
        one + bytes(64),
        gzip.compress(one, mtime=0),
        two[:10] + one[10:],
        one,
    )[change.bit]


def _numbers(content: bytes, change: Change, _: bytes) -> bytes:
    huge = (b"9" * 30, b"-1", b"1e400", b"0", b"4294967296", b"18446744073709551616", b"9223372036854775808", b"9" * 5000)[change.bit]
    found = list(re.finditer(rb"\d+", content))
    if not found:
        return content
    match = found[len(found) * change.share // 1000]
    return content[: match.start()] + huge + content[match.end() :]


KINDS: dict[str, Callable[[bytes, Change, bytes], bytes]] = {
    "append": _append,
    "delete": _delete,
    "delimiters": _delimiters,
    "duplicate": _duplicate,
    "encoding": _encoding,
    "flip": _flip,
    "insert": _insert,
    "lines": _lines,
    "mark": _mark,
    "nested": _nested,
    "numbers": _numbers,
    "overwrite": _overwrite,
    "packed": _packed,
    "splice": _splice,
    "swap tokens": _swap_tokens,
    "swap words": _swap_words,
    "token": _token,
    "truncate": _truncate,
    "word": _word,
}


def changed(content: bytes, several: Sequence[Change], other: bytes = b"") -> bytes:
    """A file after these changes; ``other`` is what is spliced in."""
    for change in several:
        content = KINDS[change.kind](content, change, other)
        content = content[: 2**20]
    return content


# What does not change the meaning of a text file.


def packed_in_two(content: bytes) -> bytes:
    """A gzip file whose content is divided among two members, as ``cat a.gz b.gz`` makes it."""
    half = len(content) // 2
    return gzip.compress(content[:half], mtime=0) + gzip.compress(content[half:], mtime=0)


def packed(content: bytes) -> bytes:
    """A gzip file with a name inside."""
    buffer = io.BytesIO()
    with gzip.GzipFile("inner.name", "wb", fileobj=buffer, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()


def with_crlf(content: bytes) -> bytes:
    return re.sub(rb"\r?\n", b"\r\n", content)


def with_cr(content: bytes) -> bytes:
    """As old Mac programs wrote lines."""
    return re.sub(rb"\r?\n", b"\r", content)


def with_mark(content: bytes) -> bytes:
    return codecs.BOM_UTF8 + content


def without_last_end(content: bytes) -> bytes:
    return content.rstrip(b"\r\n")


def with_blank_lines(content: bytes) -> bytes:
    return content + b"\n\n"


HARMLESS: dict[str, Callable[[bytes], bytes]] = {
    "two members": packed_in_two,
    "packed": packed,
    "CRLF": with_crlf,
    "CR": with_cr,
    "byte order mark": with_mark,
    "no last line end": without_last_end,
    "blank lines at the end": with_blank_lines,
}
BINARY_TOO = ("packed", "two members")
