"""Which relations and attributes of the two graphs correspond, by the facts of entities that the run matches."""

from __future__ import annotations

import numpy as np
import pandas as pd

from engine.analysis.schema import AnalysisInput, analysis_table, frame
from engine.data.knowledge_graph import SIDES, AlignmentTask
from engine.decoding.fixed_point import Implications, relation_implications
from engine.names.value_start import facts_of, value_pairs
from engine.names.values import SharedValues, exact_attribute, pseudo_attributes, shared_values
from engine.util.arrays import BoolArray, IntArray

LEAST_PROBABILITY = 0.1
"""Correspondences that neither direction supports as much are left out."""
LEAST_SUPPORT = 1.5
"""Matched facts in which two relations must coincide: a single one is no proof."""


def correspondence_table(task: AlignmentTask, matches: pd.DataFrame, excluded: frozenset[str] = frozenset()) -> pd.DataFrame:
    """Pairs of relations, and of attributes, with the probability that one implies the other.

    Args:
        task: the graphs and the seed links.
        matches: the run's table of that name; its mutual best matches and the seed links are taken to be right.
        excluded: attributes, by full or local name, whose values are not compared.
    """
    shared = shared_values(task.source, task.target, excluded)
    values = shared if shared.keys else None
    source, target = facts_of(task, values)
    pairs = known_pairs(task, matches)
    if values is not None:
        pairs = np.concatenate([pairs, value_pairs(task, values)])
    found = relation_implications(source, target, pairs)
    forward = np.flatnonzero((source.names >= 0) & (source.names < source.num_relations))
    rows, columns = np.nonzero(strong(found)[forward])
    rows = forward[rows]
    mine, theirs = source.names[rows], target.names[columns]
    turned, theirs = theirs >= target.num_relations, theirs % target.num_relations
    kinds = mine >= task.source.num_relations
    kept = (target.names[columns] >= 0) & (kinds == (theirs >= task.target.num_relations))
    table = {
        "kind": np.where(kinds, "attribute", "relation")[kept],
        "source": relation_names(task.source.relations, values, 0, mine[kept]),
        "target": relation_names(task.target.relations, values, 1, theirs[kept]),
        "turned": turned[kept],
        "source_implies_target": found.forward[rows, columns][kept],
        "target_implies_source": found.backward[rows, columns][kept],
        "support": found.support[rows, columns][kept],
    }
    order = ["kind", "support", "source", "target", "turned"]
    every = frame("correspondences", table)
    made_up = [(every["kind"] == "attribute") & every[side].isin(pseudo_attributes(task.graph(side))) for side in SIDES]
    kept = every[~(made_up[0] | made_up[1])].sort_values(order, ascending=[False, False, True, True, True], ignore_index=True)
    return without_repeated(kept)


def without_repeated(table: pd.DataFrame) -> pd.DataFrame:
    """Without the rough attributes ("count (within 1 %)") whose attributes are listed themselves."""
    ends = list(zip(table["source"].astype(str), table["target"].astype(str), strict=True))
    plain = [(exact_attribute(one), exact_attribute(two)) for one, two in ends]
    listed = {pair for pair, own in zip(plain, ends, strict=True) if pair == own}
    kept = np.array([pair == own or pair not in listed for pair, own in zip(plain, ends, strict=True)], dtype=np.bool_)
    return table[kept].reset_index(drop=True)


def strong(found: Implications) -> BoolArray:
    """(R1, R2) which correspondences are kept."""
    return (found.support >= LEAST_SUPPORT) & (np.maximum(found.forward, found.backward) >= LEAST_PROBABILITY)


def known_pairs(task: AlignmentTask, matches: pd.DataFrame) -> IntArray:
    """(n, 2) seed links, and mutual best matches of entities without one; one-to-one."""
    first = matches[matches["rank"] == 1]
    best = [first[first["graph"] == side].set_index("entity")["match"] for side in ("source", "target")]
    mutual = best[0].reset_index().merge(best[1].reset_index(), left_on=["entity", "match"], right_on=["match", "entity"])
    pairs = mutual[["entity_x", "match_x"]].to_numpy(dtype=np.int64)
    free = ~np.isin(pairs[:, 0], task.train_links[:, 0]) & ~np.isin(pairs[:, 1], task.train_links[:, 1])
    seeds = pd.DataFrame(task.train_links).drop_duplicates(0).drop_duplicates(1).to_numpy(dtype=np.int64)
    return np.concatenate([seeds, pairs[free]])


def relation_names(relations: tuple[str, ...], values: SharedValues | None, side: int, numbers: IntArray) -> list[str]:
    names = [*relations, *(() if values is None else values.attributes[side])]
    return [names[number] for number in numbers.tolist()]


@analysis_table(
    "correspondences",
    {
        "kind": "str",
        "source": "str",
        "target": "str",
        "turned": "bool",
        "source_implies_target": "float64",
        "target_implies_source": "float64",
        "support": "float64",
    },
)
def _correspondences(given: AnalysisInput) -> pd.DataFrame:
    return correspondence_table(given.task, given.matches, given.excluded)
