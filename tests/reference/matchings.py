"""Slow reference of the draws of matchings: every one-to-one matching of two small pools, and what each is worth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

Triples = Sequence[tuple[int, int, int]]
Matching = Mapping[int, int]


def matchings(sources: Sequence[int], candidates: Mapping[int, Sequence[int]]) -> Iterator[dict[int, int]]:
    """All ways to give each source one of its candidates or none, no candidate twice."""
    if not sources:
        yield {}
        return
    first, rest = sources[0], sources[1:]
    for others in matchings(rest, candidates):
        yield others
        for target in candidates.get(first, ()):
            if target not in others.values():
                yield {first: target, **others}


def facts(triples: Triples, entity: int) -> list[tuple[tuple[int, int], int]]:
    """((relation, direction), neighbour) of an entity, without its facts about itself."""
    out = [((r, 0), t) for h, r, t in triples if h == entity != t]
    return out + [((r, 1), h) for h, r, t in triples if t == entity != h]


def weight(triples: Triples, entity: int, kind: tuple[int, int], neighbour: int) -> float:
    """Mean of what each end's rarity gives; facts of entities about themselves count among those that are shared."""

    def holders(kind: tuple[int, int], neighbour: int) -> int:
        relation, direction = kind
        return sum(r == relation and (t if direction == 0 else h) == neighbour for h, r, t in triples)

    return (holders(kind, neighbour) ** -0.5 + holders((kind[0], 1 - kind[1]), entity) ** -0.5) / 2


def energy(source: Triples, target: Triples, matching: Matching, worth: Mapping[tuple[int, int], float], affinity: Mapping[object, float]) -> float:
    """What a matching, seed links included, is worth: each shared fact counts at both of its ends."""
    total = sum(worth.get(pair, 0.0) for pair in matching.items())
    for i, j in matching.items():
        for kind, neighbour in facts(source, i):
            shared = [
                affinity.get((kind, other), 0.0) * math.sqrt(weight(source, i, kind, neighbour) * weight(target, j, other, matching[neighbour]))
                for other, end in facts(target, j)
                if neighbour in matching and end == matching[neighbour]
            ]
            total += max(shared, default=0.0)
    return total
