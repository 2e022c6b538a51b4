"""Dividing the entities among processes: who owns which, what they fetch, and that the encoder computes what one process computes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.config import EncoderConfig, RunConfig
from engine.data import load_task
from engine.model import exchange, partition
from engine.model.adjacency import build_adjacency
from engine.model.dual_amn import DRAWN_ROWS, DualAMN, drawn_rows
from engine.model.partition import partition_entities
from engine.model.shard import Shard, make_shard
from engine.training.trainer import Trainer
from engine.util.arrays import IntArray
from engine.util.distributed import ring_bytes
from tests.effort import examples
from tests.ranks import ThreadRanks, together

RELATIONS = 4
NO_LINKS = np.empty((0, 2), dtype=np.int64)


def random_triples(entities: int, number: int, seed: int = 0) -> IntArray:
    return np.random.default_rng(seed).integers(0, [entities, RELATIONS, entities], (number, 3))


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(2, 60), st.integers(0, 150), st.integers(0, 10), st.data())
def test_every_part_has_entities_and_linked_ones_stay_together(entities: int, number: int, links: int, data: st.DataObject) -> None:
    parts = data.draw(st.integers(1, min(entities, 6)))
    triples = random_triples(entities, number, seed=number)
    pairs = np.random.default_rng(links).permutation(entities)[: 2 * min(links, entities // 2)].reshape(-1, 2)
    owners = partition_entities(triples, entities, pairs, parts)
    assert owners.shape == (entities,)
    assert set(owners.tolist()) == set(range(parts))
    assert np.array_equal(owners, partition_entities(triples, entities, pairs, parts))
    apart = owners[pairs[:, 0]] != owners[pairs[:, 1]]
    assert apart.sum() <= parts, "only to fill a part that would be empty"


def test_communities_are_not_cut() -> None:
    """Four of fifty entities each, a few triples between them: hashing would cut three quarters of the triples."""
    random = np.random.default_rng(0)
    within = np.concatenate([50 * part + random.integers(0, 50, (400, 2)) for part in range(4)])
    between = random.integers(0, 200, (20, 2))
    ends = random.permutation(200)[np.concatenate([within, between])]
    triples = np.stack([ends[:, 0], np.zeros(len(ends), dtype=np.int64), ends[:, 1]], axis=1)
    owners = partition_entities(triples, 200, NO_LINKS, 4)
    assert (owners[ends[:, 0]] != owners[ends[:, 1]]).sum() <= 20
    assert np.bincount(owners).tolist() == pytest.approx([50] * 4, abs=3)


def test_a_hub_does_not_keep_the_rest_together() -> None:
    """All entities are neighbours of one."""
    star = np.stack([np.zeros(999, dtype=np.int64), np.zeros(999, dtype=np.int64), np.arange(1, 1000)], axis=1)
    counts = np.bincount(partition_entities(star, 1000, NO_LINKS, 4))
    assert counts.min() > 100


@settings(deadline=None, max_examples=examples(25))
@given(st.integers(3, 40), st.integers(0, 120), st.integers(2, 3), st.integers(0, 5))
def test_what_is_fetched_is_what_messages_come_from(entities: int, number: int, size: int, seed: int) -> None:
    triples = random_triples(entities, number, seed)
    owners = np.random.default_rng(seed).integers(0, size, entities).astype(np.int32)
    for rank, (shard, held, fetched, whole) in enumerate(together(size, lambda ranks: exchanged(triples, owners, ranks))):
        own, halo = set(np.flatnonzero(owners == rank).tolist()), set()
        for head, _, tail in triples.tolist():
            halo |= ({tail} if head in own else set()) | ({head} if tail in own else set())
        assert shard.own.tolist() == sorted(own)
        assert set(shard.halo.tolist()) == halo - own
        assert fetched.tolist() == shard.halo.tolist()
        assert whole.tolist() == (list(range(entities)) if rank == 0 else [])
        everyone = np.concatenate([shard.own, shard.halo])
        local = {(int(everyone[head]), relation, int(everyone[tail])) for head, relation, tail in held.tolist()}
        assert local == {(head, relation, tail) for head, relation, tail in triples.tolist() if head in own or tail in own}


def exchanged(triples: IntArray, owners: np.ndarray, ranks: ThreadRanks) -> tuple[Shard, IntArray, Tensor, Tensor]:
    """A shard, its triples, its halo as fetched, and all entities as process 0 gathers them."""
    shard, held = make_shard(triples, owners.astype(np.int32), ranks)
    whole = shard.gathered(shard.own_index)
    return shard, held, shard.exchange.fetch(shard.own_index), whole


@pytest.fixture(params=["all at once", "in pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Rows of other processes as they are held where they are few, and where they are many."""
    if request.param == "in pieces":
        for name, value in {"FEW_ROWS": 0, "MANY": 0.0, "PIECE_ROWS": 4}.items():
            monkeypatch.setattr(exchange, name, value)
    return bool(request.param == "in pieces")


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"message_unit": "edge"},
        {"initializer": "he", "relation_input": "same"},
        {"layers": 0},
        {"channels": "relation"},
        {"relational_projection": False, "multi_hop": False},
        {"proxy_matching": False, "relational_attention": False},
    ],
    ids=lambda options: "-".join(options) or "defaults",
)
def test_embeddings_and_gradients_are_those_of_one_process(size: int, options: dict[str, object], pieces: bool) -> None:
    entities, config = 60, dataclasses.replace(EncoderConfig(dim=6, proxies=4), **options)  # type: ignore[arg-type]
    triples = random_triples(entities, 150)
    triples[:20, 2] = 0  # a hub
    weights = torch.randn(entities, 1, generator=torch.Generator().manual_seed(1))
    wanted = np.random.default_rng(2).permutation(entities)[:25]

    def result(model: DualAMN, rows: Tensor, ids: IntArray) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        out = model(rows, dropout_seed=5)
        (out * weights[ids]).square().sum().backward()
        return model.embed(), out.detach(), {name: one.grad for name, one in model.named_parameters() if one.grad is not None}

    def indexed(these: IntArray, number: int) -> object:
        return build_adjacency(these, number, RELATIONS, message_unit=config.message_unit, relation_input=config.relation_input)

    def part(ranks: ThreadRanks) -> tuple[Shard, IntArray, tuple[Tensor, Tensor, dict[str, Tensor]]]:
        shard, held = make_shard(triples, partition_entities(triples, entities, NO_LINKS, size), ranks)
        local = indexed(held, len(shard.own) + len(shard.halo))
        own = np.intersect1d(wanted, shard.own)
        model = DualAMN(local, config, seed=3, shard=shard)  # type: ignore[arg-type]
        return shard, own, result(model, torch.from_numpy(np.searchsorted(shard.own, own)), own)

    alone = DualAMN(indexed(triples, entities), config, seed=3)  # type: ignore[arg-type]
    embeddings, rows, gradients = result(alone, torch.from_numpy(wanted), wanted)
    place = {int(one): at for at, one in enumerate(wanted)}
    parts = together(size, part)
    for shard, own, (own_embeddings, own_rows, own_gradients) in parts:
        torch.testing.assert_close(own_embeddings, embeddings[shard.own], rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(own_rows, rows[[place[int(one)] for one in own]], rtol=1e-4, atol=1e-6)
        if "entity_features" in gradients:
            torch.testing.assert_close(own_gradients["entity_features"], gradients["entity_features"][shard.own], rtol=1e-3, atol=1e-6)
    for name in set(gradients) - {"entity_features"}:
        summed = torch.stack([own_gradients[name] for _, _, (_, _, own_gradients) in parts]).sum(0)
        torch.testing.assert_close(summed, gradients[name], rtol=1e-3, atol=1e-5)


def test_without_metis_the_entities_are_dealt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "has_metis", lambda: False)
    owners = partition_entities(random_triples(50, 100), 50, np.array([[1, 30], [7, 40]]), 3)
    assert owners[1] == owners[30]
    assert owners[7] == owners[40]
    assert np.bincount(owners).min() >= 14


class Counting:
    """Ranks that count what they send, as torch.distributed's do."""

    def __init__(self, ranks: ThreadRanks) -> None:
        self.ranks, self.rank, self.size, self.sent = ranks, ranks.rank, ranks.size, 0

    def swap(self, rows: Tensor, sends: Sequence[int], receives: Sequence[int]) -> Tensor:
        self.sent += (len(rows) - sends[self.rank]) * rows[:1].nbytes
        return self.ranks.swap(rows, sends, receives)

    def sum(self, values: Tensor) -> Tensor:
        self.sent += round(ring_bytes(values.nbytes, self.size))
        return self.ranks.sum(values)

    def max(self, values: Tensor) -> Tensor:
        self.sent += round(ring_bytes(values.nbytes, self.size))
        return self.ranks.max(values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ranks, name)


@pytest.mark.parametrize("options", [{}, {"encoder.layers": 1, "encoder.channels": "relation"}])
def test_what_a_step_sends_is_what_the_formula_says(small_europe: Path, options: dict[str, object], pieces: bool) -> None:
    task = load_task(small_europe)
    small = {"encoder.dim": 8, "encoder.proxies": 4, "training.threads": 1, "training.precision": "float32", "training.epochs": 1}
    config = RunConfig().with_values({**small, **options})

    def part(ranks: ThreadRanks) -> tuple[float, float]:
        trainer = Trainer(task, config, ranks=Counting(ranks))  # type: ignore[arg-type]
        expected = trainer.expected_bytes(len(task.train_links))
        trainer.train()
        return trainer.step_bytes[0], expected

    for sent, expected in together(3, part):
        assert sent == pytest.approx(expected, rel=0.1)


def test_features_drawn_in_parts_are_those_drawn_at_once() -> None:
    entities = DRAWN_ROWS + 5
    owners = (np.arange(entities) % 2).astype(np.int32)

    def draw(generator: torch.Generator, rows: int) -> Tensor:
        return torch.empty(rows, 3).uniform_(-1, 1, generator=generator)

    def part(ranks: ThreadRanks) -> tuple[IntArray, Tensor]:
        generator = torch.Generator().manual_seed(1)
        shard, _ = make_shard(np.empty((0, 3), dtype=np.int64), owners, ranks)
        return shard.own, drawn_rows(shard, lambda rows: draw(generator, rows))

    whole = draw(torch.Generator().manual_seed(1), entities)
    for own, rows in together(2, part):
        assert torch.equal(rows, whole[own])
