"""The cheapest matching in a sparse bipartite graph whose rows may also stay alone, for a price: shortest augmenting paths.

After Jonker and Volgenant (Computing, 1987): prices of columns make every row's own choice one of its cheapest. Rows first take what is cheapest for
them. Each row that is left then asks for a column along the cheapest path of changes (Dijkstra over reduced costs), which stops at the first column
that is free, or at the first row that had better stay alone. Few paths are long, and a search touches what it reaches and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.decoding.kernels import IntArray
from engine.util.threads import compiled

FloatArray = npt.NDArray[np.float64]
NONE = -1


class Graph(NamedTuple):
    """Edges by row: those of row i are ``indptr[i]:indptr[i + 1]``; ``alone`` is what a row costs that gets no column."""

    indptr: IntArray
    columns: IntArray  # (P,)
    costs: FloatArray  # (P,)
    alone: float


class Matching(NamedTuple):
    """Edge of each row (-1: alone), row of each column (-1: free), price of each column."""

    edges: IntArray  # (n,)
    owners: IntArray  # (m,)
    prices: FloatArray  # (m,) at most 0


class Paths(NamedTuple):
    """Room for one search: of each column the distance, the edge that leads there and that edge's row, and whether its distance is final."""

    distances: FloatArray  # (m,)
    via: IntArray  # (m,)
    came_from: IntArray  # (m,)
    final: npt.NDArray[np.bool_]  # (m,)
    reached: IntArray  # (m,) columns in the order in which they were first reached
    keys: FloatArray  # (P + 1,) heap: distances
    items: IntArray  # (P + 1,) heap: columns


def cheapest_matching(indptr: IntArray, columns: IntArray, costs: FloatArray, alone: float, num_columns: int) -> IntArray:
    """(n,) position of each row's edge in a matching of least total cost, -1 for a row that stays alone.

    Args:
        indptr: (n + 1,) where the edges of each row begin.
        columns: (P,) column of each edge; no row has a column twice.
        costs: (P,) of each edge.
        alone: what a row without a column costs; more than any edge.
        num_columns: m.
    """
    graph = Graph(indptr, columns, costs, alone)
    matching = Matching(np.full(len(indptr) - 1, NONE), np.full(num_columns, NONE), np.zeros(num_columns))
    waiting = np.empty(len(indptr) - 1, dtype=np.int64)
    count = take_cheapest(graph, matching, waiting)
    paths = Paths(
        np.full(num_columns, np.inf),
        np.full(num_columns, NONE),
        np.full(num_columns, NONE),
        np.zeros(num_columns, dtype=np.bool_),
        np.empty(num_columns, dtype=np.int64),
        np.empty(len(columns) + 1),
        np.empty(len(columns) + 1, dtype=np.int64),
    )
    find_paths(graph, matching, waiting[:count], paths)
    return matching.edges


@compiled
def two_cheapest(graph: Graph, prices: FloatArray, row: int) -> tuple[float, float, int]:
    """The row's lowest and second-lowest reduced cost, staying alone included, and the edge of the lowest (-1: alone)."""
    first, second, edge = graph.alone, np.inf, NONE
    for place in range(graph.indptr[row], graph.indptr[row + 1]):
        cost = graph.costs[place] - prices[graph.columns[place]]
        if cost < first:
            first, second, edge = cost, first, place
        elif cost < second:
            second = cost
    return first, second, edge


@compiled
def take_cheapest(graph: Graph, matching: Matching, waiting: IntArray) -> int:
    """Each row bids once for its cheapest column, up to where its second choice is as good, and may oust another; returns how many rows wait."""
    count = 0
    for row in range(len(graph.indptr) - 1):
        first, second, edge = two_cheapest(graph, matching.prices, row)
        if edge < 0:
            continue
        column = graph.columns[edge]
        ousted = matching.owners[column]
        if ousted >= 0 and first == second:
            waiting[count] = row
            count += 1
            continue
        matching.prices[column] -= second - first
        matching.edges[row], matching.owners[column] = edge, row
        if ousted >= 0:
            matching.edges[ousted] = NONE
            waiting[count] = ousted
            count += 1
    return count


@compiled
def find_paths(graph: Graph, matching: Matching, waiting: IntArray, paths: Paths) -> None:
    """Match each waiting row along its cheapest path."""
    for start in waiting:
        end, loner, reached, least = find_path(graph, matching, start, paths)
        for place in range(reached):
            column = paths.reached[place]
            if paths.final[column]:
                matching.prices[column] += paths.distances[column] - least
            paths.distances[column], paths.final[column] = np.inf, False
        row = paths.came_from[end] if end >= 0 else loner
        while True:  # each row of the path lets go of its column, which the row before it takes
            left = graph.columns[matching.edges[row]] if row != start else NONE
            matching.edges[row] = paths.via[end] if end >= 0 else NONE
            if end >= 0:
                matching.owners[end] = row
            if row == start:
                break
            end, row = left, paths.came_from[left]


@compiled
def find_path(graph: Graph, matching: Matching, start: int, paths: Paths) -> tuple[int, int, int, float]:
    """The free column where the cheapest path ends (-1: at a row that is to stay alone), that row, how many columns were reached, its length."""
    size, reached, row = 0, 0, start
    offset = -two_cheapest(graph, matching.prices, start)[0]
    least, loner = np.inf, NONE
    while True:
        if offset + graph.alone < least:
            least, loner = offset + graph.alone, row
        for place in range(graph.indptr[row], graph.indptr[row + 1]):
            column = graph.columns[place]
            distance = offset + graph.costs[place] - matching.prices[column]
            if distance < paths.distances[column] and distance < least and not paths.final[column]:
                if paths.distances[column] == np.inf:
                    paths.reached[reached] = column
                    reached += 1
                paths.distances[column], paths.via[column], paths.came_from[column] = distance, place, row
                sift_up(paths.keys, paths.items, size, distance, column)
                size += 1
        column = NONE
        while size and column < 0:
            nearest, candidate = paths.keys[0], paths.items[0]
            size -= 1
            sift_down(paths.keys, paths.items, size)
            if not paths.final[candidate] and nearest == paths.distances[candidate]:
                column = candidate
        if column < 0 or paths.distances[column] >= least:
            return NONE, loner, reached, least
        if matching.owners[column] < 0:
            return column, NONE, reached, paths.distances[column]
        paths.final[column] = True
        row = matching.owners[column]
        offset = paths.distances[column] - (graph.costs[matching.edges[row]] - matching.prices[column])


@compiled
def sift_up(keys: FloatArray, items: IntArray, size: int, key: float, item: int) -> None:
    """Add an entry to a min-heap of ``size`` entries."""
    node = size
    while node and keys[(node - 1) // 2] > key:
        keys[node], items[node] = keys[(node - 1) // 2], items[(node - 1) // 2]
        node = (node - 1) // 2
    keys[node], items[node] = key, item


@compiled
def sift_down(keys: FloatArray, items: IntArray, size: int) -> None:
    """Remove the least entry of a min-heap, which then has ``size`` entries."""
    key, item, node = keys[size], items[size], 0
    while 2 * node + 1 < size:
        child = 2 * node + 1
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[node], items[node] = keys[child], items[child]
        node = child
    keys[node], items[node] = key, item
