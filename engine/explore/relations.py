"""A run's relations, opened for questions: ranked, searched, and one by one; everything comes from the run's stored tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pandas as pd

from engine.analysis.relations import BANDS, Band
from engine.data.knowledge_graph import SIDES, Side
from engine.runs.entities import LONGEST_QUERY, Entity, folded_label, other, short_id
from engine.runs.view import RunView

DIRECTIONS = ("forward", "inverse")
KEPT_SETTINGS = 16
KEY = ["graph", "relation"]


@dataclass(frozen=True)
class Setting:
    """One of the importances that a relation has."""

    layer: int
    channel: str
    direction: str


@dataclass(frozen=True)
class Relation:
    """A relation as people see it.

    Attributes:
        name: its identifier; need not be unique within a graph.
    """

    side: Side
    index: int
    name: str

    @property
    def title(self) -> str:
        """The last part of the identifier; never empty unless the identifier is."""
        return short_id(self.name) if self.name else ""


@dataclass(frozen=True)
class Example:
    """A triple, as its two ends."""

    head: Entity
    tail: Entity


@dataclass(frozen=True)
class Twin:
    """A similar relation of the other graph.

    Attributes:
        turned: compared with head and tail exchanged.
        seed_triples: triples of the asking relation with seed-linked entities at both ends.
        agreement: share of these whose counterparts the twin connects; None where there are none.
    """

    rank: int
    relation: Relation
    turned: bool
    cosine: float
    seed_triples: int
    agreement: float | None


class RelationView:
    """The relations of a run. Cheap to make; what is costly is computed on first use and kept, so nothing that it returns may be changed.

    Args:
        view: the run.
        table: a stored table by its name; raises where there is none.
    """

    def __init__(self, view: RunView, table: Callable[[str], pd.DataFrame]) -> None:
        self.view = view
        self._table = table
        self.ranked = lru_cache(maxsize=KEPT_SETTINGS)(self._ranked)

    @cached_property
    def relations(self) -> dict[Side, tuple[Relation, ...]]:
        """Each graph's relations by their number."""
        table = self._table("relations").sort_values("relation")
        names = {side: table.loc[table["graph"] == side, "name"].astype(str).tolist() for side in SIDES}
        return {side: tuple(Relation(side, index, name) for index, name in enumerate(names[side])) for side in SIDES}

    @cached_property
    def _by_name(self) -> dict[tuple[Side, str], Relation]:
        """The first of each name."""
        return {(one.side, one.name): one for side in SIDES for one in reversed(self.relations[side])}

    def find(self, name: str, side: Side | None = None) -> Relation | None:
        """The relation with exactly this identifier, of the source graph where both have one; None where there is none."""
        found = (self._by_name.get((one, name)) for one in SIDES if side in (None, one))
        return next((relation for relation in found if relation is not None), None)

    @cached_property
    def importance(self) -> pd.DataFrame:
        """The table ``relation_importance``, with ``of``: how many directed relations ``rank`` counts; and ``lower``: share of the others that
        come after it, 0 to 1."""
        table = self._table("relation_importance")
        count = table.groupby(["layer", "channel"])["rank"].transform("size")
        return table.assign(of=count, lower=(count - table["rank"]) / (count - 1).clip(lower=1))

    @cached_property
    def layers(self) -> tuple[int, ...]:
        return tuple(sorted(self.importance["layer"].unique().tolist()))

    @cached_property
    def channels(self) -> tuple[str, ...]:
        return tuple(self.importance["channel"].unique().tolist())

    @cached_property
    def hits(self) -> pd.DataFrame:
        """The table ``relation_hits``; without rows where the run has no test links."""
        return self._table("relation_hits")

    def _ranked(self, setting: Setting) -> pd.DataFrame:
        """``importance`` of one layer, channel and direction, the highest first, with ``name`` and ``title``, and the ``queries`` and ``hits@1`` with
        its interval of the test entities that have the relation in any place, NaN where there are none."""
        table = self.importance
        chosen = table[(table["layer"] == setting.layer) & (table["channel"] == setting.channel) & (table["direction"] == setting.direction)]
        hits = self.hits[self.hits["role"] == "any"]
        columns = [*KEY, "queries", "hits@1", "hits@1_low", "hits@1_high"]
        ranked = chosen.sort_values("rank").merge(hits[columns], on=KEY, how="left")
        found = [self.relations[side][index] for side, index in zip(ranked["graph"], ranked["relation"], strict=True)]
        return ranked.assign(name=[one.name for one in found], title=[one.title for one in found])

    def search(self, setting: Setting, words: str = "", *, side: Side | None = None, band: Band | None = None, least: int = 1) -> pd.DataFrame:
        """Rows of ``ranked`` whose name holds the words, in their order; of one graph or band only where that is asked for, and of relations with at
        least ``least`` triples."""
        table = self.ranked(setting)
        keep = (table["frequency"] >= least).to_numpy()
        if wanted := folded_label(words[:LONGEST_QUERY]):
            keep = keep & self._named(table, wanted)
        if side is not None:
            keep = keep & (table["graph"] == side).to_numpy()
        if band is not None:
            keep = keep & (table["band"] == band).to_numpy()
        return table[keep].reset_index(drop=True)

    def _named(self, table: pd.DataFrame, wanted: str) -> npt.NDArray[np.bool_]:
        """Which rows are of relations whose identifier, decoded or not, holds the words."""
        named = {(side, one.index) for side in SIDES for one, plain in zip(self.relations[side], self._plain[side], strict=True) if wanted in plain}
        return np.fromiter(((row in named) for row in zip(table["graph"], table["relation"], strict=True)), dtype=bool, count=len(table))

    @cached_property
    def _plain(self) -> dict[Side, list[str]]:
        """Normalised names to search in, as written and decoded."""
        return {side: [f"{folded_label(one.name)}\n{folded_label(unquote(one.name))}" for one in self.relations[side]] for side in SIDES}

    # One relation

    def everywhere(self, relation: Relation) -> pd.DataFrame:
        """The relation's rows of ``importance``: each layer, channel and direction; none where it has no triple."""
        table = self.importance
        return table[(table["graph"] == relation.side) & (table["relation"] == relation.index)].reset_index(drop=True)

    def hits_of(self, relation: Relation) -> pd.DataFrame:
        """The relation's rows of ``hits``: queries that have it in "any" place, as "head", as "tail"; none without queries."""
        return self.hits[(self.hits["graph"] == relation.side) & (self.hits["relation"] == relation.index)].reset_index(drop=True)

    def twins(self, relation: Relation) -> list[Twin]:
        """Its most similar relations in the other graph, the most similar first."""
        table = self._table("relation_twins")
        rows = table[(table["graph"] == relation.side) & (table["relation"] == relation.index)].sort_values("rank")
        theirs = self.relations[other(relation.side)]
        return [_twin(row, theirs) for row in rows.to_dict("records")]

    def examples(self, relation: Relation, count: int) -> list[Example]:
        """At most ``count`` of its triples: named and well connected ends first, and each end in as few of them as can be."""
        table = self._table("triples")
        rows = table[(table["graph"] == relation.side) & (table["relation"] == relation.index)]
        graph = self.view.graphs[relation.side]
        heads, tails = rows["head"].to_numpy(), rows["tail"].to_numpy()
        named = np.array([bool(graph.labels[head]) + bool(graph.labels[tail]) for head, tail in zip(heads, tails, strict=True)], dtype=np.int64)
        order = np.lexsort((tails, heads, -(graph.degrees[heads] + graph.degrees[tails]), -named))
        ranked = rows.iloc[order]
        fresh = ranked.drop_duplicates("head").drop_duplicates("tail")
        chosen = pd.concat([fresh, ranked.drop(fresh.index)]).head(count)
        return [Example(graph.entity(int(head)), graph.entity(int(tail))) for head, tail in zip(chosen["head"], chosen["tail"], strict=True)]


def _twin(row: Mapping[Hashable, Any], theirs: Sequence[Relation]) -> Twin:
    seen = int(row["seed_triples"])
    agreement = float(row["agreement"]) if seen else None
    return Twin(int(row["rank"]), theirs[int(row["twin"])], bool(row["turned"]), float(row["cosine"]), seen, agreement)


def of_each_band(ranked: pd.DataFrame, count: int) -> pd.DataFrame:
    """At most ``count`` rows of each band, as the paper shows them: the first of the high ones, the middle of the medium ones, the last of the low.

    Args:
        ranked: rows with ``band``, by rank; all of one band: its first ``len(BANDS) * count`` rows.
    """
    present = [band for band in BANDS if (ranked["band"] == band).any()]
    if len(present) < 2:
        return ranked.head(len(BANDS) * count)
    parts = []
    for band in present:
        rows = ranked[ranked["band"] == band]
        start = {"high": 0, "medium": max(len(rows) - count, 0) // 2, "low": max(len(rows) - count, 0)}[band]
        parts.append(rows.iloc[start : start + count])
    return pd.concat(parts)
