"""What known links and reviewers settle before anything is predicted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch

from engine.data.knowledge_graph import SIDES, Side
from engine.reviews import ReviewStore, Verdict, snapshot_of
from engine.reviews.decisions import Pair
from engine.reviews.snapshot import Outcome
from engine.runs.entities import other
from engine.runs.view import RunView
from engine.search import Hubness, PairScores, pair_csls
from engine.util.arrays import BoolArray, IntArray, link_keys, links_of_keys

# What reviewers decided, as far as an export needs it.


@dataclass(frozen=True)
class DecidedPair:
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


def reviewed_pairs(store: ReviewStore, fingerprint: str) -> tuple[DecidedPair, ...]:
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
        DecidedPair(*one.pair, one.outcome == "accepted", tuple(sorted(voters[one.pair, verdicts[one.outcome]])))
        for one in snapshot_of(fingerprint, standing).pairs
        if one.outcome in verdicts
    )


# Pairs that are certain whatever the scores say: those that reviewers accepted, and the known links.
#
# Reviewers have the last word. After them known links win: a prediction that shares an entity with a certain pair gives way to it. Where known links
# are one-to-one, so does a known link whose entity reviewers gave to another one; where they are not, both stay.

Ends = tuple[int, int]
"""Numbers of a source and of a target entity."""
MATCH_COLUMNS = ["entity", "match", "csls", "cosine", "margin"]
ROLES = ("train", "valid", "test")
"""Of links that say what is right; "unsure" ones do not."""


@dataclass(frozen=True)
class Settled:
    """Decisions and known links, by numbers of entities. Pairs of entities that the run does not have are left out.

    Attributes:
        accepted: by reviewers.
        rejected: by reviewers.
        links: (L, 2) distinct known links that count.
        overruled: known links that gave way to reviewers.
        sizes: entities of both graphs.
        all_links: the run's table of links, whatever their role.
    """

    accepted: Mapping[Ends, DecidedPair]
    rejected: frozenset[Ends]
    links: IntArray  # (L, 2)
    overruled: int
    sizes: tuple[int, int]
    all_links: pd.DataFrame

    @classmethod
    def of(cls, view: RunView, reviewed: Sequence[DecidedPair] = (), roles: Sequence[str] = ROLES) -> Settled:
        """
        Args:
            reviewed: all decisions on the run's data.
            roles: of the known links that are certain.
        """
        index = {side: view.graphs[side].index for side in SIDES} if reviewed else {}
        known = [
            ((index["source"][pair.source], index["target"][pair.target]), pair)
            for pair in reviewed
            if pair.source in index["source"] and pair.target in index["target"]
        ]
        accepted = {ends: pair for ends, pair in known if pair.accepted}
        rejected = frozenset(ends for ends, pair in known if not pair.accepted)
        table = view.run.table("links")
        links = table.loc[table["role"].isin(roles), ["source", "target"]].drop_duplicates().to_numpy(dtype=np.int64).reshape(-1, 2)
        unique = all(len(np.unique(links[:, column])) == len(links) for column in (0, 1))
        sizes = len(view.graphs["source"]), len(view.graphs["target"])
        keep = _standing(links, accepted, rejected, unique, sizes[1])
        return cls(accepted, rejected, links[keep], int((~keep).sum()), sizes, table)

    @cached_property
    def keys(self) -> IntArray:
        """(P,) numbers of the certain pairs (:func:`engine.util.arrays.link_keys`), each once, ascending."""
        both: IntArray = np.concatenate([link_keys(self.links, self.sizes[1]), link_keys(_ends_of(self.accepted), self.sizes[1])])
        return np.unique(both)

    @cached_property
    def _rejected_keys(self) -> IntArray:
        return link_keys(_ends_of(self.rejected), self.sizes[1])

    @cached_property
    def pairs(self) -> IntArray:
        """(P, 2) the certain pairs, each once, ascending."""
        return links_of_keys(self.keys, self.sizes[1])

    @cached_property
    def taken(self) -> tuple[BoolArray, BoolArray]:
        """(E1,), (E2,) the entities that are in a certain pair."""
        marks: tuple[BoolArray, BoolArray] = (np.zeros(self.sizes[0], dtype=np.bool_), np.zeros(self.sizes[1], dtype=np.bool_))
        for mark, column in zip(marks, self.pairs.T, strict=True):
            mark[column] = True
        return marks

    def leaves_open(self, source: IntArray, target: IntArray) -> BoolArray:
        """(n,) whether a pair may be predicted: neither of its entities is in a certain pair, and reviewers have not rejected it."""
        own, theirs = self.taken
        keep: BoolArray = ~(own[source] | theirs[target])
        if self.rejected:
            keep &= ~np.isin(source * self.sizes[1] + target, self._rejected_keys)
        return keep

    def holds(self, source: IntArray, target: IntArray) -> BoolArray:
        """(n,) whether a pair is a certain one."""
        found: BoolArray = np.isin(source * self.sizes[1] + target, self.keys)
        return found


def _ends_of(pairs: Collection[Ends]) -> IntArray:
    """(n, 2), ascending."""
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def _standing(links: IntArray, accepted: Mapping[Ends, DecidedPair], rejected: frozenset[Ends], unique: bool, width: int) -> BoolArray:
    """(L,) which known links count beside what reviewers decided; ``width``: entities of the target graph."""
    keys, taken = link_keys(links, width), _ends_of(accepted)
    keep: BoolArray = ~np.isin(keys, link_keys(_ends_of(rejected), width))
    if unique:
        keep &= np.isin(keys, link_keys(taken, width)) | ~(np.isin(links[:, 0], taken[:, 0]) | np.isin(links[:, 1], taken[:, 1]))
    return keep


def with_settled(view: RunView, found: Mapping[Side, pd.DataFrame], settled: Settled) -> dict[Side, pd.DataFrame]:
    """Predictions with every certain pair in them, in place of all others of its two entities; rejected pairs are gone."""
    certain = scored_pairs(view, settled.pairs)
    return {side: _merged(found[side], side, certain, settled) for side in SIDES}


def _merged(rows: pd.DataFrame, side: Side, certain: pd.DataFrame, settled: Settled) -> pd.DataFrame:
    own, theirs = (rows[name].to_numpy(dtype=np.int64) for name in ("entity", "match"))
    keep = settled.leaves_open(*((own, theirs) if side == "source" else (theirs, own)))
    put_in = certain.rename(columns={side: "entity", other(side): "match"})[MATCH_COLUMNS]
    kept = pd.concat([rows.loc[keep, MATCH_COLUMNS], put_in.astype(rows[MATCH_COLUMNS].dtypes.to_dict())], ignore_index=True)
    return kept.sort_values(["entity", "match"], kind="stable", ignore_index=True)


def scored_pairs(view: RunView, pairs: IntArray) -> pd.DataFrame:
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
