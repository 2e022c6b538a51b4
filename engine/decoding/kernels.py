"""Compiled loops over candidate lists. All of them run on one thread without the interpreter lock.

A list is a slice of ``edges``, which holds positions in the per-pair arrays: ``edges[indptr[i]:indptr[i + 1]]`` are the pairs of entity i. The same
loops thus serve both directions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.search.kernels import compiled

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
def log_normalisers(indptr: IntArray, edges: IntArray, logits: ScoreArray, others: IntArray, potential: FloatArray, out: FloatArray) -> None:
    """out[i] = -logsumexp over the list of logits + potential of the other entity; 0 for an empty list."""
    for i in range(len(indptr) - 1):
        start, stop = indptr[i], indptr[i + 1]
        peak = -np.inf
        for place in range(start, stop):
            peak = max(peak, logits[edges[place]] + potential[others[edges[place]]])
        total = 0.0
        for place in range(start, stop):
            total += np.exp(logits[edges[place]] + potential[others[edges[place]]] - peak)
        out[i] = -(peak + np.log(total)) if stop > start else 0.0


@compiled
def take_greedily(order: IntArray, sources: IntArray, targets: IntArray, of_source: IntArray, of_target: IntArray) -> None:
    """Go through the pairs in an order and keep each whose two entities are both still free (-1)."""
    for edge in order:
        source, target = sources[edge], targets[edge]
        if of_source[source] < 0 and of_target[target] < 0:
            of_source[source], of_target[target] = edge, edge


@compiled
def list_ranks(indptr: IntArray, edges: IntArray, scores: ScoreArray, right: BoolArray, tolerance: float, queries: IntArray, out: IntArray) -> None:
    """Rank of the best right pair in each query's list, 0 if none is listed; other pairs within the tolerance stand before it."""
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
    """Rank of each wanted pair in the list of its entity; pairs that score as high stand before it."""
    for place in range(len(wanted)):
        bar, rank = scores[wanted[place]], 0
        for at in range(indptr[entities[place]], indptr[entities[place] + 1]):
            if scores[edges[at]] >= bar:
                rank += 1
        out[place] = rank
