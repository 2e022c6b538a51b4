"""Links of entities that are in no triple: nothing is measured by them, and everything that names the pool says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from engine.cli.main import main
from engine.config import DataConfig
from engine.data import inspect_task, load_task
from engine.data.knowledge_graph import AlignmentTask
from engine.evaluation.decoders import evaluate_decoders
from engine.evaluation.metrics import evaluate_links
from engine.runs import RunStore
from engine.search import StructuralSimilarity

SIZE = 40
TURNED = ("b21,a21", "b22,a22")
"""Names an entity of the other graph on each side, so that each graph gets one that it does not have."""


def write_rings(folder: Path, *, more: tuple[str, ...] = (), attributes: bool = False) -> Path:
    """Two rings with chords, 40 links, and perhaps some more."""
    folder.mkdir()
    for number, letter in ((1, "a"), (2, "b")):
        triples = [f"{letter}{one},r{one % 3},{letter}{(one + step) % SIZE}" for one in range(SIZE) for step in (1, 7)]
        (folder / f"kg{number}.csv").write_text("\n".join(["head,relation,tail", *triples, ""]), encoding="utf-8")
    links = [f"a{one},b{one},{'train' if one % 4 == 0 else 'valid' if one % 4 == 1 else 'test'}" for one in range(SIZE)]
    (folder / "links.csv").write_text("\n".join(["source,target,split", *links, *more, ""]), encoding="utf-8")
    if attributes:
        (folder / "attributes_1.csv").write_text("entity,attribute,value\nb21,label,Rome\n", encoding="utf-8")
    return folder


def pairs_tested(task: AlignmentTask) -> list[tuple[str, str]]:
    return [(task.source.entities[left], task.target.entities[right]) for left, right in task.test_links]


def test_a_link_whose_ends_are_in_no_triple_is_no_test(tmp_path: Path) -> None:
    whole = load_task(write_rings(tmp_path / "whole"))
    with_more = write_rings(tmp_path / "more", more=(f"{TURNED[0]},test", f"{TURNED[1]},valid", "a1,nowhere,test"), attributes=True)
    task = load_task(with_more)
    assert pairs_tested(task) == pairs_tested(whole)
    assert (len(task.valid_links), len(task.train_links)) == (len(whole.valid_links), len(whole.train_links))
    assert (task.untested, whole.untested) == (3, 0)
    assert len(task.unsure_links) == 3
    assert task.split == f"{whole.split}; 3 links without triples left out"
    assert whole.fingerprint != task.fingerprint
    (finding,) = [finding for finding in inspect_task(task).findings if finding.code == "links-without-triples"]
    assert (finding.severity, finding.count) == ("warning", 3)
    assert "b21 = a21" in finding.examples
    assert not [finding for finding in whole.findings if finding.code == "links-without-triples"]


@pytest.mark.parametrize("ratio", [None, 0.5])
def test_what_identifies_the_data_counts_every_known_link(tmp_path: Path, ratio: float | None) -> None:
    """Reviews are kept by the fingerprint, and the split does not change it."""
    folder = write_rings(tmp_path / "more", more=(f"{TURNED[0]},test",))
    task = load_task(folder, DataConfig(train_ratio=ratio))
    moved = load_task(folder, DataConfig(train_ratio=1.0))
    assert moved.untested == 0
    assert task.fingerprint == moved.fingerprint


def test_every_protocol_says_how_many_links_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, models = write_rings(tmp_path / "more", more=(f"{TURNED[0]},test", f"{TURNED[1]},test")), tmp_path / "models"
    assert main(["train", str(folder), "--models", str(models), "--set", "encoder.dim=16", "--set", "training.epochs=1"]) == 0
    (run,) = RunStore(models).list()
    stored = RunStore(models).find(run.id)
    words = r"pool: 20 test entities a side \(2 known links are left out: an end is in no triple\)"
    assert re.search(words, stored.manifest["protocol"])
    assert stored.manifest["data"]["untested"] == 2
    assert all(re.search(words, found["protocol"]) for found in stored.json("decoders").values())
    for decoder in ("csls", "mutual"):
        assert main(["evaluate", run.id, "--models", str(models), "--decoder", decoder]) == 0
        assert re.search(words, capsys.readouterr().out)
    for pool, noted in (("test", True), ("all", False)):
        assert main(["match", run.id, "a2", "--side", "source", "--pool", pool, "--models", str(models)]) == 0
        assert ("20 test entities (2 known links are left out: an end is in no triple)" in capsys.readouterr().out) is noted


def test_without_such_links_no_word_of_them(tmp_path: Path) -> None:
    task = load_task(write_rings(tmp_path / "whole"))
    similarity = StructuralSimilarity(*(torch.eye(graph.num_entities, 8) for graph in (task.source, task.target)))
    decoded = evaluate_decoders(similarity, task.test_links, ["mutual"], bootstrap=0)
    found = [evaluate_links(similarity, task.test_links, bootstrap=0).protocol, decoded["mutual"].protocol]
    assert not [protocol for protocol in found if "left out" in protocol]
