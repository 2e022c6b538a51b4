"""Blank nodes, annotations, named graphs and JSON-LD: what of RDF is no plain triple between IRIs."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import DataConfig
from engine.data import load_task
from engine.data.knowledge_graph import AlignmentTask, Finding
from engine.data.readers.base import RawGraph
from engine.data.readers.rdf import read_graph
from engine.errors import DataError
from engine.names.values import value_keys
from tests.data.writers import put, same_as, small_sample, write_rdf

PREFIXES = "@prefix : <http://x.org/> .\n@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"


def read(path: Path, text: str) -> tuple[RawGraph, list[Finding]]:
    findings: list[Finding] = []
    put(path, text)
    return read_graph(path, findings), findings


def triples(graph: RawGraph) -> list[tuple[str, str, str]]:
    return sorted(zip(graph.heads, graph.relations, graph.tails, strict=True))


def facts(graph: RawGraph) -> list[tuple[str, str, str]]:
    return sorted(zip(*graph.attributes, strict=True))


# Blank nodes


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.nt", "_:zz <http://x.org/p> _:b0 .\n_:b0 <http://x.org/p> <http://x.org/a> .\n"),
        ("g.nq", "_:zz <http://x.org/p> _:b0 <http://x.org/g> .\n_:b0 <http://x.org/p> <http://x.org/a> .\n"),
        ("g.ttl", f"{PREFIXES}_:zz :p _:b0. _:b0 :p :a .\n"),
        ("g.trig", f"{PREFIXES}GRAPH :g {{ _:zz :p _:b0 . }} _:b0 :p :a .\n"),
        (
            "g.rdf",
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://x.org/"><rdf:Description rdf:nodeID="zz"><p '
            'rdf:nodeID="b0"/></rdf:Description><rdf:Description rdf:nodeID="b0"><p rdf:resource="http://x.org/a"/></rdf:Description></rdf:RDF>',
        ),
        ("g.jsonld", '{"@id": "_:zz", "http://x.org/p": {"@id": "_:b0", "http://x.org/p": {"@id": "http://x.org/a"}}}'),
    ],
)
def test_blank_nodes_keep_their_labels(name: str, text: str, tmp_path: Path) -> None:
    graph, _ = read(tmp_path / name, text)
    p = "http://x.org/p"
    assert triples(graph) == [("_:b0", p, "http://x.org/a"), ("_:zz", p, "_:b0")]


def test_labels_that_look_like_those_of_the_parser_are_kept(tmp_path: Path) -> None:
    label = "_:d4b33e15702a86b0727df945f3ecec44"
    for name in ("g.nt", "g.ttl"):
        graph, _ = read(tmp_path / name, f"{label} <http://x.org/p> {label}.\n")
        assert triples(graph) == [(label, "http://x.org/p", label)]


def test_a_link_names_the_blank_node_of_its_label_and_no_other(tmp_path: Path) -> None:
    put(tmp_path / "source.nt", "".join(f"_:{head} <http://x.org/p> _:{tail} .\n" for head, tail in [("zz", "b1"), ("b1", "b0"), ("b0", "zz")]))
    put(tmp_path / "target.nt", "".join(f"_:{head} <http://y.org/p> _:{tail} .\n" for head, tail in [("b1", "c"), ("c", "b0")]))
    put(tmp_path / "links.csv", "source,target,split\n_:b0,_:b0,train\n_:zz,_:c,test\n")
    task = load_task(tmp_path)
    linked = [[(task.source.entities[one], task.target.entities[two]) for one, two in links] for links in (task.train_links, task.test_links)]
    assert linked == [[("_:b0", "_:b0")], [("_:zz", "_:c")]]


STATEMENTS = (
    ':Rome :part [ :of [ :name "Latium"@it ; :in :Italy ] ; :since 1871 ] .',
    ':Rome :part [ :of [ :name "Lazio" ; :in :Italy ] ] .',
    ":Bern :languages ( :de :fr :it ) .",
    ":Oslo :languages ( :de :fr :it ) .",
    ":Bern :part [ :in :Swiss ], [ :in :Swiss ], [ :in :Swiss ; :q [] ] .",
    "[] :capital :Oslo .",
    "[] :capital :Bern .",
    "_:mine :part [ :of _:mine ] .",
    "[ :a [ :b [ :c :Rome ] ] ] :d :Bern .",
)


@given(st.permutations(STATEMENTS))
def test_shuffling_a_file_changes_no_identifier(tmp_path_factory: pytest.TempPathFactory, order: list[str]) -> None:
    folder = tmp_path_factory.mktemp("shuffled")
    expected, _ = read(folder / "one.ttl", PREFIXES + "\n".join(STATEMENTS))
    graph, _ = read(folder / "two.ttl", PREFIXES + "\n".join(order))
    assert triples(graph) == triples(expected)
    assert facts(graph) == facts(expected)


def test_nodes_without_label_stay_apart(tmp_path: Path) -> None:
    graph, _ = read(tmp_path / "g.ttl", PREFIXES + "\n".join(STATEMENTS))
    nodes = {node for node in (*graph.heads, *graph.tails) if node.startswith("_:[")}
    assert len(nodes) == 2 + 2 + 3 + 3 + 4 + 2 + 1 + 3
    assert len(triples(graph)) == len(set(triples(graph))), "two nodes of one content are two nodes"


def test_a_deep_list_is_named_without_recursion(tmp_path: Path) -> None:
    items = " ".join(["[ :v 1 ]"] * 20_000)
    graph, _ = read(tmp_path / "g.ttl", f"{PREFIXES}:a :list ( {items} ) .")
    assert len({node for node in graph.heads if node.startswith("_:[")}) == 20_000
    again, _ = read(tmp_path / "h.ttl", f"{PREFIXES}:a :list ( {items} ) .")
    assert triples(again) == triples(graph)


# Statements about statements

PLAIN = [(f"http://x.org/{number}", "http://x.org/p", f"http://x.org/{number + 1}") for number in range(60)]


@pytest.mark.parametrize(
    "annotation",
    [
        "{| :source :wiki |}",
        "{| :source [ :page :p1 ; :line 4 ] |}",
        "~ _:r {| :source :wiki |}",
        "~ :r {| :source :wiki ; :year 2020 |}",
        "{| :source :wiki |} {| :by _:somebody |}",
    ],
)
def test_annotations_are_left_out_and_counted(annotation: str, tmp_path: Path) -> None:
    plain = "\n".join(f"<{head}> <{relation}> <{tail}> ." for head, relation, tail in PLAIN)
    graph, findings = read(tmp_path / "g.ttl", f"{PREFIXES}{plain}\n:1 :p :2 {annotation} .\n:3 :p :4 {annotation} .\n")
    assert set(triples(graph)) == set(PLAIN)
    assert [(one.code, one.severity) for one in findings] == [("triple-terms", "warning")]
    assert findings[0].count >= 4
    assert "statements about statements" in findings[0].message
    assert not len(graph.attributes[0])


@pytest.mark.parametrize("said", ["<< :1 :p :2 >> :source :wiki .", "_:s rdf:reifies <<( :1 :p :2 )>> ; :source :wiki . :x :says _:s ."])
def test_statements_as_subjects_and_objects(said: str, tmp_path: Path) -> None:
    graph, findings = read(tmp_path / "g.ttl", f"{PREFIXES}:1 :p :2 . {said}")
    assert triples(graph) == PLAIN[1:2]
    assert [one.code for one in findings] == ["triple-terms"]


def test_reification_of_old(tmp_path: Path) -> None:
    about = "[] a rdf:Statement ; rdf:subject :1 ; rdf:predicate :p ; rdf:object :2 ; :source [ :page 7 ] ; :note 'x' ."
    graph, findings = read(tmp_path / "g.ttl", f"{PREFIXES}:1 :p :2 . {about}")
    assert triples(graph) == PLAIN[1:2]
    assert findings[0].count == 7


def test_blank_nodes_that_hang_on_something_else_as_well_stay(tmp_path: Path) -> None:
    graph, _ = read(tmp_path / "g.ttl", f"{PREFIXES}:1 :p :2 {{| :source _:page |}} . :3 :page _:page . _:page :of :book .")
    kept = [("_:page", "http://x.org/of", "http://x.org/book"), PLAIN[1], ("http://x.org/3", "http://x.org/page", "_:page")]
    assert triples(graph) == kept


# Other forms

SAMPLE = small_sample()


def quads(graphs: int) -> str:
    lines = (f"<{h}> <{r}> <{t}>" for h, r, t in SAMPLE.source)
    return "".join(f"{line} <http://g.org/{number % graphs}> .\n" if number % graphs else f"{line} .\n" for number, line in enumerate(lines))


def jsonld() -> str:
    context = {"name": "http://left.org/name"}
    return json.dumps({"@context": context, "@graph": [{"@id": h, r: {"@id": t}} for h, r, t in SAMPLE.source]})


@pytest.mark.parametrize(
    ("name", "text", "graphs"),
    [
        ("source.nq", quads(3), 2),
        ("source.nquads", quads(1), 0),
        ("source.trig", "".join(f"<http://g.org/{i % 2}> {{ <{h}> <{r}> <{t}> }}\n" for i, (h, r, t) in enumerate(SAMPLE.source)), 2),
        ("source.jsonld", jsonld(), 0),
    ],
)
def test_the_same_data_as_in_n_triples(name: str, text: str, graphs: int, tmp_path: Path) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    for folder in (plain, other):
        write_rdf(folder, SAMPLE)
    put(plain / "source.nt", "".join(f"<{h}> <{r}> <{t}> .\n" for h, r, t in SAMPLE.source))
    (other / "source.nt").unlink()
    put(other / name, text)
    task = load_task(other)
    assert task.fingerprint == load_task(plain).fingerprint
    assert [finding.count for finding in task.findings if finding.code == "named-graphs"] == ([graphs] if graphs else [])


def test_a_triple_of_several_graphs_counts_once(tmp_path: Path) -> None:
    write_rdf(tmp_path, SAMPLE)
    (tmp_path / "source.nt").unlink()
    put(tmp_path / "source.nq", "".join(f"<{h}> <{r}> <{t}> <http://g.org/{g}> .\n" for h, r, t in SAMPLE.source for g in range(3)))
    assert len(load_task(tmp_path).source.triples) == len(set(SAMPLE.source))


@pytest.mark.parametrize("context", ['"https://schema.org/"', '["http://127.0.0.1:9/c.jsonld"]', '{"@import": "http://127.0.0.1:9/c.jsonld"}'])
def test_a_context_elsewhere_is_never_read(context: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"g.jsonld: this JSON-LD refers to a context in another file, which is never read"):
        read(tmp_path / "g.jsonld", f'{{"@context": {context}, "@id": "http://x.org/a", "http://x.org/p": {{"@id": "http://x.org/b"}}}}')


@pytest.mark.parametrize(
    ("name", "text"), [("g.jsonld", '{"@id": "a'), ("g.nq", "<http://a> <http://b>\n"), ("g.trig", "GRAPH {"), ("g.jsonld", "a,b,c\n")]
)
def test_damaged_files_are_refused_in_a_sentence(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"{name}(:[12])?: this is not valid RDF") as caught:
        read(tmp_path / name, text)
    assert "\n" not in str(caught.value)


def test_links_in_quads(tmp_path: Path) -> None:
    write_rdf(tmp_path, dataclasses.replace(SAMPLE, train=()))
    expected = load_task(tmp_path)
    (tmp_path / "links.nt").unlink()
    lines = same_as(SAMPLE.links).splitlines()
    random.Random(0).shuffle(lines)
    put(tmp_path / "links.nq", "".join(f"{line.removesuffix('.')}<http://g.org/links> .\n" for line in lines))
    assert load_task(tmp_path).fingerprint == expected.fingerprint


# Names


def named(folder: Path, seed: int, config: DataConfig | None = None) -> AlignmentTask:
    """The sample with names in several languages, its lines in some order."""
    labels = "http://www.w3.org/2000/01/rdf-schema#label"
    names = {"source": ("en", "de", ""), "target": ("fr", "en", "en-GB")}
    for side, triples_of in (("source", SAMPLE.source), ("target", SAMPLE.target)):
        lines = [f"<{h}> <{r}> <{t}> ." for h, r, t in triples_of]
        entities = sorted({end for h, _, t in triples_of for end in (h, t)})
        for number, entity in enumerate(entities):
            for language in names[side][number % 2 :]:
                lines += [f'<{entity}> <{labels}> "{word} {number} {language}"{f"@{language}" if language else ""} .' for word in ("B", "A")]
        random.Random(seed).shuffle(lines)
        put(folder / f"{side}.nt", "\n".join(lines) + "\n")
    put(folder / "links.nt", same_as(SAMPLE.links))
    return load_task(folder, config or DataConfig())


def test_names_depend_on_no_order(tmp_path: Path) -> None:
    tasks = [named(tmp_path, seed) for seed in range(4)]
    assert len({task.fingerprint for task in tasks}) == 1
    assert len({(task.source.labels, task.target.labels) for task in tasks}) == 1
    assert all(label.startswith("A ") for label in (*tasks[0].source.labels, *tasks[0].target.labels))


def test_languages_are_counted_and_can_be_chosen(tmp_path: Path) -> None:
    task = named(tmp_path, 0)
    finding = next(one for one in task.findings if one.code == "name-languages")
    entities = task.source.num_entities
    assert f"source without a language {entities}, de {entities}, en {(entities + 1) // 2}; target en" in finding.message
    assert "data.name_language" in finding.advice
    german = named(tmp_path, 0, DataConfig(name_language="de"))
    assert all(label.endswith(" de") for label in german.source.labels)
    assert german.target.labels == task.target.labels
    assert german.fingerprint == task.fingerprint
    with pytest.raises(DataError, match=r"neither graph has names in the language 'xx' \(data.name_language\); there are de, en, en-gb, fr"):
        named(tmp_path, 0, DataConfig(name_language="de,xx"))


def test_each_graph_has_a_language_of_its_own(tmp_path: Path) -> None:
    task = named(tmp_path, 0, DataConfig(name_language_source="de", name_language_target="en"))
    assert all(label.endswith(" de") for label in task.source.labels)
    assert all(label.endswith((" en", " en-GB")) for label in task.target.labels)
    plain = named(tmp_path, 0)
    assert named(tmp_path, 0, DataConfig(name_language="de", name_language_source="en")).target.labels == plain.target.labels
    finding = next(one for one in task.findings if one.code == "name-languages")
    assert "Preferred: de (source), en (target)." in finding.message
    with pytest.raises(DataError, match=r"target graph does not have names in the language 'de' \(data.name_language_target\); there are en"):
        named(tmp_path, 0, DataConfig(name_language_target="de"))


# Named graphs, prefixes, older syntax

TRIG = f"{PREFIXES}:a :p :b . :one {{ :c :p :d . }} :two {{ :e :p :f . :e :name 'E'@en . }}"


def test_named_graphs_can_be_chosen(tmp_path: Path) -> None:
    findings: list[Finding] = []
    path = put(tmp_path / "g.trig", TRIG)
    graph = read_graph(path, findings, named_graphs=["http://x.org/two", "default"])
    assert [head for head, _, _ in triples(graph)] == ["http://x.org/a", "http://x.org/e"]
    assert facts(graph) == [("http://x.org/e", "http://x.org/name", '"E"@en')]
    assert "1 of 2 named graphs is read; 1 triple elsewhere left out" in findings[0].message
    with pytest.raises(DataError, match=r"no named graph 'http://x.org/three' in this file; there are http://x.org/one, http://x.org/two"):
        read_graph(path, [], named_graphs=["http://x.org/three"])


def test_a_prefix_may_change_within_a_file(tmp_path: Path) -> None:
    graph, _ = read(
        tmp_path / "g.ttl", "@prefix : <http://x.org/> . :a :p :b .\n@prefix : <http://y.org/> . :a :p :b .\nPREFIX : <http://z.org/> :a :p :b ."
    )
    assert [head for head, _, _ in triples(graph)] == ["http://x.org/a", "http://y.org/a", "http://z.org/a"]


N_TRIPLE = "<http://x.org/1> <http://x.org/p> <http://x.org/2>"
QUOTED = f"<< {N_TRIPLE} >> <http://x.org/q> <http://x.org/3> .\n"
REIFIED = f"_:r <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( {N_TRIPLE} )>> .\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.nt", f"{N_TRIPLE} .\n{QUOTED}"),
        ("g.nt", f"{N_TRIPLE} .\n{REIFIED}"),
        ("g.ttl", f"{N_TRIPLE} .\n{QUOTED}"),
        ("g.trig", f"{N_TRIPLE} .\n<http://x.org/g> {{ {QUOTED} }}"),
        ("g.nq", f"{N_TRIPLE} .\n{REIFIED}"),
    ],
)
def test_triples_about_triples_are_left_out_in_every_syntax(name: str, text: str, tmp_path: Path) -> None:
    graph, findings = read(tmp_path / name, text)
    assert triples(graph) == [("http://x.org/1", "http://x.org/p", "http://x.org/2")]
    assert "triple-terms" in {one.code for one in findings}


def test_triples_about_triples_that_a_syntax_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"g.nq:2: this line has a triple about a triple .*, which N-Quads does not have; export the file as TriG"):
        read(tmp_path / "g.nq", f"{N_TRIPLE} .\n{QUOTED}")


def test_a_literal_that_looks_like_a_triple_about_a_triple(tmp_path: Path) -> None:
    graph, _ = read(tmp_path / "g.nt", f'{N_TRIPLE} .\n<http://x.org/1> <http://x.org/name> "a << b"@en .\n')
    assert facts(graph) == [("http://x.org/1", "http://x.org/name", '"a << b"@en')]


def test_values_keep_their_datatypes_whatever_is_left_out_around_them(tmp_path: Path) -> None:
    graph, _ = read(
        tmp_path / "g.ttl",
        f"""{PREFIXES}@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
_:s a rdf:Statement ; rdf:subject :a ; :sure 0.5 .
:a :born "1912"^^xsd:gYear ; :name "A"^^xsd:string , "Ah"@en ; :height 1.7 .
_:t rdf:predicate :p ; :seen "2001-01-01"^^xsd:date .
[] :in :a ; :size 3 .""",
    )
    x, xsd = "http://x.org/", "http://www.w3.org/2001/XMLSchema#"
    values = {(attribute.removeprefix(x), value) for _, attribute, value in facts(graph)}
    assert values == {
        ("born", f'"1912"^^<{xsd}gYear>'),
        ("height", f'"1.7"^^<{xsd}decimal>'),
        ("size", f'"3"^^<{xsd}integer>'),
        ("name", "A"),
        ("name", '"Ah"@en'),
    }
    years = [value_keys(value) for value in (f'"1912"^^<{xsd}gYear>', f'"1912-06-23"^^<{xsd}date>')]
    assert set(years[0]) <= set(years[1])


RELATIVE_XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" '
    'xmlns:owl="http://www.w3.org/2002/07/owl#"{}><owl:Ontology rdf:about=""/><owl:Class rdf:ID="A"/><owl:Class rdf:about="#B">'
    '<rdfs:subClassOf rdf:resource="#A"/></owl:Class></rdf:RDF>'
)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("g.ttl", f"{PREFIXES}:a :p <b> .\n<b> :p :c .\n", [("b", "http://x.org/c"), ("http://x.org/a", "b")]),
        ("g.ttl", f"@base <http://y.org/> .\n{PREFIXES}:a :p <b> .\n", [("http://x.org/a", "http://y.org/b")]),
        ("g.owl", RELATIVE_XML.format(""), [("#B", "#A")]),
        ("g.owl", RELATIVE_XML.format(' xml:base="http://y.org/o"'), [("http://y.org/o#B", "http://y.org/o#A")]),
    ],
)
def test_identifiers_without_a_scheme_are_kept_as_written(name: str, text: str, expected: list[tuple[str, str]], tmp_path: Path) -> None:
    graph, findings = read(tmp_path / name, text)
    assert sorted(zip(graph.heads, graph.tails, strict=True)) == expected
    assert any(finding.code == "relative-identifiers" for finding in findings) == ("base" not in text)


def test_other_mistakes_stay_mistakes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not valid RDF") as caught:
        read(tmp_path / "g.ttl", f"{PREFIXES}:a :p <b> .\n:a :p .\n")
    assert caught.value.line == 4
    with pytest.raises(DataError, match="not valid RDF"):
        read(tmp_path / "h.ttl", f"{PREFIXES}:a :p <http://x.org/a b> .\n")
