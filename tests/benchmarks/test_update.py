"""Two versions of a data set, and an update compared with training again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import update, versions
from benchmarks.children import here
from benchmarks.versions import MARK, plan_graph, write_versions
from engine.data import load_task
from engine.data.knowledge_graph import SIDES


def test_versions_differ_as_planned_and_are_the_same_every_time(small_europe: Path, tmp_path: Path) -> None:
    task = load_task(small_europe)
    folders = write_versions(task, tmp_path / "one", 0.1, 0.02, seed=3)
    again = write_versions(task, tmp_path / "two", 0.1, 0.02, seed=3)
    for place, other in zip(folders, again, strict=True):
        files = sorted(path.relative_to(place) for path in place.rglob("*") if path.is_file())
        assert all((place / name).read_bytes() == (other / name).read_bytes() for name in files)
    first, second = (load_task(place) for place in folders)
    for side in SIDES:
        whole, before, after = (set(one.graph(side).entities) for one in (task, first, second))
        assert before <= whole
        renamed = {name for name in after if name.endswith(MARK)}
        assert len(renamed) == round(0.02 * len(whole))
        own = (after - renamed) | {name.removesuffix(MARK) for name in renamed}
        assert own <= whole
        assert len(whole - own) >= round(0.1 * len(whole) / 3)
        assert len(own - before) >= round(0.1 * len(whole) / 3)
    links = {part: {tuple(link) for link in named(task, part)} for part in ("train", "test")}
    for part in links:
        assert {tuple(link) for link in named(first, part)} <= links[part]


def named(task: object, part: str) -> list[tuple[str, str]]:
    links = getattr(task, f"{part}_links")
    return [(task.source.entities[one], task.target.entities[two]) for one, two in links.tolist()]  # type: ignore[attr-defined]


def test_a_plan_takes_apart_what_a_version_has(small_europe: Path) -> None:
    graph = load_task(small_europe).source
    plan = plan_graph(graph, 0.3, 0.1, np.random.default_rng(0))
    masks = np.stack([plan.dropped, plan.added, plan.changed, plan.renamed])
    assert masks.sum(axis=0).max() == 1
    for version in (1, 2):
        ends = graph.triples[plan.triples[version]][:, [0, 2]]  # type: ignore[index]
        assert plan.has(version)[ends].all()  # type: ignore[arg-type]
    assert (plan.triples[1] != plan.triples[2]).any()


def test_the_comparison_prints_both_runs(small_europe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--set", "encoder.dim=8", "--set", "training.epochs=4", "--threads", "1"]
    assert update.main([str(small_europe), *quick, "--epochs", "1"], here) == 0
    printed = capsys.readouterr().out
    assert "| update |" in printed
    assert "| trained again |" in printed
    assert "of the time" in printed


def test_shares_that_leave_nothing_are_refused(small_europe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert versions.main([str(small_europe), str(tmp_path), "--share", "0.9"]) == 2
    assert "at most 0.5" in capsys.readouterr().err
