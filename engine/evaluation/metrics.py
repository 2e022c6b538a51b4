"""Hits@k, MRR and mean rank with confidence intervals, by the protocol of the paper (section 6.1), in both directions.

- Embeddings are L2-normalised here and only here: training works on vectors as they come.
- Scores are CSLS within the pool. The pool is either all entities of the evaluated links ("test": the published protocol) or all entities ("all").
- A query is an entity with at least one known counterpart. Where links are not one-to-one its rank is that of its best-ranked counterpart, and its
  other counterparts are not counted as rivals: the question is whether its list of matches begins with a right answer.
- Links with an end in no triple are no test links: only chance, or the emptiness of both ends, would align these. They are set aside on reading
  (:mod:`engine.data.assembly`), and the protocol says how many.
- Candidates that score as high as the counterpart are counted as better ones: ties are no hits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.decoding.candidates import Candidates, list_length, listed_candidates
from engine.errors import DataError
from engine.search import (
    Hubness,
    LinkRanks,
    QueryRanks,
    SearchIndex,
    Similarity,
    UnscaledEmbeddings,
    csls_topk,
    get_index,
    held,
    hubness,
    recording,
    true_ranks,
)
from engine.search.similarity import accepting_matrices
from engine.search.tiles import HeldSimilarity
from engine.util.arrays import FloatArray, IntArray
from engine.util.memory import give_back
from engine.util.text import count

Pool = Literal["test", "all"]

HITS_AT = (1, 5, 10)
METRICS = (*(f"hits@{k}" for k in HITS_AT), "mrr", "mean_rank")
CONFIDENCE = 0.95
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
DRAWS_AT_ONCE = 2**22
"""Counts that the bootstrap holds in memory."""


@dataclass(frozen=True)
class DirectionMetrics:
    """Figures of one direction; all None where there is nothing to evaluate.

    Attributes:
        hits_at_1, hits_at_5, hits_at_10: share of the queries whose counterpart is among the best 1, 5, 10.
        mrr: mean of 1 / rank.
        mean_rank: mean of the ranks.
        intervals: (low, high) 95% confidence intervals by metric name: of rates ("hits@1", "hits@5", "hits@10") score intervals
            (:func:`wilson_interval`), of "mrr" a bootstrap's; empty if not asked for.
        queries: (q,) entities of the graph that is searched from, distinct, ascending.
        ranks: (q,) rank of each query's best counterpart.
    """

    hits_at_1: float | None
    hits_at_5: float | None
    hits_at_10: float | None
    mrr: float | None
    mean_rank: float | None
    intervals: Mapping[str, tuple[float, float]]
    queries: IntArray  # (q,)
    ranks: IntArray  # (q,)

    def to_dict(self) -> dict[str, Any]:
        """The figures, without the ranks, in plain values for JSON."""
        values = (self.hits_at_1, self.hits_at_5, self.hits_at_10, self.mrr, self.mean_rank)
        intervals = {name: list(interval) for name, interval in self.intervals.items()}
        return {**dict(zip(METRICS, values, strict=True)), "queries": len(self.queries), "intervals": intervals}


@dataclass(frozen=True)
class Evaluation:
    """Figures of both directions, and how they came about.

    Attributes:
        source_to_target: source entities look for their counterparts among the pool's target entities.
        target_to_source: the other way round; the direction that Dual-AMN's authors published.
        pool: "test" or "all".
        protocol: one line to print beside every figure.
        source_pool, target_pool: (n,), (m,) entities of the pool, ascending.
        hubness: CSLS terms of the pool's entities, in this order.
    """

    source_to_target: DirectionMetrics
    target_to_source: DirectionMetrics
    pool: Pool
    protocol: str
    source_pool: IntArray  # (n,)
    target_pool: IntArray  # (m,)
    hubness: Hubness

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``metrics.json`` stores them."""
        return {
            "source_to_target": self.source_to_target.to_dict(),
            "target_to_source": self.target_to_source.to_dict(),
            "pool": self.pool,
            "protocol": self.protocol,
        }


class Selectable(Protocol):
    """Similarities of E1 source and E2 target entities, of which a pool is looked at."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def select(self, rows: Tensor, columns: Tensor) -> Similarity: ...


def with_pool(similarity: Similarity, links: IntArray) -> Similarity:
    """The similarity, which keeps what a search of all entities computes of the "test" pool of some links, for :func:`search_pool`."""
    rows, columns = (torch.from_numpy(pool_entities(links[:, side], similarity.shape[side], "test")) for side in range(2))
    return recording(similarity, rows, columns)


@dataclass(frozen=True)
class SearchedPool:
    """A pool in which links are looked for, and what every evaluation of them needs from it.

    Attributes:
        links: (L, 2) source and target entities.
        pool: "test" or "all".
        source_pool, target_pool: (n,), (m,) entities of the pool, ascending.
        similarity: (n, m) of the pool; None where its candidates are all that is needed from now on.
        index: finds its neighbours.
        hubness: CSLS terms of the pool's entities.
        ranks: of the links' entities, by CSLS; always exact.
        untested: known links that were left out beforehand, since an end is in no triple.
        candidates: of decoders, where they were searched for at once.
    """

    links: IntArray  # (L, 2)
    pool: Pool
    source_pool: IntArray  # (n,)
    target_pool: IntArray  # (m,)
    similarity: Similarity | None
    index: SearchIndex
    hubness: Hubness
    ranks: LinkRanks
    untested: int = 0
    candidates: Candidates | None = None


@accepting_matrices(UnscaledEmbeddings)
@torch.no_grad()
def search_pool(
    similarity: Selectable,
    links: IntArray,
    k: int = 10,
    pool: Pool = "test",
    *,
    index: str | SearchIndex = "exact",
    untested: int = 0,
    top: int | None = 0,
) -> SearchedPool:
    """What all evaluations on the same links share: see :func:`evaluate_links` for the other arguments and what is raised.

    The pool's similarities stay in memory where they take no more than ``engine.search.tiles.HELD_BYTES``, so that they are computed once. Those of a
    larger pool are computed once for its hubness terms, ranks and ``top`` best matches, which decoders choose from (None: as many as
    :func:`engine.decoding.candidates.list_length` says; 0: none, where there are no decoders).
    """
    links = checked_links(links, *similarity.shape)
    source_pool, target_pool = (pool_entities(links[:, side], size, pool) for side, size in enumerate(similarity.shape))
    chosen = get_index(index)
    pooled = held(similarity.select(torch.from_numpy(source_pool), torch.from_numpy(target_pool)))
    local = torch.from_numpy(np.stack([np.searchsorted(source_pool, links[:, 0]), np.searchsorted(target_pool, links[:, 1])], axis=1))
    local, pools = local.to(pooled.device), (links, pool, source_pool, target_pool, pooled, chosen)
    top = list_length(pooled.shape, top)
    if not top or isinstance(pooled, HeldSimilarity):
        terms = hubness(pooled, k, chosen)
        return SearchedPool(*pools, terms, true_ranks(pooled, local, terms), untested)
    found = csls_topk(pooled, k, top, chosen)
    give_back()
    ranks = true_ranks(pooled, local, found.hubness, lists=found if chosen.name == "exact" else None)
    give_back()
    return SearchedPool(*pools, found.hubness, ranks, untested, listed_candidates(pooled, found, top))


@accepting_matrices(UnscaledEmbeddings)
@torch.no_grad()
def evaluate_links(
    similarity: Selectable,
    links: IntArray,
    k: int = 10,
    pool: Pool = "test",
    bootstrap: int = 1000,
    seed: int = 0,
    *,
    index: str | SearchIndex = "exact",
    links_name: str = "test",
    untested: int = 0,
) -> Evaluation:
    """Evaluate a similarity, or embeddings, against known links.

    Args:
        similarity: of all source and all target entities; in its place, two matrices (E1, D) and (E2, D) of embeddings of any length.
        links: (L, 2) source and target entities; may be empty, repeat itself, and need not be one-to-one.
        k: neighbours in CSLS's hubness terms.
        pool: candidates are the entities of ``links`` ("test") or all entities ("all").
        bootstrap: resamples for the confidence intervals; 0 leaves them out.
        seed: draws the resamples.
        index: finds the hubness terms' neighbours; ranks are always exact.
        links_name: what the links are, for the protocol line.
        untested: how many known links were left out of them since an end is in no triple, for the protocol line.

    Raises:
        DataError: a link names an entity that has no embedding.
        TrainingError: an embedding of the pool is not finite.
        ConfigError: unknown index, or one that cannot search this similarity.
    """
    return evaluate_searched(search_pool(similarity, links, k, pool, index=index, untested=untested), bootstrap, seed, links_name)


def evaluate_searched(searched: SearchedPool, bootstrap: int = 1000, seed: int = 0, links_name: str = "test") -> Evaluation:
    """The same of a pool that has been searched."""
    source_pool, target_pool, ranks = searched.source_pool, searched.target_pool, searched.ranks
    return Evaluation(
        direction_metrics(ranks.source_to_target, source_pool, bootstrap, seed),
        direction_metrics(ranks.target_to_source, target_pool, bootstrap, seed),
        searched.pool,
        protocol_line(searched, links_name),
        source_pool,
        target_pool,
        searched.hubness,
    )


def checked_links(links: IntArray, sources: int, targets: int) -> IntArray:
    """(L, 2) int64 links, all of whose entities exist.

    Raises:
        DataError: one does not.
    """
    links = np.asarray(links, dtype=np.int64).reshape(-1, 2)
    wrong = ((links < 0) | (links >= (sources, targets))).any(axis=1)
    if wrong.any():
        first = links[wrong][0].tolist()
        raise DataError(
            f"link {first[0]} - {first[1]} names an entity that has no embedding (there are {sources:,} source and {targets:,} target entities); "
            "evaluate a run on the data set that it was trained on."
        )
    return links


def pool_entities(linked: IntArray, size: int, pool: Pool) -> IntArray:
    """Entities of one graph that are candidates, ascending."""
    return np.arange(size, dtype=np.int64) if pool == "all" else np.unique(linked)


def protocol_line(searched: SearchedPool, links_name: str = "test") -> str:
    """How figures came about, in one line."""
    k, index, sizes = searched.hubness.k, searched.index.name, (len(searched.source_pool), len(searched.target_pool))
    notes = ["more than the pool has, so all of it"] * (0 < min(sizes) < k) + [f"neighbours by {index}"] * (index != "exact")
    method = f"CSLS k={k} ({'; '.join(notes)})" if notes else f"CSLS k={k}"
    return f"{method}, {pool_words(searched.pool, sizes, links_name, searched.untested)}, published direction target to source, ties are no hits"


def pool_words(pool: Pool, sizes: tuple[int, int], links_name: str = "test", untested: int = 0) -> str:
    """'pool: 10,500 test entities a side', and how many links it is without."""
    kind = f"{links_name} entities" if pool == "test" else "entities (all)"
    words = f"{sizes[0]:,} {kind} a side" if sizes[0] == sizes[1] else f"{sizes[0]:,} source and {sizes[1]:,} target {kind}"
    return f"pool: {words}{untested_words(untested)}"


def untested_words(untested: int) -> str:
    """' (2 known links are left out: an end is in no triple)', to follow a number of test entities; empty where there are none."""
    return f" ({count(untested, 'known link is', 'known links are')} left out: an end is in no triple)" if untested else ""


def direction_metrics(found: QueryRanks, pool: IntArray, bootstrap: int, seed: int) -> DirectionMetrics:
    """Figures of one direction from the ranks within a pool."""
    ranks: IntArray = found.ranks.cpu().numpy()
    queries: IntArray = pool[found.queries.cpu().numpy()]
    if not len(ranks):
        return DirectionMetrics(None, None, None, None, None, {}, queries, ranks)
    distinct, counts = np.unique(ranks, return_counts=True)
    at_1, at_5, at_10, mrr, mean_rank = (counts @ contributions(distinct) / len(ranks)).tolist()
    return DirectionMetrics(at_1, at_5, at_10, mrr, mean_rank, confidence_intervals(distinct, counts, bootstrap, seed), queries, ranks)


def contributions(ranks: IntArray) -> FloatArray:
    """(n, 5) what a query of each rank adds to the metrics, in the order of ``METRICS``."""
    return np.stack([*(ranks <= k for k in HITS_AT), 1.0 / ranks, ranks], axis=1).astype(np.float64)


def confidence_intervals(distinct: IntArray, counts: IntArray, resamples: int, seed: int) -> dict[str, tuple[float, float]]:
    """Of Hits@k score intervals, of the MRR the percentile interval over resamples of the queries, n of them with the distinct ranks so often."""
    if not resamples:
        return {}
    parts, total = contributions(distinct), int(counts.sum())
    found = {name: rate_interval(float(counts @ parts[:, place]) / total, total) for place, name in enumerate(METRICS[: len(HITS_AT)])}
    low, high = bootstrap_ends(parts[:, METRICS.index("mrr")], counts, resamples, seed)
    return {**found, "mrr": (float(low), float(high))}


def wilson_interval(mean: FloatArray, count: IntArray) -> tuple[FloatArray, FloatArray]:
    """95% score interval (Wilson 1927) of a mean of values in [0, 1]; NaN where there are none.

    For shares it is the usual one. No variable in [0, 1] varies more than a coin of the same mean, so for reciprocal ranks it is somewhat too
    wide and never too confident, in groups of one as well, where a bootstrap interval would have no width.
    """
    n = np.where(count > 0, count, np.nan).astype(np.float64)
    shrink = 1 + Z**2 / n
    centre = (mean + Z**2 / (2 * n)) / shrink
    reach = Z / shrink * np.sqrt(np.maximum(mean * (1 - mean), 0) / n + Z**2 / (4 * n**2))
    return np.clip(centre - reach, 0, 1), np.clip(centre + reach, 0, 1)


def stored_interval(figures: Mapping[str, Any], name: str, links: int) -> tuple[tuple[float, float], int] | None:
    """The interval of a stored rate, and the number of queries n that it is of; None where nothing was measured.

    It is computed from rate and n: runs of older versions stored other intervals, and no n. There n is the number of test links, as long as these
    are one-to-one.

    Args:
        figures: of one direction, from ``metrics.json`` or ``decoders.json``.
        name: of a rate, such as "hits@1".
        links: test links of the run.
    """
    n = int(figures.get("queries") or links)
    rate = figures.get(name)
    return None if rate is None or n < 1 else (rate_interval(float(rate), n), n)


def rate_interval(rate: float, n: int) -> tuple[float, float]:
    """:func:`wilson_interval` of one rate; NaN where n is 0."""
    low, high = wilson_interval(np.array([rate], dtype=np.float64), np.array([n]))
    return float(low[0]), float(high[0])


def bootstrap_ends(values: npt.NDArray[np.float64], counts: IntArray, resamples: int, seed: int) -> tuple[Any, Any]:
    """Ends of the percentile intervals of means over resamples of n queries.

    Drawing n queries with replacement gives multinomial counts of the distinct values, so these are drawn instead of the queries.

    Args:
        values: (v,) or (v, m) distinct values of what is averaged.
        counts: (v,) how many of the n queries have each.
        resamples: how many, at least 1.
        seed: of the draws.

    Returns:
        Lower and upper end, each a number or (m,).
    """
    generator, total = np.random.default_rng(seed), int(counts.sum())
    step = max(DRAWS_AT_ONCE // len(values), 1)
    means = [
        generator.multinomial(total, counts / total, size=min(step, resamples - start)) @ values / total for start in range(0, resamples, step)
    ]  # each (<= step) or (<= step, m)
    tail = (1.0 - CONFIDENCE) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1.0 - tail], axis=0)
    return low, high
