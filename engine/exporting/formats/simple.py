"""Formats of tables and of bare links, and what every format offers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Final, Literal
from weakref import WeakKeyDictionary

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.dialects import defuse
from engine.data.knowledge_graph import SIDES, Side
from engine.data.links import Encoding, Spelling, to_iri
from engine.data.rows import CONTROL
from engine.errors import ExportError
from engine.exporting.table import COLUMNS, COUNTS, NUMBERS, TEXTS, ExportTable
from engine.runs.entities import GraphView
from engine.util.files import check_new_file, new_file
from engine.util.text import count, shorten

# What every format offers.

Predicate = Literal["owl:sameAs", "skos:exactMatch"]
PREDICATES: Final[dict[Predicate, str]] = {
    "owl:sameAs": "http://www.w3.org/2002/07/owl#sameAs",
    "skos:exactMatch": "http://www.w3.org/2004/02/skos/core#exactMatch",
}


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: in commands and addresses.
        title: for people.
        suffix: that its files end in.
        media_type: for a browser.
        does: one line on what it is for.
        write: writes the pairs; the predicate is what it says of each of them, where it says anything.
        predicate: what it says unless asked otherwise; None: the format has no predicates.
        readable: whether its first lines are readable text.
        stem: how names of its files begin.
    """

    name: str
    title: str
    suffix: str
    media_type: str
    does: str
    write: Callable[[IO[bytes], ExportTable, Predicate], None]
    predicate: Predicate | None = None
    readable: bool = True
    stem: str = "links"

    def file_name(self, run: str) -> str:
        """'links-europe-basic-s0.csv': a name that says what is in it, and that makes the file the links of a data set's folder."""
        return f"{self.stem}-{run.replace('/', '-')}{self.suffix}"


# What is written of a pair means this pair and no other one: how identifiers are spelt in an export, and which of them a format cannot hold.

NAMED: Final = 3
"""Pairs that a message names."""
_spellings: WeakKeyDictionary[GraphView, dict[Encoding, Spelling]] = WeakKeyDictionary()


def spellings(table: ExportTable, encoding: Encoding) -> Mapping[Side, Spelling]:
    """How all identifiers of both graphs are written, whichever pairs are exported, so that a reader who has the graph can resolve them."""
    return {side: _spelling(table.view.graphs[side], encoding) for side in SIDES}


def _spelling(graph: GraphView, encoding: Encoding) -> Spelling:
    known = _spellings.setdefault(graph, {})
    if encoding not in known:
        known[encoding] = Spelling.of(graph.index, graph.side, encoding)
    return known[encoding]


def check_text(table: ExportTable, title: str) -> None:
    """
    Raises:
        ExportError: pairs with an identifier that no line of text can hold; names them.
    """
    pairs = (pair for ends in table.identifiers() for pair in zip(*ends, strict=True))
    wrong = (pair for pair in pairs if not all(map(is_text, pair)))
    named = [f"'{shorten(source)}' = '{shorten(target)}'" for source, target in islice(wrong, NAMED)]
    if named:
        rest = sum(1 for _ in wrong)
        listed = ", ".join(named) + (f" and {rest:,} more" if rest else "")
        raise ExportError(
            f"{count(len(named) + rest, 'pair')} cannot be written as {title}, since an identifier holds a control character or half of a character "
            f"({listed}); export them as Parquet or SSSOM."
        )


def is_text(identifier: str) -> bool:
    """Whether an identifier can be written in a line of UTF-8."""
    return not CONTROL.search(identifier) and (identifier.isascii() or not any("\ud800" <= one <= "\udfff" for one in identifier))


# CSV, TSV and Parquet: all that is known of each pair, one row a pair.
#
# CSV and TSV hold no cell that a spreadsheet would run (:mod:`engine.data.dialects`). Identifiers are as they are; labels lose line ends and other
# control characters. CSV begins with the mark by which spreadsheets recognise UTF-8. Parquet has texts as they are.

DIGITS = "%.6g"
SCHEMA = pa.schema([(name, pa.float32() if name in NUMBERS else pa.int32() if name in COUNTS else pa.string()) for name in COLUMNS])
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


def one_line_cell(text: str) -> str:
    """The text without line ends and other control characters."""
    return _CONTROL.sub(" ", text)


def plain_cell(text: str) -> str:
    """The same as a cell that no spreadsheet takes for a formula."""
    return defuse(one_line_cell(text))


SEPARATORS: Final = {".csv": ",", ".tsv": "\t"}


def check_plain(path: Path, *, force: bool = False, endings: str = ".csv or .tsv") -> None:
    """
    Args:
        path: of a table that is to be written.
        force: whether a file that is there may be replaced.
        endings: those that are possible, for the message.

    Raises:
        ExportError: another ending, or no place for the file.
    """
    if path.suffix.lower() not in SEPARATORS:
        raise ExportError(f"the ending of '{path.name}' does not determine a format; use {endings}.")
    check_new_file(path, force=force)


def write_plain(table: pd.DataFrame, path: Path, *, force: bool = False) -> None:
    """Write a table as CSV or TSV without cells that a spreadsheet would run.

    Raises:
        ExportError: another ending, or the file cannot be written.
    """
    check_plain(path, force=force)
    safe = table.copy()
    for name in table.select_dtypes(exclude="number"):
        safe[name] = table[name].astype(str).map(plain_cell)
    content = safe.to_csv(index=False, sep=SEPARATORS[path.suffix.lower()], float_format="%.6g", lineterminator="\n")
    with new_file(path, force=force) as file:
        file.write(b"\xef\xbb\xbf" if path.suffix.lower() == ".csv" else b"")
        file.write(str(content).encode("utf-8", "replace"))


def write_csv(file: IO[bytes], table: ExportTable, predicate: Predicate) -> None:
    check_text(table, "CSV")
    file.write(b"\xef\xbb\xbf")
    _write_text(file, table, ",", csv.QUOTE_MINIMAL)


def write_tsv(file: IO[bytes], table: ExportTable, predicate: Predicate) -> None:
    """Without quotation marks: no cell holds a tab."""
    check_text(table, "TSV")
    _write_text(file, table, "\t", csv.QUOTE_NONE)


def _write_text(file: IO[bytes], table: ExportTable, separator: str, quoting: Literal[0, 3]) -> None:
    for number, chunk in enumerate(table.chunks()):
        safe = chunk.assign(**{name: chunk[name].map(defuse if name in SIDES else plain_cell) for name in TEXTS})
        text = io.StringIO(newline="")
        safe.to_csv(text, sep=separator, index=False, header=number == 0, float_format=DIGITS, quoting=quoting, quotechar='"', lineterminator="\n")
        file.write(text.getvalue().encode("utf-8", "replace"))


def write_parquet(file: IO[bytes], table: ExportTable, predicate: Predicate) -> None:
    with pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        for chunk in table.chunks():
            writer.write_table(pa.Table.from_pandas(_whole_characters(chunk), schema=SCHEMA, preserve_index=False))


def _whole_characters(chunk: pd.DataFrame) -> pd.DataFrame:
    """Half a surrogate pair, which some JSON holds, cannot be written as UTF-8."""
    return chunk.assign(**{name: chunk[name].map(lambda text: text.encode("utf-8", "replace").decode("utf-8")) for name in TEXTS})


CSV: Final = Format("csv", "CSV", ".csv", "text/csv", "for spreadsheets: all columns, opened by a double click", write_csv)
TSV: Final = Format("tsv", "TSV", ".tsv", "text/tab-separated-values", "for the command line: all columns, a tab between", write_tsv)
PARQUET: Final = Format(
    "parquet", "Parquet", ".parquet", "application/vnd.apache.parquet", "for data frames: all columns with types", write_parquet, readable=False
)


# Links alone: owl:sameAs as N-Triples, and OpenEA's file of links.

BYTE_ORDER_MARK: Final = "\ufeff"


def write_ntriples(file: IO[bytes], table: ExportTable, predicate: Predicate) -> None:
    spelt = spellings(table, to_iri)
    source_iri, target_iri = spelt["source"], spelt["target"]
    middle = f"> <{PREDICATES[predicate]}> <"
    for sources, targets in table.identifiers():
        pairs = zip(sources, targets, strict=True)
        lines = "".join(f"<{source_iri(source)}{middle}{target_iri(target)}> .\n" for source, target in pairs)
        file.write(lines.encode("utf-8"))


def write_openea(file: IO[bytes], table: ExportTable, predicate: Predicate) -> None:
    """Identifiers as they are. Readers take a byte order mark from the beginning, so that one that is part of the first identifier gets a second."""
    check_text(table, "OpenEA links")
    for number, (sources, targets) in enumerate(table.identifiers()):
        if number == 0 and sources[0].startswith(BYTE_ORDER_MARK):
            file.write(BYTE_ORDER_MARK.encode("utf-8"))
        lines = "".join(f"{source}\t{target}\n" for source, target in zip(sources, targets, strict=True))
        file.write(lines.encode("utf-8"))


NTRIPLES: Final = Format(
    "ntriples", "N-Triples", ".nt", "application/n-triples", "for triple stores: owl:sameAs or skos:exactMatch", write_ntriples, "owl:sameAs"
)
OPENEA: Final = Format("openea", "OpenEA links", ".txt", "text/plain", "for OpenEA and other aligners: the file ent_links", write_openea)
