"""The candidates that a training step compares its pairs with: a share of the entities, redrawn each step.

Normalised hard sample mining looks for the hardest among all entities. A random quarter of them holds, at each step, a quarter of the hard ones, and
other ones at the next; mean, deviation and softmax are taken over what was drawn. On the benchmark sets that aligns as well as all entities do, at a
fraction of the time, for nothing but the drawn entities passes through the last layer, the proxies and the gates (benchmarks/RESULTS.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.config import LossConfig
from engine.util.arrays import IntArray
from engine.util.distributed import ALONE, Ranks


@dataclass(frozen=True)
class Sample:
    """What a step computes the final embeddings of, and the positions of its pairs and candidates among them.

    Attributes:
        rows: (n,) distinct stacked entities: the candidates of the source graph, those of the target graph, and members of the pairs that are
            candidates of another process. None: all entities, in their order.
        num_source, num_target: how many candidates there are of either graph.
        pairs: (B, 2) positions among the rows.
    """

    rows: Tensor | None
    num_source: int
    num_target: int
    pairs: Tensor


@dataclass(frozen=True)
class Sampling:
    """How candidates are drawn from the E1 + E2 entities of a stacked graph.

    Attributes:
        num_source, num_target: E1 and E2.
        share: of the entities of each graph that are drawn each step; the members of the step's pairs are among them.
        least: entities of both graphs below which a share of them is not enough.
        batch_size: pairs of a step, at most.
        ranks: the processes among which those drawn are divided.
    """

    num_source: int
    num_target: int
    share: float = 1.0
    least: int = 0
    batch_size: int = 1
    ranks: Ranks = ALONE

    @classmethod
    def of(cls, num_source: int, num_target: int, config: LossConfig, batch_size: int, ranks: Ranks = ALONE) -> Sampling:
        """As the settings say."""
        return cls(num_source, num_target, config.candidate_share, config.least_candidates, batch_size, ranks)

    @property
    def counts(self) -> tuple[int, int]:
        """How many entities of the source and of the target graph a step looks at: always as many, since new shapes cost time."""
        total = self.num_source + self.num_target
        share = min(1.0, max(self.share, self.least / max(total, 1)))
        return tuple(min(size, max(round(share * size), self.batch_size, self.ranks.size)) for size in (self.num_source, self.num_target))  # type: ignore[return-value]

    def draw(self, pairs: Tensor, seed: int) -> Sample:
        """The sample of a step.

        Args:
            pairs: (B, 2) int64 stacked indices of source and target.
            seed: the same one draws the same entities, in every process.
        """
        sizes = (self.num_source, self.num_target)
        if self.counts == sizes and self.ranks.size == 1:
            return Sample(None, *sizes, pairs)
        rng = np.random.default_rng([seed, 3])
        members = [np.unique(column) for column in pairs.cpu().numpy().T]
        starts = (0, self.num_source)
        drawn = [
            start + draw_with(part - start, count, size, rng) for start, part, count, size in zip(starts, members, self.counts, sizes, strict=True)
        ]
        own = [part[self.ranks.rank :: self.ranks.size] for part in drawn]
        others = np.setdiff1d(np.concatenate(members), np.concatenate(own), assume_unique=True)
        rows = np.concatenate([*own, others])
        place = np.empty(sum(sizes), dtype=np.int64)  # rows that are not written are never read
        place[rows] = np.arange(len(rows))
        positions = torch.from_numpy(place[pairs.cpu().numpy()]).to(pairs.device)
        return Sample(torch.from_numpy(rows).to(pairs.device), len(own[0]), len(own[1]), positions)


def draw_with(members: IntArray, count: int, size: int, rng: np.random.Generator) -> IntArray:
    """``count`` of the numbers below ``size``, ascending, with the given distinct ones among them."""
    if count >= size:
        return np.arange(size)
    chosen = np.zeros(size, dtype=bool)
    chosen[members] = True
    drawn = rng.choice(size, count, replace=False, shuffle=False)
    fresh = drawn[~chosen[drawn]]  # at least count - len(members)
    if len(members) + len(fresh) > count:  # without looking at their order, which is not random
        fresh = rng.permutation(fresh)[: count - len(members)]
    chosen[fresh] = True
    return np.flatnonzero(chosen)
