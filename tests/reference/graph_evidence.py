"""Agreement of neighbourhoods straight from the formula, one pair and one triple at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

Triple = tuple[int, int, int]
Incident = tuple[tuple[int, int], int]


def incident(triples: Sequence[Triple], entity: int) -> list[Incident]:
    """((relation, direction), neighbour) of each triple that the entity is in; a self-loop gives two."""
    outgoing = [((relation, 0), tail) for head, relation, tail in triples if head == entity]
    incoming = [((relation, 1), head) for head, relation, tail in triples if tail == entity]
    return outgoing + incoming


def rarity(triples: Sequence[Triple], entities: int) -> dict[Incident, float]:
    shared = Counter(one for entity in range(entities) for one in incident(triples, entity))
    return {one: count**-0.5 for one, count in shared.items()}


def affinity(
    source: Sequence[Triple], target: Sequence[Triple], anchors: Mapping[tuple[int, int], float], trusted: float, prior: float
) -> dict[tuple[tuple[int, int], tuple[int, int]], float]:
    """(source relation, target relation) -> how often both lead from a trusted pair to a pair that matches, against how often each might have."""
    together: Counter[tuple[tuple[int, int], tuple[int, int]]] = Counter()
    of_source: Counter[tuple[int, int]] = Counter()
    of_target: Counter[tuple[int, int]] = Counter()
    for (i, j), weight in anchors.items():
        if weight <= trusted:
            continue
        for relation, k in incident(source, i):
            of_source[relation] += weight * min(sum(w for (a, _), w in anchors.items() if a == k), 1)
            for other, neighbour in incident(target, j):
                together[relation, other] += weight * anchors.get((k, neighbour), 0.0)
        for other, neighbour in incident(target, j):
            of_target[other] += weight * min(sum(w for (_, b), w in anchors.items() if b == neighbour), 1)
    return {pair: count / ((of_source[pair[0]] * of_target[pair[1]]) ** 0.5 + prior) for pair, count in together.items()}


def agreement(
    source: Sequence[Triple],
    target: Sequence[Triple],
    sizes: tuple[int, int],
    anchors: Mapping[tuple[int, int], float],
    affinities: Mapping[tuple[tuple[int, int], tuple[int, int]], float],
    i: int,
    j: int,
) -> float:
    rare = rarity(source, sizes[0]), rarity(target, sizes[1])
    total = 0.0
    for other, neighbour in incident(target, j):
        total += rare[1][other, neighbour] * max(
            (rare[0][relation, k] * anchors.get((k, neighbour), 0.0) * affinities.get((relation, other), 0.0) for relation, k in incident(source, i)),
            default=0.0,
        )
    norms = sum(rare[0][one] for one in incident(source, i)), sum(rare[1][one] for one in incident(target, j))
    return total / (norms[0] * norms[1]) ** 0.5 if norms[0] * norms[1] > 0 else 0.0
