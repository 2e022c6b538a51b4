"""Proxy similarities, each proxy's entities, and the divergence of pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from engine.analysis.proxies import (
    ProxyCosines,
    Similarities,
    attention_divergence,
    pair_divergence_table,
    proxy_similarities,
    proxy_tensors,
    proxy_top_table,
)
from engine.model import proxies as proxy_matching
from engine.search.divided import DividedSimilarity
from engine.search.parts import split_part
from engine.training.orders import kept_parts
from engine.util.distributed import ALONE
from tests.analysis.worlds import World, random_world
from tests.effort import examples


@pytest.fixture
def world() -> World:
    return random_world(2)


def cosines_of(world: World) -> Similarities:
    return kept_parts(world.model, ProxyCosines(world.task.source.num_entities, world.task.target.num_entities))


def dense_similarities(world: World, channel: int) -> np.ndarray:
    hidden = world.model.multi_hop()[:, channel].detach().double()
    return torch.cosine_similarity(hidden[:, None], world.model.proxies[channel].detach().double()[None], dim=2).numpy()


def test_similarities_are_cosines_in_blocks_of_any_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_matching, "BLOCK_ROWS", 4)
    found = proxy_similarities(world.model)
    assert list(found) == ["entity", "relation"]
    for c, values in enumerate(found.values()):
        np.testing.assert_allclose(values.numpy(), dense_similarities(world, c), atol=1e-5)


def test_stored_similarities_give_the_attention_back(world: World) -> None:
    found = proxy_similarities(world.model)
    tensors = {name: tensor.whole() for name, tensor in proxy_tensors(cosines_of(world)).items()}
    assert set(tensors) == {"source_entity", "target_entity", "source_relation", "target_relation"}
    for channel, values in found.items():
        stored = torch.cat([tensors[f"source_{channel}"], tensors[f"target_{channel}"]])
        assert stored.dtype == torch.float16
        assert len(tensors[f"source_{channel}"]) == world.task.source.num_entities
        torch.testing.assert_close(stored.float().softmax(1), values.softmax(1), rtol=1e-3, atol=0)


def test_top_entities_are_the_most_similar(world: World) -> None:
    table = proxy_top_table(cosines_of(world))
    start = {"source": 0, "target": world.task.source.num_entities}
    for (channel, graph, proxy), rows in table.groupby(["channel", "graph", "proxy"]):
        size = world.task.graph(graph).num_entities
        column = dense_similarities(world, ["entity", "relation"].index(channel))[start[graph] : start[graph] + size, proxy]
        assert rows["rank"].tolist() == list(range(1, 11))
        assert rows["entity"].nunique() == 10
        np.testing.assert_allclose(rows["similarity"], np.sort(column)[::-1][:10], atol=1e-5)
        np.testing.assert_allclose(rows["similarity"], column[rows["entity"]], atol=1e-5)
    assert len(table) == 2 * 2 * 4 * 10


def test_equals_come_in_order() -> None:
    part = split_part(ALONE, np.arange(4), torch.tensor([[0.5], [0.7], [0.5], [0.5]]), 4, 0)
    table = proxy_top_table({"entity": DividedSimilarity(part)})
    assert table["entity"].tolist() == [1, 0, 2, 3]


@given(seed=st.integers(0, 1000), proxies=st.integers(1, 6))
@settings(deadline=None, max_examples=examples(30))
def test_divergence_is_jensen_shannons(seed: int, proxies: int) -> None:
    rng = np.random.default_rng(seed)
    similarity = torch.from_numpy(rng.uniform(-1, 1, (9, proxies)).astype(np.float32))
    first, second = rng.integers(0, 9, (2, 12))
    found = attention_divergence(similarity, first, second)
    beta = similarity.double().softmax(1).numpy()
    expected = [np.nan_to_num(jensenshannon(beta[one], beta[two], base=2)) ** 2 for one, two in zip(first, second, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found[first == second] == 0).all()
    np.testing.assert_allclose(found, attention_divergence(similarity, second, first), atol=1e-15)


@given(seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=15)
def test_pairs_are_the_known_links_and_the_first_matches(seed: int) -> None:
    world = random_world(seed)
    similarities = proxy_similarities(world.model)
    table = pair_divergence_table(cosines_of(world), world.task, world.matches)
    best = world.matches[world.matches["rank"] == 1]
    forward = {(row.entity, row.match) for row in best.itertuples() if row.graph == "source"}
    backward = {(row.match, row.entity) for row in best.itertuples() if row.graph == "target"}
    roles = {}
    for role, links in zip(("train", "valid", "test", "unsure"), world.task.all_links(), strict=True):
        for source, target in links.tolist():
            roles.setdefault((source, target), role)
    for channel, values in similarities.items():
        rows = table[table["channel"] == channel]
        pairs = list(zip(rows["source"], rows["target"], strict=True))
        assert pairs == sorted(forward | backward | set(roles))
        assert rows["role"].tolist() == [roles.get(pair, "") for pair in pairs]
        assert rows["from_source"].tolist() == [pair in forward for pair in pairs]
        assert rows["from_target"].tolist() == [pair in backward for pair in pairs]
        beta = values.double().softmax(1).numpy()
        for row in rows.itertuples():
            expected = jensenshannon(beta[row.source], beta[row.target + world.task.source.num_entities], base=2) ** 2
            assert row.divergence == pytest.approx(expected, abs=1e-12)
