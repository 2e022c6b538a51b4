"""Parameters taken over from an earlier run: what both versions have keeps its own, what is new gets those of its neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from engine.config import EncoderConfig
from engine.data.versions import CarriedGraph
from engine.errors import ConfigError
from engine.model.adjacency import build_adjacency
from engine.model.dual_amn import DualAMN
from engine.training.inheritance import Inheritance, check_encoder, fill_entities, fill_relations, inherit
from engine.training.optimiser import RmsProp
from engine.training.semi import Pool, Selection
from engine.util.arrays import IntArray

CONFIG = EncoderConfig(dim=4, proxies=3)


class StoredModel:
    """What inheriting asks of a run."""

    id = "towns/basic-s0-1"

    def __init__(self, model: DualAMN) -> None:
        self.state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}

    def tensor(self, name: str, key: str) -> Any:
        assert name == "model"
        return self.state[key]


def model_of(triples: list[tuple[int, int, int]], entities: int, relations: int, seed: int) -> DualAMN:
    return DualAMN(build_adjacency(np.array(triples, dtype=np.int64), entities, relations), CONFIG, seed=seed)


def carried(entities: list[int], relations: list[int], old_entities: int, old_relations: int) -> CarriedGraph:
    return CarriedGraph(np.array(entities, dtype=np.int64), np.array(relations, dtype=np.int64), old_entities, old_relations)


def inheritance(model: DualAMN, source: CarriedGraph, target: CarriedGraph, pairs: IntArray | None = None) -> Inheritance:
    found = np.empty((0, 2), dtype=np.int64) if pairs is None else pairs
    selection = Selection(found, np.arange(len(found), dtype=np.float32))
    return Inheritance(StoredModel(model), {"source": source, "target": target}, selection, {}, pd.DataFrame())  # type: ignore[arg-type]


def test_what_both_versions_have_keeps_its_parameters() -> None:
    """Source: 3 -> 3 entities in another order with a new one; target: 2 -> 2; the source has a new relation."""
    old = model_of([(0, 0, 1), (1, 0, 2), (3, 1, 4)], 5, 2, seed=1)
    new = model_of([(0, 0, 1), (1, 1, 2), (3, 2, 4)], 5, 3, seed=2)
    drawn = {name: tensor.clone() for name, tensor in new.state_dict().items()}
    taken = inheritance(old, carried([2, -1, 0], [0, -1], 3, 1), carried([0, 1], [0], 2, 1))
    assert taken.entities.tolist() == [2, -1, 0, 3, 4]
    assert taken.relations.tolist() == [0, -1, 1, 2, -1, 3]
    inherit(new, taken)
    state = new.state_dict()
    for name in ("attention", "proxies", "gate_weight", "gate_bias"):
        assert torch.equal(state[name], old.state_dict()[name])
    before = old.entity_features.detach()
    assert torch.equal(state["entity_features"][[0, 2, 3, 4]], before[[2, 0, 3, 4]])
    torch.testing.assert_close(state["entity_features"][1], (before[2] + before[0]) / 2)
    relations = old.relation_features.detach()
    assert torch.equal(state["relation_features"][[0, 2, 3, 5]], relations[[0, 1, 2, 3]])
    filled = [one for one in (1, 4) if not torch.equal(state["relation_features"][one], drawn["relation_features"][one])]
    assert len(filled) == 1, "one of its ends has another relation, the other one has none"
    assert min((state["relation_features"][filled[0]] - relations[one]).abs().max() for one in (0, 2)) < 1e-6


def test_new_entities_are_reached_outwards_and_the_others_keep_what_was_drawn() -> None:
    """0 is known; 1 hangs on it, 2 on 1; 3 and 4 hang on each other alone."""
    adjacency = build_adjacency(np.array([(0, 0, 1), (1, 0, 2), (3, 0, 4)], dtype=np.int64), 5, 1)
    features = np.arange(10, dtype=np.float32).reshape(5, 2)
    found = fill_entities(features, np.array([False, True, True, True, True]), adjacency)
    assert found[:3].tolist() == [[0, 1]] * 3
    assert found[3:].tolist() == features[3:].tolist()
    assert features[1].tolist() == [2, 3], "the drawn ones are left as they are"


def test_a_new_relation_is_the_mean_of_those_at_its_entities() -> None:
    adjacency = build_adjacency(np.array([(0, 0, 1), (0, 1, 2)], dtype=np.int64), 3, 2)
    features = np.array([[1, 0], [9, 9], [0, 1], [9, 9]], dtype=np.float32)  # relations 0 and 1, then their inverses
    found = fill_relations(features, np.array([False, True, False, True]), adjacency)
    assert found[[0, 2]].tolist() == features[[0, 2]].tolist()
    at_0 = [
        column for column in adjacency.relations.columns[adjacency.relations.offsets[0] : adjacency.relations.offsets[1]].tolist() if column in (0, 2)
    ]
    assert found[1].tolist() == features[at_0[0]].tolist() or found[3].tolist() == features[at_0[0]].tolist()


def test_pairs_are_taken_over_within_the_pool_and_without_rejected_ones() -> None:
    model = model_of([(0, 0, 1)], 4, 1, seed=0)
    pairs = np.array([(0, 0), (1, 1), (2, 2), (3, 3)], dtype=np.int64)
    taken = inheritance(model, carried([], [], 0, 0), carried([], [], 0, 0), pairs)
    found = taken.selected(Pool(np.array([0, 1, 3]), np.array([0, 1, 2, 3]), "all", np.array([(1, 1), (0, 3)], dtype=np.int64)))
    assert found.pairs.tolist() == [[0, 0], [3, 3]]
    assert found.scores.tolist() == [0, 3]


def test_the_encoder_of_the_parent_stays() -> None:
    check_encoder(CONFIG, EncoderConfig(dim=4, proxies=3, dropout=0.1))
    with pytest.raises(ConfigError, match=r"encoder\.dim stays 4"):
        check_encoder(CONFIG, EncoderConfig(dim=8, proxies=3))


def test_settled_parameters_begin_with_steps_of_the_usual_length() -> None:
    steps = []
    for settled in (False, True):
        parameter = torch.nn.Parameter(torch.ones(3))
        optimiser = RmsProp([parameter], 0.01, settled=settled)
        parameter.grad = torch.tensor([1.0, -2.0, 0.0])
        optimiser.step()
        steps.append((1 - parameter.detach()).tolist())
    assert steps[0] == pytest.approx([0.01 / 0.1**0.5, -0.01 / 0.1**0.5, 0], abs=1e-4)
    assert steps[1] == pytest.approx([0.01, -0.01, 0], abs=1e-6)
