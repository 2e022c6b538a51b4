"""What training starts from besides the seed links: pairs that the facts of both graphs imply.

The seed links, equal values, or both are spread over the facts by the probabilistic fixed point (:mod:`engine.decoding.fixed_point`). Training
begins on the seed links and the pairs that come of it. They are a beginning and no more: each round of the semi-supervised variant chooses its own.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from engine.config import SemiConfig
from engine.data.knowledge_graph import AlignmentTask
from engine.decoding.fixed_point import Facts, fixed_point
from engine.errors import TrainingError
from engine.names.values import SharedValues, shared_values
from engine.training.semi import Pool, Selection, no_selection
from engine.util.arrays import IntArray

Start = Literal["seeds", "triples", "values"]

NOTHING_TO_START_FROM = (
    "there are no known links, and the two graphs of {name} share no name or value to start from; give some known links "
    "(a file of links in the data set's folder), or attributes that both graphs have."
)


def resolve_start(config: SemiConfig, seed_links: int) -> Start:
    """What "auto" means: the triples where there are seed links, else values."""
    if config.start != "auto":
        return config.start
    return "triples" if seed_links else "values"


def start_pairs(task: AlignmentTask, config: SemiConfig, pool: Pool, excluded: frozenset[str] = frozenset()) -> Selection:
    """The pairs that training starts with besides the seed links, with the probability of each.

    Args:
        task: its graphs, seed links and pairs that are known to be no links are looked at; no other links.
        config: says what to start from.
        pool: the entities that pairs may be chosen from.
        excluded: attributes whose values are not compared.

    Raises:
        TrainingError: there is nothing to start from.
    """
    kind = resolve_start(config, len(task.train_links))
    values = shared_values(task.source, task.target, excluded) if kind == "values" else None
    if not len(task.train_links) and (values is None or not values.keys):
        raise TrainingError(NOTHING_TO_START_FROM.format(name=task.name))
    if kind == "seeds":
        return no_selection()
    source, target = facts_of(task, values)
    found = fixed_point(
        source,
        target,
        task.train_links,
        equal_values=None if values is None else value_pairs(task, values),
        rejected=pool.rejected,
        pool=(pool.sources, pool.targets),
    )
    if not len(task.train_links) and not len(found.pairs):
        raise TrainingError(NOTHING_TO_START_FROM.format(name=task.name))
    return Selection(found.pairs, found.probabilities.astype(np.float32))


def facts_of(task: AlignmentTask, values: SharedValues | None) -> tuple[Facts, Facts]:
    """Both graphs' triples, and the values that they share."""
    shared = (None, None) if values is None else (values.source, values.target)
    more = 0 if values is None else len(values.keys)
    graphs = task.source, task.target
    source, target = (Facts.of(graph.triples, graph.num_entities, own, graph.num_entities + more) for graph, own in zip(graphs, shared, strict=True))
    return source, target


def value_pairs(task: AlignmentTask, values: SharedValues) -> IntArray:
    """(n, 2) the nodes of each value in the two graphs."""
    places = np.arange(len(values.keys), dtype=np.int64)
    return np.stack([places + task.source.num_entities, places + task.target.num_entities], axis=1)
