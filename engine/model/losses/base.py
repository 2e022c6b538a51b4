"""What all losses share: the batch they see and the candidates they draw negatives from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

from engine.config import LossConfig
from engine.util.distributed import Ranks
from engine.util.registry import Registry


@dataclass(frozen=True)
class NegativeCandidates:
    """Where negatives come from: the E1 candidates of the source graph, stacked before the E2 of the target graph.

    ``scope`` "both": every entity of both graphs (authors' code); "other": those of the graph that the anchor is not in (paper's formula).
    """

    num_source: int
    num_target: int
    scope: Literal["both", "other"] = "both"

    def columns(self, anchor_side: Literal["source", "target"]) -> tuple[int, int]:
        """First and last + 1 stacked index of an anchor's candidates."""
        total = self.num_source + self.num_target
        if self.scope == "both":
            return 0, total
        return (self.num_source, total) if anchor_side == "source" else (0, self.num_source)


class Loss(Protocol):
    """A loss over a batch of seed pairs."""

    def __call__(self, embeddings: Tensor, pairs: Tensor, *, seed: int, rounded: bool = False) -> Tensor:
        """The mean loss of B pairs.

        Args:
            embeddings: (n, D) final embeddings, after dropout, not normalised: first those of the candidates, then any others that pairs name.
            pairs: (B, 2) int64 rows of source and target.
            seed: for losses that draw; the same seed draws the same negatives.
            rounded: candidates may be compared by products of bfloat16 vectors where that only saves time.
        """
        ...


Build = Callable[[LossConfig, NegativeCandidates, Ranks], Loss]


@dataclass(frozen=True)
class RegisteredLoss:
    """A kind of loss.

    Attributes:
        build: makes it from the settings; ``Ranks`` are the processes that the candidates are divided among.
        divided: whether its candidates can be divided among several processes.
    """

    build: Build
    divided: bool


LOSSES: Registry[RegisteredLoss] = Registry("loss")
"""By name. A test compares the names with the choices of ``loss.kind`` in engine/config.py."""


def register_loss(name: str, *, divided: bool = False) -> Callable[[Build], Build]:
    """Decorator of a function that builds a loss: makes it available as ``loss.kind=NAME``."""
    return LOSSES.register(name, lambda build: RegisteredLoss(build, divided))
