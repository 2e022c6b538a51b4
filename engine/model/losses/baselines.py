"""The losses that the paper compares with (section 5 and its loss ablation): softmax, truncated uniform and plain triplet.

They exist for experiments. All take squared L2 distance, as the paper does, and negatives for both ends of a pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.config import LossConfig
from engine.model.losses.base import NegativeCandidates, register_loss
from engine.model.losses.nhsm import NormalizedHardSampleMining, PairPlaces, Side, block_rows, sides
from engine.util.devices import upload
from engine.util.distributed import Ranks
from engine.util.threads import cut


def softmax_cross_entropy(candidates: NegativeCandidates, margin: float) -> NormalizedHardSampleMining:
    """LogSumExp without normalisation at lambda = 1: softmax with cross-entropy (paper section 5.1).

    Its softmax is flat, so that no candidate can be left out.
    """
    return NormalizedHardSampleMining(candidates, margin=margin, scale=1.0, shift=0.0, normalise=False, tail_mass=0.0)


@register_loss("softmax", divided=True)
def _build_softmax(config: LossConfig, candidates: NegativeCandidates, ranks: Ranks) -> NormalizedHardSampleMining:
    return replace(softmax_cross_entropy(candidates, config.margin), ranks=ranks)


@dataclass(frozen=True)
class Triplet:
    """[gamma + |h_u - h_v|^2 - |h_u - h_e|^2]_+ with ``negatives`` uniformly drawn candidates e a pair and side."""

    candidates: NegativeCandidates
    margin: float = 1.0
    negatives: int = 5

    def __call__(self, embeddings: Tensor, pairs: Tensor, *, seed: int = 0, rounded: bool = False) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        parts = []
        for side in sides(pairs, self.candidates):
            drawn = torch.randint(side.low, side.high, (len(pairs), self.negatives), generator=generator)
            parts.append(hinge(embeddings, side, upload(drawn.numpy(), pairs.device), self.margin))
        return torch.stack(parts).sum()


@register_loss("triplet")
def _build_triplet(config: LossConfig, candidates: NegativeCandidates, ranks: Ranks) -> Triplet:
    return Triplet(candidates, margin=config.margin)


@dataclass(frozen=True)
class Truncated:
    """The same with the ``hardest`` nearest candidates as negatives (truncated uniform negative sampling of BootEA, without the draw)."""

    candidates: NegativeCandidates
    margin: float = 1.0
    hardest: int = 10

    def __call__(self, embeddings: Tensor, pairs: Tensor, *, seed: int = 0, rounded: bool = False) -> Tensor:
        parts = [hinge(embeddings, side, nearest(embeddings.detach(), side, self.hardest), self.margin) for side in sides(pairs, self.candidates)]
        return torch.stack(parts).sum()


@register_loss("truncated")
def _build_truncated(config: LossConfig, candidates: NegativeCandidates, ranks: Ranks) -> Truncated:
    return Truncated(candidates, margin=config.margin, hardest=config.hardest)


def hinge(embeddings: Tensor, side: Side, negatives: Tensor, margin: float) -> Tensor:
    """Mean over B pairs of the mean hinge over their (B, n) negatives; drawing the pair itself counts as no loss."""
    anchors, others = embeddings[side.anchors], embeddings[side.others]
    positive = (anchors - others).square().sum(-1, keepdim=True)  # (B, 1)
    negative = (anchors.unsqueeze(1) - embeddings[negatives]).square().sum(-1)  # (B, n)
    itself = (negatives == side.anchors.unsqueeze(1)) | (negatives == side.others.unsqueeze(1))
    return torch.relu(margin + positive - negative).masked_fill(itself, 0).mean()


def nearest(embeddings: Tensor, side: Side, count: int) -> Tensor:
    """(B, count) stacked indices of the candidates nearest to each anchor, the pair itself left out; in row blocks."""
    pool = embeddings[side.low : side.high]
    norms = pool.square().sum(-1)
    count = min(count, len(pool))
    found = []
    step = block_rows(len(pool), embeddings.element_size())
    for rows in cut(len(side.anchors), step):
        block = Side(side.anchors[rows], side.others[rows], side.low, side.high)
        closeness = PairPlaces.of(block).set(2 * embeddings[block.anchors] @ pool.T - norms, -torch.inf)
        found.append(closeness.topk(count, dim=1).indices + side.low)
    return torch.cat(found)
