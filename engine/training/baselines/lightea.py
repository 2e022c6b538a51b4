"""LightEA (Mao et al., EMNLP 2022): labels of the seed links spread over the graphs, without any training.

Each seed link has a random label of unit length, nearly orthogonal to all others, and both of its entities begin with it; all else begins with zero.
Two rounds of propagation follow, in three views of the triples:

    relation  <-  the entities that are its heads                     (entities to relations)
    entity    <-  itself, as often as it has triples twice over, and its neighbours, as often as triples connect them   (entities to entities)
    entity    <-  the relations that it has, as what the neighbours see      (relations to entities)

each brought to length 1. The label of an entity's triples is the tensor product of the relation's and the neighbour's label, summed over the
triples: two entities are as similar as these sums are. A sum has a million numbers; random projections keep the angles between them, the more exactly
the wider they are. The published code projects to 512 x 16 numbers and compares by a Sinkhorn plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from engine.config import RunConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.model.adjacency import Adjacency, build_adjacency, distinct_rows
from engine.training.baselines.base import Effort, Learned, Measure, Session, register_baseline
from engine.training.baselines.kernels import plain_sums, row_sums
from engine.util.arrays import IntArray

LABEL_WIDTH: Final = 1024
"""Of a label, by default (as published)."""
HOPS: Final = 2
RELATION_WIDTH: Final = 512
"""Random projections of the relations' labels (as published)."""
WIDTH: Final = 4096
"""Numbers of an entity: the relations' projections times those of the entities' labels. 8192 as published, of which a run needs 1.3 GB on DBP15K."""


@register_baseline
class LightEA:
    """Label propagation in three views; nothing is trained."""

    name: ClassVar[str] = "lightea"
    title: ClassVar[str] = "LightEA"
    about: ClassVar[str] = "label propagation, no training"
    reference: ClassVar[str] = "Mao et al., LightEA, EMNLP 2022; one round, without the later ones that add pairs"
    measure: ClassVar[Measure] = "sinkhorn"

    def embed(self, task: AlignmentTask, session: Session) -> Learned:
        graph = build_adjacency(task.stacked_triples(), task.num_entities, task.num_relations)
        generator = session.generator()
        config = session.config.baseline
        labels = link_labels(task.stacked_links(task.train_links), task.num_entities, config.dim or LABEL_WIDTH, generator)
        entities, relations = project_hops(graph, labels, config.width or WIDTH, session)
        return Learned(triple_labels(graph, entities, relations).flatten(1))

    def effort(self, entities: int, triples: int, relations: int, config: RunConfig) -> Effort:
        label, width = config.baseline.dim or LABEL_WIDTH, config.baseline.width or WIDTH
        projected = 4.0 * (HOPS + 1) * label * width * entities
        return Effort(1, projected + 16.0 * triples * (HOPS * label + width), float(entities) * (3 * label + 3 * width), width)


def link_labels(links: IntArray, num_entities: int, width: int, generator: torch.Generator) -> Tensor:
    """(E, width) the label of each seed link at its two entities, zero elsewhere."""
    drawn = normalize(torch.randn(len(links), width, generator=generator), dim=1)
    labels = torch.zeros(num_entities, width)
    for side in range(2):
        labels.index_add_(0, torch.from_numpy(links[:, side]), drawn)
    return normalize(labels, dim=1)


def propagated(graph: Adjacency, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """(E, width) labels of the entities and (2R, width) of the directed relations: the given ones, then after each hop."""
    entities, relations = labels, labels.new_zeros((2 * graph.num_relations, labels.shape[1]))
    heads = distinct_rows(graph.units, graph.messages.rows(), 2 * graph.num_relations, graph.num_entities)
    own = torch.from_numpy(2.0 * graph.messages.lengths()).to(labels.dtype).unsqueeze(1)
    yield entities, relations
    for _ in range(HOPS):
        seen = plain_sums(graph.messages, entities).add_(plain_sums(graph.relations, relations)).add_(own * entities)
        relations = normalize(plain_sums(heads, entities), dim=1)
        entities = normalize(seen, dim=1)
        yield entities, relations


def project_hops(graph: Adjacency, labels: Tensor, width: int, session: Session) -> tuple[Tensor, Tensor]:
    """(E, H, m) and (2R, H) the labels of all hops side by side at length 1, projected to H numbers, and each time to m; H x m is the width."""
    heads = min(RELATION_WIDTH, width)
    hops, size = HOPS + 1, labels.shape[1]
    generator = session.generator().manual_seed(session.config.seed + 1)
    of_entities = directions(size * hops, heads * (width // heads), generator).view(hops, size, -1)
    of_relations = directions(size * hops, heads, generator).view(hops, size, -1)
    sums: list[Tensor] = []
    known = [labels.new_zeros((graph.num_entities, 1)), labels.new_zeros((2 * graph.num_relations, 1))]
    for hop, both in enumerate(propagated(graph, labels)):
        session.check_stop()
        for at, (part, projection) in enumerate(zip(both, (of_entities, of_relations), strict=True)):
            if hop:
                sums[at].addmm_(part, projection[hop])
            else:
                sums.append(part @ projection[hop])
            known[at] += (part != 0).any(1, keepdim=True)
    entities, relations = (total / count.clamp(min=1).sqrt() for total, count in zip(sums, known, strict=True))
    return entities.view(graph.num_entities, heads, -1), relations


def directions(size: int, count: int, generator: torch.Generator) -> Tensor:
    """(size, count) random directions, orthogonal to each other as far as there are as many."""
    parts = [torch.linalg.qr(torch.randn(size, min(size, count - start), generator=generator)).Q for start in range(0, count, size)]
    return torch.cat(parts, dim=1)[:, torch.randperm(count, generator=generator)]


def triple_labels(graph: Adjacency, entities: Tensor, relations: Tensor) -> Tensor:
    """(E, H, m) sums over an entity's triples of the relation's label times the neighbour's, in each of H heads."""
    return row_sums(graph.messages, graph.units.astype(np.int64), relations, entities)
