from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.labels import (
    clean_label,
    find_name_attributes,
    identifier_tail,
    label_entities,
    label_from_identifier,
    literal_of,
    name_languages,
    rank_languages,
    several_names,
)


@pytest.mark.parametrize(
    ("identifier", "label"),
    [
        ("http://dbpedia.org/resource/OS/2", "OS/2"),
        ("http://zh.dbpedia.org/resource/民族陣線_(法國)", "民族陣線 (法國)"),
        ("http://fr.dbpedia.org/resource/%C3%89vry_(Essonne)", "Évry (Essonne)"),
        ("http://dbpedia.org/resource/100%_Wolf", "100% Wolf"),
        ("http://dbpedia.org/resource/Caf%E9", "Caf%E9"),
        ("http://dbpedia.org/resource/U2", "U2"),
        ("http://dbpedia.org/resource/1984", "1984"),
        ("http://dbpedia.org/resource/E399772", ""),
        ("Star_Trek:_Voyager", "Star Trek: Voyager"),
        ("Alien:_Resurrection", "Alien: Resurrection"),
        ("AC/DC", "AC/DC"),
        ("U2", "U2"),
        ("Q325033", ""),
        ("12345", ""),
        ("http://www.wikidata.org/entity/Q325033", ""),
        ("http://rdf.freebase.com/ns/m.02mjmr", ""),
        ("https://sws.geonames.org/3351879/", ""),
        ("ne:states_provinces/4538", ""),
        ("http://example.org/people#Ada_Lovelace", "Ada Lovelace"),
        ("http://example.org/", "example.org"),
        ("ex:Berlin", "Berlin"),
        ("urn:uuid:1b4e28ba-2fa1-11d2-883f-0016d3cca427", ""),
        ("_:b0", ""),
        ("http://example.org/a%00%0Ab", "a b"),
    ],
)
def test_label_from_identifier(identifier: str, label: str) -> None:
    assert label_from_identifier(identifier) == label


@given(st.text(max_size=40))
def test_labels_are_one_clean_line(text: str) -> None:
    for label in (label_from_identifier(text), clean_label(text)):
        assert label == " ".join(label.split())
        assert not [character for character in label if ord(character) < 32 or 127 <= ord(character) < 160]


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ('"Rome"@en', "Rome"),
        ('"12"^^<http://www.w3.org/2001/XMLSchema#int>', "12"),
        ('"Heroes"', "Heroes"),
        ('say "cheese"', 'say "cheese"'),
        (" a \n b ", "a b"),
    ],
)
def test_clean_label(value: str, label: str) -> None:
    assert clean_label(value) == label


def test_long_labels_are_cut() -> None:
    assert len(clean_label("x" * 10_000)) == 500


@pytest.mark.parametrize(
    ("identifier", "tail"),
    [("geonames:currency/ALL", "ALL"), ("cldr:currency/ALL", "ALL"), ("http://a.org/resource/x/y", "x/y"), ("bare", "bare"), ("_:b1", "")],
)
def test_identifier_tail(identifier: str, tail: str) -> None:
    assert identifier_tail(identifier) == tail


def table(*rows: tuple[int, str, str]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["entity", "attribute", "value"])


ENTITIES = ("http://a.org/One", "http://a.org/Two", "http://a.org/Three")
LABEL, FOAF = "http://www.w3.org/2000/01/rdf-schema#label", "http://xmlns.com/foaf/0.1/name"


def test_an_attribute_that_names_most_entities_replaces_identifiers() -> None:
    assert label_entities(ENTITIES, table((0, LABEL, "Eins"), (1, LABEL, "Zwei"), (0, LABEL, "Uno"))) == ("Eins", "Zwei", "")


def test_identifiers_fill_in_for_an_attribute_that_few_have() -> None:
    assert label_entities(ENTITIES, table((1, LABEL, "Zwei"))) == ("One", "Zwei", "Three")


def test_the_attribute_with_the_most_names_wins() -> None:
    assert find_name_attributes(table((0, LABEL, "Eins"), (0, FOAF, "A"), (1, FOAF, "B"))) == (FOAF,)


def test_of_equals_labels_go_before_names() -> None:
    assert find_name_attributes(table((0, FOAF, "A"), (0, LABEL, "Eins"))) == (LABEL,)


@pytest.mark.parametrize("wanted", ["nick", "http://xmlns.com/foaf/0.1/nick"])
def test_a_wanted_attribute(wanted: str) -> None:
    rows = table((0, LABEL, "Eins"), (0, "http://xmlns.com/foaf/0.1/nick", "1"), (1, "http://xmlns.com/foaf/0.1/nick", "2"))
    assert label_entities(ENTITIES, rows, wanted) == ("1", "2", "")


def test_a_graph_that_lacks_the_wanted_attribute_keeps_its_names() -> None:
    """One setting names both graphs, which rarely call their names the same."""
    rows = table((0, LABEL, '"Eins"@de'), (1, LABEL, '"Zwei"@de'))
    assert label_entities(ENTITIES, rows, "nick") == label_entities(ENTITIES, rows) == ("Eins", "Zwei", "")
    assert name_languages(rows, "nick") == {"de": 2}


def test_titles_are_names_where_nothing_else_is() -> None:
    title = "http://purl.org/dc/terms/title"
    assert find_name_attributes(table((0, title, "M"), (1, title, "Alien"))) == (title,)
    assert find_name_attributes(table((0, title, "Dr."), (0, LABEL, "Eins"))) == (LABEL,)


@pytest.mark.parametrize("end", ["\x85", "\x1c", "\x1d", "\x1e", "\x1f", "\u2028", "\u2029", "\x0b", "\x0c", "\r", "\n", "\t"])
def test_every_line_end_and_separator_leaves_a_blank(end: str) -> None:
    assert clean_label(f"New{end}York") == "New York"


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_the_order_of_rows_is_of_no_account(order: tuple[int, ...]) -> None:
    rows = [(0, LABEL, '"Zwei"@de'), (0, LABEL, '"Deux"@fr'), (0, LABEL, "Two"), (1, LABEL, '"Eins"@de')]
    shuffled = table(*(rows[place] for place in order))
    assert label_entities(ENTITIES, shuffled, languages=("fr", "de")) == ("Deux", "Eins", "")
    assert label_entities(ENTITIES, shuffled, languages=("", "de")) == ("Two", "Eins", "")
    assert label_entities(ENTITIES, shuffled) == ("Two", "Eins", "")
    assert name_languages(shuffled) == {"de": 2, "fr": 1, "": 1}


@pytest.mark.parametrize(
    ("source", "target", "wanted", "expected"),
    [
        ({"en": 9, "de": 9}, {"en": 5}, None, ("en", "de")),
        ({"en": 9, "de": 3}, {"de": 5}, None, ("de", "en")),
        ({"fr": 9}, {"en": 5}, None, ("en", "fr")),
        ({"": 9, "de": 3}, {"": 5}, None, ("", "de")),
        ({"en": 9, "de": 3, "fr": 1}, {"en": 5}, "fr, DE", ("fr", "de", "en")),
        ({"en-gb": 1, "en": 1, "en-us": 7, "de": 9}, {}, "en", ("en", "en-us", "en-gb", "de")),
        ({}, {}, "en", ()),
    ],
)
def test_languages_that_both_graphs_have_go_first(
    source: dict[str, int], target: dict[str, int], wanted: str | None, expected: tuple[str, ...]
) -> None:
    assert rank_languages(source, target, wanted) == expected


@pytest.mark.parametrize(
    ("value", "text", "language", "type_name"),
    [
        ('"Rom"@de', "Rom", "de", ""),
        ('"Rom"@de-AT', "Rom", "de-AT", ""),
        ('"3"^^<http://www.w3.org/2001/XMLSchema#int>', "3", "", "int"),
        ('"3"^^xsd:int', "3", "", "int"),
        ('"Rom"^^<http://www.w3.org/2001/XMLSchema#string>', "Rom", "", ""),
        ('"say "ah""@en', 'say "ah"', "en", ""),
        ('"Rom', '"Rom', "", ""),
        ("Rom@de", "Rom@de", "", ""),
        ("", "", "", ""),
    ],
)
def test_a_literal_is_taken_apart(value: str, text: str, language: str, type_name: str) -> None:
    found = literal_of(value)
    assert (found.text, found.language, found.type_name) == (text, language, type_name)


def test_attributes_with_several_values_are_known() -> None:
    one = table((0, LABEL, "Eins"), (1, LABEL, "Zwei"), (0, "http://x/note", "a"), (0, "http://x/note", "b"))
    assert several_names(one) == {"http://x/note", "note"}
    assert several_names(one, "note") == {"http://x/note", "note", ""}
    both = table((0, LABEL, "Eins"), (0, "http://other/label", "Uno"))
    assert several_names(both) == {"label", ""}, "two attributes of one local name are one source of names"
    assert several_names(table()) == frozenset()
