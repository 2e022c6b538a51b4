"""Counterfactual removal of evidence: the pair's vectors recomputed, with frozen weights, on the graph that lacks it.

The two vectors are exactly those of the whole encoder on the smaller graph. Everything else is held as it is: the other entities' vectors and their
hubness terms (which would move a little, too). The pair's own hubness terms are means over the fixed pool, with the other of the two at its new
place. So a change in score or rank is due to what this pair lost, and not to what its rivals lost by the way. Weights are not trained again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from engine.data.knowledge_graph import Side
from engine.explanation.encoder import Triple
from engine.explanation.explainer import Explainer, NamedTriple
from engine.explanation.value_evidence import PairValue, ValueFact, pair_values, without_values
from engine.runs.entities import Entity, other
from engine.runs.view import Pool, RowScores
from engine.search import LiteralSimilarity, PairParts, StructuralSimilarity, normalise_rows
from engine.search.base import zero_term
from engine.search.csls import csls_score


@dataclass(frozen=True)
class Rival:
    """The best candidate besides the pair's own."""

    entity: Entity
    csls: float


@dataclass(frozen=True)
class PairRank:
    """Ranks and scores of a pair among all pairs of its two entities.

    Attributes:
        hubness_source, hubness_target: r(s) and r(t) in the CSLS score.
        rank_from_source, rank_from_target: as everywhere; ties count against the pair.
        rival_of_target: the best other target for the source; None in a pool of one.
        rival_of_source: the best other source for the target.
    """

    cosine: float
    csls: float
    hubness_source: float
    hubness_target: float
    rank_from_source: int
    rank_from_target: int
    rival_of_target: Rival | None
    rival_of_source: Rival | None

    def rank(self, side: Side) -> int:
        """As seen from the entity of one graph."""
        return self.rank_from_source if side == "source" else self.rank_from_target

    def rival(self, side: Side) -> Rival | None:
        """The best candidate besides the pair's own, as seen from the entity of one graph."""
        return self.rival_of_target if side == "source" else self.rival_of_source

    def margin(self, side: Side = "source") -> float:
        """How far the pair's score is above its best rival's, as seen from the entity of one graph; below 0 it is not the best match."""
        rival = self.rival(side)
        return self.csls - rival.csls if rival else np.inf


@dataclass(frozen=True)
class Intervention:
    """A pair before and after some evidence was removed.

    Attributes:
        removed: triples.
        values: values that the two shared, in full or in part.
    """

    removed: tuple[NamedTriple, ...]
    before: PairRank
    after: PairRank
    values: tuple[PairValue, ...] = ()

    def flips(self, side: Side = "source") -> bool:
        """Whether the decision changes: the pair was the best match of the entity of this graph and is not any more, or the other way round."""
        return (self.before.rank(side) == 1) != (self.after.rank(side) == 1)


Evidence = Triple | ValueFact


def split_evidence(removed: Iterable[Evidence]) -> tuple[frozenset[Triple], frozenset[ValueFact]]:
    """Triples and values apart."""
    gone = frozenset(removed)
    facts = frozenset(one for one in gone if isinstance(one, ValueFact))
    return frozenset(one for one in gone if not isinstance(one, ValueFact)), facts


class Experiment:
    """A pair, ready to have evidence removed again and again. Keeps the pair's scores, and the names' and values' similarities with both pools.

    Args:
        explainer: of the run.
        source, target: indices in their graphs.
        pool: the candidates; all others stay as they are.

    Raises:
        EntityError: no such entity, or one of the two is not in the pool.
        RunError: the run has no stored weights.
    """

    def __init__(self, explainer: Explainer, source: int, target: int, pool: Pool = "all") -> None:
        self.explainer, self.source, self.target, self.pool = explainer, source, target, pool
        self.k = explainer.config.search.csls_k
        view = explainer.view
        self._rows: dict[Side, RowScores] = {"source": view.scores("source", source, pool), "target": view.scores("target", target, pool)}
        hubness = float(view.hubness("source", pool)[source]), float(view.hubness("target", pool)[target])
        self.before = self._standing(self._rows, hubness)

    def without(self, removed: Iterable[Evidence]) -> Intervention:
        """The pair where its graphs lack these triples, and the two entities these values."""
        gone = frozenset(removed)
        triples, facts = split_evidence(gone)
        shared = pair_values(self.explainer, self.source, self.target) if facts else ()
        values = tuple(one for one in shared if facts & frozenset(one.facts))
        return Intervention(self.explainer.named(triples), self.before, self.standing(gone), values)

    def standing(self, removed: Iterable[Evidence]) -> PairRank:
        """Ranks and scores of the pair where its graphs lack these triples, and the two entities these values."""
        triples, facts = split_evidence(removed)
        final = self.explainer.snapshot(self.source, self.target, triples).final.reshape(2, -1)
        rows = normalise_rows(torch.from_numpy(final))  # (2, C D)
        cosine = float(rows[0].double() @ rows[1].double())
        structure = self._cosines("source", rows[:1], cosine), self._cosines("target", rows[1:], cosine)
        combined = self._combined("source", structure[0], facts), self._combined("target", structure[1], facts)
        own = self._own_hubness(combined[0]), self._own_hubness(combined[1])
        changed: dict[Side, RowScores] = {
            "source": self._scores("source", structure[0], combined[0], own),
            "target": self._scores("target", structure[1], combined[1], own),
        }
        return self._standing(changed, own)

    def _own_hubness(self, similarities: npt.NDArray[np.float64]) -> float:
        """The hubness term of one of the two, from its (n,) similarities; an entity that lost all its evidence becomes a zero vector."""
        return mean_of_best(similarities, self.k) if similarities.any() else zero_term(self.explainer.view.similarity)

    def _place(self, side: Side) -> int:
        """The rank of the pair's other entity among the candidates of one of the two."""
        return self._rows[side].position(self.target if side == "source" else self.source)

    def _cosines(self, side: Side, row: torch.Tensor, own: float) -> npt.NDArray[np.float64]:
        """(n,) of one entity's new vector with its candidates, ``own`` in the pair's place."""
        similarity = self.explainer.view.similarity
        structure = similarity.structure if isinstance(similarity, LiteralSimilarity) else similarity
        candidates = torch.from_numpy(self._rows[side].candidates)
        pool = structure.target if side == "source" else structure.source
        cosines = StructuralSimilarity(row, pool).pairs(torch.zeros_like(candidates), candidates).numpy()
        cosines[self._place(side)] = own
        return cosines

    def _combined(self, side: Side, cosines: npt.NDArray[np.float64], gone: frozenset[ValueFact]) -> npt.NDArray[np.float64]:
        """(n,) cosines, names and values together, as the run's similarity has them."""
        row, similarity = self._rows[side], self.explainer.view.similarity
        if row.names is None or not isinstance(similarity, LiteralSimilarity):
            return cosines
        values = np.zeros_like(cosines) if row.values is None else row.values.astype(np.float64)
        if gone and similarity.values is not None:
            values -= without_values(similarity.values, side, self.source if side == "source" else self.target, gone, row.candidates)
        parts = PairParts(*(torch.from_numpy(one) for one in (cosines, row.names.astype(np.float64), values)))
        return similarity.together(parts).numpy()

    def _scores(self, side: Side, structure: npt.NDArray[np.float64], combined: npt.NDArray[np.float64], own: tuple[float, float]) -> RowScores:
        row, across = self._rows[side], other(side)
        mine, theirs = own if side == "source" else own[::-1]
        terms = self.explainer.view.hubness(across, self.pool)[row.candidates].astype(np.float64)
        terms[self._place(side)] = theirs
        csls = csls_score(torch.from_numpy(combined), torch.tensor(mine, dtype=torch.float64), torch.from_numpy(terms)).float().numpy()
        return replace(row, cosine=structure.astype(np.float32), csls=csls, zero=not combined.any())

    def _standing(self, rows: dict[Side, RowScores], hubness: tuple[float, float]) -> PairRank:
        at = {side: self._place(side) for side in rows}
        return PairRank(
            cosine=float(rows["source"].cosine[at["source"]]),
            csls=float(rows["source"].csls[at["source"]]),
            hubness_source=hubness[0],
            hubness_target=hubness[1],
            rank_from_source=rows["source"].rank(at["source"]),
            rank_from_target=rows["target"].rank(at["target"]),
            rival_of_target=self._rival("source", rows["source"], at["source"]),
            rival_of_source=self._rival("target", rows["target"], at["target"]),
        )

    def _rival(self, side: Side, row: RowScores, place: int) -> Rival | None:
        if len(row.csls) < 2:
            return None
        rest = row.csls.copy()
        rest[place] = -np.inf
        best = int(np.argmax(rest))
        return Rival(self.explainer.view.entity(other(side), int(row.candidates[best])), float(rest[best]))


def mean_of_best(values: npt.NDArray[np.float64], k: int) -> float:
    """The mean of the k largest values, of all where there are fewer: a hubness term."""
    kept = np.partition(values, len(values) - k)[-k:] if len(values) > k else values
    return float(kept.mean()) if len(kept) else 0.0


def intervene(explainer: Explainer, source: int, target: int, removed: Iterable[Evidence], pool: Pool = "all") -> Intervention:
    """Remove evidence and look at a pair again.

    Args:
        explainer: of the run.
        source, target: indices in their graphs.
        removed: triples of either graph and shared values (:mod:`engine.explanation.removal` finds them).
        pool: the candidates.

    Raises:
        EntityError, RunError: as :class:`Experiment`.
    """
    return Experiment(explainer, source, target, pool).without(removed)


__all__ = ["Evidence", "Experiment", "Intervention", "PairRank", "Rival", "intervene", "mean_of_best"]
