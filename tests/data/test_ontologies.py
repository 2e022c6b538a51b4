"""Ontologies: the same graph in every syntax, what is aligned and what is left out, and files that are wrong."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyhornedowl
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import DataConfig
from engine.data import load_task
from engine.data.assembly import expected_memory
from engine.data.knowledge_graph import Finding
from engine.data.readers import RawGraph
from engine.data.readers.ontology import Aligned
from engine.data.readers.rdf import read_graph
from engine.errors import DataError
from engine.explore.hierarchy import Contradiction, Hierarchy, contradictions
from engine.names.synonyms import kind_of
from tests.data.writers import put, quoted
from tests.effort import examples

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
OBO_IN_OWL = "http://www.geneontology.org/formats/oboInOwl#"
X = "http://x.org/"
PREFIXES = f"""@prefix : <{X}> . @prefix owl: <{OWL}> . @prefix rdfs: <{RDFS}> . @prefix o: <{OBO_IN_OWL}> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""

WINE_FUNCTIONAL = f"""
Prefix(:=<{X}>) Prefix(owl:=<{OWL}>) Prefix(rdfs:=<{RDFS}>) Prefix(o:=<{OBO_IN_OWL}>) Prefix(xsd:=<http://www.w3.org/2001/XMLSchema#>)
Ontology(<http://x.org>
Import(<http://elsewhere.org/food.owl>)
Declaration(Class(:Wine)) Declaration(Class(:RedWine)) Declaration(Class(:Vino)) Declaration(Class(:Region)) Declaration(Class(:Old))
Declaration(Class(o:Synonym)) Declaration(NamedIndividual(:Mosel)) Declaration(NamedIndividual(:Riesling1))
Declaration(ObjectProperty(:from)) Declaration(ObjectProperty(:rel)) Declaration(DataProperty(:year))
SubClassOf(:RedWine :Wine)
SubClassOf(:Wine ObjectSomeValuesFrom(:from :Region))
SubClassOf(:Wine ObjectSomeValuesFrom(:from ObjectIntersectionOf(:Valley ObjectSomeValuesFrom(:rel :River))))
SubClassOf(:Wine ObjectAllValuesFrom(:from :Region))
SubClassOf(:Wine ObjectMinCardinality(2 :rel :Grape))
SubClassOf(:Wine ObjectMaxCardinality(2 :rel :Cork))
SubClassOf(:Wine owl:Thing)
SubClassOf(ObjectUnionOf(:Wine :Region) :Vino)
EquivalentClasses(:Wine :Vino)
EquivalentClasses(:RedWine ObjectIntersectionOf(:Drink ObjectSomeValuesFrom(:rel :Red) ObjectHasValue(:from :Mosel)))
DisjointClasses(:Wine :Region)
SubClassOf(:Old :Wine) AnnotationAssertion(owl:deprecated :Old "true"^^xsd:boolean) AnnotationAssertion(rdfs:label :Old "old")
ClassAssertion(:Wine :Riesling1) ObjectPropertyAssertion(:from :Riesling1 :Mosel) DataPropertyAssertion(:year :Riesling1 "1999"^^xsd:integer)
ObjectPropertyDomain(:from :Wine)
AnnotationAssertion(rdfs:label :Wine "Wein"@de)
AnnotationAssertion(Annotation(o:hasDbXref "a:1") o:hasExactSynonym :Wine "fermented \\"juice\\"")
AnnotationAssertion(o:hasRelatedSynonym :Wine _:node) AnnotationAssertion(rdfs:label _:node "grape drink")
AnnotationAssertion(rdfs:seeAlso :Wine <http://pages.org/wine>)
AnnotationAssertion(rdfs:seeAlso :Wine :Region)
)"""
WINE_TURTLE = f"""{PREFIXES}
<http://x.org> a owl:Ontology ; owl:imports <http://elsewhere.org/food.owl> ; rdfs:comment "nothing of the graph" .
:Wine a owl:Class . :RedWine a owl:Class . :Vino a owl:Class . :Region a owl:Class . o:Synonym a owl:Class .
:Mosel a owl:NamedIndividual . :Riesling1 a owl:NamedIndividual .
:year a owl:DatatypeProperty . :from a owl:ObjectProperty . :rel a owl:ObjectProperty .
:RedWine rdfs:subClassOf :Wine .
:Wine rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :from ; owl:someValuesFrom :Region ] ,
  [ a owl:Restriction ; owl:onProperty :from ; owl:someValuesFrom
    [ a owl:Class ; owl:intersectionOf ( :Valley [ a owl:Restriction ; owl:onProperty :rel ; owl:someValuesFrom :River ] ) ] ] ,
  [ a owl:Restriction ; owl:onProperty :from ; owl:allValuesFrom :Region ] ,
  [ a owl:Restriction ; owl:onProperty :rel ; owl:minQualifiedCardinality 2 ; owl:onClass :Grape ] ,
  [ a owl:Restriction ; owl:onProperty :rel ; owl:maxQualifiedCardinality 2 ; owl:onClass :Cork ] , owl:Thing .
[ a owl:Class ; owl:unionOf ( :Wine :Region ) ] rdfs:subClassOf :Vino .
:Vino owl:equivalentClass :Wine .
:RedWine owl:equivalentClass [ a owl:Class ; owl:intersectionOf ( :Drink
  [ a owl:Restriction ; owl:onProperty :rel ; owl:someValuesFrom :Red ] [ a owl:Restriction ; owl:onProperty :from ; owl:hasValue :Mosel ] ) ] .
:Wine owl:disjointWith :Region .
:Old a owl:Class ; rdfs:subClassOf :Wine ; owl:deprecated true ; rdfs:label "old" .
:Riesling1 a :Wine ; :from :Mosel ; :year 1999 .
:from rdfs:domain :Wine .
:Wine rdfs:label "Wein"@de ; o:hasRelatedSynonym [ a o:Synonym ; rdfs:label "grape drink" ] ;
  rdfs:seeAlso <http://pages.org/wine> , :Region .
[ a owl:Axiom ; owl:annotatedSource :Wine ; owl:annotatedProperty o:hasExactSynonym ; owl:annotatedTarget "fermented \\"juice\\"" ;
  o:hasDbXref "a:1" ] .
"""
CLASS_TRIPLES = {
    ("RedWine", "subClassOf", "Wine"),
    ("RedWine", "subClassOf", "Drink"),
    ("RedWine", "rel", "Red"),
    ("Vino", "equivalentClass", "Wine"),
    ("Wine", "from", "Region"),
    ("Wine", "from", "Valley"),
    ("Wine", "rel", "Grape"),
    ("Wine", "seeAlso", "Region"),
    ("Region", "disjointWith", "Wine"),
}
INDIVIDUAL_TRIPLES = {("Riesling1", "from", "Mosel")}
WINE_ATTRIBUTES = {
    ("Wine", "label", '"Wein"@de'),
    ("Wine", "hasExactSynonym", 'fermented "juice"'),
    ("Wine", "hasRelatedSynonym", "grape drink"),
    ("Wine", "seeAlso", "http://pages.org/wine"),
}


def as_rdf_xml(turtle: str) -> str:
    out = io.BytesIO()
    ox.serialize(ox.parse(turtle, format=ox.RdfFormat.TURTLE), out, format=ox.RdfFormat.RDF_XML)
    return out.getvalue().decode()


def converted(functional: str, syntax: str) -> str:
    text: str = pyhornedowl.open_ontology_from_string(functional, "ofn").save_to_string(syntax)
    if syntax == "omn":  # it writes blank nodes and axioms about anonymous classes as nothing reads them
        text = text.replace("_:_:", "_:").replace("Class: Wine or Region\n    SubClassOf: Vino\n", "")
    return text


WINES = {
    "wine.ttl": WINE_TURTLE,
    "wine.owl": as_rdf_xml(WINE_TURTLE),
    "wine.ofn": WINE_FUNCTIONAL,
    "wine.owx": converted(WINE_FUNCTIONAL, "owx"),
    "wine.omn": converted(WINE_FUNCTIONAL, "omn"),
}


def read(folder: Path, name: str, text: str | bytes, aligned: Aligned = "auto", *, gz: bool = False) -> tuple[RawGraph, dict[str, Finding]]:
    findings: list[Finding] = []
    graph = read_graph(put(folder / name, text, gz=gz), findings, aligned)
    return graph, {finding.code: finding for finding in findings}


def short(rows: Iterable[Sequence[str]]) -> set[tuple[str, ...]]:
    """Heads and relations by their local names; values in quotation marks as they are."""
    return {
        tuple(cell if '"' in cell or cell.startswith("http://pages") else cell.rsplit("/", 1)[-1].rsplit("#", 1)[-1] for cell in row) for row in rows
    }  # type: ignore[attr-defined]


def triples(graph: RawGraph) -> set[tuple[str, ...]]:
    return short(zip(graph.heads, graph.relations, graph.tails, strict=True))


class TestEverySyntax:
    @pytest.mark.parametrize("name", WINES)
    def test_classes(self, name: str, tmp_path: Path) -> None:
        graph, _ = read(tmp_path, name, WINES[name], gz=name.endswith(("ttl", "ofn")))
        assert triples(graph) == CLASS_TRIPLES
        assert short(zip(*graph.attributes, strict=True)) == WINE_ATTRIBUTES
        assert short([(one,) for one in graph.entities]) == {
            (one,) for one in ("Wine", "RedWine", "Vino", "Region", "Valley", "Drink", "Red", "Grape")
        }

    @pytest.mark.parametrize("name", WINES)
    def test_individuals(self, name: str, tmp_path: Path) -> None:
        graph, _ = read(tmp_path, name, WINES[name], "individuals")
        assert triples(graph) == INDIVIDUAL_TRIPLES
        assert short([(one,) for one in graph.entities]) == {("Riesling1",), ("Mosel",)}
        assert list(graph.attributes[2]) == ['"1999"^^<http://www.w3.org/2001/XMLSchema#integer>']

    @pytest.mark.parametrize("name", WINES)
    def test_all(self, name: str, tmp_path: Path) -> None:
        graph, _ = read(tmp_path, name, WINES[name], "all")
        both = {("Riesling1", "type", "Wine"), ("RedWine", "from", "Mosel"), ("from", "domain", "Wine")}
        assert triples(graph) == CLASS_TRIPLES | INDIVIDUAL_TRIPLES | both

    @pytest.mark.parametrize("name", WINES)
    def test_what_is_left_out_is_counted(self, name: str, tmp_path: Path) -> None:
        _, found = read(tmp_path, name, WINES[name])
        assert "8 classes, 2 individuals, 3 properties; classes are aligned" in found["ontology-read"].message
        left_out = found["ontology-left-out"].message
        for words in (
            *("1 class (deprecated)", "1 class of the vocabulary", "2 individuals (not aligned)", "3 properties (not aligned)"),
            *(
                "1 axiom with a universal restriction",
                "1 axiom with a cardinality",
                "1 axiom read without the annotations of the axiom",
            ),
        ):
            assert words in left_out
        assert "disjointness" not in left_out
        assert name == "wine.omn" or "1 axiom about an anonymous class alone" in left_out
        assert found["ontology-imports"].examples == ("http://elsewhere.org/food.owl",)

    @pytest.mark.parametrize("name", WINES)
    def test_any_syntax_may_be_called_owl(self, name: str, tmp_path: Path) -> None:
        if name != "wine.ttl":
            assert triples(read(tmp_path, "wine.owl", WINES[name])[0]) == CLASS_TRIPLES

    def test_a_second_parser_counts_the_same_classes(self, tmp_path: Path) -> None:
        text = as_rdf_xml(WINE_TURTLE)
        judge = pyhornedowl.open_ontology_from_string(text, "rdf").get_classes()
        counted = {one for one in judge if not one.startswith((OWL, OBO_IN_OWL))} - {f"{X}Old"}
        graph, _ = read(tmp_path, "wine.owl", text)
        assert counted <= set(graph.entities)
        assert set(graph.entities) - counted <= {f"{X}{name}" for name in ("Valley", "Drink", "Red", "Grape")}  # not declared


OBO = """format-version: 1.2
import: http://elsewhere.org/other.obo

[Term]
id: A:1
name: wine ! a comment
def: "A drink \\"of grapes\\"." [book:1]
synonym: "vino" EXACT foreign [book:2]
synonym: "plonk" RELATED []
synonym: "drink" BROAD []
synonym: "claret" NARROW []
xref: B:7 "seven"
alt_id: A:11
is_a: A:2 ! drink
relationship: from A:3
intersection_of: A:4
intersection_of: from A:5
equivalent_to: A:6
disjoint_from: A:3
property_value: year "1999" xsd:integer
property_value: like A:3
property_value: page http://pages.org/wine

[Term]
id: A:2

[Term]
id: A:9
is_a: A:2
is_obsolete: true

[Typedef]
id: from

[Instance]
id: I:1
name: this one
instance_of: A:1
relationship: from I:2
"""


class TestObo:
    def test_terms(self, tmp_path: Path) -> None:
        graph, found = read(tmp_path, "wine.obo", OBO, gz=True)
        assert triples(graph) == {
            *(("A:1", "subClassOf", "A:2"), ("A:1", "from", "A:3"), ("A:1", "subClassOf", "A:4"), ("A:1", "from", "A:5")),
            *(("A:1", "equivalentClass", "A:6"), ("A:1", "like", "A:3")),
            ("A:1", "disjointWith", "A:3"),
        }
        assert short(zip(*graph.attributes, strict=True)) == {
            *(("A:1", "label", "wine"), ("A:1", "IAO_0000115", 'A drink "of grapes".')),
            *(("A:1", "hasExactSynonym", "vino"), ("A:1", "hasRelatedSynonym", "plonk")),
            *(("A:1", "hasBroadSynonym", "drink"), ("A:1", "hasNarrowSynonym", "claret")),
            *(("A:1", "hasDbXref", "B:7"), ("A:1", "hasAlternativeId", "A:11"), ("A:1", "page", "http://pages.org/wine")),
            ("A:1", "year", '"1999"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        }
        assert "1 class (deprecated)" in found["ontology-left-out"].message
        assert found["ontology-imports"].examples == ("http://elsewhere.org/other.obo",)

    def test_lines_that_are_comments(self, tmp_path: Path) -> None:
        graph, _ = read(tmp_path, "wine.obo", "! first\nformat-version: 1.2\n ! more\n\n! term\n[Term]\nid: A:1\n! parent\nis_a: A:2 ! drink\n")
        assert triples(graph) == {("A:1", "subClassOf", "A:2")}
        with pytest.raises(DataError) as caught:
            read(tmp_path, "wrong.obo", "! first\nformat-version: 1.2\n\n[Term]\n! here\nid: A:1\nis_a\n")
        assert caught.value.line == 7

    def test_texts_that_end_with_backslashes(self, tmp_path: Path) -> None:
        """The parser refuses some of them, and leaves others in quotation marks."""
        texts = {"end": "a\\", "two": "a\\\\", "alone": "\\", "within": 'a\\"b', "start": "\\a"}
        lines = [f"property_value: {name} {quoted(value)} xsd:string\n" for name, value in texts.items()]
        lines += [f"synonym: {quoted('s' + chr(92))} EXACT []\n", f"def: {quoted('d' + chr(92))} []\n"]
        graph, _ = read(tmp_path, "a.obo", "format-version: 1.4\n\n[Term]\nid: A:1\nis_a: A:2\n" + "".join(lines))
        values = dict(zip(*graph.attributes[1:], strict=True))
        assert {name: values[name] for name in texts} == texts
        assert {"s\\", "d\\"} <= set(values.values())

    def test_instances(self, tmp_path: Path) -> None:
        graph, _ = read(tmp_path, "wine.obo", OBO, "individuals")
        assert triples(graph) == {("I:1", "from", "I:2")}
        assert list(graph.attributes[2]) == ["this one"]

    def test_synonyms_keep_their_kind(self, tmp_path: Path) -> None:
        graph, _ = read(tmp_path, "wine.obo", OBO)
        kinds = {value: kind_of(name) for name, value in zip(*graph.attributes[1:], strict=True)}
        assert (kinds["wine"], kinds["vino"], kinds["plonk"], kinds["drink"], kinds["claret"]) == ("name", "exact", "loose", "loose", "loose")

    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            ("format-version: 1.2\n\n[Term]\nid: A:1\nis_a\n", 5, "this line is not valid OBO: 'is_a'; expected"),
            ("format-version: 1.2\n\n[Term]\nid: A:1\n\n[Trm]\nid: A:2\n", 6, "this line is not valid OBO: '[Trm]'; expected"),
            ("format-version: 1.2\n\n[Instance]\nid: I:1\nnothing\n", 5, "this line is not valid OBO: 'nothing'; expected"),
            ("hello\n", 1, "in 'hello'"),
        ],
    )
    def test_a_broken_stanza_is_named(self, text: str, line: int, words: str, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="not valid OBO") as caught:
            read(tmp_path, "a.obo", text)
        assert caught.value.line == line
        assert words in str(caught.value)


# Random ontologies


@dataclass(frozen=True)
class Drawn:
    """Named classes, what they are below, and their texts."""

    below: tuple[tuple[str, str], ...]
    some: tuple[tuple[str, str, str], ...]
    same: tuple[tuple[str, str], ...]
    apart: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, str, str], ...]
    old: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        ends = {end for pair in (*self.below, *self.same, *self.apart) for end in pair} | {end for head, _, tail in self.some for end in (head, tail)}
        return ends | {name for name, _, _ in self.texts} | set(self.old)

    def turtle(self) -> str:
        lines = [f"<{name}> a owl:Class ." for name in sorted(self.names)]
        lines += [f"<{name}> rdfs:subClassOf <{other}> ." for name, other in self.below]
        lines += [
            f"<{one}> rdfs:subClassOf [ a owl:Restriction ; owl:onProperty <{by}> ; owl:someValuesFrom <{other}> ] ." for one, by, other in self.some
        ]
        lines += [f"<{name}> owl:equivalentClass <{other}> ." for name, other in self.same]
        lines += [f"<{name}> owl:disjointWith <{other}> ." for name, other in self.apart]
        lines += [f"<{name}> <{kind}> {_quoted(text)} ." for name, kind, text in self.texts]
        lines += [f"<{name}> owl:deprecated true ." for name in self.old]
        return PREFIXES + f"<{X}o> a owl:Ontology .\n" + "\n".join(lines)

    def functional(self) -> str:
        lines = [f"Declaration(Class(<{name}>))" for name in sorted(self.names)]
        lines += [f"SubClassOf(<{name}> <{other}>)" for name, other in self.below]
        lines += [f"SubClassOf(<{name}> ObjectSomeValuesFrom(<{relation}> <{other}>))" for name, relation, other in self.some]
        lines += [f"EquivalentClasses(<{name}> <{other}>)" for name, other in self.same]
        lines += [f"DisjointClasses(<{name}> <{other}>)" for name, other in self.apart]
        lines += [f"AnnotationAssertion(<{kind}> <{name}> {_quoted(text)})" for name, kind, text in self.texts]
        lines += [f'AnnotationAssertion(<{OWL}deprecated> <{name}> "true"^^<http://www.w3.org/2001/XMLSchema#boolean>)' for name in self.old]
        return f"Ontology(<{X}o>\n" + "\n".join(lines) + "\n)"

    def obo(self) -> str:
        stanzas = []
        for name in sorted(self.names):
            clauses = [f"is_a: {other}" for one, other in self.below if one == name]
            clauses += [f"relationship: {relation} {other}" for one, relation, other in self.some if one == name]
            clauses += [f"equivalent_to: {other}" for one, other in self.same if one == name]
            clauses += [f"disjoint_from: {other}" for one, other in self.apart if one == name]
            clauses += [f"synonym: {_quoted(text)} {SCOPES[kind]} []" for one, kind, text in self.texts if one == name]
            clauses += ["is_obsolete: true"] if name in self.old else []
            stanzas.append("\n".join(["[Term]", f"id: {name}", *clauses]))
        return "format-version: 1.4\n\n" + "\n\n".join(stanzas) + "\n"


SCOPES = {f"{OBO_IN_OWL}has{scope.title()}Synonym": scope for scope in ("EXACT", "BROAD", "NARROW", "RELATED")}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


names = st.integers(0, 9).map(lambda number: f"{X}{number}")
relations = st.integers(0, 2).map(lambda number: f"{X}relation{number}")
texts = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="\ufeff"), min_size=1, max_size=12).filter(
    lambda text: text == text.strip() and not text.endswith("\\")  # which the parser of OBO does not accept
)


def several(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[tuple[str, ...], ...]]:
    return st.lists(st.tuples(*parts), max_size=6, unique=True).map(tuple)


drawn = st.builds(
    Drawn,
    several(names, names),
    several(names, relations, names),
    several(names, names).map(lambda pairs: tuple(pair for pair in pairs if pair[0] != pair[1])),
    several(names, names).map(lambda pairs: tuple(pair for pair in pairs if pair[0] != pair[1])),
    several(names, st.sampled_from(sorted(SCOPES)), texts),
    st.lists(st.just(f"{X}9"), max_size=1).map(tuple),
).filter(lambda one: bool(one.names - set(one.old)))


@settings(max_examples=examples(15), deadline=None)
@given(drawn)
def test_random_ontologies_are_the_same_graph_in_every_syntax(tmp_path_factory: pytest.TempPathFactory, ontology: Drawn) -> None:
    folder = tmp_path_factory.mktemp("random")
    written = {
        "a.ttl": ontology.turtle(),
        "a.owl": as_rdf_xml(ontology.turtle()),
        "a.ofn": ontology.functional(),
        "a.owx": converted(ontology.functional(), "owx"),
        "a.obo": ontology.obo(),
    }
    kept = ontology.names - set(ontology.old)
    expected = {(one, f"{RDFS}subClassOf", other) for one, other in ontology.below}
    expected |= set(ontology.some) | {(min(pair), f"{OWL}equivalentClass", max(pair)) for pair in ontology.same}
    expected |= {(min(pair), f"{OWL}disjointWith", max(pair)) for pair in ontology.apart}
    for name, text in written.items():
        graph, _ = read(folder, name, text)
        assert set(graph.entities) == kept
        assert set(zip(graph.heads, graph.relations, graph.tails, strict=True)) == {one for one in expected if {one[0], one[2]} <= kept}
        assert set(zip(*graph.attributes, strict=True)) == {one for one in ontology.texts if one[0] in kept}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.ttl",
            f"""{PREFIXES} @prefix sh: <http://www.w3.org/ns/shacl#> . : a owl:Ontology .
:A a owl:Class ; rdfs:subClassOf :B . :shape a sh:NodeShape .
:Colour a rdfs:Datatype ; rdfs:subClassOf rdfs:Resource ; owl:oneOf ( "red" ) .""",
        ),
        ("a.ofn", f"Prefix(:=<{X}>) Ontology(<{X}> SubClassOf(:A :B) Declaration(Datatype(:Colour)) SubClassOf(:Colour :B))"),
        ("a.obo", f"format-version: 1.2\n\n[Term]\nid: {X}A\nis_a: {X}B\nrelationship: has_value_type xsd:anyURI\n"),
    ],
)
def test_datatypes_and_shapes_are_no_classes(name: str, text: str, tmp_path: Path) -> None:
    graph, _ = read(tmp_path, name, text)
    assert short([(one,) for one in graph.entities]) == {("A",), ("B",)}
    assert triples(graph) == {("A", "subClassOf", "B")}


# Disjointness


APART_TURTLE = f"""{PREFIXES} : a owl:Ontology . :Thing a owl:Class ; owl:disjointUnionOf ( :A :B :C ) .
[] a owl:AllDisjointClasses ; owl:members ( :D :E [ owl:unionOf ( :A :B ) ] :F ) .
[] a owl:AllDifferent ; owl:distinctMembers ( :i :j ) ."""
APART_FUNCTIONAL = f"""Prefix(:=<{X}>) Ontology(<{X}> DisjointUnion(:Thing :A :B :C)
DisjointClasses(:D :E ObjectUnionOf(:A :B) :F) DifferentIndividuals(:i :j))"""


class TestDisjointness:
    @pytest.mark.parametrize("name", ["a.ttl", "a.ofn"])
    def test_every_two_of_several_classes(self, name: str, tmp_path: Path) -> None:
        graph, found = read(tmp_path, name, APART_TURTLE if name == "a.ttl" else APART_FUNCTIONAL)
        expected = {(one, "disjointWith", other) for one, other in ("AB", "AC", "BC", "DE", "DF", "EF")}
        assert triples(graph) == expected | {(one, "subClassOf", "Thing") for one in "ABC"}
        assert "1 axiom of different individuals or disjoint properties" in found["ontology-left-out"].message

    def test_of_very_many_classes_it_is_counted_only(self, tmp_path: Path) -> None:
        text = f"Prefix(:=<{X}>) Ontology(<{X}> SubClassOf(:c0 :c1) DisjointClasses({' '.join(f':c{number}' for number in range(101))}))"
        graph, found = read(tmp_path, "a.ofn", text)
        assert triples(graph) == {("c0", "subClassOf", "c1")}
        assert "1 axiom of disjointness among other things than two to 100 named classes" in found["ontology-left-out"].message

    def test_merged_disjoint_classes_are_a_contradiction(self, tmp_path: Path) -> None:
        put(tmp_path / "source.obo", "format-version: 1.2\n\n[Term]\nid: dog\nis_a: animal\n\n[Term]\nid: fern\nis_a: plant\n")
        below = "".join(f"SubClassOf(:{one} :Tier) " for one in ("Hund", "Farn"))
        put(tmp_path / "target.ofn", f"Prefix(:=<{X}>) Ontology(<{X}> {below} DisjointClasses(:Tier :Pflanze))")
        put(tmp_path / "links.csv", f"source,target\nanimal,{X}Tier\n")
        task = load_task(tmp_path, DataConfig())
        graphs = {"source": task.source, "target": task.target}
        matched = {"source": ("dog", "animal", "fern", "plant"), "target": ("Hund", "Tier", "Farn", "Pflanze")}
        ends = [
            np.array([graphs[side].entities.index(name if side == "source" else f"{X}{name}") for name in names]) for side, names in matched.items()
        ]
        found = contradictions(
            {side: Hierarchy(graph.triples, graph.relations) for side, graph in graphs.items()}, *ends, np.array([0.9, 0.8, 0.1, 0.7])
        )
        assert found == [Contradiction("disjoint", 2, 2)]


# What is an ontology, and which of its things are aligned


class TestRecognition:
    def test_plain_rdf_stays_as_it_was(self, tmp_path: Path) -> None:
        text = f"{PREFIXES} :City a owl:Class . :Rome a :City ; :in :Italy . :Paris a :City ."
        graph, found = read(tmp_path, "a.ttl", text)
        assert ("Rome", "type", "City") in triples(graph)
        assert not found

    def test_a_header_makes_it_one(self, tmp_path: Path) -> None:
        text = f"{PREFIXES} <{X}> a owl:Ontology . :City a owl:Class ; rdfs:subClassOf :Place . :Rome a :City . :Paris a :City . :Bern a :City ."
        graph, found = read(tmp_path, "a.ttl", text)
        assert triples(graph) == {("City", "subClassOf", "Place")}
        assert found["ontology-individuals"].severity == "warning"

    def test_plain_switches_it_off(self, tmp_path: Path) -> None:
        text = f"{PREFIXES} <{X}> a owl:Ontology . :City a owl:Class ; rdfs:subClassOf :Place ."
        graph, found = read(tmp_path, "a.ttl", text, "plain")
        assert ("City", "type", "Class") in triples(graph)
        assert not found

    def test_individuals_where_there_are_no_classes(self, tmp_path: Path) -> None:
        text = f"{PREFIXES} <{X}> a owl:Ontology . :in a owl:ObjectProperty . :Rome a owl:NamedIndividual ; :in :Italy ."
        assert triples(read(tmp_path, "a.ttl", text)[0]) == {("Rome", "in", "Italy")}

    def test_synonyms_that_are_individuals_of_their_own(self, tmp_path: Path) -> None:
        """As in the anatomies of the ontology alignment campaign."""
        text = f"""{PREFIXES} <{X}> a owl:Ontology . :A a owl:Class ; rdfs:subClassOf :B ; o:hasRelatedSynonym :genid1 ; o:hasDefinition :genid2 .
        :B a owl:Class . :genid1 a o:Synonym ; rdfs:label "heart" . :genid2 a o:Definition ; rdfs:label "a pump" ."""
        graph, found = read(tmp_path, "a.owl", as_rdf_xml(text))
        assert set(zip(*graph.attributes, strict=True)) == {
            (f"{X}A", f"{OBO_IN_OWL}hasRelatedSynonym", "heart"),
            (f"{X}A", f"{OBO_IN_OWL}hasDefinition", "a pump"),
        }
        assert "2 classes, 0 individuals" in found["ontology-read"].message

    def test_cycles_are_kept(self, tmp_path: Path) -> None:
        graph, _ = read(tmp_path, "a.ttl", f"{PREFIXES} :A a owl:Class ; rdfs:subClassOf :B . :B a owl:Class ; rdfs:subClassOf :A .")
        assert triples(graph) == {("A", "subClassOf", "B"), ("B", "subClassOf", "A")}

    def test_the_setting_counts_in_training(self, tmp_path: Path) -> None:
        for name in ("source.ofn", "target.ofn"):
            put(tmp_path / name, WINE_FUNCTIONAL)
        put(tmp_path / "links.csv", f"source,target\n{X}Mosel,{X}Mosel\n")
        assert set(load_task(tmp_path, DataConfig(ontology="individuals")).source.entities) == {f"{X}Mosel", f"{X}Riesling1"}


class TestBadInput:
    @pytest.mark.parametrize(
        ("name", "text", "words"),
        [
            ("a.obo", "", "this file is empty"),
            ("a.ofn", "Ontology(<http://x.org>)", "no classes and no individuals"),
            ("a.ttl", f"{PREFIXES} <{X}> a owl:Ontology .", "no classes and no individuals"),
            ("a.ttl", f"{PREFIXES} <{X}> a owl:Ontology . :p a owl:ObjectProperty .", "only 1 property"),
            ("a.owl", "hello", "not RDF/XML: it begins with 'hello'"),
            ("a.owx", "hello", "not OWL/XML: it begins with 'hello'"),
            ("a.omn", "Ontology: <http://x>\nClass: <http://a>\n  SubClassOf: <http://p> somme <http://b>\n", "not valid OWL Manchester syntax"),
            ("a.ofn", "Ontology(<http://x>\nSubClassOf(<http://a> zz:B))", "undefined prefix"),
        ],
    )
    def test_one_sentence(self, name: str, text: str, words: str, tmp_path: Path) -> None:
        with pytest.raises(DataError) as caught:
            read(tmp_path, name, text)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_a_choice_that_does_not_fit(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no individuals that could be aligned; it has 2 classes, choose among them"):
            read(tmp_path, "a.ofn", "Ontology(<http://x.org> SubClassOf(<http://a> <http://b>))", "individuals")

    @pytest.mark.parametrize("name", ["a.owl", "a.owx"])
    def test_entities_that_reach_out(self, name: str, tmp_path: Path) -> None:
        secret = put(tmp_path / "secret", "secret")
        doctype = f'<!DOCTYPE Ontology [ <!ENTITY x SYSTEM "{secret.as_uri()}"> ]>'
        text = f'<?xml version="1.0"?>\n{doctype}\n<Ontology xmlns="{OWL}"><Import>&x;</Import></Ontology>'
        with pytest.raises(DataError, match="refers to another file"):
            read(tmp_path, name, text)

    @pytest.mark.parametrize("doctype", ["", '<!DOCTYPE Ontology [ <!ENTITY y "y" > ]>'])
    @pytest.mark.parametrize("declared", ["UTF-16", "windows-1252", "x-unknown"])
    def test_text_that_declares_another_encoding(self, declared: str, doctype: str, tmp_path: Path) -> None:
        """Text is read as UTF-8, whatever a program that changed the file forgot to change."""
        declaration = f'<?xml version="1.0" encoding="{declared}"?>'
        text = f'{declaration}\n{doctype}\n<Ontology xmlns="{OWL}"><SubClassOf><Class IRI="{X}A"/><Class IRI="{X}B"/></SubClassOf></Ontology>'
        graph, _ = read(tmp_path, "a.owx", text)
        assert triples(graph) == {("A", "subClassOf", "B")}

    def test_short_names_for_texts(self, tmp_path: Path) -> None:
        """As Protégé writes them."""
        text = f"""<?xml version="1.0"?>
<!DOCTYPE Ontology [
  <!ENTITY x "{X}" >
  <!ENTITY owl "{OWL}" >
]>
<Ontology xmlns="{OWL}" ontologyIRI="&x;o"><SubClassOf><Class IRI="&x;A"/><Class IRI="&x;B"/></SubClassOf>
<AnnotationAssertion><AnnotationProperty IRI="&x;label"/><IRI>&x;A</IRI><Literal>R&amp;D</Literal></AnnotationAssertion></Ontology>"""
        graph, _ = read(tmp_path, "a.owx", text)
        assert triples(graph) == {("A", "subClassOf", "B")}
        assert list(graph.attributes[2]) == ["R&D"]

    @pytest.mark.parametrize(
        ("name", "make"),
        [
            ("a.ofn", lambda deep: f"Ontology(SubClassOf(<http://a> {'ObjectComplementOf(' * deep}<http://b>{')' * deep}))"),
            ("a.omn", lambda deep: f"Ontology: <http://x>\nClass: <http://a>\n SubClassOf: {'<http://p> some (' * deep}<http://b>{')' * deep}\n"),
            ("b.omn", lambda deep: f"Ontology: <http://x>\nClass: <http://a>\n SubClassOf: {'<http://p> some ' * deep}<http://b>\n"),
            (
                "a.owx",
                lambda deep: (
                    f'<Ontology xmlns="{OWL}"><SubClassOf><Class IRI="http://a"/>{"<ObjectComplementOf>" * deep}<Class IRI="http://b"/>'
                    f"{'</ObjectComplementOf>' * deep}</SubClassOf></Ontology>"
                ),
            ),
        ],
    )
    def test_what_is_nested_too_deeply_for_the_parser(self, name: str, make: Callable[[int], str], tmp_path: Path) -> None:
        assert "left out" in read(tmp_path, name, make(50))[1]["ontology-left-out"].message
        with pytest.raises(DataError, match="nested more than 200 levels"):
            read(tmp_path, name, make(100_000))

    def test_nested_blank_nodes(self, tmp_path: Path) -> None:
        deep = 3_000
        text = f"{PREFIXES} :A a owl:Class ; rdfs:subClassOf {'[ owl:intersectionOf ( ' * deep} :B {') ]' * deep} ; rdfs:subClassOf :C ."
        assert ("A", "subClassOf", "C") in triples(read(tmp_path, "a.ttl", text)[0])

    def test_a_list_that_bites_its_tail(self, tmp_path: Path) -> None:
        text = f"{PREFIXES} :A a owl:Class ; owl:equivalentClass [ owl:intersectionOf _:l ] . _:l rdf:first :B ; rdf:rest _:l ."
        assert triples(read(tmp_path, "a.ttl", text)[0]) == {("A", "subClassOf", "B")}


def test_memory_is_estimated_by_syntax(tmp_path: Path) -> None:
    line = "SubClassOf(<http://a> <http://b>)\n"
    functional = put(tmp_path / "a.owl", f"Ontology(<http://x>\n{line * 1000})")
    assert 25 < expected_memory([functional]) * 2**20 / functional.stat().st_size < 40
