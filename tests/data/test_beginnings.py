"""Files that cannot be what their names say are refused by their beginning; what is unusual and right is read."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from engine.data import tabular
from engine.data.readers import rdf, xml_graphs
from engine.data.readers.exports import export_form, read_export
from engine.data.readers.rdf import read_graph, read_same_as
from engine.data.readers.tables import read_graph_tables
from engine.data.tabular import Layout, table_suffix
from engine.errors import DataError

JUNK = "abcdefghij" * 30_000
LONG = b"x" * (2**24 + 2)
STATEMENT = "<http://a/a> <http://a/b> <http://a/c> .\n"
RDF_XML = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://a/">{}</rdf:RDF>'
TRIPLE = '<rdf:Description rdf:about="http://a/a"><b rdf:resource="http://a/c"/></rdf:Description>'


@pytest.fixture
def no_more_than_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the whole file was read")

    monkeypatch.setattr(rdf, "read_text", refuse)
    monkeypatch.setattr(xml_graphs, "read_text", refuse)
    monkeypatch.setattr(tabular, "read_grid", refuse)


def read(path: Path) -> None:
    form = export_form(path)
    if table_suffix(path):
        read_graph_tables([path], Layout(), [])
    elif form is not None:
        read_export(path, form, [])
    else:
        read_graph(path, [])


@pytest.mark.usefixtures("no_more_than_the_beginning")
@pytest.mark.parametrize(
    ("name", "begin", "words", "line"),
    [
        ("a.owl", "", "this is not RDF/XML: it begins with 'abcdefghij", 1),
        ("a.rdf", "\n\n", "this is not RDF/XML: it begins with", 3),
        ("a.owx", "", "this is not OWL/XML: it begins with", 1),
        ("a.owl", "<", "its first tag has no end", 1),
        ("a.owl", "<a>\n</b>", "not well-formed XML", 2),
        ("a.graphml", "", "this is not GraphML: it begins with", 1),
        ("a.gexf", "", "this is not GEXF: it begins with", 1),
        ("a.nt", "# a comment\n", "this is not N-Triples: expected an IRI in angle brackets or a blank node, found 'abc", 2),
        ("a.nq", "\n", "this is not N-Quads", 2),
        ("a.obo", "! a comment\n\n", "not valid OBO (expected a tag or a stanza in 'abc", 3),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_junk_is_refused_by_its_beginning(name: str, begin: str, words: str, line: int, zipped: bool, tmp_path: Path) -> None:
    content = (begin + JUNK).encode()
    path = tmp_path / (f"{name}.gz" if zipped else name)
    path.write_bytes(gzip.compress(content) if zipped else content)
    with pytest.raises(DataError) as caught:
        read(path)
    assert words in str(caught.value)
    assert caught.value.line == line


@pytest.mark.usefixtures("no_more_than_the_beginning")
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.nt", "a.nq", "a.obo"])
def test_one_line_of_many_megabytes_is_refused_by_its_beginning(name: str, tmp_path: Path) -> None:
    start = {".nt": b"<", ".nq": b"_:", ".obo": b"name: "}.get(Path(name).suffix, b"")
    (tmp_path / name).write_bytes(start + LONG)
    with pytest.raises(DataError, match="a line is longer than 16 MiB") as caught:
        read(tmp_path / name)
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.nt", STATEMENT + '<http://a/a> <http://a/b> "'), ("a.obo", "format-version: 1.2\n"), ("a.ttl", STATEMENT + '<http://a/a> <http://a/b> "')],
)
def test_a_long_line_further_down_is_refused(name: str, start: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(start.encode() + LONG + (b'" .\n' if name != "a.obo" else b"\n"))
    with pytest.raises(DataError, match=r"longer than 16 MiB") as caught:
        read(tmp_path / name)
    assert caught.value.line == (None if name == "a.ttl" else 2)


def test_links_are_looked_at_as_well(tmp_path: Path) -> None:
    (tmp_path / "links.rdf").write_text(JUNK, encoding="utf-8")
    with pytest.raises(DataError, match="it begins with"):
        read_same_as(tmp_path / "links.rdf")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.owl", "\ufeff\n  <!-- > -->\n" + RDF_XML.format(TRIPLE) + "\n<!-- end -->\n"),
        ("a.owl", RDF_XML.format(TRIPLE).replace("</rdf:RDF>", "</rdf:RDF  >")),
        ("a.owl", '<?xml version="1.0"?><!DOCTYPE rdf:RDF [<!ENTITY x "http://a/">]>' + RDF_XML.format(TRIPLE)),
        ("a.owl", RDF_XML.format(f"<!-- {'x' * 2**17} -->{TRIPLE}")),
        ("a.rdf", RDF_XML.format("".join(TRIPLE for _ in range(1000)))),
        ("a.nt", "\ufeff# " + "x" * 2**17 + "\n\n" + STATEMENT),
        ("a.nt", "  _:a <http://a/b> <http://a/c> ."),
        ("a.nt", "<< <http://a/a> <http://a/b> <http://a/c> >> <http://a/d> <http://a/e> .\n" + STATEMENT),
    ],
)
def test_what_is_unusual_and_right_is_read(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(read_graph(tmp_path / name, []).heads) >= 1


def test_obo_with_a_long_comment_first(tmp_path: Path) -> None:
    (tmp_path / "a.obo").write_text(f"! {'x' * 2**17}\nformat-version: 1.2\n\n[Term]\nid: A:1\nis_a: A:2\n", encoding="utf-8")
    assert list(read_graph(tmp_path / "a.obo", []).heads) == ["A:1"]


@pytest.mark.parametrize("cut", ["<b>text", "<b>text</b>", TRIPLE])
def test_xml_that_was_cut_off_is_refused(cut: str, tmp_path: Path) -> None:
    """The parser of RDF/XML takes the end of the file for the end of what is open."""
    text = RDF_XML.format(TRIPLE + cut).removesuffix("</rdf:RDF>")
    (tmp_path / "a.rdf").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="cut off"):
        read_graph(tmp_path / "a.rdf", [])
