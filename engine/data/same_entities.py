"""Which entity of one version of a graph is which one of another: by identifier, but for those that were renamed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np

from engine.util.arrays import IntArray

NOWHERE: Final = -1
"""Place of an entity that the other version lacks."""


def places_in(index: Mapping[str, int], identifiers: Collection[str], renamed: Mapping[str, str]) -> IntArray:
    """(E,) the place of each entity of the earlier version in the later one, ``NOWHERE`` for those that are gone.

    Args:
        index: place of each identifier of the later version.
        identifiers: E of the earlier version.
        renamed: earlier identifier -> later one. A renamed entity goes by its new identifier alone, and that one means no other entity.
    """
    taken = set(renamed.values())
    names = (renamed.get(one, None if one in taken else one) for one in identifiers)
    found = (NOWHERE if name is None else index.get(name, NOWHERE) for name in names)
    return np.fromiter(found, dtype=np.int64, count=len(identifiers))


def turned_places(places: IntArray, size: int) -> IntArray:
    """(size,) the place in the earlier version of each entity of the later one, ``NOWHERE`` for new ones: :func:`places_in` the other way round."""
    found = np.full(size, NOWHERE, dtype=np.int64)
    known = np.flatnonzero(places != NOWHERE)
    found[places[known]] = known
    return found


def name_places(index: Sequence[str], names: Sequence[str]) -> IntArray:
    """(n,) the place of each name in a list, ``NOWHERE`` where it has none."""
    return places_in({name: place for place, name in enumerate(index)}, names, {})
