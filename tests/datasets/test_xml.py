"""RDF/XML: read like any other RDF, and nothing outside of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.datasets import load_task
from engine.errors import DataError
from tests.datasets.writers import put, same_as, small_sample, write_rdf

HEAD = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:l="http://left.org/">\n'


def xml(*, doctype: str = "", body: str | None = None) -> str:
    triples = "".join(
        f'<rdf:Description rdf:about="{head}"><l:near rdf:resource="{tail}"/></rdf:Description>\n' for head, _, tail in small_sample().source
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{doctype}{HEAD}{triples if body is None else body}</rdf:RDF>\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rdf(tmp_path, small_sample())
    (tmp_path / "source.nt").unlink()
    return tmp_path


@pytest.mark.parametrize("name", ["source.rdf", "source.owl", "source.xml"])
def test_the_same_data_as_in_n_triples(name: str, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    put(folder / name, xml())
    other = tmp_path_factory.mktemp("other")
    write_rdf(other, small_sample())
    assert load_task(folder).fingerprint == load_task(other).fingerprint


def test_short_names_for_texts_are_accepted(folder: Path) -> None:
    put(
        folder / "source.rdf",
        xml(doctype='<!DOCTYPE rdf:RDF [\n<!ENTITY left "http://left.org/">\n]>\n').replace("http://left.org/Rome", "&left;Rome"),
    )
    put(folder / "links.nt", same_as(small_sample().links))
    assert "http://left.org/Rome" in load_task(folder).source.entities


@pytest.mark.parametrize(
    ("doctype", "line", "words"),
    [
        ('<!DOCTYPE r [\n<!ENTITY x SYSTEM "file:///etc/passwd">\n]>', 3, "refers to another file"),
        ("<!DOCTYPE r [\n<!ENTITY x PUBLIC 'a' 'http://example.org/x'>\n]>", 3, "refers to another file"),
        ('<!DOCTYPE r SYSTEM "http://example.org/x.dtd">', 2, "refers to another file"),
        ('<!DOCTYPE r [\n\n<!ENTITY % x "y">\n]>', 4, "refers to another file"),
        ('<!DOCTYPE r [\n<!ENTITY a "aaa">\n<!ENTITY b "&a;&a;&a;">\n]>', 4, "refers to other entities"),
    ],
)
def test_entities_that_reach_out_or_grow(doctype: str, line: int, words: str, folder: Path) -> None:
    put(folder / "source.rdf", xml(doctype=doctype + "\n"))
    with pytest.raises(DataError, match=words) as caught:
        load_task(folder)
    assert caught.value.line == line


def test_an_entity_that_is_used_too_often(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.datasets.xml_entities.MOST_EXPANDED", 10_000)
    doctype = f'<!DOCTYPE r [\n<!ENTITY a "{"a" * 1000}">\n]>\n'
    body = f'<rdf:Description rdf:about="http://left.org/x"><l:p>{"&a;" * 20}</l:p></rdf:Description>'
    put(folder / "source.rdf", xml(doctype=doctype, body=body))
    with pytest.raises(DataError, match="far longer than it is"):
        load_task(folder)


def test_a_syntax_error_says_its_line(folder: Path) -> None:
    put(folder / "source.rdf", xml(body="<rdf:Description>\n<l:a></l:b>\n</rdf:Description>"))
    with pytest.raises(DataError, match="not valid RDF") as caught:
        load_task(folder)
    assert caught.value.line == 4
