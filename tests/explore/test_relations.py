"""A run's relations: ranked, searched, their examples and twins, against the stored tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from engine.explore.relations import BANDS, RelationView, Setting, of_each_band
from engine.runs.view import RunView
from tests.run_fixture import MemoryRun, analysed, sample_run

FORWARD = Setting(1, "entity", "forward")


@pytest.fixture(scope="module")
def run() -> MemoryRun:
    return analysed(sample_run())


@pytest.fixture
def relations(run: MemoryRun) -> RelationView:
    return RelationView(RunView(run), run.table)


def renamed(run: MemoryRun, name: str) -> RelationView:
    """The view of a run whose first relation of the source graph has this name."""
    table = run.tables["relations"].copy()
    table.loc[(table["graph"] == "source") & (table["relation"] == 0), "name"] = name
    tables = {**run.tables, "relations": table}
    return RelationView(RunView(run), tables.__getitem__)


@pytest.mark.parametrize("setting", [FORWARD, Setting(2, "relation", "inverse")])
def test_a_ranking_is_the_stored_one(run: MemoryRun, relations: RelationView, setting: Setting) -> None:
    stored = run.tables["relation_importance"]
    rows = (stored["layer"] == setting.layer) & (stored["channel"] == setting.channel)
    ranked = relations.ranked(setting)
    assert ranked["importance"].tolist() == sorted(stored.loc[rows & (stored["direction"] == setting.direction), "importance"], reverse=True)
    assert ranked["rank"].is_monotonic_increasing
    assert set(ranked["of"]) == {int(rows.sum())}, "ranks count both directions"
    assert set(ranked["name"]) == set(run.tables["relations"]["name"])


def test_accuracy_is_shown_beside_the_relations_that_have_test_entities(run: MemoryRun, relations: RelationView) -> None:
    stored = run.tables["relation_hits"].query("role == 'any'").set_index(["graph", "relation"])
    for row in relations.ranked(FORWARD).itertuples():
        if (row.graph, row.relation) in stored.index:
            assert row.queries == stored.loc[(row.graph, row.relation), "queries"]
        else:
            assert np.isnan(row.queries)


def test_places_run_from_last_to_first(relations: RelationView) -> None:
    for _, part in relations.importance.groupby(["layer", "channel"]):
        ordered = part.sort_values("rank")["lower"]
        assert (ordered.iloc[0], ordered.iloc[-1]) == (1, 0)
        assert ordered.is_monotonic_decreasing


@pytest.mark.parametrize(("words", "names"), [("", 6), ("LIEGT", 1), ("n", 4), ("nowhere", 0), ("  ", 6)])
def test_searching(relations: RelationView, words: str, names: int) -> None:
    found = relations.search(FORWARD, words)
    assert len(found) == names
    assert found["rank"].is_monotonic_increasing


def test_searching_decodes_identifiers(run: MemoryRun) -> None:
    view = renamed(run, "http://x/property/%D9%85%D9%83%D8%A7%D9%86_Ort")
    for words in ("مكان", "%D9%85", "http://x/prop", "ort"):
        assert view.search(FORWARD, words, side="source")["relation"].tolist() == [0]


def test_filters(relations: RelationView) -> None:
    everything = relations.search(FORWARD)
    assert set(relations.search(FORWARD, side="target")["graph"]) == {"target"}
    assert len(relations.search(FORWARD, least=10)) == (everything["frequency"] >= 10).sum() > 0
    assert sum(len(relations.search(FORWARD, band=band)) for band in BANDS) == len(everything)


def test_finding_one(relations: RelationView) -> None:
    found = relations.find("nahe")
    assert found is not None
    assert (found.side, found.index) == ("target", 1)
    assert relations.find("nahe", "source") is None
    assert relations.find("../nahe") is None


def test_a_name_that_both_graphs_have_is_the_sources(run: MemoryRun) -> None:
    view = renamed(run, "nahe")
    assert view.find("nahe") == view.relations["source"][0]
    assert view.find("nahe", "target") == view.relations["target"][1]


def test_one_relation_everywhere(run: MemoryRun, relations: RelationView) -> None:
    relation = relations.relations["target"][2]
    rows = relations.everywhere(relation)
    assert len(rows) == 2 * 2 * 2
    assert set(rows["graph"]) == {"target"}
    assert set(relations.hits_of(relation)["relation"]) <= {2}


def test_twins_are_the_stored_ones(run: MemoryRun, relations: RelationView) -> None:
    for side in ("source", "target"):
        for relation in relations.relations[side]:
            stored = run.tables["relation_twins"].query("graph == @side and relation == @relation.index").sort_values("rank")
            found = relations.twins(relation)
            assert [twin.relation.index for twin in found] == stored["twin"].tolist()
            assert all(twin.relation.side != side for twin in found)
            agreed = [np.nan if twin.agreement is None else twin.agreement for twin in found]
            np.testing.assert_array_equal(agreed, stored["agreement"])


def test_examples_are_triples_of_the_relation_without_needless_repeats(run: MemoryRun, relations: RelationView) -> None:
    triples = {tuple(row) for row in run.tables["triples"].query("graph == 'source' and relation == 0")[["head", "tail"]].to_numpy().tolist()}
    found = relations.examples(relations.relations["source"][0], 8)
    pairs = [(one.head.index, one.tail.index) for one in found]
    assert len(set(pairs)) == 8
    assert set(pairs) <= triples
    assert {tail for _, tail in pairs[:4]} == {0, 1, 2, 3}, "all four countries before any twice"
    assert all(one.head.label and one.tail.label for one in found)


def test_examples_of_a_relation_with_few_or_no_triples(run: MemoryRun, relations: RelationView) -> None:
    assert len(relations.examples(relations.relations["source"][2], 8)) == 2
    tables = {**run.tables, "triples": run.tables["triples"].iloc[:0]}
    assert not RelationView(RunView(run), tables.__getitem__).examples(relations.relations["source"][2], 8)


def test_of_each_band_some() -> None:
    ranked = pd.DataFrame({"rank": range(30), "band": ["high"] * 10 + ["medium"] * 10 + ["low"] * 10})
    assert of_each_band(ranked, 2)["rank"].tolist() == [0, 1, 14, 15, 28, 29]
    assert of_each_band(ranked, 10)["rank"].tolist() == list(range(30))
    assert of_each_band(ranked.head(10), 2)["rank"].tolist() == list(range(6)), "of one band alone its first"
    assert of_each_band(ranked.head(0), 2).empty
