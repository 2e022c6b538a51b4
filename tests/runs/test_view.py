"""Finding entities and scoring pairs in a finished run."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EntityError, RunDamagedError
from engine.explanation import resolve_pair
from engine.runs.entities import FoldedTexts, folded_label, short_id
from engine.runs.view import RunView
from tests.run_fixture import BLANK_ENDS, HOSTILE_LABELS, MemoryRun, assemble, blank_ended_run, graph_tables, sample_run


@pytest.fixture(scope="module")
def view() -> RunView:
    return RunView(sample_run())


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("http://zh.dbpedia.org/resource/AC/DC", "AC/DC"),
        ("http://fr.dbpedia.org/resource/Beyonc%C3%A9", "Beyoncé"),
        ("https://sws.geonames.org/2921044/", "2921044"),
        ("http://example.org/onto#Thing", "Thing"),
        ("cldr:territory/DE", "DE"),
        ("plain", "plain"),
        ("東京?#1", "東京?#1"),
        ("東京/駅#2", "東京/駅#2"),
        ("a/b", "a/b"),
        ("http://one.example/page#1", "page#1"),
        ("http://one.example/wiki?title=A/B#C", "wiki?title=A/B#C"),
        ("http://one.example/q?id=1", "q?id=1"),
        ("urn:isbn:978", "urn:isbn:978"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_short_id(uri: str, expected: str) -> None:
    assert short_id(uri) == expected


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("osterreich", "Österreich"),
        ("STRASSE", "Straße"),
        ("malmo", "Malmø"),
        ("ＡＢＣ", "abc"),
        ("new york", "New_York"),
        ("Αθηνα", "Αθήνα"),
        ("lodz", "Łódź"),
    ],
)
def test_normalise_tolerates_what_people_type(typed: str, stored: str) -> None:
    assert folded_label(typed) == folded_label(stored)


def test_normalise_keeps_letters_of_other_scripts_apart() -> None:
    assert folded_label("が") != folded_label("か")
    assert folded_label("कि") != folded_label("क")


@given(st.text(max_size=50))
def test_normalise_is_idempotent_and_ignores_space(text: str) -> None:
    once = folded_label(text)
    assert folded_label(once) == once
    assert folded_label(f"  {text}\n") == once


def test_search_puts_exact_then_prefix_then_inner_hits_first() -> None:
    labels = ["Upper Bern", "Bern", "Bernau", "Hibernia", "", "(Bern)"]
    uris = ["u:0", "u:1", "u:2", "u:3", "http://x/resource/Bern_station", "u:5"]
    triples = [(3, 0, 3)] * 9
    graph = graph_tables("source", uris, labels, triples, ["r"])
    vectors = np.eye(6, dtype=np.float32)
    found = RunView(assemble(graph, graph_tables("target", ["t:0"] * 1, ["Bern"], [], []), [], (vectors, vectors[:1]))).search("bern", "source")
    assert [entity.uri for entity in found] == ["u:1", "u:2", "u:5", "u:0", "u:3", "http://x/resource/Bern_station"]


def test_search_looks_into_both_graphs_and_keeps_the_limit(view: RunView) -> None:
    found = view.search("germany")
    assert {entity.side for entity in found} == {"source", "target"}
    assert len(view.search("t", limit=7)) == 7


def test_search_finds_exact_uris_first(view: RunView) -> None:
    assert view.search("http://two.example/q/Q1")[0].uri == "http://two.example/q/Q1"


@pytest.mark.parametrize("text", ["", "   ", "\u0301", "no such thing at all", "\0", "x" * 100_000])
def test_search_without_hits_is_empty_or_harmless(view: RunView, text: str) -> None:
    assert all(entity.label == HOSTILE_LABELS[4] for entity in view.search(text))


@given(text=st.text(max_size=20))
def test_search_never_fails(text: str) -> None:
    assert len(SHARED.search(text, limit=5)) <= 5


SHARED = RunView(sample_run())


def test_search_is_fast_on_forty_thousand_entities() -> None:
    names = [f"Entity number {i} of the large graph" for i in range(20_000)]
    tables = [graph_tables(side, [f"http://{side}.example/resource/{i}" for i in range(20_000)], names, [], []) for side in ("source", "target")]
    run = sample_run()
    large = MemoryRun(run.manifest, None, {"entities": pd.concat([table["entities"] for table in tables])}, {})
    view = RunView(large)
    view.search("first")  # prepares the texts
    start = time.process_time()
    found = view.search("number 19")
    assert len(found) == 50
    assert time.process_time() - start < 0.5


def test_resolve_by_uri_label_and_id(view: RunView) -> None:
    assert view.resolve("http://one.example/resource/Entity_3").label == "Italy"
    assert view.resolve("city 5").uri == "http://one.example/resource/Entity_5"
    assert view.resolve("entity 2").label == "Österreich"
    assert view.resolve(" Q7 ").side == "target"


def test_resolve_names_the_candidates_of_an_ambiguous_text(view: RunView) -> None:
    with pytest.raises(EntityError, match=r"'Germany' names 2 entities; use one of 'source:http") as caught:
        view.resolve("Germany")
    assert len(caught.value.candidates) == 2
    assert [view.resolve(candidate).label for candidate in caught.value.candidates] == ["Germany", "Germany"]
    assert view.resolve("Germany", side="target").side == "target"


def test_resolve_suggests_what_is_near(view: RunView) -> None:
    with pytest.raises(EntityError, match="neither graph has an entity 'Germny'; similar: 'Germany'") as caught:
        view.resolve("Germny")
    assert caught.value.candidates
    with pytest.raises(EntityError, match="the source graph does not have"):
        view.resolve("Q7", side="source")
    with pytest.raises(EntityError):
        view.resolve("")


def test_error_messages_stay_short_for_long_labels(view: RunView) -> None:
    with pytest.raises(EntityError) as caught:
        view.resolve("x" * 4999)
    assert len(str(caught.value)) < 1500


def brute_force(run: MemoryRun, side: str, index: int, pool: str) -> dict[int, float]:
    """CSLS from its definition, in float64."""
    across = "target" if side == "source" else "source"
    own, theirs = (run.tensors["embeddings"][one].astype(float) for one in (side, across))
    links = run.tables["links"]
    members = {
        one: np.arange(len(run.tensors["embeddings"][one])) if pool == "all" else links[links["role"] == "test"][one].to_numpy()
        for one in (side, across)
    }
    cosines = own @ theirs.T
    r_own = np.sort(cosines[index, members[across]])[-10:].mean()
    r_theirs = np.sort(cosines[members[side]][:, members[across]], axis=0)[-10:].mean(axis=0)
    return {int(c): 2 * cosines[index, c] - r_own - r for c, r in zip(members[across], r_theirs, strict=True)}


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("pool", ["all", "test"])
def test_matches_are_the_best_by_definition(view: RunView, side: str, pool: str) -> None:
    index = 20 if side == "source" else next(iter(view.counterparts("source", 20)))
    expected = brute_force(view.run, side, index, pool)  # type: ignore[arg-type]
    found = view.matches(side, index, top=6, pool=pool)  # type: ignore[arg-type]
    best = sorted(expected, key=lambda candidate: -expected[candidate])[:6]
    assert [match.entity for match in found] == best
    assert [match.rank for match in found] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose([match.csls for match in found], [expected[candidate] for candidate in best], atol=1e-5)


def test_matches_and_pair_show_the_same_numbers(view: RunView) -> None:
    for match in view.matches("source", 20, top=5):
        pair = view.pair(20, match.entity)
        assert (pair.cosine, pair.csls, pair.rank_from_source, pair.verdict) == (match.cosine, match.csls, match.rank, match.verdict)
        back = {found.entity: found for found in view.matches("target", match.entity, top=100)}[20]
        assert (back.cosine, back.csls, back.rank) == (match.cosine, match.csls, pair.rank_from_target)


def test_scores_equal_the_stored_matches(view: RunView) -> None:
    table = view.run.table("matches")
    stored = table[(table["graph"] == "target") & (table["entity"] == 3)]
    found = view.matches("target", 3, top=5)
    assert [match.entity for match in found] == stored["match"].tolist()
    np.testing.assert_allclose([match.csls for match in found], stored["csls"], atol=1e-5)


def test_verdicts_of_all_kinds(view: RunView) -> None:
    def counterpart(index: int) -> int:
        return next(iter(view.counterparts("source", index)))

    verdicts = [view.verdict(index, counterpart(index)) for index in (0, 12, 16, 46)]
    assert verdicts == ["seed link", "known validation link", "known test link", "probable pair"]
    assert view.verdict(0, counterpart(16)) == "contradicts a known link"
    assert view.verdict(60, counterpart(16)) == "contradicts a known link"
    linked = {target for index in range(64) for target in view.counterparts("source", index)}
    free = next(index for index in range(84) if index not in linked)
    assert view.verdict(60, free) == "unknown"
    assert view.verdict(46, free) == "unknown", "a probable pair counts neither way"


def test_only_members_of_the_pool_can_be_asked_about_within_it(view: RunView) -> None:
    with pytest.raises(EntityError, match="is not a test entity"):
        view.matches("source", 0, pool="test")
    assert view.pool_size("target", "test") == 30
    assert view.pool_size("target", "all") == 84


@pytest.mark.parametrize("index", [-1, 64, 10**12])
def test_unknown_indices_are_reported(view: RunView, index: int) -> None:
    with pytest.raises(EntityError, match="has no entity"):
        view.matches("source", index)


def test_ties_never_flatter_and_keep_their_order() -> None:
    same = np.ones((4, 3), dtype=np.float32)
    graph = [graph_tables(side, [f"{side}:{i}" for i in range(4)], [""] * 4, [], []) for side in ("source", "target")]
    view = RunView(assemble(graph[0], graph[1], [(0, 0, "train")], (same, same)))
    found = view.matches("source", 1, top=2)
    assert [(match.entity, match.rank) for match in found] == [(0, 4), (1, 4)]
    assert view.matches("source", 1, top=0) == []
    assert len(view.matches("source", 1, top=99)) == 4


@pytest.mark.parametrize(("weight", "ranks"), [(None, [1, 2]), (1.0, [1, 2]), (4.0, [2, 2])])
def test_what_counts_as_a_tie_grows_with_the_scores_as_in_the_evaluation(weight: float | None, ranks: list[int]) -> None:
    """Two candidates that differ by 8e-6: more than the rounding of cosines, less than that of s + 4 l."""
    rows = np.ones((2, 3), dtype=np.float32)
    graph = [graph_tables(side, [f"{side}:{i}" for i in range(2)], [""] * 2, [], []) for side in ("source", "target")]
    literal = {} if weight is None else {"literal": {"encoder": "vectors:x", "weight": weight}}
    run = assemble(graph[0], graph[1], [(0, 0, "train")], (rows, rows), manifest=literal)
    terms = {**run.tensors["hubness"], "target_all": np.array([0.0, 8e-6], dtype=np.float32)}
    unit = np.eye(3, dtype=np.float32)[[0, 0]]
    view = RunView(MemoryRun(run.manifest, None, run.tables, {**run.tensors, "hubness": terms, "names": {"source": unit, "target": unit}}))
    assert [(match.entity, match.rank) for match in view.matches("source", 0)] == [(0, ranks[0]), (1, ranks[1])]
    assert view.pair(0, 0).rank_from_source == ranks[0]


def test_a_gap_in_the_entity_table_is_damage() -> None:
    run = sample_run()
    entities = run.tables["entities"]
    broken = MemoryRun(run.manifest, None, {**run.tables, "entities": entities[entities["entity"] != 3]}, run.tensors)
    with pytest.raises(RunDamagedError, match="without gaps"):
        RunView(broken).search("germany")


def test_attributes_keep_their_order_and_belong_to_one_entity(view: RunView) -> None:
    assert view.attributes("source", 0) == [("population", "83,000,000"), ("motto", HOSTILE_LABELS[1])]
    assert view.attributes("source", 1) == []
    target = next(iter(view.counterparts("source", 0)))
    assert view.attributes("target", target) == [("Einwohner", "83 Mio.")]
    with pytest.raises(EntityError):
        view.attributes("source", 64)


def test_well_connected_entities_have_names_and_come_in_order(view: RunView) -> None:
    found = view.well_connected("source", 5)
    assert all(entity.label for entity in found)
    assert [entity.degree for entity in found] == sorted((entity.degree for entity in found), reverse=True)
    assert {entity.label for entity in found} >= {"Germany", "France"}


@pytest.mark.parametrize("uri", ["http://x.org/Troms%C3%B8", "http://x.org/Tromsø"])
@pytest.mark.parametrize("text", ["Troms%C3%B8", "troms%c3%b8", "Tromsø", "Tromso"])
def test_the_end_of_an_address_is_found_encoded_or_not(uri: str, text: str) -> None:
    run = sample_run()
    entities = run.tables["entities"].copy()
    row = entities.index[entities["graph"] == "source"][3]
    entities.loc[row, ["uri", "label"]] = [uri, ""]
    view = RunView(replace(run, tables={**run.tables, "entities": entities}))
    assert view.resolve(text).uri == uri
    assert uri in [entity.uri for entity in view.search(text)]
    assert view.graphs["source"].fitting(text)[3]


@pytest.mark.parametrize("identifier", BLANK_ENDS)
def test_an_identifier_is_found_as_it_is_with_the_blanks_at_its_ends(identifier: str) -> None:
    view = RunView(blank_ended_run())
    for side in ("source", "target"):
        assert view.resolve(identifier, side).uri == identifier
        assert view.resolve(f"{side}:{identifier}").uri == identifier
        assert view.search(identifier, side)[0].uri == identifier
        assert view.identified(identifier, side).uri == identifier
    source, target = resolve_pair(view, identifier, f"target:{identifier}")
    assert (view.entity("source", source).uri, view.entity("target", target).uri) == (identifier, identifier)


def test_what_is_stored_is_never_found_by_likeness(view: RunView) -> None:
    blanks = RunView(blank_ended_run())
    for text in ("Bonn  ", "bonn", "source:Bonn"):
        with pytest.raises(EntityError, match="the source graph has no entity with the identifier"):
            blanks.identified(text, "source")
    with pytest.raises(EntityError, match=r"'bonn' names 5 entities; use one of 'source:Bonn', 'source:Bonn ', "):
        blanks.resolve("bonn", "source")
    assert view.resolve(" http://one.example/resource/entity_3 ").index == 3, "blanks and case do not count where nothing has this identifier"


def test_an_exact_pair_goes_before_one_that_is_like_it() -> None:
    run = blank_ended_run()
    entities = run.tables["entities"].copy()
    entities.loc[(entities["graph"] == "source") & entities["entity"].isin([21, 22, 23, 24]), "uri"] = ["s1", "s2", "s3", "s4"]
    view = RunView(replace(run, tables={**run.tables, "entities": entities}))
    assert resolve_pair(view, "Bonn ", "s1") == (21, 21), "turned: only the target graph has 'Bonn ', and the source graph only 'Bonn'"


@pytest.mark.parametrize(
    ("uri", "typed"),
    [
        ("http://x.org/Troms%C3%B8", "Troms%C3%B8"),
        ("http://x.org/Troms%C3%B8", "Troms%c3%b8"),
        ("http://x.org/Troms%C3%B8", "http://x.org/Troms%C3%B8"),
        ("http://x.org/Troms%C3%B8", "http://x.org/Tromsø"),
        ("http://x.org/Troms%C3%B8", "tromsø"),
        ("http://x.org/Tromsø", "Troms%C3%B8"),
        ("http://x.org/Caf\u00e9", "Cafe%CC%81"),
        ("http://x.org/Cafe\u0301", "Caf%C3%A9"),
        ("http://x.org/a%2520b", "a%2520b"),
        ("100%25 pure", "100%25 pure"),
        ("100% pure", "100% pure"),
        ("http://x.org/a%b", "a%b"),
    ],
)
def test_percent_encoded_identifiers_are_found_in_either_form(uri: str, typed: str) -> None:
    run = sample_run()
    entities = run.tables["entities"].copy()
    entities.loc[(entities["graph"] == "source") & (entities["entity"] == 20), ["uri", "label"]] = [uri, ""]
    view = RunView(replace(run, tables={**run.tables, "entities": entities}))
    assert [entity.index for entity in view.search(typed, "source")] == [20]
    assert view.resolve(typed, "source").index == 20
    assert view.graphs["source"].fitting(typed).nonzero()[0].tolist() == [20]


def test_a_part_of_an_encoded_identifier_is_found_while_it_is_typed() -> None:
    run = sample_run()
    entities = run.tables["entities"].copy()
    entities.loc[entities["entity"] == 20, ["uri", "label"]] = ["http://x.org/Troms%C3%B8", ""]
    view = RunView(replace(run, tables={**run.tables, "entities": entities}))
    for length in range(len("Troms"), len("Troms%C3%B8") + 1):
        assert [entity.index for entity in view.search("Troms%C3%B8"[:length], "source")] == [20]
    assert len(view.search("%20", "source")) == 0, "a decoded blank is no query for everything"


@given(st.lists(st.text("ab é北\U0001f600\ud800", max_size=6), max_size=12), st.text("ab é北\U0001f600\ud800", max_size=3))
def test_texts_that_are_joined_are_searched_as_one_by_one(texts: list[str], words: str) -> None:
    joined = FoldedTexts(texts)
    assert list(joined.holding(words)) == [position for position, text in enumerate(texts) if words in text]
    assert list(joined.equal(words)) == [position for position, text in enumerate(texts) if text and text == words]
