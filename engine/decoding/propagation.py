"""Sinkhorn and the graphs in turn: matches make their neighbours' matches likelier, over relations that go together.

In the spirit of the third-order view of isomorphism (ACL 2022) and of feature propagation (2024), which decode an encoder's output once more through
the adjacency of both graphs. This one works on candidate pairs, learns from the current matches which relations of the two graphs correspond, as
PARIS does (Suchanek et al., VLDB 2011), and weighs a shared neighbour by how few entities share it.

One round:
    W = seed links, and the plan of sinkhorn(CSLS / 2 + strength A);
    R(r, r') = how often matched pairs reach matched neighbours by r and by r';
    A(i, j) = sum over (r', l) of j of max over (r, k) of i of W(k, l) R(r, r'), triples weighed by rarity, scaled to both neighbourhoods' sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.decoding.base import Decoding, register_graph_decoder
from engine.decoding.candidates import Candidates
from engine.decoding.graph_evidence import GraphEvidence
from engine.decoding.sinkhorn import ROUNDS, TEMPERATURE, everyones_best, log_plan
from engine.errors import ConfigError


@register_graph_decoder
@dataclass(frozen=True)
class PropagationDecoder:
    """Everyone's largest weight in the plan of similarity and neighbours' agreement: never abstains, nearly one-to-one.

    Attributes:
        evidence: the graphs; its pools are those of the candidates.
        strength: what full agreement of the neighbourhoods adds to half of the CSLS.
        iterations: rounds of propagation, each followed by Sinkhorn.
        temperature, rounds: Sinkhorn's.
    """

    name: ClassVar[str] = "propagation"
    title: ClassVar[str] = "Sinkhorn with the neighbours' matches"
    one_to_one: ClassVar[bool] = False
    abstains: ClassVar[bool] = False
    evidence: GraphEvidence
    strength: float = 1.0
    iterations: int = 4
    temperature: float = TEMPERATURE
    rounds: int = ROUNDS

    def decode(self, candidates: Candidates) -> Decoding:
        """
        Raises:
            ConfigError: settings out of range, or evidence about other pools.
        """
        pools = len(self.evidence.source_pool), len(self.evidence.target_pool)
        if pools != candidates.shape or not self.strength >= 0 or self.iterations < 1:
            raise ConfigError(
                "propagation needs the graphs' evidence about the very pools that are decoded, a strength of at least 0 and at least one iteration; "
                f"got pools {pools} for candidates {candidates.shape}, strength {self.strength:g}, iterations {self.iterations}."
            )
        own = candidates.csls / np.float32(2)
        scores = log_plan(candidates, self.temperature, self.rounds, own)
        for _ in range(self.iterations):
            weights = scores.astype(np.float64)
            agreement = self.evidence.agreement(candidates, np.exp(weights, out=weights))
            agreement *= self.strength
            agreement += own
            scores = log_plan(candidates, self.temperature, self.rounds, agreement.astype(np.float32))
        return everyones_best(self.name, candidates, scores, self.temperature)
