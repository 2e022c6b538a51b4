"""Dual-AMN (Mao et al., WWW 2021, section 4): the whole encoder.

Two input channels run over the stacked graph of both knowledge graphs. They share the relation features, which reflect messages and score
attention, and have their own attention vectors, proxies and gate:

    entity channel    layer 0 = tanh(mean of H^e over an entity and its distinct neighbours)
    relation channel  layer 0 = tanh(mean of H^r over an entity's distinct directed relations)
    layer l + 1       = tanh(attention-weighted sum of reflected neighbours)
    final             = [layer 0 | ... | layer L] minus what gate and proxies subtract; the channels side by side
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from engine.config import EncoderConfig
from engine.model.adjacency import Adjacency
from engine.model.attention import MessageGraph, RowMean, next_layer
from engine.model.dropout import NOTHING, Dropped, dropout
from engine.model.exchange import Neighbours
from engine.model.proxies import match_proxies, unit_rows
from engine.model.shard import Shard
from engine.util.threads import cut

CHANNELS = ("entity", "relation")
HELD_ROWS = 2**15
"""Entities that are computed to the end at a time where all are wanted."""
DRAWN_ROWS = 2**16
"""Entities whose features are drawn at a time where a process keeps its own; a multiple of 16, which the generator fills at a time."""


class DualAMN(nn.Module):
    """The encoder over one stacked graph of E entities and 2R directed relations.

    Parameters (float32 unless cast): ``entity_features`` (E, d), ``relation_features`` (2R, d), ``attention`` (L, C, d), ``proxies`` (C, P, D),
    ``gate_weight`` (C, D, D), ``gate_bias`` (C, D).

    With a ``shard``, this is what one of several processes computes: ``adjacency`` is of the shard's entities, E and all row numbers are
    those of its own entities, and all processes call :meth:`forward` and :meth:`embed` together.
    """

    def __init__(
        self, adjacency: Adjacency, config: EncoderConfig, *, seed: int = 0, device: torch.device | str = "cpu", shard: Shard | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.adjacency = adjacency
        self.shard = shard
        self.channels = CHANNELS if config.channels == "both" else (config.channels,)
        neighbours = Neighbours.alone(adjacency.num_entities) if shard is None else shard.neighbours
        self.graph = MessageGraph(adjacency, device, neighbours)
        self.mean_neighbours = RowMean(adjacency.neighbours, device, neighbours)
        self.mean_relations = RowMean(adjacency.relations.first(neighbours.own), device)
        self.mean_members = RowMean(adjacency.members, device)
        self._initialise(seed)
        self.to(device)

    @property
    def num_entities(self) -> int:
        """E: entities that embeddings are computed of."""
        return self.adjacency.num_entities if self.shard is None else len(self.shard.own)

    def _initialise(self, seed: int) -> None:
        """Draw all parameters from one generator, on the CPU, so that a seed gives the same start on every device and to any number of processes."""
        config, generator = self.config, torch.Generator().manual_seed(seed)
        relations = 2 * self.adjacency.num_relations
        count, dim, width = config.num_channels, config.dim, config.width

        def uniform(*shape: int, limit: float) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape).uniform_(-limit, limit, generator=generator))

        def features(rows: int) -> nn.Parameter:
            if config.initializer == "uniform":
                return uniform(rows, dim, limit=0.05)
            return nn.Parameter(torch.empty(rows, dim).normal_(0, math.sqrt(2 / max(rows, 1)), generator=generator))

        if self.shard is None:
            self.entity_features = features(self.adjacency.num_entities)
        elif config.initializer == "uniform":
            self.entity_features = nn.Parameter(drawn_rows(self.shard, lambda rows: uniform(rows, dim, limit=0.05).data))
        else:  # normal numbers are not drawn one by one: drawn in parts they would be others
            self.entity_features = nn.Parameter(features(self.shard.num_entities).data[self.shard.own].clone())
        self.relation_features = features(relations)
        self.attention = uniform(config.layers, count, dim, limit=glorot(dim, 1))
        self.proxies = uniform(count, config.proxies, width, limit=glorot(config.proxies, width))
        self.gate_weight = uniform(count, width, width, limit=glorot(width, width))
        self.gate_bias = nn.Parameter(torch.zeros(count, width))

    def forward(self, rows: Tensor | None = None, *, dropout_seed: int | None = None, rounded: bool = False, messages: int | None = None) -> Tensor:
        """(n, C D) final embeddings: the entity channel's blocks, then the relation channel's; each by layer.

        Args:
            rows: (n,) distinct entities that are wanted; all by default. Only what they depend on is computed.
            dropout_seed: draws the dropout of a training step, the same for an entity whatever others are wanted; None leaves it out.
            rounded: lets proxy matching multiply bfloat16 values.
            messages: how many messages the rows receive, where that is known: a graphics card need not be asked then.
        """
        dropped = Dropped(0.0 if dropout_seed is None else self.config.dropout, dropout_seed or 0, self._stacked(rows))
        return self._matched(self._side_by_side(list(self.layer_outputs(rows, messages))), dropped, rounded=rounded)

    def _stacked(self, rows: Tensor | None) -> Tensor | None:
        """Stacked indices of rows: what an entity's dropout is drawn by."""
        if self.shard is None:
            return rows
        return self.shard.own_index if rows is None else self.shard.own_index[rows]

    def _matched(self, hidden: Tensor, dropped: Dropped = NOTHING, *, rounded: bool = False) -> Tensor:
        """(n, C, D) multi-hop -> (n, C D) final embeddings."""
        if not self.config.proxy_matching:
            return dropout(hidden.flatten(1), dropped)
        return match_proxies(hidden, self.proxies, self.gate_weight, self.gate_bias, dropped, rounded=rounded)

    @torch.no_grad()
    def embed(self) -> Tensor:
        """(E, C D) final embeddings without dropout, in the place of the multi-hop embeddings; beside them, only two layers are held whole."""
        dim, place = self.config.dim, 0
        hidden = self.entity_features.new_empty((self.num_entities, self.config.num_channels, self.config.width))
        for output in self.layer_outputs():
            hidden[:, :, place : place + dim] = output
            place += dim * self.config.multi_hop
            del output  # before the next layer comes
        everything = hidden.flatten(1)
        for rows in cut(self.num_entities, HELD_ROWS):
            everything[rows] = self._matched(hidden[rows])
        return everything

    def multi_hop(self, rows: Tensor | None = None) -> Tensor:
        """(n, C, D) multi-hop embeddings of the given entities, before proxies and gate (paper eq. 4)."""
        return self._side_by_side(list(self.layer_outputs(rows)))

    @torch.no_grad()
    def multi_hop_blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """The multi-hop embeddings of all entities, some rows at a time."""
        layers = list(self.layer_outputs())
        for rows in cut(self.num_entities, HELD_ROWS):
            yield rows, self._side_by_side([layer[rows] for layer in layers])

    def _side_by_side(self, layers: Sequence[Tensor]) -> Tensor:
        """L + 1 of (n, C, d) -> (n, C, D)."""
        return torch.stack(list(layers), dim=2).flatten(2) if self.config.multi_hop else layers[-1]

    def layer_outputs(self, rows: Tensor | None = None, messages: int | None = None) -> Iterator[Tensor]:
        """L + 1 tensors (n, C, d): layer 0 and each round of messages, after tanh, of the given entities.

        Of the last layer nothing else is computed; those before it are needed whole, for what the neighbours send.
        """
        vectors, sums = self.unit_vectors(), self.inputs()
        for layer in range(self.config.layers):
            scores, reflect = self.scores(vectors, layer), self.config.relational_projection
            wanted, number = (rows, messages) if layer == self.config.layers - 1 else (None, None)
            sums, output = next_layer(self.graph, sums, vectors, scores, reflect=reflect, rows=wanted, messages=number, taken=rows)
            yield output
            del output
        last = sums if self.config.layers or rows is None else sums.index_select(0, rows)
        yield last.tanh() if torch.is_grad_enabled() else last.tanh_()

    def inputs(self) -> Tensor:
        """(E, C, d) what layer 0 is the tanh of."""
        features = {"entity": lambda: self.mean_neighbours(self.entity_features), "relation": lambda: self.mean_relations(self.relation_features)}
        return torch.stack([features[channel]() for channel in self.channels], dim=1)

    def unit_vectors(self) -> Tensor:
        """(S, d) the relations that reflect and score, at length 1."""
        if self.config.message_unit == "triple":
            return unit_rows(self.relation_features)
        return unit_rows(self.mean_members(self.relation_features))

    def scores(self, vectors: Tensor, layer: int) -> Tensor:
        """(S, C) attention scores v . r of a layer (paper eq. 3, before the softmax)."""
        if not self.config.relational_attention:
            return vectors.new_zeros((len(vectors), len(self.channels)))
        return vectors @ self.attention[layer].T


def drawn_rows(shard: Shard, draw: Callable[[int], Tensor]) -> Tensor:
    """Of (E, d) random numbers, drawn a number of rows after the other, those of the own entities."""
    parts = []
    for rows in cut(shard.num_entities, DRAWN_ROWS):
        low, high = np.searchsorted(shard.own, [rows.start, rows.stop])
        parts.append(draw(rows.stop - rows.start)[shard.own[low:high] - rows.start])
    return torch.cat(parts)


def glorot(fan_in: int, fan_out: int) -> float:
    """Limit of the Glorot uniform initialiser, which the authors' code leaves at its default."""
    return math.sqrt(6 / (fan_in + fan_out))
