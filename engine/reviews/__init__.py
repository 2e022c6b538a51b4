"""Reviewers' decisions about pairs: kept in SQLite, summed up by majority, and what they make of a task to be trained on.

A decision belongs to the data (fingerprint and the two entities' identifiers), not to a run, so it survives every retraining. Nothing is ever
changed or deleted: to undo is to add a row that withdraws. docs/reviewing.md has the rules.
"""

from __future__ import annotations

from engine.reviews.carrying import Carried, carried_snapshot, carry_decisions, mark_pairs, reason_words
from engine.reviews.decisions import Agreement, Choice, Decision, ReviewProgress, Verdict, agreement, check_author, disagreements, progress
from engine.reviews.snapshot import ReviewedPair, ReviewEffect, Snapshot, describe_reviews, is_database, read_snapshot, snapshot_of, with_reviews
from engine.reviews.store import LEASE_SECONDS, ReviewStore

__all__ = [
    "LEASE_SECONDS",
    "Agreement",
    "Carried",
    "Choice",
    "Decision",
    "ReviewEffect",
    "ReviewProgress",
    "ReviewStore",
    "ReviewedPair",
    "Snapshot",
    "Verdict",
    "agreement",
    "carried_snapshot",
    "carry_decisions",
    "check_author",
    "describe_reviews",
    "disagreements",
    "is_database",
    "mark_pairs",
    "progress",
    "read_snapshot",
    "reason_words",
    "snapshot_of",
    "with_reviews",
]
