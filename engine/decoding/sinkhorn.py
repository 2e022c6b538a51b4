"""Sinkhorn: alternately scale rows and columns of exp(similarity / temperature) until each entity's mass is shared out (Cuturi, NeurIPS 2013).

Used for entity alignment by, among others, Mao et al. (EMNLP 2021, "From alignment to assignment"), whose temperature and rounds are the defaults.
Only candidate pairs carry mass: O(P) memory. The first scaling, which may be by any factor, is done with logarithms; after it no row and no column
weighs next to nothing, so that the others can work on the weights themselves without under- or overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from engine.decoding.base import Decoding, best_pairs, register_decoder
from engine.decoding.candidates import PAIRS_AT_ONCE, Candidates, FloatArray, Lists
from engine.decoding.kernels import log_normalisers, scale_plan
from engine.errors import ConfigError
from engine.util.threads import cut, spread

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
    title: ClassVar[str] = "Sinkhorn (balanced)"
    one_to_one: ClassVar[bool] = False
    abstains: ClassVar[bool] = False
    temperature: float = TEMPERATURE
    rounds: int = ROUNDS

    def decode(self, candidates: Candidates) -> Decoding:
        """Scores are the logarithms of the plan's weights."""
        return everyones_best(self.name, candidates, log_plan(candidates, self.temperature, self.rounds), self.temperature)


def everyones_best(decoder: str, candidates: Candidates, scores: FloatArray, temperature: float) -> Decoding:
    """Everyone's largest weight, given their (P,) logarithms."""
    by_source, by_target = (best_pairs(lists, scores)[0] for lists in (candidates.by_source, candidates.by_target))
    return Decoding(decoder, candidates, scores, by_source, by_target, tolerance=candidates.tolerance / temperature)


def log_plan(candidates: Candidates, temperature: float = TEMPERATURE, rounds: int = ROUNDS, similarity: FloatArray | None = None) -> FloatArray:
    """(P,) float32 logarithms of the plan's weights; after the last scaling each target's weights sum to 1.

    ``similarity``: (P,) to be taken in place of the candidates' own.

    Raises:
        ConfigError: a temperature that is not positive, or no round.
    """
    if not temperature > 0 or rounds < 1:
        raise ConfigError(f"Sinkhorn needs a temperature above 0 and at least one round; got {temperature:g} and {rounds}.")
    logits = (candidates.similarity if similarity is None else similarity) / np.float32(temperature)
    rows, columns = np.zeros(candidates.shape[0]), np.zeros(candidates.shape[1])
    by_source, by_target = candidates.by_source, candidates.by_target
    for lists, potential, out in ((by_source, columns, rows), (by_target, rows, columns)):
        normalise(lists, logits, potential, out)
    if rounds > 1:
        plan = np.empty(len(candidates))
        for part in cut(len(candidates), PAIRS_AT_ONCE):
            plan[part] = np.exp(logits[part] + (rows[candidates.sources[part]] + columns[candidates.targets[part]]))
        scale_plan(by_source.indptr, candidates.targets, plan, rounds - 1, rows, columns)
        del plan
    for part in cut(len(candidates), PAIRS_AT_ONCE):
        logits[part] = logits[part] + rows[candidates.sources[part]] + columns[candidates.targets[part]]
    return logits


def normalise(lists: Lists, logits: FloatArray, potential: npt.NDArray[np.float64], out: npt.NDArray[np.float64]) -> None:
    """Potentials of one side's entities that make each of their lists weigh 1, given those of the other side."""
    arrays = lists.indptr, lists.edges, logits, lists.others, potential, out
    spread(lambda start, stop: log_normalisers(start, stop, *arrays), len(out), 8 * len(logits))
