"""Index arrays against sets and dictionaries that say the same in plain words."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.adjacency import Csr, build_adjacency
from engine.util import arrays
from tests.effort import examples

ENTITIES, RELATIONS = 6, 3
TRIPLES = st.lists(st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)), max_size=40)


def listed(rows: Csr) -> list[list[int]]:
    assert rows.offsets.dtype == np.int64
    assert rows.columns.dtype == np.int32
    return [rows.columns[start:stop].tolist() for start, stop in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]


def flipped(direction: int) -> int:
    return (direction + RELATIONS) % (2 * RELATIONS)


@pytest.mark.parametrize("most", [arrays.MOST, 1])
@pytest.mark.parametrize("relation_input", ["opposite", "same"])
@pytest.mark.parametrize("message_unit", ["triple", "edge"])
@settings(deadline=None, max_examples=examples(60))
@given(triples=TRIPLES)
def test_says_what_the_triples_say(
    message_unit: Literal["triple", "edge"], relation_input: Literal["opposite", "same"], most: int, triples: list[tuple[int, int, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "MOST", most)
        table = np.array(triples, dtype=np.int64).reshape(-1, 3)
        found = build_adjacency(table, ENTITIES, RELATIONS, message_unit=message_unit, relation_input=relation_input)
    received = sorted({entry for head, relation, tail in triples for entry in ((head, tail, relation), (tail, head, relation + RELATIONS))})
    if message_unit == "triple":
        entries, members = received, [[direction] for direction in range(2 * RELATIONS)]
    else:
        edges: dict[tuple[int, int], list[int]] = {}
        for receiver, sender, direction in received:
            edges.setdefault((receiver, sender), []).append(direction)
        members = [list(one) for one in dict.fromkeys(map(tuple, edges.values()))]
        entries = [(receiver, sender, members.index(directions)) for (receiver, sender), directions in edges.items()]
    everyone = range(ENTITIES)
    assert listed(found.messages) == [[sender for receiver, sender, _ in entries if receiver == one] for one in everyone]
    assert found.units.tolist() == [unit for _, _, unit in entries]
    assert listed(found.members) == members
    assert found.inverse.tolist() == [members.index(sorted(map(flipped, one))) for one in members]
    assert listed(found.neighbours) == [sorted({one, *(sender for receiver, sender, _ in received if receiver == one)}) for one in everyone]
    own = [(receiver, flipped(direction) if relation_input == "opposite" else direction) for receiver, _, direction in received]
    assert listed(found.relations) == [sorted({direction for receiver, direction in own if receiver == one}) for one in everyone]


def test_no_relations_at_all() -> None:
    found = build_adjacency(np.empty((0, 3), dtype=np.int64), 2, 0)
    assert listed(found.neighbours) == [[0], [1]]
    assert listed(found.relations) == [[], []]
    assert found.num_units == 0
