"""Compiled loops over candidate lists. They run without the interpreter lock; those that take ``start`` and ``stop`` do a part of the lists.

A list is a slice of ``edges``, which holds positions in the per-pair arrays: ``edges[indptr[i]:indptr[i + 1]]`` are the pairs of entity i. The same
loops thus serve both directions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.util.threads import compiled

IntArray = npt.NDArray[np.int64]
ScoreArray = npt.NDArray[np.float32] | npt.NDArray[np.float64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@compiled
def best_two(indptr: IntArray, edges: IntArray, scores: ScoreArray, best: IntArray, second: IntArray) -> None:
    """Positions of the best and the second-best pair of each list, -1 where there is none; of equals the earlier one."""
    for i in range(len(indptr) - 1):
        first, runner = -1, -1
        for place in range(indptr[i], indptr[i + 1]):
            edge = edges[place]
            if first < 0 or scores[edge] > scores[first]:
                first, runner = edge, first
            elif runner < 0 or scores[edge] > scores[runner]:
                runner = edge
        best[i], second[i] = first, runner


@compiled
def group_positions(keys: IntArray, indptr: IntArray, edges: IntArray) -> None:
    """Fill ``edges`` with the positions of each key, ascending: those of key i at ``indptr[i]:indptr[i + 1]``."""
    free = indptr[:-1].copy()
    for position in range(len(keys)):
        edges[free[keys[position]]] = position
        free[keys[position]] += 1


@compiled
def merge_lists(
    forward: IntArray, places: IntArray, indptr: IntArray, edges: IntArray, top: int, sources: IntArray, targets: IntArray, origins: IntArray
) -> int:
    """Pairs that are in either of two kinds of lists, by source, then target; returns how many.

    Args:
        forward: (n, K) targets of each source, ascending.
        places: (n, K) position of each of them in the flattened lists.
        indptr, edges: positions of each source in the flattened (m, top) lists of the targets' sources, ascending.
        sources, targets: room for the pairs.
        origins: output, position of each pair: in the sources' lists, or else in the targets', which are counted on from their end.
    """
    count, width = 0, forward.shape[1]
    for source in range(len(forward)):
        own, other = 0, indptr[source]
        while own < width or other < indptr[source + 1]:
            mine = forward[source, own] if own < width else np.iinfo(np.int64).max
            theirs = edges[other] // top if other < indptr[source + 1] else np.iinfo(np.int64).max
            sources[count], targets[count] = source, min(mine, theirs)
            origins[count] = places[source, own] if mine <= theirs else forward.size + edges[other]
            if mine <= theirs:
                own += 1
            if theirs <= mine:
                other += 1
            count += 1
    return count


@compiled
def log_normalisers(
    start: int, stop: int, indptr: IntArray, edges: IntArray, logits: ScoreArray, others: IntArray, potential: FloatArray, out: FloatArray
) -> None:
    """out[i] = -logsumexp over the list of logits + potential of the other entity; 0 for an empty list."""
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        peak = -np.inf
        for place in range(first, last):
            peak = max(peak, logits[edges[place]] + potential[others[edges[place]]])
        total = 0.0
        for place in range(first, last):
            total += np.exp(logits[edges[place]] + potential[others[edges[place]]] - peak)
        out[i] = -(peak + np.log(total)) if last > first else 0.0


@compiled
def scale_plan(indptr: IntArray, targets: IntArray, plan: FloatArray, rounds: int, rows: FloatArray, columns: FloatArray) -> None:
    """Scale the rows of a plan, then its columns, ``rounds`` times over; what they are divided by is taken off the potentials.

    No sum is zero where each column of the plan sums to 1: an entry loses at most a factor of the columns' or the rows' number in a step.
    """
    factors, sums = np.ones(len(columns)), np.zeros(len(columns))  # the columns' factors are applied when their entries are met again
    for _ in range(rounds):
        sums[:] = 0.0
        for i in range(len(indptr) - 1):
            total = 0.0
            for place in range(indptr[i], indptr[i + 1]):
                plan[place] *= factors[targets[place]]
                total += plan[place]
            if total > 0:
                rows[i] -= np.log(total)
                for place in range(indptr[i], indptr[i + 1]):
                    plan[place] /= total
                    sums[targets[place]] += plan[place]
        for j in range(len(columns)):
            if sums[j] > 0:
                columns[j] -= np.log(sums[j])
                factors[j] = 1.0 / sums[j]


@compiled
def take_greedily(order: IntArray, sources: IntArray, targets: IntArray, of_source: IntArray, of_target: IntArray) -> None:
    """Go through the pairs in an order and keep each whose two entities are both still free (-1)."""
    for edge in order:
        source, target = sources[edge], targets[edge]
        if of_source[source] < 0 and of_target[target] < 0:
            of_source[source], of_target[target] = edge, edge


@compiled
def take_with_room(order: IntArray, sources: IntArray, targets: IntArray, room_source: IntArray, room_target: IntArray, taken: BoolArray) -> None:
    """The same where each entity has room for several pairs; what is left of it is counted down."""
    for edge in order:
        source, target = sources[edge], targets[edge]
        if room_source[source] > 0 and room_target[target] > 0:
            taken[edge] = True
            room_source[source] -= 1
            room_target[target] -= 1


@compiled
def list_ranks(indptr: IntArray, edges: IntArray, scores: ScoreArray, right: BoolArray, tolerance: float, queries: IntArray, out: IntArray) -> None:
    """Rank of the best right pair in each query's list, 0 if none is listed; other pairs within the tolerance come before it."""
    for place in range(len(queries)):
        start, stop = indptr[queries[place]], indptr[queries[place] + 1]
        bar, listed = -np.inf, False
        for at in range(start, stop):
            if right[edges[at]]:
                bar, listed = max(bar, np.float64(scores[edges[at]])), True
        rank = 1
        for at in range(start, stop):
            if not right[edges[at]] and np.float64(scores[edges[at]]) >= bar - tolerance:
                rank += 1
        out[place] = rank if listed else 0


@compiled
def places_in_list(indptr: IntArray, edges: IntArray, scores: ScoreArray, wanted: IntArray, entities: IntArray, out: IntArray) -> None:
    """Rank of each wanted pair in the list of its entity; pairs that score as high come before it."""
    for place in range(len(wanted)):
        bar, rank = scores[wanted[place]], 0
        for at in range(indptr[entities[place]], indptr[entities[place] + 1]):
            if scores[edges[at]] >= bar:
                rank += 1
        out[place] = rank


IncidentArrays = tuple[IntArray, IntArray, IntArray, FloatArray]
"""indptr, relations, neighbours, rarity."""
AnchorArrays = tuple[IntArray, IntArray, FloatArray]
"""indptr by source, targets, weights."""


@compiled
def chain_matches(
    entity: int, graph: IncidentArrays, anchors: AnchorArrays, head: IntArray, following: IntArray, relations: IntArray, weights: FloatArray
) -> None:
    """Chain, for each target entity that a neighbour of ``entity`` matches, by which relation and with what weight (rarity included)."""
    indptr, kinds, neighbours, rarity = graph
    starts, targets, strength = anchors
    count = 0
    for at in range(indptr[entity], indptr[entity + 1]):
        for place in range(starts[neighbours[at]], starts[neighbours[at] + 1]):
            target = targets[place]
            following[count], head[target] = head[target], count
            relations[count], weights[count] = kinds[at], strength[place] * rarity[at]
            count += 1


@compiled
def unchain(entity: int, graph: IncidentArrays, anchors: AnchorArrays, head: IntArray) -> None:
    """Empty the chains again."""
    indptr, _, neighbours, _ = graph
    starts, targets, _ = anchors
    for at in range(indptr[entity], indptr[entity + 1]):
        for place in range(starts[neighbours[at]], starts[neighbours[at] + 1]):
            head[targets[place]] = -1


@compiled
def count_relation_pairs(
    sources: IntArray,
    targets: IntArray,
    weights: FloatArray,
    source: IncidentArrays,
    target: IncidentArrays,
    anchors: AnchorArrays,
    matched_source: FloatArray,
    matched_target: FloatArray,
    room: int,
    together: npt.NDArray[np.float32],
    of_source: FloatArray,
    of_target: FloatArray,
) -> None:
    """Over weighted pairs: how often two relations lead to matching neighbours, and how often each leads to one that is matched at all."""
    head = np.full(len(matched_target), -1, dtype=np.int64)
    following, relations, strength = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64), np.empty(room)
    for pair in range(len(sources)):
        i, j, weight = sources[pair], targets[pair], weights[pair]
        chain_matches(i, source, anchors, head, following, relations, strength)
        for at in range(source[0][i], source[0][i + 1]):
            of_source[source[1][at]] += weight * matched_source[source[2][at]]
        for at in range(target[0][j], target[0][j + 1]):
            of_target[target[1][at]] += weight * matched_target[target[2][at]]
            link = head[target[2][at]]
            while link >= 0:
                together[relations[link], target[1][at]] += weight * strength[link]
                link = following[link]
        unchain(i, source, anchors, head)


@compiled
def divide_by_expected(together: npt.NDArray[np.float32], of_source: FloatArray, of_target: FloatArray, prior: float) -> None:
    """Divide each count by the geometric mean of what its two relations count alone, plus the prior; most of the table is zero."""
    for i in range(together.shape[0]):
        for j in range(together.shape[1]):
            if together[i, j] != 0:
                together[i, j] /= np.sqrt(of_source[i] * of_target[j]) + prior


@compiled
def agreement_of_pairs(
    start: int,
    stop: int,
    indptr: IntArray,
    targets: IntArray,
    source_pool: IntArray,
    target_pool: IntArray,
    source: IncidentArrays,
    target: IncidentArrays,
    anchors: AnchorArrays,
    affinity: npt.NDArray[np.float32],
    room: int,
    num_targets: int,
    out: FloatArray,
) -> None:
    """For each candidate pair: over the target's incident triples, the best matching one of the source's, summed."""
    head = np.full(num_targets, -1, dtype=np.int64)
    following, relations, strength = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64), np.empty(room)
    for row in range(start, stop):
        chain_matches(source_pool[row], source, anchors, head, following, relations, strength)
        for edge in range(indptr[row], indptr[row + 1]):
            j, total = target_pool[targets[edge]], 0.0
            for at in range(target[0][j], target[0][j + 1]):
                link, best = head[target[2][at]], 0.0
                while link >= 0:
                    best = max(best, strength[link] * affinity[relations[link], target[1][at]])
                    link = following[link]
                total += best * target[3][at]
            out[edge] = total
        unchain(source_pool[row], source, anchors, head)
