"""A run's proxies, opened for questions: how alike entities are to them, who uses which, and how alike two entities see them.

The attention of an entity over the P proxies is the softmax of its cosines (paper, section 4.2), which lie within 1 of 0: it is never far from an
equal share, and divergences between two entities are small. So attention is given as a multiple of the equal share, and a pair's divergence beside
those of known pairs and of pairs drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from engine.analysis.proxies import attention_divergence
from engine.data.knowledge_graph import SIDES, Side
from engine.runs.entities import Entity, other
from engine.runs.view import RunView
from engine.util.arrays import FloatArray, IntArray

Channel = Literal["entity", "relation"]
CHANNELS: tuple[Channel, ...] = ("entity", "relation")
BINS = 60
TINY = 1e-6
DRAWN_PAIRS = 2000
LINK_ROLES = ("train", "valid", "test")
KEPT_CHANNELS = len(CHANNELS)


class TensorOf(Protocol):
    """A stored tensor by file and key; raises where there is none."""

    def __call__(self, name: str, key: str) -> npt.NDArray[Any]: ...


@dataclass(frozen=True)
class ProxyAgreement:
    """Whether linked entities have the same nearest proxy.

    Attributes:
        links: known links that were asked.
        same: share of them whose two entities have the same nearest proxy; None without links.
        chance: the share to expect of unrelated entities.
        table: source, target (proxies) and links: how many have their source entity nearest to the one and their target entity to the other.
    """

    links: int
    same: float | None
    chance: float
    table: pd.DataFrame


@dataclass(frozen=True)
class Near:
    """An entity near a proxy.

    Attributes:
        counterpart: its known counterpart or best match among the other graph's entities near this proxy, if there is one.
    """

    rank: int
    entity: Entity
    similarity: float
    counterpart: Entity | None = None


@dataclass(frozen=True)
class PairAttention:
    """How two entities attend to the proxies of a channel.

    Attributes:
        divergence: Jensen-Shannon divergence of the two distributions, in bits.
        table: proxy, source, target: attention as multiples of the equal share; source_similarity, target_similarity: cosines. The proxy that
            the two attend to most together comes first.
        above_links: share of the known links (seed, validation, test) with a smaller divergence; None without links.
        above_drawn: share of the pairs drawn at random with a smaller divergence.
    """

    divergence: float
    table: pd.DataFrame
    above_links: float | None
    above_drawn: float


class ProxyView:
    """The proxies of a run. Cheap to make; what is costly is computed on first use and kept, so nothing that it returns may be changed.

    Args:
        view: the run.
        table, tensor: what the run stores; both raise where there is none.
    """

    def __init__(self, view: RunView, table: Callable[[str], pd.DataFrame], tensor: TensorOf) -> None:
        self.view = view
        self._table = table
        self._tensor = tensor
        self.distribution = lru_cache(maxsize=KEPT_CHANNELS)(self._distribution)
        self.use = lru_cache(maxsize=KEPT_CHANNELS)(self._use)
        self.agreement = lru_cache(maxsize=KEPT_CHANNELS)(self._agreement)
        self.drawn_divergence = lru_cache(maxsize=KEPT_CHANNELS)(self._drawn_divergence)
        self.known_divergence = lru_cache(maxsize=KEPT_CHANNELS)(self._known_divergence)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Channels with proxies; none for a model without proxy matching."""
        found = set(self._table("proxy_top")["channel"].unique().tolist())
        return tuple(channel for channel in CHANNELS if channel in found)

    def similarity(self, channel: Channel, side: Side) -> npt.NDArray[np.float32]:
        """(E, P) cosine of each entity with each proxy, within 0.0003."""
        return np.asarray(self._tensor("proxies", f"{side}_{channel}")).astype(np.float32)

    # All entities

    def _distribution(self, channel: Channel) -> pd.DataFrame:
        """graph, low, high, share: how the cosines of all entities with all proxies spread, in bins that both graphs share."""
        values = {side: self.similarity(channel, side).ravel() for side in SIDES}
        filled = [part for part in values.values() if len(part)]
        low, high = min(float(part.min()) for part in filled), max(float(part.max()) for part in filled)
        edges = np.linspace(low, max(high, low + TINY), BINS + 1)
        parts = [
            pd.DataFrame(
                {"graph": side, "low": edges[:-1], "high": edges[1:], "share": np.histogram(part, BINS, (edges[0], edges[-1]))[0] / max(len(part), 1)}
            )
            for side, part in values.items()
        ]
        return pd.concat(parts, ignore_index=True)

    def _use(self, channel: Channel) -> pd.DataFrame:
        """graph, proxy, nearest: share of the graph's entities that are nearest to this proxy (each proxy alike: 1 / P); attention: mean attention of
        the graph's entities, as a multiple of the equal share."""
        parts = []
        for side in SIDES:
            similarity = self.similarity(channel, side)
            entities, proxies = similarity.shape
            nearest = np.bincount(similarity.argmax(axis=1), minlength=proxies) / max(entities, 1)
            attention = relative_attention(similarity).mean(axis=0, dtype=np.float64) if entities else np.full(proxies, np.nan)
            parts.append(pd.DataFrame({"graph": side, "proxy": np.arange(proxies), "nearest": nearest, "attention": attention}))
        return pd.concat(parts, ignore_index=True)

    def _agreement(self, channel: Channel) -> ProxyAgreement:
        """Over the known links, seed links included; by chance: two entities drawn from the two graphs."""
        nearest = {side: self.similarity(channel, side).argmax(axis=1) for side in SIDES}
        links = self._table("links")
        links = links[links["role"].isin(LINK_ROLES)]
        met = pd.DataFrame({side: nearest[side][links[side].to_numpy()] for side in SIDES})
        same = float((met["source"] == met["target"]).mean()) if len(met) else None
        use = self.use(channel).pivot(index="proxy", columns="graph", values="nearest")
        chance = float((use["source"] * use["target"]).sum())
        return ProxyAgreement(len(met), same, chance, met.value_counts(sort=False).rename("links").reset_index())

    # One proxy

    def nearest(self, channel: Channel, proxy: int) -> Mapping[Side, list[Near]]:
        """The stored entities nearest to a proxy, of each graph, and which of them belong together; empty where there is no such proxy."""
        table = self._table("proxy_top")
        rows = table[(table["channel"] == channel) & (table["proxy"] == proxy)].sort_values("rank")
        of_side = {side: rows[rows["graph"] == side] for side in SIDES}
        forward, backward = self._facing(*(of_side[side]["entity"].tolist() for side in SIDES))
        return {"source": self._near("source", of_side["source"], forward), "target": self._near("target", of_side["target"], backward)}

    def _near(self, side: Side, rows: pd.DataFrame, partners: Mapping[int, int]) -> list[Near]:
        found = zip(rows["rank"].tolist(), rows["entity"].tolist(), rows["similarity"].tolist(), strict=True)
        across = self.view.graphs[other(side)]
        return [
            Near(rank, self.view.entity(side, one), value, across.entity(partners[one]) if one in partners else None) for rank, one, value in found
        ]

    def _facing(self, sources: list[int], targets: list[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Counterparts among two lists of entities, by the one and by the other: by a known link, else by a best match of either."""
        best, there = self.view.best, set(targets)
        pairs = [(one, two) for one in sources for two in self.view.counterparts("source", one) if two in there]
        pairs += [(one, best["source"][one]) for one in sources if best["source"].get(one) in there]
        pairs += [(best["target"][two], two) for two in targets if best["target"].get(two) in set(sources)]
        forward: dict[int, int] = {}
        backward: dict[int, int] = {}
        for one, two in pairs:
            forward.setdefault(one, two)
            backward.setdefault(two, one)
        return forward, backward

    # Pairs

    def _known_divergence(self, channel: Channel) -> pd.DataFrame:
        """The channel's rows of ``pair_divergence`` that are known links (seed, validation, test), the smallest divergence first."""
        table = self._table("pair_divergence")
        return table[(table["channel"] == channel) & table["role"].isin(LINK_ROLES)].sort_values("divergence", kind="stable", ignore_index=True)

    def _drawn_divergence(self, channel: Channel) -> FloatArray:
        """(n,) ascending divergences of pairs drawn at random from the two graphs, the same ones each time: what unrelated entities have."""
        draw = np.random.default_rng(0)
        sizes = [len(self.view.graphs[side]) for side in SIDES]
        if not all(sizes):
            return np.empty(0)
        drawn = [self._rows(channel, side, draw.integers(0, size, DRAWN_PAIRS)) for side, size in zip(SIDES, sizes, strict=True)]
        return np.sort(_divergence(*drawn))

    def pair(self, channel: Channel, source: int, target: int) -> PairAttention:
        """How any two entities of the two graphs attend to the proxies. The divergence is the stored one where the run has stored it.

        Raises:
            EntityError: no such entity.
        """
        self.view.entity("source", source)
        self.view.entity("target", target)
        pair: tuple[tuple[Side, int], ...] = (("source", source), ("target", target))
        rows = [self._rows(channel, side, np.array([index])) for side, index in pair]
        divergence = self._divergence_of(channel, source, target, rows)
        first, second = (relative_attention(row)[0] for row in rows)
        table = pd.DataFrame(
            {
                "proxy": np.arange(len(first)),
                "source": first,
                "target": second,
                "source_similarity": rows[0][0],
                "target_similarity": rows[1][0],
            }
        )
        order = np.argsort(-(first + second), kind="stable")
        known = self.known_divergence(channel)["divergence"].to_numpy()
        return PairAttention(
            divergence,
            table.iloc[order].reset_index(drop=True),
            share_below(known, divergence) if len(known) else None,
            share_below(self.drawn_divergence(channel), divergence),
        )

    def _rows(self, channel: Channel, side: Side, entities: IntArray) -> npt.NDArray[np.float32]:
        """(n, P) cosines of some entities; no others are read."""
        return np.asarray(self._tensor("proxies", f"{side}_{channel}")[entities]).astype(np.float32)

    def _divergence_of(self, channel: Channel, source: int, target: int, rows: list[npt.NDArray[np.float32]]) -> float:
        table = self._table("pair_divergence")
        stored = table[(table["source"] == source) & (table["target"] == target) & (table["channel"] == channel)]
        return float(stored["divergence"].iloc[0]) if len(stored) else float(_divergence(*rows)[0])

    def informative_pairs(self, channel: Channel, count: int) -> tuple[list[tuple[Entity, Entity]], list[tuple[Entity, Entity]]]:
        """Known links that the proxies see most alike and most differently, of named entities: somewhere to start."""
        known = self.known_divergence(channel)
        pairs = list(zip(known["source"].tolist(), known["target"].tolist(), strict=True))
        return self._named_pairs(pairs, count), self._named_pairs(pairs[::-1], count)

    def _named_pairs(self, pairs: list[tuple[int, int]], count: int) -> list[tuple[Entity, Entity]]:
        """The first pairs whose entities both have labels; where none has, the first ones."""
        found = ((self.view.entity("source", one), self.view.entity("target", two)) for one, two in pairs)
        named = list(islice(((one, two) for one, two in found if one.label and two.label), count))
        return named or [(self.view.entity("source", one), self.view.entity("target", two)) for one, two in pairs[:count]]


def relative_attention(similarity: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """(n, P) softmax of each row as a multiple of the equal share 1 / P."""
    raised = np.exp(similarity)
    relative: npt.NDArray[np.float32] = raised / raised.mean(axis=1, keepdims=True)
    return relative


def share_below(ascending: FloatArray, value: float) -> float:
    """Share of sorted values that are smaller; 0 where there are none."""
    return float(np.searchsorted(ascending, value)) / max(len(ascending), 1)


def log_histogram(groups: Mapping[str, FloatArray], bins: int = BINS) -> pd.DataFrame:
    """group, low, high, share: positive values in bins of equal ratio that all groups share; zeros count as the smallest positive value."""
    values = np.concatenate(list(groups.values()) or [np.empty(0)])
    positive = values[values > 0]
    if not len(positive):
        return pd.DataFrame({"group": pd.Series(dtype="str"), **{name: pd.Series(dtype="float64") for name in ("low", "high", "share")}})
    least, most = float(positive.min()), float(positive.max())
    edges = np.geomspace(least, max(most, least * 1.01), bins + 1)
    edges[0], edges[-1] = least, max(most, least * 1.01)  # which rounding may leave outside
    parts = [
        pd.DataFrame(
            {"group": name, "low": edges[:-1], "high": edges[1:], "share": np.histogram(np.maximum(part, least), edges)[0] / max(len(part), 1)}
        )
        for name, part in groups.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _divergence(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> FloatArray:
    """(n,) divergence of each row of the one (n, P) from the same row of the other."""
    count: IntArray = np.arange(len(first))
    return attention_divergence(torch.from_numpy(np.concatenate([first, second])), count, count + len(first))
