"""A hash that says whether two loaded data sets are the same, wherever they lie and in whatever format."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from engine.datasets.knowledge_graph import IntArray, KnowledgeGraph

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
        attributes = graph.attributes.sort_values(["entity", "attribute", "value"], kind="stable")
        _add_numbers(hasher, attributes["entity"].to_numpy(dtype=np.int64))
        _add_texts(hasher, attributes["attribute"].tolist())
        _add_texts(hasher, attributes["value"].tolist())
    _add_numbers(hasher, known_links)
    _add_numbers(hasher, unsure_links)
    return hasher.hexdigest()


def _add_texts(hasher: hashlib._Hash, texts: Sequence[str]) -> None:
    """Lengths first, so that no two lists of texts give the same bytes."""
    encoded = [text.encode() for text in texts]
    _add_numbers(hasher, _lengths(encoded))
    hasher.update(b"".join(encoded))


def _lengths(encoded: Iterable[bytes]) -> IntArray:
    return np.array([len(text) for text in encoded], dtype=np.int64)


def _add_numbers(hasher: hashlib._Hash, numbers: IntArray) -> None:
    array = np.ascontiguousarray(numbers, dtype="<i8")
    hasher.update(np.array([array.size], dtype="<i8").tobytes())
    hasher.update(array.tobytes())
