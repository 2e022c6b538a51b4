"""How many neighbours of two entities are aligned to each other, against the definition, and what may count as aligned."""

from __future__ import annotations

import numpy as np
import pytest

from engine.data.knowledge_graph import KnowledgeGraph
from engine.decoding import GraphEvidence, get_decoder, neighbour_agreement
from engine.decoding.neighbour_agreement import aligned_neighbours, mutual_best
from engine.evaluation.calibration import without_counterparts
from engine.util.arrays import IntArray
from tests.decoding.cases import from_table, identity


def graph(edges: IntArray, count: int) -> KnowledgeGraph:
    triples = np.unique(np.insert(edges, 1, np.arange(len(edges)) % 3, axis=1), axis=0)
    return KnowledgeGraph("graph", tuple(f"e{index}" for index in range(count)), ("",) * count, ("r", "s", "t"), triples)


def neighbours(of: KnowledgeGraph, entity: int) -> set[int]:
    ends = [(int(head), int(tail)) for head, _, tail in of.triples]
    return ({tail for head, tail in ends if head == entity} | {head for head, tail in ends if tail == entity}) - {entity}


@pytest.mark.parametrize("most", [1, 7, 10**6])
@pytest.mark.parametrize("seed", range(4))
def test_it_follows_the_definition(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour_agreement, "MOST_ENTRIES", most)
    rng = np.random.default_rng(seed)
    source, target = graph(rng.integers(0, 9, (20, 2)), 9), graph(rng.integers(0, 8, (16, 2)), 8)
    seeds = np.array([[0, 3], [5, 1], [5, 2]], dtype=np.int64)  # one with two counterparts
    pools = np.setdiff1d(np.arange(9), seeds[:, 0]), np.setdiff1d(np.arange(8), seeds[:, 1])
    table = rng.permutation(len(pools[0]) * len(pools[1])).reshape(len(pools[0]), -1)
    candidates = from_table(table)
    aligned = {(int(one), int(two)) for one, two in seeds}
    aligned |= {(int(pools[0][i]), int(pools[1][j])) for i, j in np.ndindex(table.shape) if table[i, j] == max(table[i].max(), table[:, j].max())}
    found = aligned_neighbours(GraphEvidence.of(source, target, seeds).within(*pools), candidates, np.arange(len(candidates)))
    for position in range(len(candidates)):
        one = neighbours(source, int(pools[0][candidates.sources[position]]))
        two = neighbours(target, int(pools[1][candidates.targets[position]]))
        count = len({k for k in two if any((n, k) in aligned for n in one)})
        assert found.count[position] == count
        assert found.share[position] == pytest.approx(min(2 * count / max(len(one) + len(two), 1), 1.0))


def test_without_a_neighbour_nothing_is_aligned() -> None:
    nothing = graph(np.empty((0, 2), dtype=np.int64), 2)
    found = aligned_neighbours(GraphEvidence.of(nothing, nothing, np.empty((0, 2), dtype=np.int64)), from_table(np.eye(2)), np.arange(4))
    assert found.count.tolist() == [0] * 4
    assert found.share.tolist() == [0.0] * 4


def test_a_tie_aligns_no_pair() -> None:
    assert mutual_best(from_table([[0.9, 0.9], [0.1, 0.2]])).sum() == 0
    assert mutual_best(from_table([[0.9, 0.1], [0.1, 0.2]])).tolist() == [1.0, 0.0, 0.0, 1.0]


def test_what_lost_its_counterpart_is_not_aligned_to_it() -> None:
    """A chain on either side. Where the counterpart of an entity is taken out of the pool, its neighbours find it aligned no longer."""
    chain = graph(np.stack([np.arange(9), np.arange(1, 10)], axis=1), 10)
    evidence = GraphEvidence.of(chain, chain, np.empty((0, 2), dtype=np.int64))
    candidates = from_table(np.eye(10) + np.random.default_rng(0).random((10, 10)) / 10)
    whole = aligned_neighbours(evidence, candidates, np.flatnonzero(candidates.among(identity(10))))
    assert whole.share.tolist() == [1.0] * 10
    decoding, lonely = without_counterparts(get_decoder("csls"), candidates, identity(10)[4:5], 0)
    assert sum(side.sum() for side in lonely) == 1
    kept = np.flatnonzero(decoding.candidates.among(identity(10)))
    found = dict(zip(decoding.candidates.sources[kept].tolist(), aligned_neighbours(evidence, decoding.candidates, kept).count.tolist(), strict=True))
    assert (found[3], found[5]) == (1, 1)
    assert found[1] == 2
    assert 4 not in found
