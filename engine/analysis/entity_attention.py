"""The attention weights of the messages that one entity receives along its own triples, from the stored parameters alone.

An entity's weights depend on its triples and on nothing else of the graph (paper eq. 3: a softmax over the entity's messages), so that a page can ask
for one entity without building the encoder again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from engine.config import EncoderConfig
from engine.errors import RunError
from engine.model.dual_amn import CHANNELS
from engine.model.proxies import unit_rows
from engine.util.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class AttentionPart:
    """Which of a model's attention weights: of one layer (from 1) and one channel; None takes the mean over all of them."""

    layer: int | None = None
    channel: str | None = None


MEAN = AttentionPart()


class EntityAttention:
    """A model's attention, asked for entity by entity.

    Attributes:
        layers: L.
        channels: C names.
    """

    def __init__(self, config: EncoderConfig, relation_features: npt.NDArray[np.float32], attention: npt.NDArray[np.float32]) -> None:
        """
        Args:
            config: of the encoder that the parameters are of.
            relation_features: (2R, d), forward directions first.
            attention: (L, C, d).

        Raises:
            ValueError: the shapes do not fit each other.
        """
        self.channels: Sequence[str] = CHANNELS if config.channels == "both" else (config.channels,)
        self.layers = config.layers
        if attention.shape != (self.layers, len(self.channels), relation_features.shape[-1]):
            raise ValueError(
                f"attention vectors {attention.shape} for {self.layers} layers, {len(self.channels)} channels, relations {relation_features.shape}"
            )
        self._averaged = config.message_unit == "edge"
        self._features = torch.from_numpy(np.array(relation_features)).double()
        self._vectors = torch.from_numpy(np.array(attention)).double() * float(config.relational_attention)

    @property
    def num_relations(self) -> int:
        """R, both graphs' together."""
        return len(self._features) // 2

    def weights(self, neighbours: IntArray, directed: IntArray) -> FloatArray:
        """(L, C, n) attention that an entity pays to each of its n incident triples; for n > 0 each layer and channel sums to 1.

        Where the model averages parallel triples into one message, they share the message's weight equally.

        Args:
            neighbours: (n,) the entity at the other end, which the message comes from.
            directed: (n,) stacked relation: r where the asking entity is the head, r + R where it is the tail.
        """
        shape = (self.layers, len(self.channels), len(directed))
        if not len(directed) or not self.layers:
            return np.zeros(shape)
        features = self._features[torch.from_numpy(directed)]  # (n, d)
        if not self._averaged:
            return self._softmax(features)
        _, message, sizes = np.unique(neighbours, return_inverse=True, return_counts=True)
        place = torch.from_numpy(message)
        summed = torch.zeros((len(sizes), features.shape[1]), dtype=features.dtype).index_add(0, place, features)
        shared: FloatArray = (self._softmax(summed) / sizes)[:, :, message]
        return shared

    def _softmax(self, features: torch.Tensor) -> FloatArray:
        """(L, C, m) weights of m messages whose relations point where (m, d) features do."""
        weights: FloatArray = torch.softmax(self._vectors @ unit_rows(features).T, dim=-1).numpy()
        return weights

    def part(self, weights: FloatArray, part: AttentionPart) -> FloatArray:
        """(n,) one layer's and channel's weights out of (L, C, n), or their mean.

        Raises:
            RunError: the model has no such layer or channel.
        """
        if part.layer is not None and not 1 <= part.layer <= self.layers:
            raise RunError(f"the model has {self.layers} attention layers, so there is no layer {part.layer}; choose another, or none for the mean.")
        if part.channel is not None and part.channel not in self.channels:
            raise RunError(f"the model was trained without the {part.channel} channel; choose another, or none for the mean.")
        layers = weights if part.layer is None else weights[part.layer - 1 : part.layer]
        place = None if part.channel is None else self.channels.index(part.channel)
        chosen = layers if place is None else layers[:, place : place + 1]
        mean: FloatArray = chosen.mean(axis=(0, 1))
        return mean
