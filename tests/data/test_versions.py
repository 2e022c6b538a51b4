"""Two versions of a graph: what is carried over, what changed, which data is refused, and what becomes of the links."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from engine.data.knowledge_graph import SIDES, AlignmentTask, KnowledgeGraph, Side, empty_attributes
from engine.data.versions import Renaming, Versions, carry_over, changed_entities, check_versions, read_renaming, with_earlier_split
from engine.errors import DataError
from engine.util.arrays import IntArray
from tests.data.writers import put

Facts = list[tuple[str, str, str]]


def graph(facts: Facts, values: Facts | None = None, more: tuple[str, ...] = ()) -> KnowledgeGraph:
    """A graph in canonical order."""
    entities = tuple(sorted({end for head, _, tail in facts for end in (head, tail)} | set(more)))
    relations = tuple(sorted({relation for _, relation, _ in facts}))
    at, kind = {one: place for place, one in enumerate(entities)}, {one: place for place, one in enumerate(relations)}
    triples = np.array(sorted((at[head], kind[relation], at[tail]) for head, relation, tail in facts), dtype=np.int64).reshape(-1, 3)
    rows = [(at[entity], attribute, value) for entity, attribute, value in values or []]
    attributes = pd.DataFrame(rows, columns=["entity", "attribute", "value"]) if rows else empty_attributes()
    return KnowledgeGraph("g", entities, tuple("" for _ in entities), relations, triples, attributes)


OLD: Facts = [("a", "near", "b"), ("b", "near", "c"), ("c", "in", "d"), ("d", "in", "e")]


def test_entities_go_by_identifier_and_relations_by_name() -> None:
    carried = carry_over(graph(OLD), graph([("a", "near", "b"), ("b", "of", "x"), ("c", "near", "d")]))
    assert carried.entities.tolist() == [0, 1, 2, 3, -1]
    assert carried.later.tolist() == [0, 1, 2, 3, -1]
    assert carried.relations.tolist() == [1, -1]
    assert carried.counts() == {"entities": {"carried": 4, "new": 1, "gone": 1}, "relations": {"carried": 1, "new": 1, "gone": 1}}


def test_a_mapping_goes_before_identifiers() -> None:
    """``a`` is now called ``b``, what was ``b`` is now ``z``, and another entity has the identifier ``a``."""
    later = graph([("b", "near", "z"), ("z", "near", "c"), ("a", "in", "c")])
    carried = carry_over(graph(OLD), later, [("a", "b"), ("b", "z")])
    assert dict(zip(later.entities, carried.entities.tolist(), strict=True)) == {"a": -1, "b": 0, "c": 2, "z": 1}


def test_what_changed_about_an_entity() -> None:
    before = graph(OLD, [("a", "name", "A"), ("b", "name", "B"), ("e", "name", "E")])
    facts = [("a", "near", "b"), ("b", "near", "c"), ("d", "in", "c"), ("d", "in", "e"), ("e", "in", "f")]
    later = graph(facts, [("a", "name", "A"), ("b", "name", "Bee"), ("e", "name", "E"), ("c", "name", "C")])
    changed = changed_entities(before, later, carry_over(before, later))
    names = np.array(later.entities)
    assert names[changed.triples].tolist() == ["c", "d", "e", "f"], "the direction counts, and a new neighbour"
    assert names[changed.values].tolist() == ["b", "c", "f"]


def test_renaming_and_order_are_no_change() -> None:
    before = graph(OLD, [("a", "name", "A"), ("a", "code", "1")])
    swap = {"a": "z", "b": "b2"}
    facts = [(swap.get(head, head), relation, swap.get(tail, tail)) for head, relation, tail in reversed(OLD)]
    later = graph(facts, [("z", "code", "1"), ("z", "name", "A")])
    changed = changed_entities(before, later, carry_over(before, later, list(swap.items())))
    assert not changed.triples.any()
    assert not changed.values.any()


@pytest.mark.parametrize("seed", range(5))
def test_changes_are_those_that_sets_of_triples_show(seed: int) -> None:
    draw = np.random.default_rng(seed)

    def facts() -> Facts:
        return list({(f"e{one}", f"r{two}", f"e{three}") for one, two, three in draw.integers(0, [12, 3, 12], (30, 3)).tolist()})

    first = facts()
    second = [fact for fact in first if draw.random() > 0.1] + [fact for fact in facts()[:3] if fact not in first]
    before, later = graph(first), graph(second)
    changed = changed_entities(before, later, carry_over(before, later))
    for place, name in enumerate(later.entities):
        around = [{(side, fact) for fact in set(known) for side in (0, 2) if fact[side] == name} for known in (first, second)]
        own = [{(side, relation, head if side else tail) for side, (head, relation, tail) in one} for one in around]
        assert changed.triples[place] == (name not in before.index or own[0] != own[1]), name


def test_other_data_is_refused_with_numbers() -> None:
    old = graph([(f"e{one}", "r", f"e{one + 1}") for one in range(999)])
    other = graph([("e0", "r", "e1"), *((f"x{one}", "r", f"x{one + 1}") for one in range(700))])
    grown = graph([(f"e{one}", "r", f"e{one + 1}") for one in range(2999)])
    same = carry_over(old, old)
    message = r"2 of 1,000 entities \(0\.2%\) of the source graph of towns/basic-s0-1 are in new; .* at least 50%"
    with pytest.raises(DataError, match=message):
        check_versions({"source": carry_over(old, other), "target": same}, "new", "towns/basic-s0-1")
    with pytest.raises(DataError, match=r"1,000 of 3,000 entities \(33%\) of the target graph of new are in towns/basic-s0-1"):
        check_versions({"source": same, "target": carry_over(old, grown)}, "new", "towns/basic-s0-1")
    check_versions({"source": same, "target": same}, "new", "towns/basic-s0-1")


# Mapping files


@pytest.fixture
def graphs() -> tuple[Mapping[Side, KnowledgeGraph], Mapping[Side, KnowledgeGraph]]:
    before: dict[Side, KnowledgeGraph] = {"source": graph([("a", "r", "b")]), "target": graph([("p", "r", "q"), ("a", "r", "p")])}
    later: dict[Side, KnowledgeGraph] = {"source": graph([("a2", "r", "b2")]), "target": graph([("p2", "r", "q2"), ("a3", "r", "p2")])}
    return before, later


def test_one_mapping_file_for_both_graphs(tmp_path: Path, graphs: tuple[Mapping[Side, KnowledgeGraph], Mapping[Side, KnowledgeGraph]]) -> None:
    found = read_renaming({None: put(tmp_path / "map.tsv", "old\tnew\na\ta2\np\tp2\nb\tb2\n")}, *graphs)
    assert found.pairs == {"source": (("a", "a2"), ("b", "b2")), "target": (("p", "p2"),)}
    assert found.size == 3
    assert len(found.digest) == 64
    assert found.table()["graph"].tolist() == ["source", "source", "target"]
    assert read_renaming({}, *graphs) == Renaming({"source": (), "target": ()})


def test_a_mapping_file_for_each_graph_may_be_csv_without_a_header(
    tmp_path: Path, graphs: tuple[Mapping[Side, KnowledgeGraph], Mapping[Side, KnowledgeGraph]]
) -> None:
    files = {"source": put(tmp_path / "s.csv", "a,a2\n"), "target": put(tmp_path / "t.csv", "a,a3\n")}
    found = read_renaming(files, *graphs)  # type: ignore[arg-type]
    assert found.pairs == {"source": (("a", "a2"),), "target": (("a", "a3"),)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\ta2\nx\ty\n", r"map\.tsv:2: neither graph of the run has 'x'"),
        ("a\ty\n", r"map\.tsv:1: neither graph of the new data has 'y'"),
        ("b\tp2\n", r"map\.tsv:1: 'b' and 'p2' belong to different graphs"),
        ("b\tb2\nb\ta2\n", r"map\.tsv:2: the old identifier 'b' is listed twice"),
        ("b\tb2\na\tb2\n", r"map\.tsv:2: the new identifier 'b2' is listed twice"),
        ("b\n", r"map\.tsv"),
        ("", r"map\.tsv"),
    ],
)
def test_a_wrong_mapping_is_a_sentence_with_its_line(
    tmp_path: Path, graphs: tuple[Mapping[Side, KnowledgeGraph], Mapping[Side, KnowledgeGraph]], content: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_renaming({None: put(tmp_path / "map.tsv", content)}, *graphs)


def test_an_entity_of_the_wrong_graph_is_named(tmp_path: Path, graphs: tuple[Mapping[Side, KnowledgeGraph], Mapping[Side, KnowledgeGraph]]) -> None:
    with pytest.raises(DataError, match=r"no entity of the source graph of the run is called 'p'"):
        read_renaming({"source": put(tmp_path / "map.tsv", "p\tp2\n")}, *graphs)


# Links


def ring(name: str, size: int, gone: int | None = None) -> KnowledgeGraph:
    facts = [(f"{name}{one:02}", "r", f"{name}{one + 1:02}") for one in range(size)]
    return graph([fact for fact in facts if gone is None or f"{name}{gone:02}" not in (fact[0], fact[2])])


def task_of(source: KnowledgeGraph, target: KnowledgeGraph, parts: Mapping[str, list[tuple[str, str]]]) -> AlignmentTask:
    def links(part: str) -> IntArray:
        found = [(source.index[one], target.index[two]) for one, two in parts.get(part, [])]
        return np.array(found, dtype=np.int64).reshape(-1, 2)

    return AlignmentTask("t", "openea", source, target, links("train"), links("valid"), links("test"), links("unsure"), "given: fold", "f" * 64)


def named(task: AlignmentTask, links: IntArray) -> list[tuple[str, str]]:
    return [(task.source.entities[one], task.target.entities[two]) for one, two in links.tolist()]


def pairs(*numbers: int) -> list[tuple[str, str]]:
    return [(f"s{one:02}", f"t{one:02}") for one in numbers]


def test_links_keep_their_part_whatever_the_new_split_says() -> None:
    before = task_of(ring("s", 9), ring("t", 9), {"train": pairs(0, 1), "valid": pairs(2), "test": pairs(3, 4, 5)})
    later = task_of(ring("s", 11, gone=5), ring("t", 11), {"train": pairs(2, 3, 9), "test": pairs(0, 1, 10), "unsure": pairs(4)})
    versions = versions_of(before, later)
    links = {"train": before.train_links, "valid": before.valid_links, "test": before.test_links}
    found, counts = with_earlier_split(later, links, versions, "t/basic-s0-1 (01234567)")
    assert named(found, found.train_links) == pairs(0, 1, 9)
    assert named(found, found.valid_links) == pairs(2)
    assert named(found, found.test_links) == pairs(3, 10)
    assert named(found, found.unsure_links) == pairs(4), "what the new data calls probable is no test link any more"
    assert (counts.carried, counts.new, counts.gone) == (4, 2, 2)
    assert found.split == "given: fold; 4 links as in t/basic-s0-1 (01234567)"


def test_a_new_link_of_a_tested_entity_is_not_trained_on() -> None:
    before = task_of(ring("s", 9), ring("t", 9), {"train": pairs(0), "test": pairs(3)})
    later = task_of(ring("s", 9), ring("t", 9), {"train": [*pairs(0), ("s03", "t04"), ("s06", "t06")], "test": [*pairs(3), ("s00", "t01")]})
    links = {"train": before.train_links, "valid": before.valid_links, "test": before.test_links}
    found, _ = with_earlier_split(later, links, versions_of(before, later), "x")
    assert named(found, found.train_links) == [("s00", "t00"), ("s00", "t01"), ("s06", "t06")]
    assert named(found, found.test_links) == [("s03", "t03"), ("s03", "t04")]


def test_data_without_links_takes_those_of_the_earlier_version() -> None:
    before = task_of(ring("s", 9), ring("t", 9), {"train": pairs(0, 1), "test": pairs(3, 4)})
    later = task_of(ring("s", 9, gone=4), ring("t", 9), {})
    links = {"train": before.train_links, "valid": before.valid_links, "test": before.test_links}
    found, counts = with_earlier_split(later, links, versions_of(before, later), "x")
    assert named(found, found.train_links) == pairs(0, 1)
    assert named(found, found.test_links) == pairs(3)
    assert (counts.carried, counts.new, counts.gone) == (3, 0, 1)


def versions_of(before: AlignmentTask, later: AlignmentTask) -> Versions:
    graphs = [{side: one.graph(side) for side in SIDES} for one in (before, later)]
    return Versions.of(graphs[0], graphs[1], Renaming({}))
