"""How many counterparts an entity may have, as the known links say."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from engine.util.arrays import IntArray
from engine.util.text import count

USUAL: Final = 0.95
"""Share of the linked entities of a side that a capacity has to do for: one entity with twenty links does not give twenty to all."""


class Capacity(NamedTuple):
    """The most counterparts of an entity of either graph."""

    source: int = 1
    target: int = 1

    @property
    def words(self) -> str:
        """'up to 3 counterparts per source and 1 per target'."""
        return f"up to {count(self.source, 'counterpart')} per source and {self.target:,} per target"


ONE: Final = Capacity()


def capacity_of(links: IntArray) -> Capacity:
    """What is enough for 95% of the linked entities of each side; 1 where there are no links, or no entity is in two.

    Args:
        links: (L, 2) source and target entities that are known to belong together; may repeat itself.
    """
    distinct = np.unique(np.asarray(links, dtype=np.int64).reshape(-1, 2), axis=0)
    if not len(distinct):
        return ONE
    per_entity = (np.unique(column, return_counts=True)[1] for column in distinct.T)
    return Capacity(*(int(np.quantile(counts, USUAL, method="inverted_cdf")) for counts in per_entity))
