"""How probable candidate pairs are among all one-to-one matchings of two graphs: draws of whole matchings.

Neighbours' matches support each other, so that a wrong group of matches (the regions of a country, each moved on by one) looks as consistent as the
right one, and any procedure that decides pair by pair keeps what it decided first. Here whole matchings M are drawn with probability

    P(M) ~ exp(E(M) / temperature),   E(M) = sum over (i, j) in M of [weight CSLS(i, j) / 2 + facts that i and j share],

where two facts (r, k) of i and (r', l) of j are shared if k and l match, and count as much as r and r' go together and as few entities have such a
fact. A pair's probability is the share of the draws that it is in. Graph matching by simulated annealing is old (for example Herault and others,
ECCV 1990); the draws are by Metropolis and Hastings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.decoding.candidates import Candidates
from engine.decoding.graph_evidence import GraphEvidence, Incidence
from engine.decoding.matching_kernels import AffinityArray, ListArrays, MatchArrays, WeightedFacts, draw_matchings, most_worth, proposal_counts
from engine.errors import ConfigError
from engine.util.arrays import FloatArray, IntArray
from engine.util.threads import run_parts, spread

CHAINS = 2
"""Independent draws that are averaged."""
MOST_PROPOSALS, LEAST_PROPOSALS = 2000, 60
"""For each source entity, by one chain."""
ALL_PROPOSALS, BOUND = 1_000_000, 50_000_000
"""Of one chain: as far as each entity gets the least number, and in any case (some minutes)."""
BURN_IN = 0.5
"""Share of the proposals before draws count."""
LEAD, TIMES = 0.6, 32
"""A pair is proposed up to ``TIMES`` times as often as a hopeless one, by how near it could come to its entity's best (in ``LEAD``)."""


def proposals_each(entities: int) -> int:
    """Proposals of one chain for each source entity of a pool of this many."""
    wanted = int(np.clip(ALL_PROPOSALS // max(entities, 1), LEAST_PROPOSALS, MOST_PROPOSALS))
    return max(min(wanted, BOUND // max(entities, 1)), 1)


@dataclass(frozen=True)
class Matchings:
    """Draws of one-to-one matchings of two pools.

    Attributes:
        evidence: the graphs and seed links; its pools are those of the candidates. Seed links are matched in every draw.
        similarity: weight of half the CSLS beside shared facts, which count up to 1.
        temperature: of the draws; lower: nearer to the best matching.
        begin: factor on the temperature at the beginning.
        proposals: number for each source entity and chain; None: by their number.
    """

    evidence: GraphEvidence
    similarity: float = 6.0
    temperature: float = 0.3
    begin: float = 2.0
    proposals: int | None = None

    def probabilities(self, candidates: Candidates, start: IntArray, seed: int | Sequence[int] = 0) -> FloatArray:
        """(P,) of the candidate pairs.

        Args:
            candidates: of the pools; pairs that are none are in no draw.
            start: (n,) position of each source's pair that the draws begin with, -1 for none; no target twice. These pairs and the seed links also
                say which relations go together.
            seed: of the draws.

        Raises:
            ConfigError: settings out of range, or evidence about other pools.
        """
        pools = len(self.evidence.source_pool), len(self.evidence.target_pool)
        if pools != candidates.shape or not self.temperature > 0 or not self.begin >= 1 or (self.proposals is not None and self.proposals < 1):
            raise ConfigError(
                "matchings are drawn with the graphs' evidence about the very pools, a temperature above 0, a factor of at least 1 and at least one "
                f"proposal; got pools {pools} for candidates {candidates.shape}, {self.temperature:g}, {self.begin:g} and {self.proposals}."
            )
        if not len(candidates):
            return np.zeros(0)
        begun = np.zeros(len(candidates))
        begun[start[start >= 0]] = 1.0
        arguments = self._arguments(candidates, begun)
        steps = (self.proposals or proposals_each(pools[0])) * pools[0]
        counts = np.zeros((CHAINS, len(candidates)), dtype=np.int64)
        lists, source, target, affinity = arguments
        most, begin = np.zeros(len(candidates) + pools[0]), self._begin(candidates, start)
        spread(lambda first, last: most_worth(first, last, lists, begin, source, target, affinity, most), pools[0], len(source[1]) * len(candidates))
        times = proposal_counts(lists, most, LEAD, TIMES)
        proposals = np.repeat(np.arange(len(times)), times), times, np.concatenate([candidates.sources, np.arange(pools[0])])
        chosen = np.random.SeedSequence(seed).generate_state(CHAINS)

        def draw(chain: int) -> None:
            targets, sources, rows, held = (part.copy() for part in begin)
            settings = (self.begin * self.temperature, self.temperature), steps, int(BURN_IN * steps), int(chosen[chain])
            draw_matchings(lists, (targets, sources, rows, held), source, target, affinity, most, proposals, *settings, counts[chain])

        run_parts(draw, CHAINS)
        found: FloatArray = counts.sum(axis=0) / (CHAINS * (steps - int(BURN_IN * steps)))
        return found

    def _arguments(self, candidates: Candidates, begun: FloatArray) -> tuple[ListArrays, WeightedFacts, WeightedFacts, AffinityArray]:
        evidence = self.evidence
        pairs = candidates.by_source.indptr, evidence.target_pool[candidates.targets], evidence.source_pool
        worth = np.float64(self.similarity) / 2 * candidates.csls.astype(np.float64)
        together = np.minimum(evidence.affinity(evidence.anchors(candidates, begun)), 1.0).astype(np.float32)
        return (*pairs, worth), weighted_facts(evidence.source), weighted_facts(evidence.target), together

    def _begin(self, candidates: Candidates, start: IntArray) -> MatchArrays:
        """The matches that draws begin with: the seed links and the given pairs."""
        evidence, held = self.evidence, start.astype(np.int64).copy()
        targets, sources = (np.full(len(graph.norms), -1, dtype=np.int64) for graph in (evidence.source, evidence.target))
        rows = np.full(len(targets), -1, dtype=np.int64)
        rows[evidence.source_pool] = np.arange(len(evidence.source_pool))
        targets[evidence.seeds[:, 0]], sources[evidence.seeds[:, 1]] = evidence.seeds[:, 1], evidence.seeds[:, 0]
        chosen = np.flatnonzero(held >= 0)
        left, right = evidence.source_pool[chosen], evidence.target_pool[candidates.targets[held[chosen]]]
        targets[left], sources[right] = right, left
        return targets, sources, rows, held


def weighted_facts(graph: Incidence) -> WeightedFacts:
    """An entity's facts by neighbour. A triple weighs the same for both of its ends: the mean of how rare it is for the one and for the other."""
    entities = np.repeat(np.arange(len(graph.norms), dtype=np.int64), graph.degrees)
    order = np.lexsort((graph.relations, graph.neighbours, entities))
    _, place, counts = np.unique(entities * graph.num_relations + graph.relations, return_inverse=True, return_counts=True)
    weights = (graph.rarity + counts[place].astype(np.float64) ** -0.5) / 2
    return graph.indptr, graph.neighbours[order], graph.relations[order], weights[order]
