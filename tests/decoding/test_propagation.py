"""The decoder that also looks at the graphs: its evidence against the formula, and that the graphs help."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.data.knowledge_graph import KnowledgeGraph
from engine.decoding import DECODERS, GRAPH_DECODERS, GraphEvidence, PropagationDecoder, get_decoder
from engine.decoding.graph_evidence import LEAST_WEIGHT, PRIOR_COUNT, TRUSTED_WEIGHT, Incidence, frequent
from engine.errors import ConfigError
from engine.evaluation.decoders import evaluate_decoders
from engine.search import UnscaledEmbeddings
from engine.util.arrays import IntArray
from tests.decoding.cases import from_copies, from_table, identity
from tests.effort import examples
from tests.reference import graph_evidence as reference
from tests.search.graphs import noisy_copies

Triples = list[tuple[int, int, int]]


def graph(triples: Triples | IntArray, entities: int) -> KnowledgeGraph:
    table = np.array(triples, dtype=np.int64).reshape(-1, 3)
    relations = tuple(f"r{index}" for index in range(int(table[:, 1].max(initial=-1)) + 1))
    return KnowledgeGraph("graph", tuple(f"e{index}" for index in range(entities)), ("",) * entities, relations, table)


@st.composite
def small_graphs(draw: st.DrawFn) -> tuple[Triples, int]:
    entities = draw(st.integers(1, 5))
    triple = st.tuples(st.integers(0, entities - 1), st.integers(0, 2), st.integers(0, entities - 1))
    return draw(st.lists(triple, max_size=12, unique=True)), entities


@given(source=small_graphs(), target=small_graphs(), data=st.data())
@settings(max_examples=examples(80), deadline=None)
def test_agreement_follows_the_formula(source: tuple[Triples, int], target: tuple[Triples, int], data: st.DataObject) -> None:
    n, m = source[1], target[1]
    values = data.draw(st.lists(st.sampled_from([0.0, 0.04, 0.3, 0.6, 1.0]), min_size=n * m, max_size=n * m))
    seeds = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, m - 1)), max_size=1))
    candidates = from_table(np.zeros((n, m)))
    evidence = GraphEvidence.of(graph(*source), graph(*target), np.array(seeds, dtype=np.int64))
    found = evidence.agreement(candidates, np.array(values))
    anchors = {
        (int(i), int(j)): value
        for i, j, value in zip(candidates.sources, candidates.targets, values, strict=True)
        if value > LEAST_WEIGHT and not any(i == seed[0] or j == seed[1] for seed in seeds)
    }
    anchors.update(dict.fromkeys(seeds, 1.0))
    affinities = reference.affinity(source[0], target[0], anchors, TRUSTED_WEIGHT, PRIOR_COUNT)
    expected = [
        reference.agreement(source[0], target[0], (n, m), anchors, affinities, int(i), int(j))
        for i, j in zip(candidates.sources, candidates.targets, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def twin_graphs(entities: int = 300, relations: int = 8, degree: int = 6, seed: int = 0) -> tuple[KnowledgeGraph, KnowledgeGraph]:
    """The same random graph twice, each with a part of its triples, the second with its relations renumbered."""
    rng = np.random.default_rng(seed)
    count = entities * degree // 2
    whole = np.unique(
        np.stack([rng.integers(entities, size=count), rng.integers(relations, size=count), rng.integers(entities, size=count)], 1), axis=0
    )
    parts = [whole[rng.random(len(whole)) < 0.85] for _ in range(2)]
    parts[1] = np.stack([parts[1][:, 0], relations - 1 - parts[1][:, 1], parts[1][:, 2]], axis=1)
    return graph(parts[0], entities), graph(parts[1], entities)


def hits() -> dict[str, float]:
    source, target = twin_graphs()
    links = identity(300)
    embeddings = UnscaledEmbeddings(*noisy_copies(300, 300, 16, noise=0.75))
    evidence = GraphEvidence.of(source, target, links[:100])
    found = evaluate_decoders(embeddings, links[100:], ["csls", "sinkhorn", "propagation"], bootstrap=0, evidence=evidence)
    return {name: result.target_to_source.hits_at_1 or 0.0 for name, result in found.items()}


def test_the_graphs_help() -> None:
    found = hits()
    assert found["csls"] < found["sinkhorn"] < found["propagation"] - 0.05


def test_graphs_without_triples_add_nothing() -> None:
    candidates = from_copies(40, 40, noise=1.0)
    empty = graph([], 40)
    decoding = PropagationDecoder(GraphEvidence.of(empty, empty, identity(5))).decode(candidates)
    alone = PropagationDecoder(GraphEvidence.of(*twin_graphs(40), identity(5)), strength=0.0).decode(candidates)
    np.testing.assert_allclose(decoding.scores, alone.scores, rtol=1e-6)
    assert decoding.decoder == "propagation"
    assert decoding.candidates is candidates


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (3, 0), (1, 1), (2, 5)])
def test_tiny_pools(n: int, m: int) -> None:
    evidence = GraphEvidence.of(graph([], n), graph([], m), np.empty((0, 2)))
    for name in GRAPH_DECODERS:
        decoding = get_decoder(name, evidence).decode(from_copies(n, m))
        assert decoding.predicted("source").shape == (n,)
        assert (decoding.predicted("source") >= 0).all() == (m > 0 or n == 0)


def test_the_same_input_gives_the_same_decoding() -> None:
    candidates = from_copies(300, 300, noise=0.8)
    evidence = GraphEvidence.of(*twin_graphs(), identity(50))
    first, second = (PropagationDecoder(evidence).decode(candidates).scores for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_pair_that_contradicts_a_seed_link_is_no_anchor() -> None:
    evidence = GraphEvidence.of(graph([], 3), graph([], 3), np.array([[0, 0]]))
    candidates = from_table(np.zeros((3, 3)))
    anchors = evidence.anchors(candidates, np.ones(9))
    pairs = list(zip(anchors.sources.tolist(), anchors.targets.tolist(), strict=True))
    assert pairs == [(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)]


def test_rare_relations_share_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.decoding.graph_evidence.MOST_RELATIONS", 2)
    numbers, kinds = frequent(np.array([7, 7, 7, 3, 3, 9, 1]))
    assert numbers.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert kinds == 2
    assert Incidence.of(np.array([[0, 0, 1], [1, 1, 0], [1, 2, 0]]), 2).num_relations == 2


def test_what_is_missing_is_reported() -> None:
    with pytest.raises(ConfigError, match=f"choose one of {', '.join(sorted(DECODERS))}"):
        get_decoder("propagation")
    evidence = GraphEvidence.of(*twin_graphs(10), identity(0))
    with pytest.raises(ConfigError, match="the very pools that are decoded"):
        PropagationDecoder(evidence).decode(from_copies(9, 10))
    with pytest.raises(ConfigError, match="at least one iteration"):
        PropagationDecoder(evidence, iterations=0).decode(from_copies(10, 10))
