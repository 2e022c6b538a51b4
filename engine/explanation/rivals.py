"""A pair compared with another one that shares an entity with it, part by part; and the pairs that compete for either of its entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.data.knowledge_graph import Side
from engine.decoding import NONE, Decoding, get_decoder
from engine.errors import EntityError
from engine.explanation.decomposition import Decomposition, Products, ScorePart, decompose
from engine.explanation.evidence import Edges, neighbour_products
from engine.explanation.explainer import Explainer, resolve_rival
from engine.explore.alignment import stored_candidates
from engine.explore.neighbourhood import Edge
from engine.runs.entities import Entity, other
from engine.runs.view import Match, PairScore, Pool
from engine.util.text import shortened

ONE_TO_ONE = "stable"
"""The decoder that conflicts are shown with: quick on any size, and its choice is easy to follow (the best free pair, again and again)."""


@dataclass(frozen=True)
class NeighbourDifference:
    """A neighbour of the shared entity, and what it carries for the pair and for its rival, as shares of their CSLS scores."""

    entity: Entity
    edges: tuple[Edge, ...]
    pair: float
    rival: float

    @property
    def value(self) -> float:
        return self.pair - self.rival


@dataclass(frozen=True)
class RivalComparison:
    """A pair and a rival pair that shares its source or its target.

    Attributes:
        shared: the graph of the entity that they share.
        differences: the pair's parts minus the rival's, adding up to ``total`` but for rounding.
        neighbours: of the shared entity, by the size of the difference, the largest first.
    """

    pair: PairScore
    rival: PairScore
    shared: Side
    parts: tuple[Decomposition, Decomposition]
    differences: tuple[ScorePart, ...]
    neighbours: tuple[NeighbourDifference, ...]

    @property
    def total(self) -> float:
        """By how much the pair's CSLS score is above the rival's."""
        return self.pair.csls - self.rival.csls


@dataclass(frozen=True)
class Claim:
    """An entity whose best match is the one in question."""

    entity: Entity
    csls: float
    decided: Entity | None


@dataclass(frozen=True)
class Conflict:
    """Several entities that have one entity of the other graph as their best match among all, and what a one-to-one decoder makes of it.

    Attributes:
        entity: the one that is claimed.
        claims: by CSLS, the best first. ``decided`` is the decoder's answer for each claimant; None where it abstains.
        winner: the claimant that the decoder gives the entity to.
        decoder: its name. It looks at the stored best matches of all entities, ``listed`` for each.
    """

    entity: Entity
    claims: tuple[Claim, ...]
    winner: Entity | None
    decoder: str
    listed: int


def runner_up(explainer: Explainer, source: int, target: int, pool: Pool = "all", side: Side = "source") -> Match | None:
    """The best candidate of one of the two entities, that of the graph ``side``, besides the other one.

    Where the pair is not this entity's best match, that is the best match. None in a pool of one.
    """
    own, across = (source, target) if side == "source" else (target, source)
    found = explainer.view.matches(side, own, 2, pool)
    return next((one for one in found if one.entity != across), None)


def compare_with(
    explainer: Explainer, source: int, target: int, text: str | None = None, pool: Pool = "all", top: int = 10, side: Side = "source"
) -> RivalComparison | None:
    """A pair beside what a user names, or where nothing is named beside the runner-up; None where there is no other candidate.

    Args:
        side: the graph of the entity from which one looks: its candidates are meant first by a name, and the runner-up is one of them.

    Raises:
        EntityError: unknown, ambiguous, the pair's own entity, or not in the pool.
    """
    if text is not None:
        return compare_rival(explainer, source, target, resolve_rival(explainer.view, text, other(side)), pool, top)
    best = runner_up(explainer, source, target, pool, side)
    return None if best is None else compare_rival(explainer, source, target, explainer.view.entity(other(side), best.entity), pool, top)


def compare_rival(explainer: Explainer, source: int, target: int, rival: Entity, pool: Pool = "all", top: int = 10) -> RivalComparison:
    """A pair beside the same with one entity exchanged for another of its graph.

    Raises:
        EntityError: the rival is the pair's own entity, or not in the pool.
    """
    own = target if rival.side == "target" else source
    if rival.index == own:
        raise EntityError(f"'{shortened(rival.title)}' is the pair's own entity; name another one of the {rival.side} graph to compare with.")
    pairs = (source, target), (source, rival.index) if rival.side == "target" else (rival.index, target)
    scores = [explainer.view.pair(*pair, pool) for pair in pairs]
    snapshots = [explainer.snapshot(*pair) for pair in pairs]
    first, second = (decompose(explainer, snapshot, score) for snapshot, score in zip(snapshots, scores, strict=True))
    shared = other(rival.side)
    carried = [_carried(neighbour_products(snapshot), shared) for snapshot in snapshots]
    centre = snapshots[0].entities[0 if shared == "source" else 1]
    around = explainer.edges(centre)
    neighbours = [_difference(explainer, entity, around, carried) for entity in carried[0]]
    neighbours.sort(key=lambda one: -abs(one.value))
    return RivalComparison(scores[0], scores[1], shared, (first, second), differences(first, second), tuple(neighbours[:top]))


def _carried(products: Products[int], side: Side) -> dict[int, float]:
    """What each neighbour of one of the two entities carries."""
    keys, totals = (products.source.keys, products.source_totals()) if side == "source" else (products.target.keys, products.target_totals())
    return dict(zip(keys, totals.tolist(), strict=True))


def _difference(explainer: Explainer, entity: int, around: Edges, carried: Sequence[Mapping[int, float]]) -> NeighbourDifference:
    return NeighbourDifference(explainer.entity(entity), around.get(entity, ()), carried[0][entity], carried[1][entity])


def differences(first: Decomposition, second: Decomposition) -> tuple[ScorePart, ...]:
    """Part by part; what only one of the two has counts as 0 in the other."""
    theirs = {part.name: part for part in second.parts}
    own = {part.name for part in first.parts}
    both = [replace(one, value=one.value - (theirs[one.name].value if one.name in theirs else 0.0)) for one in first.parts]
    return (*both, *(replace(one, value=-one.value) for one in second.parts if one.name not in own))


def conflict(explainer: Explainer, index: int, decoder: str = ONE_TO_ONE, side: Side = "target") -> Conflict:
    """Which entities have this one as their best match, among all entities, and what a one-to-one decoder does about it.

    Args:
        side: the graph of the entity that is claimed.

    Raises:
        EntityError: no such entity.
        ConfigError: no such decoder.
    """
    view, across = explainer.view, other(side)
    entity, decoding = view.entity(side, index), decoded_alignment(explainer, decoder)
    given, winner = decoding.predicted(across), decoding.predicted(side)
    rows = view.stored_matches({"graph": across, "match": index, "rank": 1})
    claims = [
        Claim(view.entity(across, claimant), csls, _decided(explainer, side, int(given[claimant])))
        for claimant, csls in zip(rows["entity"].tolist(), rows["csls"].tolist(), strict=True)
    ]
    claims.sort(key=lambda claim: (-claim.csls, claim.entity.index))
    return Conflict(entity, tuple(claims), _decided(explainer, across, int(winner[index])), decoder, decoding.candidates.top)


def _decided(explainer: Explainer, side: Side, index: int) -> Entity | None:
    return None if index == NONE else explainer.view.entity(side, index)


def decoded_alignment(explainer: Explainer, decoder: str = ONE_TO_ONE) -> Decoding:
    """What a decoder makes of all entities' stored best matches; kept with the explainer.

    Raises:
        ConfigError: no such decoder, or one that needs more than scores.
    """
    if decoder not in explainer.decodings:
        explainer.decodings[decoder] = get_decoder(decoder).decode(stored_candidates(explainer.view))
    return explainer.decodings[decoder]
