"""The frozen encoder against training's: the same vectors, on the whole graph and on one that lacks some triples."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.analysis.run_tables import parameter_tensors
from engine.config import RunConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.explanation.encoder import FrozenEncoder, Triple
from engine.explanation.explainer import PARAMETERS
from engine.model.dual_amn import DualAMN
from engine.training.trainer import task_adjacency
from tests.analysis.worlds import random_task
from tests.explanation.runs import SMALL, drawn_model
from tests.model import options as encoder_options

OPTIONS = {**encoder_options.OPTIONS, "one layer": {"layers": 1}, "three layers": {"layers": 3}}


def settings_of(options: dict[str, object]) -> RunConfig:
    return RunConfig.from_dict({"encoder": {**SMALL, **options}})


def frozen(task: AlignmentTask, config: RunConfig, model: DualAMN) -> FrozenEncoder:
    return FrozenEncoder(task_adjacency(task, config), config.encoder, {name: one.numpy() for name, one in parameter_tensors(model).items()})


def retold(task: AlignmentTask, config: RunConfig, model: DualAMN, removed: set[Triple]) -> np.ndarray:
    """(E, C, D) final embeddings of the same weights on the whole graph without the triples, by training's encoder in float64."""
    shift = np.array([task.source.num_entities, task.source.num_relations, task.source.num_entities])
    target = [row for row in task.target.triples if Triple(*(row + shift).tolist()) not in removed]
    source = [row for row in task.source.triples if Triple(*row.tolist()) not in removed]
    without = dataclasses.replace(
        task,
        source=dataclasses.replace(task.source, triples=np.array(source, dtype=np.int64).reshape(-1, 3)),
        target=dataclasses.replace(task.target, triples=np.array(target, dtype=np.int64).reshape(-1, 3)),
    )
    other = DualAMN(task_adjacency(without, config), config.encoder).double()
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        return other().numpy().reshape(task.num_entities, len(model.channels), -1)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.sampled_from([0.0, 0.03, 0.3, 1.0]))
def test_same_vectors_as_the_whole_encoder(options: dict[str, object], seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    task, config = random_task(rng), settings_of(options)
    model = drawn_model(task, config, seed)
    encoder = frozen(task, config, model)
    triples = [Triple(*row) for row in task.stacked_triples().tolist()]
    removed = {triple for triple in triples if rng.random() < share}
    pair = [int(rng.integers(task.source.num_entities)), task.source.num_entities + int(rng.integers(task.target.num_entities))]
    expected = retold(task, config, model, removed)[pair]
    np.testing.assert_allclose(encoder.snapshot(pair, removed).final, expected, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_messages_sum_to_what_each_layer_is_the_tanh_of(options: dict[str, object]) -> None:
    rng = np.random.default_rng(4)
    task, config = random_task(rng), settings_of(options)
    encoder = frozen(task, config, drawn_model(task, config, 4))
    entities = list(range(task.num_entities))
    triples = [Triple(*row) for row in task.stacked_triples().tolist()]
    for removed in ([], triples[::5]):
        snapshot = encoder.snapshot(entities, removed)
        for layer in range(config.encoder.layers + 1):
            for channel in range(len(encoder.channels)):
                sums = np.stack([snapshot.received(entity, layer, channel).messages.sum(axis=0) for entity in entities])
                np.testing.assert_allclose(np.tanh(sums), snapshot.layers[layer][:, channel], atol=1e-12)


def test_triples_of_an_entity_are_those_of_the_data() -> None:
    rng = np.random.default_rng(1)
    task = random_task(rng)
    for unit in ("triple", "edge"):
        config = settings_of({"message_unit": unit})
        encoder = frozen(task, config, drawn_model(task, config, 0))
        for entity in range(task.num_entities):
            expected = {Triple(*row) for row in task.stacked_triples().tolist() if entity in (row[0], row[2])}
            found = encoder.graph.triples(entity)
            assert set(found) == expected
            assert len(found) == len(expected)


@pytest.mark.parametrize("name", PARAMETERS)
def test_weights_of_another_shape_are_refused(name: str) -> None:
    task, config = random_task(np.random.default_rng(0)), settings_of({})
    parameters = {key: one.numpy() for key, one in parameter_tensors(drawn_model(task, config, 0)).items()}
    with pytest.raises(ValueError, match=name):
        FrozenEncoder(task_adjacency(task, config), config.encoder, {**parameters, name: parameters[name][..., :-1]})
    with pytest.raises(ValueError, match=name):
        FrozenEncoder(task_adjacency(task, config), config.encoder, {key: one for key, one in parameters.items() if key != name})
