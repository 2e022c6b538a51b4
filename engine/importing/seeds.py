"""Seed links from names: entities whose name is like exactly one name of the other graph.

They are to be confirmed by somebody: equal names may mean two things.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import torch

from engine.data.knowledge_graph import AlignmentTask, KnowledgeGraph
from engine.importing.corrections import SeedChoice
from engine.names.encoders.ngrams import NgramEncoder
from engine.names.encoders.text import romanised
from engine.search import ExactIndex

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
    keys = [_comparable(label) if label else "" for label in graph.labels]
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
