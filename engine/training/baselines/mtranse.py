"""MTransE (Chen et al., IJCAI 2017), with a linear mapping: each graph in a space of its own, and a map from one to the other.

    translation  max(0, |h + r - t| + margin - |h' + r - t'|) for each triple (h, r, t) of either graph and wrong triples, entities of length 1
    alignment    |M u - v| for each seed link (u, v)

The mean over the triples and ``WEIGHT`` times the mean over the seed links are minimised. In a wrong triple a random entity of the same graph is at
one end. The publication does without wrong triples: without them the vectors say little (Hits@1 below .1 on DBP15K ZH-EN).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from engine.config import RunConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.training.baselines.base import Effort, Fit, Learned, Measure, Session, register_baseline
from engine.training.optimiser import Adagrad
from engine.util.arrays import IntArray

DIM: Final = 100
EPOCHS: Final = 10
"""As many as the figure of the Dual-AMN paper takes; four times as many give half as much again (benchmarks/RESULTS.md)."""
LEARNING_RATE: Final = 0.1
MARGIN: Final = 1.0
WRONG: Final = 2
"""Wrong triples for each triple."""
BATCHES: Final = 10
"""Steps of an epoch: each has a share of the triples and of the seed links."""
WEIGHT: Final = 5.0
"""Of the mean alignment loss, where the mean translation loss counts once."""


@register_baseline
class MTransE:
    """Translations in both graphs, and a mapping between them, trained on the seed links."""

    name: ClassVar[str] = "mtranse"
    title: ClassVar[str] = "MTransE"
    about: ClassVar[str] = "translations"
    reference: ClassVar[str] = (
        "Chen et al., Multilingual knowledge graph embeddings for cross-lingual knowledge alignment, IJCAI 2017; linear mapping"
    )
    measure: ClassVar[Measure] = "cosine"

    def embed(self, task: AlignmentTask, session: Session) -> Learned:
        config = session.config.baseline
        dim, generator = config.dim or DIM, session.generator()
        entities, relations = (nn.Parameter(unit_draws(size, dim, generator)) for size in (task.num_entities, task.num_relations))
        mapping = nn.Parameter(torch.eye(dim))
        stacked = task.stacked_triples()
        triples, links = torch.from_numpy(stacked), torch.from_numpy(task.stacked_links(task.train_links))

        def losses(epoch: int) -> Iterator[Tensor]:
            draws = np.random.default_rng([session.config.seed, 4, epoch])
            orders = [np.array_split(draws.permutation(len(part)), BATCHES) for part in (triples, links)]
            for some, linked in zip(*orders, strict=True):
                wrong = drawn_ends(task, stacked[some, 0], WRONG, draws)
                translated = translation_loss(entities, relations, triples[some], wrong, MARGIN)
                yield translated + WEIGHT * mapping_loss(entities, mapping, links[linked])

        @torch.no_grad()
        def keep_length() -> None:
            entities.copy_(normalize(entities, dim=1))

        optimiser = Adagrad([entities, relations, mapping], config.learning_rate or LEARNING_RATE)
        fit = Fit(session, task, optimiser, config.epochs or EPOCHS, losses, keep_length)
        earlier = fit.run()
        with torch.no_grad():
            count = task.source.num_entities
            return Learned(torch.cat([entities[:count] @ mapping.T, entities[count:]]), fit.epochs, fit.seconds, earlier)

    def effort(self, entities: int, triples: int, relations: int, config: RunConfig) -> Effort:
        dim = config.baseline.dim or DIM
        return Effort(config.baseline.epochs or EPOCHS, 1400.0 * dim * (triples + BATCHES * entities), 8.0 * entities * dim, dim)


def unit_draws(size: int, dim: int, generator: torch.Generator) -> Tensor:
    """(n, d) random rows of length 1."""
    return normalize(torch.randn(size, dim, generator=generator), dim=1)


def translation_loss(entities: Tensor, relations: Tensor, triples: Tensor, wrong: Tensor, margin: float) -> Tensor:
    """Mean over the triples and the k entities drawn in place of an end of each of max(0, |h + r - t| + margin - |h' + r - t'|); 0 without triples.

    Args:
        wrong: (B, k); the first half, rounded up, takes the head's place, the others the tail's.
    """
    head, tail = (torch.index_select(entities, 0, triples[:, end]) for end in (0, 2))
    relation = torch.index_select(relations, 0, triples[:, 1])
    drawn = torch.index_select(entities, 0, wrong.flatten()).view(*wrong.shape, entities.shape[1])
    heads = (wrong.shape[1] + 1) // 2
    right = (head + relation - tail).norm(dim=1, keepdim=True)
    apart = torch.cat([drawn[:, :heads] + (relation - tail).unsqueeze(1), (head + relation).unsqueeze(1) - drawn[:, heads:]], dim=1).norm(dim=2)
    total: Tensor = torch.relu(right + margin - apart).sum()
    return total / max(wrong.numel(), 1)


def drawn_ends(task: AlignmentTask, heads: IntArray, count: int, draws: np.random.Generator) -> Tensor:
    """(B, count) random entities of the graph that each triple's head is of, stacked."""
    first = task.source.num_entities
    low, high = np.where(heads < first, 0, first), np.where(heads < first, first, task.num_entities)
    return torch.from_numpy(draws.integers(low[:, None], high[:, None], size=(len(heads), count)))


def mapping_loss(entities: Tensor, mapping: Tensor, links: Tensor) -> Tensor:
    """Mean of |M u - v|; 0 without links."""
    apart = torch.index_select(entities, 0, links[:, 0]) @ mapping.T - torch.index_select(entities, 0, links[:, 1])
    total: Tensor = apart.norm(dim=1).sum()
    return total / max(len(links), 1)
