"""Why a pair scored what it scored: everything that is said of it, in one value that can be kept and written down."""

from __future__ import annotations

from dataclasses import dataclass

from engine.explanation.decomposition import Decomposition, decompose
from engine.explanation.evidence import NeighbourEvidence, RelationEvidence, neighbour_evidence, relation_evidence
from engine.explanation.explainer import Explainer
from engine.runs.view import PairScore, Pool, status_sentence

TOP = 40


@dataclass(frozen=True)
class Explanation:
    """A pair's score taken apart.

    Attributes:
        pair: scores, ranks and verdict, as they are shown everywhere.
        decomposition: parts that add up to the CSLS score.
        neighbours, relations: the multi-hop parts once more, by what carries them.
        notes: what has to be considered before drawing conclusions, a sentence each.
    """

    pair: PairScore
    decomposition: Decomposition
    neighbours: NeighbourEvidence
    relations: RelationEvidence
    notes: tuple[str, ...]


def explain(explainer: Explainer, source: int, target: int, pool: Pool = "all", top: int = TOP) -> Explanation:
    """Take a pair's score apart.

    Args:
        explainer: of the run.
        source, target: any entities of the two graphs, by index.
        pool: which candidates the hubness terms and ranks are of.
        top: how many supporting and how many opposing pairs to list.

    Raises:
        EntityError: no such entity, or one of the two is not in the pool.
        RunError: the run has no stored weights, or they do not fit.
    """
    pair = explainer.view.pair(source, target, pool)
    snapshot = explainer.snapshot(source, target)
    return Explanation(
        pair=pair,
        decomposition=decompose(explainer, snapshot, pair),
        neighbours=neighbour_evidence(explainer, snapshot, top),
        relations=relation_evidence(explainer, snapshot, top),
        notes=notes_on(explainer, pair),
    )


def notes_on(explainer: Explainer, pair: PairScore) -> tuple[str, ...]:
    """Sentences about what the run or the pair lacks."""
    notes = []
    for entity in (pair.source, pair.target):
        if not entity.degree:
            notes.append(f"The {entity.side} entity has no triples, so no neighbour carries anything: all of its score is its own.")
    if explainer.looks_at_names and pair.names is None:
        notes.append("At least one of the two has no name, so the structure's score stands in for the similarity of the names.")
    if explainer.looks_at_names and pair.names is not None and (met := explainer.names_met(pair.source.index, pair.target.index)):
        notes.append(met)
    if pair.verdict == "seed link":
        notes.append(f"{status_sentence(pair.verdict, None)} A high score is therefore no discovery.")
    elif pair.added is not None:
        notes.append(f"{status_sentence(pair.verdict, pair.added)} Its score is therefore partly that earlier prediction.")
    return tuple(notes)
