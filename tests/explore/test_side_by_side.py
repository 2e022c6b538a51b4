"""Two entities next to each other: which attributes belong together, how alike their values are, which neighbours face each other."""

from __future__ import annotations

import pandas as pd
import pytest

from engine.explore.neighbourhood import IncidentTriples, facing
from engine.explore.side_by_side import (
    MARKS,
    ValueRow,
    attribute_counterparts,
    compare_neighbours,
    compare_values,
    paired_attribute_names,
    value_likeness,
    value_list,
)
from engine.runs.view import RunView
from tests.explanation.runs import drawn_run
from tests.run_fixture import MemoryRun


@pytest.mark.parametrize(
    ("one", "two", "mark", "note"),
    [
        ("São Paulo", "sao-paulo", "same", ""),
        ("1,234", "1234.0", "same", ""),
        ("82927922", "84119100", "similar", "1.4% apart"),
        ("100", "200", "different", "50% apart"),
        ("-5", "5", "different", ""),
        ("1912-06-23", "1912-01-01", "similar", "same year"),
        ("48.2082, 16.3738", "48.21, 16.41", "similar", "near"),
        ("Cagayan Valley", "Cagayan", "similar", "similarity 67%"),
        ("Москва", "Moskva", "same", ""),
        ("Bavaria", "Bayern", "different", ""),
        ("", "", "same", ""),
        ("x" * 10000, "x" * 9999 + "y", "similar", "similarity 100%"),
    ],
)
def test_how_alike_two_values_are(one: str, two: str, mark: str, note: str) -> None:
    for left, right in ((one, two), (two, one)):
        found = value_likeness(left, right)
        assert found.mark == mark
        assert found.note == note or mark == "different"


def run_with(source: list[tuple[str, str]], target: list[tuple[str, str]]) -> MemoryRun:
    run = drawn_run()
    facts = [("source", 1, *fact) for fact in source] + [("target", 2, *fact) for fact in target]
    table = pd.DataFrame(facts, columns=["graph", "entity", "attribute", "value"])
    return MemoryRun(run.manifest, run.metrics, {**run.tables, "attributes": table}, run.tensors)


def rows_of(source: list[tuple[str, str]], target: list[tuple[str, str]], counterparts: dict[str, str] | None = None) -> list[ValueRow]:
    view = RunView(run_with(source, target))
    return list(compare_values(view, view.entity("source", 1), view.entity("target", 2), counterparts or {}))


def test_rows_are_ordered_by_what_both_have() -> None:
    source = [
        ("http://a.org/born", '"1912"^^<http://www.w3.org/2001/XMLSchema#gYear>'),
        ("height", "180"),
        ("colour", "red"),
        ("x", "Q-7"),
        ("only", "1"),
    ]
    target = [("http://b.org/Born", "1912-05-05"), ("Grösse", "181"), ("colour", "blue"), ("y", "q-7"), ("nur", "2")]
    rows = rows_of(source, target, {"height": "Grösse"})
    assert rows[0].source_attribute == rows[0].target_attribute == "name"
    found = {(row.source_attribute, row.target_attribute): row.mark for row in rows[1:]}
    assert found == {
        ("x", "y"): "same",
        ("http://a.org/born", "http://b.org/Born"): "similar",
        ("height", "Grösse"): "similar",
        ("colour", "colour"): "different",
        ("only", ""): "source only",
        ("", "nur"): "target only",
    }
    assert [MARKS.index(row.mark) for row in rows[1:]] == sorted(MARKS.index(row.mark) for row in rows[1:])


def test_all_names_are_compared_and_placeholders_are_none() -> None:
    rows = rows_of([("altLabel", "Big Apple"), ("label", "NA")], [("name", "NYC"), ("synonym", "big apple")])
    assert rows[0].mark == "same"
    assert rows[0].source_text.startswith("Big Apple")
    assert rows[0].target_text.startswith("big apple")
    assert "NA" not in rows[0].source_text.split(" · ")


def test_the_decisive_value_comes_first_and_many_are_counted() -> None:
    rows = rows_of([("code", f"a-{i}") for i in range(30)], [("code", f"b-{i}") for i in range(20)] + [("code", "A-27")])
    row = next(row for row in rows if row.source_attribute == "code")
    assert row.mark == "same"
    assert row.source_text.startswith("a-27 · ")
    assert row.source_text.endswith("and 26 more")
    assert value_list(["a", "b"], 1) == "b · a"


def test_each_attribute_is_in_one_pair_at_most() -> None:
    own, theirs = {"a": ["1"], "b": ["2"], "c": ["x-1"]}, {"b": ["3"], "a": ["4"], "d": ["X-1"]}
    assert dict(paired_attribute_names(own, theirs, {"a": "b", "b": "b"})) == {"a": "b", "c": "d"}


def test_counterparts_come_from_the_table_with_the_most_support() -> None:
    rows = [("attribute", "born (year)", "geboren (year)", 9.0), ("attribute", "born", "tot", 3.0), ("relation", "in", "liegtIn", 99.0)]
    table = pd.DataFrame(rows, columns=["kind", "source", "target", "support"])
    assert attribute_counterparts(table) == {"born": "geboren"}


def test_neighbours_are_those_of_the_facing_neighbourhoods() -> None:
    adjacency = IncidentTriples(RunView(drawn_run(2, variant="semi")))
    for source, target in ((0, 0), (4, 7), (13, 16)):
        faced = facing(adjacency, source, target)
        rows = compare_neighbours(faced)
        assert sum(row.pair is not None for row in rows) == len(faced.pairs)
        alone = [entity for row in rows if row.pair is None for entity in (*row.source, *row.target)]
        assert {one.uri for one in alone} == {one.entity.uri for one in (*faced.source_only, *faced.target_only)}
        assert all(row.source_relation.startswith(("→", "←")) or row.target_relation.startswith(("→", "←")) for row in rows)
