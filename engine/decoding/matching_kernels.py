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
AffinityArray = npt.NDArray[np.float32]
CacheArrays = tuple[FloatArray, npt.NDArray[np.bool_]]
"""By row: what its pair's facts share, and whether that is known."""
Proposals = tuple[IntArray, IntArray, IntArray]
"""The number of each pair, its position, and of each row's having none, P and the row: as often as it is proposed; (P + rows,) how often, and the
rows."""
BATCH = 256
"""Proposals that are fetched from memory at a time."""
CROWDED = 250_000
"""Pairs of facts of two entities beyond which they are not compared one by one."""


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
def most_worth(
    first: int,
    last: int,
    lists: ListArrays,
    matches: MatchArrays,
    source: WeightedFacts,
    target: WeightedFacts,
    affinity: AffinityArray,
    most: FloatArray,
) -> None:
    """The most that each candidate pair of the rows ``first`` to ``last`` can be worth in any matching, its shared facts included: a fact's neighbour
    has the best of its candidates for this pair. Between two hubs every fact counts as shared.

    Args:
        most: output, (P + rows,) of the pairs; then the highest of each row.
    """
    targets, row_of, none = matches[0], matches[2], lists[0][-1]
    for row in range(first, last):
        entity, most[none + row] = lists[2][row], 0.0
        for pair in range(lists[0][row], lists[0][row + 1]):
            start, stop, total = target[0][lists[1][pair]], target[0][lists[1][pair] + 1], 0.0
            crowded = (stop - start) * (source[0][entity + 1] - source[0][entity]) > CROWDED
            for at in range(source[0][entity], source[0][entity + 1]):
                neighbour, best = source[1][at], 0.0
                fixed = row_of[neighbour] < 0
                if neighbour == entity or (fixed and targets[neighbour] < 0):
                    continue
                if crowded:
                    total += np.sqrt(source[3][at])  # no weight and no affinity is above 1
                    continue
                for place in range(start, stop):
                    fits = affinity[source[2][at], target[2][place]]
                    worth = fits * np.sqrt(source[3][at] * target[3][place]) if fits > 0 else 0.0
                    if worth > best:
                        match = target[1][place]
                        if targets[neighbour] == match if fixed else position_in(lists, row_of[neighbour], match) >= 0:
                            best = worth
                total += best
            most[pair] = 2 * total + lists[3][pair]
            most[none + row] = max(most[none + row], most[pair])


@compiled
def proposal_counts(lists: ListArrays, most: FloatArray, lead: float, times: int) -> IntArray:
    """(P + rows,) how often each pair, and each row's having none, is proposed among all proposals: 1 to ``times``.

    It falls by e with every ``lead`` that the row's best could be worth more. The best is proposed as often as the one next to it: where nothing
    comes near, the row mostly has it already.
    """
    indptr, rows = lists[0], len(lists[0]) - 1
    counts = np.ones(indptr[rows] + rows, dtype=np.int64)
    for row in range(rows):
        first, best, none = -1, 0.0, indptr[rows] + row
        for pair in range(indptr[row], indptr[row + 1]):
            if most[pair] > best:
                first, best = pair, most[pair]
        next_to = 1
        for pair in range(indptr[row], indptr[row + 1]):
            if pair != first:
                counts[pair] = max(int(np.ceil(times * np.exp((most[pair] - best) / lead))), 1)
                next_to = max(next_to, counts[pair])
        if first >= 0:
            counts[none] = max(int(np.ceil(times * np.exp(-best / lead))), 1)
            counts[first] = max(next_to, counts[none])
        else:
            counts[none] = next_to
    return counts


@compiled
def held_facts(
    row: int, lists: ListArrays, matches: MatchArrays, source: WeightedFacts, target: WeightedFacts, affinity: AffinityArray, cache: CacheArrays
) -> float:
    """What the pair that a row has shares, computed once as long as no neighbour's match changes."""
    shared, known = cache
    if not known[row]:
        shared[row] = shared_facts(lists[2][row], lists[1][matches[3][row]], matches[0], source, target, affinity, -1)
        known[row] = True
    return float(shared[row])


@compiled
def forget_facts(entity: int, row: int, matches: MatchArrays, source: WeightedFacts, cache: CacheArrays) -> None:
    """After a change of an entity's match: its row's shared facts and those of its neighbours are to be computed again."""
    known, row_of = cache[1], matches[2]
    known[row] = False
    for at in range(source[0][entity], source[0][entity + 1]):
        if row_of[source[1][at]] >= 0:
            known[row_of[source[1][at]]] = False


@compiled
def lost_worth(
    row: int,
    rival: int,
    lists: ListArrays,
    matches: MatchArrays,
    source: WeightedFacts,
    target: WeightedFacts,
    affinity: AffinityArray,
    cache: CacheArrays,
) -> float:
    """By how much the matching is worth less without the pair that a row has, and without that of another row (-1: none)."""
    lost, worth, targets, held = 0.0, lists[3], matches[0], matches[3]
    if held[row] >= 0:
        lost = 2 * held_facts(row, lists, matches, source, target, affinity, cache) + worth[held[row]]
    if rival >= 0:
        entity, other = lists[2][row], lists[2][rival]
        stop = source[0][other + 1]
        place = first_from(source[1], source[0][other], stop, entity)
        if place < stop and source[1][place] == entity:
            lost += 2 * shared_facts(other, targets[other], targets, source, target, affinity, entity) + worth[held[rival]]
        else:
            lost += 2 * held_facts(rival, lists, matches, source, target, affinity, cache) + worth[held[rival]]
    return lost


@compiled
def make_move(
    entity: int,
    pair: int,
    other: int,
    exchanged: int,
    lists: ListArrays,
    matches: MatchArrays,
    source: WeightedFacts,
    target: WeightedFacts,
    affinity: AffinityArray,
) -> float:
    """Match an entity by a pair, and another that has its target by the pair ``exchanged`` (-1: none); return what the two pairs are worth."""
    listed, worth = lists[1], lists[3]
    targets, sources = matches[0], matches[1]
    free, taken, gain = targets[entity], listed[pair] if pair >= 0 else -1, 0.0
    if other >= 0:
        put_match(other, free, taken, targets, sources)
    put_match(entity, taken, free, targets, sources)
    if pair >= 0:
        gain += 2 * shared_facts(entity, taken, targets, source, target, affinity, -1) + worth[pair]
    if exchanged >= 0:
        gain += 2 * shared_facts(other, free, targets, source, target, affinity, entity) + worth[exchanged]
    return gain


@compiled
def propose(proposals: Proposals, lists: ListArrays, batch: IntArray) -> None:
    """Draw the next proposals: (n, 3) the number of each, its row, and the target that it would get. What is far apart in memory is fetched here,
    where no fetch waits for another."""
    urn, rows = proposals[0], proposals[2]
    for place in range(len(batch)):
        batch[place, 0] = urn[int(np.random.random() * len(urn))]
    for place in range(len(batch)):
        number = batch[place, 0]
        batch[place, 1], batch[place, 2] = rows[number], lists[1][number] if number < len(lists[1]) else -1


@compiled
def draw_matchings(
    lists: ListArrays,
    matches: MatchArrays,
    source: WeightedFacts,
    target: WeightedFacts,
    affinity: AffinityArray,
    most: FloatArray,
    proposals: Proposals,
    temperatures: tuple[float, float],
    steps: int,
    burn_in: int,
    seed: int,
    counts: IntArray,
) -> None:
    """Draw by Metropolis and Hastings.

    A proposal gives a row another of its candidates, or none. Where another row has that candidate, the two exchange theirs, if both are candidates
    of each other's row. The temperature falls geometrically from the first to the second during the burn-in. Most proposals are refused by the most
    that they could gain, without looking at the facts of the new pairs.

    Args:
        matches: where to begin; changed in place.
        most: (P + rows,) what each pair can be worth with its shared facts (:func:`most_worth`); then the highest of each row.
        proposals: of :func:`proposal_counts`.
        seed: below 2^32.
        counts: output, (P,) steps after the burn-in during which each pair was matched.
    """
    np.random.seed(seed)
    targets, sources, row_of, held = matches
    times, none = proposals[1], lists[0][-1]
    rows, batch = len(held), np.zeros((BATCH, 3), dtype=np.int64)
    since, cache = np.full(rows, burn_in, dtype=np.int64), (np.zeros(rows), np.zeros(rows, dtype=np.bool_))
    for step in range(steps):
        if step % BATCH == 0:
            propose(proposals, lists, batch)
        temperature = temperatures[0] * (temperatures[1] / temperatures[0]) ** (min(step, burn_in) / max(burn_in, 1))
        number, row, taken = batch[step % BATCH]
        pair, before, free = number if number < none else -1, held[row], targets[lists[2][row]]
        other = sources[taken] if taken >= 0 else -1
        rival = row_of[other] if other >= 0 else -1
        if pair == before or (other >= 0 and rival < 0):
            continue  # its own, or that of a seed link
        others, level, entity = held[rival] if rival >= 0 else -1, np.random.random(), lists[2][row]
        returned = before if before >= 0 else (others if rival >= 0 else none + row)  # where the row had none, the other row proposes the way back
        level *= times[number] / times[returned]
        lost = lost_worth(row, rival, lists, matches, source, target, affinity, cache)
        best = (most[pair] if pair >= 0 else 0.0) + (most[none + rival] if rival >= 0 and free >= 0 else 0.0)
        if level >= np.exp(min((best - lost) / temperature, 50.0)):
            continue
        exchanged = position_in(lists, rival, free) if rival >= 0 and free >= 0 else -1
        if rival >= 0 and free >= 0 and exchanged < 0:
            continue  # its entity cannot take what would be free
        gain = make_move(entity, pair, other, exchanged, lists, matches, source, target, affinity) - lost
        if level >= np.exp(min(gain / temperature, 50.0)):
            put_match(entity, free, taken, targets, sources)
            if rival >= 0:
                put_match(other, taken, free, targets, sources)
            continue
        now = max(step, burn_in)
        if before >= 0:
            counts[before] += now - since[row]
        held[row], since[row] = pair, now
        forget_facts(entity, row, matches, source, cache)
        if rival >= 0:
            counts[others] += now - since[rival]
            held[rival], since[rival] = exchanged, now
            forget_facts(other, rival, matches, source, cache)
    for row in range(rows):
        if held[row] >= 0:
            counts[held[row]] += steps - since[row]
