"""The compiled loop that draws one-to-one matchings (:mod:`engine.decoding.matchings`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.util.arrays import FloatArray, IntArray
from engine.util.threads import compiled, first_from

WeightedFacts = tuple[IntArray, IntArray, IntArray, FloatArray]
"""indptr by entity; neighbours, ascending within an entity; relations, each direction one of its own; weights."""
ListArrays = tuple[IntArray, IntArray, IntArray, FloatArray]
"""indptr by row; targets, ascending within a row; the row's entity; what each pair is worth by itself."""
MatchArrays = tuple[IntArray, IntArray, IntArray, IntArray]
"""Target of each source entity and source of each target entity, -1 for none; row of each source entity, -1 where it may not change; pair of each
row, -1 for none."""
AffinityArray = npt.NDArray[np.float64]


@compiled
def shared_facts(i: int, j: int, targets: IntArray, source: WeightedFacts, target: WeightedFacts, affinity: AffinityArray, without: int) -> float:
    """What i's facts about matched entities have in common with j's facts about their matches; facts about ``without`` and i itself aside."""
    total, stop = 0.0, target[0][j + 1]
    for at in range(source[0][i], source[0][i + 1]):
        neighbour = source[1][at]
        if targets[neighbour] < 0 or neighbour in (without, i):
            continue
        match = targets[neighbour]
        place, best = first_from(target[1], target[0][j], stop, match), 0.0
        while place < stop and target[1][place] == match:
            best = max(best, affinity[source[2][at], target[2][place]] * np.sqrt(source[3][at] * target[3][place]))
            place += 1
        total += best
    return total


@compiled
def position_in(lists: ListArrays, row: int, target: int) -> int:
    """The pair of a row and a target; -1 where it is no candidate."""
    stop = lists[0][row + 1]
    place = first_from(lists[1], lists[0][row], stop, target)
    return place if place < stop and lists[1][place] == target else -1


@compiled
def put_match(entity: int, target: int, before: int, targets: IntArray, sources: IntArray) -> None:
    """Give an entity another target (-1: none) than ``before``, which is free then."""
    targets[entity] = target
    if before >= 0 and sources[before] == entity:
        sources[before] = -1
    if target >= 0:
        sources[target] = entity


@compiled
def make_move(
    move: tuple[int, int, int, int, int, int],
    lists: ListArrays,
    matches: MatchArrays,
    source: WeightedFacts,
    target: WeightedFacts,
    affinity: AffinityArray,
) -> float:
    """Match by a proposal, and return by how much the matching is worth more then.

    Args:
        move: the entity, the pair that it has and the one that it gets; the entity that has the latter, its pair and the one that it gets. -1: none.
    """
    entity, before, pair, other, others, exchanged = move
    listed, worth = lists[1], lists[3]
    targets, sources = matches[0], matches[1]
    free, taken = listed[before] if before >= 0 else -1, listed[pair] if pair >= 0 else -1
    gain = 0.0
    if before >= 0:
        gain -= 2 * shared_facts(entity, free, targets, source, target, affinity, -1) + worth[before]
    if other >= 0:
        gain -= 2 * shared_facts(other, taken, targets, source, target, affinity, entity) + worth[others]
        put_match(other, free, taken, targets, sources)
    put_match(entity, taken, free, targets, sources)
    if pair >= 0:
        gain += 2 * shared_facts(entity, taken, targets, source, target, affinity, -1) + worth[pair]
    if exchanged >= 0:
        gain += 2 * shared_facts(other, free, targets, source, target, affinity, entity) + worth[exchanged]
    return gain


@compiled
def draw_matchings(
    lists: ListArrays,
    matches: MatchArrays,
    source: WeightedFacts,
    target: WeightedFacts,
    affinity: AffinityArray,
    temperatures: tuple[float, float],
    steps: int,
    burn_in: int,
    seed: int,
    counts: IntArray,
) -> None:
    """Draw by Metropolis and Hastings.

    A proposal gives a row another of its candidates, or none. Where another row has that candidate, the two exchange theirs, if both are candidates
    of each other's row. The temperature falls geometrically from the first to the second during the burn-in.

    Args:
        matches: where to begin; changed in place.
        counts: output, (P,) steps after the burn-in during which each pair was matched.
    """
    np.random.seed(seed)
    indptr, listed, entities, _ = lists
    targets, sources, row_of, held = matches
    rows, since = len(entities), np.full(len(entities), burn_in, dtype=np.int64)
    for step in range(steps):
        temperature = temperatures[0] * (temperatures[1] / temperatures[0]) ** (min(step, burn_in) / max(burn_in, 1))
        row = int(np.random.random() * rows)
        size = indptr[row + 1] - indptr[row]
        choice = int(np.random.random() * (size + 1))
        pair, before = indptr[row] + choice if choice < size else -1, held[row]
        if pair == before:
            continue
        free, taken = listed[before] if before >= 0 else -1, listed[pair] if pair >= 0 else -1
        other = sources[taken] if taken >= 0 else -1
        rival = row_of[other] if other >= 0 else -1
        exchanged = position_in(lists, rival, free) if rival >= 0 and free >= 0 else -1
        if (other >= 0 and rival < 0) or (rival >= 0 and free >= 0 and exchanged < 0):
            continue  # the candidate is in a seed link, or its entity cannot take what would be free
        others, entity = held[rival] if rival >= 0 else -1, entities[row]
        gain = make_move((entity, before, pair, other, others, exchanged), lists, matches, source, target, affinity)
        ratio = np.exp(min(gain / temperature, 50.0))
        if rival >= 0 and free < 0:  # the way back is proposed by the other row, of its own candidates
            ratio *= (size + 1) / (indptr[rival + 1] - indptr[rival] + 1)
        if np.random.random() >= ratio:
            put_match(entity, free, taken, targets, sources)
            if rival >= 0:
                put_match(other, taken, free, targets, sources)
            continue
        now = max(step, burn_in)
        if before >= 0:
            counts[before] += now - since[row]
        held[row], since[row] = pair, now
        if rival >= 0:
            counts[others] += now - since[rival]
            held[rival], since[rival] = exchanged, now
    for row in range(rows):
        if held[row] >= 0:
            counts[held[row]] += steps - since[row]
