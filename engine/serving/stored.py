"""Matches out of a run's stored lists: the same numbers as a pass over all embeddings gives, at the cost of a few pairs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from engine.data.knowledge_graph import SIDES, Side
from engine.runs.entities import other
from engine.runs.view import Match, Pool, RunView
from engine.util.arrays import IntArray


class StoredLists:
    """The stored candidates of every entity of a run, held in memory: some 8 bytes each."""

    def __init__(self, view: RunView) -> None:
        self.view = view

    @cached_property
    def _lists(self) -> Mapping[Side, tuple[IntArray, IntArray]]:
        """For each side: where each entity's list begins, and the candidates of all lists, each in ascending order."""
        table = self.view.run.table("matches", ["graph", "entity", "match"])
        found: dict[Side, tuple[IntArray, IntArray]] = {}
        for side in SIDES:
            rows = table[table["graph"] == side]
            entities, matches = (rows[name].to_numpy(dtype=np.int64) for name in ("entity", "match"))
            order = np.lexsort((matches, entities))
            starts = np.searchsorted(entities[order], np.arange(len(self.view.graphs[side]) + 1))
            found[side] = starts.astype(np.int64), matches[order]
        return found

    def candidates(self, side: Side, index: int) -> IntArray:
        """(n,) the stored candidates of an entity, in ascending order."""
        starts, matches = self._lists[side]
        return matches[starts[index] : starts[index + 1]]

    def matches(self, side: Side, index: int, top: int, pool: Pool = "all") -> list[Match]:
        """The best matches of an entity, as :meth:`engine.runs.view.RunView.matches` gives them.

        The stored list is enough where what follows it cannot matter: fewer matches are wanted than it holds, and the last of these has a better
        score than the last stored one. Where it is not enough, or the list comes from an approximate search, all candidates are compared.

        Raises:
            EntityError: no such entity, or it is not in the pool.
            RunDamagedError: a score is not finite.
        """
        found = self._listed(side, index, top) if pool == "all" and self._exact else None
        return self.view.matches(side, index, top, pool) if found is None else found

    def _listed(self, side: Side, index: int, top: int) -> list[Match] | None:
        """The best matches out of the stored list; None where it is not enough."""
        self.view.entity(side, index)
        stored = self.candidates(side, index)
        complete = len(stored) == self._everything[other(side)]
        if not len(stored) or not (complete or 0 < top < len(stored)):
            return None
        row = self.view.scores_with(side, index, stored)
        order = np.argsort(-row.csls, kind="stable")
        if not complete and row.csls[order[top - 1]] - 2 * row.tolerance <= row.csls[order[-1]]:
            return None
        return [self.view.match_at(side, index, row, int(position)) for position in order[:top]]

    @cached_property
    def _exact(self) -> bool:
        """Whether the run's lists come from an exact search."""
        return str(self.view.run.manifest.get("config", {}).get("search", {}).get("index", "exact")) == "exact"

    @cached_property
    def _everything(self) -> Mapping[Side, int]:
        """Entities in the pool of all, by graph."""
        return {side: self.view.pool_size(side, "all") for side in SIDES}
