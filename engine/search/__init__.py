"""Nearest counterparts: inner-product search in both directions (`exact`, `faiss`) and CSLS on top of it."""

from __future__ import annotations

from engine.search.base import DEFAULT_BUDGET, INDEXES, SearchIndex, TopK, get_index, normalise_rows
from engine.search.csls import (
    CslsTopK,
    Hubness,
    Matches,
    PairScores,
    csls_query,
    csls_score,
    csls_topk,
    hubness,
    pair_csls,
)
from engine.search.exact import ExactIndex
from engine.search.faiss_index import FaissIndex
from engine.search.ranks import TIE_TOLERANCE, LinkRanks, QueryRanks, true_ranks

__all__ = [
    "DEFAULT_BUDGET",
    "INDEXES",
    "TIE_TOLERANCE",
    "CslsTopK",
    "ExactIndex",
    "FaissIndex",
    "Hubness",
    "LinkRanks",
    "Matches",
    "PairScores",
    "QueryRanks",
    "SearchIndex",
    "TopK",
    "csls_query",
    "csls_score",
    "csls_topk",
    "get_index",
    "hubness",
    "normalise_rows",
    "pair_csls",
    "true_ranks",
]
