"""CSLS, cross-domain similarity local scaling (Conneau et al., ICLR 2018), as Dual-AMN's evaluation uses it (paper section 6.1).

    CSLS(s, t) = 2 cos(s, t) - r(s) - r(t)

where the hubness term r(e) is the mean cosine of e with its k nearest entities of the other pool: an entity that is near to everything has to be
nearer still to count as a match.

Half of a CSLS score is the inner product of [s, -r(s)/2, 1] and [t, 1, -r(t)/2] for rows s and t of unit length, so that any inner-product index
finds CSLS neighbours. Such products only *find*: every score that leaves this module comes from :func:`csls_score` of float64 inner products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.search.base import SearchIndex, TopK, check_finite, get_index
from engine.search.kernels import pair_dots

GATHER_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Hubness:
    """r(e) for both pools: the mean cosine with the k nearest of the other pool.

    Attributes:
        source: (n,) float32.
        target: (m,) float32.
        k: neighbours asked for; a smaller pool gives all that it has, an empty one 0.
    """

    source: Tensor  # (n,)
    target: Tensor  # (m,)
    k: int

    def flipped(self) -> Hubness:
        """The same with the pools' parts exchanged."""
        return Hubness(self.target, self.source, self.k)


@dataclass(frozen=True)
class PairScores:
    """(P,) float32 cosine and CSLS of given pairs."""

    cosine: Tensor  # (P,)
    csls: Tensor  # (P,)


@dataclass(frozen=True)
class Matches:
    """The best candidates of each query by CSLS, best first; among equal scores the lower index comes first.

    Attributes:
        indices: (n, top) int64 rows of the candidates.
        cosine: (n, top) float32.
        csls: (n, top) float32, descending along a row.
    """

    indices: Tensor  # (n, top)
    cosine: Tensor  # (n, top)
    csls: Tensor  # (n, top)


@dataclass(frozen=True)
class CslsTopK:
    """Matches in both directions, with the hubness terms that they were scored with."""

    source_to_target: Matches
    target_to_source: Matches
    hubness: Hubness


def csls_score(cosine: Tensor, query_hubness: Tensor, candidate_hubness: Tensor) -> Tensor:
    """2 cos - r(query) - r(candidate), in float64: the one place where CSLS is computed."""
    return 2.0 * cosine.double() - query_hubness.double() - candidate_hubness.double()


@torch.no_grad()
def hubness(source: Tensor, target: Tensor, k: int = 10, index: str | SearchIndex = "exact") -> Hubness:
    """Hubness terms of two pools.

    Args:
        source: (n, D) float32 rows of unit length.
        target: (m, D) float32 rows of unit length.
        k: neighbours to average over; clipped to the pool's size.
        index: name of a registered index, or an instance.

    Raises:
        TrainingError: a value is not finite.
        ConfigError: unknown index.
    """
    of_source, of_target = get_index(index).top_k_both(source, target, k)
    return Hubness(mean_value(of_source), mean_value(of_target), k)


def mean_value(best: TopK) -> Tensor:
    """(n,) means of the values of each query; 0 where there are none."""
    return best.values.mean(dim=1) if best.values.shape[1] else best.values.new_zeros(len(best.values))


@torch.no_grad()
def pair_csls(source: Tensor, target: Tensor, pairs: Tensor, terms: Hubness) -> PairScores:
    """Cosine and CSLS of given pairs: what evaluation, matching, export and explanation all show.

    Args:
        source: (n, D) float32 rows of unit length.
        target: (m, D) float32 rows of unit length.
        pairs: (P, 2) int64 rows of source and target.
        terms: hubness of the same pools.
    """
    left, right = pairs[:, 0], pairs[:, 1]
    cosine = inner_products(source, target, left, right)
    return PairScores(cosine.float(), csls_score(cosine, terms.source[left], terms.target[right]).float())


def inner_products(source: Tensor, target: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """(P,) float64 inner products of source rows ``left`` and target rows ``right``."""
    if source.device.type == "cpu":
        rows = source.detach().contiguous().numpy(), target.detach().contiguous().numpy()
        return torch.from_numpy(pair_dots(*rows, np.ascontiguousarray(left.numpy()), np.ascontiguousarray(right.numpy())))
    step = max(GATHER_BYTES // (16 * max(source.shape[1], 1)), 1)
    out = torch.empty(len(left), dtype=torch.float64, device=source.device)
    for start in range(0, len(left), step):
        part = slice(start, start + step)
        out[part] = (source[left[part]].double() * target[right[part]].double()).sum(dim=1)
    return out


@torch.no_grad()
def csls_topk(
    source: Tensor, target: Tensor, k: int = 10, top: int = 10, index: str | SearchIndex = "exact", terms: Hubness | None = None
) -> CslsTopK:
    """The best matches by CSLS of every source and every target entity.

    Args:
        source: (n, D) float32 rows of unit length.
        target: (m, D) float32 rows of unit length.
        k: neighbours in the hubness terms; clipped to the pool's size.
        top: matches to keep; clipped to the pool's size.
        index: name of a registered index, or an instance.
        terms: hubness of these pools where it is known already (``k`` is not used then).

    Raises:
        TrainingError: a value is not finite.
        ConfigError: unknown index.
    """
    chosen = get_index(index)
    terms = terms or hubness(source, target, k, chosen)
    of_source, of_target = chosen.top_k_both(*augmented(source, target, terms), top)
    return CslsTopK(
        scored(source, target, of_source, terms.source, terms.target),
        scored(target, source, of_target, terms.target, terms.source),
        terms,
    )


@torch.no_grad()
def csls_query(
    queries: Tensor,
    candidates: Tensor,
    query_hubness: Tensor,
    candidate_hubness: Tensor,
    top: int = 10,
    index: str | SearchIndex = "exact",
) -> Matches:
    """The best candidates by CSLS of some entities, in either direction.

    Args:
        queries: (q, D) float32 rows of unit length, of one graph.
        candidates: (m, D) float32 rows of unit length, of the other.
        query_hubness: (q,) r of the queries.
        candidate_hubness: (m,) r of the candidates.
        top: matches to keep; clipped to m.
        index: name of a registered index, or an instance.

    Raises:
        TrainingError: a value is not finite.
        ConfigError: unknown index.
    """
    terms = Hubness(query_hubness, candidate_hubness, 0)
    best = get_index(index).top_k(*augmented(queries, candidates, terms), top)
    return scored(queries, candidates, best, query_hubness, candidate_hubness)


def augmented(source: Tensor, target: Tensor, terms: Hubness) -> tuple[Tensor, Tensor]:
    """(n, D + 2) and (m, D + 2) rows whose inner products are half the CSLS scores of (n, D) and (m, D) rows of unit length."""
    check_finite(terms.source[:, None], "hubness terms")
    check_finite(terms.target[:, None], "hubness terms")
    of_source, of_target = -terms.source[:, None] / 2, -terms.target[:, None] / 2
    return (
        torch.cat([source, of_source, torch.ones_like(of_source)], dim=1),
        torch.cat([target, torch.ones_like(of_target), of_target], dim=1),
    )


def scored(queries: Tensor, candidates: Tensor, best: TopK, query_hubness: Tensor, candidate_hubness: Tensor) -> Matches:
    """Matches with the scores that pairs get everywhere, in the order of these scores."""
    n, top = best.indices.shape
    rows = torch.arange(n, device=queries.device).repeat_interleave(top)
    columns = best.indices.reshape(-1)
    cosine = inner_products(queries, candidates, rows, columns).view(n, top)
    csls = csls_score(cosine, query_hubness[:, None], candidate_hubness[best.indices])
    by_index = best.indices.argsort(dim=1)
    order = by_index.gather(1, csls.gather(1, by_index).argsort(dim=1, descending=True, stable=True))
    return Matches(best.indices.gather(1, order), cosine.float().gather(1, order), csls.float().gather(1, order))
