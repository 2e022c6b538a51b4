"""Figures of a decoder, in the shape and by the rules of :mod:`engine.evaluation.metrics`; of predicted pairs also precision, recall and F1.

- Ranks up to K, the candidates an entity, are read off the decoder's lists. A counterpart beyond has its rank by CSLS among the whole pool, if that
  is known and not better than what the list says, else the worst rank there is. So a decoder's Hits@k (k <= K) are exact, and those of ``csls``
  are the ones of :func:`engine.evaluation.metrics.evaluate_links`.
- Where a decoder abstains, "no counterpart" comes first in the list: Hits@1 is the share of queries that were answered rightly.
- A one-to-one decoder decides by the whole alignment: the pair it decided on comes first, the rest of the list follows CSLS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from engine.data.knowledge_graph import Side
from engine.decoding.base import NONE, Decoder, Decoding, get_decoder, where_chosen
from engine.decoding.candidates import Candidates, find_candidates, list_length
from engine.decoding.capacity import ONE
from engine.decoding.graph_evidence import GraphEvidence
from engine.errors import DataError
from engine.evaluation.metrics import DirectionMetrics, Pool, SearchedPool, Selectable, direction_metrics, pool_words, search_pool
from engine.search import LinkRanks, QueryRanks, SearchIndex
from engine.search.tiles import HeldSimilarity
from engine.util.arrays import BoolArray, IntArray

SHARED = 4_000_000
"""Candidate pairs up to which decoders work side by side, each with arrays of its own as long as these."""


@dataclass(frozen=True)
class PairMetrics:
    """How good the predicted counterparts of one graph's entities are; None where there is nothing to divide by.

    Attributes:
        predicted: entities with a known counterpart that were given one.
        correct: those that were given a right one.
        precision: correct / predicted.   recall: correct / queries.   f1: their harmonic mean.
    """

    queries: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float | None:
        return self.correct / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        return self.correct / self.queries if self.queries else None

    @property
    def f1(self) -> float | None:
        total = self.predicted + self.queries
        return 2 * self.correct / total if total else None

    def to_dict(self) -> dict[str, Any]:
        return {"predicted": self.predicted, "correct": self.correct, "precision": self.precision, "recall": self.recall, "f1": self.f1}


@dataclass(frozen=True)
class DecodingEvaluation:
    """Figures of both directions, and how they came about.

    Attributes:
        source_to_target, target_to_source: as in :class:`engine.evaluation.metrics.Evaluation`.
        source_pairs, target_pairs: of the predictions for source and for target entities.
        source_answers, target_answers: (q,) predicted counterpart of each query of the two directions, -1 for none.
        pool: "test" or "all".
        protocol: one line to print beside every figure.
    """

    decoder: str
    source_to_target: DirectionMetrics
    target_to_source: DirectionMetrics
    source_pairs: PairMetrics
    target_pairs: PairMetrics
    source_answers: IntArray  # (q,)
    target_answers: IntArray  # (q,)
    pool: Pool
    protocol: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values; each direction has the keys of ``metrics.json`` and precision, recall, f1, predicted and correct."""
        return {
            "source_to_target": {**self.source_to_target.to_dict(), **self.source_pairs.to_dict()},
            "target_to_source": {**self.target_to_source.to_dict(), **self.target_pairs.to_dict()},
            "decoder": self.decoder,
            "pool": self.pool,
            "protocol": self.protocol,
        }


def evaluate_decoding(
    decoding: Decoding,
    links: IntArray,
    source_pool: IntArray,
    target_pool: IntArray,
    *,
    csls_ranks: LinkRanks | None = None,
    complete: bool = False,
    pool: Pool = "test",
    bootstrap: int = 1000,
    seed: int = 0,
    links_name: str = "test",
    untested: int = 0,
) -> DecodingEvaluation:
    """Evaluate a decoding against known links.

    Args:
        decoding: of candidates that are rows of the two pools.
        links: (L, 2) source and target entities, all in the pools; may be empty, repeat itself, and need not be one-to-one.
        source_pool, target_pool: (n,), (m,) entities, ascending.
        csls_ranks: what :func:`engine.search.true_ranks` says of the same links within the same pools.
        complete: an entity of the pools without a link has no counterpart, so that a prediction for it is wrong (it counts among ``predicted``);
            without this nothing is known of it, and it is left out.
        pool: how the pools were chosen, for the protocol line.
        bootstrap: resamples for the confidence intervals; 0 leaves them out.
        seed: draws the resamples.
        links_name, untested: what the links are, and how many known ones were left out, for the protocol line.

    Raises:
        DataError: a link's entity is not in its pool, or the pools do not have the candidates' sizes.
    """
    local = local_links(decoding.candidates, np.asarray(links, dtype=np.int64).reshape(-1, 2), source_pool, target_pool)
    right = decoding.candidates.among(local)
    ranks = csls_ranks and {"source": csls_ranks.source_to_target, "target": csls_ranks.target_to_source}
    directions: dict[Side, DirectionMetrics] = {}
    pairs: dict[Side, PairMetrics] = {}
    answers: dict[Side, IntArray] = {}
    sides: tuple[tuple[Side, int, IntArray], ...] = (("source", 0, source_pool), ("target", 1, target_pool))
    for side, column, entities in sides:
        queries = np.unique(local[:, column])
        found = decoder_ranks(decoding, side, queries, right, ranks[side] if ranks else None)
        query_ranks = QueryRanks(torch.from_numpy(queries), torch.from_numpy(found))
        directions[side] = direction_metrics(query_ranks, entities, bootstrap, seed)
        pairs[side] = pair_metrics(decoding, side, queries, found, complete)
        chosen = decoding.predicted(side)[queries]
        answers[side] = where_chosen(chosen, target_pool if side == "source" else source_pool, NONE)
    protocol = decoder_protocol(decoding, pool, links_name, untested)
    return DecodingEvaluation(
        decoding.decoder,
        directions["source"],
        directions["target"],
        pairs["source"],
        pairs["target"],
        answers["source"],
        answers["target"],
        pool,
        protocol,
    )


def local_links(candidates: Candidates, links: IntArray, source_pool: IntArray, target_pool: IntArray) -> IntArray:
    """(L, 2) rows within the pools."""
    if (len(source_pool), len(target_pool)) != candidates.shape:
        raise DataError(
            f"the pools hold {len(source_pool):,} source and {len(target_pool):,} target entities, the candidates {candidates.shape[0]:,} and "
            f"{candidates.shape[1]:,}; evaluate a decoding with the pools that it was made for."
        )
    for column, (side, entities) in enumerate((("source", source_pool), ("target", target_pool))):
        outside = ~np.isin(links[:, column], entities)
        if outside.any():
            raise DataError(f"{side} entity {links[outside, column][0]} of a link is not in the pool; add it, or leave the link out.")
    return np.stack([np.searchsorted(source_pool, links[:, 0]), np.searchsorted(target_pool, links[:, 1])], axis=1).astype(np.int64)


def decoder_ranks(decoding: Decoding, side: Side, queries: IntArray, right: BoolArray, csls: QueryRanks | None) -> IntArray:
    """(q,) ranks of the queries' best counterparts; see the head of this module for those beyond the lists."""
    worst = max(decoding.candidates.shape[1 if side == "source" else 0], 1)
    found = decoding.ranks(side, queries, right)
    beyond = np.full(len(queries), worst, dtype=np.int64) if csls is None else csls.ranks.cpu().numpy()
    unlisted = found == 0
    if csls is not None:
        top = min(decoding.candidates.top, worst)
        found = np.where(unlisted, top + 1, found)
        unlisted = found > top
    return np.where(unlisted, np.maximum(found, beyond), found).astype(np.int64)


def pair_metrics(decoding: Decoding, side: Side, queries: IntArray, ranks: IntArray, complete: bool) -> PairMetrics:
    """A prediction is right if the counterpart alone comes first: where others score as high it is a guess."""
    given = decoding.chosen(side) != NONE
    return PairMetrics(len(queries), int(given.sum() if complete else given[queries].sum()), int(np.sum(given[queries] & (ranks == 1))))


def decoder_protocol(decoding: Decoding, pool: Pool, links_name: str, untested: int = 0) -> str:
    """How figures came about, in one line."""
    lists = "all pairs" if decoding.candidates.complete else f"the {decoding.candidates.top} best candidates by CSLS from either side"
    words = pool_words(pool, decoding.candidates.shape, links_name, untested)
    several = "" if decoding.capacity == ONE else f" with {decoding.capacity.words}"
    return f"decoder {decoding.decoder}{several} over {lists}, {words}, published direction target to source, ties are no hits"


@torch.no_grad()
def evaluate_decoders(
    similarity: Selectable,
    links: IntArray,
    decoders: Iterable[str | Decoder],
    k: int = 10,
    pool: Pool = "test",
    top: int | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    *,
    index: str | SearchIndex = "exact",
    links_name: str = "test",
    evidence: GraphEvidence | None = None,
    seeds: IntArray | None = None,
    untested: int = 0,
) -> Mapping[str, DecodingEvaluation]:
    """Evaluate a similarity with several decoders that share one search for candidates.

    Args:
        similarity: of all source and all target entities.
        links: (L, 2) source and target entities.
        decoders: registered names or instances.
        k, pool, bootstrap, seed, index, links_name, untested: as in :func:`engine.evaluation.metrics.evaluate_links`.
        top: candidates an entity; None: as many as :func:`engine.decoding.candidates.list_length` says.
        evidence: the graphs, for decoders that look at them; its pools are replaced by this evaluation's.
        seeds: (S, 2) links that were trained on, by which one-to-one decoders know how many counterparts there may be; None: those of the evidence.

    Returns:
        Evaluations by the decoder's name, in the order given.

    Raises:
        DataError: a link names an entity that has no embedding.
        TrainingError: an embedding is not finite.
        ConfigError: unknown decoder or index.
    """
    searched = search_pool(similarity, links, k, pool, index=index, untested=untested, top=top)
    return decode_searched(searched, decoders, top, bootstrap, seed, links_name=links_name, evidence=evidence, seeds=seeds)


@torch.no_grad()
def with_candidates(searched: SearchedPool, top: int | None = None) -> SearchedPool:
    """A pool with its candidates in place of its similarities, which take memory that decoders need and are not looked at again.

    Args:
        top: candidates an entity; None: as many as :func:`engine.decoding.candidates.list_length` says.
    """
    similarity, candidates = searched.similarity, searched.candidates
    top = list_length((len(searched.source_pool), len(searched.target_pool)), top)
    if candidates is None or candidates.top != top:
        if similarity is None:
            raise ValueError(f"the similarities were given up for lists of other than {top} candidates")
        candidates = find_candidates(similarity, top=top, index=searched.index, terms=searched.hubness)
    if isinstance(similarity, HeldSimilarity):
        similarity.forget()
    return replace(searched, similarity=None, candidates=candidates)


@torch.no_grad()
def decode_searched(
    searched: SearchedPool,
    decoders: Iterable[str | Decoder],
    top: int | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    *,
    links_name: str = "test",
    evidence: GraphEvidence | None = None,
    seeds: IntArray | None = None,
) -> Mapping[str, DecodingEvaluation]:
    """The same of a pool that has been searched; the decoders work side by side, on as many threads as torch uses, unless that takes much memory."""
    pools = searched.source_pool, searched.target_pool
    chosen = [get_decoder(decoder, evidence and evidence.within(*pools), seeds) for decoder in decoders]
    candidates, ranks, pool = with_candidates(searched, top).candidates, searched.ranks, searched.pool
    assert candidates is not None

    def evaluated(decoder: Decoder) -> DecodingEvaluation:
        decoding = decoder.decode(candidates)
        options: dict[str, Any] = {"pool": pool, "bootstrap": bootstrap, "seed": seed, "links_name": links_name, "untested": searched.untested}
        return evaluate_decoding(decoding, searched.links, *pools, csls_ranks=ranks, **options)

    side_by_side = torch.get_num_threads() if len(candidates) <= SHARED else 1
    with ThreadPoolExecutor(side_by_side, thread_name_prefix="decoders") as threads:
        return dict(zip((decoder.name for decoder in chosen), threads.map(evaluated, chosen), strict=True))
