"""How many of the entities without a known link really have no counterpart.

That no link of an entity is known does not make it dangling: published links often cover a part of what there is. (The sure matches of DBP15K ZH-EN's
unlinked entities bear equal names 0.7 times as often as those of the linked ones, which are nearly all right.) The share is estimated from how
sure their matches are, between two groups whose truth is known: validation entities, and validation entities whose counterparts were taken out of
the pool. If a share of the unlinked dangles, then

    mean(unlinked) = share * mean(counterpart taken out) + (1 - share) * mean(validation)

(prior estimation under label shift: Saerens, Latinne and Decaestecker, Neural Computation 2002; Lipton, Wang and Smola, ICML 2018). How sure
a match is also goes with the degree, and unlinked entities have few triples. So both known means are lines over the logarithm of the degree, read
off at the degrees that the unlinked entities have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.data.knowledge_graph import SIDES
from engine.decoding.base import NONE, Decoder, Decoding
from engine.decoding.candidates import Candidates
from engine.decoding.graph_evidence import GraphEvidence
from engine.evaluation.calibration import Calibration, pair_features, without_counterparts
from engine.util.arrays import BoolArray, FloatArray, IntArray

LEAST_GAP = 0.05
"""Mean difference between the two known groups from which on a share can be told."""
LEAST_VARIANCE = 1e-9
"""Of equal degrees' logarithms only rounding is left."""


@dataclass(frozen=True)
class Sureness:
    """How sure the matches of n entities are.

    Attributes:
        degrees: (n,) triples of the entity.
        probability: (n,) of its match, as if all entities had counterparts.
    """

    degrees: IntArray
    probability: FloatArray

    def line(self, degrees: IntArray) -> FloatArray:
        """(m,) mean probability to be expected at other degrees: least squares over log(1 + degree), kept between 0 and 1."""
        x, at = np.log1p(self.degrees), np.log1p(degrees)
        variance = float(x.var())
        slope = float(((x - x.mean()) * self.probability).mean()) / variance if variance > LEAST_VARIANCE else 0.0
        expected: FloatArray = np.clip(self.probability.mean() + slope * (at - x.mean()), 0.0, 1.0)
        return expected


def estimate_dangling(
    decoder: Decoder,
    candidates: Candidates,
    links: IntArray,
    unlinked: tuple[BoolArray, BoolArray],
    evidence: GraphEvidence,
    calibration: Calibration,
    seed: int = 0,
) -> float:
    """The share of the unlinked entities that have no counterpart; 0 where there are none.

    Args:
        decoder: whose predictions are looked at.
        candidates: of the pool.
        links: (L, 2) validation links, as rows of the pool.
        unlinked: (n,) and (m,) whether no link of the entity is known.
        evidence: the graphs around the pool's entities and the seed links.
        calibration: fitted on these links with a dangling share of 0.
        seed: chooses which counterparts are taken out.
    """
    if not any(side.any() for side in unlinked):
        return 0.0
    known: tuple[BoolArray, BoolArray] = (np.zeros_like(unlinked[0]), np.zeros_like(unlinked[1]))
    for side in range(2):
        known[side][links[:, side]] = True
    decoding = decoder.decode(candidates)
    alone, lonely = without_counterparts(decoder, candidates, links, seed)
    return dangling_share_of(
        sureness(decoding, unlinked, evidence, calibration),
        sureness(decoding, known, evidence, calibration),
        sureness(alone, lonely, evidence, calibration),
    )


def sureness(decoding: Decoding, entities: tuple[BoolArray, BoolArray], evidence: GraphEvidence, calibration: Calibration) -> Sureness:
    """Of those of the entities, of either side, that have a prediction."""
    parts = []
    for at, side in enumerate(SIDES):
        chosen = decoding.chosen(side)
        asked = np.flatnonzero(entities[at] & (chosen != NONE))
        parts.append((evidence.degrees[at][asked], calibration.probabilities(pair_features(decoding, chosen[asked], evidence))))
    return Sureness(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def dangling_share_of(unlinked: Sureness, linked: Sureness, lonely: Sureness) -> float:
    """The share for which the unlinked entities lie between those with and those without a counterpart.

    1 where the two cannot be told apart: it is safer to promise too little.
    """
    if not len(unlinked.degrees):
        return 0.0
    if not len(linked.degrees) or not len(lonely.degrees):
        return 1.0
    upper, lower = (float(group.line(unlinked.degrees).mean()) for group in (linked, lonely))
    if upper - lower < LEAST_GAP:
        return 1.0
    return float(np.clip((upper - unlinked.probability.mean()) / (upper - lower), 0.0, 1.0))
