"""What every reader offers and delivers, and the registry of readers.

A reader only turns files into identifiers. Everything that formats have in common (duplicates, splits, labels, findings) is done once, in
:mod:`engine.data.assembly`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, Protocol, runtime_checkable

import polars as pl

from engine.config import DataConfig
from engine.data.apart import Apart
from engine.data.endings import unpacked_name
from engine.data.knowledge_graph import Finding
from engine.data.rows import FileTally, Rows, What
from engine.data.texts import Texts, are_among, union
from engine.errors import DataError
from engine.util.arrays import BoolArray
from engine.util.registry import Registry

REASONS: Final = 5
"""Reasons for leaving links out that are named."""
Part = Literal["all", "train", "valid", "test", "unsure"]
PART_WORDS: Mapping[str, Part] = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
    "testing": "test",
    "unsure": "unsure",
}


@dataclass(frozen=True)
class Detection:
    """How well a folder fits a format.

    Attributes:
        score: 1 where everything needed is there, 0 where nothing is; in between where a part is missing.
        missing: what was not found, as it follows "missing:".
    """

    score: float
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class RawGraph:
    """One graph by its identifiers, as read: duplicates and all.

    Attributes:
        path: the file that the triples came from, for messages.
        heads, relations, tails: n identifiers each, one row a triple.
        entities: identifiers declared besides the triples (id files); may be empty.
        known_relations: relation identifiers declared besides the triples; may be empty.
        attributes: entity identifiers, attributes, values; one row an attribute triple.
        identities: subjects, predicates, objects of what the file says of identity with other things (owl:sameAs, skos:exactMatch), which is no
            part of the graph.
        files: what became of the lines of the files that all this came from, where the reader counts them.
    """

    path: Path
    heads: Sequence[str]
    relations: Sequence[str]
    tails: Sequence[str]
    entities: Sequence[str] = ()
    known_relations: Sequence[str] = ()
    attributes: tuple[Sequence[str], Sequence[str], Sequence[str]] = ((), (), ())
    identities: tuple[Sequence[str], Sequence[str], Sequence[str]] = field(default=((), (), ()), kw_only=True)
    files: tuple[FileTally, ...] = ()

    _known: dict[int, tuple[pl.Series, BoolArray]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def knows(self, words: pl.Series) -> BoolArray:
        """(n,) which of the words are entities of the graph."""
        if id(words) not in self._known:
            self._known[id(words)] = words, are_among(words, self.identifiers)
        return self._known[id(words)][1]

    @cached_property
    def identifiers(self) -> pl.Series:
        """All entities of the graph, in triples or declared or described; distinct, by code point."""
        return union(map(Texts.of, (self.heads, self.tails, self.entities, self.attributes[0])))


@dataclass(frozen=True)
class RawLinks:
    """Pairs of identifiers, as read.

    Attributes:
        path: the file, for messages.
        sources, targets: n identifiers each.
        symmetric: whether the format says that two things are the same without saying which graph each is of (RDF, SSSOM); a pair that fits the
            graphs the other way round is turned then.
        left_out: what else was in the file -> how often: "with skos:closeMatch", 3.
        turned: how many pairs were turned.
        files: what became of the lines of the file, where the reader counts them.
        apart: mappings of the file that say less than equality, and are no links.
        confidences: of each pair, NaN where the file gives none; empty where it gives none at all.
    """

    path: Path
    sources: Sequence[str]
    targets: Sequence[str]
    symmetric: bool = field(default=False, kw_only=True)
    left_out: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    turned: int = field(default=0, kw_only=True)
    files: tuple[FileTally, ...] = field(default=(), kw_only=True)
    apart: Apart = field(default_factory=Apart, kw_only=True)
    confidences: Sequence[float] = field(default=(), kw_only=True)


def listed_counts(left_out: Mapping[str, int]) -> str:
    """'3 with skos:closeMatch, 1 negated', the most frequent first; hostile predicates may be as many as there are rows."""
    ordered = sorted(left_out.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(number for _, number in ordered[REASONS:])
    named = [f"{number:,} {reason}" for reason, number in ordered[:REASONS]]
    return ", ".join([*named, f"{rest:,} for other reasons"] if rest else named)


@dataclass(frozen=True)
class RawDataset:
    """All that a reader found.

    Attributes:
        source, target: the graphs.
        links: by part. ``all`` holds links that belong to no part (or to any); without ``train`` the split is drawn.
        given: how the data's own split is called, for people ("given: 721_5fold/1"); "" where there is none.
        findings: what only the reader could notice.
    """

    source: RawGraph
    target: RawGraph
    links: Mapping[Part, RawLinks]
    given: str = ""
    findings: tuple[Finding, ...] = field(default=())

    @property
    def apart(self) -> Apart:
        """All mappings that are kept apart from the links."""
        return Apart.joined(links.apart for links in self.links.values())


def tallies(what: What, *rows: Rows) -> tuple[FileTally, ...]:
    """What became of the lines that these rows came from."""
    return tuple(one.tally.of(what) for one in rows if one.tally is not None)


class Reader(Protocol):
    """A format. Give it a name, a sentence, and add an instance to ``READERS``."""

    name: str
    description: str

    def detect(self, folder: Path) -> Detection:
        """How well the folder fits, by the names of its files alone."""
        ...

    def files(self, folder: Path) -> Sequence[Path]:
        """The files of the folder that would be read; what is missing is left out."""
        ...

    def read(self, folder: Path, config: DataConfig) -> RawDataset:
        """Read the folder.

        Raises:
            DataError: a file is missing or does not hold what it should, with file and line.
        """
        ...


@runtime_checkable
class GraphFileReader(Protocol):
    """What a reader may offer besides: graphs from single files, by their ending. Imports then take such files one by one."""

    name: str
    description: str
    endings: tuple[str, ...]

    def read_graph(self, path: Path) -> RawGraph:
        """Read a graph.

        Raises:
            DataError: the file does not hold what it should, with the line.
        """
        ...


class ReaderRegistry(Registry[Reader]):
    """Readers by name, in the order in which they are asked."""

    def __init__(self, readers: Iterable[Reader] = ()) -> None:
        super().__init__("data format")
        for reader in readers:
            self.add(reader.name, reader)

    def for_file(self, name: str) -> GraphFileReader | None:
        """The reader of single files with this ending, plain or gzipped."""
        plain = unpacked_name(name)
        return next((reader for reader in self.values() if isinstance(reader, GraphFileReader) and plain.endswith(reader.endings)), None)

    def choose(self, folder: Path) -> tuple[Reader, tuple[Finding, ...]]:
        """The reader whose format the folder has.

        Raises:
            DataError: no format fits; says what each of them missed.
        """
        detections = {name: reader.detect(folder) for name, reader in self.items()}
        best = max(detections, key=lambda name: detections[name].score)
        complete = [name for name, detection in detections.items() if detection.score >= 1]
        if not complete:
            raise DataError(_no_format(best, detections), path=folder)
        return self[complete[0]], _ambiguity(complete)


def _no_format(best: str, detections: Mapping[str, Detection]) -> str:
    if detections[best].score >= 0.5:
        missing = " and ".join(detections[best].missing)
        return f"this looks like format '{best}', but {missing} could not be found; add what is missing, or choose another format (data.format)."
    tried = "; ".join(f"{name} needs {', '.join(detection.missing)}" for name, detection in detections.items())
    return f"this folder fits no known format ({tried}); see docs/data_formats.md."


def _ambiguity(complete: Sequence[str]) -> tuple[Finding, ...]:
    if len(complete) == 1:
        return ()
    message = f"The folder fits several formats ({', '.join(complete)}); it was read as {complete[0]}."
    return (Finding("several-formats", "info", message, len(complete), advice="Choose with data.format where another one is meant."),)
