"""Why a pair scored what it scored: exact parts, and what would be without some of the evidence. docs/explanation.md has the formulas."""

from __future__ import annotations

from engine.explanation.asking import resolve_pair, resolve_rival
from engine.explanation.context import Context, OtherRun, PairRound, context, sibling_runs
from engine.explanation.decomposition import Decomposition, ScorePart
from engine.explanation.evidence import Aligned, ExplainedNeighbour, NeighbourEvidence, NeighbourProduct, RelationEvidence, RelationPair
from engine.explanation.explainer import Explainer, NamedTriple
from engine.explanation.explanation import Explanation, explain
from engine.explanation.faithfulness import Faithfulness, FlippingSet, RemovalAgreement, Trial, faithfulness, flipping_set, items_of
from engine.explanation.graph import Triple
from engine.explanation.intervention import Experiment, Intervention, PairRank, Rival, intervene
from engine.explanation.probability import ProbabilityPart, ProbabilityParts, probability_parts
from engine.explanation.removal import Item, evidence_items, named_evidence, triples_of
from engine.explanation.report import Report, lines
from engine.explanation.rivals import Claim, Conflict, NeighbourDifference, RivalComparison, compare_rival, compare_with, conflict, runner_up
from engine.explanation.words import removal_sentence, sentence

__all__ = [
    "Aligned",
    "Claim",
    "Conflict",
    "Context",
    "Decomposition",
    "Experiment",
    "ExplainedNeighbour",
    "Explainer",
    "Explanation",
    "Faithfulness",
    "FlippingSet",
    "Intervention",
    "Item",
    "NamedTriple",
    "NeighbourDifference",
    "NeighbourEvidence",
    "NeighbourProduct",
    "OtherRun",
    "PairRank",
    "PairRound",
    "ProbabilityPart",
    "ProbabilityParts",
    "RelationEvidence",
    "RelationPair",
    "RemovalAgreement",
    "Report",
    "Rival",
    "RivalComparison",
    "ScorePart",
    "Trial",
    "Triple",
    "compare_rival",
    "compare_with",
    "conflict",
    "context",
    "evidence_items",
    "explain",
    "faithfulness",
    "flipping_set",
    "intervene",
    "items_of",
    "lines",
    "named_evidence",
    "probability_parts",
    "removal_sentence",
    "resolve_pair",
    "resolve_rival",
    "runner_up",
    "sentence",
    "sibling_runs",
    "triples_of",
]
