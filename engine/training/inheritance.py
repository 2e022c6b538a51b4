"""Training that starts from an earlier run on another version of the data, and not from drawn parameters.

What both versions have keeps its parameters. The feature vector of a new entity is the mean of its neighbours' (as for entities that a finished run
has never seen, :mod:`engine.explanation.new_entities`), that of a new relation the mean of the relations at the entities where it occurs. What cannot
be reached so keeps its drawn vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from torch import Tensor

from engine.config import EncoderConfig
from engine.data.knowledge_graph import SIDES, Side
from engine.data.versions import CarriedGraph
from engine.errors import ConfigError
from engine.model.adjacency import Adjacency, Csr
from engine.model.dual_amn import DualAMN
from engine.runs import Run
from engine.runs.tensors import finite_tensor
from engine.training.semi import Pool, Selection
from engine.util.arrays import BoolArray, Float32Array, IntArray, link_keys

FEATURES = ("entity_features", "relation_features")
"""Parameters with a row for each entity or directed relation; of all others, runs with the same encoder have the same shape."""


@dataclass(frozen=True)
class Inheritance:
    """What a training takes over.

    Attributes:
        run: the parent.
        carried: which entities and relations of each graph it has.
        pairs: what its last round trained on besides the seed links, in the new version's indices.
        record: what the new run's manifest says of it.
        renamed: old and new identifiers, as a mapping file gives them.
        mapping: the mapping files by graph; the key "" for both graphs.
        assigned: settings that were chosen for the update, as ``--set`` takes them.
    """

    run: Run
    carried: Mapping[Side, CarriedGraph]
    pairs: Selection
    record: Mapping[str, Any]
    renamed: pd.DataFrame
    mapping: Mapping[str, Path] = field(default_factory=dict)
    assigned: tuple[str, ...] = ()

    @property
    def entities(self) -> IntArray:
        """(E,) the parent's stacked index of each entity of the stacked graph, -1 for new ones."""
        source, target = (self.carried[side] for side in SIDES)
        return np.concatenate([source.entities, _shifted(target.entities, source.old_entities)])

    @property
    def relations(self) -> IntArray:
        """(2R,) the parent's number of each directed relation, -1 for new ones."""
        source, target = (self.carried[side] for side in SIDES)
        forward = np.concatenate([source.relations, _shifted(target.relations, source.old_relations)])
        return np.concatenate([forward, _shifted(forward, source.old_relations + target.old_relations)])

    def selected(self, pool: Pool) -> Selection:
        """The parent's pairs that a round could choose now: within the pool, and not known to be no links."""
        pairs = self.pairs.pairs
        keep = np.isin(pairs[:, 0], pool.sources) & np.isin(pairs[:, 1], pool.targets)
        if len(pool.rejected):
            width = int(max(pairs[:, 1].max(initial=0), pool.rejected[:, 1].max())) + 1
            keep &= ~np.isin(link_keys(pairs, width), link_keys(pool.rejected, width))
        return Selection(pairs[keep], self.pairs.scores[keep])


def _shifted(numbers: IntArray, by: int) -> IntArray:
    return np.where(numbers >= 0, numbers + by, -1)


@torch.no_grad()
def inherit(model: DualAMN, inheritance: Inheritance) -> None:
    """Give a model the parent's parameters.

    Raises:
        RunError: the parent has no stored weights, or they are damaged.
    """
    drawn = {name: tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}
    state: dict[str, Tensor] = {}
    for name in drawn:
        stored = finite_tensor(inheritance.run, "model", name)
        if name not in FEATURES:
            state[name] = torch.from_numpy(np.array(stored))
    relations = with_carried(drawn["relation_features"], finite_tensor(inheritance.run, "model", "relation_features"), inheritance.relations)
    entities = with_carried(drawn["entity_features"], finite_tensor(inheritance.run, "model", "entity_features"), inheritance.entities)
    state["relation_features"] = torch.from_numpy(fill_relations(relations, inheritance.relations < 0, model.adjacency))
    state["entity_features"] = torch.from_numpy(fill_entities(entities, inheritance.entities < 0, model.adjacency))
    model.load_state_dict(state)


def with_carried(drawn: Float32Array, stored: Float32Array, places: IntArray) -> Float32Array:
    """The drawn rows, with those of the parent in their places."""
    out: Float32Array = drawn.copy()
    known = places >= 0
    out[known] = stored[places[known]]
    return out


def fill_entities(features: Float32Array, new: BoolArray, adjacency: Adjacency) -> Float32Array:
    """Replace the rows of new entities by the mean of their neighbours', outwards from those that are known."""
    known, out, links = ~new, features.copy(), matrix(adjacency.neighbours)
    while True:
        waiting = np.flatnonzero(~known)
        means, reached = means_of(links[waiting], out, known)
        if not reached.any():
            return out
        out[waiting[reached]] = means[reached]
        known[waiting[reached]] = True


def fill_relations(features: Float32Array, new: BoolArray, adjacency: Adjacency) -> Float32Array:
    """Replace the rows of new directed relations by the mean of what the relations at their entities average to."""
    if not new.any():
        return features
    links = matrix(adjacency.relations)  # entities x directed relations
    around, some = means_of(links, features, ~new)
    means, reached = means_of(links.T.tocsr()[np.flatnonzero(new)], around, some)
    out = features.copy()
    out[np.flatnonzero(new)[reached]] = means[reached]
    return out


def matrix(rows: Csr) -> sparse.csr_matrix:
    """Ones where a row has a column."""
    return sparse.csr_matrix((np.ones(len(rows.columns), dtype=np.float32), rows.columns, rows.offsets), shape=(rows.num_rows, rows.num_columns))


def means_of(links: sparse.csr_matrix, features: Float32Array, known: BoolArray) -> tuple[Float32Array, BoolArray]:
    """(n, d) mean of the known columns' features in each row, and (n,) whether the row has any."""
    weights = links.multiply(known.astype(np.float32)[None, :]).tocsr()
    numbers = np.asarray(weights.sum(axis=1)).ravel()
    sums = np.asarray(weights @ features)
    return (sums / np.maximum(numbers, 1.0)[:, None]).astype(np.float32), numbers > 0


def check_encoder(parent: EncoderConfig, config: EncoderConfig) -> None:
    """
    Raises:
        ConfigError: the parent's parameters do not fit these settings.
    """
    fixed = {name: value for name, value in vars(parent).items() if name != "dropout"}
    for name, value in fixed.items():
        if getattr(config, name) != value:
            raise ConfigError(f"an update keeps the encoder of its parent, so encoder.{name} stays {value}; train a new run to change it.")
