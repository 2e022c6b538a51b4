"""Losses by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.config import LossConfig
from engine.errors import ConfigError
from engine.model.losses.base import Loss, NegativeCandidates
from engine.model.losses.baselines import Triplet, Truncated, softmax_cross_entropy
from engine.model.losses.nhsm import NormalizedHardSampleMining
from engine.util.distributed import ALONE, Ranks

__all__ = [
    "DIVIDED",
    "LOSSES",
    "Loss",
    "NegativeCandidates",
    "NormalizedHardSampleMining",
    "Triplet",
    "Truncated",
    "build_loss",
    "softmax_cross_entropy",
]

LOSSES: dict[str, Callable[[LossConfig, NegativeCandidates, Ranks], Loss]] = {
    "nhsm": lambda config, candidates, ranks: NormalizedHardSampleMining(
        candidates, margin=config.margin, scale=config.scale, shift=config.shift, tail_mass=config.tail_mass, most_kept=config.most_kept, ranks=ranks
    ),
    "softmax": lambda config, candidates, ranks: replace(softmax_cross_entropy(candidates, config.margin), ranks=ranks),
    "truncated": lambda config, candidates, ranks: Truncated(candidates, margin=config.margin, hardest=config.hardest),
    "triplet": lambda config, candidates, ranks: Triplet(candidates, margin=config.margin),
}
DIVIDED = ("nhsm", "softmax")
"""Losses whose candidates can be divided among several processes."""


def build_loss(config: LossConfig, num_source: int, num_target: int, ranks: Ranks = ALONE) -> Loss:
    """The configured loss over embeddings that begin with ``num_source`` candidates of the source and ``num_target`` of the target graph.

    Raises:
        ConfigError: several processes, and a loss that cannot be divided among them.
    """
    if ranks.size > 1 and config.kind not in DIVIDED:
        raise ConfigError(f"loss.kind={config.kind} trains in one process only; use one, or loss.kind=nhsm.")
    return LOSSES[config.kind](config, NegativeCandidates(num_source, num_target, config.candidates), ranks)
