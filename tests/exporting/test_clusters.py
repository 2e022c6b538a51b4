"""Runs between several sources combined: clusters, and the pairs that give way to stronger ones."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.main import main
from engine.errors import ConfigError, ExportError
from engine.exporting import Clusters, combined
from engine.exporting.clusters import MatchEdge, joined_edges
from engine.exporting.reviewed import DecidedPair
from engine.runs.view import RunView
from tests.run_fixture import MemoryRun, assemble, graph_tables, write_run

SIZE = 6
NAMES = ("A", "B", "C")


def uris(source: int, version: str = "") -> list[str]:
    return [f"http://{NAMES[source].lower()}.org/{number}{version if number == 0 else ''}" for number in range(SIZE)]


def run_between(own: int, theirs: int, links: Sequence[tuple[int, int, str]], matches: Sequence[int], version: str = "") -> MemoryRun:
    """A run between two of three sources of six entities; ``matches``: the target that each source entity is nearest to."""
    tables = [
        graph_tables("source", uris(own, version), [f"{NAMES[own]} {number}" for number in range(SIZE)], [(0, 0, 1)], ["r"]),
        graph_tables("target", uris(theirs), [f"{NAMES[theirs]} {number}" for number in range(SIZE)], [(0, 0, 1)], ["r"]),
    ]
    far = np.eye(SIZE, dtype=np.float32)
    near = far[list(matches)] + 0.01 * np.arange(SIZE, dtype=np.float32)[:, None]
    run = assemble(*tables, links, (near, far))
    data = {**run.manifest["data"], "source": {"name": NAMES[own]}, "target": {"name": NAMES[theirs]}}
    manifest = {
        **run.manifest,
        "run_id": "r",
        "dataset": f"{NAMES[own]}{NAMES[theirs]}",
        "data": data,
        "files": {f"{one}.parquet": {} for one in run.tables},
    }
    return replace(run, manifest=manifest)


STRAIGHT = tuple(range(SIZE))
SEEDS = [(0, 0, "train"), (1, 1, "train")]


def clusters_of(*runs: MemoryRun, reviewed: Sequence[DecidedPair] = (), **options: Any) -> Clusters:
    return combined([(RunView(run), reviewed) for run in runs], **options)


def test_matches_of_three_sources_become_clusters() -> None:
    found = clusters_of(run_between(0, 1, SEEDS, STRAIGHT), run_between(1, 2, SEEDS, STRAIGHT), run_between(0, 2, SEEDS, STRAIGHT))
    assert [one.name for one in found.sources] == list(NAMES)
    assert sorted(map(list, found.members)) == [[(0, number), (1, number), (2, number)] for number in range(SIZE)]
    assert not found.left_out
    table = found.table()
    assert set(table["confirmed"]) == set(table["possible"]) == {3}
    assert table["entity"].nunique() == 3 * SIZE
    assert "6 clusters of 18 entities (6 over 3 sources); no contradictions." in found.sentence()


def test_what_two_runs_imply_is_in_a_cluster_without_a_run_of_its_own() -> None:
    found = clusters_of(run_between(0, 1, SEEDS, STRAIGHT), run_between(1, 2, SEEDS, STRAIGHT))
    assert [(0, 3), (1, 3), (2, 3)] in [list(one) for one in found.members]
    assert set(found.table()["possible"]) == {2}
    weakest = found.table().groupby("cluster")["weakest"].first()
    assert (weakest == 1).sum() == 2, "two clusters of known links alone; predictions of these runs have no probability"
    assert weakest.isna().sum() == 4


def test_a_weaker_pair_that_would_join_two_entities_of_a_source_is_left_out_and_listed() -> None:
    """A0 = B0 = C0 by known links, and the third run says A0 = C1."""
    third = run_between(0, 2, [(3, 3, "train")], (1, 0, 2, 3, 4, 5))
    found = clusters_of(run_between(0, 1, SEEDS, STRAIGHT), run_between(1, 2, SEEDS, STRAIGHT), third)
    assert [(0, 0), (1, 0), (2, 0)] in [list(one) for one in found.members]
    conflicts = found.conflicts()
    assert len(found.left_out) == 2
    first = conflicts[conflicts["entity"] == uris(0)[0]].iloc[0]
    assert (first["run"], first["other_entity"]) == ("AC/r", uris(2)[1])
    assert any(name in first["reason"] for name in ("of A would be in one cluster", "of C would be in one cluster"))
    assert "2 pairs left out" in found.sentence()


def test_reviewers_keep_entities_apart() -> None:
    rejected = [DecidedPair(uris(1)[4], uris(2)[4], False, ("Ann",))]
    runs = [(RunView(run_between(0, 1, SEEDS, STRAIGHT)), ()), (RunView(run_between(1, 2, SEEDS, STRAIGHT)), rejected)]
    third = (RunView(run_between(0, 2, SEEDS, STRAIGHT)), ())
    found = combined([*runs, third])
    together = [set(one) for one in found.members]
    assert not any({(1, 4), (2, 4)} <= one for one in together)
    assert any("reviewers rejected" in reason for reason in found.conflicts()["reason"])


def test_known_links_may_give_an_entity_several_counterparts() -> None:
    several = [(0, 0, "train"), (0, 1, "train")]
    found = clusters_of(run_between(0, 1, several, STRAIGHT), run_between(1, 2, [(4, 4, "train")], STRAIGHT))
    assert any({(1, 0), (1, 1)} <= set(one) for one in found.members)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (lambda: [run_between(0, 1, SEEDS, STRAIGHT)], "two runs or more"),
        (lambda: [run_between(0, 1, SEEDS, STRAIGHT)] * 2, "align the same two graphs|two runs or more"),
        (
            lambda: [run_between(0, 1, SEEDS, STRAIGHT), run_between(0, 2, SEEDS, STRAIGHT, "x")],
            "different versions of 'A': 6 and 6 entities, 5 of them",
        ),
    ],
)
def test_runs_that_do_not_fit_are_refused(runs: Any, message: str) -> None:
    made = runs()
    if len(made) == 2 and made[0] is made[1]:
        made[1] = replace(made[0], manifest={**made[0].manifest, "run_id": "other"})
    with pytest.raises(ConfigError, match=message):
        clusters_of(*made)
    with pytest.raises(ConfigError, match=r"two runs or more|align the same two graphs"):
        clusters_of(*made[:1], *made[:1])


def test_each_run_may_have_a_minimum_probability_of_its_own() -> None:
    runs = []
    for own in (0, 1):
        run = run_between(own, own + 1, SEEDS, STRAIGHT)
        rows = [("source", number, number, 0.7) for number in range(2, SIZE)]
        tables = {**run.tables, "probabilities": pd.DataFrame(rows, columns=["graph", "entity", "match", "probability"])}
        files = {f"{one}.parquet": {} for one in tables}
        runs.append(replace(run, tables=tables, manifest={**run.manifest, "files": files}))
    both, first = clusters_of(*runs, least_probability=0.5), clusters_of(*runs, least_probability=[0.5, 0.9])
    assert Counter(map(len, both.members)) == {3: SIZE}
    assert Counter(map(len, first.members)) == {3: len(SEEDS), 2: SIZE - len(SEEDS)}


def test_the_suggested_minimum_is_that_of_each_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [write_run(run_between(own, own + 1, SEEDS, STRAIGHT), tmp_path / "models", f"d{own}", "r") for own in (0, 1)]
    words = ["clusters", *runs, "--models", str(tmp_path / "models"), "--output", str(tmp_path / "c.csv")]
    assert main([*words, "--min-probability", "suggested"]) == 2
    assert "no threshold can be suggested" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*words, "--min-probability", "high"])
    assert "or 'suggested'; got 'high'" in capsys.readouterr().err


def test_a_minimum_probability_needs_probabilities() -> None:
    with pytest.raises(ExportError, match="no calibrated probabilities"):
        clusters_of(run_between(0, 1, SEEDS, STRAIGHT), run_between(1, 2, SEEDS, STRAIGHT), least_probability=0.5)


nodes = st.tuples(st.integers(0, 2), st.integers(0, 3))
pairs = st.tuples(nodes, nodes).filter(lambda pair: pair[0][0] != pair[1][0])


@given(st.lists(st.tuples(pairs, st.floats(0, 1)), max_size=25), st.lists(pairs, max_size=4))
def test_clusters_hold_one_entity_of_each_source_and_nothing_that_is_kept_apart(drawn: Any, apart: Any) -> None:
    edges = sorted((MatchEdge("r", ends, chance, False, 0.0, "predicted") for ends, chance in drawn), key=lambda edge: -edge.probability)
    rejected = {frozenset(pair) for pair in apart}
    members, kept, left_out = joined_edges(edges, rejected)
    assert len(kept) + len(left_out) == len(edges)
    together = {node: at for at, own in enumerate(members) for node in own}
    for own in members:
        assert len({source for source, _ in own}) == len(own)
        assert not any(frozenset(pair) in rejected for pair in itertools.combinations(own, 2))
    for edge in kept:
        assert together[edge.ends[0]] == together[edge.ends[1]]
    for one in left_out:
        assert together.get(one.edge.ends[0], -1) != together.get(one.edge.ends[1], -2)


def test_the_command_writes_clusters_mappings_and_conflicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    third = run_between(0, 2, [(3, 3, "train")], (1, 0, 2, 3, 4, 5))
    made = [run_between(0, 1, SEEDS, STRAIGHT), run_between(1, 2, SEEDS, STRAIGHT), third]
    ids = [write_run(run, tmp_path / "models", str(run.manifest["dataset"]), "basic-s0") for run in made]
    words = ["clusters", *ids, "--models", str(tmp_path / "models")]
    assert main([*words, "--output", str(tmp_path / "c.csv"), "--conflicts", str(tmp_path / "left.csv")]) == 0
    assert "clusters of" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "c.csv")
    assert set(table["source"]) == set(NAMES)
    assert len(pd.read_csv(tmp_path / "left.csv")) == 2
    assert main([*words, "--output", str(tmp_path / "c.sssom.tsv")]) == 0
    mappings = pd.read_csv(tmp_path / "c.sssom.tsv", sep="\t", comment="#")
    assert "semapv:MappingChaining" in set(mappings["mapping_justification"])
    assert main([*words, "--output", str(tmp_path / "c.parquet"), "--json"]) == 0
    assert pd.read_parquet(tmp_path / "c.parquet")["cluster"].nunique() == table["cluster"].nunique()
    assert main([*words, "--output", str(tmp_path / "c.xlsx")]) == 2
    assert "does not determine a format" in capsys.readouterr().err
    assert main([*words, "--output", str(tmp_path / "c.csv")]) == 2
    assert "already exists" in capsys.readouterr().err
