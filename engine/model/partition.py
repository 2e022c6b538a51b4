"""Which process owns which entity: parts of about equal work, with few messages between them.

METIS cuts the stacked graph. Both ends of a seed link are one vertex to it, so that pairs lie within a part, and an entity weighs as much as a step
spends on it: a fixed amount for its own rows and one for each of its triples.

METIS takes some 240 bytes a pair of neighbours. Where that is too much it is shown fewer: above all those without a hub, for whatever part a hub is
in, others fetch it anyway. On a synthetic graph of ten million triples, whose parts fetch more than half of all rows in any case, parts by four
million of the pairs fetch a fifth more than parts by all.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from engine.util.arrays import IntArray

Owners = npt.NDArray[np.int32]

ENTITY_WEIGHT: Final = 8
"""What an entity weighs beside one of its triples."""
SEED: Final = 0
BYTES_A_PAIR: Final = 250
"""That METIS takes, with what it is given."""
AT_RANDOM: Final = 0.25
"""Share of the pairs shown that are drawn, so that hubs are tied to some part as well."""
Triples = npt.NDArray[np.integer]
"""(n, 3) of any integer type."""
Vertices = npt.NDArray[np.integer]


def partition_entities(triples: Triples, num_entities: int, links: IntArray, parts: int, most_pairs: int | None = None) -> Owners:
    """Divide the entities of a stacked graph. The same input gives the same parts.

    Args:
        triples: (T, 3) stacked head, relation, tail.
        num_entities: E.
        links: (n, 2) stacked pairs whose ends should lie in one part.
        parts: how many, at most E. Each of them gets at least one entity.
        most_pairs: of neighbours that METIS is shown; None: all.

    Returns:
        (E,) the part of each entity, from 0.
    """
    vertices, vertex = linked_vertices(links, num_entities)
    degrees = sum(np.bincount(triples[:, end], minlength=num_entities) for end in (0, 2))
    weights = np.bincount(vertex, weights=ENTITY_WEIGHT + degrees, minlength=vertices).astype(np.int64)
    if not has_metis() or parts == 1:
        return without_empty_parts((np.arange(vertices) % parts).astype(np.int32)[vertex], parts)
    first, second = (vertex[triples[:, end]] for end in (0, 2))
    first, second = (column[first != second] for column in (first, second))
    if most_pairs is not None and len(first) > most_pairs:
        first, second = shown_pairs(first, second, vertices, most_pairs)
    offsets, neighbours, counts = vertex_graph(first, second, vertices)
    found = metis_parts(offsets, neighbours, weights, counts, parts)
    return without_empty_parts(found.astype(np.int32)[vertex], parts)


def has_metis() -> bool:
    """Whether METIS is installed: some systems have no ready-made package.

    Without it parts are as large, but send several times as much.
    """
    return find_spec("pymetis") is not None


def metis_parts(offsets: IntArray, neighbours: IntArray, weights: IntArray, counts: IntArray, parts: int) -> IntArray:
    """The part of each vertex of a graph in rows of neighbours, with weights of vertices and edges."""
    import pymetis

    graph = pymetis.CSRAdjacency(adj_starts=offsets, adjacent=neighbours)
    found = pymetis.part_graph(parts, graph, vweights=weights, eweights=counts, recursive=False, options=pymetis.Options(seed=SEED))
    return np.asarray(found.vertex_part, dtype=np.int64)


def linked_vertices(links: IntArray, num_entities: int) -> tuple[int, Vertices]:
    """Number of vertices, and (E,) the vertex of each entity: entities that links connect share one."""
    connected = coo_array((np.ones(len(links), dtype=np.int8), (links[:, 0], links[:, 1])), shape=(num_entities, num_entities))
    number, labels = connected_components(connected, directed=False)
    return int(number), labels


def shown_pairs(first: Vertices, second: Vertices, vertices: int, most: int) -> tuple[Vertices, Vertices]:
    """As many of more pairs: most of them those with the smallest hubs, the others drawn."""
    degrees = np.bincount(first, minlength=vertices) + np.bincount(second, minlength=vertices)
    larger = np.maximum(degrees[first], degrees[second])
    small = round((1 - AT_RANDOM) * most)
    is_small = larger < np.partition(larger, small)[small]  # at most as many
    rest = np.flatnonzero(~is_small)
    drawn = np.random.default_rng(SEED).choice(rest, most - int(is_small.sum()), replace=False, shuffle=False)
    is_small[drawn] = True
    return first[is_small], second[is_small]


def vertex_graph(first: Vertices, second: Vertices, vertices: int) -> tuple[IntArray, IntArray, IntArray]:
    """Rows of distinct neighbours (offsets, neighbours), and how many of the pairs are of a vertex and each."""
    both = np.concatenate([first, second]), np.concatenate([second, first])
    rows = coo_array((np.ones(len(both[0]), dtype=np.int32), both), shape=(vertices, vertices)).tocsr()  # adds up what is there several times
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.int64)


def without_empty_parts(owners: Owners, parts: int) -> Owners:
    """Give each part that has no entity one of the largest part's."""
    counts = np.bincount(owners, minlength=parts)
    for part in np.flatnonzero(counts == 0).tolist():
        largest = int(counts.argmax())
        owners[np.flatnonzero(owners == largest)[-1]] = part
        counts[largest] -= 1
        counts[part] += 1
    return owners
