"""What is understood of files, what can be corrected, and what is noticed."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from engine.data.tabular import Layout
from engine.errors import DataError, DataImportError
from engine.importing import Corrections, Material, Preview, SourceFile, folder_material, glance, preview, render_preview, understand, with_file
from tests.data.writers import WRITERS, small_sample
from tests.importing.conftest import GRAPH_1, GRAPH_2, LINKS, NAMES, SWAPPED, files

NONE = Corrections()
TURTLE = "@prefix b: <b:> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n" + "".join(
    f'b:{one} <b:nah> b:{other} ; rdfs:label "{one}" .\n' for one, other in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)
)


def codes(found: Preview) -> dict[str, str]:
    return {finding.code: finding.severity for finding in found.findings}


def test_counts_samples_and_namespaces(tmp_path: Path) -> None:
    found = preview(files(tmp_path, graph_1=GRAPH_1, graph_2__ttl=TURTLE, links=LINKS), NONE)
    source, target = found.graphs["source"], found.graphs["target"]
    assert (source.summary.entities, source.summary.relations, source.summary.triples) == (8, 1, 8)
    assert source.namespaces == (("a:", 8),)
    assert source.relations == (("near", 8),)
    assert ("a:Paris", "near", "a:Berlin") in source.triples
    assert target.summary.named == 8
    assert [(one.attribute, one.share, one.chosen) for one in target.names] == [("http://www.w3.org/2000/01/rdf-schema#label", 1.0, True)]
    assert sum(found.links.values()) == 8
    assert ("a:Rome", "b:Rome") in found.link_sample
    assert not found.problems


@pytest.mark.parametrize("form", WRITERS)
def test_every_format_as_a_folder(form: str, tmp_path: Path) -> None:
    WRITERS[form][1](tmp_path / "mine", small_sample())
    found = preview(folder_material(tmp_path / "mine"), NONE)
    assert found.graphs["source"].summary.triples == found.graphs["target"].summary.triples == 6
    assert found.links["train"] == 2
    assert not found.problems


@pytest.mark.parametrize("form", ["openea", "csv", "tsv", "parquet", "rdf"])
def test_every_format_file_by_file(form: str, tmp_path: Path) -> None:
    WRITERS[form][1](tmp_path / "mine", small_sample(), gz=form != "parquet")
    folder = folder_material(tmp_path / "mine")
    kept = tuple(file for file in folder.files if "/" not in file.name)
    found = preview(Material(kept), NONE)
    assert found.format == "files"
    assert found.graphs["source"].summary.triples == 6
    assert sum(found.links.values())


def test_columns_header_and_delimiter_can_be_corrected(tmp_path: Path) -> None:
    rows = [line.split(",") for line in GRAPH_1.split("\n")[1:-1]]
    turned = "Wohin;Woher;Art\n" + "".join(f"{tail};{head};{relation}\n" for head, relation, tail in rows)
    material = files(tmp_path, graph_1=turned, graph_2=GRAPH_2, links=LINKS)
    wrong = preview(material, NONE)
    assert wrong.graphs["source"].summary.entities > 8
    right = Corrections(tables={"graph 1": Layout(header=True, columns={"head": 1, "relation": 2, "tail": 0})})
    straight = preview(files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS), NONE)
    (tmp_path / "graph_1.csv").write_text(turned, encoding="utf-8")
    found = preview(material, right)
    assert found.fingerprint == straight.fingerprint
    table = found.files[0].table
    assert table is not None
    assert (table.header, table.delimiter, table.columns, table.places) == (
        True,
        ";",
        ("Wohin", "Woher", "Art"),
        {"head": 1, "relation": 2, "tail": 0},
    )
    assert table.sample[0] == ("a:Paris", "a:Rome", "near")


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout(columns={"head": 7}), "there is no column 8 for the head; this table has 3"),
        (Layout(columns={"head": 1, "tail": 1}), "column 2 cannot hold both the head and the tail"),
        (Layout(columns={"head": -1}), "there is no column 0"),
        (Layout(delimiter=";"), "expected at least 3 columns"),
    ],
)
def test_corrections_that_cannot_be(layout: Layout, words: str, tmp_path: Path) -> None:
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS)
    said = Corrections(tables={"graph 1": layout})
    with pytest.raises(DataError, match=words):
        preview(material, said)
    assert glance(material, said)[0].table is not None, "the columns can be looked at and mended all the same"


def test_a_glance_needs_no_whole_file(tmp_path: Path) -> None:
    broken = GRAPH_1 + "a:Rome,near\n"
    found = glance(files(tmp_path, graph_1=broken, graph_2=GRAPH_2), NONE)
    assert found[0].table is not None
    assert found[0].table.columns == ("head", "relation", "tail")


@pytest.mark.parametrize(
    ("content", "ending", "place", "words"),
    [
        (GRAPH_1 + "a:Rome,near\n", "csv", "graph_1.csv:10", "expected 3 columns"),
        ("@prefix a: <a:> .\na:b a:c a:d .\na:b a:c ;;; .\n<", "ttl", "graph_1.ttl:3", "not valid RDF"),
        ("head,relation,tail\na,,b\n", "csv", "graph_1.csv:2", "is empty"),
        (b"head,relation,tail\na,\xff\xfe,b\n", "csv", "graph_1.csv:2", "not UTF-8"),
        ('<?xml version="1.0"?>\n<!DOCTYPE a [\n<!ENTITY x SYSTEM "file:///etc/passwd">]>\n<a>&x;</a>', "rdf", "graph_1.rdf:3", "never read"),
    ],
)
def test_errors_say_the_owners_file_and_line(content: str | bytes, ending: str, place: str, words: str, tmp_path: Path) -> None:
    material = files(tmp_path, **{f"graph_1__{ending}": content}, graph_2=GRAPH_2, links=LINKS)
    with pytest.raises(DataError, match=words) as caught:
        preview(material, NONE)
    assert str(caught.value).startswith(f"{place}: ")
    assert str(tmp_path) not in str(caught.value)


def test_links_that_point_the_wrong_way_round(tmp_path: Path) -> None:
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=SWAPPED)
    found = preview(material, NONE)
    assert codes(found)["links-swapped"] == "error"
    assert found.links_left_out
    assert not found.suggestions.pairs
    swapped = preview(material, Corrections(swap_links=True))
    assert not swapped.problems
    assert ("a:Rome", "b:Rome") in swapped.link_sample


def test_links_that_fit_nothing_or_only_in_part(tmp_path: Path) -> None:
    nothing = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS.replace("a:", "http://a.org/"))
    found = preview(nothing, NONE)
    assert codes(found)["links-unknown"] == "error"
    assert "look like 'a:Berlin'" in found.problems[0].message
    blank = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS.replace("a:", "\u00a0a:"))
    message = preview(blank, NONE).problems[0].message
    assert r"(the first is '\xa0a:" in message, "a blank that cannot be told from others is shown as what it is"
    assert message.isprintable()
    partly = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS + "x:1,b:Rome\nx:2,b:Oslo\n")
    assert codes(preview(partly, NONE))["links-partly-unknown"] == "warning"


def test_one_graph_twice(tmp_path: Path) -> None:
    shuffled = "head,relation,tail\n" + "\n".join(sorted(GRAPH_1.split("\n")[1:], reverse=True))
    found = preview(files(tmp_path, graph_1=GRAPH_1, graph_2=shuffled, links=LINKS.replace("b:", "a:")), NONE)
    assert codes(found)["one-graph-twice"] == "error"
    assert found.links_left_out == len(NAMES), "links were given, and it is not said that there are none"
    assert not found.links_are_wrong
    assert "links: 8 links were read; they are left out" in render_preview(found)


def test_two_versions_of_a_graph(tmp_path: Path) -> None:
    later = GRAPH_1 + "".join(f"a:{name},likes,a:Cheese\n" for name in NAMES[:4])
    found = preview(files(tmp_path, graph_1=GRAPH_1, graph_2=later, links=LINKS.replace("b:", "a:")), NONE)
    assert codes(found)["shared-triples"] == "warning"
    assert "one-graph-twice" not in codes(found)


def test_a_column_of_entities_taken_for_relations(tmp_path: Path) -> None:
    rows = "head,relation,tail\n" + "".join(f"a:{number},a:{number + 1},near\n" for number in range(40))
    found = preview(files(tmp_path, graph_1=rows, graph_2=GRAPH_2), NONE)
    assert codes(found)["columns-mixed-up"] == "warning"


def test_a_header_in_unknown_words_is_noticed(tmp_path: Path) -> None:
    rows = "".join(f"a:{number},near,a:{(number + 1) % 25}\n" for number in range(25))
    material = files(tmp_path, graph_1=f"Ziel,Art,Anfang\n{rows}", graph_2=GRAPH_2, links="a:0,b:Rome\n")
    found = preview(material, NONE)
    assert codes(found)["header-as-triple"] == "warning"
    assert found.graphs["source"].summary.triples == 26
    corrected = preview(material, Corrections(tables={"graph 1": Layout(header=True)}))
    assert "header-as-triple" not in codes(corrected)
    assert corrected.graphs["source"].summary.triples == 25
    assert "header-as-triple" not in codes(preview(files(tmp_path, graph_1=rows, graph_2=GRAPH_2, links="a:0,b:Rome\n"), NONE))


def test_without_links_names_may_give_a_start(tmp_path: Path) -> None:
    found = preview(files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2), NONE)
    assert codes(found)["no-seeds"] == "warning"
    assert "start from names and values" in found.expectation.sentence
    assert "8 pairs have the same name" in next(finding.message for finding in found.findings if finding.code == "no-seeds")


def test_without_links_and_common_values_there_is_nothing_to_train_on(tmp_path: Path) -> None:
    strangers = "".join(f"b:{number},near,b:{number + 1}\n" for number in range(8))
    found = preview(files(tmp_path, graph_1=GRAPH_1, graph_2=strangers), NONE)
    assert codes(found)["no-start"] == "error"
    assert found.problems[0].message == "There are no known links to learn from. Names suggest none."
    assert "from names" not in found.problems[0].advice, "advice that would lead to the same error"
    assert "training cannot start" in found.expectation.sentence


def test_where_only_nearly_equal_names_suggest_seeds_the_advice_is_to_use_these(tmp_path: Path) -> None:
    here, there = (re.sub(r"([ab]:\w+)", rf"\1{ending}", rows) for rows, ending in ((GRAPH_1, "UponTheRiver"), (GRAPH_2, "UponTheRivers")))
    material = files(tmp_path, graph_1=here, graph_2=there)
    found = understand(material, NONE).on_the_command_line.preview
    assert [one.advice for one in found.problems if "--seeds-from-names near" in one.advice]
    assert not preview(material, Corrections(seeds="near")).problems


def test_seeds_from_names_train_and_known_links_measure_where_they_are_enough(tmp_path: Path) -> None:
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links="source,target\na:Rome,b:Rome\n")
    found = preview(material, Corrections(seeds="exact", rejected=frozenset({("a:Oslo", "b:Oslo")})))
    assert {pair.source for pair in found.chosen} == {f"a:{name}" for name in NAMES} - {"a:Rome", "a:Oslo"}
    assert found.links == {"train": 7, "valid": 0, "test": 0, "unsure": 0}, "one known link is too few to measure anything"


def test_names_and_attributes_in_files_of_their_own(tmp_path: Path) -> None:
    names = "id,title\n" + "".join(f"a:{name},{name}\n" for name in NAMES)
    material = files(tmp_path, graph_1=GRAPH_1, graph_2=GRAPH_2, links=LINKS, attributes_1=names)
    found = preview(material, NONE)
    assert found.graphs["source"].summary.named == 8
    assert found.graphs["source"].names[0].attribute == "name"
    three = "entity,attribute,value\na:Rome,motto,SPQR\na:Oslo,motto,Unanimous\n"
    (tmp_path / "attributes_1.csv").write_text(three, encoding="utf-8")
    assert preview(material, Corrections(name_attribute="motto")).graphs["source"].names[0].example == "Unanimous"
    with pytest.raises(DataError, match="neither graph has an attribute 'nickname'"):
        preview(material, Corrections(name_attribute="nickname"))


def test_files_without_endings_and_gzipped_ones(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(gzip.compress(GRAPH_1.replace(",", "\t").encode()))
    (tmp_path / "two").write_text(GRAPH_2.replace(",", "|"), encoding="utf-8")
    material = Material((SourceFile(tmp_path / "one", "one", "graph 1"), SourceFile(tmp_path / "two", "two", "graph 2")))
    found = preview(with_file(material, files(tmp_path, links=LINKS).files[0]), NONE)
    assert found.graphs["source"].summary.triples == found.graphs["target"].summary.triples == 8


def test_files_are_given_roles(tmp_path: Path) -> None:
    for name, content in (("x.csv", GRAPH_1), ("y.csv", GRAPH_2), ("z.csv", GRAPH_1), ("links.csv", LINKS), ("README.md", "hello")):
        (tmp_path / name).write_text(content, encoding="utf-8")
    material = folder_material(tmp_path)
    with pytest.raises(DataImportError, match="none of the files is recognised as the source graph"):
        preview(material, NONE)
    found = preview(material, Corrections(roles={"graph 1": "z.csv", "graph 2": "y.csv"}))
    assert {file.role: file.name for file in found.files} == {"graph 1": "z.csv", "graph 2": "y.csv", "links": "links.csv"}
    with pytest.raises(DataImportError, match=r"there is no file '\.\./x'"):
        preview(material, Corrections(roles={"graph 1": "../x"}))


def test_a_link_out_of_a_folder_is_refused(tmp_path: Path) -> None:
    WRITERS["csv"][1](tmp_path / "mine", small_sample())
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    (tmp_path / "mine" / "triples_1.csv").unlink()
    (tmp_path / "mine" / "triples_1.csv").symlink_to(tmp_path / "secret")
    with pytest.raises(DataImportError, match=r"triples_1\.csv is a link that leads out of the folder"):
        folder_material(tmp_path / "mine")


@pytest.mark.parametrize(("links", "graph"), [("test_links.nt", "source.nt"), ("train_links.nt", "target.ttl")])
def test_a_graph_that_holds_nothing_but_links(tmp_path: Path, links: str, graph: str) -> None:
    """Files of a folder that have changed places."""
    WRITERS["rdf"][1](tmp_path, small_sample())
    (tmp_path / links).rename(tmp_path / graph)
    with pytest.raises(DataError, match=f"{graph}: this graph has no relation triples"):
        preview(folder_material(tmp_path), NONE)
