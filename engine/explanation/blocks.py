"""The cosine of two entities, taken apart by channel and layer: a sum that is exact, because a dot product is one.

    cos(s, t) = sum over channels c and layers l of f_s[c, l] . f_t[c, l] / (|f_s| |f_t|)

with final = multi-hop - what proxies and gate subtract, f = h - p, so that each block is h_s . h_t and a proxy correction, f_s . f_t - h_s . h_t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.explanation.frozen import FrozenEncoder, FrozenVectors


@dataclass(frozen=True)
class ScoreBlock:
    """One channel and layer's share of a cosine.

    Attributes:
        multi_hop: of the multi-hop embeddings, before proxies and gate.
        proxies: what proxies and gate add to it (mostly they subtract).
    """

    channel: str
    layer: int
    multi_hop: float
    proxies: float

    @property
    def value(self) -> float:
        return self.multi_hop + self.proxies


@dataclass(frozen=True)
class CosineBlocks:
    """A cosine as a sum of blocks.

    Attributes:
        blocks: channel by channel, each by layer.
        norms: |f_s| |f_t|, which all dot products are divided by; 0 where one of the vectors is zero, and then every part is.
    """

    blocks: tuple[ScoreBlock, ...]
    norms: float

    @property
    def cosine(self) -> float:
        return sum(block.value for block in self.blocks)

    @property
    def multi_hop(self) -> float:
        return sum(block.multi_hop for block in self.blocks)

    @property
    def scale(self) -> float:
        """What a dot product is multiplied by to be a share of the cosine."""
        return 1 / self.norms if self.norms else 0.0


def shown_layers(encoder: FrozenEncoder) -> range:
    """The layers that embeddings are made of: all, or without multi-hop embeddings the last."""
    count = encoder.config.layers
    return range(count + 1) if encoder.config.multi_hop else range(count, count + 1)


def cosine_blocks(snapshot: FrozenVectors) -> CosineBlocks:
    """The cosine of a snapshot's first two entities."""
    encoder, width = snapshot.encoder, snapshot.encoder.dim
    final, hidden = snapshot.final[:2], snapshot.hidden[:2]  # (2, C, D)
    norms = float(np.prod(np.linalg.norm(final.reshape(2, -1), axis=1)))
    scale = 1 / norms if norms else 0.0
    blocks = []
    for c, channel in enumerate(encoder.channels):
        for at, layer in enumerate(shown_layers(encoder)):
            part = slice(at * width, (at + 1) * width)
            multi_hop, whole = (float(x[0, c, part] @ x[1, c, part]) * scale for x in (hidden, final))
            blocks.append(ScoreBlock(channel, layer, multi_hop, whole - multi_hop))
    return CosineBlocks(tuple(blocks), norms)
