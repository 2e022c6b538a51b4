"""Does the task need a method at all? What names or identifiers solve on their own, measured on training and validation links only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.data.knowledge_graph import AlignmentTask, Finding
from engine.data.labels import identifier_tail
from engine.evaluation.metrics import evaluate_links
from engine.names.encoders import NgramEncoder
from engine.search import NameSimilarity
from engine.util.arrays import IntArray

NEARLY_SOLVED = 0.9
"""Share of the links from which on names alone count as the solution."""
FEWEST = 20
"""Links below which a share says nothing."""


def leak_warning(task: AlignmentTask, names: NameSimilarity) -> tuple[Finding, ...]:
    """Warnings where names alone, or identifiers alone, find nearly all known counterparts; empty where they do not.

    Test links are never looked at. The pool is the entities of the training and validation links, as the test's is that of the test links.

    Args:
        task: whose links.
        names: (E1, E2) similarity of the entities' names.
    """
    links = np.concatenate([task.train_links, task.valid_links])
    return tuple(leaks(task, names, links)) if len(links) >= FEWEST else ()


def leaks(task: AlignmentTask, names: NameSimilarity, links: IntArray) -> Iterator[Finding]:
    by_name = solved_share(names, links)
    if by_name >= NEARLY_SOLVED:
        message = f"Names alone find {by_name:.0%} of the {len(links):,} training and validation links."
        advice = "Figures of methods that use these names say little about the method; compare them with names alone."
        yield Finding("names-nearly-solve", "warning", message, round(by_name * len(links)), advice=advice)
    sources, targets = np.unique(links[:, 0]), np.unique(links[:, 1])
    tails = ([identifier_tail(graph.entities[entity]) for entity in used] for graph, used in ((task.source, sources), (task.target, targets)))
    local = np.stack([np.searchsorted(sources, links[:, 0]), np.searchsorted(targets, links[:, 1])], axis=1)
    by_identifier = solved_share(NgramEncoder().encode(*tails).similarity, local)
    if by_identifier >= NEARLY_SOLVED:
        message = f"Identifiers that look alike find {by_identifier:.0%} of the {len(links):,} training and validation links on their own."
        advice = "Names that were made from identifiers tell the same; take names from elsewhere, or mind it when you read the figures."
        yield Finding("identifiers-nearly-solve", "warning", message, round(by_identifier * len(links)), advice=advice)


def solved_share(names: NameSimilarity, links: IntArray) -> float:
    """Mean Hits@1 of both directions by names alone (CSLS within the links' entities; ties are no hits)."""
    found = evaluate_links(names, links, bootstrap=0)
    return float(np.mean([found.source_to_target.hits_at_1, found.target_to_source.hits_at_1]))
