"""From scores to an alignment: decoders over candidate lists, their evaluation, and calibrated probabilities."""

from __future__ import annotations

from engine.decoding.base import DECODER_TITLES, DECODERS, GRAPH_DECODERS, NONE, Decoder, Decoding, get_decoder
from engine.decoding.candidates import Candidates, find_candidates
from engine.decoding.capacity import Capacity, capacity_of
from engine.decoding.graph_evidence import GraphEvidence
from engine.decoding.nearest import CslsDecoder, MutualDecoder
from engine.decoding.one_to_one import AssignmentDecoder, StableDecoder
from engine.decoding.propagation import PropagationDecoder
from engine.decoding.sinkhorn import SinkhornDecoder, log_plan

__all__ = [
    "DECODERS",
    "DECODER_TITLES",
    "GRAPH_DECODERS",
    "NONE",
    "AssignmentDecoder",
    "Candidates",
    "Capacity",
    "CslsDecoder",
    "Decoder",
    "Decoding",
    "GraphEvidence",
    "MutualDecoder",
    "PropagationDecoder",
    "SinkhornDecoder",
    "StableDecoder",
    "capacity_of",
    "find_candidates",
    "get_decoder",
    "log_plan",
]
