"""What neighbours and relations contribute to a pair's score, and whether these neighbours are aligned with each other.

All values are parts of the CSLS score. Contributions of neighbours add up to its multi-hop parts: the listed pairs, the ``rest`` and what
has no neighbour (an entity's own relations, layer 0 of the relation channel). For relations, what has no relation is layer 0 of the entity channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.explanation.decomposition import Decomposition, Products, Sent, by_neighbour, by_relation, cosine_blocks, decompose, left_out
from engine.explanation.encoder import FrozenVectors
from engine.explanation.explainer import Explainer
from engine.explanation.value_evidence import PairValue, pair_values
from engine.explore.neighbourhood import Edge, tied
from engine.runs.entities import Entity
from engine.runs.verdicts import START_ROUND, Verdict, status_sentence
from engine.runs.view import PairScore, Pool, RunView
from engine.util.arrays import FloatArray

Edges = Mapping[int, tuple[Edge, ...]]
Aligned = Literal["this pair", "seed", "added", "predicted", "elsewhere"]
CSLS_SHARE = 2.0
"""CSLS counts the cosine twice."""


@dataclass(frozen=True)
class ExplainedNeighbour:
    """A neighbour of one of the two entities and all that it contributes.

    Attributes:
        edges: the triples between the two; empty for the entity itself.
        value: the sum of its pairs with all messages that the other entity receives.
        attention: the share of attention that it gets, averaged over channels and layers (0 .. 1).
        itself: it is the entity itself: what its own features, and triples with itself, contribute.
    """

    entity: Entity
    edges: tuple[Edge, ...]
    value: float
    attention: float
    itself: bool


@dataclass(frozen=True)
class NeighbourProduct:
    """Two neighbours, one of each entity, and what their messages' products add to the score.

    Attributes:
        aligned: with each other as a seed link, as a pair that a semi-supervised round added, or because one is the other's best match in this run;
            else at least one of them is matched elsewhere. "this pair" stands for the two entities themselves.
        verdict, added: what the known links say of the pair, and the first round that trained on it.
    """

    source: Entity
    target: Entity
    source_edges: tuple[Edge, ...]
    target_edges: tuple[Edge, ...]
    value: float
    aligned: Aligned
    verdict: Verdict
    added: int | None


@dataclass(frozen=True)
class NeighbourEvidence:
    """The neighbours that contribute to a score.

    Attributes:
        supporting: pairs with the largest positive values, best first.
        opposing: pairs with the smallest negative values, worst first.
        rest: the sum of all other pairs.
        own_relations: what the two entities' relations contribute without any neighbour.
        positive, negative: the sums of all positive and of all negative pairs.
        source, target: the neighbours by the size of their value, the largest first; the entity itself among them.
        hidden_source, hidden_target: how many neighbours are beyond the cap.
    """

    supporting: tuple[NeighbourProduct, ...]
    opposing: tuple[NeighbourProduct, ...]
    rest: float
    own_relations: float
    positive: float
    negative: float
    source: tuple[ExplainedNeighbour, ...]
    target: tuple[ExplainedNeighbour, ...]
    hidden_source: int
    hidden_target: int

    @property
    def total(self) -> float:
        """The multi-hop parts of the score."""
        return sum(pair.value for pair in (*self.supporting, *self.opposing)) + self.rest + self.own_relations


@dataclass(frozen=True)
class RelationPair:
    """Two relations and what their products add to the score; several edges where parallel triples are averaged into one."""

    source: tuple[Edge, ...]
    target: tuple[Edge, ...]
    value: float


@dataclass(frozen=True)
class RelationEvidence:
    """The relations that contribute to a score; ``own_neighbours`` is what comes without a relation (layer 0 of the entity channel)."""

    supporting: tuple[RelationPair, ...]
    opposing: tuple[RelationPair, ...]
    rest: float
    own_neighbours: float

    @property
    def total(self) -> float:
        """The multi-hop parts of the score."""
        return sum(pair.value for pair in (*self.supporting, *self.opposing)) + self.rest + self.own_neighbours


def neighbour_products(snapshot: FrozenVectors) -> Products[int]:
    """What the neighbours of a snapshot's two entities contribute, as parts of the CSLS score."""
    source, target = snapshot.entities[:2]
    return Products(by_neighbour(snapshot, source), by_neighbour(snapshot, target), CSLS_SHARE * cosine_blocks(snapshot).scale)


def neighbour_evidence(explainer: Explainer, snapshot: FrozenVectors, top: int) -> NeighbourEvidence:
    """At most ``top`` supporting and ``top`` opposing pairs, and the neighbours of both entities, the entities themselves included."""
    products, ends = neighbour_products(snapshot), snapshot.entities[:2]
    around = [explainer.edges(entity) for entity in ends]
    supporting, opposing = (tuple(_pairs(explainer, products, around, ends, top, sign)) for sign in (1, -1))
    listed = sum(pair.value for pair in (*supporting, *opposing))
    positive, negative = products.positive_and_negative()
    source = _neighbours(explainer, ends[0], around[0], products.source, products.source_totals(), 2 * top)
    target = _neighbours(explainer, ends[1], around[1], products.target, products.target_totals(), 2 * top)
    return NeighbourEvidence(
        supporting=supporting,
        opposing=opposing,
        rest=products.total - listed,
        own_relations=_own(snapshot, "relation", products.scale),
        positive=positive,
        negative=negative,
        source=source,
        target=target,
        hidden_source=len(products.source.keys) - len(source),
        hidden_target=len(products.target.keys) - len(target),
    )


def relation_evidence(explainer: Explainer, snapshot: FrozenVectors, top: int) -> RelationEvidence:
    """At most ``top`` supporting and ``top`` opposing pairs of relations."""
    source, target = snapshot.entities[:2]
    products = Products(by_relation(snapshot, source), by_relation(snapshot, target), CSLS_SHARE * cosine_blocks(snapshot).scale)
    supporting, opposing = (
        tuple(
            RelationPair(_edges_of(explainer, products.source.keys[row]), _edges_of(explainer, products.target.keys[column]), value)
            for row, column, value in products.strongest(top, sign)
        )
        for sign in (1, -1)
    )
    listed = sum(pair.value for pair in (*supporting, *opposing))
    return RelationEvidence(supporting, opposing, products.total - listed, _own(snapshot, "entity", products.scale))


def _own(snapshot: FrozenVectors, channel: str, scale: float) -> float:
    """What layer 0 of a channel contributes."""
    source, target = (left_out(snapshot, entity, 0, channel) for entity in snapshot.entities[:2])
    return float(source @ target) * scale


def _edges_of(explainer: Explainer, directions: Sequence[int]) -> tuple[Edge, ...]:
    return tuple(explainer.edge(direction) for direction in directions)


def _pairs(
    explainer: Explainer, products: Products[int], around: Sequence[Edges], ends: Sequence[int], top: int, sign: int
) -> list[NeighbourProduct]:
    found = []
    for row, column, value in products.strongest(top, sign):
        one, two = products.source.keys[row], products.target.keys[column]
        same = [one, two] == list(ends)
        view, pair = explainer.view, (explainer.place(one)[1], explainer.place(two)[1])
        aligned = "this pair" if same else aligned_with(view, *pair)
        edges = around[0].get(one, ()), around[1].get(two, ())
        found.append(NeighbourProduct(explainer.entity(one), explainer.entity(two), *edges, value, aligned, view.verdict(*pair), view.added(*pair)))
    return found


def _neighbours(explainer: Explainer, entity: int, around: Edges, sent: Sent[int], totals: FloatArray, cap: int) -> tuple[ExplainedNeighbour, ...]:
    order = np.argsort(-np.abs(totals), kind="stable")[:cap].tolist()
    keys = [sent.keys[at] for at in order]
    return tuple(
        ExplainedNeighbour(explainer.entity(key), around.get(key, ()), float(totals[at]), float(sent.weights[at]), key == entity)
        for at, key in zip(order, keys, strict=True)
    )


def aligned_with(view: RunView, source: int, target: int) -> Aligned:
    """What ties two entities together in this run. Links kept for evaluation do not count by themselves: training did not use them."""
    evidence = tied(view, "source", source, target)
    if evidence == "seed link":
        return "seed"
    if evidence == "added in a round":
        return "added"
    if view.best["source"].get(source) == target or view.best["target"].get(target) == source:
        return "predicted"
    return "elsewhere"


# Everything that explains a pair's score, in one value that can be kept and written down.

TOP = 40


@dataclass(frozen=True)
class Explanation:
    """A pair's score broken down.

    Attributes:
        pair: scores, ranks and verdict, as they are shown everywhere.
        decomposition: parts that add up to the CSLS score.
        neighbours, relations: the multi-hop parts once more, by what contributes to them.
        notes: what limits the conclusions, a sentence each.
        values: the values that both have, whose shares add up to what values add to the score.
    """

    pair: PairScore
    decomposition: Decomposition
    neighbours: NeighbourEvidence
    relations: RelationEvidence
    notes: tuple[str, ...]
    values: tuple[PairValue, ...] = ()


def explain(explainer: Explainer, source: int, target: int, pool: Pool = "all", top: int = TOP) -> Explanation:
    """Break a pair's score down.

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
        values=pair_values(explainer, source, target),
    )


def notes_on(explainer: Explainer, pair: PairScore) -> tuple[str, ...]:
    """Sentences about what the run or the pair lacks."""
    notes = []
    for entity in (pair.source, pair.target):
        if not entity.degree:
            notes.append(f"The {entity.side} entity has no triples, so no neighbour contributes to the score.")
    if explainer.looks_at_names and pair.names is None:
        notes.append("At least one of the two has no name, so the similarity of the structure is used in place of that of the names.")
    if explainer.looks_at_names and pair.names is not None and (met := explainer.names_met(pair.source.index, pair.target.index)):
        notes.append(met)
    if pair.verdict == "seed link":
        notes.append(f"{status_sentence(pair.verdict, None)} A high score is therefore no discovery.")
    elif pair.added is not None:
        earlier = "choice" if pair.added == START_ROUND else "prediction"
        notes.append(f"{status_sentence(pair.verdict, pair.added)} Its score is therefore partly that earlier {earlier}.")
    return tuple(notes)
