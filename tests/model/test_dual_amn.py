"""The fast encoder against its slow twin: values and gradients, every option, both kinds of kernel, odd graphs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import EncoderConfig
from engine.model import dual_amn
from engine.model.adjacency import build_adjacency
from engine.model.attention import RowMean, aggregate
from engine.model.exchange import Neighbours
from engine.util.devices import without_kernels
from tests.effort import examples
from tests.model import options as encoder_options
from tests.reference.dual_amn import encode

aggregate_plain = without_kernels()(aggregate)
"""As other devices compute it."""
SMALL = EncoderConfig(dim=5, layers=2, proxies=3, dropout=0.0)
OPTIONS = {
    **encoder_options.OPTIONS,
    "he": {"initializer": "he"},
    "three layers, one wide": {"layers": 3, "dim": 1, "proxies": 1},
}


def random_triples(rng: np.random.Generator, entities: int, relations: int, count: int) -> np.ndarray:
    return np.stack([rng.integers(0, entities, count), rng.integers(0, relations, count), rng.integers(0, entities, count)], axis=1)


def build(triples: np.ndarray, entities: int, relations: int, config: EncoderConfig, dtype: torch.dtype, seed: int = 3) -> dual_amn.DualAMN:
    adjacency = build_adjacency(triples, entities, relations, message_unit=config.message_unit, relation_input=config.relation_input)
    return dual_amn.DualAMN(adjacency, config, seed=seed).to(dtype)


def gradients(model: dual_amn.DualAMN, output: torch.Tensor) -> dict[str, torch.Tensor]:
    """Of a fixed random projection of the output."""
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output)
    model.zero_grad()
    (output * weights).sum().backward()
    return {name: torch.zeros_like(one) if one.grad is None else one.grad.clone() for name, one in model.named_parameters()}


def compare(triples: np.ndarray, entities: int, relations: int, config: EncoderConfig, dtype: torch.dtype, tolerance: float) -> None:
    model = build(triples, entities, relations, config, torch.float64)
    slow = encode(dict(model.named_parameters()), [tuple(map(int, row)) for row in triples], entities, relations, config)
    expected, expected_gradients = slow.detach().clone(), gradients(model, slow)
    model = build(triples, entities, relations, config, dtype)
    fast = model()
    torch.testing.assert_close(fast.double(), expected, rtol=tolerance, atol=tolerance)
    for name, grad in gradients(model, fast).items():
        torch.testing.assert_close(grad.double(), expected_gradients[name], rtol=tolerance, atol=tolerance * 10, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 3e-5)], ids=["float64", "float32"])
def test_agrees_with_the_formulas(changes: dict[str, object], dtype: torch.dtype, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    triples = random_triples(rng, 11, 4, 30)  # parallel triples, self-loops and duplicates occur
    triples = np.concatenate([triples, triples[:3], [[2, 1, 2]], [[0, 0, 1]], [[0, 2, 1]]])
    compare(triples, 13, 4, dataclasses.replace(SMALL, **changes), dtype, tolerance)  # entities 11 and 12 receive no messages


def test_rounded_products_hardly_move_values_and_gradients() -> None:
    """What is rounded only corrects the multi-hop embeddings, and they keep full precision themselves."""
    config = dataclasses.replace(SMALL, dim=24, proxies=8)
    model = build(random_triples(np.random.default_rng(5), 80, 6, 300), 80, 6, config, torch.float32)
    exact, rounded = model(), model(rounded=True)
    expected, found = gradients(model, exact), gradients(model, rounded)
    assert not torch.equal(exact, rounded)
    assert (exact - rounded).norm() < 0.01 * exact.norm()
    for name, grad in expected.items():
        assert (found[name] - grad).norm() < 0.03 * grad.norm(), name


@settings(max_examples=examples(25), deadline=None)
@given(
    entities=st.integers(1, 9),
    relations=st.integers(1, 4),
    count=st.integers(0, 25),
    unit=st.sampled_from(["triple", "edge"]),
    seed=st.integers(0, 999),
)
def test_agrees_on_any_graph(entities: int, relations: int, count: int, unit: str, seed: int) -> None:
    triples = random_triples(np.random.default_rng(seed), entities, relations, count)
    compare(triples, entities, relations, dataclasses.replace(SMALL, message_unit=unit), torch.float64, 1e-8)


@pytest.mark.parametrize("reflect", [True, False])
def test_plain_and_fused_messages_agree(reflect: bool) -> None:
    rng = np.random.default_rng(5)
    model = build(random_triples(rng, 40, 6, 200), 43, 6, SMALL, torch.float64)
    x = torch.randn(43, 2, 5, dtype=torch.float64, requires_grad=True)
    vectors, scores = model.unit_vectors().detach().requires_grad_(), torch.randn(12, 2, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(43, 2, 5, dtype=torch.float64)
    results = []
    for function in (aggregate, aggregate_plain):
        out = function(model.graph, x, vectors, scores, reflect=reflect)
        wanted = (x, vectors, scores) if reflect else (x, scores)
        results.append((out.detach(), *torch.autograd.grad((out * weights).sum(), wanted)))
    for fused, plain in zip(*results, strict=True):
        torch.testing.assert_close(fused, plain)


@pytest.mark.parametrize("kind", ["neighbours", "relations"])
def test_plain_and_fused_means_agree(kind: str) -> None:
    adjacency = build_adjacency(random_triples(np.random.default_rng(6), 30, 5, 90), 32, 5)
    csr = getattr(adjacency, kind)
    mean = RowMean(csr, neighbours=Neighbours.alone(32) if kind == "neighbours" else None)
    features = torch.randn(csr.num_columns, 7, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(32, 7, dtype=torch.float64)
    fused, plain = mean(features), without_kernels()(mean)(features)
    torch.testing.assert_close(fused, plain)
    gradient = [torch.autograd.grad((out * weights).sum(), features)[0] for out in (fused, plain)]
    torch.testing.assert_close(*gradient)


def test_large_scores_do_not_overflow() -> None:
    triples = random_triples(np.random.default_rng(7), 10, 3, 40)
    model = build(triples, 10, 3, SMALL, torch.float32)
    with torch.no_grad():
        model.attention.mul_(1e4)
    output = model()
    assert torch.isfinite(output).all()
    assert all(torch.isfinite(grad).all() for grad in gradients(model, output).values())


def test_the_same_seed_gives_the_same_start_and_another_seed_another() -> None:
    triples = random_triples(np.random.default_rng(8), 10, 3, 40)
    first, again, other = (build(triples, 10, 3, SMALL, torch.float32, seed=seed)().detach() for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_results_do_not_depend_on_timing() -> None:
    triples = random_triples(np.random.default_rng(9), 500, 20, 4000)
    model = build(triples, 500, 20, SMALL, torch.float32)
    runs = [(output.detach(), gradients(model, output)) for output in (model() for _ in range(3))]
    for output, gradient in runs[1:]:
        assert torch.equal(output, runs[0][0])
        assert all(torch.equal(gradient[name], runs[0][1][name]) for name in gradient)


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("dropout_seed", [None, 5])
def test_a_few_entities_by_themselves_are_what_they_are_among_all(changes: dict[str, object], dropout_seed: int | None) -> None:
    """Embeddings, dropout and gradients, in any order of the entities; among them one without messages."""
    rng = np.random.default_rng(2)
    triples = random_triples(rng, 12, 3, 40)
    config = dataclasses.replace(SMALL, **{"dropout": 0.4, **changes})  # type: ignore[arg-type]
    rows = torch.tensor([9, 0, 12, 4, 7])
    model = build(triples, 13, 3, config, torch.float64)
    whole = model(dropout_seed=dropout_seed)[rows]
    expected, expected_gradients = whole.detach().clone(), gradients(model, whole)
    few = model(rows, dropout_seed=dropout_seed)
    torch.testing.assert_close(few, expected)
    for name, grad in gradients(model, few).items():
        torch.testing.assert_close(grad, expected_gradients[name], msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("rows", [[3, 1, 12, 0], []])
def test_messages_to_few_receivers_are_the_same_on_any_device(rows: list[int]) -> None:
    """The kernels beside plain torch, which other devices run."""
    rng = np.random.default_rng(4)
    graph = dual_amn.MessageGraph(build_adjacency(random_triples(rng, 12, 3, 40), 13, 3))
    inputs = [torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in ((13, 2, 4), (6, 4), (6, 2))]
    found = []
    for function in (aggregate, aggregate_plain):
        out = function(graph, *inputs, rows=torch.tensor(rows, dtype=torch.int64))
        found.append([out, *torch.autograd.grad(out.sin().sum(), inputs)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_far_apart_scores_leave_the_loudest_message_alone() -> None:
    """The exponentials are taken per unit, over the whole range of the scores."""
    graph = dual_amn.MessageGraph(build_adjacency(np.array([[0, 0, 1], [0, 1, 2]]), 3, 2))
    x = torch.eye(3, dtype=torch.float64).unsqueeze(1)
    scores = torch.tensor([[900.0], [-900.0], [0.0], [0.0]], dtype=torch.float64)
    out = aggregate(graph, x, torch.zeros(4, 3, dtype=torch.float64), scores)
    torch.testing.assert_close(out[:, 0], torch.tensor([[0, 1.0, 0], [1, 0, 0], [1, 0, 0]], dtype=torch.float64))


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
def test_all_entities_in_blocks_are_what_they_are_at_once(changes: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dual_amn, "HELD_ROWS", 5)
    config = dataclasses.replace(SMALL, **{"dropout": 0.4, **changes})  # type: ignore[arg-type]
    model = build(random_triples(np.random.default_rng(2), 12, 3, 40), 13, 3, config, torch.float64)
    torch.testing.assert_close(model.embed(), model().detach())
    assert not model.embed().requires_grad
