"""A hash that says whether two loaded data sets are the same, wherever they lie and in whatever format."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from engine.data.knowledge_graph import KnowledgeGraph
from engine.util.arrays import IntArray

VERSION = b"alignment-data-1"


def fingerprint(source: KnowledgeGraph, target: KnowledgeGraph, known_links: IntArray, unsure_links: IntArray) -> str:
    """sha-256 (hex) over both graphs and all links.

    Args:
        source, target: graphs in canonical order (entities and relations sorted, as the assembly makes them).
        known_links: (n, 2) training, validation and test links together, sorted; how they are divided does not count.
        unsure_links: (m, 2), sorted.
    """
    hasher = hashlib.sha256(VERSION)
    for graph in (source, target):
        _add_texts(hasher, graph.entities)
        _add_texts(hasher, graph.relations)
        _add_numbers(hasher, graph.triples)
        attributes = pl.from_pandas(graph.attributes).sort("entity", "attribute", "value")
        _add_numbers(hasher, attributes["entity"].to_numpy())
        for name in ("attribute", "value"):
            _add_texts(hasher, attributes[name].to_arrow(compat_level=pl.CompatLevel.oldest()))
    _add_numbers(hasher, known_links)
    _add_numbers(hasher, unsure_links)
    return hasher.hexdigest()


def _add_texts(hasher: hashlib._Hash, texts: Sequence[str] | pa.LargeStringArray) -> None:
    """Lengths first, so that no two lists of texts give the same bytes."""
    column = texts if isinstance(texts, pa.LargeStringArray) else pa.array(texts, type=pa.large_string())
    _add_numbers(hasher, pc.binary_length(column).to_numpy())
    _, offsets, content = column.buffers()
    if len(column):
        ends = np.frombuffer(offsets, dtype=np.int64)[[column.offset, column.offset + len(column)]]
        hasher.update(memoryview(content)[ends[0] : ends[1]])


def _add_numbers(hasher: hashlib._Hash, numbers: IntArray) -> None:
    array = np.ascontiguousarray(numbers, dtype="<i8")
    hasher.update(np.array([array.size], dtype="<i8").tobytes())
    hasher.update(array.tobytes())
