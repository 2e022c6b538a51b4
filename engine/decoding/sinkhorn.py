"""Sinkhorn: alternately scale rows and columns of exp(similarity / temperature) until each entity's mass is shared out (Cuturi, NeurIPS 2013).

Used for entity alignment by, among others, Mao et al. (EMNLP 2021, "From alignment to assignment"), whose temperature and rounds are the defaults.
Only candidate pairs carry mass, and only the logarithms of the row and column factors are kept: O(P) memory, no under- or overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.decoding.base import Decoding, best_pairs, register_decoder
from engine.decoding.candidates import Candidates, FloatArray
from engine.decoding.kernels import log_normalisers
from engine.errors import ConfigError

TEMPERATURE = 0.02
ROUNDS = 10


@register_decoder
@dataclass(frozen=True)
class SinkhornDecoder:
    """Everyone's largest weight in the transport plan: never abstains, nearly one-to-one.

    Attributes:
        temperature: what similarities are divided by; lower is nearer to the optimal assignment.
        rounds: scalings of the rows, each followed by one of the columns.
    """

    name: ClassVar[str] = "sinkhorn"
    one_to_one: ClassVar[bool] = False
    abstains: ClassVar[bool] = False
    temperature: float = TEMPERATURE
    rounds: int = ROUNDS

    def decode(self, candidates: Candidates) -> Decoding:
        """Scores are the logarithms of the plan's weights."""
        scores = log_plan(candidates, self.temperature, self.rounds)
        by_source, by_target = (best_pairs(lists, scores)[0] for lists in (candidates.by_source, candidates.by_target))
        return Decoding(self.name, candidates, scores, by_source, by_target, tolerance=candidates.tolerance / self.temperature)


def log_plan(candidates: Candidates, temperature: float = TEMPERATURE, rounds: int = ROUNDS) -> FloatArray:
    """(P,) float32 logarithms of the plan's weights; after the last scaling each target's weights sum to 1.

    Raises:
        ConfigError: a temperature that is not positive, or no round.
    """
    if not temperature > 0 or rounds < 1:
        raise ConfigError(f"Sinkhorn needs a temperature above 0 and at least one round; got {temperature:g} and {rounds}.")
    logits = candidates.similarity / np.float32(temperature)
    rows, columns = np.zeros(candidates.shape[0]), np.zeros(candidates.shape[1])
    by_source, by_target = candidates.by_source, candidates.by_target
    for _ in range(rounds):
        log_normalisers(by_source.indptr, by_source.edges, logits, by_source.others, columns, rows)
        log_normalisers(by_target.indptr, by_target.edges, logits, by_target.others, rows, columns)
    return (logits + rows[candidates.sources] + columns[candidates.targets]).astype(np.float32)
