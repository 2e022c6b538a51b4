"""Losses by name."""

from __future__ import annotations

from collections.abc import Callable

from engine.config import LossConfig
from engine.losses.base import Candidates, Loss
from engine.losses.comparisons import Triplet, Truncated, softmax_cross_entropy
from engine.losses.normalized_hard_sample_mining import NormalizedHardSampleMining

__all__ = ["LOSSES", "Candidates", "Loss", "NormalizedHardSampleMining", "Triplet", "Truncated", "build_loss", "softmax_cross_entropy"]

LOSSES: dict[str, Callable[[LossConfig, Candidates], Loss]] = {
    "nhsm": lambda config, candidates: NormalizedHardSampleMining(
        candidates, margin=config.margin, scale=config.scale, shift=config.shift, tail_mass=config.tail_mass
    ),
    "softmax": lambda config, candidates: softmax_cross_entropy(candidates, config.margin),
    "truncated": lambda config, candidates: Truncated(candidates, margin=config.margin, hardest=config.hardest),
    "triplet": lambda config, candidates: Triplet(candidates, margin=config.margin),
}


def build_loss(config: LossConfig, num_source: int, num_target: int) -> Loss:
    """The configured loss over a stacked graph of ``num_source`` and ``num_target`` entities."""
    return LOSSES[config.kind](config, Candidates(num_source, num_target, config.candidates))
