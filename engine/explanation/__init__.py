"""Why a pair scored what it scored: exact parts, and what would be without some of the evidence. docs/explanation.md has the formulas."""

from __future__ import annotations

from engine.explanation.decomposition import Decomposition, Part
from engine.explanation.evidence import Aligned, Neighbour, NeighbourEvidence, NeighbourPair, RelationEvidence, RelationPair
from engine.explanation.explainer import Explainer, NamedTriple
from engine.explanation.explanation import Explanation, explain
from engine.explanation.graph import Triple

__all__ = [
    "Aligned",
    "Decomposition",
    "Explainer",
    "Explanation",
    "NamedTriple",
    "Neighbour",
    "NeighbourEvidence",
    "NeighbourPair",
    "Part",
    "RelationEvidence",
    "RelationPair",
    "Triple",
    "explain",
]
