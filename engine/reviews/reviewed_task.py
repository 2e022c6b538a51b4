"""What reviews make of a task: accepted pairs are trained on, rejected ones are known to be no links, and nothing reviewed is evaluated on.

Four rules, in this order:

1. An accepted pair is a seed link, whatever it was before.
2. A rejected pair is a known non-link; if it was a seed link, it is none any more.
3. A test or validation link of which a reviewed pair touches an entity leaves the test (the validation). Who rejects a candidate of an entity
   narrows its counterpart down, so that entity's rank would be better for the wrong reason. What is not trained on then counts as "unsure": neither
   right nor wrong.
4. Graphs and fingerprint stay as they are: the run can be compared with runs without reviews, on the test links that both have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from engine.data.knowledge_graph import AlignmentTask, Finding, empty_links
from engine.errors import ReviewError
from engine.reviews.decisions import Pair
from engine.reviews.snapshot import Snapshot
from engine.util.arrays import BoolArray, IntArray
from engine.util.text import count


@dataclass(frozen=True)
class ReviewEffect:
    """What reviews changed, in numbers of pairs; also how it stands in a run's manifest, under ``reviews``.

    Attributes:
        digest: of the snapshot.
        votes, authors: decisions and reviewers that went in; of a stored snapshot nobody knows how many reviewers there were.
        accepted, rejected, undecided: pairs.
        new_seeds: accepted pairs that were no seed links before.
        test_to_seeds, valid_to_seeds: of these, former test and validation links.
        test_set_aside, valid_set_aside: further links that left test and validation, because a reviewed pair touches them.
        seeds_rejected: seed links that were rejected.
        contested: accepted pairs that share an entity with another seed link.
    """

    digest: str
    votes: int
    authors: int | None
    accepted: int
    rejected: int
    undecided: int
    new_seeds: int
    test_to_seeds: int
    valid_to_seeds: int
    test_set_aside: int
    valid_set_aside: int
    seeds_rejected: int
    contested: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def with_reviews(task: AlignmentTask, snapshot: Snapshot) -> tuple[AlignmentTask, ReviewEffect]:
    """The task as the reviewers leave it; its split's description holds the digest, so that it makes runs and checkpoints of its own.

    Raises:
        ReviewError: the reviews are of other data, name an entity that is not there, or reject every seed link.
    """
    if snapshot.fingerprint != task.fingerprint:
        raise ReviewError(
            f"the reviews are of other data ({snapshot.fingerprint[:8]}) than {task.name} ({task.fingerprint[:8]}); review this data set."
        )
    width = task.target.num_entities
    accepted, rejected = (_keys(task, pairs) for pairs in (snapshot.accepted, snapshot.rejected))
    train, valid, test, unsure = (links[:, 0] * width + links[:, 1] for links in task.all_links())
    reviewed = np.concatenate([accepted, rejected])
    touched_valid, touched_test = (_touched(keys, reviewed, width) for keys in (valid, test))
    seeds = np.union1d(np.setdiff1d(train, rejected), accepted)
    if not len(seeds):
        raise ReviewError("the reviews reject every seed link and accept no other pair, so there is nothing to train on; accept some pairs.")
    aside = np.setdiff1d(np.concatenate([valid[touched_valid], test[touched_test], np.intersect1d(train, rejected)]), seeds)
    effect = ReviewEffect(
        digest=snapshot.digest,
        votes=snapshot.votes,
        authors=snapshot.authors,
        accepted=len(accepted),
        rejected=len(rejected),
        undecided=len(snapshot.of_outcome("undecided")),
        new_seeds=len(np.setdiff1d(accepted, train)),
        test_to_seeds=len(np.intersect1d(accepted, test)),
        valid_to_seeds=len(np.intersect1d(accepted, valid)),
        test_set_aside=len(np.setdiff1d(test[touched_test], accepted)),
        valid_set_aside=len(np.setdiff1d(valid[touched_valid], accepted)),
        seeds_rejected=len(np.intersect1d(train, rejected)),
        contested=int(_contested(accepted, seeds, width).sum()),
    )
    changed = replace(
        task,
        train_links=_links(seeds, width),
        valid_links=_links(valid[~touched_valid], width),
        test_links=_links(test[~touched_test], width),
        unsure_links=_links(np.union1d(np.setdiff1d(unsure, seeds), aside), width),
        rejected_links=_links(rejected, width),
        split=f"{task.split}; {len(reviewed):,} pairs reviewed ({effect.digest[:8]})",
    )
    return replace(changed, findings=(*task.findings, *_findings(effect))), effect


def _keys(task: AlignmentTask, pairs: Sequence[Pair]) -> IntArray:
    """Ascending keys (source times number of targets, plus target) of pairs.

    Raises:
        ReviewError: an entity is not there.
    """
    for pair in pairs:
        for graph, identifier in zip((task.source, task.target), pair, strict=True):
            if identifier not in graph.index:
                raise ReviewError(f"a reviewed pair names '{identifier[:120]}', which is no entity of {graph.name}; the reviews are of other data.")
    keys = [task.source.index[source] * task.target.num_entities + task.target.index[target] for source, target in pairs]
    return np.unique(np.array(keys, dtype=np.int64))


def _links(keys: IntArray, width: int) -> IntArray:
    """(n, 2) links of keys, in the keys' order."""
    return np.stack([keys // width, keys % width], axis=1) if len(keys) else empty_links()


def _touched(keys: IntArray, by: IntArray, width: int) -> BoolArray:
    """(n,) whether a link shares an entity with any of some others."""
    touched: BoolArray = np.isin(keys // width, by // width) | np.isin(keys % width, by % width)
    return touched


def _contested(accepted: IntArray, seeds: IntArray, width: int) -> BoolArray:
    """(n,) whether an accepted pair shares an entity with another seed link."""
    sides = ((seeds // width, accepted // width), (seeds % width, accepted % width))
    counts = [np.bincount(all_seeds)[own] if len(own) else np.empty(0, dtype=np.int64) for all_seeds, own in sides]
    contested: BoolArray = (counts[0] > 1) | (counts[1] > 1)
    return contested


def _findings(effect: ReviewEffect) -> tuple[Finding, ...]:
    test, valid = effect.test_to_seeds + effect.test_set_aside, effect.valid_to_seeds + effect.valid_set_aside
    message = (
        f"of the reviewed pairs {effect.accepted:,} are accepted as seed links ({effect.new_seeds:,} new) and {effect.rejected:,} rejected as known "
        f"non-links; {test:,} test and {valid:,} validation links were reviewed or touched by it and are not evaluated on."
    )
    found = [Finding("reviews", "info", message, effect.accepted + effect.rejected)]
    if effect.contested:
        told = f"{effect.contested:,} accepted pairs share an entity with another seed link."
        found.append(Finding("contested-reviews", "warning", told, effect.contested, advice="Look at them again, unless entities may have several."))
    return tuple(found)


def describe_reviews(manifest: Mapping[str, Any]) -> str | None:
    """A sentence on the reviews that a run was trained with, from its manifest; None for a run without."""
    effect = manifest.get("reviews")
    if not isinstance(effect, Mapping):
        return None
    number = {name: int(effect.get(name) or 0) for name in ("votes", "accepted", "rejected", "new_seeds", "test_to_seeds", "test_set_aside")}
    authors = effect.get("authors")
    by = f" by {count(authors, 'reviewer')}" if isinstance(authors, int) else ""
    told = f"{count(number['votes'], 'decision')}{by} went in, {count(number['accepted'], 'pair')} accepted "
    told += f"({number['new_seeds']:,} new as seed links) and {number['rejected']:,} rejected"
    left = number["test_to_seeds"] + number["test_set_aside"]
    return f"{told}; {count(left, 'test link')} left the test because of it." if left else f"{told}; none of them touched a test link."
