"""Links between the two graphs: whether they fit, which way round they point, and seeds that are added to them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from engine.data.knowledge_graph import Finding
from engine.data.readers import RawDataset, RawGraph, RawLinks
from engine.data.readers.base import Part
from engine.importing.seeds import SeedPair
from engine.util.text import count, shorten

WORTH_A_TEST: Final = 30
"""So many known links say something about accuracy; fewer are of more use as seeds."""
SEEDS_PER_TEST_LINK: Final = 4
"""Known links are kept for the test only where names give so many times as many seeds: as in a drawn split, four fifths train."""
MANY_UNKNOWN: Final = 0.1


def link_findings(raw: RawDataset) -> Iterator[Finding]:
    """Links that point the wrong way round, or fit no entity: both must be mended; links that fit in part are told by how many."""
    sources = [one for links in raw.links.values() for one in links.sources]
    targets = [one for links in raw.links.values() for one in links.targets]
    if not sources:
        return
    first, second = (_entities(graph) for graph in (raw.source, raw.target))
    straight = _known(sources, first) + _known(targets, second)
    crossed = _known(sources, second) + _known(targets, first)
    if crossed > straight:
        message = f"The links point the wrong way round: {crossed:,} of {2 * len(sources):,} ends are in the graph of the other column."
        yield Finding("links-swapped", "error", message, crossed, _pairs(sources, targets))
        return
    for side, ends, entities in (("source", sources, first), ("target", targets, second)):
        unknown = [one for one in ends if one not in entities]
        if len(unknown) == len(ends):
            message = (
                f"No {side} entity of the links (the first is '{shorten(ends[0])}') is in the {side} graph, whose identifiers look like "
                f"'{shorten(min(entities))}'."
            )
            yield Finding("links-unknown", "error", message, len(unknown), tuple(unknown[:3]))
        elif len(unknown) > MANY_UNKNOWN * len(ends):
            message = (
                f"{len(unknown):,} of {count(len(ends), 'link')} {'names' if len(unknown) == 1 else 'name'} a {side} entity that is in no triple."
            )
            yield Finding("links-partly-unknown", "warning", message, len(unknown), tuple(unknown[:3]))


def with_seeds(raw: RawDataset, seeds: Sequence[SeedPair]) -> RawDataset:
    """The data with seed links from names.

    They train. Known links that no file gave a part are kept for measuring what comes out where names give many times as many seeds, and train as
    well otherwise.
    """
    if not seeds:
        return raw
    parts = dict(raw.links)
    sources, targets = [pair.source for pair in seeds], [pair.target for pair in seeds]
    if "train" not in parts and "all" in parts:
        undivided = parts.pop("all")
        enough = len(seeds) >= SEEDS_PER_TEST_LINK * len(undivided.sources)
        part: Part = "test" if enough and len(undivided.sources) >= WORTH_A_TEST else "train"
        parts[part] = _joined(undivided, parts.get(part))
    own = parts.get("train")
    path = raw.source.path if own is None else own.path
    parts["train"] = _joined(RawLinks(path, sources, targets), own)
    return dataclasses.replace(raw, links=parts, given="seeds from names")


def _joined(one: RawLinks, other: RawLinks | None) -> RawLinks:
    if other is None:
        return one
    return RawLinks(
        other.path,
        [*other.sources, *one.sources],
        [*other.targets, *one.targets],
        symmetric=other.symmetric or one.symmetric,
        left_out=Counter(other.left_out) + Counter(one.left_out),
        turned=other.turned + one.turned,
        files=(*other.files, *one.files),
    )


def _entities(graph: RawGraph) -> set[str]:
    return set(graph.identifiers.to_list())


def _known(ends: Sequence[str], entities: Collection[str]) -> int:
    return sum(one in entities for one in ends)


def _pairs(sources: Sequence[str], targets: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{left} = {right}" for left, right in zip(sources[:3], targets[:3], strict=True))
