"""Stored lists give what a comparison with all candidates gives, and need none where they are enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from engine.data.knowledge_graph import SIDES
from engine.errors import EntityError
from engine.runs.view import RunView
from engine.serving.stored import StoredLists
from tests.run_fixture import MemoryRun, assemble, graph_tables, sample_run

STORED = 5


def tied_run() -> MemoryRun:
    """Entities in pairs with equal embeddings: every score occurs at least twice."""
    draw = np.random.default_rng(0)
    rows = np.repeat(draw.standard_normal((12, 8)), 2, axis=0).astype(np.float32)
    tables = [graph_tables(side, [f"{side}:{i}" for i in range(24)], [""] * 24, [(i, 0, (i + 1) % 24) for i in range(24)], ["r"]) for side in SIDES]
    return assemble(tables[0], tables[1], [(0, 0, "train"), (1, 1, "test")], (rows, rows + np.float32(0.01)))


@pytest.mark.parametrize("make", [sample_run, tied_run])
def test_the_numbers_are_those_of_a_complete_comparison(make: type[MemoryRun]) -> None:
    view = RunView(make())
    lists = StoredLists(view)
    for side in SIDES:
        for index in range(len(view.graphs[side])):
            for top in (1, 3, STORED, STORED + 3, 1000):
                assert lists.matches(side, index, top) == view.matches(side, index, top)


def test_fewer_matches_than_are_stored_need_no_pass_over_the_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    view = RunView(sample_run())
    lists = StoredLists(view)

    def refuse(*arguments: object) -> None:
        raise AssertionError("a pass over all candidates")

    monkeypatch.setattr(view, "_scored", refuse)
    for side in SIDES:
        assert all(len(lists.matches(side, index, STORED - 1)) == STORED - 1 for index in range(len(view.graphs[side])))


def test_a_list_that_holds_every_candidate_is_enough_for_any_number() -> None:
    run = sample_run()
    matches = run.tables["matches"]
    whole = pd.concat([matches[matches["graph"] != "source"], complete(run)], ignore_index=True)
    view = RunView(replace(run, tables={**run.tables, "matches": whole}))
    assert StoredLists(view).matches("source", 3, 1000) == view.matches("source", 3, 1000)


def complete(run: MemoryRun) -> pd.DataFrame:
    """Every target entity in the list of every source entity."""
    sizes = [len(run.tensors["embeddings"][side]) for side in SIDES]
    return pd.DataFrame(
        {"graph": "source", "entity": np.repeat(np.arange(sizes[0]), sizes[1]), "rank": 1, "match": np.tile(np.arange(sizes[1]), sizes[0])}
    ).assign(cosine=0.0, csls=0.0)


def test_test_entities_and_approximate_searches_are_compared_with_all_candidates() -> None:
    run = sample_run()
    approximate = replace(run, manifest={**run.manifest, "config": {"search": {"index": "faiss"}}})
    spoilt = run.tables["matches"].assign(match=0)
    for made, pool in ((run, "test"), (approximate, "all")):
        view = RunView(replace(made, tables={**run.tables, "matches": spoilt}))
        index = int(run.tables["links"].query("role == 'test'")["source"].iloc[0])
        assert StoredLists(view).matches("source", index, 3, pool) == view.matches("source", index, 3, pool)  # type: ignore[arg-type]


def test_entities_of_which_nothing_is_known_have_no_match() -> None:
    run = sample_run()
    rows = run.tensors["embeddings"]["source"].copy()
    rows[5] = 0
    matches = run.tables["matches"]
    without = matches[(matches["graph"] != "source") | (matches["entity"] != 5)]
    view = RunView(
        replace(run, tables={**run.tables, "matches": without}, tensors={**run.tensors, "embeddings": {**run.tensors["embeddings"], "source": rows}})
    )
    assert StoredLists(view).matches("source", 5, 3) == []


def test_an_unknown_entity_is_refused() -> None:
    with pytest.raises(EntityError):
        StoredLists(RunView(sample_run())).matches("source", 10_000, 3)
