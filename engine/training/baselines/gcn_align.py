"""GCN-Align (Wang et al., EMNLP 2018), the part that looks at structure: graph convolutions over both graphs, brought together by the seed links.

    A_ij = sum over the triples between i and j of a weight, what the relation determines:
           for (i, r, j): inverse functionality of r, distinct tails by triples; for (j, r, i): its functionality, distinct heads by triples
    H    = relu(N X),  Z = N H  with N = D^-1/2 (A + I) D^-1/2 and trained features X, one vector per entity

without weight matrices between the layers. The loss is the margin of the L1 distance,

    mean over the seed links (u, v) and negatives (u, v'), (u', v) of max(0, |z_u - z_v| + margin - |z_u - z_v'|),

with negatives that are drawn again every few epochs: at random as published, and in the later epochs among the nearest to the other end, which the
publication does not do, but without which the figure of the Dual-AMN paper is not reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from engine.config import RunConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.model.adjacency import Csr, cumulative
from engine.training.baselines.base import Effort, Fit, Learned, Measure, Session, register_baseline
from engine.training.baselines.kernels import plain_sums
from engine.training.optimiser import Momentum
from engine.util.arrays import FloatArray, IntArray
from engine.util.threads import cut

DIM: Final = 300
EPOCHS: Final = 300
LEARNING_RATE: Final = 40.0
MARGIN: Final = 25.0
NEGATIVES: Final = 5
"""Of a seed link, on each side."""
REDRAWN: Final = 10
"""Epochs after which negatives are drawn again."""
RANDOM_EPOCHS: Final = 60
"""Epochs before negatives are drawn among the nearest."""
NEAREST: Final = 50
"""Entities that count as the nearest."""
COMPARED_ROWS: Final = 1024
"""Rows of similarities that are held at a time."""
LEAST_WEIGHT: Final = 0.3
"""Of a triple."""


@register_baseline
class GcnAlign:
    """Two graph convolutions, trained on the seed links."""

    name: ClassVar[str] = "gcn-align"
    title: ClassVar[str] = "GCN-Align"
    about: ClassVar[str] = "graph convolutions"
    reference: ClassVar[str] = "Wang et al., Cross-lingual knowledge graph alignment via graph convolutional networks, EMNLP 2018; structure only"
    measure: ClassVar[Measure] = "csls"

    def embed(self, task: AlignmentTask, session: Session) -> Learned:
        config = session.config.baseline
        graph = Convolution.of(task)
        features = nn.Parameter(drawn_features(task.num_entities, config.dim or DIM, session.generator()))
        links = torch.from_numpy(task.stacked_links(task.train_links))

        kept: dict[str, Tensor] = {}

        def losses(epoch: int) -> Iterator[Tensor]:
            embeddings = graph.embed(features)
            if epoch % REDRAWN == 0:
                draws = np.random.default_rng([session.config.seed, 3, epoch])
                found = drawn_negatives(task, draws) if epoch < RANDOM_EPOCHS else near_negatives(embeddings.detach(), links, task, draws)
                kept["source"], kept["target"] = found
            yield margin_loss(embeddings, links, (kept["source"], kept["target"]), MARGIN)

        optimiser = Momentum([features], config.learning_rate or LEARNING_RATE)
        fit = Fit(session, task, optimiser, config.epochs or EPOCHS, losses, kept=kept)
        earlier = fit.run()
        with torch.no_grad():
            return Learned(graph.embed(features), fit.epochs, fit.seconds, earlier)

    def effort(self, entities: int, triples: int, relations: int, config: RunConfig) -> Effort:
        dim = config.baseline.dim or DIM
        return Effort(config.baseline.epochs or EPOCHS, 640.0 * dim * (triples + 2 * entities), 12.0 * entities * dim, dim)


def drawn_features(entities: int, dim: int, generator: torch.Generator) -> Tensor:
    """(E, d) random rows of length 1."""
    return normalize(torch.randn(entities, dim, generator=generator), dim=1)


class Convolution:
    """The matrix N, which is not symmetric, and its transpose.

    Attributes:
        rows, weights: N.
        columns, column_weights: its transpose.
    """

    def __init__(self, sources: IntArray, targets: IntArray, values: FloatArray, size: int) -> None:
        self.rows, self.weights = rows_of_matrix(sources, targets, values, size)
        self.columns, self.column_weights = rows_of_matrix(targets, sources, values, size)

    @classmethod
    def of(cls, task: AlignmentTask) -> Convolution:
        return cls(*normalised_adjacency(task.stacked_triples(), task.num_entities, task.num_relations), task.num_entities)

    def embed(self, features: Tensor) -> Tensor:
        """(E, d) the output of the second layer."""
        hidden = torch.relu(self(features))
        return self(hidden)

    def __call__(self, x: Tensor) -> Tensor:
        """N x."""
        product: Tensor = _Product.apply(x, self)  # type: ignore[no-untyped-call]
        return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: Convolution) -> Tensor:
        ctx.graph = graph
        return plain_sums(graph.rows, x.detach(), graph.weights)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return plain_sums(ctx.graph.columns, grads[0], ctx.graph.column_weights), None


def normalised_adjacency(triples: IntArray, entities: int, relations: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows, columns and values of D^-1/2 (A + I) D^-1/2, by row and column."""
    head, relation, tail = triples.T
    facts = np.maximum(np.bincount(relation, minlength=relations), 1)
    by_head, by_tail = (distinct_ends(relation, ends, entities, relations) / facts for ends in (head, tail))
    between = head != tail
    head, relation, tail = head[between], relation[between], tail[between]
    rows, columns = np.concatenate([head, tail, np.arange(entities)]), np.concatenate([tail, head, np.arange(entities)])
    given = [np.maximum(by_tail[relation], LEAST_WEIGHT), np.maximum(by_head[relation], LEAST_WEIGHT), np.ones(entities)]
    keys, place = np.unique(rows * entities + columns, return_inverse=True)
    values = np.bincount(place, np.concatenate(given), minlength=len(keys))
    rows, columns = keys // max(entities, 1), keys % max(entities, 1)
    scale = 1 / np.sqrt(np.bincount(rows, values, minlength=entities))
    return rows, columns, values * scale[rows] * scale[columns]


def distinct_ends(relation: IntArray, ends: IntArray, entities: int, relations: int) -> IntArray:
    """(R,) how many distinct entities are at one end of each relation's triples."""
    return np.bincount(np.unique(relation * entities + ends) // max(entities, 1), minlength=relations)


def rows_of_matrix(rows: IntArray, columns: IntArray, values: FloatArray, size: int) -> tuple[Csr, Tensor]:
    """A square matrix by rows: its entries' columns, and their values."""
    order = np.lexsort((columns, rows))
    offsets = cumulative(np.bincount(rows, minlength=size))
    return Csr(offsets, columns[order].astype(np.int32), size), torch.from_numpy(values[order].astype(np.float32))


def drawn_negatives(task: AlignmentTask, draws: np.random.Generator) -> tuple[Tensor, Tensor]:
    """(L, k) random entities of the source and of the target graph, stacked, that take the place of each seed link's."""
    shape = len(task.train_links), NEGATIVES
    source = draws.integers(task.source.num_entities, size=shape)
    target = draws.integers(task.target.num_entities, size=shape) + task.source.num_entities
    return torch.from_numpy(source), torch.from_numpy(target)


def near_negatives(embeddings: Tensor, links: Tensor, task: AlignmentTask, draws: np.random.Generator) -> tuple[Tensor, Tensor]:
    """The same, of the entities that are nearest to the link's other end by cosine."""
    unit, count = normalize(embeddings, dim=1), task.source.num_entities
    found = []
    for own, graph, first in ((0, unit[:count], 0), (1, unit[count:], count)):
        kept, parts = min(NEAREST, max(len(graph) - 1, 1)), []
        for some in cut(len(links), COMPARED_ROWS):
            scores = unit[links[some, 1 - own]] @ graph.T
            scores.scatter_(1, (links[some, own] - first).unsqueeze(1), -torch.inf)
            parts.append(scores.topk(kept, dim=1).indices)
        nearest = torch.cat(parts)
        chosen = torch.from_numpy(draws.integers(kept, size=(len(links), NEGATIVES)))
        found.append(torch.gather(nearest, 1, chosen) + first)
    return found[0], found[1]


def margin_loss(embeddings: Tensor, links: Tensor, negatives: tuple[Tensor, Tensor], margin: float) -> Tensor:
    """Mean over the links and both sides' negatives of max(0, |z_u - z_v| + margin - |z_u - z_n|), with the L1 distance."""
    count, each = negatives[0].shape
    rows = torch.index_select(embeddings, 0, torch.cat([links.T.flatten(), *(drawn.T.flatten() for drawn in negatives)]))
    source, target = rows[:count], rows[count : 2 * count]
    others = rows[2 * count :].view(2, each, count, -1)
    near = (source - target).abs().sum(1)  # (L,)
    far = [(kept - drawn).abs().sum(2) for kept, drawn in ((source, others[1]), (target, others[0]))]  # (k, L)
    return torch.stack([torch.relu(near + margin - one).sum() for one in far]).sum() / max(2 * each * count, 1)
