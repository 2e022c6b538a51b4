"""The two things that every reader produces and everything else consumes: a knowledge graph and an alignment task.

Indices are local to a graph (0 .. E-1 in the order of ``entities``). The encoder stacks both graphs into one index space with
:meth:`AlignmentTask.stacked_triples`; nothing else should add offsets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from engine.data.apart import Apart
from engine.util.arrays import IntArray
from engine.util.text import count

Severity = Literal["info", "warning", "error"]
Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
ROW_WORDS = {"triples": "triples", "attributes": "attributes", "links": "links", "declared": "declared names"}


@dataclass(frozen=True)
class Finding:
    """Something that a reader or ``inspect`` noticed about the data.

    ``code`` is stable and machine-readable ("duplicate-triples"), ``message`` one sentence for people, ``advice`` what to do about it.
    """

    code: str
    severity: Severity
    message: str
    count: int = 0
    examples: tuple[str, ...] = ()
    advice: str = ""


@dataclass(frozen=True)
class FileCount:
    """What became of a file's lines.

    Attributes:
        file: its path, or what its owner calls it.
        what: "triples", "attributes", "links" or "declared" (lists of entities or relations).
        lines: that are not blank; of Parquet the rows.
        rows: read from them.
        used: rows in the graph or among the links.
        left_out: reasons, each with its number of rows.
    """

    file: str
    what: str
    lines: int
    rows: int
    used: int
    left_out: tuple[tuple[str, int], ...] = ()

    @property
    def words(self) -> str:
        """'10 lines, 9 rows of triples, all used'."""
        reasons = ", ".join(f"{rows:,} {reason}" for reason, rows in self.left_out)
        used = "all used" if self.used == self.rows else f"{self.used:,} used ({reasons})"
        return f"{count(self.lines, 'line')}, {count(self.rows, 'row')} of {ROW_WORDS[self.what]}, {used}"


@dataclass(frozen=True)
class KnowledgeGraph:
    """One knowledge graph with E entities, R relations and T distinct relation triples.

    Attributes:
        name: what to call the graph in tables and pages (for example "DBpedia (zh)", "GeoNames", "KG1").
        entities: E identifiers (URIs where the source has them), unique.
        labels: E names for people; "" where the data gives none.
        relations: R identifiers, unique.
        triples: (T, 3) int64 local indices: head, relation, tail; no duplicates.
        attributes: attribute triples: columns ``entity`` (int64), ``attribute`` (str), ``value`` (str); may be empty.
    """

    name: str
    entities: tuple[str, ...]
    labels: tuple[str, ...]
    relations: tuple[str, ...]
    triples: IntArray  # (T, 3)
    attributes: pd.DataFrame = field(default_factory=lambda: empty_attributes())

    @property
    def num_entities(self) -> int:
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        return len(self.relations)

    @property
    def num_triples(self) -> int:
        return len(self.triples)

    @property
    def num_attributes(self) -> int:
        """Attribute triples."""
        return len(self.attributes)

    @cached_property
    def index(self) -> dict[str, int]:
        """Identifier -> local index."""
        return {uri: position for position, uri in enumerate(self.entities)}

    @cached_property
    def degrees(self) -> IntArray:
        """(E,) number of incident triples; a self-loop counts once at each of its two ends."""
        if not len(self.triples):
            return np.zeros(self.num_entities, dtype=np.int64)
        return np.bincount(self.triples[:, [0, 2]].ravel(), minlength=self.num_entities).astype(np.int64)


@dataclass(frozen=True)
class AlignmentTask:
    """Two graphs and what is known of their alignment.

    Links are (n, 2) int64 arrays of local indices: source entity, target entity.

    Attributes:
        name: the data set's name, safe as a folder name (letters, digits, ``_``, ``-``, ``.``; never starts with a dot).
        format: name of the reader.
        source, target: the graphs.
        train_links: the seed links.
        valid_links: held out for validation; may be empty.
        test_links: for evaluation only; may be empty.
        unsure_links: probable pairs that count neither as right nor as wrong; may be empty.
        split: how the links were divided, for people ("given: 721_5fold/1", "random 30/70, seed 0").
        fingerprint: sha-256 (hex) over graphs and all links, independent of path and split.
        findings: what the reader noticed.
        rejected_links: pairs known to be no links, as reviewers say; may be empty.
        untested: how many of the unsure links are known ones that were kept out of validation and test, since an end of theirs is in no triple.
        files: what became of the lines of each file, where the reader counts them.
        own_links: the known links are a user's own, not a benchmark's with its published protocol: all or most of them train, and
            semi-supervised rounds select among all entities.
        several_names: attributes that give an entity several values, so that a rule decides which is its name
            (:func:`engine.data.labels.several_names`).
        apart: mappings that say less than equality: source, target, relation, confidence (:mod:`engine.data.apart`); nothing is learned from them.
    """

    name: str
    format: str
    source: KnowledgeGraph
    target: KnowledgeGraph
    train_links: IntArray
    valid_links: IntArray
    test_links: IntArray
    unsure_links: IntArray
    split: str
    fingerprint: str
    findings: tuple[Finding, ...] = ()
    rejected_links: IntArray = field(default_factory=lambda: empty_links())
    untested: int = 0
    files: tuple[FileCount, ...] = ()
    own_links: bool = False
    several_names: frozenset[str] = frozenset()
    apart: pd.DataFrame = field(default_factory=lambda: Apart().table())

    @property
    def num_seed_links(self) -> int:
        """Links that training begins with."""
        return len(self.train_links)

    @property
    def num_entities(self) -> int:
        """|E1| + |E2|: rows of the stacked graph."""
        return self.source.num_entities + self.target.num_entities

    @property
    def num_relations(self) -> int:
        """|R1| + |R2|, without inverses."""
        return self.source.num_relations + self.target.num_relations

    def graph(self, side: Side) -> KnowledgeGraph:
        return self.source if side == "source" else self.target

    def stacked_triples(self) -> IntArray:
        """(T1 + T2, 3) triples of both graphs; target entities follow the source's, target relations follow the source's."""
        shift = np.array([self.source.num_entities, self.source.num_relations, self.source.num_entities], dtype=np.int64)
        return np.concatenate([self.source.triples, self.target.triples + shift])

    def stacked_links(self, links: IntArray) -> IntArray:
        """(n, 2) links with target entities shifted into the stacked index space."""
        return links + np.array([0, self.source.num_entities], dtype=np.int64)

    def dangling(self, side: Side) -> IntArray:
        """Local indices of entities that no known link touches (train, valid, test or unsure)."""
        column = 0 if side == "source" else 1
        linked = np.concatenate([part[:, column] for part in self.all_links()])
        return np.setdiff1d(np.arange(self.graph(side).num_entities, dtype=np.int64), linked)

    def all_links(self) -> Sequence[IntArray]:
        return (self.train_links, self.valid_links, self.test_links, self.unsure_links)


def empty_attributes() -> pd.DataFrame:
    """An attribute table without rows, with the right column types."""
    return pd.DataFrame(
        {
            "entity": pd.Series(dtype="int64"),
            "attribute": pd.Series(dtype="str"),
            "value": pd.Series(dtype="str"),
        }
    )


def empty_links() -> IntArray:
    """(0, 2) links."""
    return np.empty((0, 2), dtype=np.int64)


# A hash that says whether two loaded data sets are the same, wherever they lie and in whatever format.

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
