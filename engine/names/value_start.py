"""Where two graphs without known links can start from: the names and other values that both have, and why they do not suffice where they do not."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import sparse

from engine.data.knowledge_graph import AlignmentTask, Finding, empty_links
from engine.decoding.candidates import Candidates
from engine.decoding.fixed_point import Facts, fixed_point
from engine.names.values import SharedValues, shared_values, value_keys
from engine.util.arrays import FloatArray, IntArray
from engine.util.text import count

GIVE_LINKS: Final = "add some known links (a file of links in the data set's folder)"
QUICKLY_STARTED: Final = 500_000
"""Triples and attribute triples of both graphs up to which the pairs that training would start with are looked for beforehand."""

LISTED: Final = 30
"""Pairs of each entity that share values, those that share the most."""
MOST_SHARING: Final = 10_000
"""Pairs of entities that share a value, beyond which it is not looked at."""
MOST_PAIRS: Final = 20_000_000
"""Of all values together."""
STRONG: Final = 0.9
"""Quantile of what pairs share from which on it counts fully."""


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


def value_candidates(task: AlignmentTask, values: SharedValues, pools: tuple[IntArray, IntArray], pairs: IntArray) -> Candidates:
    """The pairs of two pools that share values, and how much: 0 to 1, in place of a similarity, and in place of CSLS by the scale of these graphs.

    A value counts for the less the more entities have it: 1 / sqrt(n m), if n source and m target entities do. By the graphs' scale the pairs that
    share the most count 1, even where no value is rare.

    Args:
        task: its graphs.
        values: what they share.
        pools: ascending entities of each.
        pairs: (n, 2) of the graphs; are among the candidates whether they share anything or not.
    """
    rows = [
        value_incidence(facts, pool, graph.num_entities, len(values.keys))
        for facts, pool, graph in zip((values.source, values.target), pools, (task.source, task.target), strict=True)
    ]
    owners = [np.asarray(part.sum(axis=0)).ravel() for part in rows]
    sharing = owners[0] * owners[1]
    order = np.argsort(sharing, kind="stable")
    kept = order[(sharing[order] > 0) & (sharing[order] <= MOST_SHARING) & (np.cumsum(sharing[order]) <= MOST_PAIRS)]
    shared = (rows[0][:, kept] @ sparse.diags_array(sharing[kept] ** -0.5) @ rows[1][:, kept].T).tocoo()
    sources, targets, worth = most_shared(shared.row.astype(np.int64), shared.col.astype(np.int64), shared.data)
    scaled = np.minimum(worth / np.quantile(worth, STRONG), 1.0) if len(worth) else worth
    local = [np.searchsorted(pool, pairs[:, side]) for side, pool in enumerate(pools)]
    codes, first = np.unique(np.concatenate([sources, local[0]]) * len(pools[1]) + np.concatenate([targets, local[1]]), return_index=True)
    shares, scaled = (np.concatenate([part, np.zeros(len(pairs))])[first].astype(np.float32) for part in (np.minimum(worth, 1.0), scaled))
    return Candidates((len(pools[0]), len(pools[1])), codes // len(pools[1]), codes % len(pools[1]), shares, scaled, LISTED)


def value_incidence(facts: IntArray, pool: IntArray, entities: int, keys: int) -> sparse.csr_array:
    """(pool, keys) 1 where an entity has a value, under whatever attribute."""
    pairs = np.unique(facts[:, [0, 2]] - [0, entities], axis=0)
    ones = np.ones(len(pairs))
    return sparse.csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(entities, keys))[pool]


def most_shared(sources: IntArray, targets: IntArray, worth: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Of each source the ``LISTED`` pairs that share the most."""
    order = np.lexsort((targets, -worth, sources))
    own = sources[order]
    chosen = order[np.arange(len(own)) - np.searchsorted(own, own) < LISTED]
    return sources[chosen], targets[chosen], worth[chosen]


def why_no_start(task: AlignmentTask, values: SharedValues, excluded: frozenset[str] = frozenset()) -> str:
    """The sentence for graphs without known links whose names and values give no pair to start from.

    Args:
        values: what the graphs share.
        excluded: attributes that were not looked at.
    """
    graphs = f"there are no known links, and the two graphs of {task.name}"
    if values.keys:
        shared = count(len(values.keys), "name or value", "names and values")
        return (
            f"{graphs} share only {shared} that too many entities have, so no pair of entities follows; {GIVE_LINKS}, or more distinctive attributes."
        )
    if excluded and shared_values(task.source, task.target).keys:
        return f"{graphs} share names and values only in attributes that values.exclude leaves out; exclude fewer attributes, or {GIVE_LINKS}."
    if share_empty_values(task):
        return (
            f"{graphs} share only values without meaning (only punctuation, or texts such as NA); {GIVE_LINKS}, "
            "or names and values that both graphs have."
        )
    return f"{graphs} share no name or value to start from; {GIVE_LINKS}, or names and values that both graphs have."


def share_empty_values(task: AlignmentTask) -> bool:
    """Whether both graphs have a same text that is not compared because it says nothing."""
    texts = [{*graph.attributes["value"].unique(), *graph.labels} for graph in (task.source, task.target)]
    return any(text.strip() and not value_keys(text) for text in map(str, texts[0] & texts[1]))


def values_to_start_from(task: AlignmentTask) -> tuple[int, int | None]:
    """How many names and values both graphs have, and how many pairs of entities follow from them, so that training can start without seed links.

    Instead of the number of pairs None where the graphs are too large to look for these in a moment.
    """
    values = shared_values(task.source, task.target)
    if not values.keys:
        return 0, 0
    if sum(len(graph.triples) + len(graph.attributes) for graph in (task.source, task.target)) > QUICKLY_STARTED:
        return len(values.keys), None
    source, target = facts_of(task, values)
    return len(values.keys), len(fixed_point(source, target, empty_links(), equal_values=value_pairs(task, values)).pairs)


def start_finding(task: AlignmentTask) -> Finding | None:
    """What training without seed links would start from, for an inspection; None where there are seed links."""
    if len(task.train_links):
        return None
    shared, pairs = values_to_start_from(task)
    if pairs == 0:
        reason = why_no_start(task, shared_values(task.source, task.target))
        return Finding("few-seeds", "warning", f"Training is not possible yet: {reason}")
    many = count(shared, "name or value", "names and values")
    start = f"{many} that both graphs have" if pairs is None else f"about {count(pairs, 'pair')} of entities implied by {many} of both graphs"
    message = f"There are no seed links. Semi-supervised and literal runs can start from {start}; basic runs need seed links."
    return Finding("few-seeds", "warning", message, advice="Add known links: a dozen already help, a few hundred help a lot.")
