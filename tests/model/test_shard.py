"""Dividing the entities among processes: who owns which, what they fetch, and that the encoder computes what one process computes."""

from __future__ import annotations

import dataclasses
import itertools
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
from engine.model.adjacency import Adjacency, build_adjacency
from engine.model.dual_amn import DRAWN_ROWS, DualAMN, drawn_rows
from engine.model.exchange import fetches_in_pieces
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
@given(st.integers(3, 40), st.integers(0, 120), st.integers(2, 3), st.integers(0, 5), st.sampled_from([None, 1, 4]))
def test_what_is_fetched_is_what_messages_come_from(entities: int, number: int, size: int, seed: int, piece: int | None) -> None:
    triples = random_triples(entities, number, seed)
    owners = np.random.default_rng(seed).integers(0, size, entities).astype(np.int32)
    with pytest.MonkeyPatch.context() as patch:
        if piece is not None:
            fetch_in_pieces(patch, piece)
        found = together(size, lambda ranks: exchanged(triples, owners, ranks))
    for rank, (shard, held, fetched, whole) in enumerate(found):
        own, halo = set(np.flatnonzero(owners == rank).tolist()), set()
        for head, _, tail in triples.tolist():
            halo |= ({tail} if head in own else set()) | ({head} if tail in own else set())
        assert shard.own.tolist() == sorted(own)
        assert set(shard.halo.tolist()) == halo - own
        assert [shard.halo[at - len(own)] for at, _ in fetched] == [entity for _, entity in fetched]
        assert sorted(at for at, _ in fetched) == list(range(len(own), len(own) + len(shard.halo)))
        assert piece is None or all(one.stop - one.start <= piece for one in shard.neighbours.blocks[1:])
        assert whole.tolist() == (list(range(entities)) if rank == 0 else [])
        everyone = np.concatenate([shard.own, shard.halo])
        local = {(int(everyone[head]), relation, int(everyone[tail])) for head, relation, tail in held.tolist()}
        assert local == {(head, relation, tail) for head, relation, tail in triples.tolist() if head in own or tail in own}


def fetch_in_pieces(patch: pytest.MonkeyPatch, rows: int) -> None:
    """Rows of other processes as where they are many."""
    for name, value in {"FEW_ROWS": -1, "MANY": -1.0, "PIECE_ROWS": rows}.items():
        patch.setattr(exchange, name, value)


def exchanged(triples: IntArray, owners: np.ndarray, ranks: ThreadRanks) -> tuple[Shard, IntArray, list[tuple[int, int]], Tensor]:
    """A shard, its triples, its halo as fetched (local index, entity), and all entities as process 0 gathers them."""
    shard, held = make_shard(triples, owners.astype(np.int32), ranks)
    whole = shard.gathered(shard.own_index)
    blocks = list(shard.neighbours.rows(shard.own_index))[1:]
    return shard, held, [one for block, rows in blocks for one in zip(range(block.start, block.stop), rows.tolist(), strict=True)], whole


@pytest.fixture(params=["all at once", "in pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Rows of other processes as they are fetched where they are few, and where they are many."""
    if request.param == "in pieces":
        fetch_in_pieces(monkeypatch, 40)
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
    triples = random_triples(60, 150)
    triples[:20, 2] = 0  # a hub
    compare_with_one_process(triples, partition_entities(triples, 60, NO_LINKS, size), pieces, options)


@dataclasses.dataclass
class Outcome:
    """Embeddings of all own entities, those of a step's sample, gradients, and bytes that were sent."""

    ids: IntArray
    sample: IntArray
    embeddings: Tensor
    rows: Tensor
    gradients: dict[str, Tensor]
    sent: int = 0


def outcome(model: DualAMN, ids: IntArray, sample: IntArray) -> Outcome:
    """What a model makes of a step; ``ids`` are its entities, ascending, ``sample`` some of them."""
    weights = torch.from_numpy(np.cos(3.0 * sample)).float().unsqueeze(1)
    rows = model(torch.from_numpy(np.searchsorted(ids, sample)), dropout_seed=5)
    (rows * weights).square().sum().backward()
    gradients = {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
    return Outcome(ids, sample, model.embed(), rows.detach(), gradients)


def compare_with_one_process(triples: IntArray, owners: np.ndarray, pieces: bool, options: dict[str, object]) -> None:
    entities, size = len(owners), int(owners.max()) + 1
    config = dataclasses.replace(EncoderConfig(dim=6, proxies=4), **options)  # type: ignore[arg-type]
    sample = np.sort(np.random.default_rng(2).permutation(entities)[:25])

    def indexed(these: IntArray, number: int) -> Adjacency:
        return build_adjacency(these, number, RELATIONS, message_unit=config.message_unit, relation_input=config.relation_input)

    def part(ranks: ThreadRanks) -> Outcome:
        counting = Counting(ranks)
        shard, held = make_shard(triples, owners.astype(np.int32), counting)  # type: ignore[arg-type]
        assert shard.neighbours.again == pieces
        model = DualAMN(indexed(held, len(shard.own) + len(shard.halo)), config, seed=3, shard=shard)
        before, found = counting.sent, outcome(model, shard.own, np.intersect1d(sample, shard.own))
        layers = config.num_channels * config.layers
        inputs, sent, halo = int(config.channels != "relation"), len(shard.exchange.sent), len(shard.halo)
        step = (sent + halo) * (inputs + layers) + pieces * sent * layers
        assert counting.sent - before == 4 * config.dim * (step + sent * (inputs + layers)), "a step, and all embeddings"
        return found

    alone = outcome(DualAMN(indexed(triples, entities), config, seed=3), np.arange(entities), sample)
    parts = together(size, part)
    for one in parts:
        torch.testing.assert_close(one.embeddings, alone.embeddings[one.ids], rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(one.rows, alone.rows[np.searchsorted(sample, one.sample)], rtol=1e-4, atol=1e-6)
        if "entity_features" in alone.gradients:
            torch.testing.assert_close(one.gradients["entity_features"], alone.gradients["entity_features"][one.ids], rtol=1e-3, atol=1e-6)
    for name in set(alone.gradients) - {"entity_features"}:
        summed = torch.stack([one.gradients[name] for one in parts]).sum(0)
        torch.testing.assert_close(summed, alone.gradients[name], rtol=1e-3, atol=1e-5)


def path_of(*entities: int) -> list[tuple[int, int, int]]:
    return [(head, number % RELATIONS, tail) for number, (head, tail) in enumerate(itertools.pairwise(entities))]


CUTS = {
    "a hub of 2,000 neighbours": ([(0, at % RELATIONS, at) for at in range(1, 2001)], np.arange(2001) % 3),
    "parts without a common edge": ([*path_of(*range(20)), *path_of(*range(20, 40))], np.arange(40) // 20),
    "a partner with nothing to send": ([*path_of(*range(40)), (39, 0, 0)], np.repeat([0, 1, 2, 1], 10)),
    "one entity in a part": ([*path_of(*range(30)), (29, 1, 4)], np.where(np.arange(30) == 4, 1, 0)),
}


@pytest.mark.parametrize(("triples", "owners"), CUTS.values(), ids=CUTS)
def test_wherever_a_graph_is_cut_the_results_are_those_of_one_process(triples: list[tuple[int, int, int]], owners: np.ndarray, pieces: bool) -> None:
    compare_with_one_process(np.array(triples), owners, pieces, {})


@settings(deadline=None, max_examples=examples(200))
@given(st.integers(0, 10**7), st.integers(2, 10**7), st.integers(2, 64))
def test_rows_of_others_are_held_where_they_are_few_beside_the_own(halo: int, entities: int, processes: int) -> None:
    in_pieces = fetches_in_pieces(halo, entities, processes)
    assert not (in_pieces and 2 * halo * processes <= entities)
    assert in_pieces or halo <= max(entities / processes, exchange.FEW_ROWS)
    assert not in_pieces or fetches_in_pieces(halo + 1, entities, processes)


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
        assert trainer.shard is not None
        assert trainer.shard.neighbours.again == pieces
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
