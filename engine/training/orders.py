"""What rank 0 orders of a trained encoder that several processes hold (:mod:`engine.training.worker`); of one process's, it is done at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from engine.model.dual_amn import DualAMN
from engine.search.divided import EMBEDDINGS, DividedSimilarity
from engine.search.parts import Part, make_part, rows_between


class ModelOrder(ABC):
    """What is to be computed of a trained encoder, by all processes together where it is divided; rank 0 has the result."""

    @abstractmethod
    def carry_out(self, model: DualAMN) -> Any: ...


def carried_out(model: DualAMN, order: ModelOrder) -> Any:
    """Have an order carried out, by the other processes as well where the model is divided; for rank 0."""
    if model.shard is not None:
        model.shard.ranks.first(lambda: order)
    return order.carry_out(model)


class PartsOrder(ABC):
    """What is to be computed of a trained encoder and kept where it is computed, for questions about it."""

    @abstractmethod
    def parts(self, model: DualAMN) -> Mapping[str, Part]:
        """What each process holds, by name."""


def kept_parts(model: DualAMN, order: PartsOrder) -> dict[str, DividedSimilarity]:
    """Have it computed, likewise; for rank 0, which can ask about it by name."""
    if model.shard is not None:
        model.shard.ranks.first(lambda: order)
    return {name: DividedSimilarity(part, name=name) for name, part in order.parts(model).items()}


@dataclass(frozen=True)
class Embed(PartsOrder):
    """The final embeddings of a divided model, at unit length."""

    num_source: int
    num_target: int

    def parts(self, model: DualAMN) -> Mapping[str, Part]:
        shard = model.shard
        return {} if shard is None else {EMBEDDINGS: make_part(shard.ranks, shard.own, model.embed(), self.num_source, self.num_target)}


@dataclass(frozen=True)
class FeatureRows(ModelOrder):
    """The features of a range of entities."""

    start: int
    stop: int

    def carry_out(self, model: DualAMN) -> Tensor:
        features, shard = model.entity_features.detach(), model.shard
        return features[self.start : self.stop] if shard is None else rows_between(shard.ranks, shard.own, features, self.start, self.stop)
