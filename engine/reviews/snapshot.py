"""The reviewed pairs of a data set at one moment, and a task that is trained with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.knowledge_graph import AlignmentTask, Finding, empty_links
from engine.errors import ReviewError
from engine.reviews.decisions import Decision, Pair, votes
from engine.reviews.store import ReviewStore
from engine.util.arrays import BoolArray, IntArray, link_keys
from engine.util.machine import damage_apart
from engine.util.text import count

# What the reviewers of a data set say together at one moment: accepted pairs, rejected pairs, and a digest of both.
#
# The rule: the latest decision of each author counts, skipping is no vote, and the majority decides. A tie is undecided and goes into nothing.

Outcome = Literal["accepted", "rejected", "undecided"]
COLUMNS = ("source_uri", "target_uri", "outcome", "accepts", "rejects")
VERSION = "reviews-1"
SQLITE_HEADER = b"SQLite format 3\0"
PARQUET_HEADER = b"PAR1"


@dataclass(frozen=True)
class ReviewedPair:
    """A pair, and how many accept and reject it."""

    source: str
    target: str
    accepts: int
    rejects: int

    @property
    def pair(self) -> Pair:
        return self.source, self.target

    @property
    def outcome(self) -> Outcome:
        if self.accepts == self.rejects:
            return "undecided"
        return "accepted" if self.accepts > self.rejects else "rejected"


@dataclass(frozen=True)
class Snapshot:
    """The reviewed pairs of one data set, ordered by source and target.

    Attributes:
        fingerprint: of the data.
        pairs: every pair with a vote.
        authors: how many reviewers had a vote; None where they were not counted.
    """

    fingerprint: str
    pairs: tuple[ReviewedPair, ...]
    authors: int | None = None

    def of_outcome(self, outcome: Outcome) -> tuple[Pair, ...]:
        return tuple(one.pair for one in self.pairs if one.outcome == outcome)

    @property
    def accepted(self) -> tuple[Pair, ...]:
        return self.of_outcome("accepted")

    @property
    def rejected(self) -> tuple[Pair, ...]:
        return self.of_outcome("rejected")

    @property
    def votes(self) -> int:
        """Decisions that went in."""
        return sum(one.accepts + one.rejects for one in self.pairs)

    @property
    def digest(self) -> str:
        """sha-256 (hex) of what training looks at: the data and which pairs are accepted or rejected; not of who said so, how many, or when."""
        content = [VERSION, self.fingerprint, [list(pair) for pair in self.accepted], [list(pair) for pair in self.rejected]]
        return hashlib.sha256(json.dumps(content, ensure_ascii=True).encode()).hexdigest()

    def table(self) -> pd.DataFrame:
        """``COLUMNS``, a row a pair."""
        rows = [(one.source, one.target, one.outcome, one.accepts, one.rejects) for one in self.pairs]
        kinds = {"source_uri": "str", "target_uri": "str", "outcome": "str", "accepts": "int64", "rejects": "int64"}
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype(kinds)


def snapshot_of(fingerprint: str, standing: Iterable[Decision]) -> Snapshot:
    """Sum up decisions of one data set, whatever their order."""
    voting = [decision for decision in standing if decision.verdict != "skip"]
    pairs = (ReviewedPair(*pair, counts["accept"], counts["reject"]) for pair, counts in votes(voting).items())
    ordered = tuple(sorted(pairs, key=lambda one: one.pair))
    return Snapshot(fingerprint, ordered, len({decision.author for decision in voting}))


def read_snapshot(path: Path, fingerprint: str) -> Snapshot:
    """The decisions on one data set from a file: the reviewers' database, or the ``reviews.parquet`` that a run was trained with.

    Raises:
        ReviewError: there is no such file, it is neither of the two, or holds nothing decided about this data.
    """
    header = _header(path)
    if is_database(path):
        store = ReviewStore(path)
        try:
            found = snapshot_of(fingerprint, store.standing(fingerprint))
        finally:
            store.close()
    elif header.startswith(PARQUET_HEADER):
        found = _stored(path, fingerprint)
    else:
        raise ReviewError(f"{path} is neither a database of reviews nor the reviews.parquet of a run; give one of these.")
    if not found.accepted and not found.rejected:
        raise ReviewError(
            f"{path} has no accepted or rejected pairs of this data set ({fingerprint[:8]}); review some pairs, or train without reviews."
        )
    return found


def is_database(path: Path) -> bool:
    """Whether a file is a database of decisions, and not the decisions that a run was trained with.

    Raises:
        ReviewError: it cannot be read.
    """
    return _header(path).startswith(SQLITE_HEADER)


def _header(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_HEADER))
    except FileNotFoundError:
        raise ReviewError(f"there are no reviews in {path}; review some pairs in the app, or give another file.") from None
    except OSError as error:
        raise ReviewError(f"{path} cannot be read as reviews ({error.strerror}); give the reviewers' database or a run's reviews.parquet.") from None


def _stored(path: Path, fingerprint: str) -> Snapshot:
    try:
        with damage_apart(path):
            table = pq.ParquetFile(path).read(columns=list(COLUMNS)).to_pydict()
        rows = zip(*(table[name] for name in COLUMNS if name != "outcome"), strict=True)
        return Snapshot(fingerprint, _checked([ReviewedPair(str(one), str(two), int(yes), int(no)) for one, two, yes, no in rows]))
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        words = " ".join(str(error).split())[:200]
        raise ReviewError(f"{path} cannot be read as the reviews of a run ({words}); expected the columns {', '.join(COLUMNS)}.") from None


def _checked(pairs: Sequence[ReviewedPair]) -> tuple[ReviewedPair, ...]:
    """Ordered, each once.

    Raises:
        ValueError: a pair occurs twice, or with fewer than no votes.
    """
    if len({one.pair for one in pairs}) < len(pairs):
        raise ValueError("a pair occurs twice")
    if any(min(one.accepts, one.rejects) < 0 for one in pairs):
        raise ValueError("a number of votes is negative")
    return tuple(sorted(pairs, key=lambda one: one.pair))


# What reviews make of a task: accepted pairs are trained on, rejected ones are known to be no links, and nothing reviewed is evaluated on.
#
# Four rules, in this order:
#
# 1. An accepted pair is a seed link, whatever it was before.
# 2. A rejected pair is a known non-link; if it was a seed link, it is none any more.
# 3. A test or validation link of which a reviewed pair touches an entity leaves the test (the validation). Who rejects a candidate of an entity
#    narrows its counterpart down, so that entity's rank would be better for the wrong reason. What is not trained on then counts as "unsure": neither
#    right nor wrong.
# 4. Graphs and fingerprint stay as they are: the run can be compared with runs without reviews, on the test links that both have.


@dataclass(frozen=True)
class ReviewEffect:
    """What reviews changed, in numbers of pairs; also its form in a run's manifest, under ``reviews``.

    Attributes:
        digest: of the snapshot.
        votes, authors: decisions and reviewers that went in; the number of reviewers of a stored snapshot is unknown.
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
            f"the reviews belong to other data ({snapshot.fingerprint[:8]}) than {task.name} ({task.fingerprint[:8]}); review this data set."
        )
    width = task.target.num_entities
    accepted, rejected = (_keys(task, pairs) for pairs in (snapshot.accepted, snapshot.rejected))
    train, valid, test, unsure = (link_keys(links, width) for links in task.all_links())
    reviewed = np.concatenate([accepted, rejected])
    touched_valid, touched_test = (_touched(keys, reviewed, width) for keys in (valid, test))
    seeds = np.union1d(np.setdiff1d(train, rejected), accepted)
    if not len(seeds):
        raise ReviewError("the reviews reject all seed links and accept no other pair, so there are no training pairs; accept some pairs.")
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
                raise ReviewError(
                    f"a reviewed pair names '{identifier[:120]}', which is not an entity of {graph.name}; the reviews belong to other data."
                )
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
        f"reviews: {count(effect.accepted, 'pair')} accepted as seed links ({effect.new_seeds:,} new), {effect.rejected:,} rejected as non-links. "
        f"{test:,} test and {valid:,} validation links were reviewed, or share an entity with a reviewed pair, and are not used for evaluation."
    )
    found = [Finding("reviews", "info", message, effect.accepted + effect.rejected)]
    if effect.contested:
        words = f"{effect.contested:,} accepted pairs share an entity with another seed link."
        found.append(
            Finding(
                "contested-reviews", "warning", words, effect.contested, advice="Review them again, unless entities may have several counterparts."
            )
        )
    return tuple(found)


def describe_reviews(manifest: Mapping[str, Any]) -> str | None:
    """A sentence on the reviews that a run was trained with, from its manifest; None for a run without."""
    effect = manifest.get("reviews")
    if not isinstance(effect, Mapping):
        return None
    number = {name: int(effect.get(name) or 0) for name in ("votes", "accepted", "rejected", "new_seeds", "test_to_seeds", "test_set_aside")}
    authors = effect.get("authors")
    by = f" by {count(authors, 'reviewer')}" if isinstance(authors, int) else ""
    words = f"{count(number['votes'], 'decision')}{by} used, {count(number['accepted'], 'pair')} accepted "
    words += f"({number['new_seeds']:,} new as seed links) and {number['rejected']:,} rejected"
    left = number["test_to_seeds"] + number["test_set_aside"]
    return f"{words}; {count(left, 'test link')} removed from the test set." if left else f"{words}; no test link was affected."
