"""From scores to an alignment: decoders over candidate lists, their evaluation, and calibrated probabilities."""

from __future__ import annotations

from engine.decoding.base import DECODERS, NONE, Decoder, Decoding, get_decoder
from engine.decoding.candidates import TOP, Candidates, PairSimilarity, embedding_candidates, similarity_candidates
from engine.decoding.evaluation import DecodingEvaluation, PairMetrics, evaluate_decoders, evaluate_decoding
from engine.decoding.nearest import CslsDecoder, MutualDecoder
from engine.decoding.one_to_one import AssignmentDecoder, StableDecoder
from engine.decoding.sinkhorn import SinkhornDecoder, log_plan

__all__ = [
    "DECODERS",
    "NONE",
    "TOP",
    "AssignmentDecoder",
    "Candidates",
    "CslsDecoder",
    "Decoder",
    "Decoding",
    "DecodingEvaluation",
    "MutualDecoder",
    "PairMetrics",
    "PairSimilarity",
    "SinkhornDecoder",
    "StableDecoder",
    "embedding_candidates",
    "evaluate_decoders",
    "evaluate_decoding",
    "get_decoder",
    "log_plan",
    "similarity_candidates",
]
