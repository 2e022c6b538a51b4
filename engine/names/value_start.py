"""Where two graphs without known links can start from: the names and other values that both have, and why they do not suffice where they do not."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.data.knowledge_graph import AlignmentTask, Finding, empty_links
from engine.decoding.fixed_point import Facts, fixed_point
from engine.names.values import SharedValues, shared_values, value_keys
from engine.util.arrays import IntArray
from engine.util.text import count

GIVE_LINKS: Final = "add some known links (a file of links in the data set's folder)"
QUICKLY_STARTED: Final = 500_000
"""Triples and attribute triples of both graphs up to which the pairs that training would start with are looked for beforehand."""


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
    start = f"{many} that both graphs have" if pairs is None else f"{count(pairs, 'pair')} of entities implied by {many} of both graphs"
    message = f"There are no seed links. Semi-supervised and literal runs can start from {start}; basic runs need seed links."
    return Finding("few-seeds", "warning", message, advice="Add known links: a dozen already help, a few hundred help a lot.")
