"""What kind of file something is, whatever it is called."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from engine.errors import DataImportError
from engine.importing.detect import sniff

NT = "<http://a> <http://p> <http://b> .\n"
XML = '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "form", "delimiter"),
    [
        ("a.csv", "a,b,c\nd,e,f\n", "table", ","),
        ("a.csv", "a;b;c\nd;e,1;f\n", "table", ";"),
        ("a.csv", 'a;b;"x, y, z, u, v"\nd;e;f\n', "table", ";"),
        ("a.csv", "a|b|c\nd|e|f\n", "table", "|"),
        ("a.csv", "a\tb\tc\nd\te\tf\n", "table", "\t"),
        ("a.tsv", "a,1\tb,2\tc,3\n", "table", "\t"),
        ("rel_triples_1", "a\tb\tc\n", "table", "\t"),
        ("graph.txt", "a b c\n", "table", ","),
        ("a.ttl", NT, "turtle", ""),
        ("a.nt", NT, "ntriples", ""),
        ("graph", NT, "ntriples", ""),
        ("graph", "@prefix a: <http://a> .\na:b a:c a:d .", "turtle", ""),
        ("a.rdf", XML, "rdfxml", ""),
        ("a.csv", XML, "rdfxml", ""),
        ("a.rdf", "<?pi <x> ?>" + XML.partition("\n")[2], "rdfxml", ""),
        ("a.nq", NT, "nquads", ""),
        ("graph", "<http://a> <http://p> <http://b> <http://g> .\n", "nquads", ""),
        ("graph", '<http://a> <http://p> "b c d" .\n<http://a> <http://p> <http://b> .\n', "ntriples", ""),
        ("a.trig", "{ <http://a> <http://p> <http://b> }\n", "trig", ""),
        ("a.jsonld", '{"@id": "http://a"}', "jsonld", ""),
        ("graph.txt", '{"id": "a", "capital": "b"}\n', "jsonl", ""),
        ("a.csv", '["a", "b", "c"]\n', "jsonl", ""),
        ("a.jsonl", '{"id": "a", "text": "' + "x" * 2**17 + '"}\n', "jsonl", ""),
        ("a.xml", '<?xml version="1.0"?>\n<!-- -->\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns"/>', "graphml", ""),
        ("a.graphml", "<!DOCTYPE graphml [ <!ENTITY a 'b'> ]><graphml/>", "graphml", ""),
        ("a.gexf", '<gexf xmlns="http://gexf.net/1.3"/>', "gexf", ""),
        ("a.jsonld", '[\n  {"@id": "http://a"}]', "jsonld", ""),
    ],
)
def test_texts(name: str, content: str, form: str, delimiter: str, zipped: bool, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content.encode()) if zipped else content.encode())
    found = sniff(path, f"{name}.gz" if zipped else name)
    assert (found.form, found.delimiter) == (form, delimiter)


def test_parquet_is_recognised_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"PAR1\0\0\0")
    assert sniff(tmp_path / "file", "a.csv").form == "parquet"


def test_databases_are_graphs_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"SQLite format 3\0")
    assert sniff(tmp_path / "file", "a.csv", "graph 1").form == "sqlite"
    with pytest.raises(DataImportError, match="is a database, which is read as a graph only"):
        sniff(tmp_path / "file", "a.csv", "links")
    (tmp_path / "file").write_bytes(b"01234567DUCK\0\0")
    assert sniff(tmp_path / "file", "a.csv", "graph 1").form == "duckdb"
    with pytest.raises(DataImportError, match="is a DuckDB database, which is read as a graph only"):
        sniff(tmp_path / "file", "a.csv", "links")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04\x14\0", "Excel workbook"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"%PDF-1.7", "a PDF"),
        (b"\x7fELF\x02", "a program"),
        (b"BZh91AY", "bzip2"),
        (b"a,b,c\n\0\0\0", "a binary file, whatever its name says"),
        (b"<!DOCTYPE html>\n<html><body>Sign in, please</body></html>", "is a web page and not a table"),
        (b'<?xml version="1.0"?>\n<!-- made by hand -->\n<html xmlns="http://www.w3.org/1999/xhtml"/>', "is a web page"),
        (b"\n<HTML lang=en><head>", "is a web page"),
        (b'{"@context": {}, "@id": "a"}', "is JSON in one piece; of JSON are read JSON lines"),
        (b'{\n"head": "a", "tail": "b"}\n', "is JSON in one piece"),
        (b'[["a", "b", "c"],\n ["d", "e", "f"]]', "is JSON"),
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (gzip.compress(b"a,b,c\n" * 1000, mtime=0)[:30], "damaged"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataImportError, match=words) as caught:
        sniff(tmp_path / "file", "graph.csv")
    assert str(caught.value).startswith("graph.csv")
    assert "\n" not in str(caught.value)
