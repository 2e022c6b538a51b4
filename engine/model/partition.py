"""Which process owns which entity: parts of about equal work, with few messages between them.

METIS cuts the stacked graph. Both ends of a seed link are one vertex to it, so that pairs lie within a part, and an entity weighs as much as a step
spends on it: a fixed amount for its own rows and one for each of its triples.
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


def partition_entities(triples: IntArray, num_entities: int, links: IntArray, parts: int) -> Owners:
    """Divide the entities of a stacked graph. The same input gives the same parts.

    Args:
        triples: (T, 3) stacked head, relation, tail.
        num_entities: E.
        links: (n, 2) stacked pairs whose ends should lie in one part.
        parts: how many, at most E. Each of them gets at least one entity.

    Returns:
        (E,) the part of each entity, from 0.
    """
    vertices, vertex = linked_vertices(links, num_entities)
    degrees = np.bincount(triples[:, [0, 2]].ravel(), minlength=num_entities)
    weights = np.bincount(vertex, weights=ENTITY_WEIGHT + degrees, minlength=vertices).astype(np.int64)
    offsets, neighbours, counts = vertex_graph(vertex[triples[:, 0]], vertex[triples[:, 2]], vertices)
    found = metis_parts(offsets, neighbours, weights, counts, parts) if has_metis() else np.arange(vertices) % parts
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


def linked_vertices(links: IntArray, num_entities: int) -> tuple[int, IntArray]:
    """Number of vertices, and (E,) the vertex of each entity: entities that links connect share one."""
    connected = coo_array((np.ones(len(links), dtype=np.int8), (links[:, 0], links[:, 1])), shape=(num_entities, num_entities))
    number, labels = connected_components(connected, directed=False)
    return int(number), labels.astype(np.int64)


def vertex_graph(first: IntArray, second: IntArray, vertices: int) -> tuple[IntArray, IntArray, IntArray]:
    """Rows of distinct neighbours (offsets, neighbours), and how many triples lie between a vertex and each; none with itself."""
    apart = first != second
    both = np.concatenate([first[apart], second[apart]]), np.concatenate([second[apart], first[apart]])
    rows = coo_array((np.ones(len(both[0]), dtype=np.int64), both), shape=(vertices, vertices)).tocsr()  # adds up what is there several times
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data


def without_empty_parts(owners: Owners, parts: int) -> Owners:
    """Give each part that has no entity one of the largest part's."""
    counts = np.bincount(owners, minlength=parts)
    for part in np.flatnonzero(counts == 0).tolist():
        largest = int(counts.argmax())
        owners[np.flatnonzero(owners == largest)[-1]] = part
        counts[largest] -= 1
        counts[part] += 1
    return owners
