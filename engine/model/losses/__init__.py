"""Losses by name: every module of this package that registers one with :func:`register_loss`."""

from __future__ import annotations

import importlib
import pkgutil

from engine.config import LossConfig
from engine.errors import ConfigError
from engine.model.losses.base import LOSSES, Loss, NegativeCandidates, register_loss
from engine.model.losses.baselines import Triplet, Truncated, softmax_cross_entropy
from engine.model.losses.nhsm import NormalizedHardSampleMining
from engine.util.distributed import ALONE, Ranks

__all__ = [
    "LOSSES",
    "Loss",
    "NegativeCandidates",
    "NormalizedHardSampleMining",
    "Triplet",
    "Truncated",
    "build_loss",
    "register_loss",
    "softmax_cross_entropy",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def build_loss(config: LossConfig, num_source: int, num_target: int, ranks: Ranks = ALONE) -> Loss:
    """The configured loss over embeddings that begin with ``num_source`` candidates of the source and ``num_target`` of the target graph.

    Raises:
        ConfigError: several processes, and a loss that cannot be divided among them.
    """
    if ranks.size > 1 and not LOSSES[config.kind].divided:
        raise ConfigError(f"loss.kind={config.kind} trains in one process only; use one, or loss.kind=nhsm.")
    return LOSSES[config.kind].build(config, NegativeCandidates(num_source, num_target, config.candidates), ranks)
