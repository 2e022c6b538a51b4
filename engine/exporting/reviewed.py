"""What reviewers decided, as far as an export needs it, and an alignment in which they have the last word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from engine.alignment_table import Alignment, described_matches
from engine.datasets.knowledge_graph import SIDES, IntArray, Side
from engine.entities import other
from engine.matching import RunView
from engine.reviews import ReviewStore, Verdict, snapshot_of
from engine.reviews.decisions import Pair
from engine.reviews.snapshot import Outcome
from engine.search import Hubness, PairScores, pair_csls

Ends = tuple[int, int]
"""Numbers of a source and of a target entity."""
MATCH_COLUMNS = ["entity", "match", "csls", "cosine", "margin"]


@dataclass(frozen=True)
class ReviewedPair:
    """A pair that was decided.

    Attributes:
        source, target: the entities' identifiers.
        accepted: whether the two are the same thing; False: they are not.
        reviewers: who decided so.
    """

    source: str
    target: str
    accepted: bool
    reviewers: tuple[str, ...] = ()


def reviewed_pairs(store: ReviewStore, fingerprint: str) -> tuple[ReviewedPair, ...]:
    """All decisions on some data.

    Args:
        store: the decisions that are kept beside the runs.
        fingerprint: of the two graphs and their links, as a run's manifest has it.

    Returns:
        The pairs that the majority accepts or rejects, by identifiers; undecided ones are left out.

    Raises:
        ReviewError: the reviewers' database cannot be read.
    """
    standing = store.standing(fingerprint)
    voters: dict[tuple[Pair, Verdict], list[str]] = {}
    for decision in standing:
        voters.setdefault((decision.choice.pair, decision.choice.verdict), []).append(decision.author)
    verdicts: Mapping[Outcome, Verdict] = {"accepted": "accept", "rejected": "reject"}
    return tuple(
        ReviewedPair(*one.pair, one.outcome == "accepted", tuple(sorted(voters[one.pair, verdicts[one.outcome]])))
        for one in snapshot_of(fingerprint, standing).pairs
        if one.outcome in verdicts
    )


@dataclass(frozen=True)
class Decided:
    """Decisions about entities of a run, by number. Pairs of entities that the run does not know are left out."""

    accepted: Mapping[Ends, ReviewedPair]
    rejected: frozenset[Ends]

    @classmethod
    def of(cls, view: RunView, reviewed: Sequence[ReviewedPair]) -> Decided:
        index = {side: view.graphs[side].index for side in SIDES} if reviewed else {}
        known = [
            ((index["source"][pair.source], index["target"][pair.target]), pair)
            for pair in reviewed
            if pair.source in index["source"] and pair.target in index["target"]
        ]
        return cls({ends: pair for ends, pair in known if pair.accepted}, frozenset(ends for ends, pair in known if not pair.accepted))

    def __bool__(self) -> bool:
        return bool(self.accepted or self.rejected)


def with_last_word(view: RunView, found: Mapping[Side, Alignment], decided: Decided) -> Mapping[Side, Alignment]:
    """The alignment with every decision in it: accepted pairs stand in place of other matches of their two entities, rejected ones are gone."""
    if not decided:
        return found
    accepted = scored(view, np.array(sorted(decided.accepted), dtype=np.int64).reshape(-1, 2))
    return described_matches(view, {side: _decided_matches(found[side].rows[MATCH_COLUMNS], side, accepted, decided) for side in SIDES})


def _decided_matches(rows: pd.DataFrame, side: Side, accepted: pd.DataFrame, decided: Decided) -> pd.DataFrame:
    across = other(side)
    ends = zip(rows["entity"], rows["match"], strict=True)
    rejected = [(pair if side == "source" else pair[::-1]) in decided.rejected for pair in ends] if decided.rejected else np.zeros(len(rows), bool)
    settled = rows["entity"].isin(accepted[side]) | rows["match"].isin(accepted[across])
    theirs = accepted.rename(columns={side: "entity", across: "match"})[MATCH_COLUMNS]
    kept = pd.concat([rows[~settled & ~np.asarray(rejected, dtype=bool)], theirs.astype(rows.dtypes.to_dict())], ignore_index=True)
    return kept.sort_values(["entity", "match"], kind="stable", ignore_index=True)


def scored(view: RunView, pairs: IntArray) -> pd.DataFrame:
    """source, target, csls, cosine (with names: their weighted similarity added) and margin (unknown: NaN) of (P, 2) pairs."""
    scores = PairScores(torch.zeros(0), torch.zeros(0)) if not len(pairs) else pair_csls(view.similarity, torch.from_numpy(pairs), all_hubness(view))
    return pd.DataFrame(
        {
            "source": pairs[:, 0],
            "target": pairs[:, 1],
            "csls": scores.csls.numpy(),
            "cosine": scores.cosine.numpy(),
            "margin": np.float32(np.nan),
        }
    )


def all_hubness(view: RunView) -> Hubness:
    """A run's hubness terms among all entities."""
    k = int(view.run.manifest.get("config", {}).get("search", {}).get("csls_k", 10))
    source, target = (torch.from_numpy(np.array(view.hubness(side))) for side in SIDES)
    return Hubness(source, target, k)
