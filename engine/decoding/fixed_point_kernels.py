"""Compiled loops of the probabilistic fixed point (:mod:`engine.decoding.fixed_point`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.util.arrays import BoolArray, FloatArray, IntArray
from engine.util.threads import compiled, first_from

TableArray = npt.NDArray[np.float32]
FactArrays = tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]
"""indptr by node; relations (a direction is a relation of its own); neighbours, ascending within a node; how much each neighbour determines the node
by its relation; and how much the node determines the neighbour."""
MOST_CERTAIN = 1e-6
"""The least probability that a single piece of evidence leaves to chance."""


@compiled
def is_among(codes: IntArray, code: int) -> bool:
    """Whether an ascending array has a number."""
    place = first_from(codes, 0, len(codes), code)
    return place < len(codes) and codes[place] == code


@compiled
def keep_best(candidate: int, value: float, targets: IntArray, scores: FloatArray) -> None:
    """Put a candidate in its place among the best, of equals the lower number first; the last one drops out."""
    k = len(targets)
    while k > 0 and (value > scores[k - 1] or (value == scores[k - 1] and candidate < targets[k - 1])):
        k -= 1
    for later in range(len(targets) - 1, k, -1):
        scores[later], targets[later] = scores[later - 1], targets[later - 1]
    if k < len(targets):
        scores[k], targets[k] = value, candidate


@compiled
def raise_claims(candidate: int, value: float, claims: FloatArray) -> None:
    """Note a score of a target where it is among its two highest."""
    if value > claims[0, candidate]:
        claims[0, candidate], claims[1, candidate] = value, claims[0, candidate]
    elif value > claims[1, candidate]:
        claims[1, candidate] = value


@compiled
def match_entities(
    start: int,
    stop: int,
    source: FactArrays,
    target: FactArrays,
    match: IntArray,
    belief: FloatArray,
    forward: TableArray,
    backward: TableArray,
    reverse: IntArray,
    least: float,
    most: int,
    free: tuple[BoolArray, BoolArray],
    rejected: IntArray,
    out_targets: IntArray,
    out_scores: FloatArray,
    claims: FloatArray,
) -> None:
    """The best candidates of source entities by what their neighbours match; entities that are not free have none.

    Args:
        match, belief: (nodes of the source,) the target node that each is taken to match (-1: none), and the probability of it.
        forward, backward: (R1, R2) probability that a relation of the source implies one of the target, and the other way round.
        reverse: (R2,) the relation of the target in the other direction.
        least: evidence below this is left out.
        most: of two matched nodes with more facts than this each only the strong evidence is followed.
        free: (E1,), (E2,) entities that may be matched.
        rejected: pairs that are no links, as ascending numbers: source times E2 plus target.
        out_targets, out_scores: (E1, K) the best targets, -1 where there are fewer, and -log(1 - probability) of each, descending.
        claims: (2, E2) the highest and the second-highest score of each target; are raised.
    """
    scores = np.zeros(len(free[1]))
    touched = np.empty(len(free[1]), dtype=np.int64)
    for x in range(start, stop):
        count = 0
        out_targets[x, :] = -1
        out_scores[x, :] = 0.0
        if not free[0][x]:
            continue
        for at in range(source[0][x], source[0][x + 1]):
            other = match[source[2][at]]
            if other < 0:
                continue
            sure = belief[source[2][at]]
            relation, own = source[1][at], source[3][at] * sure
            y = source[2][at]
            crowded = source[0][y + 1] - source[0][y] > most and target[0][other + 1] - target[0][other] > most
            if crowded and own < 10.0 * least:
                continue
            for there in range(target[0][other], target[0][other + 1]):
                candidate = target[2][there]
                if candidate >= len(free[1]) or not free[1][candidate]:
                    continue
                back = reverse[target[1][there]]
                left = (1.0 - backward[relation, back] * own) * (1.0 - forward[relation, back] * sure * target[4][there])
                if left > 1.0 - least:
                    continue
                if scores[candidate] == 0.0:
                    touched[count] = candidate
                    count += 1
                scores[candidate] -= np.log(max(left, MOST_CERTAIN))
        for place in range(count):
            candidate = touched[place]
            value = scores[candidate]
            scores[candidate] = 0.0
            if not is_among(rejected, x * len(free[1]) + candidate):
                keep_best(candidate, value, out_targets[x], out_scores[x])
                raise_claims(candidate, value, claims)


@compiled
def count_implied(source: FactArrays, target: FactArrays, match: IntArray, belief: FloatArray, implied: TableArray, whole: FloatArray) -> None:
    """Over facts whose two nodes are both matched: how often a relation of the source is also one of the target, and how often it could be.

    Args:
        match, belief: (nodes of the source,) as of :func:`match_entities`.
        implied: (R1, R2) is added to.
        whole: (R1,) is added to.
    """
    for x in range(len(match)):
        left = match[x]
        if left < 0:
            continue
        for at in range(source[0][x], source[0][x + 1]):
            y = source[2][at]
            right = match[y]
            if right < 0:
                continue
            weight = belief[x] * belief[y]
            whole[source[1][at]] += weight
            stop = target[0][left + 1]
            place = first_from(target[2], target[0][left], stop, right)
            while place < stop and target[2][place] == right:
                implied[source[1][at], target[1][place]] += weight
                place += 1
