"""CSLS, cross-domain similarity local scaling (Conneau et al., ICLR 2018), as Dual-AMN's evaluation uses it (paper section 6.1).

    CSLS(s, t) = 2 cos(s, t) - r(s) - r(t)

where the hubness term r(e) is the mean cosine of e with its k nearest entities of the other pool: an entity that is near to everything has to be
nearer still to count as a match.

Half of a CSLS score is the similarity shifted by -r(s)/2 and -r(t)/2, so any index that searches similarities finds CSLS neighbours; for rows of
unit length it is the inner product of [s, -r(s)/2, 1] and [t, 1, -r(t)/2]. Such values only *find*: every score that leaves this module comes from
:func:`csls_score` of float64 similarities.

Everything here takes a :class:`~engine.search.similarity.Similarity` of n source and m target entities, or in its place two matrices (n, D) and
(m, D) of float32 rows of unit length. Where names take part, their similarity takes the place of "cosine".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.search.base import Hubness, SearchIndex, TopK, get_index, half_csls
from engine.search.similarity import Similarity, on_similarity
from engine.search.tiles import descending
from engine.util.threads import cut

SCORED_AT_ONCE = 2**20
"""Pairs that are scored at a time in float64."""


@dataclass(frozen=True)
class PairScores:
    """(P,) float32 cosine (with names: s + w l) and CSLS of given pairs."""

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
    """Matches in both directions, with the hubness terms that they were scored with.

    Attributes:
        zero_rows: (n,), (m,) bool: entities of which nothing is known; their lists mean nothing.
    """

    source_to_target: Matches
    target_to_source: Matches
    hubness: Hubness
    zero_rows: tuple[Tensor, Tensor]


def csls_score(cosine: Tensor, query_hubness: Tensor, candidate_hubness: Tensor) -> Tensor:
    """2 cos - r(query) - r(candidate), in float64: the one place where CSLS is computed."""
    return 2.0 * cosine.double() - query_hubness.double() - candidate_hubness.double()


@on_similarity
@torch.no_grad()
def hubness(similarity: Similarity, k: int = 10, index: str | SearchIndex = "exact") -> Hubness:
    """Hubness terms of two pools.

    Args:
        similarity: (n, m).
        k: neighbours to average over; clipped to the pool's size.
        index: name of a registered index, or an instance.

    Raises:
        TrainingError: a value is not finite.
        ConfigError: unknown index, or one that cannot search this similarity.
    """
    return get_index(index).hubness(similarity, k)


@on_similarity
@torch.no_grad()
def pair_csls(similarity: Similarity, pairs: Tensor, terms: Hubness) -> PairScores:
    """Cosine and CSLS of given pairs: what evaluation, matching, export and explanation all show.

    Args:
        similarity: (n, m).
        pairs: (P, 2) int64 rows of source and target.
        terms: hubness of the same pools.
    """
    left, right = pairs[:, 0], pairs[:, 1]
    cosine = similarity.pairs(left, right)
    return PairScores(cosine.float(), csls_score(cosine, terms.source[left], terms.target[right]).float())


@on_similarity
@torch.no_grad()
def csls_topk(similarity: Similarity, k: int = 10, top: int = 10, index: str | SearchIndex = "exact", terms: Hubness | None = None) -> CslsTopK:
    """The best matches by CSLS of every source and every target entity.

    Args:
        similarity: (n, m).
        k: neighbours in the hubness terms; clipped to the pool's size.
        top: matches to keep; clipped to the pool's size.
        index: name of a registered index, or an instance.
        terms: hubness of these pools where it is known already (``k`` is not used then).

    Raises:
        TrainingError: a value is not finite.
        ConfigError: unknown index, or one that cannot search this similarity.
    """
    chosen = get_index(index)
    found = chosen.search_csls(similarity, k, top) if terms is None else chosen.search_csls_within(similarity, terms, top)
    return CslsTopK(
        scored(similarity, found.of_source, found.terms),
        scored(similarity.transposed(), found.of_target, found.terms.flipped()),
        found.terms,
        similarity.zero_rows(),
    )


@on_similarity
@torch.no_grad()
def csls_query(
    similarity: Similarity, query_hubness: Tensor, candidate_hubness: Tensor, top: int = 10, index: str | SearchIndex = "exact"
) -> Matches:
    """The best candidates by CSLS of some entities, in either direction.

    Args:
        similarity: (q, m) of the queries and the candidates; a part of a larger one (``select``), transposed to ask from the target side.
        query_hubness: (q,) r of the queries.
        candidate_hubness: (m,) r of the candidates.
        top: matches to keep; clipped to m.
        index: name of a registered index, or an instance.

    Raises:
        TrainingError: a value is not finite.
        ConfigError: unknown index, or one that cannot search this similarity.
    """
    terms = Hubness(query_hubness, candidate_hubness, 0)
    return scored(similarity, get_index(index).search(half_csls(similarity, terms), top), terms)


def scored(similarity: Similarity, best: TopK, terms: Hubness) -> Matches:
    """Matches with the scores that pairs get everywhere, in the order of these scores."""
    indices = torch.empty_like(best.indices)
    cosine, csls = (torch.empty(indices.shape, dtype=torch.float32, device=indices.device) for _ in range(2))
    for part in cut(len(indices), max(SCORED_AT_ONCE // max(indices.shape[1], 1), 1)):
        found, exact = best.indices[part], None if best.exact is None else best.exact[part]
        if exact is None:
            rows = torch.arange(part.start, part.stop, device=indices.device).repeat_interleave(found.shape[1])
            exact = similarity.pairs(rows, found.reshape(-1)).view(found.shape)
        scores = csls_score(exact, terms.source[part, None], terms.target[found])
        order = descending(scores, found)
        indices[part] = found.gather(1, order)
        cosine[part], csls[part] = exact.float().gather(1, order), scores.float().gather(1, order)
    return Matches(indices, cosine, csls)
