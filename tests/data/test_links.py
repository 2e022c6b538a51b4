"""Known links from single files, identifiers that had to be encoded, and cells that a spreadsheet would run."""

from __future__ import annotations

import gzip
import re
import unicodedata
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.data import load_task
from engine.data.dialects import FORMULA_STARTS, defuse, restore
from engine.data.endings import SUFFIXES
from engine.data.knowledge_graph import SIDES, Side
from engine.data.links import BASE, Spelling, read_links, resolve_links, to_iri, to_uri
from engine.data.readers import RawLinks
from engine.data.readers.base import listed_counts
from engine.data.readers.rdf import FORMATS
from engine.errors import DataError
from engine.importing import Corrections, folder_material, preview
from tests.effort import examples

identifiers = st.one_of(
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30),
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20).map("http://a.org/x/".__add__),
    st.text("a% é24:", min_size=1, max_size=4).map("http://a/".__add__),
    st.tuples(st.sampled_from(SIDES), st.text("Q%512é:", min_size=1, max_size=5)).map(lambda one: f"urn:dual-amn:{one[0]}:{one[1]}"),
    st.sampled_from(["Q", "é", "%51", "2:Q", "http://a/a b", "http://a/a%20b"]),
    st.sampled_from(["_:b0", "Q90", "ne:country/XX", "Alien: Covenant", "http://a/100%", "http://a/#b#c", "http://[x", "urn:isbn:1", "=1+1", "'=1"]),
).filter(lambda text: text.strip())


@given(st.text(alphabet="'=+-@\t\r ab＝－\u200b\u2060\ufeff\u00a0\u3000", max_size=8))
def test_a_defused_cell_starts_no_formula_and_is_restored(text: str) -> None:
    trimmed = "".join(one for one in defuse(text) if one in "\t\r" or not (one.isspace() or unicodedata.category(one) == "Cf"))
    assert not trimmed.startswith(FORMULA_STARTS)
    assert restore(defuse(text)) == text


@pytest.mark.parametrize("sign", [*"=+-@", "\t=", "\r=", *"＝＋－＠﹦﹢﹣﹫"])
@pytest.mark.parametrize("before", ["", " ", "\u00a0", "\u3000", "\u200b", "\u2060\ufeff", "\u00ad ", "\u200e", "\x85", "\u3164", "\U000e0041"])
def test_nothing_unseen_hides_a_formula(before: str, sign: str) -> None:
    text = f"{before}{sign}1+1"
    assert defuse(text) == f"'{text}"
    assert restore(defuse(text)) == text


@given(identifiers, st.sampled_from(SIDES))
@settings(max_examples=examples(300), deadline=None)
def test_every_identifier_becomes_an_absolute_iri_that_an_rdf_parser_takes(identifier: str, side: Side) -> None:
    iri = to_iri(identifier, side)
    (triple,) = ox.parse(f"<{iri}> <http://a/b> <{iri}> .", format=ox.RdfFormat.N_TRIPLES)
    assert triple.subject.value == iri
    assert to_uri(identifier, side).isascii()
    ox.NamedNode(to_uri(identifier, side))


@pytest.mark.parametrize(
    ("identifier", "iri"),
    [
        ("http://dbpedia.org/resource/AT%26T", "http://dbpedia.org/resource/AT%26T"),
        ("http://zh.dbpedia.org/resource/北京", "http://zh.dbpedia.org/resource/北京"),
        ("ne:country/XX", "ne:country/XX"),
        ("http://a.org/a b", "http://a.org/a%20b"),
        ("http://a.org/100%", "http://a.org/100%25"),
        ("Q90", "urn:dual-amn:source:Q90"),
        ("_:b0", "urn:dual-amn:source:_%3Ab0"),
        ("Alien: Covenant", "urn:dual-amn:source:Alien%3A%20Covenant"),
    ],
)
def test_what_is_an_iri_stays_one(identifier: str, iri: str) -> None:
    assert to_iri(identifier, "source") == iri


def test_non_ascii_characters_of_a_uri_are_percent_encoded() -> None:
    assert to_uri("http://a.org/é", "target") == "http://a.org/%C3%A9"
    assert to_iri("Q90", "target") == f"{BASE}target:Q90"


@given(st.lists(st.tuples(identifiers, identifiers), min_size=1, max_size=8))
@settings(max_examples=examples(150), deadline=None)
def test_encoded_identifiers_are_found_again(pairs: list[tuple[str, str]]) -> None:
    known = [{pair[side] for pair in pairs} for side in (0, 1)]
    for encode in (to_iri, to_uri):
        spelt = [Spelling.of(known[at], side, encode) for at, side in enumerate(SIDES)]
        assert all(len(set(map(spelt[at], known[at]))) == len(known[at]) for at in (0, 1)), "no two are written alike"
        written = [(spelt[0](source), spelt[1](target)) for source, target in pairs]
        found = resolve_links(RawLinks(Path("x"), [one for one, _ in written], [two for _, two in written]), known[0], known[1])
        assert list(zip(found.sources, found.targets, strict=True)) == pairs


def test_what_is_in_no_graph_stays_as_it_is() -> None:
    links = RawLinks(Path("x"), ["http://a/b%20c", "'=1", "urn:dual-amn:source:x%20y"], ["u", "v", "w"])
    found = resolve_links(links, {"a"}, {"u", "v", "w"})
    assert found.sources == ["http://a/b%20c", "'=1", "x y"]
    assert found.targets == ["u", "v", "w"]


SSSOM = """#curie_map:
#  a: "http://a.org/"
#  b: http://b.org/x#
#mapping_set_id: "http://m.org/1"
subject_id\tpredicate_id\tpredicate_modifier\tobject_id\tmapping_justification
a:one\tskos:exactMatch\t\tb:1\tsemapv:LexicalMatching
a:two\tskos:broadMatch\t\tb:2\tsemapv:LexicalMatching
a:three\towl:sameAs\tNot\tb:3\tsemapv:LexicalMatching
a:four\thttp://www.w3.org/2002/07/owl#sameAs\t\thttp://c.org/4\tsemapv:LexicalMatching
"""


@pytest.mark.parametrize(
    ("name", "text", "pairs"),
    [
        ("l.csv", "source,target\na,b\nc,d\n", [("a", "b"), ("c", "d")]),
        ("l.csv", "target,source,split\nb,a,train\nd,c,test\n", [("a", "b"), ("c", "d")]),
        ("l.tsv", "# made by hand\nsource\ttarget\na\tb\n", [("a", "b")]),
        ("m.sssom.tsv", SSSOM, [("http://a.org/one", "http://b.org/x#1"), ("http://a.org/four", "http://c.org/4")]),
        ("l.nt", "<http://a/a> <http://www.w3.org/2002/07/owl#sameAs> <http://b/b> .\n", [("http://a/a", "http://b/b")]),
        ("l.ttl", "<http://a/a> <http://www.w3.org/2004/02/skos/core#exactMatch> <http://b/b> .\n", [("http://a/a", "http://b/b")]),
        ("ent_links", "a\tb\n", [("a", "b")]),
        ("pairs.txt", "a\tb\n", [("a", "b")]),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_links_of_every_format(tmp_path: Path, name: str, text: str, pairs: list[tuple[str, str]], zipped: bool) -> None:
    path = tmp_path / (f"{name}.gz" if zipped else name)
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    found = read_links(path)
    assert list(zip(found.sources, found.targets, strict=True)) == pairs


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("l.xlsx", "PK", "links are read from"),
        ("l.nt", "<http://a/a> <http://a/b> <http://a/c> .\n", "there are no owl:sameAs"),
        ("l.nt", "<http://a/a> <http://a/b>\n", "not valid RDF"),
        ("m.tsv", re.sub("(exact|close|broad)Match", "inverse", SSSOM).replace("sameAs", "differentFrom"), "no mapping in this table says"),
        ("ent_links", "a b\n", "expected 2 columns"),
        ("l.csv", "", "empty"),
    ],
)
def test_files_that_hold_no_links_are_reported_in_a_sentence(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=words):
        read_links(tmp_path / name)


def test_a_data_set_may_come_with_links_that_were_encoded(tmp_path: Path) -> None:
    (tmp_path / "kg1.csv").write_text('head,relation,tail\n"a b",r,=c\nd,r,"a b"\n', encoding="utf-8")
    (tmp_path / "kg2.csv").write_text("head,relation,tail\nhttp://x/é 1,r,http://x/2\n", encoding="utf-8")
    (tmp_path / "links.sssom.tsv").write_text(
        '#curie_map:\n#  s: "urn:dual-amn:source:"\n#  x: "http://x/"\n'
        "subject_id\tpredicate_id\tobject_id\ns:a%20b\towl:sameAs\tx:%C3%A9%201\ns:%3Dc\towl:sameAs\tx:2\n",
        encoding="utf-8",
    )
    task = load_task(tmp_path)
    links = sorted((task.source.entities[one], task.target.entities[two]) for part in (task.train_links, task.test_links) for one, two in part)
    assert links == [("=c", "http://x/2"), ("a b", "http://x/é 1")]
    assert not [finding for finding in task.findings if finding.code == "unknown-link-entities"]


SAME, MATCH = "http://www.w3.org/2002/07/owl#sameAs", "http://www.w3.org/2004/02/skos/core#exactMatch"
MAPPINGS = """#curie_map:
#  a: "http://a/"
#  b: "http://b/"
subject_id\tpredicate_id\tpredicate_modifier\tobject_id
a:1\tskos:exactMatch\t\tb:1
b:2\tskos:exactMatch\t\ta:2
a:3\towl:sameAs\t\tb:3
a:1\tskos:exactMatch\tNot\tb:2
a:1\tskos:closeMatch\t\tb:3
a:2\tskos:broadMatch\t\tb:3
a:3\tskos:broadMatch\t\tb:1
a:1\tskos:exactMatch\t\tsssom:NoTermFound
sssom:NoTermFound\tskos:exactMatch\t\tb:1
"""
STATEMENTS = f"""<http://a/1> <{SAME}> <http://b/1> .
<http://b/2> <{MATCH}> <http://a/2> .
<http://a/3> <{SAME}> <http://b/3> .
<http://a/3> <{SAME}> _:x .
<http://a/3> <http://www.w3.org/2004/02/skos/core#closeMatch> <http://b/1> .
<http://a/1> <http://www.w3.org/2000/01/rdf-schema#label> "one" .
"""
RING = "head,relation,tail\nhttp://{0}/1,r,http://{0}/2\nhttp://{0}/2,r,http://{0}/3\n"


@pytest.mark.parametrize(
    ("name", "text", "left_out", "reasons"),
    [
        (
            "links.sssom.tsv",
            MAPPINGS,
            3,
            "3 of 9 rows are used as links; left out are 2 without a counterpart (sssom:NoTermFound), 1 negated (predicate_modifier Not).",
        ),
        (
            "links.nt",
            STATEMENTS,
            2,
            "3 of 6 rows are used as links; left out are 1 with a blank node or a literal for an end, "
            "1 with http://www.w3.org/2000/01/rdf-schema#label.",
        ),
    ],
)
def test_what_is_no_link_is_counted_by_reason_and_what_is_exchanged_is_turned(
    tmp_path: Path, name: str, text: str, left_out: int, reasons: str
) -> None:
    for number, letter in ((1, "a"), (2, "b")):
        (tmp_path / f"kg{number}.csv").write_text(RING.format(letter), encoding="utf-8")
        if name.endswith(".nt"):
            triples = [line.split(",") for line in RING.format(letter).splitlines()[1:]]
            (tmp_path / f"kg{number}.nt").write_text("".join(f"<{h}> <http://r> <{t}> .\n" for h, _, t in triples), encoding="utf-8")
            (tmp_path / f"kg{number}.csv").unlink()
    (tmp_path / name).write_text(text, encoding="utf-8")
    task = load_task(tmp_path)
    links = sorted((task.source.entities[one], task.target.entities[two]) for part in (task.train_links, task.test_links) for one, two in part)
    assert links == [(f"http://a/{number}", f"http://b/{number}") for number in (1, 2, 3)]
    assert (task.source.num_entities, task.target.num_entities) == (3, 3)
    found = {finding.code: finding for finding in task.findings}
    assert found["links-left-out"].count == left_out
    assert found["links-left-out"].message == f"{name}: {reasons}"
    assert found["links-turned"].count == 1
    uploaded = {finding.code: finding.message for finding in preview(folder_material(tmp_path), Corrections()).findings}
    assert (uploaded["links-left-out"], uploaded["links-turned"]) == (found["links-left-out"].message, found["links-turned"].message)


def test_a_thousand_reasons_are_five() -> None:
    assert listed_counts({f"with p{number:03}": 1000 - number for number in range(1000)}) == (
        "1,000 with p000, 999 with p001, 998 with p002, 997 with p003, 996 with p004, 495,510 for other reasons"
    )


def test_the_message_lists_every_ending_that_is_read_and_every_one_listed_is(tmp_path: Path) -> None:
    path = tmp_path / "links.docx"
    path.write_text("x", encoding="utf-8")
    with pytest.raises(DataError) as refused:
        read_links(path)
    listed = {word.strip(",") for word in str(refused.value).split() if word.startswith(".")}
    assert listed == {*FORMATS, *SUFFIXES, ".txt"}
    for ending in listed:
        for packed in ("", ".gz"):
            with pytest.raises(DataError) as missing:
                read_links(tmp_path / f"none{ending}{packed}")
            assert "links are read from" not in str(missing.value), ending


def test_ends_in_either_form_of_an_obo_identifier_are_found() -> None:
    """OBO files have ``MP:0001``, OWL files and the mappings of SSSOM ``http://purl.obolibrary.org/obo/MP_0001``."""
    iri = "http://purl.obolibrary.org/obo/"
    links = RawLinks(Path("x"), [f"{iri}MP_0001", "MP:2", f"{iri}MP_9"], ["HP:0001", f"{iri}HP_2", "HP:9"])
    found = resolve_links(links, {"MP:0001", f"{iri}MP_2"}, {f"{iri}HP_0001", "HP:2"})
    assert list(found.sources) == ["MP:0001", f"{iri}MP_2", f"{iri}MP_9"]
    assert list(found.targets) == [f"{iri}HP_0001", "HP:2", "HP:9"]
