"""Names from every origin, and everything that can be wrong with them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import DataConfig
from engine.data import load_task
from engine.data.labels import is_missing
from engine.errors import ConfigError, DataError
from engine.names import NAME_ORIGINS, gather_names
from tests.effort import examples
from tests.names.tasks import CITIES, TRANSLATED, attribute_rows, cities, graph, id_folder, task

LEFT = [(0, "http://zh.dbpedia.org/resource/北京"), (4, "http://zh.dbpedia.org/resource/居爾"), (7, "http://zh.dbpedia.org/resource/莫斯科")]
RIGHT = [(1, "http://dbpedia.org/resource/Beijing"), (5, "http://dbpedia.org/resource/Gul"), (2, "http://dbpedia.org/resource/Moscow")]
TOKENS = {0: ["beijing"], 4: ["abdullah", "gul"], 7: ["moscow"], 1: ["beijing"], 5: ["abdullah", "gul"], 2: ["moscow"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return id_folder(tmp_path / "ids", LEFT, RIGHT)


def write_json(folder: Path, value: object) -> Path:
    path = folder / "names.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


# Origins


def test_labels_and_identifiers() -> None:
    of_labels = gather_names(cities(), "labels")
    assert of_labels.source == CITIES
    assert of_labels.target == TRANSLATED
    assert of_labels.origin == "labels"
    of_uris = gather_names(cities(labels=[""] * 6, translated=[""] * 6), "uri")
    assert of_uris.source == of_uris.target == CITIES
    assert of_uris.findings == ()


@pytest.mark.parametrize("values", [("Rome", "Rom, Stadt"), ("Rom, Stadt", "Rome")])
def test_an_attribute_by_its_local_name_whatever_the_order_of_its_values(values: tuple[str, str]) -> None:
    source = graph("a", ["u:1", "u:2"], attributes=attribute_rows([(0, "http://x.org/name", value) for value in values]))
    target = graph("b", ["v:1"], attributes=attribute_rows([(0, "http://y.org/name", '"Rome"@en')]))
    names = gather_names(task(source, target), "attribute:name")
    assert names.source == ("Rom, Stadt", "")
    assert names.target == ("Rome",)
    assert [(finding.code, finding.count) for finding in names.findings] == [("entities-without-name", 1)]
    assert "1 of 2 source entities and 0 of 1 target entities" in names.findings[0].message


def test_ids_of_a_names_file_are_those_of_the_id_files(folder: Path) -> None:
    path = write_json(folder, [[key, tokens] for key, tokens in TOKENS.items()])
    read = load_task(folder, DataConfig())
    names = gather_names(read, f"file:{path}", folder)
    by_identifier = {identifier: " ".join(TOKENS[key]) for key, identifier in (*LEFT, *RIGHT)}
    for side in ("source", "target"):
        assert names.side(side) == tuple(by_identifier[entity] for entity in read.graph(side).entities)
    assert names.findings == ()
    assert names.origin == "file names.json"


def test_identifiers_that_have_two_ids_keep_their_own_names(tmp_path: Path) -> None:
    twins = [(0, "http://l.org/same"), (4, "http://l.org/same"), (7, "http://l.org/other")]
    folder = id_folder(tmp_path / "ids", twins, RIGHT)
    path = write_json(folder, [[key, tokens] for key, tokens in TOKENS.items()])
    names = gather_names(load_task(folder), f"file:{path}", folder)
    assert sorted(names.source) == ["abdullah gul", "beijing", "moscow"]


def test_lines_of_identifier_and_name(folder: Path) -> None:
    path = folder / "names.tsv"
    rows = [(LEFT[0][1], "Peking"), (RIGHT[0][1], "Beijing"), ("4", "Abdullah Gül")]
    path.write_bytes(b"\xef\xbb\xbf" + "".join(f"{key}\t{name}\r\n" for key, name in rows).encode())
    read = load_task(folder)
    names = gather_names(read, f"file:{path}", folder)
    assert names.source[read.source.index[LEFT[0][1]]] == "Peking"
    assert names.source[read.source.index[LEFT[1][1]]] == "Abdullah Gül"
    assert names.target[read.target.index[RIGHT[0][1]]] == "Beijing"
    assert names.findings[0].count == 3


SHARED = ["0", "1"]


def test_a_line_that_fits_both_graphs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "names.tsv"
    path.write_text("1\tRome\n")
    with pytest.raises(
        DataError, match=r"names.tsv: line 1 names id '1', which both graphs have; state which graph it belongs to: .*--names source=FILE"
    ):
        gather_names(task(graph("a", SHARED), graph("b", SHARED)), f"file:{path}")


def test_a_file_for_each_graph(tmp_path: Path) -> None:
    both = task(graph("a", SHARED), graph("b", SHARED))
    paths = tmp_path / "a.tsv", tmp_path / "b.json"
    paths[0].write_text("0\tRome\n1\tBern\n")
    paths[1].write_text('[["0", ["Berne"]], ["1", "Roma"]]')
    names = gather_names(both, own={"source": f"file:{paths[0]}", "target": f"file:{paths[1]}"})
    assert (names.source, names.target) == (("Rome", "Bern"), ("Berne", "Roma"))
    assert names.origin == "source: file a.tsv; target: file b.json"
    same = gather_names(both, own={"source": f"file:{paths[0]}", "target": f"file:{paths[0]}"})
    assert same.source == same.target == ("Rome", "Bern")


def test_a_file_for_one_graph_and_labels_for_the_other(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("0\tRome\nx:7\tBern\n")
    target = graph("b", SHARED, attributes=attribute_rows([(0, "label", "Roma")]))
    names = gather_names(task(graph("a", SHARED), replace(target, labels=("Roma", ""))), own={"source": f"file:{path}"})
    assert (names.source, names.target) == (("Rome", ""), ("Roma", ""))
    assert "that the source graph does not have (the first is 'x:7')" in names.findings[0].message
    by_attribute = gather_names(task(graph("a", SHARED), target), own={"source": f"file:{path}", "target": "attribute:label"})
    assert by_attribute.target == ("Roma", "")
    with pytest.raises(DataError, match=r"the source graph of .* has no attribute 'label' to take names from; there are no attributes"):
        gather_names(task(graph("a", SHARED), target), own={"source": "attribute:label"})


@pytest.mark.parametrize(
    "content",
    ["source\t0\tRome\ntarget\t0\tBerne\ntarget\t1\tRoma\n", '[["source", "0", "Rome"], ["target", "0", ["Berne"]], ["target", "1", "Roma"]]'],
)
def test_a_column_that_says_the_graph(content: str, tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_text(content)
    names = gather_names(task(graph("a", SHARED), graph("b", SHARED)), f"file:{path}")
    assert (names.source, names.target) == (("Rome", ""), ("Berne", "Roma"))


def test_an_unknown_graph_in_that_column(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_text("source\t0\tRome\nleft\t0\tBerne\n")
    with pytest.raises(DataError, match=r"names:2: expected source or target as graph, found 'left'"):
        gather_names(task(graph("a", SHARED), graph("b", SHARED)), f"file:{path}")


@pytest.mark.parametrize("identifier", ["Bonn ", "Bonn", "Bonn\u3000"])
def test_a_names_file_names_identifiers_as_they_are(identifier: str, tmp_path: Path) -> None:
    path = tmp_path / "names.tsv"
    path.write_text(f"{identifier}\tBonn am Rhein\nv:1\tBonn\n", encoding="utf-8")
    entities = ["Bonn", "Bonn ", "Bonn\u3000"]
    names = gather_names(task(graph("a", entities), graph("b", ["v:1"])), f"file:{path}")
    assert [entity for entity, name in zip(entities, names.source, strict=True) if name] == [identifier]


name_texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12).filter(
    lambda text: '"' not in text and not is_missing(text)
)


@settings(deadline=None, max_examples=examples(50))
@given(tokens=st.lists(st.lists(name_texts, min_size=1, max_size=3), min_size=4, max_size=4), as_json=st.booleans())
def test_names_survive_the_way_through_a_file(tmp_path_factory: pytest.TempPathFactory, tokens: list[list[str]], as_json: bool) -> None:
    entities = ["l:1", "l:2", "r:1", "r:2"]
    path = tmp_path_factory.mktemp("names") / ("names.json" if as_json else "names.tsv")
    rows = list(zip(entities, tokens, strict=True))
    path.write_text(json.dumps(rows) if as_json else "".join(f"{key}\t{' '.join(words)}\n" for key, words in rows), encoding="utf-8", newline="")
    names = gather_names(task(graph("a", entities[:2]), graph("b", entities[2:])), f"file:{path}")
    assert [*names.source, *names.target] == [" ".join(words) for words in tokens]


# What can be wrong


def test_unknown_ids_are_counted_with_the_first_of_them(folder: Path) -> None:
    path = write_json(folder, [[key, tokens] for key, tokens in TOKENS.items()] + [[100, ["x"]], [101, ["y"]], ["http://no.where", ["z"]]])
    finding = gather_names(load_task(folder), f"file:{path}", folder).findings[0]
    assert (finding.code, finding.severity, finding.count) == ("unknown-names", "warning", 3)
    assert finding.examples == ("100", "101", "http://no.where")
    assert "3 entities that neither graph has (the first is '100')" in finding.message


def test_a_file_about_other_data_is_refused(folder: Path) -> None:
    path = write_json(folder, [[100, ["x"]], [101, ["y"]]])
    with pytest.raises(DataError, match=r"names.json: none of the 2 entities .*'100'.* expected an identifier or an id of ent_ids_1/2, for example"):
        gather_names(load_task(folder), f"file:{path}", folder)
    with pytest.raises(DataError, match=r"none of the 2 entities .* expected an identifier, for example 'http://left.org"):
        gather_names(cities(), f"file:{path}")


def test_a_number_that_both_graphs_use_is_ambiguous(tmp_path: Path) -> None:
    folder = id_folder(tmp_path / "ids", LEFT, [(0, "http://r.org/a"), (5, "http://r.org/b"), (2, "http://r.org/c")])
    path = write_json(folder, [[4, ["gul"]], [0, ["beijing"]]])
    with pytest.raises(DataError, match=r"entry 2 names id '0', which ent_ids_1 and ent_ids_2 both use; state which graph it belongs to"):
        gather_names(load_task(folder), f"file:{path}", folder)


@given(order=st.permutations([[0, ["second"]], [0, ["first"]], [0, ["first"]], [1, "as one text"]]))
@settings(max_examples=10, deadline=None)
def test_the_order_of_several_names_does_not_count(tmp_path_factory: pytest.TempPathFactory, order: list[object]) -> None:
    folder = id_folder(tmp_path_factory.mktemp("names") / "ids", LEFT, RIGHT)
    path = write_json(folder, order)
    read = load_task(folder)
    names = gather_names(read, f"file:{path}", folder)
    assert names.source[read.source.index[LEFT[0][1]]] == "first"
    assert names.target[read.target.index[RIGHT[0][1]]] == "as one text"
    assert (names.findings[0].code, names.findings[0].count) == ("repeated-entity-names", 1)


def test_no_names_at_all_and_names_in_one_graph_only() -> None:
    with pytest.raises(DataError, match=r"no entity of cities has a name \(labels\).*; give names in a file"):
        gather_names(cities([""] * 6, [""] * 6))
    with pytest.raises(DataError, match=r"only the source graph of cities has names .*; for the target graph, give names in a file .* target=FILE"):
        gather_names(cities(translated=[""] * 6))
    with pytest.raises(DataError, match=r"only the target graph"):
        gather_names(cities(labels=[""] * 6))


def test_an_attribute_that_is_not_there_names_those_that_are() -> None:
    source = graph("a", ["u:1"], attributes=attribute_rows([(0, "http://x.org/title", "Rome")]))
    target = graph("b", ["v:1"])
    with pytest.raises(DataError, match=r"neither graph of cities has an attribute 'name' .*; there are http://x.org/title"):
        gather_names(task(source, target), "attribute:name")
    with pytest.raises(DataError, match="there are no attributes"):
        gather_names(cities(), "attribute:name")
    with pytest.raises(DataError, match="only the source graph"):
        gather_names(task(source, target), "attribute:title")


@pytest.mark.parametrize("origin", ["", "label", "labels:x", "attribute", "attribute:", "file:", "uri:x", "\x1b[31m:x"])
def test_unknown_origins_name_the_known_ones(origin: str) -> None:
    with pytest.raises(ConfigError, match=r"choose one of labels, uri, attribute:\.\.\., file:\.\.\.\.|behind a colon; got") as caught:
        gather_names(cities(), origin)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", r": this file is empty; expected lines of entity, name"),
        (b"a\tb\nc\n", r":2: expected 2 columns separated by tabs \(entity, name\), found 1"),
        (b"a\tb\nc\td\te\n", r":2: expected 2 columns .*, found 3"),
        (b"a\tb\r\nc\t\xff\n", r":2: these bytes are not UTF-8"),
        ("a\tb\n".encode("utf-16"), r":1: this file is UTF-16"),
        (b"a\t\n", r":1: the name is empty"),
        (b"a\tb\0\n", r":1: there is a NUL byte"),
        (b"[[1, [2]]]", r": entry 1 is \[1, \[2\]\]; expected a list of \[entity, \[token, ...\]\]"),
        (b'[[1, ["a"]], [2]]', r": entry 2 is \[2\]; expected"),
        (b'[[true, ["a"]]]', r": entry 1 is \[true, "),
        (b'[[1.5, ["a"]]]', r": entry 1"),
        (b'[\n[1, ["a"]],\n[2 ["b"]]]', r":3: this is no JSON \(.*column 4\)"),
        (b'{"1": ["a"]}', r": this JSON is no list"),
        (b"[" * 100_000, r": this JSON cannot be read|no JSON"),
        (b"[[" + b"1" * 5000 + b', ["a"]]]', r": this JSON cannot be read"),
        (b"[]", r": this file names no entity"),
    ],
)
def test_damaged_names_files_are_reported_in_a_sentence(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "names"
    path.write_bytes(content)
    with pytest.raises(DataError, match=complaint) as caught:
        gather_names(cities(), f"file:{path}")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_names_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no such file"):
        gather_names(cities(), f"file:{tmp_path / 'nowhere.json'}")


def test_hostile_names_become_one_clean_line(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    path.write_text('[["u:1", ["a\\ud800", "b\\u0000\\n\\tc"]], ["v:1", ["d"]]]')
    names = gather_names(task(graph("a", ["u:1"]), graph("b", ["v:1"])), f"file:{path}")
    assert names.source == ("a? b c",)


json_bytes = st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=12).map(lambda value: json.dumps(value).encode())


@settings(deadline=None, max_examples=examples(60))
@given(content=st.binary(max_size=200) | json_bytes)
def test_any_file_gives_names_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "names"
    path.write_bytes(content)
    with pytest.raises((DataError, ConfigError)):  # none of it can name both graphs of this task
        gather_names(cities(), f"file:{path}")


def test_every_origin_is_described_by_the_tests_above() -> None:
    assert set(NAME_ORIGINS) == {"labels", "uri", "attribute", "file"}


@pytest.mark.parametrize("text", ["NA", "na", "None", "null", "n/a", "-", "NaN", "Unknown", "ＮＡ"])
def test_placeholders_are_no_names(text: str) -> None:
    found = gather_names(cities(labels=[text, *CITIES[1:5], text], translated=[text, *TRANSLATED[1:]]), "labels")
    assert found.source == ("", *CITIES[1:5], "")
    assert found.target == ("", *TRANSLATED[1:])
    finding = next(one for one in found.findings if one.code == "placeholder-names")
    assert (finding.count, finding.examples) == (3, (text,))
    assert f"3 names are taken as missing (labels): '{text}' (3)." == finding.message


def test_graphs_of_placeholders_have_no_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"only the target graph of .* has names"):
        gather_names(cities(labels=["NA"] * 6), "labels")
    path = tmp_path / "names.txt"
    path.write_text("".join(f"{entity}\tNone\n" for entity in cities().source.entities[:2]))
    with pytest.raises(DataError, match=r"no entity of .* has a name"):
        gather_names(cities(), f"file:{path}")
