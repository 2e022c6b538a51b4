"""RDF/XML: read like any other RDF, and nothing outside of the file."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from engine.data import load_task
from engine.errors import DataError
from tests.data.writers import put, same_as, small_sample, write_rdf

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
    monkeypatch.setattr("engine.data.readers.rdf.MOST_EXPANDED", 10_000)
    doctype = f'<!DOCTYPE r [\n<!ENTITY a "{"a" * 1000}">\n]>\n'
    body = f'<rdf:Description rdf:about="http://left.org/x"><l:p>{"&a;" * 20}</l:p></rdf:Description>'
    put(folder / "source.rdf", xml(doctype=doctype, body=body))
    with pytest.raises(DataError, match="far longer than it is"):
        load_task(folder)


def test_a_syntax_error_says_its_line(folder: Path) -> None:
    put(folder / "source.rdf", xml(body="<rdf:Description>\n<l:a></l:b>\n</rdf:Description>"))
    with pytest.raises(DataError, match=r"not well-formed XML \(mismatched tag\)") as caught:
        load_task(folder)
    assert caught.value.line == 4


NESTED = '[<!ENTITY a "ha"><!ENTITY b "&a;&a;">]'


@pytest.mark.parametrize(
    "before",
    [
        "<!-- <x> -->",
        '<?pi <x a="b"> ?>',
        "<!-- <!DOCTYPE r> -->\n",
        f"<!--{'x' * 200_000}-->",
        " " * 200_000,
        '<?xml-stylesheet href="<a>"?>',
        "<!DOCTYPE r>",
        HEAD,
    ],
    ids=["comment", "instruction", "document type in a comment", "long comment", "padding", "stylesheet", "another document type", "in the root"],
)
@pytest.mark.parametrize("word", ["<!DOCTYPE r", "<!doctype r", "<!DOCTYPEr", "<!DOCTYPE\n\nr\t"])
@pytest.mark.parametrize("declared", [NESTED, '[<!ENTITY b SYSTEM "file:///etc/passwd">]', "SYSTEM 'http://example.org/x.dtd' [<!ENTITY b 'x'>]"])
def test_declarations_are_found_whatever_precedes_them(before: str, word: str, declared: str, folder: Path) -> None:
    body = '<rdf:Description rdf:about="http://left.org/x"><l:p>&b;</l:p></rdf:Description></rdf:RDF>'
    put(folder / "source.rdf", f'<?xml version="1.0"?>{before}{word} {declared}>{"" if before == HEAD else HEAD}{body}')
    with pytest.raises(DataError, match=r"refers to other entities|refers to another file|not well-formed"):
        load_task(folder)


@pytest.mark.parametrize("value", ["&#38;a;", "&#x26;a;", "x&a;", "&a ;"])
def test_references_that_only_a_parser_sees(value: str, folder: Path) -> None:
    put(folder / "source.rdf", xml(doctype=f'<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "{value}">]>'))
    with pytest.raises(DataError, match=r"refers to other entities|not well-formed"):
        load_task(folder)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp037"])
def test_another_encoding_hides_nothing(encoding: str, folder: Path) -> None:
    (folder / "source.rdf").write_bytes(xml(doctype=f"<!DOCTYPE r {NESTED}>").replace("UTF-8", encoding).encode(encoding))
    with pytest.raises(DataError):
        load_task(folder)


@pytest.mark.parametrize("encoding", ["UTF-7", "UTF-16", "ISO-8859-1"])
def test_an_encoding_that_is_only_declared_hides_nothing(encoding: str, folder: Path) -> None:
    put(folder / "source.rdf", xml(doctype=f"<!DOCTYPE r {NESTED}>").replace('"UTF-8"', f'"{encoding}"'))
    with pytest.raises(DataError, match=r"refers to other entities|not well-formed"):
        load_task(folder)


def test_a_billion_laughs_are_refused_within_a_second(folder: Path) -> None:
    names = [f"e{number}" for number in range(40)]
    chain = "".join(f'<!ENTITY {name} "&{before};&{before};&{before};">' for before, name in itertools.pairwise(names))
    put(folder / "source.rdf", f'<!-- <x> --><!DOCTYPE r [<!ENTITY e0 "ha">{chain}]>{HEAD}</rdf:RDF>')
    start = time.process_time()
    with pytest.raises(DataError, match="refers to other entities"):
        load_task(folder)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "before",
    ["", "\n\n", "<!-- made by <an> editor -->\n", "<!-- <!DOCTYPE x SYSTEM 'y'> -->", '<?xml-model href="a"?>\n'],
)
def test_what_ontology_editors_write_still_loads(before: str, folder: Path) -> None:
    declared = "".join(f'    <!ENTITY {name} "http://left.org/{name}#" >\n' for name in ("owl", "xsd", "rdfs"))
    text = xml(doctype=f'{before}<!DOCTYPE rdf:RDF [\n    <!ENTITY left "http://left.org/" >\n{declared}]>\n\n')
    put(folder / "source.rdf", text.replace("http://left.org/Rome", "&left;Rome").replace("</rdf:RDF>", "<!-- <!DOCTYPE x> --></rdf:RDF>"))
    assert "http://left.org/Rome" in load_task(folder).source.entities
