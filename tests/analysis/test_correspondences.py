"""Which relations and attributes correspond."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from engine.analysis.correspondences import correspondence_table, known_pairs
from engine.data.knowledge_graph import AlignmentTask, KnowledgeGraph, empty_attributes, empty_links

SIZE = 12


def matches(pairs: list[tuple[int, int]]) -> pd.DataFrame:
    rows = [("source", left, 1, right) for left, right in pairs] + [("target", right, 1, left) for left, right in pairs]
    return pd.DataFrame(rows, columns=["graph", "entity", "rank", "match"])


def task(links: int = 4) -> AlignmentTask:
    """A chain and its mirror image: the target's relation 1 runs the other way, its relation 0 has nothing to do with it. Both have numbers."""
    chain = np.array([[i, 0, i + 1] for i in range(SIZE - 1)], dtype=np.int64)
    mirror = np.concatenate([np.stack([chain[:, 2], np.ones(len(chain), dtype=np.int64), chain[:, 0]], axis=1), [[0, 0, 5]]])
    tables = [
        pd.DataFrame([(i, name, str(value)) for i in range(SIZE) for name, value in rows(i)], columns=["entity", "attribute", "value"])
        for rows in (lambda i: (("count", i), ("noise", (i + 5) % SIZE)), lambda i: (("Anzahl", f"{i}.0"),))
    ]
    graphs = [
        KnowledgeGraph(
            name,
            tuple(f"{name}{i}" for i in range(SIZE)),
            ("",) * SIZE,
            relations,
            triples,
            table.astype(empty_attributes().dtypes.to_dict()),
        )
        for name, relations, triples, table in zip("ab", (("next",), ("odd", "previous")), (chain, mirror), tables, strict=True)
    ]
    seeds = np.stack([np.arange(links)] * 2, axis=1)
    return AlignmentTask("t", "openea", *graphs, seeds, empty_links(), empty_links(), empty_links(), split="s", fingerprint="f")


def test_the_relation_that_runs_the_other_way_and_the_attribute_are_found() -> None:
    table = correspondence_table(task(), matches([(i, i) for i in range(SIZE)]))
    first = table[table["kind"] == "relation"].iloc[0]
    assert (first["source"], first["target"], bool(first["turned"])) == ("next", "previous", True)
    assert first["support"] == SIZE - 1
    assert first["source_implies_target"] > 0.9
    assert first["target_implies_source"] > 0.9
    attribute = table[table["kind"] == "attribute"].iloc[0]
    assert (attribute["source"], attribute["target"]) == ("count", "Anzahl")
    assert "noise" not in set(table["source"]) or table.set_index("source").loc["noise", "source_implies_target"] < 0.3


def test_wrong_matches_support_nothing() -> None:
    wrong = [(i, (5 * i + 3) % SIZE) for i in range(SIZE)]
    table = correspondence_table(task(links=0), matches(wrong))
    assert not len(table[(table["kind"] == "relation") & (table["support"] > 3)])


def test_without_matches_there_is_nothing() -> None:
    assert not len(correspondence_table(task(links=0), matches([])))


@pytest.mark.parametrize("links", [0, 3])
def test_known_pairs_are_one_to_one(links: int) -> None:
    table = pd.concat([matches([(5, 1), (6, 7)]), pd.DataFrame([("source", 8, 1, 7)], columns=["graph", "entity", "rank", "match"])])
    pairs = known_pairs(task(links), table).tolist()
    assert [6, 7] in pairs
    assert [8, 7] not in pairs
    assert ([5, 1] in pairs) == (links == 0), "a match must not contradict a seed link"


def test_labels_from_identifiers_are_no_attribute() -> None:
    """They are compared like one, but no attribute of that name exists."""
    given = task()
    source, target = (replace(graph, labels=tuple(f"word {i}" for i in range(SIZE))) for graph in (given.source, given.target))
    everything = matches([(i, i) for i in range(SIZE)])
    table = correspondence_table(replace(given, source=source, target=target), everything)
    assert set(zip(table["source"], table["target"], strict=True)) == {("count", "Anzahl"), ("next", "previous")}
    named = source.attributes.assign(attribute=source.attributes["attribute"].replace("count", "label"))
    real = correspondence_table(replace(given, source=replace(source, attributes=named), target=target), everything)
    assert ("label", "Anzahl") in set(zip(real["source"], real["target"], strict=True))


@pytest.mark.parametrize("name", ["count", "Anzahl"])
def test_excluded_attributes_correspond_to_nothing(name: str) -> None:
    table = correspondence_table(task(), matches([(i, i) for i in range(SIZE)]), frozenset({name}))
    assert set(table["kind"]) == {"relation"}
