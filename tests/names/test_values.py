"""Values by what they are compared by: the same however written, apart where they differ in kind, nothing where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.knowledge_graph import KnowledgeGraph
from engine.data.labels import MISSING
from engine.names.values import ROUGH, keyed_values, shared_values, value_keys
from tests.names.graphs import graph_with

SAME = [
    ("Köln", "KOLN"),
    ("São Paulo", "sao-paulo"),
    ('"Rome"@en', '"rome"@fr'),
    ("1,234,567", "1234567"),
    ("1.234.567", "1234567"),
    ("1.234.567,8", "1234567.8"),
    ("1.234,5", "1234.5"),
    ("12,5", "12.5"),
    ("1 234 567", "1234567"),
    ("12\u00a0345,25", "12345.25"),
    ("1'234'567.5", "1234567.5"),
    ("-3,14159", "-3.14159"),
    ("23.06.1912", "1912-06-23"),
    ("23. 6. 1912", "1912-06-23"),
    ("23/06/1912", "1912-06-23"),
    ("06/23/1912", "1912-06-23"),
    ("06-06-1912", "1912-06-06"),
    ("1912/06/23", "1912.6.23"),
    ("June 23, 1912", "1912-06-23"),
    ("23 Jun. 1912", "1912-06-23"),
    ("03/04/1912", "03/04/1912"),
    ("192.168.100.200", "192.168.100.200"),
    ("3.0", '"3"^^<http://www.w3.org/2001/XMLSchema#int>'),
    ("1e3", "1000"),
    ("12.345678", "12.34568"),
    ("Point(12.4823 41.8933)", "12.4821, 41.8931"),
    ("Q-123", "q-123"),
    ("ﬁnance", "finance"),
]
APART = [
    ("3", "three"),
    ("00123", "123"),
    ("1912-06-23", "1912"),
    ("12.5", "12.4"),
    ("12.345", "12345"),
    ("1,2,3", "123"),
    ("03/04/1912", "1912-04-03"),
    ("03/04/1912", "04/03/1912"),
    ("31.13.1912", "1912-12-31"),
    ("May 1912", "1912-05-01"),
    ("Rome 23, 1912", "1912-06-23"),
    ("192.168.100.200", "192.168.100.201"),
    ("0.123.456", "123456"),
    ("Rome", "Roma"),
    ("-5", "5"),
    ("Point(12.48 41.89)", "Point(12.50 41.89)"),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_the_same_value_meets(left: str, right: str) -> None:
    assert set(value_keys(left)) & set(value_keys(right))


@pytest.mark.parametrize(("left", "right"), APART)
def test_other_values_do_not(left: str, right: str) -> None:
    assert not {key for key in value_keys(left) if key.kind not in ROUGH} & set(value_keys(right))


@given(value=st.floats(1e-6, 1e12), share=st.floats(0, 0.0099), sign=st.sampled_from([-1, 1]))
def test_numbers_that_are_near_meet_roughly_and_far_ones_do_not(value: float, share: float, sign: int) -> None:
    keys = [set(value_keys(repr(sign * number))) for number in (value, value * (1 + share), value * (1 + 9 * share), value * 1.5, -value)]
    kinds = [{key.kind for key in keys[0] & other} for other in keys[1:]]
    assert {"within 1 %", "within 10 %"} <= kinds[0]
    assert "within 10 %" in kinds[1]
    assert not kinds[2] | kinds[3]


def test_rough_keys_are_attributes_of_their_own() -> None:
    facts = [(0, "size", "1000"), (0, "at", "48.21, 16.37"), (0, "born", "1912-06-23")]
    assert set(keyed_values(graph_with(2, facts))["attribute"]) == {
        *("size", "size (within 1 %)", "size (within 10 %)", "at", "at (near place)", "born", "born (year)")
    }


@pytest.mark.parametrize("value", [*sorted(MISSING), "NA", "None", "N/A", '"null"', '""@en', " ", "!!!", "1e999"])
def test_values_that_say_nothing_have_no_key(value: str) -> None:
    assert value_keys(value) == ()


def test_a_date_gives_its_year_as_well() -> None:
    year = value_keys('"1912"^^<http://www.w3.org/2001/XMLSchema#gYear>')
    assert set(year) <= set(value_keys('"1912-06-23"^^<http://www.w3.org/2001/XMLSchema#date>'))
    assert set(year) <= set(value_keys("1912-06-23T12:00:00Z"))


@pytest.mark.parametrize("value", ["03/04/1912", "13/04/1912", "3.4.1912", "4 March 1912", '"1912/03/04"^^<http://www.w3.org/2001/XMLSchema#date>'])
def test_every_written_date_gives_its_year(value: str) -> None:
    assert [key.text for key in value_keys(value) if key.kind == "year"] == ["1912"]


@pytest.mark.parametrize("value", ["1912-13-40", "0000-00-00", "99999-01-01", "x" * 10_000_000, "\x00", "\ud800", '"' * 1000, "9" * 5000, "-" * 300])
def test_odd_values_do_no_harm(value: str) -> None:
    assert len(value_keys(value)) <= 2


def test_long_texts_differ_where_their_ends_do() -> None:
    assert value_keys("a" * 5000 + "b") != value_keys("a" * 5000 + "c")


def graphs(source: list[tuple[int, str, str]], target: list[tuple[int, str, str]]) -> tuple[KnowledgeGraph, KnowledgeGraph]:
    return graph_with(4, source), graph_with(3, target)


def test_shared_values_are_nodes_behind_the_entities() -> None:
    source, target = graphs(
        [(0, "name", "Rom"), (1, "born", "1912-06-23"), (2, "name", "Bonn")], [(2, "title", "rom"), (0, "year", "none"), (1, "date", "1912-06-23")]
    )
    found = shared_values(source, target)
    assert found.keys == ("date:1912-06-23", "text:rom", "year:1912")
    named = {
        (entity, found.attributes[0][attribute - source.num_relations], found.keys[value - 4]) for entity, attribute, value in found.source.tolist()
    }
    assert named == {(0, "name", "text:rom"), (1, "born", "date:1912-06-23"), (1, "born (year)", "year:1912")}
    assert (found.target[:, 2] >= 3).all()


def test_excluded_attributes_are_not_looked_at() -> None:
    source, target = graphs([(0, "http://x/name", "Rom")], [(2, "title", "rom")])
    assert shared_values(source, target).keys
    assert not shared_values(source, target, frozenset({"name"})).keys
    assert not shared_values(source, target, frozenset({"title"})).keys


def test_exclusions_do_no_harm_where_a_graph_has_no_attributes() -> None:
    """Without rows the mask of rows was taken for a list of columns."""
    source, target = graphs([], [(2, "title", "rom")])
    assert not shared_values(source, target, frozenset({"title"})).keys


def test_labels_replace_a_missing_name_attribute() -> None:
    source, target = graphs([(0, "height", "3")], [(0, "height", "4")])
    labelled = [
        KnowledgeGraph(one.name, one.entities, ("Rom", *one.labels[1:]), one.relations, one.triples, one.attributes) for one in (source, target)
    ]
    assert shared_values(*labelled).keys == ("text:rom",)


def test_rows_twice_count_once() -> None:
    source, target = graphs([(0, "name", "Rom"), (0, "name", "ROM")], [(2, "title", "rom")])
    assert len(shared_values(source, target).source) == 1


def test_no_attributes_share_nothing() -> None:
    source, target = graphs([], [(2, "title", "rom")])
    found = shared_values(source, target)
    assert found.keys == ()
    assert found.source.shape == (0, 3)
    assert isinstance(source.attributes, pd.DataFrame)


def test_labels_that_say_nothing_are_not_shared() -> None:
    source, target = (replace(one, labels=("NA", "none", "-", "Rom")[: one.num_entities]) for one in graphs([], []))
    assert shared_values(source, target).keys == ()
    assert shared_values(replace(source, labels=("Rom", "", "", "")), replace(target, labels=("", "rom", ""))).keys == ("text:rom",)
