"""What changed between two runs: each kind of change and each reason, counted by hand; refused where the runs have nothing in common."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.api import open_run
from engine.cli.main import main
from engine.errors import ComparisonError, RunError
from engine.explore.changes import CAUSES, CHANGE_COLUMNS, CHANGES, MatchChanges, match_changes
from tests.effort import examples
from tests.explore.versions import FAR, PLAIN, SEEDS, SOURCES, TARGETS, seen, version
from tests.run_fixture import write_run

SWAPPED = {"s1": "t2", "s2": "t1"}


def compared(new: Any, old: Any, side: Any = "source", least: float | None = None) -> MatchChanges:
    return match_changes(seen(new, side), seen(old, side), least)


def row_of(found: MatchChanges, name: str) -> pd.Series[Any]:
    table = found.described()
    return table[table["entity"] == f"http://x/{name}"].iloc[0]


def test_the_same_run_keeps_everything() -> None:
    found = compared(version(), version())
    assert found.counts() == {"changed": 0, "gained": 0, "lost": 0, "kept": 8}
    assert not any(found.cause_counts().values())
    assert set(found.described()["reason"]) == {""}
    assert "the same 8 entities" in found.entity_sentence("source")


def test_matches_are_gained_lost_changed_and_kept() -> None:
    """s5 and t5 are gone, s8 and t8 are new, s1 and s2 have exchanged their matches."""
    sources, targets = ([*names[:5], *names[6:], f"{names[0][0]}8"] for names in (SOURCES, TARGETS))
    triples, far = (*PLAIN[::2], ("s8", "near", "s6")), (*FAR[::2], ("t8", "nahe", "t6"))
    found = compared(version(sources=sources, targets=targets, triples=triples, far=far, matches=SWAPPED), version())
    assert found.counts() == {"changed": 2, "gained": 1, "lost": 1, "kept": 5}
    table = found.described()
    assert table["change"].tolist() == ["changed", "changed", "gained", "lost", *["kept"] * 5]
    assert tuple(table.columns) == CHANGE_COLUMNS
    changed, gained, lost = (row_of(found, name) for name in ("s1", "s8", "s5"))
    assert (changed["old_match"], changed["match"]) == ("http://x/t1", "http://x/t2")
    assert (gained["match_label"], gained["old_match"], gained["reason"]) == ("T8", "", "new entity")
    assert gained["detail"] == "2 triples added, e.g. S6", "its own and its match's"
    assert (lost["match"], lost["old_match"], lost["reason"]) == ("", "http://x/t5", "entity removed")
    assert found.entity_sentence("target") == "GeoTwo: 7 entities in both versions, 1 added, 1 removed"
    assert found.sentence() == "5 matches kept, 2 changed, 1 gained, 1 lost."
    assert found.pairs(int(found.select(["lost"])[0]))[0] is None
    pair = found.pairs(int(found.select(["lost"])[0]))[1]
    assert pair is not None
    assert [one.uri for one in pair] == ["http://x/s5", "http://x/t5"]


REVIEWED = pd.DataFrame([("http://x/s1", "http://x/t1", "rejected", 0, 1)], columns=["source_uri", "target_uri", "outcome", "accepts", "rejects"])


@pytest.mark.parametrize(
    ("now", "before", "reason", "detail"),
    [
        ({}, {}, "training only", ""),
        ({"triples": (*PLAIN, ("s1", "near", "s4"))}, {}, "triples added", "1 triple added, e.g. S4"),
        ({"far": (*FAR, ("t4", "nahe", "t2"))}, {}, "triples added", "1 triple added, e.g. T4"),
        ({}, {"triples": (*PLAIN, ("s1", "near", "s4"))}, "triples removed", "1 triple removed, e.g. S4"),
        ({"triples": (*PLAIN, ("s4", "near", "s1"))}, {"triples": (*PLAIN, ("s1", "near", "s4"))}, "triples added", "1 triple added, 1 removed"),
        ({"triples": (*PLAIN, ("s1", "far", "s4"))}, {"triples": (*PLAIN, ("s1", "near", "s4"))}, "triples added", "1 triple added, 1 removed"),
        ({"values": (("s1", "size", "3"), ("s2", "size", "2"))}, {}, "name or value", "size"),
        ({"labels": {"t2": "Two"}}, {}, "name or value", "name"),
        ({"seeds": (*SEEDS, ("s1", "t2"))}, {}, "seed link added", ""),
        ({}, {"seeds": (*SEEDS, ("s4", "t1"))}, "seed link removed", ""),
        ({"tables": {"reviews": REVIEWED}}, {}, "review decision", ""),
        ({"tables": {"reviews": REVIEWED}}, {"tables": {"reviews": REVIEWED}}, "training only", ""),
        (
            {"triples": (*PLAIN, ("s1", "near", "s3")), "matches": {**SWAPPED, "s3": "t4", "s4": "t3"}},
            {"triples": (*PLAIN, ("s1", "near", "s3"))},
            "neighbour's match",
            "1 neighbour, e.g. S3",
        ),
        ({}, {"targets": [*TARGETS[:2], "t9", *TARGETS[3:]], "matches": {"s2": "t9"}}, "match is a new entity", ""),
        ({"targets": ["t0", "t9", *TARGETS[2:]], "matches": {"s1": "t2", "s2": "t9"}}, {}, "previous match removed", ""),
    ],
)
def test_a_changed_match_has_the_first_reason_that_applies(now: dict[str, Any], before: dict[str, Any], reason: str, detail: str) -> None:
    found = compared(version(**{"matches": SWAPPED, **now}), version(**before))
    row = row_of(found, "s1")
    assert (row["change"], row["reason"]) == ("changed", f"{reason} changed" if reason == "name or value" else reason)
    assert row["detail"].startswith(detail)


def test_the_neighbour_to_name_is_one_that_is_matched_around_the_match() -> None:
    """s1 gets triples with s4 and s6; the match of s6 alone is a neighbour of s1's match."""
    triples, far = (*PLAIN, ("s1", "near", "s4"), ("s1", "near", "s6")), (*FAR, ("t2", "nahe", "t6"))
    found = compared(version(matches=SWAPPED, triples=triples, far=far), version(far=far))
    assert row_of(found, "s1")["detail"] == "2 triples added, e.g. S6"
    without = compared(version(matches=SWAPPED, triples=triples[:-1], labels={"s4": ""}), version(labels={"s4": ""}))
    assert row_of(without, "s1")["detail"] == "1 triple added, e.g. s4", "its identifier where it has no label"


def test_entities_of_an_update_go_by_its_mapping() -> None:
    renamed = pd.DataFrame([("source", "http://x/s1", "http://x/n1"), ("target", "http://x/t1", "http://x/m1")], columns=["graph", "old", "new"])
    changes: dict[str, Any] = {
        "sources": ["s0", "n1", *SOURCES[2:]],
        "targets": ["t0", "m1", *TARGETS[2:]],
        "matches": {"n1": "m1"},
        "labels": {"n1": "S1", "m1": "T1"},
        "values": (("n1", "size", "1"), ("s2", "size", "2")),
        "tables": {"renamed": renamed},
    }
    found = compared(version(**changes, parent={"run": "d/old", "fingerprint": "0" * 64}), version())
    assert found.counts()["kept"] == 8
    of_others = compared(version(**changes, parent={"run": "d/old", "fingerprint": "1" * 64}), version())
    assert of_others.counts() == {"changed": 0, "gained": 1, "lost": 1, "kept": 7}, "the mapping is between other data"


def test_an_identifier_that_a_mapping_gives_to_another_entity_is_that_entity() -> None:
    """s1 is called s2 now; what was called s2 is gone."""
    renamed = pd.DataFrame([("source", "http://x/s1", "http://x/s2")], columns=["graph", "old", "new"])
    new = version(
        sources=["s0", *SOURCES[2:]],
        matches={"s2": "t1"},
        tables={"renamed": renamed},
        parent={"fingerprint": "0" * 64},
        values=(("s2", "size", "1"),),
        labels={"s2": "S1"},
    )
    found = compared(new, version())
    assert found.counts() == {"changed": 0, "gained": 0, "lost": 1, "kept": 7}
    table = found.described(found.select(["lost"]))
    assert table["entity"].tolist() == ["http://x/s2"]


def test_matches_that_become_probable_are_gained() -> None:
    now = dict.fromkeys(SOURCES[1:7], 0.9) | {"s3": 0.2}
    before = dict.fromkeys(SOURCES[1:7], 0.9) | {"s4": 0.3, "s5": 0.1}
    new, old = version(probabilities=now | {"s5": 0.3}), version(probabilities=before)
    found = compared(new, old)
    assert found.least == 0.5
    assert found.counts() == {"changed": 0, "gained": 1, "lost": 1, "kept": 5}, "the two seed links have no probability and count; s5 does not"
    assert row_of(found, "s4")["change"] == "gained"
    assert (row_of(found, "s3")["match"], row_of(found, "s3")["probability"]) == ("http://x/t3", pytest.approx(0.2)), "what it is now all the same"
    assert compared(new, old, least=0.0).counts()["kept"] == 8
    moved = compared(version(probabilities=before, matches={"s0": "t7", "s7": "t0"}), version(probabilities=before))
    assert (row_of(moved, "s0")["change"], row_of(moved, "s0")["match"]) == ("changed", "http://x/t7"), "no longer the target of the seed link"
    assert "(estimated probability 50% or more)" in found.sentence(), "neither run has validation links"
    fit = {"calibration": {"fit": {"estimated": False}}}
    checked = [
        replace(one, documents=fit, manifest={**one.manifest, "files": {**one.manifest["files"], "calibration.json": {}}}) for one in (new, old)
    ]
    assert "(probability 50% or more)" in compared(*checked).sentence()
    assert "(estimated probability 50% or more)" in compared(checked[0], old).sentence()
    for least, words in ((0.8, "has no probabilities"), (7.0, "must lie between 0 and 1")):
        with pytest.raises(ComparisonError, match=words):
            compared(version(), old, least=least)
    assert compared(version(), old).least is None


def test_runs_on_other_data_are_refused_with_numbers() -> None:
    other = version(sources=[f"s{number}" for number in (0, *range(20, 31))], triples=(), values=(), seeds=SEEDS[:1])
    assert compared(other, version()).counts()["kept"] == 1, "a tenth is enough"
    strange = version(sources=[f"s{number}" for number in range(20, 32)], triples=(), values=(), seeds=())
    with pytest.raises(ComparisonError, match=r"0 of 8 entities \(0.0%\) of the source graph are in both"):
        compared(strange, version())


def test_rows_are_found_by_kind_reason_and_text_of_either_version() -> None:
    found = compared(version(matches=SWAPPED, labels={"t2": "Zwei"}), version())
    assert len(found.select(["changed"])) == len(found.select(["changed", "lost"])) == 2
    assert len(found.select()) == 8
    assert len(found.select(causes=["name or value"])) == 2, "t2 is the match of s1 now and was that of s2"
    for words, number in (("zwei", 2), ("T2", 2), ("http://x/s1", 1), ("nothing", 0)):
        assert len(found.select(["changed"], text=words)) == number, words
    assert sum(found.counts(found.select(["changed"])).values()) == 2


def test_the_other_graph_can_be_compared_as_well() -> None:
    found = compared(version(matches=SWAPPED), version(), side="target")
    assert found.counts()["changed"] == 2
    pair = found.pairs(0)[0]
    assert pair is not None
    assert [one.side for one in pair] == ["source", "target"]


names = st.sampled_from(SOURCES)
edges = st.lists(st.tuples(names, st.sampled_from(["near", "in"]), names), max_size=12, unique=True)


@settings(max_examples=examples(30), deadline=None)
@given(now=edges, before=edges, order=st.permutations(TARGETS))
def test_counts_of_triples_are_those_of_sets(now: list[Any], before: list[Any], order: list[str]) -> None:
    new = version(triples=now, matches=dict(zip(SOURCES, order, strict=True)))
    found = compared(new, version(triples=before))

    def ends(triples: set[Any]) -> Counter[str]:
        return Counter(entity for head, _, tail in triples for entity in {head, tail})

    added, removed = ends(set(now) - set(before)), ends(set(before) - set(now))
    for position, row in enumerate(found.rows.to_dict("records")):
        name = found.entity("source", row["entity"]).short_id
        assert (row["added"], row["removed"]) == (added[name], removed[name])
        assert CHANGES[row["change"]] == ("kept" if order[int(name[1:])] == f"t{name[1:]}" else "changed")
        assert (row["cause"] < 0) == (CHANGES[row["change"]] == "kept")
        if row["cause"] >= 0 and CAUSES[row["cause"]].startswith("triples"):
            assert added[name] + removed[name]
            assert "e.g." in found.detail(position)
    assert sum(found.counts().values()) == len(SOURCES)


# From Python and the command line


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Path, str, str]:
    """A models folder with a run and its update, whose data has one entity less."""
    models = tmp_path / "models"
    old = write_run(version(), models, "d", "old")
    gone = [name for name in SOURCES if name != "s4"]
    new = version(sources=gone, matches=SWAPPED, labels={"s2": "=Two\x1b[31m"})
    data = {**new.manifest["data"], "fingerprint": "1" * 64}
    return models, write_run(new, models, "d", "new", data=data, parent={"run": old, "fingerprint": "0" * 64}), old


def test_a_run_is_compared_with_its_parent(stored: tuple[Path, str, str]) -> None:
    models, new, old = stored
    run = open_run(new, models)
    assert run.parent == old
    table = run.changes()
    assert Counter(table["change"]) == {"kept": 5, "changed": 2, "lost": 1}
    pd.testing.assert_frame_equal(table, run.changes(old))
    assert Counter(run.changes(old, side="target")["change"])["changed"] == 3, "what was the match of s4 has another one"
    with pytest.raises(RunError, match="was not updated from another run"):
        open_run(old, models).changes()
    assert np.isnan(table["probability"]).all()


def test_the_command_prints_counts_reasons_and_the_first_rows(stored: tuple[Path, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    models, new, old = stored
    words = ["--models", str(models)]
    assert main(["changes", new, *words, "--top", "2"]) == 0
    printed = capsys.readouterr().out
    assert "GeoOne: 7 entities in both versions, 0 added, 1 removed" in printed
    assert "5 matches kept, 2 changed, 0 gained, 1 lost." in printed
    assert "reasons: entity removed 1, name or value changed 1, training only 1" in printed
    assert "S1: T1 → T2; training only" in printed
    assert "\x1b" not in printed
    assert "and 1 more" in printed
    assert main(["changes", new, old, *words, "--only", "lost"]) == 0
    assert "lost     S4: T4 → –; entity removed" in capsys.readouterr().out


def test_the_command_writes_a_table_and_json(stored: tuple[Path, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models, new, old = stored
    path = tmp_path / "changes.csv"
    words = ["changes", new, old, "--models", str(models), "--output", str(path)]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["changes"] == {"changed": 2, "gained": 0, "lost": 1, "kept": 5}
    assert found["entities"]["source"] == {"both": 7, "added": 0, "removed": 1}
    assert [row["change"] for row in found["rows"]] == ["changed", "changed", "lost"]
    assert found["rows"][2]["match"] == ""
    assert found["rows"][2]["csls"] is None
    written = pd.read_csv(path, keep_default_na=False)
    assert tuple(written.columns) == CHANGE_COLUMNS
    assert len(written) == 3
    assert "'=Two" in path.read_text(encoding="utf-8-sig"), "no cell that a spreadsheet would run"
    assert main(words) == 2
    assert "already exists" in capsys.readouterr().err


def test_matches_that_do_not_count_are_in_parentheses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sure = dict.fromkeys(SOURCES[1:7], 0.9)
    for name, probabilities in (("old", sure), ("new", sure | {"s3": 0.3})):
        write_run(version(probabilities=probabilities), tmp_path, "d", name)
    assert main(["changes", "d/new", "d/old", "--models", str(tmp_path)]) == 0
    assert "lost     S3: T3 90% → (T3 30%); training only" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["old"], "was not updated from another run"),
        (["new", "gone"], "there is no run gone"),
        (["new", "--top", "-1"], "--top must lie between"),
        (["new", "--output", "x.docx"], "does not determine a format"),
        (["new", "--min-probability", "0.9"], "has no probabilities"),
        (["new", "other"], "are not on versions of the same data"),
    ],
)
def test_the_command_refuses_in_a_sentence(stored: tuple[Path, str, str], words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    strange = version(sources=[f"s{number}" for number in range(20, 32)], triples=(), values=(), seeds=())
    write_run(strange, stored[0], "d", "other")
    assert main(["changes", *words, "--models", str(stored[0])]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
