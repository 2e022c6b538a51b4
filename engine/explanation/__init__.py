"""Why a pair scored what it scored: exact parts, and what would be without some of the evidence. docs/explanation.md has the formulas."""

from __future__ import annotations

from engine.explanation.decomposition import Decomposition, ProbabilityPart, ProbabilityParts, ScorePart, probability_parts
from engine.explanation.encoder import Triple
from engine.explanation.evidence import (
    Aligned,
    ExplainedNeighbour,
    Explanation,
    NeighbourEvidence,
    NeighbourProduct,
    RelationEvidence,
    RelationPair,
    explain,
)
from engine.explanation.explainer import Context, Explainer, NamedTriple, OtherRun, PairRound, context, resolve_pair, resolve_rival, sibling_runs
from engine.explanation.faithfulness import Faithfulness, FlippingSet, RemovalAgreement, Trial, faithfulness, flipping_set, items_of
from engine.explanation.intervention import Experiment, Intervention, PairRank, Rival, intervene
from engine.explanation.removal import Item, evidence_items, named_evidence, triples_of
from engine.explanation.report import Report, lines, removal_sentence, sentence
from engine.explanation.rivals import Claim, Conflict, NeighbourDifference, RivalComparison, compare_rival, compare_with, conflict, runner_up
from engine.explanation.value_evidence import PairValue, ValueFact, pair_values

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
    "PairValue",
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
    "ValueFact",
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
    "pair_values",
    "probability_parts",
    "removal_sentence",
    "resolve_pair",
    "resolve_rival",
    "runner_up",
    "sentence",
    "sibling_runs",
    "triples_of",
]
