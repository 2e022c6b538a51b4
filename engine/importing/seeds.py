"""Seed links of an import: what they are worth, pairs suggested by equal names, and why given ones do not fit the graphs."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import torch

from engine.data.apart import Apart
from engine.data.knowledge_graph import AlignmentTask, Finding, KnowledgeGraph
from engine.data.labels import is_missing
from engine.data.readers import RawDataset, RawGraph, RawLinks
from engine.data.readers.base import Part
from engine.importing.source import SeedChoice
from engine.names.encoders.base import romanised
from engine.names.encoders.ngrams import NgramEncoder
from engine.search import ExactIndex
from engine.util.text import count, shorten

# What accuracy to expect of how many seed links: coarse, and from measured runs only (docs/importing.md says which).

FEW_SEEDS: Final = 0.03  # of the smaller graph's entities: below, seeds from names are offered


@dataclass(frozen=True)
class Measured:
    """Hits@1 of basic runs whose seed links cover this share of the smaller graph's entities: the lowest and highest measured."""

    coverage: float
    lowest: float
    highest: float


CURVE: Final = (
    Measured(0.0, 0.0, 0.0),
    Measured(0.008, 0.04, 0.08),
    Measured(0.023, 0.12, 0.20),
    Measured(0.077, 0.30, 0.40),
    Measured(0.15, 0.40, 0.65),
    Measured(0.25, 0.45, 0.76),
)
"""sample_data/europe (shares of links 0.01, 0.03, 0.1, 0.3) and world (0.01, 0.03, given split); DBP15K and SRPRS at 30 %. From the fourth point on
the lowest are below what the sample data gave: they lean towards SRPRS, whose sparse graphs gave 0.45 at 0.3."""


@dataclass(frozen=True)
class Expectation:
    """What seeds are worth.

    Attributes:
        seeds: training links.
        coverage: of the smaller graph's entities.
        lowest, highest: share of right first matches of a basic run, from structure alone.
        can_start: whether training could start without seeds, as far as is known.
    """

    seeds: int
    coverage: float
    lowest: float
    highest: float
    can_start: bool = True

    @property
    def few(self) -> bool:
        return self.coverage < FEW_SEEDS

    @property
    def sentence(self) -> str:
        """For people; no promise."""
        if not self.seeds and not self.can_start:
            return "There are no seed links, and training cannot start without them: both graphs have no names or values that suggest a pair."
        if not self.seeds:
            return (
                "There are no seed links. Semi-supervised and literal runs can start from names and values that both graphs have; "
                "known links, or seeds from names, make them better."
            )
        low, high = (round(100 * share / 5) * 5 for share in (self.lowest, self.highest))
        share = f"{100 * self.coverage:.1f}%" if self.coverage < 0.1 else f"{100 * self.coverage:.0f}%"
        expected = f"about {low} to {high}%" if high > low else f"under {max(high, 5)}%"
        more = " A few hundred more seeds would help most." if self.few else ""
        return (
            f"{self.seeds:,} seed links cover {share} of the smaller graph's entities. On the measured data sets, this share gave {expected} "
            f"correct first matches from structure alone. Semi and literal runs can add to that.{more}"
        )


def expectation(seeds: int, entities: int, can_start: bool = True) -> Expectation:
    """
    Args:
        seeds: training links.
        entities: of the smaller graph.
        can_start: whether training could start without seeds, as far as is known.
    """
    coverage = seeds / entities if entities else 0.0
    return Expectation(seeds, coverage, _between(coverage, "lowest"), _between(coverage, "highest"), can_start)


def _between(coverage: float, end: str) -> float:
    """Measured values joined by straight lines; beyond the last of them no more than it."""
    for left, right in itertools.pairwise(CURVE):
        if coverage <= right.coverage:
            part = (coverage - left.coverage) / (right.coverage - left.coverage)
            low, high = float(getattr(left, end)), float(getattr(right, end))
            return low + part * (high - low)
    return float(getattr(CURVE[-1], end))


# Seed links from names: entities whose name is like exactly one name of the other graph.
#
# They are to be confirmed by somebody: equal names may mean two things.

Likeness = Literal["exact", "near"]
NEARLY: Final = 0.85
"""Cosine of the names' character n-grams from which they are nearly the same."""
RIVAL: Final = 0.7
"""A name with a second candidate that is this similar is not unique."""
SHORTEST: Final = 3
"""Letters and digits of a name; shorter ones are codes more often than names."""
MOST_COMPARED: Final = 400_000_000
"""Pairs of names that are compared for nearly equal ones; beyond, only equal ones are looked for."""


@dataclass(frozen=True)
class SeedPair:
    """A pair that names suggest.

    Attributes:
        source, target: identifiers.
        names: both names, as they are written.
        likeness: equal but for case, accents, script and punctuation, or nearly so.
        similarity: 1 for equal names, else the cosine of their character n-grams.
    """

    source: str
    target: str
    names: tuple[str, str]
    likeness: Likeness
    similarity: float


@dataclass(frozen=True)
class SeedSuggestions:
    """What names suggest.

    Attributes:
        pairs: equal names first, then by similarity.
        too_many: whether there were too many names to look for nearly equal ones.
    """

    pairs: tuple[SeedPair, ...] = ()
    too_many: bool = False

    def chosen(self, choice: SeedChoice, rejected: Collection[tuple[str, str]] = frozenset()) -> tuple[SeedPair, ...]:
        """The pairs of a choice but for those that were rejected."""
        wanted = {"none": (), "exact": ("exact",), "near": ("exact", "near")}[choice]
        return tuple(pair for pair in self.pairs if pair.likeness in wanted and (pair.source, pair.target) not in rejected)

    def count(self, likeness: Likeness) -> int:
        return sum(pair.likeness == likeness for pair in self.pairs)


def suggest_seeds(task: AlignmentTask, *, nearly: bool = True) -> SeedSuggestions:
    """Pairs of entities with unique names that are alike, of which no known link touches either.

    Args:
        task: the graphs, with what is known of their alignment.
        nearly: look for nearly equal names as well.
    """
    linked = [{int(one) for links in task.all_links() for one in links[:, column]} for column in (0, 1)]
    sides = [_unique_names(graph) for graph in (task.source, task.target)]
    source, target = ({key: entity for key, entity in names.items() if entity not in taken} for names, taken in zip(sides, linked, strict=True))
    exact = [_pair(task, source[key], target[key], "exact", 1.0) for key in source if key in target]
    exact.sort(key=lambda pair: pair.source)
    if not nearly:
        return SeedSuggestions(tuple(exact))
    left, right = ([key for key in names if key not in others] for names, others in ((source, sides[1]), (target, sides[0])))
    if len(left) * len(right) > MOST_COMPARED:
        return SeedSuggestions(tuple(exact), too_many=True)
    near = [_pair(task, source[one], target[other], "near", similarity) for one, other, similarity in _nearly_equal(left, right)]
    near.sort(key=lambda pair: (-pair.similarity, pair.source))
    return SeedSuggestions((*exact, *near))


def _unique_names(graph: KnowledgeGraph) -> dict[str, int]:
    """Comparable name -> the one entity of the graph that has it."""
    keys = ["" if is_missing(label) else _comparable(label) for label in graph.labels]
    counts = Counter(keys)
    return {key: entity for entity, key in enumerate(keys) if len(key) >= SHORTEST and counts[key] == 1}


def _comparable(label: str) -> str:
    return romanised(label)


def _nearly_equal(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """Pairs that are each other's best by far."""
    if not left or not right:
        return
    forward, backward = ExactIndex().search_both(NgramEncoder().encode(left, right).similarity, 2)
    best, best_back = forward.indices[:, 0], backward.indices[:, 0]
    alone = (forward.values[:, 0] >= NEARLY) & _no_rival(forward.values)
    alone_back = _no_rival(backward.values)
    mutual = best_back[best] == torch.arange(len(left))
    for row in torch.nonzero(alone & mutual & alone_back[best]).flatten().tolist():
        if _same_numbers(left[row], right[int(best[row])]):
            yield left[row], right[int(best[row])], float(forward.values[row, 0])


def _no_rival(values: torch.Tensor) -> torch.Tensor:
    """(n, k) best similarities -> (n,) whether the second is far enough behind."""
    return torch.ones(len(values), dtype=torch.bool) if values.shape[1] < 2 else values[:, 1] < RIVAL


def _same_numbers(one: str, other: str) -> bool:
    """'route 12' and 'route 13' are nearly equal and never the same."""
    first, second = ("".join(letter if letter.isdigit() else " " for letter in name).split() for name in (one, other))
    return first == second


def _pair(task: AlignmentTask, source: int, target: int, likeness: Likeness, similarity: float) -> SeedPair:
    names = (task.source.labels[source], task.target.labels[target])
    return SeedPair(task.source.entities[source], task.target.entities[target], names, likeness, min(similarity, 1.0))


# Links between the two graphs: whether they fit, which way round they point, and seeds that are added to them.

WORTH_A_TEST: Final = 30
"""This number of known links allows a statement about accuracy; fewer are of more use as seeds."""
SEEDS_PER_TEST_LINK: Final = 4
"""Known links are kept for the test only where names give this multiple of them as seeds: as in a drawn split, four fifths train."""
MANY_UNKNOWN: Final = 0.1


def link_findings(raw: RawDataset) -> Iterator[Finding]:
    """Links that point the wrong way round, or fit no entity: both must be fixed; links that fit in part are reported with their number."""
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
            theirs = f"whose identifiers look like '{shorten(min(entities))}'" if entities else "which has no entities"
            message = f"No {side} entity of the links (the first is '{shorten(ends[0])}') is in the {side} graph, {theirs}."
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
        apart=Apart.joined((other.apart, one.apart)),
    )


def _entities(graph: RawGraph) -> set[str]:
    return set(graph.identifiers.to_list())


def _known(ends: Sequence[str], entities: Collection[str]) -> int:
    return sum(one in entities for one in ends)


def _pairs(sources: Sequence[str], targets: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{left} = {right}" for left, right in zip(sources[:3], targets[:3], strict=True))
