"""CSV, TSV and Parquet: all that is known of each pair, one row a pair.

CSV and TSV hold no cell that a spreadsheet would run (:mod:`engine.data.formulas`). Identifiers are as they are; labels lose line ends and other
control characters. CSV begins with the mark by which spreadsheets know UTF-8. Parquet has texts as they are.
"""

from __future__ import annotations

import csv
import io
import re
from typing import IO, Final, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.formulas import defuse
from engine.data.knowledge_graph import SIDES
from engine.exporting.formats.base import Format, Predicate
from engine.exporting.table import COLUMNS, COUNTS, NUMBERS, TEXTS, ExportTable
from engine.exporting.writable import check_text

DIGITS = "%.6g"
SCHEMA = pa.schema([(name, pa.float32() if name in NUMBERS else pa.int32() if name in COUNTS else pa.string()) for name in COLUMNS])
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


def one_line_cell(text: str) -> str:
    """The text without line ends and other control characters."""
    return _CONTROL.sub(" ", text)


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
        safe = chunk.assign(**{name: chunk[name].map(defuse if name in SIDES else lambda text: defuse(one_line_cell(text))) for name in TEXTS})
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
