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
from engine.model.adjacency import to_torch
from engine.model.exchange import Exchange
from engine.model.shard import Shard
from engine.util.arrays import IntArray, places
from engine.util.devices import upload

HERE = torch.device("cpu")


@dataclass(frozen=True)
class Sample:
    """What a step computes the final embeddings of, and the positions of its pairs and candidates among them.

    Attributes:
        rows: (n,) distinct entities: the candidates of the source graph, then those of the target graph. None: all entities, in their order. With a
            shard, its own candidates, as local indices.
        num_source, num_target: how many candidates there are of either graph.
        pairs: (B, 2) positions among the rows, and after them those that ``exchange`` fetches.
        exchange: fetches the members of the pairs that other processes own; None with one process.
        drawn: the rows once more, where the program itself can read them.
    """

    rows: Tensor | None
    num_source: int
    num_target: int
    pairs: Tensor
    exchange: Exchange | None = None
    drawn: IntArray | None = None


@dataclass(frozen=True)
class Sampling:
    """How candidates are drawn from the E1 + E2 entities of a stacked graph.

    Attributes:
        num_source, num_target: E1 and E2.
        share: of the entities of each graph that are drawn each step; the members of the step's pairs are among them.
        least: entities of both graphs below which a share of them is not enough.
        batch_size: pairs of a step, at most.
        shard: what this one of several processes holds: those drawn are divided as the entities are.
        device: where samples are used.
    """

    num_source: int
    num_target: int
    share: float = 1.0
    least: int = 0
    batch_size: int = 1
    shard: Shard | None = None
    device: torch.device = HERE

    @classmethod
    def of(
        cls,
        num_source: int,
        num_target: int,
        config: LossConfig,
        batch_size: int,
        shard: Shard | None = None,
        device: torch.device = HERE,
    ) -> Sampling:
        """As the settings say."""
        return cls(num_source, num_target, config.candidate_share, config.least_candidates, batch_size, shard, device)

    @property
    def counts(self) -> tuple[int, int]:
        """How many entities of the source and of the target graph a step looks at: always as many, whatever the number of processes."""
        total = self.num_source + self.num_target
        share = min(1.0, max(self.share, self.least / max(total, 1)))
        return tuple(min(size, max(round(share * size), self.batch_size)) for size in (self.num_source, self.num_target))  # type: ignore[return-value]

    def draw(self, pairs: Tensor, seed: int) -> Sample:
        """The sample of a step, drawn here and sent to the device.

        Args:
            pairs: (B, 2) int64 stacked indices of source and target, on the CPU.
            seed: the same one draws the same entities, in every process.
        """
        sizes = (self.num_source, self.num_target)
        if self.counts == sizes and self.shard is None:
            return Sample(None, *sizes, upload(pairs.numpy(), self.device))
        rng = np.random.default_rng([seed, 3])
        members = [np.unique(column) for column in pairs.numpy().T]
        starts = (0, self.num_source)
        drawn = [
            start + draw_with(part - start, count, size, rng) for start, part, count, size in zip(starts, members, self.counts, sizes, strict=True)
        ]
        if self.shard is not None:
            return own_sample(drawn, np.concatenate(members), pairs, self.shard)
        rows = np.concatenate(drawn)
        at = pair_rows(pairs, places(rows, sum(sizes)), self.device)
        return Sample(upload(rows, self.device), len(drawn[0]), len(drawn[1]), at, drawn=rows)


def own_sample(drawn: list[IntArray], members: IntArray, pairs: Tensor, shard: Shard) -> Sample:
    """A process's share of a step: its own among the entities drawn, and the pairs' members of the others, which it fetches."""
    rank, size = shard.ranks.rank, shard.ranks.size
    own = [part[shard.owners[part] == rank] for part in drawn]
    owners = shard.owners[members]
    mine, others = members[owners == rank], members[owners != rank]
    others = others[np.argsort(shard.owners[others], kind="stable")]
    place = places(np.concatenate([*own, others]), shard.num_entities)
    elsewhere = np.arange(size) != rank
    exchange = Exchange(
        shard.ranks,
        to_torch(np.tile(place[mine], size - 1), shard.device),
        (elsewhere * len(mine)).tolist(),
        (elsewhere * np.bincount(owners, minlength=size)).tolist(),
    )
    rows = np.searchsorted(shard.own, np.concatenate(own))
    return Sample(upload(rows, shard.device), len(own[0]), len(own[1]), pair_rows(pairs, place, shard.device), exchange, rows)


def pair_rows(pairs: Tensor, place: IntArray, device: torch.device) -> Tensor:
    return upload(place[pairs.numpy()], device)


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
