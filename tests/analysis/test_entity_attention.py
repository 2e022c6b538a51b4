"""An entity's attention, worked out from the stored parameters, against the encoder's own weights over the whole graph."""

from __future__ import annotations

import numpy as np
import pytest

from engine.analysis.entity_attention import MEAN, AttentionPart, EntityAttention
from engine.analysis.relations import message_relations, row_softmax
from engine.config import EncoderConfig
from engine.errors import RunError
from engine.model.dual_amn import DualAMN
from tests.analysis.worlds import SMALL, random_task, random_world


def asked(model: DualAMN, **options: object) -> EntityAttention:
    config = EncoderConfig(**{**SMALL, **options})  # type: ignore[arg-type]
    return EntityAttention(config, model.relation_features.detach().numpy(), model.attention.detach().numpy())


def incident(triples: np.ndarray, entity: int, num_relations: int) -> tuple[np.ndarray, np.ndarray]:
    """Neighbour and directed relation of every incident triple."""
    out, into = triples[triples[:, 0] == entity], triples[triples[:, 2] == entity]
    return np.concatenate([out[:, 2], into[:, 0]]), np.concatenate([out[:, 1], into[:, 1] + num_relations])


@pytest.mark.parametrize("options", [{}, {"message_unit": "edge"}, {"channels": "relation"}, {"relational_attention": False}], ids=str)
def test_weights_are_those_of_the_encoder(options: dict[str, object]) -> None:
    world = random_world(2, **options)
    model, triples = world.model, world.task.stacked_triples()
    attention, adjacency = asked(model, **options), model.adjacency
    message, directed = message_relations(adjacency.members, adjacency.units)
    receivers, senders = adjacency.messages.rows()[message], adjacency.messages.columns[message]
    sizes = np.bincount(message)[message]
    seen = 0
    for entity in range(adjacency.num_entities):
        neighbours, relations = incident(triples, entity, world.task.num_relations)
        found = attention.weights(neighbours, relations)
        for layer in range(2):
            scores = model.scores(model.unit_vectors(), layer).detach().double().numpy()
            for channel in range(len(model.channels)):
                whole = row_softmax(scores[adjacency.units, channel], adjacency.messages.offsets)[message] / sizes
                expected = {
                    (sender, relation): weight
                    for receiver, sender, relation, weight in zip(receivers, senders, directed, whole, strict=True)
                    if receiver == entity
                }
                assert len(expected) == len(relations)
                for place, key in enumerate(zip(neighbours, relations, strict=True)):
                    assert found[layer, channel, place] == pytest.approx(expected[key], abs=1e-6)
        seen += len(relations)
    assert seen == 2 * len(triples)


def test_each_layer_and_channel_sums_to_one_and_so_does_every_part() -> None:
    attention = asked(random_world(0).model)
    weights = attention.weights(np.array([3, 3, 5]), np.array([0, 1, 9]))
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    for part in (MEAN, AttentionPart(1), AttentionPart(2, "relation"), AttentionPart(None, "entity")):
        assert attention.part(weights, part).sum() == pytest.approx(1)
    np.testing.assert_array_equal(attention.part(weights, AttentionPart(2, "relation")), weights[1, 1])
    np.testing.assert_allclose(attention.part(weights, MEAN), weights.mean(axis=(0, 1)))


def test_no_messages() -> None:
    nothing = np.empty(0, dtype=np.int64)
    assert asked(random_world(0).model).weights(nothing, nothing).shape == (2, 2, 0)


@pytest.mark.parametrize(
    ("part", "shown"),
    [(AttentionPart(3), "there is no layer 3"), (AttentionPart(0), "there is no layer 0"), (AttentionPart(None, "entity"), "without the entity")],
)
def test_parts_that_the_model_does_not_have(part: AttentionPart, shown: str) -> None:
    attention = asked(random_world(0, channels="relation").model, channels="relation")
    with pytest.raises(RunError, match=shown):
        attention.part(np.ones((2, 1, 1)), part)


def test_relations_are_counted_over_both_graphs() -> None:
    task = random_task(np.random.default_rng(0))
    assert asked(random_world(0).model).num_relations == task.num_relations


def test_parameters_of_another_shape_are_refused() -> None:
    model = random_world(0).model
    with pytest.raises(ValueError, match="3 layers"):
        asked(model, layers=3)
