"""Links in the forms that ontologies come with, and what says less than equality."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from engine.data import load_task
from engine.data.apart import Apart
from engine.data.links import confident, read_links
from engine.errors import DataError

CELL = (
    "<map><Cell><entity1 rdf:resource='http://a/{}'/><entity2 rdf:resource='http://b/{}'/><relation>{}</relation><measure>{}</measure></Cell></map>"
)
ALIGNMENT = """<?xml version='1.0' encoding='utf-8'?>
{}<rdf:RDF xmlns='http://knowledgeweb.semanticweb.org/heterogeneity/alignment' xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'
  alignmentSource='by hand'><Alignment><xml>yes</xml>
{}
</Alignment></rdf:RDF>
"""


def alignment(path: Path, *cells: tuple[int, int, str, str], prolog: str = "") -> Path:
    path.write_text(ALIGNMENT.format(prolog, "\n".join(CELL.format(*cell) for cell in cells)), encoding="utf-8")
    return path


def test_cells_of_an_alignment_are_links_by_their_relation(tmp_path: Path) -> None:
    path = alignment(
        tmp_path / "reference.rdf",
        (1, 1, "=", "1.0"),
        (2, 2, "fr.inrialpes.EquivRelation", "0.5"),
        (3, 3, "&lt;", ".4"),
        (4, 4, "&gt;", "x"),
        (5, 5, "%", "1"),
    )
    found = read_links(path)
    assert list(zip(found.sources, found.targets, strict=True)) == [("http://a/1", "http://b/1"), ("http://a/2", "http://b/2")]
    assert list(found.confidences) == [1.0, 0.5]
    assert list(found.apart.relations) == ["skos:broadMatch", "skos:narrowMatch"]
    assert found.apart.confidences[0] == 0.4
    assert math.isnan(found.apart.confidences[1])
    assert found.left_out == {"with the relation %": 1}


@pytest.mark.parametrize("prolog", ["<!DOCTYPE rdf:RDF SYSTEM 'http://x/y.dtd'>", "<!DOCTYPE r [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>"])
def test_an_alignment_that_refers_to_other_files_is_refused(tmp_path: Path, prolog: str) -> None:
    with pytest.raises(DataError, match="never read"):
        read_links(alignment(tmp_path / "reference.rdf", (1, 1, "=", "1"), prolog=prolog))


def test_an_alignment_that_is_cut_off_names_the_line(tmp_path: Path) -> None:
    path = alignment(tmp_path / "reference.rdf", (1, 1, "=", "1"))
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    with pytest.raises(DataError, match="not well-formed XML"):
        read_links(path)


TURTLE = """@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<http://a/1> owl:equivalentClass <http://b/1> . <http://a/2> skos:exactMatch <http://b/2> . <http://a/3> owl:equivalentProperty <http://b/3> .
<http://a/1> skos:broadMatch <http://b/2> . <http://b/3> skos:broadMatch <http://a/1> . <http://a/2> skos:relatedMatch <http://b/9> .
<http://a/1> skos:closeMatch <http://b/3> .
"""


def triples(folder: Path, number: int, letter: str) -> None:
    rows = [f"<http://{letter}/{head}> <http://r> <http://{letter}/{tail}> ." for head, tail in ((1, 2), (2, 3), (3, 1))]
    (folder / f"kg{number}.nt").write_text("\n".join(rows), encoding="utf-8")


def test_what_says_less_than_equality_is_in_the_task_but_no_link(tmp_path: Path) -> None:
    triples(tmp_path, 1, "a")
    triples(tmp_path, 2, "b")
    (tmp_path / "links.ttl").write_text(TURTLE, encoding="utf-8")
    task = load_task(tmp_path)
    assert sum(map(len, task.all_links())) == 3
    assert task.target.num_entities == 3, "http://b/9 is only in a mapping"
    assert {tuple(row[:3]) for row in task.apart.itertuples(index=False)} == {
        ("http://a/1", "http://b/2", "skos:broadMatch"),
        ("http://a/1", "http://b/3", "skos:narrowMatch"),
        ("http://a/2", "http://b/9", "skos:relatedMatch"),
        ("http://a/1", "http://b/3", "skos:closeMatch"),
    }
    finding = next(one for one in task.findings if one.code == "mappings-kept-apart")
    assert finding.count == 4
    assert "1 broader, 1 narrower, 1 close, 1 related" in finding.message
    assert "1 of them names an entity that the graphs do not have" in finding.message


SSSOM = """#curie_map:
#  a: "http://a/"
#  b: "http://b/"
subject_id\tpredicate_id\tobject_id\tconfidence
a:1\towl:equivalentClass\tb:1\t0.9
a:2\tskos:exactMatch\tb:2\t0.2
a:3\tskos:exactMatch\tb:3\t
a:1\tskos:broadMatch\tb:2\t0.8
a:2\tskos:narrowMatch\tb:3\t0.1
"""


def test_confidences_are_read_and_a_least_one_can_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "links.sssom.tsv"
    path.write_text(SSSOM, encoding="utf-8")
    found = read_links(path)
    assert len(found.sources) == 3
    assert list(found.apart.relations) == ["skos:broadMatch", "skos:narrowMatch"]
    kept = confident(found, 0.5)
    assert list(kept.sources) == ["http://a/1", "http://a/3"], "what has no confidence stays"
    assert list(kept.apart.sources) == ["http://a/1"]
    assert kept.left_out["below the minimum confidence of 0.5"] == 2
    assert confident(found, 0.1) is found


def test_a_mapping_is_kept_once_and_turned_with_its_relation() -> None:
    one = Apart(["b"], ["a"], ["skos:broadMatch"], [0.5])
    assert one.oriented({"a"}, {"b"}) == Apart(("a",), ("b",), ("skos:narrowMatch",), (0.5,))
    assert one.oriented({"b"}, {"a"}) == Apart(("b",), ("a",), ("skos:broadMatch",), (0.5,))
    assert len(Apart.joined([one, one, one.swapped])) == 2
