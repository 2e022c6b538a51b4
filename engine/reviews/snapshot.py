"""What the reviewers of a data set say together at one moment: accepted pairs, rejected pairs, and a digest of both.

The rule: the latest decision of each author counts, skipping is no vote, and the majority decides. A tie is undecided and goes into nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import ReviewError
from engine.reviews.agreement import votes
from engine.reviews.decisions import Decision, Pair
from engine.reviews.store import ReviewStore

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
    if header.startswith(SQLITE_HEADER):
        store = ReviewStore(path)
        try:
            found = snapshot_of(fingerprint, store.standing(fingerprint))
        finally:
            store.close()
    elif header.startswith(PARQUET_HEADER):
        found = _stored(path, fingerprint)
    else:
        raise ReviewError(f"{path} is neither a database of reviews nor the reviews.parquet of a run; name one of these.")
    if not found.accepted and not found.rejected:
        raise ReviewError(f"{path} holds no accepted or rejected pair of this data set ({fingerprint[:8]}); review some pairs, or train without.")
    return found


def _header(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_HEADER))
    except FileNotFoundError:
        raise ReviewError(f"there are no reviews in {path}; review some pairs in the app, or name another file.") from None
    except OSError as error:
        raise ReviewError(f"{path} cannot be read as reviews ({error.strerror}); name the reviewers' database or a run's reviews.parquet.") from None


def _stored(path: Path, fingerprint: str) -> Snapshot:
    try:
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
        raise ValueError("a pair stands there twice")
    if any(min(one.accepts, one.rejects) < 0 for one in pairs):
        raise ValueError("a number of votes is negative")
    return tuple(sorted(pairs, key=lambda one: one.pair))
