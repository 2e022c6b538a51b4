"""Averaged word vectors from a text file (fastText's .vec, GloVe, MUSE; plain or gzipped), as in the paper (section 6).

For names in two languages take vectors that were aligned to one space (MUSE, fastText aligned), one file a graph: ``vectors:zh.vec,en.vec``.
Only the words that occur in the names are kept; a file of any length is read once, line by line.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from engine.data.files import GZIP_MAGIC, MAC_LINES
from engine.data.knowledge_graph import Finding
from engine.errors import DataError
from engine.names.encoders.base import UNSPACED, EncodedNames, dense_rows, folded, register_encoder, words
from engine.names.specs import one_or_two_paths
from engine.search import StructuralSimilarity
from engine.util.machine import os_reason
from engine.util.text import shorten

Vector = npt.NDArray[np.float32]
LONGEST_UNSPACED = 6
"""Letters of the longest word that is looked for inside text without blanks."""
MAX_LINE = 2**20
UTF8_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
EXAMPLES = 3


@register_encoder("vectors", "averaged word vectors from a text file in fastText's, GloVe's or MUSE's format", "FILE[,FILE]", one_or_two_paths)
class WordVectorEncoder:
    """The mean of a name's word vectors. Words without a vector are left out and counted; a name without any known word counts as none.

    Args:
        argument: a file for both graphs, or one for the source and one for the target graph with a comma between them.
    """

    def __init__(self, argument: str) -> None:
        self.paths = vector_files(argument)

    def encode(self, source: Sequence[str], target: Sequence[str]) -> EncodedNames:
        """See :meth:`engine.names.encoders.base.NameEncoder.encode`.

        Raises:
            DataError: a row with another number of values, a value that is no number, or bytes that are not UTF-8, with file and line;
                no word of a graph's names has a vector; two files that differ in width.
        """
        if len(self.paths) == 1:
            table = read_vectors(self.paths[0], wanted_words([*source, *target]))
            tables = table, table
        else:
            tables = read_vectors(self.paths[0], wanted_words(source)), read_vectors(self.paths[1], wanted_words(target))
        if tables[0].width != tables[1].width:
            raise DataError(
                f"the vectors here have {tables[1].width} values and those of {self.paths[0].name} {tables[0].width}; "
                "the two files must be aligned to one space.",
                path=self.paths[1],
            )
        unknown = Counter[str]()
        sides = (dense_rows(part, averager(table, unknown), table.width) for part, table in zip((source, target), tables, strict=True))
        return EncodedNames(StructuralSimilarity(*sides), tuple(unknown_words([*source, *target], unknown)))


def vector_files(argument: str) -> tuple[Path, ...]:
    """One file, or two with a comma between them (:func:`engine.names.specs.one_or_two_paths`).

    Raises:
        DataError: no such file.
    """
    paths = tuple(Path(part) for part in one_or_two_paths(argument))
    for path in paths:
        if not os.path.isfile(path):
            what = "this is a folder" if os.path.isdir(path) else "there is no such file"
            raise DataError(f"{what}; give a text file of word vectors (a word and its values on each line).", path=path)
    return paths


# Words


def wanted_words(names: Iterable[str]) -> set[str]:
    """All texts that could be words of the names."""
    return {part for name in set(names) for word in words(name) for part in (word, *parts_of(word))}


def parts_of(word: str) -> Iterator[str]:
    """Shorter texts inside a word of a script without blanks that may be words themselves."""
    if not UNSPACED.search(word):
        return
    for start in range(len(word)):
        for stop in range(start + 1, min(start + LONGEST_UNSPACED, len(word)) + 1):
            yield word[start:stop]


def known_parts(word: str, known: Callable[[str], bool]) -> list[str]:
    """The word itself where it is known; else, in scripts without blanks, the longest known parts from the left; else nothing."""
    if known(word):
        return [word]
    if not UNSPACED.search(word):
        return []
    found, start = [], 0
    while start < len(word):
        stops = range(min(start + LONGEST_UNSPACED, len(word)), start, -1)
        stop = next((stop for stop in stops if known(word[start:stop])), 0)
        found += [word[start:stop]] if stop else []
        start = stop or start + 1
    return found


def averager(table: WordTable, unknown: Counter[str]) -> Callable[[list[str]], Vector]:
    """A function that gives u names their (u, D) mean vectors and counts words without a vector in ``unknown``."""

    def average(names: list[str]) -> Vector:
        rows = np.zeros((len(names), table.width), dtype=np.float32)
        for row, name in zip(rows, names, strict=True):
            parts = []
            for word in words(name):
                found = known_parts(word, table.rows.__contains__)
                unknown[word] += not found
                parts += found
            if parts:
                row[:] = table.vectors[[table.rows[part] for part in parts]].mean(axis=0)
        return rows

    return average


def unknown_words(names: Iterable[str], counts: Counter[str]) -> Iterator[Finding]:
    """How many of the names' distinct words have no vector."""
    unknown = [word for word, count in counts.most_common() if count]
    if unknown:
        total = len({word for name in names for word in words(name)})
        message = f"{len(unknown):,} of {total:,} distinct words of the names have no vector and were left out."
        advice = "Take vectors of the names' languages, or the encoder ngrams, which needs none."
        yield Finding("words-without-vector", "info", message, len(unknown), tuple(map(shorten, unknown[:EXAMPLES])), advice)


# Files


@dataclass(frozen=True)
class WordTable:
    """Vectors of the words that were asked for.

    Attributes:
        rows: word -> row.
        vectors: (w, D) float32 of unit length each, so that no word outweighs the others of a name.
    """

    rows: dict[str, int]
    vectors: Vector  # (w, D)

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1])


def read_vectors(path: Path, wanted: set[str]) -> WordTable:
    """The vectors of the wanted words; the first of several spellings that fold to the same word counts.

    Raises:
        DataError: with file and line where a line is not what it should be; none of the wanted words is there.
    """
    rows: dict[str, int] = {}
    vectors: list[Vector] = []
    width = 0
    for line, text in numbered_lines(path):
        if line == 1 and is_vector_header(text):
            continue
        width = width or text.count(b" ")
        word, values = split_row(path, line, text, width)
        if word in wanted and word not in rows:
            rows[word] = len(vectors)
            vectors.append(parse_values(path, line, values))
    if not vectors:
        what = "no word of the names has a vector here; take vectors of the names' language" if width else "this file holds no vectors; give another"
        raise DataError(f"{what}, or use the encoder ngrams.", path=path)
    table = np.stack(vectors)
    lengths = np.linalg.norm(table.astype(np.float64), axis=1, keepdims=True)
    return WordTable(rows, (table / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32))


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Line numbers and lines without their ends and without a byte order mark; blank ones are passed over.

    Raises:
        DataError: unreadable, a damaged gzip file, UTF-16, line ends of old Mac programs, a line of more than a mebibyte.
    """
    try:
        with open_plain(path) as file:
            for line, raw in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), start=1):
                if line == 1 and raw.startswith(UTF16_MARKS):
                    raise DataError("this file is UTF-16, expected UTF-8; save it again as UTF-8.", path=path, line=1)
                if b"\r" in raw.rstrip():
                    raise DataError(f"expected a word and its values on this line; {MAC_LINES}.", path=path, line=line)
                if len(raw) > MAX_LINE:
                    raise DataError(f"this line is longer than {MAX_LINE >> 20} MiB; expected a word and its values.", path=path, line=line)
                text = (raw.removeprefix(UTF8_MARK) if line == 1 else raw).rstrip()
                if text:
                    yield line, text.replace(b"\t", b" ")
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError("this gzip file is damaged or incomplete; copy or pack it again.", path=path) from None
    except OSError as error:
        raise DataError(f"this file cannot be read ({os_reason(error)}).", path=path) from None


def open_plain(path: Path) -> IO[bytes]:
    """The file, unpacked where it is gzipped (detected by content, not by name)."""
    with open(path, "rb") as file:
        zipped = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return gzip.open(path, "rb") if zipped else open(path, "rb")  # type: ignore[return-value]


def is_vector_header(text: bytes) -> bool:
    """Whether a first line gives the number of words and of values, as fastText and MUSE write it."""
    parts = text.split(b" ")
    return len(parts) == 2 and all(part.isdigit() for part in parts)


def split_row(path: Path, line: int, text: bytes, width: int) -> tuple[str, bytes]:
    """The folded word of a row, and its values unchanged.

    Raises:
        DataError: another number of values than the first row's, or a word that is not UTF-8.
    """
    if width and text.count(b" ") == width:
        word, _, values = text.partition(b" ")
    else:
        word, values = split_spaced_word(path, line, text, width)
    try:
        return folded(word.decode("utf-8")), values
    except UnicodeDecodeError:
        raise DataError("these bytes are not UTF-8; save the file again as UTF-8.", path=path, line=line) from None


def split_spaced_word(path: Path, line: int, text: bytes, width: int) -> tuple[bytes, bytes]:
    """A row whose word holds blanks, as a few of GloVe's do ('. . .'); a number at the end of such a word is a value too many.

    Raises:
        DataError: that is not what it is.
    """
    found = text.count(b" ")
    parts = text.rsplit(b" ", width) if width and found > width else []
    if not parts or is_number(parts[0].rsplit(b" ", 1)[1]):
        expected = f"a word and {width} values" if width else "a word and its values"
        raise DataError(f"expected {expected} separated by blanks, found {found} values; repair this line.", path=path, line=line)
    return parts[0], b" ".join(parts[1:])


def is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def parse_values(path: Path, line: int, values: bytes) -> Vector:
    """
    Raises:
        DataError: a value is no finite number.
    """
    parts = values.split(b" ")
    wrong = next((part for part in parts if not is_number(part)), None)
    vector = np.array([float(part) for part in parts] if wrong is None else [np.nan], dtype=np.float64)
    if not (np.abs(vector) < np.finfo(np.float32).max).all():
        shown = shorten((wrong or b"a value that is not finite").decode("utf-8", "replace"), 40)
        raise DataError(f"expected {len(parts)} numbers behind the word, found '{shown}'; repair this line.", path=path, line=line)
    return vector.astype(np.float32)
