"""Files of links in every form, changed: links that can be written and read again, or one sentence that names the file."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.links import read_links
from engine.data.readers import RawLinks
from engine.data.readers.tables import read_apart, read_link_parts
from engine.errors import EngineError
from tests.data.writers import as_csv, as_parquet, as_tsv, same_as, small_sample, tabbed
from tests.fuzz.effort import cases, in_time
from tests.fuzz.mutators import HARMLESS, Change, changed, changes
from tests.fuzz.oracles import a_folder, assert_sentence

LINKS = small_sample().links
OWL = "http://www.w3.org/2002/07/owl#"
SSSOM = """#mapping_set_id: http://x.org/set
#curie_map:
#  A: "http://a.org/A_"
#  B: http://b.org/B_
#license: "none"
subject_id\tpredicate_id\tobject_id\tconfidence\tpredicate_modifier
A:1\tskos:exactMatch\tB:1\t0.9\t
A:2\towl:sameAs\tB:2\t\t
A:3\tskos:broadMatch\tB:1\t0.5\t
A:4\tskos:exactMatch\tsssom:NoTermFound\t1\t
A:5\tskos:exactMatch\tB:5\t0.1\tNot
"""
ALIGNMENT = """<?xml version="1.0" encoding="utf-8"?>
<rdf:RDF xmlns="http://knowledgeweb.semanticweb.org/heterogeneity/alignment" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<Alignment><xml>yes</xml><level>0</level><type>11</type>
<map><Cell><entity1 rdf:resource="http://a/1"/><entity2 rdf:resource="http://b/1"/><relation>=</relation><measure>0.75</measure></Cell></map>
<map><Cell><entity1 rdf:resource="http://a/2"/><entity2 rdf:resource="http://b/2"/><relation>&lt;</relation><measure>1.0</measure></Cell></map>
<map><Cell><entity1 rdf:resource="http://a/3"/><entity2 rdf:resource="http://b/3"/><relation>%</relation></Cell></map>
</Alignment></rdf:RDF>
"""
TURTLE = f"""@prefix owl: <{OWL}> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<http://a/1> owl:sameAs <http://b/1> ; skos:broadMatch <http://b/2> . <http://a/2> skos:exactMatch <http://b/2> , "no" .
"""
SPLIT = [(*link, ("train", "valid", "test")[number % 3]) for number, link in enumerate(LINKS)]
APART = [("http://a/1", "skos:broadMatch", "http://b/1", "0.5"), ("http://a/2", "skos:closeMatch", "http://b/2", "")]
FILES: dict[str, tuple[str, bytes]] = {
    "csv": ("links.csv", as_csv(("source", "target"), LINKS).encode()),
    "split": ("links.csv", as_csv(("source", "target", "split"), SPLIT).encode()),
    "confidence": ("links.csv", as_csv(("source", "target", "confidence"), [(*link, "0.5") for link in LINKS]).encode()),
    "tsv": ("links.tsv", as_tsv(("source", "target"), LINKS).encode()),
    "openea": ("ent_links", tabbed(LINKS).encode()),
    "parquet": ("links.parquet", as_parquet(("source", "target"), LINKS)),
    "sssom": ("links.sssom.tsv", SSSOM.encode()),
    "sameAs": ("links.nt", same_as(LINKS).encode()),
    "turtle": ("links.ttl", TURTLE.encode()),
    "alignment": ("links.rdf", ALIGNMENT.encode()),
    "apart": ("apart.csv", as_csv(("source", "predicate", "target", "confidence"), APART).encode()),
}
every_form = pytest.mark.parametrize("form", FILES)


def read(path: Path, form: str) -> RawLinks:
    return read_apart(path) if form == "apart" else read_links(path)


def pairs(links: RawLinks) -> list[tuple[str, str]]:
    return sorted(zip(links.sources, links.targets, strict=True))


def said(links: RawLinks) -> tuple[object, ...]:
    """Everything that a file says of links; a confidence that is missing is -1."""
    given = [-1.0 if math.isnan(one) else one for one in links.confidences] or [-1.0] * len(links.sources)
    apart = zip(links.apart.sources, links.apart.targets, links.apart.relations, strict=True)
    return sorted(zip(links.sources, links.targets, given, strict=True)), sorted(apart), dict(links.left_out)


def assert_round_trip(links: RawLinks, folder: Path) -> None:
    """As CSV and Parquet."""
    found = pairs(links)
    for name in {end for pair in found for end in pair} | {*links.apart.sources, *links.apart.targets}:
        assert name.strip(), repr(name)
        assert name.encode(), repr(name)
        assert "\0" not in name, repr(name)
    for one in links.confidences:
        assert math.isnan(one) or 0 <= one <= 1, one
    if found:
        (folder / "again.csv").write_text(as_csv(("source", "target"), found), encoding="utf-8", newline="")
        (folder / "again.parquet").write_bytes(as_parquet(("source", "target"), found))
        assert pairs(read_links(folder / "again.csv")) == found
        assert pairs(read_links(folder / "again.parquet")) == found


@every_form
@pytest.mark.timeout(1800)
@cases(15)
@given(several=changes(), other=st.sampled_from(sorted(FILES)))
def test_changed_links(form: str, several: list[Change], other: str) -> None:
    name, content = FILES[form]
    with a_folder() as folder:
        path = folder / name
        path.write_bytes(changed(content, several, FILES[other][1]))
        try:
            with in_time():
                links = read(path, form)
        except EngineError as error:
            assert_sentence(error, str(path))
            return
        assert said(read(path, form)) == said(links)
        assert_round_trip(links, folder)
        if form in ("csv", "split", "confidence", "tsv", "sssom"):
            parts = read_link_parts(path, "all").values()
            assert sorted(pair for part in parts for pair in pairs(part)) == pairs(links)


@every_form
@pytest.mark.parametrize("harmless", HARMLESS)
def test_what_changes_nothing(form: str, harmless: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.skip("no text")
    name, content = FILES[form]
    (tmp_path / name).write_bytes(content)
    expected = said(read(tmp_path / name, form))
    (tmp_path / name).write_bytes(HARMLESS[harmless](content))
    assert said(read(tmp_path / name, form)) == expected
