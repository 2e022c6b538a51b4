"""PARIS (Suchanek et al., VLDB 2011): matches that the seed links imply by the probabilistic fixed point, on the triples alone.

A run is made of vectors. Here they hold no more than the matches: the two entities of a match, or of a seed link, have a random direction in
common, so that their cosine is the probability of the match, and that of all other pairs is near 0. An entity without a match has a zero vector.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from engine.config import RunConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.decoding.fixed_point import fixed_point
from engine.names.value_start import facts_of
from engine.training.baselines.base import Effort, Learned, Measure, Session, register_baseline
from engine.util.arrays import FloatArray, IntArray

DIM: Final = 256


@register_baseline
class Paris:
    """The probabilistic fixed point; nothing is trained."""

    name: ClassVar[str] = "paris"
    title: ClassVar[str] = "PARIS"
    about: ClassVar[str] = "probabilistic fixed point, no training"
    reference: ClassVar[str] = "Suchanek et al., PARIS, VLDB 2011; triples only, one counterpart per entity"
    measure: ClassVar[Measure] = "cosine"

    def embed(self, task: AlignmentTask, session: Session) -> Learned:
        found = fixed_point(*facts_of(task, None), task.train_links)
        pairs = task.stacked_links(np.concatenate([task.train_links, found.pairs]))
        probabilities = np.concatenate([np.ones(len(task.train_links)), found.probabilities])
        dim = session.config.baseline.dim or DIM
        return Learned(matched_directions(pairs, probabilities, task.num_entities, dim, session.generator()))

    def effort(self, entities: int, triples: int, relations: int, config: RunConfig) -> Effort:
        dim = config.baseline.dim or DIM
        return Effort(1, 8e6 * triples, 3.0 * entities * dim, dim)


def matched_directions(pairs: IntArray, probabilities: FloatArray, entities: int, dim: int, generator: torch.Generator) -> Tensor:
    """(E, d) vectors of length 1 whose cosine is the probability for the two entities of a pair; zero for entities without one.

    Of an entity with several pairs the last one counts.
    """
    shared = normalize(torch.randn(len(pairs), dim, generator=generator), dim=1)
    drawn = torch.randn(len(pairs), dim, generator=generator)
    apart = normalize(drawn - (drawn * shared).sum(1, keepdim=True) * shared, dim=1)
    chance = torch.from_numpy(probabilities.astype(np.float32)).unsqueeze(1)
    vectors = torch.zeros(entities, dim)
    vectors[torch.from_numpy(pairs[:, 0])] = shared
    vectors[torch.from_numpy(pairs[:, 1])] = chance * shared + (1 - chance.square()).clamp(min=0).sqrt() * apart
    return vectors
