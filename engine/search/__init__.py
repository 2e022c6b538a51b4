"""Nearest counterparts: search of a similarity in both directions (`exact`, `faiss`) and CSLS on top of it."""

from __future__ import annotations

from engine.search.base import DEFAULT_BUDGET, INDEXES, Hubness, SearchIndex, TopK, get_index
from engine.search.csls import CslsTopK, Matches, PairScores, csls_query, csls_score, csls_topk, hubness, pair_csls
from engine.search.exact import ExactIndex
from engine.search.faiss import FaissIndex
from engine.search.ranks import TIE_TOLERANCE, LinkRanks, QueryRanks, tie_tolerance, true_ranks
from engine.search.rows import normalise_rows
from engine.search.similarity import (
    BestNames,
    LiteralSimilarity,
    NameSimilarity,
    PairParts,
    Similarity,
    SparseSimilarity,
    StructuralSimilarity,
    UnscaledEmbeddings,
)
from engine.search.tiles import best_in_columns, held, recording

__all__ = [
    "DEFAULT_BUDGET",
    "INDEXES",
    "TIE_TOLERANCE",
    "BestNames",
    "CslsTopK",
    "ExactIndex",
    "FaissIndex",
    "Hubness",
    "LinkRanks",
    "LiteralSimilarity",
    "Matches",
    "NameSimilarity",
    "PairParts",
    "PairScores",
    "QueryRanks",
    "SearchIndex",
    "Similarity",
    "SparseSimilarity",
    "StructuralSimilarity",
    "TopK",
    "UnscaledEmbeddings",
    "best_in_columns",
    "csls_query",
    "csls_score",
    "csls_topk",
    "get_index",
    "held",
    "hubness",
    "normalise_rows",
    "pair_csls",
    "recording",
    "tie_tolerance",
    "true_ranks",
]
