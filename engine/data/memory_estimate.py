"""How much memory a data set will need, before it is read.

Counted are rows: of Parquet from the file's own count, of text from its size and the lines at its beginning, packed or not. What a row takes was
measured on synthetic graphs of a million entities (docs/benchmarks.md); it is an estimate to refuse by what cannot fit, not a promise. RDF is read
whole: its text is held twice while it is parsed, and each statement is three texts.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from engine.data.files import opened
from engine.data.parquet import open_parquet
from engine.data.readers.rdf import rdf_suffix
from engine.data.tabular import table_suffix
from engine.util.memory import MIB

SAMPLE: Final = 2**18  # bytes
BYTES_A_ROW: Final = 100.0
BYTES_A_CHARACTER: Final = 0.25
"""Of a row's text: identifiers repeat, and each is held once."""
BYTES_A_STATEMENT: Final = 560.0
"""Of RDF: three Python strings with their places in the columns; measured between 450 and 565."""
COPIES_OF_RDF: Final = 2.0
STATEMENT_ENDS: Final = re.compile(rb"[.;,]\s|/>|</|\":")
"""What a statement ends with in Turtle, in XML and in JSON-LD, where several may be on one line."""


def expected_memory(files: Iterable[Path]) -> float:
    """MiB that reading these files and putting graphs together from them takes at its peak, above what the program takes anyway.

    Raises:
        DataError: a file cannot be read.
    """
    return sum(map(_bytes_needed, files)) / MIB


def _bytes_needed(path: Path) -> float:
    if table_suffix(path) == ".parquet":
        return BYTES_A_ROW * open_parquet(path).num_rows
    with opened(path) as file:
        sample = file.read(SAMPLE)
        packed = file.fileobj.tell() if isinstance(file, gzip.GzipFile) else len(sample)
    size = os.path.getsize(path)
    share = min(packed / size, 1.0) if size and len(sample) == SAMPLE else 1.0
    lines = sample.count(b"\n")
    if rdf_suffix(path):
        return (BYTES_A_STATEMENT * max(lines, len(STATEMENT_ENDS.findall(sample))) + COPIES_OF_RDF * len(sample)) / share
    return (BYTES_A_ROW * lines + BYTES_A_CHARACTER * len(sample)) / share
