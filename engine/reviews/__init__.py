"""Reviewers' decisions about pairs: kept in SQLite, summed up by majority, and what they make of a task to be trained on.

A decision belongs to the data (fingerprint and the two entities' identifiers), not to a run, so it survives every retraining. Nothing is ever
changed or deleted: to undo is to add a row that withdraws. docs/reviewing.md tells the rules.
"""

from __future__ import annotations

from engine.reviews.agreement import Agreement, ReviewProgress, agreement, disagreements, progress
from engine.reviews.decisions import Choice, Decision, Verdict, check_author
from engine.reviews.reviewed_task import ReviewEffect, describe_reviews, with_reviews
from engine.reviews.snapshot import ReviewedPair, Snapshot, read_snapshot, snapshot_of
from engine.reviews.store import LEASE_SECONDS, ReviewStore

__all__ = [
    "LEASE_SECONDS",
    "Agreement",
    "Choice",
    "Decision",
    "ReviewEffect",
    "ReviewProgress",
    "ReviewStore",
    "ReviewedPair",
    "Snapshot",
    "Verdict",
    "agreement",
    "check_author",
    "describe_reviews",
    "disagreements",
    "progress",
    "read_snapshot",
    "snapshot_of",
    "with_reviews",
]
