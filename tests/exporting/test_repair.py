"""Exports of runs whose graphs are hierarchies: contradictions are counted, and left out where that is asked for."""

from __future__ import annotations

from engine.exporting import ExportSelection, ExportTable, pairs_to_export
from engine.runs.view import RunView
from tests.explanation.runs import drawn_run
from tests.run_fixture import MemoryRun


def plain_run() -> MemoryRun:
    """A drawn run with what an export names."""
    run = drawn_run(5)
    return MemoryRun({**run.manifest, "run_id": "r", "dataset": "d"}, run.metrics, run.tables, run.tensors)


def hierarchy_run() -> MemoryRun:
    """A drawn run whose relations all say what is below what; its matches are no better than chance, so that many contradict the hierarchies."""
    run = plain_run()
    relations = run.tables["relations"].assign(name=lambda table: "http://x.org/" + table["relation"].astype(str) + "#subClassOf")
    files = {f"{name}.parquet": {} for name in run.tables}
    return MemoryRun(
        {**run.manifest, "run_id": "r", "dataset": "d", "files": files}, run.metrics, {**run.tables, "relations": relations}, run.tensors
    )


def pairs(table: ExportTable) -> set[tuple[int, int]]:
    source, target = table.ends
    return set(zip(source.tolist(), target.tolist(), strict=True))


def test_repair_leaves_no_contradiction_and_drops_no_known_link() -> None:
    view = RunView(hierarchy_run())
    plain, repaired = (pairs_to_export(view, ExportSelection(repair=repair, known_links=False)) for repair in (False, True))
    assert plain.conflicts is not None
    assert plain.conflicts.contradictions > 0
    assert "with the class hierarchies remain" in " ".join(plain.conflicts.sentences())
    assert repaired.conflicts is not None
    assert repaired.conflicts.repaired == len(plain) - len(repaired) > 0
    assert pairs(repaired) < pairs(plain)
    certain = pairs_to_export(view, ExportSelection(repair=True, known_links=True))
    assert certain.conflicts is not None
    assert len(certain) == len(pairs_to_export(view, ExportSelection(known_links=True))), "known links are not dropped"
    assert certain.conflicts.contradictions > 0


def test_runs_without_a_hierarchy_have_no_contradictions() -> None:
    view = RunView(plain_run())
    table = pairs_to_export(view, ExportSelection(repair=True))
    assert table.conflicts is not None
    assert (table.conflicts.contradictions, table.conflicts.repaired) == (0, 0)
