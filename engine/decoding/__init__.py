"""From scores to an alignment: decoders over candidate lists, their evaluation, and calibrated probabilities."""

from __future__ import annotations

from engine.decoding.base import DECODERS, GRAPH_DECODERS, NONE, Decoder, Decoding, get_decoder
from engine.decoding.calibration import (
    LEAST_LINKS,
    Calibration,
    Threshold,
    Uncalibrated,
    expected_calibration_error,
    fit_calibration,
    pair_features,
    share_to_hold_out,
)
from engine.decoding.candidates import TOP, Candidates, find_candidates
from engine.decoding.evaluation import DecodingEvaluation, PairMetrics, decode_searched, evaluate_decoders, evaluate_decoding
from engine.decoding.graph_evidence import GraphEvidence
from engine.decoding.nearest import CslsDecoder, MutualDecoder
from engine.decoding.one_to_one import AssignmentDecoder, StableDecoder
from engine.decoding.propagation import PropagationDecoder
from engine.decoding.sinkhorn import SinkhornDecoder, log_plan

__all__ = [
    "DECODERS",
    "GRAPH_DECODERS",
    "LEAST_LINKS",
    "NONE",
    "TOP",
    "AssignmentDecoder",
    "Calibration",
    "Candidates",
    "CslsDecoder",
    "Decoder",
    "Decoding",
    "DecodingEvaluation",
    "GraphEvidence",
    "MutualDecoder",
    "PairMetrics",
    "PropagationDecoder",
    "SinkhornDecoder",
    "StableDecoder",
    "Threshold",
    "Uncalibrated",
    "decode_searched",
    "evaluate_decoders",
    "evaluate_decoding",
    "expected_calibration_error",
    "find_candidates",
    "fit_calibration",
    "get_decoder",
    "log_plan",
    "pair_features",
    "share_to_hold_out",
]
